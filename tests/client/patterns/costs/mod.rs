//! The costs of each way to do the tasks of the design guide, as the server counts them, for the
//! tables in the guides `patterns` and `indexes`.
//!
//! With `TABLESDK_WRITE_COSTS=1` the tests rewrite the tables.

mod encryption;
mod eventually;
mod expiry;
mod explained;
mod large_values;
mod leases;
mod patterns;
mod queries;
mod relationships;
mod verbs;

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use harness::client;
use harness::generated::assert_generated;
use tablesdk::{TableClient, TableServiceClient, WritableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Journal, RecordedRequest};
use tokio::runtime::{Builder, Runtime};

/// Runs the ways, and counts.
struct Costs {
    runtime: Runtime,
    server: TableServer,
    service: TableServiceClient,
    journal: Journal,
    /// The lines of the table.
    text: String,
}

/// Requests, entities and bytes of bodies.
struct Cost {
    requests: usize,
    examined: usize,
    written: usize,
    sent: usize,
    received: usize,
}

impl Costs {
    fn new(head: &str) -> Self {
        let server = TableServer::in_process();
        let clock = server.clock();
        clock.freeze();
        clock.set("2024-03-15T10:20:30.1234567Z".parse().unwrap());
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            service: client(&server),
            journal: server.journal(),
            server,
            text: head.to_owned(),
        }
    }

    /// Each write has a timestamp of its own, whose digits count as bytes: from here on they do not
    /// depend on the writes before.
    fn next_second(&self) {
        self.server.clock().advance(Duration::from_secs(1));
    }

    /// Runs what is not counted.
    fn run<T>(&self, run: impl IntoFuture<Output = T>) -> T {
        self.runtime.block_on(run.into_future())
    }

    fn table(&self, name: &str) -> TableClient {
        self.next_second();
        let table = self.service.table(name);
        self.run(table.create_table()).unwrap();
        table
    }

    fn insert<E: WritableEntity>(
        &self,
        table: &TableClient,
        entities: impl IntoIterator<Item = E>,
    ) {
        for entity in entities {
            self.run(table.insert(&entity)).unwrap();
        }
    }

    /// A new table with these entities.
    fn table_with<E: WritableEntity>(
        &self,
        name: &str,
        entities: impl IntoIterator<Item = E>,
    ) -> TableClient {
        let table = self.table(name);
        self.insert(&table, entities);
        table
    }

    /// Begins a task of a section of the design guide.
    fn task(&mut self, section: &str, task: &str) {
        self.text += &format!("| **{section}**: {task} | | | | | |\n");
    }

    /// Runs a way, and counts what it costs.
    fn measure<T>(&self, run: impl IntoFuture<Output = T>) -> (T, Cost) {
        self.next_second();
        self.journal.clear();
        let result = self.run(run);
        let requests = self.journal.requests();
        let sum =
            |count: &dyn Fn(&RecordedRequest) -> usize| requests.iter().map(count).sum::<usize>();
        let written = |request: &RecordedRequest| match request.op {
            Some(op) if op.is_write() => request.entities.len(),
            _ => 0,
        };
        let cost = Cost {
            requests: requests.count(),
            examined: sum(&|request| usize::try_from(request.entities_examined).unwrap()),
            written: sum(&written),
            sent: sum(&|request| request.bytes_in),
            received: sum(&|request| request.bytes_out),
        };
        (result, cost)
    }

    /// The costs of a way that succeeds.
    fn cost<T, E: Debug>(&self, run: impl IntoFuture<Output = Result<T, E>>) -> Cost {
        let (result, cost) = self.measure(run);
        result.unwrap();
        cost
    }

    /// Adds what a way costs, and returns what it returns.
    fn way<T>(&mut self, way: &str, run: impl IntoFuture<Output = T>) -> T {
        let (result, cost) = self.measure(run);
        let entities = format!("{} | {}", cost.examined, cost.written);
        let bytes = format!("{} | {}", cost.sent, cost.received);
        self.text += &format!("| {way} | {} | {entities} | {bytes} |\n", cost.requests);
        result
    }

    /// Adds what a way costs that reads so many entities.
    fn read<T, E: Debug>(
        &mut self,
        way: &str,
        count: usize,
        run: impl IntoFuture<Output = Result<Vec<T>, E>>,
    ) {
        assert_eq!(self.way(way, run).unwrap().len(), count, "{way}");
    }

    /// Asserts that the guide shows the table.
    fn assert_shown(&self, guide: &str) {
        let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tablesdk/src/guide");
        let marks = ["<!-- costs -->\n", "<!-- end of costs -->"];
        let variable = "TABLESDK_WRITE_COSTS";
        assert_generated(&guides.join(guide), marks, &self.text, variable);
    }
}

#[test]
fn the_guide_shows_what_each_way_costs() {
    let head = "\n| task, and the ways to do it | requests | examined | written | sent | received |\n|---|--:|--:|--:|--:|--:|\n";
    let mut costs = Costs::new(head);
    queries::run(&mut costs);
    relationships::run(&mut costs);
    patterns::run(&mut costs);
    leases::run(&mut costs);
    encryption::run(&mut costs);
    costs.assert_shown("patterns.md");
}
