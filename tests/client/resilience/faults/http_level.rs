//! Faults of requests and of whole responses: they are lost, late or delivered twice, and some
//! responses are not the service's. Most tests are in process, on virtual time.

use std::time::Duration;

use bytes::Bytes;
use harness::client_with;
use harness::outcome::{Found, found};
use harness::proxy::{Proxy, Reply, SERVICE_HEADERS, batch_refusal, foreign, refusal};
use http::Response;
use tablesdk::transport::{ReqwestTransport, Transport};
use tablesdk::{Error, ErrorCode, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Journal, Op};
use tokio::time::sleep;

use super::verb::{Class, Verb};
use super::{Trace, applied, direct, judge, prepare};
use crate::with_header;

/// The cause of a fault.
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

/// A fault, its effect on the request, and whether the client retries.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    cause: Cause,
    trace: Trace,
    is_retried: bool,
}

fn case(name: &str, cause: impl Into<Cause>, trace: Trace, is_retried: bool) -> Case {
    Case {
        name: name.to_owned(),
        cause: cause.into(),
        trace,
        is_retried,
    }
}

/// A response in place of the service's: its request was not carried out, or it was.
fn answers(name: &str, answer: &Response<Bytes>, is_retried: bool) -> [Case; 2] {
    let respond = Reply::Respond(answer.clone());
    let replace = Reply::Replace(answer.clone());
    [
        case(
            &format!("{name}, not executed"),
            respond,
            Trace::Ambiguous,
            is_retried,
        ),
        case(
            &format!("{name}, executed"),
            replace,
            Trace::Executed,
            is_retried,
        ),
    ]
}

fn cases() -> Vec<Case> {
    use Trace::{Ambiguous, Executed, NotExecuted};
    let silent = Fault::no_response();
    let late_request = Fault::reset().applied_after(Duration::from_secs(70));
    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_secs(3));
    let mut cases = vec![
        case("refused", Reply::Refuse, NotExecuted, true),
        case("request lost", Fault::reset(), Ambiguous, true),
        case("response lost", Fault::lost_response(), Executed, true),
        case("no response", silent.clone().applied(), Executed, true),
        case("swallowed", silent, Ambiguous, true),
        case("arrives late", late_request, Ambiguous, true),
        case("busy for a while", busy, NotExecuted, true),
        case(
            "bare 429",
            Reply::Respond(response(429, &[], b"")),
            NotExecuted,
            true,
        ),
    ];
    for header in [
        ("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("x-ms-retry-after-ms", "1500"),
    ] {
        let busy = with_header(refusal(503, "ServerBusy"), header);
        cases.push(case(
            &format!("503 and {header:?}"),
            Reply::Respond(busy),
            NotExecuted,
            true,
        ));
    }
    for code in [ErrorCode::InternalError, ErrorCode::OperationTimedOut] {
        let (name, fault) = (code.as_str(), Fault::error(code.clone()));
        cases.push(case(name, fault.clone(), Ambiguous, true));
        cases.push(case(name, fault.applied(), Executed, true));
    }
    cases.extend(answers("408 Made", &refusal(408, "Made"), true));
    let retried = [408, 500, 502, 503, 504];
    let not_retried = [
        200, 201, 202, 204, 302, 400, 401, 403, 404, 409, 412, 413, 501,
    ];
    for status in retried.into_iter().chain(not_retried) {
        let name = format!("a page with {status}");
        cases.extend(answers(&name, &foreign(status), retried.contains(&status)));
    }
    for (name, response) in odd_successes() {
        cases.extend(answers(name, &response, false));
    }
    let [id, version] = SERVICE_HEADERS;
    let done = response(204, &[id, version, ETAG, OTHER_REQUEST], b"");
    cases.extend(answers("another request is done", &done, true));
    let exists = with_header(refusal(409, "EntityAlreadyExists"), OTHER_REQUEST);
    cases.extend(answers("another request is refused", &exists, true));
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
        let (name, fault) = (code.as_str(), Fault::error(code.clone()));
        cases.push(case(name, fault, NotExecuted, is_retried));
    }
    cases
}

