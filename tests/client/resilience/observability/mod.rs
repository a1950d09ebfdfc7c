//! The reports of an operation: a span that contains its attempts, events for a log without spans,
//! and a report to the hook. None contains a secret.

mod events;
mod incident;
mod reports;
mod secrets;
mod spans;

use std::sync::{Arc, Mutex};

use futures::stream;
use harness::client_with;
use tablesdk::action::OperationReport;
use tablesdk::{RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Faults;

use crate::Employee;

#[track_caller]
fn assert_contains(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A table whose requests fail on demand, and the reports that the hook receives.
pub(crate) struct Observed {
    _server: TableServer,
    service: TableServiceClient,
    pub(crate) table: TableClient,
    pub(crate) faults: Faults,
    reports: Arc<Mutex<Vec<OperationReport>>>,
}

impl Observed {
    pub(crate) async fn start(retry: RetryPolicy) -> Self {
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
    pub(crate) fn take(&self) -> Vec<OperationReport> {
        std::mem::take(&mut *self.reports.lock().unwrap())
    }

    /// The only report since the last call.
    #[track_caller]
    pub(crate) fn only(&self) -> OperationReport {
        let [report] = self.take().try_into().unwrap();
        report
    }
}
