//! What an operation reports: a span that contains its attempts, and a report to the hook. Neither contains a secret.

use std::collections::BTreeSet;
use std::future::IntoFuture as _;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use harness::faults::{Fault, Faults, Op, refusal};
use harness::{Subject, client_with};
use http::{Request, header};
use tablesdk::action::OperationReport;
use tablesdk::credential::{AccessToken, TokenRequest};
use tablesdk::query::AccessClass;
use tablesdk::sas::{AccountPermissions, ResourceTypes};
use tablesdk::transport::ReqwestTransport;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{
    Credential, DynamicEntity, EntraId, RetryPolicy, Sas, TableClient, TableEntity,
    TableServiceClient, Timestamp,
};
use tablesdk_server::{InProcess, TableServer, TokenGrant, TokenRefusal};
use tracing::Dispatch;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::Employee;

/// What was logged, of everything and at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> (Self, impl Sized) {
        // While there is one subscriber alone, a thread without any that comes to a span first turns it off for all threads. So
        // there is always another one, which takes nothing.
        static OTHER: OnceLock<Dispatch> = OnceLock::new();
        OTHER.get_or_init(|| {
            let nothing = tracing_subscriber::filter::LevelFilter::OFF;
            Dispatch::new(tracing_subscriber::fmt().with_max_level(nothing).finish())
        });
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, subscriber.set_default())
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps what must not be seen of every request: its signature.
#[derive(Clone, Debug)]
struct Signatures<T> {
    inner: T,
    seen: Arc<Mutex<Vec<String>>>,
}

impl<T: Transport> Transport for Signatures<T> {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        let mut seen = self.seen.lock().unwrap();
        if let Some(value) = request.headers().get(header::AUTHORIZATION) {
            let value = value.to_str().unwrap();
            let (_, secret) = value.rsplit_once([':', ' ']).unwrap();
            seen.push(secret.to_owned());
        }
        let query = request.uri().query().unwrap_or_default();
        if let Some((_, signature)) = query.split_once("sig=") {
            seen.push(signature.split('&').next().unwrap().to_owned());
        }
        drop(seen);
        self.inner.send(request)
    }
}

/// Runs operations of every kind, many of which fail.
async fn suite<T: Transport + 'static>(service: &TableServiceClient, faults: &Faults<T>) {
    let table = &service.table("Tests");
    let key = || Employee::key("Sales", "1");
    let _ = table.create_table().if_missing().await;
    let ada = Employee::ada();
    faults.plan(Op::Insert, [Fault::LoseAnswer]);
    let _ = table.insert(&ada).await;
    let _ = table.insert(&ada).await;
    faults.plan(Op::Get, [Fault::Answer(refusal(503, "ServerBusy"))]);
    let _ = table.get(key()).await;
    let _ = table.upsert_replace(&ada).await;
    let _ = table.upsert_merge(&ada).await;
    let _ = table.patch(key()).set(|e| e.age, 37).await;
    if let Ok(Some(mut stored)) = table.get(key()).tracked().await {
        stored.age += 1;
        let _ = table.merge(&mut stored).changed_only().await;
        let _ = table.replace(&mut stored.clone()).await;
        let _ = table.delete_stored(&stored).await;
    }
    faults.plan(Op::Batch, [Fault::LoseAnswer]);
    let _ = table.insert(&ada).exactly_once().await;
    let _ = table.modify(key(), Employee::grow_older).await;
    let _ = table.sweep_markers("Sales").await;
    let rows = (0..120).map(|id| Employee::new(&id.to_string(), "Bulk", id));
    let _ = table.bulk().upsert_replace(stream::iter(rows)).await;
    let _ = table.get_many([key(), key()]).await;
    let _ = table
        .query::<Employee>()
        .filter(|e| e.age.ge(5))
        .page_size(50)
        .collect()
        .await;
    let query = table.query::<Employee>().partitions(["Sales", "x"]);
    let _ = query.in_order().collect().await;
    let page = table.query::<Employee>().page_size(5).page(None).await;
    if let Ok(Some(token)) = page.map(|page| page.next) {
        let _ = table.query::<Employee>().page(token).await;
    }
    let _ = table
        .batch("Sales")
        .insert(&ada)
        .delete(("Sales", "none"))
        .await;
    faults.plan(Op::Delete, [Fault::Refuse, Fault::LoseRequest]);
    let _ = table.delete(("Sales", "1")).await;
    let _ = table.query::<DynamicEntity>().delete_all().await;
    let _ = table.table_exists().await;
    let _ = table.access_policy().await;
    let _ = table.set_access_policy([]).await;
    let _ = service.tables().collect().await;
    if let Ok(properties) = service.properties().await {
        let _ = service.set_properties(properties).await;
    }
    let _ = service.stats().await;
    let guest = table.sas().expires_in(Duration::from_secs(600)).sign();
    if let Ok(guest) = guest {
        let _ = TableClient::from_sas_url(&guest.expose());
    }
    let _ = table.delete_table().await;
}