const ETAG: (&str, &str) = ("etag", "W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"");
/// The service repeats the id in its response.
const OTHER_REQUEST: (&str, &str) = (
    "x-ms-client-request-id",
    "3e315e3a-0000-4000-8000-000000000000",
);

fn response(status: u16, headers: &[(&str, &str)], body: &'static [u8]) -> Response<Bytes> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Bytes::from_static(body)).unwrap()
}

/// Responses that look like a success, and that the service does not send.
fn odd_successes() -> [(&'static str, Response<Bytes>); 7] {
    let [id, version] = SERVICE_HEADERS;
    let (html, multipart) = ("text/html", "multipart/mixed; boundary=b");
    let half = &[("content-type", multipart)];
    let page = &[id, version, ETAG, ("content-type", html)];
    [
        ("nothing at all", response(204, &[], b"")),
        ("half a batch", response(202, half, b"--b\r\n\r\n")),
        ("an ETag alone", response(204, &[ETAG], b"")),
        ("no version", response(204, &[ETAG, id], b"")),
        ("no request id", response(204, &[ETAG, version], b"")),
        ("no JSON", response(200, page, b"<html>Welcome</html>")),
        ("no ETag", response(204, &SERVICE_HEADERS, b"")),
    ]
}

impl Case {
    /// The client gets no response.
    fn is_silent(&self) -> bool {
        let lost = [
            "request lost",
            "response lost",
            "arrives late",
            "no response",
            "swallowed",
        ];
        // The response to another request is as good as none.
        lost.contains(&&*self.name) || self.name.starts_with("another request")
    }

    /// Without an ETag is how the service responds to a delete.
    fn is_beyond_doubt(&self, verb: Verb) -> bool {
        self.name.starts_with("no ETag") && verb.op() == Op::DeleteEntity
    }
}

/// The result of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Done,
    Failed,
    Unknown(Found),
}

impl Ends {
    fn of(outcome: &Result<bool, Error>) -> Self {
        match outcome {
            Ok(_) => Self::Done,
            Err(error) if error.is_outcome_unknown() => Self::Unknown(found(error)),
            Err(_) => Self::Failed,
        }
    }

    /// The result of a verb if that many of its requests meet the fault.
    fn expected(verb: Verb, case: &Case, times: usize) -> Self {
        let gets_through = case.is_retried && times == 1;
        let is_read = verb.class() == Class::Read;
        // A batch has no entity to read; and where no response came, none is expected to a read.
        let is_batch = verb.op() == Op::Batch;
        let is_unread = !gets_through && (is_batch || case.is_silent());
        let has_state = verb.class() == Class::State || verb.is_delete_by_key();
        match case.trace {
            Trace::NotExecuted | Trace::Ambiguous if gets_through => Self::Done,
            Trace::NotExecuted => Self::Failed,
            Trace::Executed if is_read && gets_through => Self::Done,
            _ if is_read => Self::Failed,
            // The marker shows it.
            Trace::Executed if verb.is_exactly_once => Self::Done,
            Trace::Ambiguous if verb.is_exactly_once => Self::Failed,
            _ if is_unread => Self::Unknown(Found::Unread),
            Trace::Executed if has_state => Self::Done,
            Trace::Executed if verb.is_delete() => Self::Unknown(Found::Missing),
            Trace::Executed => Self::Unknown(Found::Equal),
            Trace::Ambiguous if verb.before().is_none() => Self::Unknown(Found::Missing),
            Trace::Ambiguous => Self::Unknown(Found::Different),
        }
    }
}

fn retry() -> RetryPolicy {
    RetryPolicy::exponential().attempts(5).budget(u32::MAX)
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
        Self::with(server, transport, retry(), Duration::from_secs(100)).await
    }

    async fn with(
        server: TableServer,
        transport: impl Transport + 'static,
        retry: RetryPolicy,
        end: Duration,
    ) -> Self {
        let proxy = Proxy::new(transport);
        let service = client_with(&server, |builder| {
            builder.transport(proxy.clone()).retry(retry)
        });
        direct(&server).create_table().await.unwrap();
        Self {
            journal: server.journal(),
            server,
            proxy,
            table: service.table("Tests"),
            end,
        }
    }

    /// How many requests of each verb's own operation it took, and how many in all.
    async fn play(&self, verb: Verb, case: &Case, times: usize) -> (usize, usize) {
        let (faults, proxy) = (self.server.faults(), &self.proxy);
        let other = direct(&self.server);
        let row = prepare(&other, verb).await;
        self.journal.clear();
        let sent = || (proxy.count(verb.op()), proxy.sent().len());
        let before = sent();
        match case.cause.clone() {
            Cause::Proxy(reply) => proxy.plan(verb.op(), vec![reply; times]),
            Cause::Server(fault) => {
                faults.on(verb.op()).inject_each(vec![fault; times]);
            }
        }
        let outcome = verb.run(&self.table, row).await;
        faults.clear();
        proxy.clear();
        let (own, all) = (sent().0 - before.0, sent().1 - before.1);
        let name = &case.name;
        if let Err(error) = &outcome {
            let attempts = error.attempts() as usize;
            assert_eq!(attempts, all, "{name}, {verb:?}: {error:?}");
        }
        let expected = Ends::expected(verb, case, times);
        assert_eq!(
            Ends::of(&outcome),
            expected,
            "{name}, {verb:?}: {outcome:?}"
        );
        sleep(self.end).await;
        let applied = applied(&self.journal);
        judge(name, (verb, case.trace), &outcome, &other, applied).await;
        (own, all)
    }
}

