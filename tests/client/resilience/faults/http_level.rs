//! Faults of requests and of whole responses: they are lost, late or delivered twice, and some responses are not the service's.
//! Most tests are in process, on virtual time.

use std::time::Duration;

use bytes::Bytes;
use harness::client_with;
use harness::proxy::{Proxy, Reply, batch_refusal, foreign, refusal};
use http::Response;
use tablesdk::transport::{ReqwestTransport, Transport};
use tablesdk::{ErrorCode, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Journal, Op};
use tokio::time::sleep;

use super::verb::{Class, Verb};
use super::{Scene, Trace, applied, direct, prepare};

/// What causes a fault.
#[derive(Clone, Debug)]
enum Cause {
    Server(Fault),
    Proxy(Reply),
}

impl From<Fault> for Cause {
    fn from(fault: Fault) -> Self {
        Self::Server(fault)
    }
}

impl From<Reply> for Cause {
    fn from(reply: Reply) -> Self {
        Self::Proxy(reply)
    }
}

/// A name, a fault, its effect on the request, and whether the client retries.
type Case = (String, Cause, Trace, bool);

fn case(name: impl Into<String>, cause: impl Into<Cause>, trace: Trace, is_retried: bool) -> Case {
    (name.into(), cause.into(), trace, is_retried)
}