/// Every operation that the client has, by its name.
const OPERATIONS: [&str; 20] = [
    "batch",
    "create table",
    "delete entity",
    "delete table",
    "get entity",
    "get service properties",
    "get service stats",
    "get table",
    "get table access policy",
    "insert entity",
    "insert or merge entity",
    "insert or replace entity",
    "merge entity",
    "modify entity",
    "query entities",
    "query tables",
    "replace entity",
    "set service properties",
    "set table access policy",
    "sweep markers",
];

/// Runs everything with a key, a shared access signature and, where the endpoint allows it, a token. Gives back what must not be
/// seen.
async fn with_every_credential<T: Transport + Clone + 'static>(
    server: &TableServer,
    endpoint: &str,
    transport: T,
) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let account = TableServiceClient::from_connection_string(&server.connection_string()).unwrap();
    let sas = account
        .sas()
        .allow(AccountPermissions::all())
        .on(ResourceTypes::all())
        .expires_in(Duration::from_secs(3600))
        .sign()
        .unwrap();
    let sas = sas.expose();
    let (_, sas) = sas.split_once('?').unwrap();
    let token = |_: TokenRequest| async {
        let expires_at: Timestamp = "2100-01-01T00:00:00Z".parse()?;
        Ok(AccessToken::new(TOKEN, expires_at))
    };
    let mut credentials: Vec<Credential> =
        vec![server.credential().into(), Sas::new(sas).unwrap().into()];
    if endpoint.starts_with("https") {
        credentials.push(EntraId::new(token).into());
    }
    let operations = Arc::new(Mutex::new(BTreeSet::new()));
    for credential in credentials {
        let faults = Faults::new(transport.clone());
        let told = Arc::clone(&operations);
        let service = TableServiceClient::builder(endpoint)
            .transport(Signatures {
                inner: faults.clone(),
                seen: Arc::clone(&seen),
            })
            .credential(credential)
            .retry(RetryPolicy::exponential().delay(Duration::ZERO))
            .on_operation(move |report| {
                told.lock().unwrap().insert(report.operation);
            })
            .build()
            .unwrap();
        suite(&service, &faults).await;
    }
    let operations: Vec<_> = operations.lock().unwrap().iter().copied().collect();
    assert_eq!(operations, OPERATIONS);
    let connection = server.connection_string();
    let (_, key) = connection.split_once("AccountKey=").unwrap();
    let mut secrets = seen.lock().unwrap().clone();
    assert!(secrets.len() > 60, "{}", secrets.len());
    secrets.extend([key.split(';').next().unwrap().to_owned(), sas.to_owned()]);
    secrets
}

fn assert_keeps(log: &str, secrets: &[String]) {
    assert!(
        log.contains("db.collection.name=\"Tests\""),
        "the log is that of the client"
    );
    for secret in secrets {
        assert!(secret.len() > 10);
        assert!(!log.contains(secret.as_str()), "{secret} was logged");
        let decoded = secret
            .replace("%2B", "+")
            .replace("%2F", "/")
            .replace("%3D", "=");
        assert!(!log.contains(&decoded), "{decoded} was logged");
    }
    // What is stored is nobody's business either.
    assert!(!log.contains("Ada") && !log.contains("Bulk"));
}

