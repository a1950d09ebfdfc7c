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

/// The row keys of the outbox in all tables, as they are stored.
pub(crate) fn outbox_rows(server: &TableServer) -> Vec<String> {
    let dump = server.dump().unwrap();
    let keys = dump
        .lines()
        .filter_map(|line| line.split_once("RowKey='~tablesdk.outbox."));
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

pub(crate) fn report(applied: u64, waiting: u64, failed: u64, set_aside: u64) -> DrainReport {
    let mut report = DrainReport::default();
    report.applied = applied;
    report.waiting = waiting;
    report.failed = failed;
    report.set_aside = set_aside;
    report
}

pub(crate) fn by_number(titles: &TableClient, n: usize) -> Step {
    Step::upsert_replace(titles, &DynamicEntity::new("Titles", n.to_string()))
}
