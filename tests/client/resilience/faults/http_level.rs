//! Faults of a transport inside the program: requests and responses that are lost, late or delivered twice, and responses that
//! are not the service's. In process, on virtual time.

use std::time::Duration;

use bytes::Bytes;
use harness::client_with;
use harness::faults::{Fault, Faults, Op, batch_refusal, foreign, refusal};
use http::Response;
use tablesdk::RetryPolicy;
use tablesdk_server::TableServer;
use tokio::time::sleep;

use super::verb::{Class, Verb};
use super::{Ledger, Scene, Trace, direct};
use crate::Employee;

/// A name, a fault, its effect on the request, and whether the client retries.
type Case = (String, Fault, Trace, bool);

fn case(name: impl Into<String>, fault: Fault, trace: Trace, is_retried: bool) -> Case {
    (name.into(), fault, trace, is_retried)
}

fn cases() -> Vec<Case> {
    use Trace::{Ambiguous, NotExecuted};
    let (late, very_late) = (Duration::from_secs(29), Duration::from_secs(70));
    let mut cases = vec![
        case("refused", Fault::Refuse, NotExecuted, true),
        case("request lost", Fault::LoseRequest, Ambiguous, true),
        case("answer lost", Fault::LoseAnswer, Ambiguous, true),
        case("no answer", Fault::Hang, Ambiguous, true),
        case("swallowed", Fault::Swallow, Ambiguous, true),
        case("late", Fault::Delay(late), NotExecuted, false),
        case("straggler", Fault::Straggle(very_late), Ambiguous, true),
        case("bare 429", Fault::Answer(bare(429)), NotExecuted, true),
    ];
    for (name, value) in [
        ("retry-after", "3"),
        ("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("x-ms-retry-after-ms", "1500"),
    ] {
        let mut busy = refusal(503, "ServerBusy");
        busy.headers_mut().insert(name, value.parse().unwrap());
        let name = format!("503 and {name}: {value}");
        cases.push(case(name, Fault::Answer(busy), NotExecuted, true));
    }
    let answers = |name: &str, answer: &Response<Bytes>, is_retried| {
        let (lost, done) = (format!("{name}, not executed"), format!("{name}, executed"));
        let carried_out = Fault::CarryOutAndAnswer(answer.clone());
        [
            case(lost, Fault::Answer(answer.clone()), Ambiguous, is_retried),
            case(done, carried_out, Ambiguous, is_retried),
        ]
    };
    for (status, code) in [
        (500, "InternalError"),
        (500, "OperationTimedOut"),
        (408, "Made"),
    ] {
        cases.extend(answers(code, &refusal(status, code), true));
    }
    let retried = [408, 500, 502, 503, 504];
    let not_retried = [
        200, 201, 202, 204, 302, 400, 401, 403, 404, 409, 412, 413, 501,
    ];
    for status in retried.into_iter().chain(not_retried) {
        let name = format!("a page with {status}");
        let is_retried = retried.contains(&status);
        cases.extend(answers(&name, &foreign(status), is_retried));
    }
    cases.extend(answers("nothing at all", &bare(204), false));
    let multipart = Response::builder()
        .status(202)
        .header("content-type", "multipart/mixed; boundary=b")
        .body(Bytes::from_static(b"--b\r\n\r\n"))
        .unwrap();
    cases.extend(answers("half a batch", &multipart, false));
    for (status, code) in [
        (400, "InvalidInput"),
        (400, "TooManyProperties"),
        (403, "AuthenticationFailed"),
        (404, "TableNotFound"),
        (413, "RequestBodyTooLarge"),
        (429, "TooManyRequests"),
        (501, "NotImplemented"),
        (503, "ServerBusy"),
    ] {
        let fault = Fault::Answer(refusal(status, code));
        cases.push(case(code, fault, NotExecuted, matches!(status, 429 | 503)));
    }
    cases
}

/// A response with only a status.
fn bare(status: u16) -> Response<Bytes> {
    Response::builder()
        .status(status)
        .body(Bytes::new())
        .unwrap()
}

/// The service responds to a delete with a bare 204, so a client cannot detect a forged one.
fn is_beyond_doubt(fault: &Fault, verb: Verb) -> bool {
    let is_forged = matches!(fault, Fault::Answer(answer) if answer.status() == 204);
    is_forged && verb.op() == Op::Delete
}

struct Stage {
    server: TableServer,
    faults: Faults<Ledger<tablesdk_server::InProcess>>,
    ledger: Ledger<tablesdk_server::InProcess>,
    table: tablesdk::TableClient,
}

impl Stage {
    async fn new() -> Self {
        let server = TableServer::in_process();
        let ledger = Ledger::new(server.transport());
        let faults = Faults::new(ledger.clone());
        let service = client_with(&server, |builder| {
            builder
                .transport(faults.clone())
                .retry(RetryPolicy::exponential().budget(u32::MAX))
        });
        direct(&server).create_table().await.unwrap();
        let table = service.table("Tests");
        Self {
            server,
            faults,
            ledger,
            table,
        }
    }

    async fn set(&self, verb: Verb) {
        let other = direct(&self.server);
        other.delete(("Sales", "1")).await.unwrap();
        if verb.before().is_some() {
            other.insert(&Employee::ada()).await.unwrap();
        }
        self.ledger.reset();
    }

    /// How many requests of each verb's own kind it took, and how many in all.
    async fn play(
        &self,
        name: &str,
        verb: Verb,
        faults: Vec<Fault>,
        trace: Trace,
    ) -> (usize, usize) {
        self.set(verb).await;
        let before = (self.faults.count(verb.op()), self.faults.seen().len());
        self.faults.plan(verb.op(), faults);
        let other = direct(&self.server);
        let outcome = verb.run(&self.table, &other).await;
        self.faults.clear();
        let after = (self.faults.count(verb.op()), self.faults.seen().len());
        let (own, all) = (after.0 - before.0, after.1 - before.1);
        if let Err(error) = &outcome {
            assert_eq!(
                error.attempts() as usize,
                all,
                "{name}, {verb:?}: {error:?}"
            );
        }
        // Until every late request has arrived.
        sleep(Duration::from_secs(100)).await;
        let applied = self.ledger.applied();
        Scene {
            name,
            verb,
            trace,
            other,
            applied,
        }
        .judge(&outcome)
        .await;
        (own, all)
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_survives_one_fault() {
    for (name, fault, trace, is_retried) in cases() {
        // A server for each case: markers that stay would add up.
        let stage = Stage::new().await;
        for verb in Verb::ALL {
            if is_beyond_doubt(&fault, verb) {
                continue;
            }
            let (own, all) = stage.play(&name, verb, vec![fault.clone()], trace).await;
            let expected = if is_retried { 2 } else { 1 };
            assert_eq!(own, expected, "{name}, {verb:?}");
            // In addition to retries: the read of `modify`; a read of the entity; the marker, which is inserted, deleted or read.
            let more = if verb.is_exactly_once() { 3 } else { 1 };
            let modifies = matches!(verb, Verb::Modify | Verb::ModifyOnce);
            assert!(
                all <= own + more + usize::from(modifies),
                "{name}, {verb:?}: {all}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_ends_if_each_attempt_fails() {
    for (name, fault, trace, is_retried) in cases() {
        // A server for each case: markers that stay would add up.
        let stage = Stage::new().await;
        for verb in Verb::ALL {
            if is_beyond_doubt(&fault, verb) {
                continue;
            }
            // Its delays fill the time of all attempts.
            let (own, _) = stage.play(&name, verb, vec![fault.clone(); 5], trace).await;
            let attempts = match fault {
                Fault::Hang | Fault::Swallow => 2..=2,
                _ if is_retried => 5..=5,
                _ => 1..=1,
            };
            assert!(attempts.contains(&own), "{name}, {verb:?}: {own}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_request_is_executed_once() {
    let stage = Stage::new().await;
    for verb in Verb::ALL {
        if verb.is_exactly_once() || verb.class() != Class::Once {
            let faults = vec![Fault::Duplicate];
            stage.play("twice", verb, faults, Trace::Ambiguous).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_rejects_the_batch() {
    let stage = Stage::new().await;
    for verb in Verb::ALL {
        if verb.op() != Op::Batch {
            continue;
        }
        let index = usize::from(verb.is_exactly_once());
        for (status, code) in [
            (400, "InvalidInput"),
            (403, "AuthorizationFailure"),
            (404, "TableNotFound"),
        ] {
            let refused = Fault::Answer(batch_refusal(index, status, code));
            stage
                .play(code, verb, vec![refused], Trace::NotExecuted)
                .await;
        }
        let busy = Fault::Answer(batch_refusal(index, 503, "ServerBusy"));
        let (own, _) = stage
            .play("busy", verb, vec![busy], Trace::NotExecuted)
            .await;
        assert_eq!(own, 2);
        let failed = batch_refusal(index, 500, "InternalError");
        for fault in [
            Fault::Answer(failed.clone()),
            Fault::CarryOutAndAnswer(failed),
        ] {
            stage
                .play("failed inside", verb, vec![fault], Trace::Ambiguous)
                .await;
        }
    }
}
