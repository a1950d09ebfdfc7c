//! Random histories of several clients with faults, on paused time, each from one seed.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::future::join_all;
use harness::{panic_message, setting};
use tablesdk::RetryPolicy;
use tablesdk_server::testing::Fault;
use tablesdk_server::{ErrorCode, TableServer};
use tokio::time::{sleep, timeout};

use super::network::Network;
use super::{Before, Scenario, shrink};

/// A history, of which some steps and faults are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) seed: u64,
    /// Clients and their steps.
    pub(super) left_out: BTreeSet<(u64, u32)>,
    /// Numbers of requests that get no fault.
    pub(super) spared: BTreeSet<u64>,
}

/// The counts of a history.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) steps: u64,
    pub(super) succeeded: u64,
    pub(super) requests: u64,
    pub(super) faults: u64,
}

/// The faults of a history, each with the number of its request.
pub(super) type Drawn = Arc<Mutex<Vec<(u64, String)>>>;

/// Runs the histories of the seeds. `TABLESDK_SCENARIO_SEED` runs one; `TABLESDK_SCENARIO_STEPS`
/// runs random ones until so many steps were made, and prints how many there are in a second.
pub(super) fn run_seeds<S: Scenario>(name: &str) {
    let began = Instant::now();
    let least: Option<u64> = setting("TABLESDK_SCENARIO_STEPS");
    let only: Option<u64> = setting("TABLESDK_SCENARIO_SEED");
    let first = only.or_else(|| least.map(|_| fastrand::u64(..)));
    let first = first.unwrap_or(0);
    let (mut all, mut shown) = (Counts::default(), Instant::now());
    for seed in (0..).map(|nth| first.wrapping_add(nth)) {
        let history = History {
            seed,
            ..History::default()
        };
        match run::<S>(&history) {
            Ok(counts) => {
                all.steps += counts.steps;
                all.succeeded += counts.succeeded;
                all.requests += counts.requests;
                all.faults += counts.faults;
            }
            Err((panic, _)) => panic!(
                "{panic}\nTABLESDK_SCENARIO_SEED={seed} runs this history of {name} again, after {all:?} in {:?}\n{}",
                began.elapsed(),
                shrink::shrunk::<S>(history)
            ),
        }
        if least.is_some() && shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            report(name, all, began);
        }
        let is_over = match least {
            Some(least) => all.steps >= least,
            None => only.is_some() || seed.wrapping_sub(first) + 1 >= S::HISTORIES,
        };
        if is_over {
            break;
        }
    }
    report(name, all, began);
    // Not so many faults that nothing works, nor so few that nothing is tested.
    assert!(all.succeeded * 5 > all.steps, "{all:?}");
    assert!(all.faults * 30 > all.requests, "{all:?}");
}

fn report(name: &str, all: Counts, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (steps, requests) = (all.steps as f64 / seconds, all.requests as f64 / seconds);
    println!(
        "{name}: {all:?} in {seconds:.1} s: {steps:.0} steps and {requests:.0} requests a second"
    );
}

/// Runs a history. Returns its counts, or its failure and the faults that there were.
pub(super) fn run<S: Scenario>(history: &History) -> Result<Counts, (String, Vec<(u64, String)>)> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.expect("the system has resources");
    let drawn = Drawn::default();
    // The pauses of retries.
    fastrand::seed(history.seed);
    let run = AssertUnwindSafe(|| runtime.block_on(under_faults::<S>(history, &drawn)));
    catch_unwind(run).map_err(|panic| {
        let faults = drawn.lock().unwrap().clone();
        (panic_message(&*panic).to_owned(), faults)
    })
}