const TOKEN: &str = "eyJ0aGUgdG9rZW4gb2YgYSB0ZXN0";

fn knows_the_token(_: &str, token: &str) -> Result<TokenGrant, TokenRefusal> {
    if token == TOKEN {
        Ok(TokenGrant::all())
    } else {
        Err(TokenRefusal::Invalid)
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_secret_is_logged() {
    let (log, _guard) = Log::start();
    let server = TableServer::builder()
        .token_verifier(knows_the_token)
        .in_process()
        .unwrap();
    let endpoint = "https://devstoreaccount1.table.core.windows.net";
    let secrets = with_every_credential(&server, endpoint, server.transport()).await;
    assert!(secrets.iter().any(|secret| secret == TOKEN));
    assert_keeps(&log.text(), &secrets);
}

/// What the libraries below the client and the server log goes to the same log, and has seen every URL and header.
#[tokio::test]
async fn nothing_secret_is_logged_below_http() {
    Records::start();
    let (log, _guard) = Log::start();
    let server = TableServer::start().await.unwrap();
    let transport = ReqwestTransport::new().unwrap();
    let secrets = with_every_credential(&server, server.endpoint(), transport).await;
    let records = Records::take();
    assert!(records.contains("reqwest"), "{records}");
    assert_keeps(&(log.text() + &records), &secrets);
}

/// The records logged through the crate `log`, while a test collects them.
struct Records(Mutex<Option<String>>);

static RECORDS: Records = Records(Mutex::new(None));

impl Records {
    fn start() {
        *RECORDS.0.lock().unwrap() = Some(String::new());
        log::set_logger(&RECORDS).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    }

    fn take() -> String {
        RECORDS.0.lock().unwrap().take().unwrap_or_default()
    }
}

impl log::Log for Records {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if let Some(records) = self.0.lock().unwrap().as_mut() {
            *records += &format!("{} {}\n", record.target(), record.args());
        }
    }

    fn flush(&self) {}
}

/// A modification reads and writes: its write is not counted as a retry of its read.
#[tokio::test(start_paused = true)]
async fn the_second_request_of_an_operation_is_no_repetition() {
    let (log, _guard) = Log::start();
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Update, [Fault::Answer(refusal(503, "ServerBusy"))]);
    let key = Employee::key("Sales", "1");
    table.modify(key, Employee::grow_older).await.unwrap();
    drop(table);
    let text = log.text();
    let lines = text
        .lines()
        .filter(|line| line.contains(":attempt{") && line.contains("tablesdk: close"));
    let resent: Vec<_> = lines
        .filter(|line| line.contains("modify entity"))
        .map(|line| line.contains("http.request.resend_count=1"))
        .collect();
    assert_eq!(resent, [false, false, true], "{text}");
}