/// Every verb, that many of whose requests meet a fault.
async fn every_verb(times: usize) {
    for case in cases() {
        // A server for each case: markers that stay would add up.
        let stage = Stage::new().await;
        for verb in Verb::all().filter(|verb| !case.is_beyond_doubt(*verb)) {
            let (own, all) = stage.play(verb, &case, times).await;
            let what = format!("{}, {verb:?}: {own} of {all}", case.name);
            let expected = match times {
                _ if !case.is_retried => 1,
                1 => 2,
                // Its delays fill the time of all attempts.
                _ if matches!(&*case.name, "no response" | "swallowed") => 2,
                _ => times,
            };
            assert_eq!(own, expected, "{what}");
            // In addition to retries: the read before the write; a read of the entity; the marker,
            // which is inserted, deleted or read.
            let more = if verb.is_exactly_once { 3 } else { 1 };
            assert!(
                all <= own + more + usize::from(verb.reads_first()),
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_survives_one_fault() {
    every_verb(1).await;
}

#[tokio::test(start_paused = true)]
async fn every_verb_ends_if_each_attempt_fails() {
    every_verb(5).await;
}

/// The client knows of every request: the library for HTTP below it repeats none.
#[tokio::test]
async fn every_verb_survives_one_fault_over_http() {
    let server = TableServer::start().await.unwrap();
    let transport = ReqwestTransport::new().unwrap();
    // The time is not paused.
    let at_once = retry().delay(Duration::ZERO);
    let stage = Stage::with(server, transport, at_once, Duration::ZERO).await;
    for (name, fault, trace) in [
        ("request lost", Fault::reset(), Trace::Ambiguous),
        ("response lost", Fault::lost_response(), Trace::Executed),
        ("truncated", Fault::truncated_response(5), Trace::Executed),
    ] {
        for verb in Verb::all() {
            let (own, _) = stage
                .play(verb, &case(name, fault.clone(), trace, true), 1)
                .await;
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
async fn a_duplicated_request_is_executed_once() {
    let stage = Stage::new().await;
    let twice = case("twice", Fault::duplicate(), Trace::Ambiguous, true);
    for verb in Verb::all() {
        if verb.is_exactly_once || verb.class() != Class::Once {
            stage.play(verb, &twice, 1).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_rejects_the_batch() {
    let stage = Stage::new().await;
    for verb in Verb::all().filter(|verb| verb.op() == Op::Batch) {
        let refused = |status, code| batch_refusal(verb.is_exactly_once.into(), status, code);
        let not_executed = |status, code: &'static str| {
            let reply = Reply::Respond(refused(status, code));
            case(code, reply, Trace::NotExecuted, status == 503)
        };
        let definite = [
            not_executed(400, "InvalidInput"),
            not_executed(403, "AuthorizationFailure"),
            not_executed(404, "TableNotFound"),
            not_executed(503, "ServerBusy"),
        ];
        let failed = answers("failed inside", &refused(500, "InternalError"), true);
        for case in definite.iter().chain(&failed) {
            let (own, _) = stage.play(verb, case, 1).await;
            assert_eq!(own, 1 + usize::from(case.is_retried), "{case:?}, {verb:?}");
        }
    }
}
