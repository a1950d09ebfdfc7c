//! What each way to do the tasks of the design guide costs, as the server counts it, for the table in the guide `patterns`.
//!
//! With `TABLESDK_WRITE_COSTS=1` the test rewrites the table.

mod encryption;
mod eventually;
mod expiry;
mod large_values;
mod leases;
mod patterns;
mod queries;
mod relationships;

use std::path::Path;
use std::time::Duration;

use futures::stream;
use harness::client;
use harness::generated::assert_generated;
use tablesdk::action::BulkEntity;
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Journal, RecordedRequest};

/// Runs the ways, and counts.
struct Costs {
    server: TableServer,
    service: TableServiceClient,
    journal: Journal,
    text: String,
}

impl Costs {
    fn new() -> Self {
        let server = TableServer::in_process();
        let clock = server.clock();
        clock.freeze();
        clock.set("2024-03-15T10:20:30.1234567Z".parse().unwrap());
        Self {
            service: client(&server),
            journal: server.journal(),
            server,
            text: "\n| task, and the ways to do it | requests | examined | written | sent | received |\n|---|--:|--:|--:|--:|--:|\n".to_owned(),
        }
    }

    /// Each write has a timestamp of its own, whose digits count as bytes: from here on they do not depend on the writes before.
    fn next_second(&self) {
        self.server.clock().advance(Duration::from_secs(1));
    }

    async fn table(&self, name: &str) -> TableClient {
        self.next_second();
        let table = self.service.table(name);
        table.create_table().await.unwrap();
        table
    }

    /// A new table with these entities.
    async fn table_with<E: BulkEntity<By> + Send, By>(
        &self,
        name: &str,
        entities: Vec<E>,
    ) -> TableClient {
        let table = self.table(name).await;
        let insert = table.bulk().insert(stream::iter(entities)).concurrency(1);
        let report = insert.await.unwrap();
        assert!(report.is_success());
        table
    }

    /// Begins a task of a section of the design guide.
    fn task(&mut self, section: &str, task: &str) {
        self.text += &format!("| **{section}**: {task} | | | | | |\n");
    }

    /// Adds what a way costs.
    async fn way(&mut self, way: &str, run: impl Future<Output = ()>) {
        self.next_second();
        self.journal.clear();
        run.await;
        let requests = self.journal.requests();
        let sum =
            |count: &dyn Fn(&RecordedRequest) -> usize| requests.iter().map(count).sum::<usize>();
        let written = |request: &RecordedRequest| match request.op {
            Some(op) if op.is_write() => request.entities.len(),
            _ => 0,
        };
        self.text += &format!(
            "| {way} | {} | {} | {} | {} | {} |\n",
            requests.count(),
            sum(&|request| usize::try_from(request.entities_examined).unwrap()),
            sum(&written),
            sum(&|request| request.bytes_in),
            sum(&|request| request.bytes_out),
        );
    }
}

#[tokio::test]
async fn the_guide_shows_what_each_way_costs() {
    let mut costs = Costs::new();
    queries::run(&mut costs).await;
    relationships::run(&mut costs).await;
    patterns::run(&mut costs).await;
    leases::run(&mut costs).await;
    encryption::run(&mut costs).await;
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide/patterns.md");
    let marks = ["<!-- costs -->\n", "<!-- end of costs -->"];
    assert_generated(&guide, marks, &costs.text, "TABLESDK_WRITE_COSTS");
}
