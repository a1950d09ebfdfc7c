//! What an operation reports: a span that contains its attempts, events for a log without spans, and a report to the hook. None
//! contains a secret.

mod events;
mod incident;
mod reports;
mod secrets;
mod spans;

use std::io::{Result, Write};
use std::sync::{Arc, Mutex, OnceLock};

use futures::stream;
use harness::client_with;
use tablesdk::action::OperationReport;
use tablesdk::{RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Faults;
use tracing::Dispatch;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::Employee;

/// If there is only one subscriber, a thread without a subscriber that enters a span first disables the span for all threads. So
/// there is always another one, which logs nothing.
fn keep_another_subscriber() {
    static OTHER: OnceLock<Dispatch> = OnceLock::new();
    OTHER.get_or_init(|| {
        let other = tracing_subscriber::fmt().with_max_level(LevelFilter::OFF);
        Dispatch::new(other.finish())
    });
}

/// Everything that was logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> (Self, impl Sized) {
        keep_another_subscriber();
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, subscriber.set_default())
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The ends of the spans of attempts, and of operations, whose line contains `words`. The last line of a span has all fields.
    fn closed(&self, words: &str) -> (Vec<String>, Vec<String>) {
        let text = self.text();
        let closed = text.lines().filter(|line| line.contains("tablesdk: close"));
        let closed = closed
            .filter(|line| line.contains(words))
            .map(str::to_owned);
        closed.partition(|line| line.contains(":attempt{"))
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[track_caller]
fn assert_contains(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A table whose requests fail on demand, and the reports that the hook receives.
struct Observed {
    _server: TableServer,
    service: TableServiceClient,
    table: TableClient,
    faults: Faults,
    reports: Arc<Mutex<Vec<OperationReport>>>,
}

impl Observed {
    async fn start(retry: RetryPolicy) -> Self {
        let server = TableServer::in_process();
        let faults = server.faults();
        let reports = Arc::new(Mutex::new(Vec::<OperationReport>::new()));
        let hook = Arc::clone(&reports);
        let service = client_with(&server, |builder| {
            let builder = builder.retry(retry);
            builder.on_operation(move |report| hook.lock().unwrap().push(report.clone()))
        });
        let table = service.table("Tests");
        table.create_table().await.unwrap();
        reports.lock().unwrap().clear();
        Self {
            _server: server,
            service,
            table,
            faults,
            reports,
        }
    }

    /// With a table of that many entities.
    async fn with_entities(count: i32, retry: RetryPolicy) -> Self {
        let observed = Self::start(retry).await;
        let employees = (0..count).map(|id| Employee::new(&format!("{id:03}"), "Ada", id));
        let bulk = observed.table.bulk().insert(stream::iter(employees));
        assert!(bulk.await.unwrap().is_success());
        observed
    }

    /// The reports since the last call.
    fn take(&self) -> Vec<OperationReport> {
        std::mem::take(&mut *self.reports.lock().unwrap())
    }

    /// The only report since the last call.
    #[track_caller]
    fn only(&self) -> OperationReport {
        let [report] = self.take().try_into().unwrap();
        report
    }
}
