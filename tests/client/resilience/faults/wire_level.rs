//! Faults that consist of a complete response, sent by an HTTP mock: the result that the caller gets, and the number of requests.
//! The mock carries out no write; the tests of the other levels check writes that were carried out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::proxy::{SERVICE_HEADERS, batch_refusal};
use tablesdk::{Error, ErrorKind, RetryPolicy, SharedKey, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::Employee;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    Query,
    Insert,
    Upsert,
    Delete,
    Batch,
}

impl Verb {
    const ALL: [Self; 6] = [
        Self::Get,
        Self::Query,
        Self::Insert,
        Self::Upsert,
        Self::Delete,
        Self::Batch,
    ];

    const fn method(self) -> &'static str {
        match self {
            Self::Get | Self::Query => "GET",
            Self::Insert | Self::Batch => "POST",
            Self::Upsert => "PUT",
            Self::Delete => "DELETE",
        }
    }

    fn reads(self) -> bool {
        self.method() == "GET"
    }

    async fn run(self, table: &TableClient) -> Result<(), Error> {
        let ada = Employee::ada();
        let key = Employee::key("Sales", "1");
        match self {
            Self::Get => table.get(key).await.map(|row| assert!(row.is_some())),
            Self::Query => {
                let query = table.query::<Employee>().partition("Sales");
                query.collect().await.map(|rows| assert_eq!(rows.len(), 1))
            }
            Self::Insert => table.insert(&ada).await.map(drop),
            Self::Upsert => table.upsert_replace(&ada).await.map(drop),
            Self::Delete => table.delete(key).await.map(|deleted| assert!(deleted)),
            Self::Batch => table.batch("Sales").insert(&ada).await.map(drop),
        }
    }
}

const ETAG: &str = "W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"";
/// An entity that differs from the one that the verbs write.
const ROW: &str = r#""odata.etag":"W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"","PartitionKey":"Sales","RowKey":"1","Timestamp":"2024-03-15T10:20:30.5Z","Name":"Eve","Age":20"#;

/// The response that the service would have sent.
fn good(request: &Request) -> ResponseTemplate {
    let json = "application/json;odata=minimalmetadata";
    let template = match (request.method.as_str(), request.url.path()) {
        ("GET", path) if path.ends_with("()") => {
            ResponseTemplate::new(200).set_body_raw(format!("{{\"value\":[{{{ROW}}}]}}"), json)
        }
        ("GET", _) => ResponseTemplate::new(200)
            .insert_header("ETag", ETAG)
            .set_body_raw(format!("{{{ROW}}}"), json),
        ("POST", path) if path.ends_with("/$batch") => ResponseTemplate::new(202).set_body_raw(
            format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nETag: {ETAG}\r\n\r\n\r\n--c--\r\n--b--\r\n"),
            "multipart/mixed; boundary=b",
        ),
        ("DELETE", _) => ResponseTemplate::new(204),
        _ => ResponseTemplate::new(204).insert_header("ETag", ETAG),
    };
    template.append_headers(SERVICE_HEADERS)
}

/// Sends a wrong response to the first requests of a method, and a good one to all others.
struct Faulty {
    method: &'static str,
    answer: ResponseTemplate,
    times: usize,
    seen: AtomicUsize,
}

impl Respond for Faulty {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let is_faulty = request.method.as_str() == self.method
            && self.seen.fetch_add(1, Ordering::SeqCst) < self.times;
        if is_faulty {
            self.answer.clone()
        } else {
            good(request)
        }
    }
}

/// The result of a verb whose first requests got that response, and the number of its own requests.
async fn run_with(
    verb: Verb,
    answer: &ResponseTemplate,
    times: usize,
    retry: RetryPolicy,
) -> (Result<(), Error>, usize) {
    let server = MockServer::start().await;
    let faulty = Faulty {
        method: verb.method(),
        answer: answer.clone(),
        times,
        seen: AtomicUsize::new(0),
    };
    Mock::given(any()).respond_with(faulty).mount(&server).await;
    let table = TableServiceClient::builder(format!("{}/acct", server.uri()))
        .credential(SharedKey::new("acct", "c2VjcmV0").unwrap())
        .retry(retry)
        .build()
        .unwrap()
        .table("Tests");
    let outcome = verb.run(&table).await;
    let requests = server.received_requests().await.unwrap();
    let own = requests
        .iter()
        .filter(|request| request.method.as_str() == verb.method());
    let own = own.count();
    if let Err(error) = &outcome {
        assert_eq!(error.attempts() as usize, requests.len(), "{error:?}");
    }
    (outcome, own)
}

fn retry() -> RetryPolicy {
    RetryPolicy::exponential().attempts(3).delay(Duration::ZERO)
}

/// Every verb, whose first requests get that response: the verb, its error if it failed, and the number of its own requests.
async fn run_all(
    answer: &ResponseTemplate,
    times: usize,
    retry: RetryPolicy,
) -> Vec<(Verb, Option<Error>, usize)> {
    let runs = Verb::ALL.map(async |verb| {
        let (outcome, own) = run_with(verb, answer, times, retry.clone()).await;
        (verb, outcome.err(), own)
    });
    futures::future::join_all(runs).await
}

fn refusal(status: u16, code: &str) -> ResponseTemplate {
    let body = format!(
        r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"en-US","value":"Made up."}}}}}}"#
    );
    ResponseTemplate::new(status).set_body_raw(body, "application/json")
}