/// Clients that take their steps under faults, beside one that checks what holds at all times and
/// one that mends.
async fn under_faults<S: Scenario>(history: &History, drawn: &Drawn) -> Counts {
    let server = TableServer::in_process();
    let scenario = S::new(&server, Before::History).await;
    let faults = server.faults();
    scenario.inject(&faults, history.seed);
    let rule = faults.on_any().inject_each(faults_of(history, drawn));
    let network = Network::new(server.transport(), history, drawn);
    let clients = async {
        let mut made = Vec::new();
        for epoch in 0..S::EPOCHS {
            if epoch > 0 {
                sleep(Duration::from_secs(600)).await;
                server.clock().advance(Duration::from_secs(2 * 3600));
            }
            let clients = (0..S::CLIENTS).map(|nth| {
                let client = scenario.open_over(&server, network.clone(), S::retry());
                steps(&scenario, client, history, epoch, nth)
            });
            made.extend(join_all(clients).await);
        }
        made
    };
    let watch = async {
        let mut client = scenario.open(&server, patient());
        loop {
            scenario.check(&mut client).await;
            sleep(S::PAUSE).await;
        }
    };
    let mending = async {
        let mut client = scenario.open(&server, RetryPolicy::exponential());
        loop {
            if let Err(error) = scenario.mend(&mut client).await {
                assert!(S::is_expected(&error), "{error}");
            }
            sleep(S::PAUSE * 4).await;
        }
    };
    let made: Vec<(u64, u64)> = tokio::select! {
        biased;
        made = clients => made,
        () = watch => unreachable!("it has no end"),
        () = mending => unreachable!("it has no end"),
    };
    faults.clear();
    sleep(Duration::from_secs(3600)).await;
    let mut client = scenario.open(&server, RetryPolicy::exponential());
    scenario.check(&mut client).await;
    scenario.settle(&server, &mut client).await;
    Counts {
        steps: made.iter().map(|it| it.0).sum(),
        succeeded: made.iter().map(|it| it.1).sum(),
        requests: rule.hits(),
        faults: drawn.lock().unwrap().len() as u64,
    }
}

/// A client that reads whatever it takes.
pub(super) fn patient() -> RetryPolicy {
    let retry = RetryPolicy::exponential().attempts(30).budget(1_000_000);
    retry.deadline(Duration::from_secs(900))
}

/// The steps of one client. Returns how many it took, and how many succeeded.
async fn steps<S: Scenario>(
    scenario: &S,
    mut client: S::Client,
    history: &History,
    epoch: u32,
    nth: u64,
) -> (u64, u64) {
    let (mut taken, mut succeeded) = (0, 0);
    for step in epoch * S::STEPS..(epoch + 1) * S::STEPS {
        // Of its own: it does not change when another step is left out.
        let seed = history.seed ^ (nth << 56) ^ (u64::from(step) << 40);
        let mut rng = Rng::with_seed(seed);
        sleep(Duration::from_millis(rng.u64(..100))).await;
        if history.left_out.contains(&(nth, step)) {
            continue;
        }
        taken += 1;
        // Some futures are dropped before they are done.
        let patience = if S::DROPS && rng.u8(..16) == 0 {
            Duration::from_millis(rng.u64(..500))
        } else {
            Duration::MAX
        };
        let result = timeout(patience, scenario.step(&mut client, &mut rng)).await;
        match result {
            Ok(Ok(())) => succeeded += 1,
            Ok(Err(error)) => assert!(S::is_expected(&error), "{error}"),
            Err(_) => {}
        }
    }
    (taken, succeeded)
}

/// The faults in the order of the requests: the same seed and the same requests get the same
/// faults.
fn faults_of(history: &History, drawn: &Drawn) -> impl Iterator<Item = Fault> + Send + 'static {
    let (drawn, spared) = (Arc::clone(drawn), history.spared.clone());
    let mut rng = Rng::with_seed(history.seed);
    (0..).map(move |request| {
        let Some(fault) = draw(&mut rng).filter(|_| !spared.contains(&request)) else {
            return Fault::delayed_response(Duration::ZERO);
        };
        drawn.lock().unwrap().push((request, fault.to_string()));
        fault
    })
}

/// A fault for 10 of 64 requests.
fn draw(rng: &mut Rng) -> Option<Fault> {
    let delay = Duration::from_millis(rng.u64(..100));
    Some(match rng.u8(..64) {
        0 => Fault::error(ErrorCode::ServerBusy),
        1 => Fault::error(ErrorCode::InternalError),
        2 => Fault::error(ErrorCode::OperationTimedOut).applied(),
        3 => Fault::reset(),
        4 => Fault::lost_response(),
        5 => Fault::truncated_response(10),
        6 => Fault::delay(delay),
        7 => Fault::delayed_response(delay),
        8 => Fault::reset().applied_after(Duration::from_secs(5)),
        9 => Fault::duplicate(),
        _ => return None,
    })
}
