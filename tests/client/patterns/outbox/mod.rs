//! The outbox: steps and messages that follow a transaction.

mod effects;
mod messages;
mod poisoned;
mod workers;
mod writers;

use std::time::Duration;

use harness::client_with;
use serde::{Deserialize, Serialize};
use tablesdk::outbox::{DrainReport, Message, Step};
use tablesdk::{DynamicEntity, RetryPolicy, TableClient};
use tablesdk_server::TableServer;

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// A server, the table of the transactions, and a table that steps write.
pub(super) fn tables(server: &TableServer) -> (TableClient, TableClient) {
    let service = client_with(server, |builder| builder.retry(RetryPolicy::exponential()));
    (service.table("Company"), service.table("Titles"))
}

pub(super) async fn company() -> (TableServer, TableClient, TableClient) {
    let server = TableServer::in_process();
    let (table, titles) = tables(&server);
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    (server, table, titles)
}

pub(super) fn department(title: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", "dept").with("Title", title)
}

pub(super) fn title(title: &str) -> DynamicEntity {
    DynamicEntity::new("Titles", "Sales").with("Title", title)
}

/// The row keys of the outbox in all tables, as they are stored.
pub(super) fn outbox_rows(server: &TableServer) -> Vec<String> {
    let dump = server.dump().unwrap();
    let keys = dump
        .lines()
        .filter_map(|line| line.split_once("RowKey='~tablesdk.outbox."));
    keys.map(|(_, rest)| rest.trim_end_matches("')").to_owned())
        .collect()
}

/// A string property of an entity; `None` where there is no entity.
pub(super) async fn stored(table: &TableClient, key: (&str, &str), name: &str) -> Option<String> {
    let found = table.get::<DynamicEntity>(key).await.unwrap()?;
    Some(found.properties().read(name).unwrap())
}

pub(super) async fn stored_title(titles: &TableClient) -> Option<String> {
    stored(titles, ("Titles", "Sales"), "Title").await
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Renamed {
    pub(super) title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

pub(super) fn renamed(title: &str) -> Step {
    Step::message(&Renamed {
        title: title.to_owned(),
    })
}

pub(super) fn report(applied: u64, waiting: u64, failed: u64, set_aside: u64) -> DrainReport {
    let mut report = DrainReport::default();
    report.applied = applied;
    report.waiting = waiting;
    report.failed = failed;
    report.set_aside = set_aside;
    report
}

pub(super) fn by_number(titles: &TableClient, n: usize) -> Step {
    Step::upsert_replace(titles, &DynamicEntity::new("Titles", n.to_string()))
}