fn cases() -> Vec<Case> {
    use Trace::{Ambiguous, NotExecuted};
    let (late, very_late) = (Duration::from_secs(29), Duration::from_secs(70));
    let silent = Fault::no_response();
    let late_request = Fault::reset().applied_after(very_late);
    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(3));
    let mut cases = vec![
        case("refused", Reply::Refuse, NotExecuted, true),
        case("request lost", Fault::reset(), Ambiguous, true),
        case("response lost", Fault::lost_response(), Ambiguous, true),
        case("no response", silent.clone().applied(), Ambiguous, true),
        case("swallowed", silent, Ambiguous, true),
        case("late", Fault::delay(late), NotExecuted, false),
        case("arrives late", late_request, Ambiguous, true),
        case("busy for a while", busy, NotExecuted, true),
        case("bare 429", Reply::Respond(bare(429)), NotExecuted, true),
    ];
    for (name, value) in [
        ("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("x-ms-retry-after-ms", "1500"),
    ] {
        let mut busy = refusal(503, "ServerBusy");
        busy.headers_mut().insert(name, value.parse().unwrap());
        let name = format!("503 and {name}: {value}");
        cases.push(case(name, Reply::Respond(busy), NotExecuted, true));
    }
    for code in [ErrorCode::InternalError, ErrorCode::OperationTimedOut] {
        let (name, fault) = (code.as_str().to_owned(), Fault::error(code));
        cases.push(case(name.clone(), fault.clone(), Ambiguous, true));
        cases.push(case(name, fault.applied(), Ambiguous, true));
    }
    let answers = |name: &str, answer: &Response<Bytes>, is_retried| {
        let (lost, done) = (format!("{name}, not executed"), format!("{name}, executed"));
        let (respond, replace) = (
            Reply::Respond(answer.clone()),
            Reply::Replace(answer.clone()),
        );
        [
            case(lost, respond, Ambiguous, is_retried),
            case(done, replace, Ambiguous, is_retried),
        ]
    };
    cases.extend(answers("408 Made", &refusal(408, "Made"), true));
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
    for (code, is_retried) in [
        (ErrorCode::InvalidInput, false),
        (ErrorCode::TooManyProperties, false),
        (ErrorCode::AuthenticationFailed, false),
        (ErrorCode::TableNotFound, false),
        (ErrorCode::RequestBodyTooLarge, false),
        (ErrorCode::TooManyRequests, true),
        (ErrorCode::NotImplemented, false),
        (ErrorCode::ServerBusy, true),
    ] {
        let (name, fault) = (code.as_str().to_owned(), Fault::error(code));
        cases.push(case(name, fault, NotExecuted, is_retried));
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
fn is_beyond_doubt(cause: &Cause, verb: Verb) -> bool {
    let is_forged = matches!(cause, Cause::Proxy(Reply::Respond(answer)) if answer.status() == 204);
    is_forged && verb.op() == Op::DeleteEntity
}

struct Stage {
    server: TableServer,
    journal: Journal,
    proxy: Proxy,
    table: TableClient,
    /// When no late request can arrive any more.
    end: Duration,
}

impl Stage {
    async fn new() -> Self {
        let server = TableServer::in_process();
        let transport = server.transport();
        Self::with(server, transport, Duration::from_secs(100)).await
    }

    async fn with(server: TableServer, transport: impl Transport + 'static, end: Duration) -> Self {
        let proxy = Proxy::new(transport);
        let service = client_with(&server, |builder| {
            builder
                .transport(proxy.clone())
                .retry(RetryPolicy::exponential().attempts(5).budget(u32::MAX))
        });
        direct(&server).create_table().await.unwrap();
        let table = service.table("Tests");
        Self {
            journal: server.journal(),
            server,
            proxy,
            table,
            end,
        }
    }

    /// How many requests of each verb's own operation it took, and how many in all.
    async fn play(
        &self,
        name: &str,
        verb: Verb,
        (cause, times): (Cause, usize),
        trace: Trace,
    ) -> (usize, usize) {
        let (faults, proxy) = (self.server.faults(), &self.proxy);
        let other = direct(&self.server);
        let row = prepare(&other, verb).await;
        self.journal.clear();
        let sent = || (proxy.count(verb.op()), proxy.sent().len());
        let before = sent();
        match cause {
            Cause::Proxy(reply) => proxy.plan(verb.op(), vec![reply; times]),
            Cause::Server(fault) => {
                faults.on(verb.op()).inject_each(vec![fault; times]);
            }
        }
        let outcome = verb.run(&self.table, row).await;
        faults.clear();
        proxy.clear();
        let (own, all) = (sent().0 - before.0, sent().1 - before.1);
        if let Err(error) = &outcome {
            assert_eq!(
                error.attempts() as usize,
                all,
                "{name}, {verb:?}: {error:?}"
            );
        }
        sleep(self.end).await;
        let applied = applied(&self.journal);
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
    for (name, cause, trace, is_retried) in cases() {
        // A server for each case: markers that stay would add up.
        let stage = Stage::new().await;
        for verb in Verb::ALL {
            if is_beyond_doubt(&cause, verb) {
                continue;
            }
            let (own, all) = stage.play(&name, verb, (cause.clone(), 1), trace).await;
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

/// The client knows of every request: the library for HTTP below it repeats none.
#[tokio::test]
async fn every_verb_survives_one_fault_over_http() {
    let server = TableServer::start().await.unwrap();
    let transport = ReqwestTransport::new().unwrap();
    let stage = Stage::with(server, transport, Duration::ZERO).await;
    for fault in [
        Fault::reset(),
        Fault::lost_response(),
        Fault::truncated_response(5),
    ] {
        for verb in Verb::ALL {
            let (name, cause) = (format!("{fault:?}"), fault.clone().into());
            let (own, _) = stage.play(&name, verb, (cause, 1), Trace::Ambiguous).await;
            assert_eq!(own, 2, "{name}, {verb:?}");
            // A read was followed by those of `judge`.
            let received = stage.journal.requests().op(verb.op()).count();
            assert!(
                received == 2 || verb.class() == Class::Read,
                "{name}, {verb:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_ends_if_each_attempt_fails() {
    let silent = [Fault::no_response(), Fault::no_response().applied()];
    for (name, cause, trace, is_retried) in cases() {
        // A server for each case: markers that stay would add up.
        let stage = Stage::new().await;
        for verb in Verb::ALL {
            if is_beyond_doubt(&cause, verb) {
                continue;
            }
            // Its delays fill the time of all attempts.
            let (own, _) = stage.play(&name, verb, (cause.clone(), 5), trace).await;
            let attempts = match &cause {
                Cause::Server(fault) if silent.contains(fault) => 2..=2,
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
            let twice = (Fault::duplicate().into(), 1);
            stage.play("twice", verb, twice, Trace::Ambiguous).await;
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
            let refused = Reply::Respond(batch_refusal(index, status, code));
            let cause = (refused.into(), 1);
            stage.play(code, verb, cause, Trace::NotExecuted).await;
        }
        let busy = Reply::Respond(batch_refusal(index, 503, "ServerBusy"));
        let busy = (busy.into(), 1);
        let (own, _) = stage.play("busy", verb, busy, Trace::NotExecuted).await;
        assert_eq!(own, 2);
        let failed = batch_refusal(index, 500, "InternalError");
        for reply in [Reply::Respond(failed.clone()), Reply::Replace(failed)] {
            let cause = (reply.into(), 1);
            let name = "failed inside";
            stage.play(name, verb, cause, Trace::Ambiguous).await;
        }
    }
}