fn page(status: u16) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw("<html>Not found</html>", "text/html")
}

/// If the fault stays, the caller gets an error after the last attempt.
#[tokio::test]
async fn busy_services_and_proxies_are_retried() {
    let busy = || refusal(503, "ServerBusy");
    for (answer, write) in [
        (refusal(500, "InternalError"), ErrorKind::OutcomeUnknown),
        (busy(), ErrorKind::Service),
        (busy().insert_header("Retry-After", "0"), ErrorKind::Service),
        (refusal(429, "TooManyRequests"), ErrorKind::Service),
        (page(502), ErrorKind::OutcomeUnknown),
        (page(503), ErrorKind::OutcomeUnknown),
        (page(504), ErrorKind::OutcomeUnknown),
    ] {
        for (verb, error, own) in run_all(&answer, 1, retry()).await {
            assert!(error.is_none() && own == 2, "{verb:?}: {own}, {error:?}");
        }
        for (verb, error, own) in run_all(&answer, usize::MAX, retry()).await {
            let expected = if verb.reads() {
                ErrorKind::Service
            } else {
                write
            };
            let error = error.unwrap();
            assert_eq!((error.kind(), own), (expected, 3), "{verb:?}: {error:?}");
        }
    }
}

/// Waiting for an hour would exceed the deadline of the operation.
#[tokio::test]
async fn a_503_with_a_long_retry_after_is_not_retried() {
    let answer = refusal(503, "ServerBusy").insert_header("Retry-After", "3600");
    for (verb, error, own) in run_all(&answer, usize::MAX, retry()).await {
        let error = error.unwrap();
        assert!(
            error.is_throttled() && own == 1,
            "{verb:?}: {own}, {error:?}"
        );
    }
}

/// For instance, the sign-in page of a hotel.
#[tokio::test]
async fn a_page_of_a_proxy_is_not_a_response_of_the_service() {
    for status in [200, 201, 202, 400, 401, 403, 404, 409, 412] {
        for (verb, error, own) in run_all(&page(status), 1, retry()).await {
            let expected = match verb.reads() {
                true if status < 300 => ErrorKind::Response,
                true => ErrorKind::Service,
                false => ErrorKind::OutcomeUnknown,
            };
            let error = error.unwrap();
            let shown = format!("{status} {verb:?}: {error:?}");
            assert_eq!((error.kind(), own), (expected, 1), "{shown}");
            assert!(!error.is_not_found(), "{shown}");
        }
    }
}

/// Some proxies change the header, so only the body is decisive.
#[tokio::test]
async fn a_body_with_a_wrong_content_type_is_read() {
    for (verb, body) in [
        (Verb::Get, format!("{{{ROW}}}")),
        (Verb::Query, format!("{{\"value\":[{{{ROW}}}]}}")),
    ] {
        let answer = ResponseTemplate::new(200)
            .insert_header("ETag", ETAG)
            .set_body_raw(body, "text/plain; charset=latin1");
        let (outcome, own) = run_with(verb, &answer, 1, retry()).await;
        assert_eq!((outcome.is_ok(), own), (true, 1), "{verb:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_an_error() {
    for (verb, body) in [
        (Verb::Get, format!("{{{ROW}")),
        (Verb::Query, format!("{{\"value\":[{{{ROW}}},")),
    ] {
        let answer = ResponseTemplate::new(200)
            .insert_header("ETag", ETAG)
            .set_body_raw(body, "application/json");
        let (outcome, own) = run_with(verb, &answer, 1, retry()).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), own), (ErrorKind::Response, 1), "{error:?}");
    }
}

#[tokio::test]
async fn a_slow_response_is_a_timeout() {
    let server = TableServer::start().await.unwrap();
    server.faults().on_any().inject(Fault::no_response());
    let service = TableServiceClient::builder(server.endpoint())
        .credential(server.credential())
        .retry(retry().attempts(2).try_timeout(Duration::from_millis(200)))
        .build()
        .unwrap();
    let table = service.table("Tests");
    let runs = Verb::ALL.map(async |verb| (verb, verb.run(&table).await.unwrap_err()));
    for (verb, error) in futures::future::join_all(runs).await {
        let is_expected = if verb.reads() {
            error.is_timeout()
        } else {
            error.is_outcome_unknown()
        };
        assert!(is_expected && error.attempts() >= 2, "{verb:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_failure_inside_a_batch_is_that_of_the_batch() {
    let answer = |status, code| {
        let (head, body) = batch_refusal(0, status, code).into_parts();
        ResponseTemplate::new(202).set_body_raw(
            body.to_vec(),
            head.headers["content-type"].to_str().unwrap(),
        )
    };
    for (status, code, own, kind) in [
        (409, "EntityAlreadyExists", 1, ErrorKind::Service),
        (404, "TableNotFound", 1, ErrorKind::Service),
        (503, "ServerBusy", 3, ErrorKind::Service),
        (500, "InternalError", 3, ErrorKind::OutcomeUnknown),
    ] {
        let answer = answer(status, code);
        let (outcome, sent) = run_with(Verb::Batch, &answer, usize::MAX, retry()).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), sent), (kind, own), "{code}: {error:?}");
        if own == 1 {
            assert_eq!(error.code().unwrap().as_str(), code, "{error:?}");
            assert_eq!(error.key().unwrap().row_key().as_str(), "1", "{error:?}");
        }
    }
}
