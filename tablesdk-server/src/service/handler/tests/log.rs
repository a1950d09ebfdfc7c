//! The contents of the request log, and the secrets that it must not contain.

use std::io;
use std::sync::{Arc, Mutex, Once};

use tracing::Level;
use tracing_subscriber::fmt::format::FmtSpan;

use super::*;
use crate::request::connection::Connection;
use crate::request::handler::Handler as _;
use crate::storage::tests::StorageDouble;
use crate::storage::{Commit, Records, Slice, Snapshot, StorageError, WriteBatch};

/// The bytes of a log.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of the log that are written meanwhile.
fn log_of(work: impl FnOnce()) -> Vec<String> {
    log_at(Level::TRACE, FmtSpan::NONE, work)
}

/// The lines of this level, or a more severe one, and those of these events of spans.
fn log_at(level: Level, spans: FmtSpan, work: impl FnOnce()) -> Vec<String> {
    // `tracing` disables an event for all threads if the first thread that reaches it has no
    // subscriber, and only one other thread has one. So a global subscriber, which does nothing, is
    // installed.
    static LISTENER: Once = Once::new();
    LISTENER.call_once(|| {
        let listener = tracing_subscriber::registry();
        tracing::subscriber::set_global_default(listener).unwrap();
    });
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_span_events(spans)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn assert_has(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
}

#[test]
fn each_request_is_one_line() {
    let client = Client::with_table();
    let mut response = Response::default();
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let log = log_of(|| {
        let headers = [("x-ms-client-request-id", "mine")];
        response = client.send("POST", "people?timeout=7", &headers, entity);
    });
    assert_eq!(response.status(), 201);
    let [line] = &log[..] else {
        panic!("{log:?}");
    };
    assert_has(
        line,
        &[
            " INFO ",
            "tablesdk_server::request",
            r#"method="POST" path="/acct/people" query="timeout=7""#,
            r#"operation="InsertEntity""#,
            "status=201",
            header(&response, "x-ms-request-id").unwrap(),
            r#"client_request_id="mine""#,
            r#"authentication="shared_key""#,
            ": responded method=",
            "duration_us=",
            &format!("bytes_in={}", entity.len()),
            &format!("bytes_out={}", response.body().len()),
        ],
    );
}

/// A request of a batch that is refused, and one that is abandoned, too.
#[test]
fn requests_to_a_server_in_a_test_are_logged_at_debug() {
    let client = Client::with(|options| options.logs_requests_at_info = false).and_table();
    let send = || {
        client.send("GET", "people()", &[], "");
        client.send("GET", "missing()", &[], "");
        send_batch_that_is_refused(&client);
        abandon(&client);
    };
    assert_eq!(log_at(Level::INFO, FmtSpan::NONE, send), [""; 0]);
    let log = log_of(send);
    assert_eq!(log.len(), 4, "{log:?}");
    for line in log {
        assert!(line.contains(" DEBUG "), "{line}");
    }
}

/// A value that is unknown or absent has no field.
#[test]
fn a_request_line_has_no_empty_field() {
    let client = Client::with_table();
    let log = log_of(|| {
        let query = client.send("GET", "people()", &[], "");
        assert_eq!(query.status(), 200);
        client.call(client.request("GET", "/nobody/people", &[], ""));
    });
    assert_eq!(log.len(), 2, "{log:?}");
    for line in log {
        assert!(!line.contains("\"\""), "{line}");
    }
}

/// A subscriber that logs the ends of spans, or exports them, gets one span for each request, also
/// from a web page.
#[test]
fn the_span_of_a_request_is_closed_once_and_is_no_error() {
    let client = Client::with_table();
    let log = log_at(Level::TRACE, FmtSpan::CLOSE, || {
        let headers = [("origin", "https://example.com")];
        let query = client.send("GET", "people()", &headers, "");
        assert_eq!(query.status(), 200);
    });
    let closed = log.iter().filter(|line| line.contains(": close "));
    let closed: Vec<_> = closed.collect();
    let [span] = closed.as_slice() else {
        panic!("{log:#?}");
    };
    assert_has(
        span,
        &[" INFO request{id=", "tablesdk_server::request: close"],
    );
}

/// Where no span is enabled.
#[test]
fn an_error_of_the_storage_names_its_request() {
    let client = Broken::client(StorageError::Corrupt { what: "record" });
    let mut response = Response::default();
    let log = log_at(Level::ERROR, FmtSpan::FULL, || {
        response = client.send("GET", "people()", &[], "");
    });
    let request_id = header(&response, "x-ms-request-id").unwrap();
    let (request, causes) = log.split_last().unwrap();
    assert!(!causes.is_empty(), "{log:?}");
    for cause in causes {
        assert_has(cause, &["the storage failed", request_id]);
    }
    assert_has(request, &["status=500", request_id]);
}

#[test]
fn refused_requests_are_logged_with_their_reason() {
    let client = Client::with_table();
    let log = log_of(|| {
        client.send("GET", "missing()", &[], "");
        client.call(client.request("GET", "/acct/Tables", &[], ""));
        client.send("GET", "people()?$filter=a%20b", &[], "");
        client.send("GET", "people()?$orderby=a", &[], "");
        let (head, _) = client.request("PUT", "/acct/people", &[], "").into_parts();
        let error = tablesdk_protocol::ErrorCode::InvalidUri.into();
        let connection = Connection::default();
        wait_for(client.service.refuse_head(&head, &connection, &error));
    });
    assert_eq!(log.len(), 5, "{log:?}");
    let not_found = r#"status=404 code="TableNotFound" reason="The table"#;
    assert_has(&log[0], &[" INFO ", "QueryEntities", not_found]);
    let unknown = r#"status=403 code="AuthenticationFailed" reason="Server failed"#;
    assert_has(&log[1], &[unknown, r#"authentication="none""#]);
    assert_has(&log[2], &[r#"status=400 code="InvalidInput""#]);
    assert_has(&log[3], &[" WARN ", "status=501"]);
    assert_has(&log[4], &[r#"status=400 code="InvalidUri""#]);
}

fn send_batch_that_is_refused(client: &Client) {
    let body = "--b\r\nContent-Type: application/http\r\n\r\n\
        GET /acct/people(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n\r\n--b--\r\n";
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let response = client.send("POST", "$batch", &headers, body);
    assert_eq!(response.status(), 202, "{response:?}");
}

fn abandon(client: &Client) {
    let mut request = client.request("POST", "/acct/people", &[], "{}");
    client.sign(&mut request, Scheme::SharedKeyLite);
    let (head, _) = request.into_parts();
    let connection = Connection::default();
    drop(wait_for(client.service.admit(head, &connection)).unwrap());
}

#[test]
fn a_failed_batch_is_logged_with_the_error_and_the_index_of_its_operation() {
    let client = Client::with_table();
    let log = log_of(|| send_batch_that_is_refused(&client));
    let [line] = &log[..] else {
        panic!("{log:?}");
    };
    assert_has(
        line,
        &[
            "Batch",
            r#"status=202 code="ResourceNotFound" batch_index=0 reason="The specified resource does not exist."#,
        ],
    );

    let change = |verb: &str, row: &str| {
        format!(
            "--c\r\nContent-Type: application/http\r\n\r\n\
             {verb} /acct/people(PartitionKey='p',RowKey='{row}') HTTP/1.1\r\n\
             Content-Type: application/json\r\nIf-Match: *\r\n\r\n{{}}\r\n"
        )
    };
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}{}--c--\r\n--b--\r\n",
        change("PUT", "new").replace("If-Match: *\r\n", ""),
        change("PUT", "missing")
    );
    let log = log_of(|| {
        let headers = [("content-type", "multipart/mixed; boundary=b")];
        client.send("POST", "$batch", &headers, &body);
    });
    assert_eq!(log.len(), 1, "{log:?}");
    assert_has(
        &log[0],
        &[r#"status=202 code="ResourceNotFound" batch_index=1"#],
    );
}

#[test]
fn abandoned_requests_are_logged() {
    let client = Client::with_table();
    let log = log_of(|| abandon(&client));
    assert_eq!(log.len(), 1);
    assert_has(
        &log[0],
        &["abandoned", r#"authentication="shared_key_lite""#],
    );
}

#[test]
fn the_log_has_no_signature_and_no_key() {
    let client = Client::with_table();
    let log = log_of(|| {
        let mut signed = client.request("GET", "/acct/people()", &[], "");
        client.sign(&mut signed, Scheme::SharedKey);
        client.call(signed);
        let sas = "sv=2019-02-02&tn=people&sp=r&se=2099-01-01&sig=x";
        let sas = tablesdk_protocol::auth::sas::SignedSas::parse(sas).unwrap();
        let sas = sas.into_sas().sign(&client.key);
        let query = sas.expose();
        let path = format!("/acct/people()?{}", query.as_str());
        let response = client.call(client.request("GET", &path, &[], ""));
        assert_eq!(response.status(), 200);
        // A SAS that is not in the query is not logged either.
        for separator in ["%3F", "&"] {
            let path = path.replace('?', separator);
            client.call(client.request("GET", &path, &[], ""));
        }
    });
    assert_eq!(log.len(), 4);
    assert_has(
        &log[1],
        &["sp=r&se=2099-01-01&sig=…", r#"authentication="sas""#],
    );
    let texts = [client.key.expose().as_str().to_owned(), "secret".to_owned()];
    let uris = log.join("\n");
    for text in texts {
        assert!(!uris.contains(&text), "{uris}");
    }
    let longest = uris.split(|c: char| !c.is_ascii_alphanumeric() && c != '%' && c != '-');
    let longest = longest.map(str::len).max().unwrap();
    assert!(longest < 40, "{uris}");
}

#[test]
fn the_keys_of_entities_can_be_left_out_of_the_log() {
    let client = Client::with(|options| options.logs_entity_keys = false).and_table();
    let log = log_of(|| {
        let entity = r#"{"PartitionKey":"Personal","RowKey":"Secret"}"#;
        client.send("POST", "people", &[], entity);
        client.send("POST", "people", &[], entity);
        let named = "people(PartitionKey='Personal',RowKey='Secret')";
        client.send("GET", named, &[], "");
        client.send(
            "GET",
            &named.replace('(', "%28").replace('\'', "%27"),
            &[],
            "",
        );
        let filter =
            "$filter=PartitionKey%20eq%20'Personal'&$top=5&NextRowKey=Secret&Personal&spk=Personal";
        client.send("GET", &format!("people()?{filter}"), &[], "");
        client.send("GET", "people()?$filter=Personal%20xx%20'Secret'", &[], "");
        let body = "--b\r\nContent-Type: application/http\r\n\r\n\
            GET /acct/people(PartitionKey='Personal',RowKey='x') HTTP/1.1\r\n\r\n\r\n--b--\r\n";
        let headers = [("content-type", "multipart/mixed; boundary=b")];
        client.send("POST", "$batch", &headers, body);
    });
    assert_eq!(log.len(), 7, "{log:#?}");
    for line in &log {
        let has_key = line.contains("Personal") || line.contains("Secret");
        assert!(!has_key, "{line}");
    }
    assert_has(&log[1], &["status=409", r#"code="EntityAlreadyExists""#]);
    assert_has(&log[2], &[r#"path="/acct/people(…)""#, "status=200"]);
    let query = r#"path="/acct/people()" query="$filter=…&$top=5&NextRowKey=…&…&spk=…""#;
    assert_has(&log[4], &[query]);
    assert_has(
        &log[6],
        &["status=202", r#"code="ResourceNotFound" batch_index=0"#],
    );
}

/// A storage that fails, always in the same way.
struct Broken(MemoryStorage, StorageError);

impl Broken {
    fn client(error: StorageError) -> Client {
        Client::on(Self(MemoryStorage::default(), error), |_| {})
    }
}

impl StorageDouble for Broken {
    fn inner(&self) -> &dyn Storage {
        &self.0
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(BrokenReads(self.1.clone()))
    }

    fn uncommitted(&self) -> Box<dyn Snapshot> {
        Box::new(BrokenReads(self.1.clone()))
    }

    fn commit(&self, _: WriteBatch) -> Result<Commit, StorageError> {
        Err(self.1.clone())
    }
}

struct BrokenReads(StorageError);

impl Snapshot for BrokenReads {
    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        // The time of the last write, without which no engine starts.
        if key == b"w" {
            return Ok(None);
        }
        Err(self.0.clone())
    }

    fn range(&self, _: &[u8], _: &[u8]) -> Records<'_> {
        Box::new(std::iter::once(Err(self.0.clone())))
    }
}

#[test]
fn storage_failures_are_logged_but_not_returned() {
    let client = Broken::client(StorageError::Corrupt { what: "record" });
    let log = log_of(|| {
        let response = client.send("GET", "people()", &[], "");
        assert_eq!(status_and_code(&response), (500, "InternalError"));
        assert!(!body(&response).contains("stored"), "{response:?}");
    });
    let (request, causes) = log.split_last().unwrap();
    // The CORS rules could not be read, either.
    assert_eq!(causes.len(), 2, "{log:?}");
    let error = r#"error="the stored record cannot be read""#;
    for cause in causes {
        // The span identifies the request.
        let parts = ["ERROR", "request{id=", "the storage failed", error];
        assert_has(cause, &parts);
    }
    assert_has(request, &["ERROR", r#"status=500 code="InternalError""#]);
}

#[cfg(feature = "durable")]
#[test]
fn a_lack_of_open_files_is_server_busy() {
    let client = Broken::client(StorageError::Exhausted { what: "write" });
    let log = log_of(|| {
        let create = client.send("POST", "Tables", &[], r#"{"TableName":"people"}"#);
        for response in [create, client.send("GET", "people()", &[], "")] {
            assert_eq!(status_and_code(&response), (503, "ServerBusy"));
        }
    });
    // The storage logs the cause once, and not for each request.
    assert!(log.iter().all(|line| !line.contains("ulimit")), "{log:?}");
}

#[test]
fn failures_are_logged_with_their_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("the page cannot be read")]
    struct Failure(#[source] io::Error);

    let log = log_of(|| {
        let cause = io::Error::other("the disk is gone");
        crate::request::log::storage_failed(tablesdk_protocol::Guid::default(), &Failure(cause));
    });
    assert_has(&log[0], &["the page cannot be read: the disk is gone"]);
}
