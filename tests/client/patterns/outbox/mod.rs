//! The outbox: steps and messages that follow a transaction.

mod accounts;
mod effects;
mod messages;
mod new_tables;
mod poisoned;
mod run;
mod workers;
mod writers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::client_with;
use serde::{Deserialize, Serialize};
use tablesdk::action::Batch;
use tablesdk::outbox::{DrainReport, Message, Outbox, Received, Step};
use tablesdk::{DynamicEntity, RetryPolicy, TableClient};
use tablesdk_server::TableServer;

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A server, the table of the transactions, and a table that steps write.
pub(crate) fn tables(server: &TableServer) -> (TableClient, TableClient) {
    let service = client_with(server, |builder| builder.retry(RetryPolicy::exponential()));
    (service.table("Company"), service.table("Titles"))
}

pub(crate) async fn company() -> (TableServer, TableClient, TableClient) {
    let server = TableServer::in_process();
    let (table, titles) = tables(&server);
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    (server, table, titles)
}

pub(crate) fn department(title: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", "dept").with("Title", title)
}

pub(crate) fn title(title: &str) -> DynamicEntity {
    DynamicEntity::new("Titles", "Sales").with("Title", title)
}

/// A step that writes the title of the department elsewhere.
pub(crate) fn set_title(titles: &TableClient, name: &str) -> Step {
    Step::upsert_replace(titles, &title(name))
}

fn delete_title(titles: &TableClient) -> Step {
    Step::delete(titles, ("Titles", "Sales"))
}

/// A transaction with these steps.
fn write(table: &TableClient, steps: impl IntoIterator<Item = Step>) -> Batch<'static> {
    let batch = table.batch("Sales").upsert_replace(&department("a"));
    steps.into_iter().fold(batch, Batch::step)
}

/// Commits a transaction with these steps, and applies them.
async fn commit(table: &TableClient, steps: impl IntoIterator<Item = Step>) {
    write(table, steps).await.unwrap();
}

/// Commits a transaction with these steps, which are left to a worker.
async fn leave(table: &TableClient, steps: impl IntoIterator<Item = Step>) {
    write(table, steps).leave_steps().await.unwrap();
}

/// The report of a worker without handlers.
async fn drain(table: &TableClient) -> DrainReport {
    Outbox::new(table).drain().await.unwrap()
}

/// A worker whose handler always fails, and how often it was called.
fn failing(table: &TableClient) -> (Outbox, Arc<AtomicU32>) {
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let outbox = Outbox::new(table).on(move |_: Received<Renamed>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Err("the mail server is down".into()) }
    });
    (outbox, calls)
}

/// The row keys of the outbox in all tables, as they are stored.
pub(crate) fn outbox_rows(server: &TableServer) -> Vec<String> {
    let dump = server.dump().unwrap();
    let lines = dump.lines();
    let keys = lines.filter_map(|line| line.split_once("RowKey='~tablesdk.outbox."));
    keys.map(|(_, rest)| rest.trim_end_matches("')").to_owned())
        .collect()
}

/// A string property of an entity; `None` where there is no entity.
pub(crate) async fn stored(table: &TableClient, key: (&str, &str), name: &str) -> Option<String> {
    let found = table.get::<DynamicEntity>(key).await.unwrap()?;
    Some(found.properties().read(name).unwrap())
}

pub(crate) async fn stored_title(titles: &TableClient) -> Option<String> {
    stored(titles, ("Titles", "Sales"), "Title").await
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Renamed {
    pub(crate) title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

pub(crate) fn renamed(title: &str) -> Step {
    Step::message(&Renamed {
        title: title.to_owned(),
    })
}

fn report(applied: u64, waiting: u64, failed: u64, set_aside: u64) -> DrainReport {
    let mut report = DrainReport::default();
    (report.applied, report.waiting) = (applied, waiting);
    (report.failed, report.set_aside) = (failed, set_aside);
    report
}

fn by_number(titles: &TableClient, n: usize) -> Step {
    Step::upsert_replace(titles, &DynamicEntity::new("Titles", n.to_string()))
}
