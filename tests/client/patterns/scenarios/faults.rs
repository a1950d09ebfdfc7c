//! One write of a scenario, with one fault at each of its requests, or with other clients between
//! them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use harness::setting;
use tablesdk::RetryPolicy;
use tablesdk_server::testing::Fault;
use tablesdk_server::{ErrorCode, RunWithFault, TableServer};
use tokio::time::sleep;

use super::{Before, Ends, Outcome, Scenario, Write, is_expected};

/// The effect of a fault on one request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    /// The request is not carried out.
    Nothing,
    /// It is carried out, and the client does not see the response.
    Hidden,
    /// It is carried out later, when the client may have ended.
    Late,
    Twice,
}

fn faults<S: Scenario>(tries_again: bool) -> Vec<(Effect, Fault)> {
    let late = Fault::reset().applied_after(S::LATE);
    if !tries_again {
        let faults = [
            (Effect::Nothing, Fault::reset()),
            (Effect::Nothing, Fault::error(ErrorCode::InternalError)),
            (Effect::Hidden, Fault::lost_response()),
            (Effect::Late, late),
        ];
        let more = S::more_faults().into_iter();
        let more = more.map(|fault| (Effect::Twice, fault));
        return faults.into_iter().chain(more).collect();
    }
    let without_time = Fault::error(ErrorCode::OperationTimedOut).applied();
    vec![
        (Effect::Nothing, Fault::reset()),
        (Effect::Nothing, Fault::error(ErrorCode::ServerBusy)),
        (Effect::Hidden, Fault::lost_response()),
        (Effect::Hidden, without_time),
        (Effect::Hidden, Fault::truncated_response(10)),
        (Effect::Late, late),
        (Effect::Twice, Fault::duplicate()),
    ]
}

/// Every write with every fault at every request, and with a client that ends during it.
pub(super) async fn at_every_request<S: Scenario>() {
    let every = match setting::<u8>("TABLESDK_SCENARIO_ALL") {
        Some(_) => 1,
        None => S::EVERY,
    };
    for (nth, write) in S::WRITES.iter().enumerate() {
        let server = TableServer::in_process();
        let first = S::new(&server, Before::Write(write.name)).await;
        let current = RefCell::new(Rc::new(first.again()));
        for tries_again in [false, true] {
            let mut faults = faults::<S>(tries_again);
            // If only some requests get a fault, they are other ones for each write.
            let count = faults.len();
            faults.rotate_left(nth % count);
            let action = async || one_write(&first, &server, &current, tries_again, write).await;
            let check = async |run: RunWithFault<Outcome>| {
                let result = run.outcome.expect("the client does not end");
                let effect = faults.iter().find(|it| Some(&it.1) == run.fault.as_ref());
                let effect = effect.map(|it| it.0);
                println!(
                    "{}, {tries_again}, {effect:?}, {}: {result:?}",
                    write.name, run.request
                );
                if tries_again || effect.is_none() {
                    expect(write, effect, &result);
                }
                let scenario = Rc::clone(&current.borrow());
                judge(&*scenario, &server, write, effect, Some(&result)).await;
            };
            let faults = faults.iter().map(|it| it.1.clone());
            let runs = server.at_each_request().faults(faults).every(every);
            assert!(runs.run(action, check).await > 0, "{write:?}");
        }
        let action = async || one_write(&first, &server, &current, true, write).await;
        let runs = server.at_each_request().client_ends().every(every);
        let runs = runs.run(action, async |_| {
            let scenario = Rc::clone(&current.borrow());
            judge(&*scenario, &server, write, Some(Effect::Hidden), None).await;
        });
        assert!(runs.await > 0, "{write:?}");
    }
}

async fn one_write<S: Scenario>(
    first: &S,
    server: &TableServer,
    current: &RefCell<Rc<S>>,
    tries_again: bool,
    write: &Write,
) -> Outcome {
    let scenario = Rc::new(first.again());
    current.replace(Rc::clone(&scenario));
    let mut client = scenario.open(server, retry(tries_again));
    scenario.write(&mut client, write.name).await
}