#[tokio::test(start_paused = true)]
async fn operations_are_spans_by_the_names_of_opentelemetry() {
    let (log, _guard) = Log::start();
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Get, [Fault::Answer(refusal(503, "ServerBusy"))]);
    Employee::find(&table).await.unwrap();
    assert!(
        table
            .get(Employee::key("Sales", "2"))
            .await
            .unwrap()
            .is_none()
    );
    faults.plan(Op::Query, (0..5).map(|_| Fault::Refuse));
    table
        .query::<Employee>()
        .partition("Sales")
        .collect()
        .await
        .unwrap_err();
    table
        .query::<Employee>()
        .partition("Sales")
        .collect()
        .await
        .unwrap();
    drop(table);
    let text = log.text();
    // The last word of each span has all of its fields.
    let closed = |name: &str| {
        let lines = text.lines().filter(|line| {
            line.contains("tablesdk: close")
                && line.contains("TRACE") | line.contains("INFO") | line.contains("DEBUG")
        });
        let lines = lines.filter(|line| line.contains(name) && !line.contains(":attempt{"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let [insert] = closed("db.operation.name=\"insert entity\"")
        .try_into()
        .unwrap();
    for field in [
        "INFO",
        "otel.kind=\"client\"",
        "otel.name=\"insert entity Tests\"",
        "db.system.name=\"azure.table_storage\"",
        "db.collection.name=\"Tests\"",
        "server.address=",
        "tablesdk.attempts=1",
    ] {
        assert!(insert.contains(field), "{field}: {insert}");
    }
    let gets = closed("db.operation.name=\"get entity\"");
    let [busy, missing] = gets.as_slice() else {
        panic!("{gets:?}")
    };
    assert!(
        busy.contains("tablesdk.attempts=2") && busy.contains("tablesdk.access=\"point\""),
        "{busy}"
    );
    assert!(!busy.contains("error.type"), "{busy}");
    assert!(
        missing.contains("error.type=\"ResourceNotFound\"") && !missing.contains("ERROR"),
        "{missing}"
    );
    let queries = closed("db.operation.name=\"query entities\"");
    let [failed, found] = queries.as_slice() else {
        panic!("{queries:?}")
    };
    assert!(
        failed.contains("error.type=\"transport\"")
            && failed.contains("otel.status_code=\"ERROR\""),
        "{failed}"
    );
    assert!(
        found.contains("db.response.returned_rows=1")
            && found.contains("tablesdk.access=\"partition\""),
        "{found}"
    );
    // Attempts are inside their operations, with both request ids.
    let attempts = text
        .lines()
        .filter(|line| line.contains(":attempt{") && line.contains("tablesdk: close"));
    let attempts: Vec<_> = attempts
        .filter(|line| line.contains("get entity"))
        .collect();
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    assert!(
        attempts[0].contains("http.response.status_code=503")
            && attempts[0].contains("error.type=\"ServerBusy\""),
        "{}",
        attempts[0]
    );
    assert!(
        attempts[1].contains("http.request.resend_count=1")
            && attempts[1].contains("azure.service.request.id="),
        "{}",
        attempts[1]
    );
    let id =
        |line: &str| line.split_once("tablesdk.client_request_id=\"").unwrap().1[..36].to_owned();
    assert_eq!(
        id(attempts[0]),
        id(attempts[1]),
        "a repetition has the id of the first attempt"
    );
    let sent = faults.seen();
    let sent = sent.iter().filter(|seen| seen.op == Op::Get).map(|seen| {
        seen.headers["x-ms-client-request-id"]
            .to_str()
            .unwrap()
            .to_owned()
    });
    assert_eq!(
        sent.collect::<Vec<_>>(),
        attempts.iter().map(|line| id(line)).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn the_hook_is_told_what_an_operation_took() {
    let server = TableServer::in_process();
    let faults = Faults::new(server.transport());
    let reports = Arc::new(Mutex::new(Vec::<OperationReport>::new()));
    let told = Arc::clone(&reports);
    let table = client_with(&server, |builder| {
        builder
            .transport(faults.clone())
            .on_operation(move |report| told.lock().unwrap().push(report.clone()))
    })
    .table("Tests");
    let take = || std::mem::take(&mut *reports.lock().unwrap());
    table.create_table().await.unwrap();
    let [create] = take().try_into().unwrap();
    assert_eq!(
        (create.operation, create.table.as_deref()),
        ("create table", Some("Tests"))
    );
    let rows = (0..120).map(|id| Employee::new(&format!("{id:03}"), "Ada", id));
    assert!(
        table
            .bulk()
            .insert(stream::iter(rows))
            .await
            .unwrap()
            .is_success()
    );
    let batches = take();
    assert_eq!(
        batches
            .iter()
            .map(|report| report.entities)
            .collect::<Vec<_>>(),
        [100, 20]
    );
    assert!(batches.iter().all(|report| report.operation == "batch"
        && report.bytes_sent > 1_000
        && report.access.is_none()));

    faults.plan(
        Op::Query,
        [Fault::Answer(refusal(503, "ServerBusy")), Fault::Pass],
    );
    table
        .query::<Employee>()
        .partition("Sales")
        .page_size(100)
        .collect()
        .await
        .unwrap();
    let [query] = take().try_into().unwrap();
    assert_eq!((query.entities, query.pages, query.attempts), (120, 2, 3));
    assert_eq!(
        (query.access, query.error),
        (Some(AccessClass::Partition), None)
    );
    assert!(query.bytes_received > 6_000, "{}", query.bytes_received);
    assert!(
        query.duration > Duration::ZERO,
        "it waited before it repeated"
    );

    assert!(
        table
            .get::<Employee>(("Sales", "none"))
            .await
            .unwrap()
            .is_none()
    );
    let [missing] = take().try_into().unwrap();
    assert_eq!(
        (missing.entities, missing.error.as_deref()),
        (0, Some("ResourceNotFound"))
    );
    table
        .upsert_replace(&Employee::new("1", "Ada", 1))
        .await
        .unwrap();
    table.delete(("Sales", "1")).await.unwrap();
    let written: Vec<_> = take()
        .iter()
        .map(|report| (report.operation, report.entities))
        .collect();
    assert_eq!(
        written,
        [("insert or replace entity", 1), ("delete entity", 1)]
    );
    // What is refused before it is sent took nothing.
    table.get::<Employee>(("a/b", "1")).await.unwrap_err();
    assert!(take().is_empty());
}

type Reports = Arc<Mutex<Vec<OperationReport>>>;

/// A table whose requests fail on demand, and the reports that the hook receives.
async fn reported(retry: RetryPolicy) -> (TableServer, TableClient, Faults<InProcess>, Reports) {
    let server = TableServer::in_process();
    let faults = Faults::new(server.transport());
    let reports = Reports::default();
    let told = Arc::clone(&reports);
    let table = client_with(&server, |builder| {
        builder
            .transport(faults.clone())
            .retry(retry)
            .on_operation(move |report| told.lock().unwrap().push(report.clone()))
    })
    .table("Tests");
    table.create_table().await.unwrap();
    reports.lock().unwrap().clear();
    (server, table, faults, reports)
}

/// The name, entities, attempts and error of the only operation since the last call.
fn last(reports: &Reports) -> (&'static str, usize, u32, Option<String>) {
    let reports = std::mem::take(&mut *reports.lock().unwrap());
    let [report] = reports.try_into().unwrap();
    assert_eq!(report.table.as_deref(), Some("Tests"));
    let OperationReport {
        operation,
        entities,
        attempts,
        error,
        ..
    } = report;
    (operation, entities, attempts, error)
}

/// Has a property that no entity of these tests has.
#[derive(Debug, TableEntity)]
struct Other {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    shoes: i32,
}

#[tokio::test(start_paused = true)]
async fn the_hook_is_told_of_an_operation_what_the_program_is_told() {
    let (_server, table, faults, reports) = reported(RetryPolicy::exponential()).await;
    let ada = Employee::ada();
    let told = |operation, entities, attempts, error: Option<&str>| {
        let error = error.map(str::to_owned);
        assert_eq!(last(&reports), (operation, entities, attempts, error));
    };

    // Exactly once, and its marker swept, or not.
    let mut stored = table.insert(&ada).exactly_once().await.unwrap();
    told("insert entity", 1, 2, None);
    faults.plan(Op::Delete, [Fault::Refuse]);
    table.replace(&mut stored).exactly_once().await.unwrap();
    told("replace entity", 1, 2, None);
    faults.plan(Op::Batch, [Fault::LoseAnswer]);
    table.replace(&mut stored).exactly_once().await.unwrap();
    told("replace entity", 1, 4, None);
    let key = || ("Sales", "1");
    table
        .modify(key(), Employee::grow_older)
        .exactly_once()
        .await
        .unwrap();
    told("modify entity", 1, 3, None);
    assert!(table.delete(key()).exactly_once().await.unwrap());
    told("delete entity", 1, 2, None);
    assert!(!table.delete(key()).exactly_once().await.unwrap());
    told("delete entity", 0, 1, Some("ResourceNotFound"));

    // A doubt that ends well, and one that stays.
    let lost = || (0..5).map(|_| Fault::CarryOutAndAnswer(refusal(500, "InternalError")));
    faults.plan(Op::Update, lost());
    table.upsert_replace(&ada).await.unwrap();
    told("insert or replace entity", 1, 6, None);
    faults.plan(Op::Delete, lost());
    assert!(table.delete(key()).await.unwrap());
    told("delete entity", 1, 6, None);
    faults.plan(Op::Insert, [Fault::LoseAnswer]);
    let error = table.insert(&ada).await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    told("insert entity", 0, 3, Some("EntityAlreadyExists"));

    // An answer that is none, a closure that fails, and what the program drops.
    let query = table.query::<Other>().partition("Sales");
    query.collect().await.unwrap_err();
    told("query entities", 0, 1, Some("response"));
    table.get::<Other>(key()).await.unwrap_err();
    told("get entity", 1, 1, Some("response"));
    let fails = |_: &mut Employee| Err("no".into());
    table.modify(key(), fails).await.unwrap_err();
    told("modify entity", 1, 1, Some("caller"));
    faults.plan(Op::Get, [Fault::Hang]);
    let second = std::time::Duration::from_secs(1);
    let get = table.get::<Employee>(key()).into_future();
    tokio::time::timeout(second, get).await.unwrap_err();
    told("get entity", 0, 1, Some("cancelled"));

    // What is about the table, and about no entity.
    assert!(table.table_exists().await.unwrap());
    told("get table", 0, 1, None);
    table.access_policy().await.unwrap();
    told("get table access policy", 0, 1, None);
    table.sweep_markers("Sales").await.unwrap();
    told("sweep markers", 0, 1, None);
    assert!(!table.create_table().if_missing().await.unwrap());
    told("create table", 0, 1, Some("TableAlreadyExists"));
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_tasks_of_its_own_stays_in_the_callers_span() {
    let (log, _guard) = Log::start();
    let (_server, table, ..) = reported(RetryPolicy::none()).await;
    let rows = (0..30).map(|id| Employee::new(&format!("{id:02}"), "Ada", id));
    let report = table.bulk().insert(stream::iter(rows)).await.unwrap();
    assert!(report.is_success());
    let reads = async {
        let query = || table.query::<Employee>().page_size(5);
        let items = query().partition("Sales").prefetch().collect().await;
        assert_eq!(items.unwrap().len(), 30);
        let parts = || query().partition("Sales").row_ranges(["10", "20"]);
        assert_eq!(parts().collect().await.unwrap().len(), 30);
        assert_eq!(parts().in_order().collect().await.unwrap().len(), 30);
    };
    tracing::Instrument::instrument(reads, tracing::info_span!("request")).await;
    let text = log.text();
    let closed = text
        .lines()
        .filter(|line| line.contains("tablesdk: close") && line.contains("\"query entities\""));
    let closed: Vec<_> = closed.filter(|line| !line.contains(":attempt{")).collect();
    assert_eq!(closed.len(), 1 + 3 + 3, "each place is a query");
    let pages = closed
        .iter()
        .filter(|line| line.contains("tablesdk.pages=6"));
    assert_eq!(pages.count(), 1, "{closed:#?}");
    for line in closed {
        assert!(line.contains(" request:operation{"), "{line}");
    }
}

/// A table of 30 entities, and the reports that the hook receives after they were inserted.
async fn thirty(retry: RetryPolicy) -> (TableServer, TableClient, Faults<InProcess>, Reports) {
    let (server, table, faults, reports) = reported(retry).await;
    let rows = (0..30).map(|id| Employee::new(&format!("{id:02}"), "Ada", id));
    let written = table.bulk().insert(stream::iter(rows)).await.unwrap();
    assert!(written.is_success());
    reports.lock().unwrap().clear();
    (server, table, faults, reports)
}

/// The entities, pages, attempts and error of the only query since the last call.
fn query_of(reports: &Reports) -> (usize, usize, u32, Option<String>) {
    let reports = std::mem::take(&mut *reports.lock().unwrap());
    let [report] = reports.try_into().unwrap();
    assert!(report.operation.starts_with("query "), "{report:?}");
    (report.entities, report.pages, report.attempts, report.error)
}

#[tokio::test(start_paused = true)]
async fn whatever_reads_a_query_is_one_operation() {
    let (_server, table, faults, reports) = thirty(RetryPolicy::exponential()).await;
    let query = || table.query::<Employee>().partition("Sales").page_size(10);
    let told = |entities, pages, attempts, error: Option<&str>| {
        let error = error.map(str::to_owned);
        assert_eq!(query_of(&reports), (entities, pages, attempts, error));
    };

    assert_eq!(query().collect().await.unwrap().len(), 30);
    told(30, 3, 3, None);
    assert_eq!(query().prefetch().collect().await.unwrap().len(), 30);
    told(30, 3, 3, None);
    assert_eq!(query().take(15).collect().await.unwrap().len(), 15);
    told(15, 2, 2, None);
    assert_eq!(query().count().await.unwrap(), 30);
    told(30, 3, 3, None);
    assert!(query().exists().await.unwrap());
    told(1, 1, 1, None);
    query().first().await.unwrap().unwrap();
    told(1, 1, 1, None);
    let page = query().take(25).page(None).await.unwrap();
    assert_eq!(page.items.len(), 25);
    told(25, 3, 3, None);
    // The next page by its token is another query, maybe of another program.
    let page = query().page(page.next.unwrap()).await.unwrap();
    assert_eq!(page.items.len(), 5);
    told(5, 1, 1, None);
    let only = query()
        .filter(|e| e.id.eq("07"))
        .one()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(only.id, "07");
    told(1, 1, 1, None);
    query().one().await.unwrap_err();
    told(2, 1, 1, Some("response"));
    assert!(
        query()
            .filter(|e| e.id.eq("none"))
            .one()
            .await
            .unwrap()
            .is_none()
    );
    told(0, 0, 1, Some("ResourceNotFound"));

    // What a page fails with is what the query fails with, with what was read before.
    let refused = || Fault::Answer(refusal(403, "AuthorizationFailure"));
    faults.plan(Op::Query, [Fault::Pass, Fault::Pass, refused()]);
    query().collect().await.unwrap_err();
    told(20, 2, 3, Some("AuthorizationFailure"));
    faults.plan(Op::Query, [Fault::Pass, Fault::Refuse, Fault::Pass]);
    query().collect().await.unwrap();
    told(30, 3, 4, None);

    // What is deleted was found by one query.
    let deleted = query().delete_all().await.unwrap();
    assert_eq!(deleted.progress().written, 30);
    let (queries, batches): (Vec<_>, Vec<_>) = std::mem::take(&mut *reports.lock().unwrap())
        .into_iter()
        .partition(|report| report.operation == "query entities");
    let queries: Vec<_> = queries.iter().map(|query| query.pages).collect();
    assert_eq!(queries, [3]);
    assert!(batches.iter().all(|report| report.operation == "batch"));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_tables_is_one_operation() {
    let server = TableServer::in_process();
    let reports = Reports::default();
    let told = Arc::clone(&reports);
    let service = client_with(&server, |builder| {
        builder.on_operation(move |report| told.lock().unwrap().push(report.clone()))
    });
    for name in ["One", "Two", "Three"] {
        service.table(name).create_table().await.unwrap();
    }
    reports.lock().unwrap().clear();
    let tables = || service.tables().page_size(1);
    assert_eq!(tables().collect().await.unwrap().len(), 3);
    assert_eq!(query_of(&reports), (0, 3, 3, None));
    assert_eq!(tables().page(None).await.unwrap().items, ["One"]);
    assert_eq!(query_of(&reports), (0, 1, 1, None));
    let mut stream = tables().stream();
    stream.try_next().await.unwrap().unwrap();
    assert!(reports.lock().unwrap().is_empty());
    drop(stream);
    assert_eq!(query_of(&reports), (0, 1, 1, None));
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_told_when_it_ends_and_without_the_time_of_its_consumer() {
    let (_server, table, faults, reports) = thirty(RetryPolicy::exponential()).await;
    let query = || table.query::<Employee>().partition("Sales").page_size(10);
    let hour = Duration::from_secs(3_600);

    // The deadline is that of a page: hours later there is still time to repeat a request.
    let mut stream = query().stream();
    for id in 0..30 {
        assert!(reports.lock().unwrap().is_empty() || id >= 20, "{id}");
        if id == 10 {
            tokio::time::sleep(hour).await;
            faults.plan(Op::Query, [Fault::Refuse]);
        }
        stream.try_next().await.unwrap().unwrap();
    }
    // Told with its last page, though the stream is still there.
    let [report] = std::mem::take(&mut *reports.lock().unwrap())
        .try_into()
        .unwrap();
    assert_eq!((report.pages, report.attempts, report.error), (3, 4, None));
    assert!(report.duration < hour, "{:?}", report.duration);
    assert!(report.duration > Duration::ZERO);
    assert!(stream.try_next().await.unwrap().is_none());
    drop(stream);
    assert!(reports.lock().unwrap().is_empty(), "told once");

    // Dropped between two pages, it ended well.
    let mut stream = query().stream();
    for _ in 0..12 {
        stream.try_next().await.unwrap().unwrap();
    }
    tokio::time::sleep(hour).await;
    assert!(reports.lock().unwrap().is_empty());
    drop(stream);
    let [report] = std::mem::take(&mut *reports.lock().unwrap())
        .try_into()
        .unwrap();
    assert_eq!((report.entities, report.pages), (20, 2));
    assert_eq!(report.error, None);
    assert!(report.duration < hour, "{:?}", report.duration);

    // Dropped while a page is on its way, it was cancelled.
    for ahead in [false, true] {
        faults.plan(Op::Query, [Fault::Pass, Fault::Hang]);
        let query = if ahead { query().prefetch() } else { query() };
        let mut stream = query.stream();
        for _ in 0..10 {
            stream.try_next().await.unwrap().unwrap();
        }
        let second = Duration::from_secs(1);
        let next = tokio::time::timeout(second, stream.try_next()).await;
        assert!(next.is_err());
        drop(stream);
        // The task that reads ahead ends when the runtime gets to it.
        tokio::time::sleep(second).await;
        let cancelled = Some("cancelled".to_owned());
        assert_eq!(query_of(&reports), (10, 1, 2, cancelled), "{ahead}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_query_are_attempts_in_one_span() {
    let (log, _guard) = Log::start();
    let (_server, table, ..) = thirty(RetryPolicy::none()).await;
    let query = table.query::<Employee>().page_size(10);
    let mut stream = query.stream();
    // Wherever it is consumed: the query is part of what asked for its first page.
    for part in ["first", "rest"] {
        let read = async {
            let count = if part == "first" { 5 } else { 25 };
            for _ in 0..count {
                stream.try_next().await.unwrap().unwrap();
            }
        };
        tracing::Instrument::instrument(read, tracing::info_span!("part", part)).await;
    }
    let text = log.text();
    let closed: Vec<_> = text
        .lines()
        .filter(|line| line.contains("tablesdk: close") && line.contains("\"query entities\""))
        .collect();
    let (attempts, operations): (Vec<&str>, Vec<&str>) =
        closed.iter().partition(|line| line.contains(":attempt{"));
    let [operation] = operations.as_slice() else {
        panic!("{operations:#?}")
    };
    for field in [
        "tablesdk.pages=3",
        "tablesdk.attempts=3",
        "db.response.returned_rows=30",
    ] {
        assert!(operation.contains(field), "{field}: {operation}");
    }
    assert_eq!(attempts.len(), 3, "{attempts:#?}");
    for line in closed {
        assert!(line.contains(" part{part=\"first\"}:operation{"), "{line}");
    }
}