fn retry(tries_again: bool) -> RetryPolicy {
    if tries_again {
        RetryPolicy::exponential()
    } else {
        RetryPolicy::none()
    }
}

/// The result of a client that tries again, or that meets no fault.
fn expect(write: &Write, effect: Option<Effect>, result: &Outcome) {
    let what = format!("{write:?}, {effect:?}: {result:?}");
    match (write.ends, effect) {
        (Ends::Done, _)
        | (Ends::DoneOrUnknown, None | Some(Effect::Nothing))
        | (Ends::Uncertain, None) => {
            assert!(result.is_ok(), "{what}");
        }
        // Of the second one, the first one may be a rival.
        (Ends::DoneOrUnknown | Ends::Uncertain, Some(Effect::Twice)) => {}
        (Ends::DoneOrUnknown | Ends::Uncertain, _) => {
            if let Err(error) = result {
                assert!(error.is_outcome_unknown, "{what}");
            }
        }
        (Ends::Refused, _) => assert!(result.is_err(), "{what}"),
    }
}

/// The results of the step are true, and the pattern is right, at once and after it was mended.
async fn judge<S: Scenario>(
    scenario: &S,
    server: &TableServer,
    write: &Write,
    effect: Option<Effect>,
    result: Option<&Outcome>,
) {
    let mut other = scenario.open(server, RetryPolicy::exponential());
    scenario.check(&mut other).await;
    let is_done = scenario.is_done(&mut other, write.name).await;
    match (result, is_done) {
        (Some(Ok(())), Some(is_done)) => assert!(is_done, "{write:?} is lost"),
        (Some(Err(error)), Some(is_done)) => {
            // Of a write that a proxy sends twice, the second response is returned.
            let may_be_done = error.is_outcome_unknown || effect == Some(Effect::Twice);
            assert!(may_be_done || !is_done, "{write:?} is stored: {error}");
        }
        (None, _) | (_, None) => {}
    }
    scenario.settle(server, &mut other).await;
}

/// Every write, each of whose requests waits while another client checks and mends.
pub(super) async fn beside_other_clients<S: Scenario>() {
    let slow = Duration::from_secs(10);
    for write in S::WRITES {
        for nth in 1.. {
            let server = TableServer::in_process();
            let scenario = S::new(&server, Before::Write(write.name)).await;
            let rule = server.faults().on_any().nth(nth);
            let rule = rule.inject(Fault::delay(slow));
            let mut client = scenario.open(&server, RetryPolicy::exponential());
            let mut other = scenario.open(&server, RetryPolicy::exponential());
            let written = async {
                let result = scenario.write(&mut client, write.name).await;
                rule.remove();
                result
            };
            let mut hit = rule.clone();
            let beside = async {
                hit.wait_for_hits(1).await;
                sleep(slow / 10).await;
                scenario.check(&mut other).await;
                let mended = scenario.mend(&mut other).await;
                scenario.check(&mut other).await;
                mended.expect("nothing but the write is slow");
            };
            let (result, ()) = tokio::join!(written, beside);
            if rule.hits() == 0 {
                assert!(nth > 1, "{write:?}");
                break;
            }
            println!("{write:?}, request {nth}: {result:?}");
            if let Err(error) = &result {
                let is_right = write.ends == Ends::Refused || is_expected(error);
                assert!(is_right, "{write:?}: {error}");
            }
            judge(&scenario, &server, write, None, Some(&result)).await;
        }
    }
}

/// Every write where the network delivers each request twice, and hands on the second response.
pub(super) async fn each_request_twice<S: Scenario>() {
    for write in S::WRITES {
        let server = TableServer::in_process();
        let scenario = S::new(&server, Before::Write(write.name)).await;
        let rule = server.faults().on_any().inject(Fault::duplicate());
        let mut client = scenario.open(&server, RetryPolicy::exponential());
        let result = scenario.write(&mut client, write.name).await;
        rule.remove();
        println!("{}: {result:?}", write.name);
        expect(write, Some(Effect::Twice), &result);
        judge(
            &scenario,
            &server,
            write,
            Some(Effect::Twice),
            Some(&result),
        )
        .await;
    }
}
