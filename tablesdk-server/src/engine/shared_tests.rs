//! The engines of several servers over one storage: what they see of each other, and how many round
//! trips they take.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{
    Clock, EntityKey, IfMatch, SignedIdentifier, TableName, Timestamp, ValueRef,
};

use super::*;
use crate::storage::SharedStorage;
use crate::storage::shared_tests::SharedMemory;
use crate::time::monotonic_clock::tests::ManualClock;

/// A server, with a clock of its own.
struct Server {
    engine: Engine,
    clock: Arc<ManualClock>,
}

impl Server {
    fn new(storage: &Arc<SharedMemory>, now: &str) -> Self {
        let clock = ManualClock::new(now);
        let storage = Arc::clone(storage) as Arc<dyn SharedStorage>;
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let engine = Engine::new(storage, time, Paging::default()).unwrap();
        Self { engine, clock }
    }

    async fn run(&self, command: Command<'_>) -> Result<Timestamp, Failure> {
        let outcome = self.engine.commit("acct", &command).await;
        outcome.map(|outcome| outcome.timestamp)
    }

    async fn change(&self, row_key: &str, action: Action<'_>) -> Result<Timestamp, Failure> {
        let key = &key(row_key);
        self.run(Command::Change(&people(), Change { key, action }))
            .await
    }

    /// The row keys of the people whose number is above a minimum.
    async fn find(&self, filter: Option<&str>) -> Vec<String> {
        let filter = filter.map(|filter| filter.parse().unwrap());
        let within = KeyBounds::default();
        let opened = self.engine.open(|view| {
            let scan = Scan::new(&Query {
                table: view.require_table("acct", &people())?,
                filter: filter.as_ref(),
                from: None,
                within: &within,
            });
            scan.announce(view, 1000);
            Ok::<_, Failure>(scan)
        });
        let (mut scan, view) = opened.await.unwrap();
        let mut found = Vec::new();
        loop {
            let mut budget = ScanBudget::unlimited();
            let end = scan.slice(&view, &mut budget, |entity| {
                found.push(entity.head().row_key.to_owned());
                Ok(ControlFlow::Continue(()))
            });
            match end.unwrap() {
                SliceEnd::Ended => return found,
                SliceEnd::NotFetched => {
                    scan.announce(&view, 1000);
                    assert!(view.fetch_next().await.unwrap());
                }
                end => panic!("{end:?}"),
            }
        }
    }

    async fn timestamp(&self, row_key: &str) -> Option<Timestamp> {
        let read = self.engine.read(|view| {
            let table = view.require_table("acct", &people())?;
            let key = key(row_key);
            let row = view.entity(table, &key)?;
            let entity = row.as_ref().map(|row| row.open(&key)).transpose()?;
            Ok::<_, Failure>(entity.map(|entity| entity.head().timestamp))
        });
        read.await.unwrap()
    }
}

fn people() -> TableName {
    "people".parse().unwrap()
}

fn key(row_key: &str) -> EntityKey {
    EntityKey::new("p", row_key).unwrap()
}

const INSERT: Action<'_> = Action::Insert(&Properties::NONE);
const DELETE: Action<'_> = Action::Delete(&IfMatch::Any);
const NOW: &str = "2024-03-15T10:20:30Z";

/// Two servers, whose clocks differ by ten minutes, and a table.
async fn servers() -> (Arc<SharedMemory>, Server, Server) {
    servers_over(Arc::default()).await
}

async fn servers_over(storage: Arc<SharedMemory>) -> (Arc<SharedMemory>, Server, Server) {
    let one = Server::new(&storage, NOW);
    let other = Server::new(&storage, "2024-03-15T10:10:30Z");
    one.run(Command::CreateTable(&people())).await.unwrap();
    for server in [&one, &other] {
        assert_eq!(server.timestamp("none").await, None);
    }
    storage.round_trips();
    (storage, one, other)
}

#[tokio::test]
async fn a_read_takes_one_round_trip_and_a_write_at_most_two() {
    let (storage, one, other) = servers().await;
    one.change("a", INSERT).await.unwrap();
    assert_eq!(storage.round_trips(), 1);
    one.timestamp("a").await.unwrap();
    assert_eq!(storage.round_trips(), 1);
    let exists = Failure::Rejected(Rejection::EntityAlreadyExists);
    assert_eq!(one.change("a", INSERT).await, Err(exists));
    assert_eq!(storage.round_trips(), 2);
    one.change("a", DELETE).await.unwrap();
    assert_eq!(storage.round_trips(), 2);
    // A removed record is replaced without being read.
    one.change("a", INSERT).await.unwrap();
    assert_eq!(storage.round_trips(), 1);
    assert_eq!(other.find(None).await, ["a"]);
    assert_eq!(storage.round_trips(), 1);
    let keys: Vec<_> = (0..100).map(|number| key(&number.to_string())).collect();
    for (action, round_trips) in [(INSERT, 1), (DELETE, 2)] {
        let change = |key| Change { key, action };
        let changes: Vec<_> = keys.iter().map(change).collect();
        let table = people();
        let batch = Command::Batch(&table, &changes);
        one.run(batch).await.unwrap();
        assert_eq!(storage.round_trips(), round_trips);
    }
    for name in ["one", "two"] {
        let name = name.parse().unwrap();
        other.run(Command::CreateTable(&name)).await.unwrap();
    }
    other
        .run(Command::DeleteTable(&people(), Duration::ZERO))
        .await
        .unwrap();
    // The id of a table leads to the keys of its policies.
    assert!(storage.round_trips() <= 7);
}

#[tokio::test]
async fn a_table_that_another_server_created_again_is_found() {
    let (_, one, other) = servers().await;
    other.change("old", INSERT).await.unwrap();
    one.run(Command::DeleteTable(&people(), Duration::ZERO))
        .await
        .unwrap();
    let missing = Failure::Rejected(Rejection::TableNotFound);
    assert_eq!(other.change("a", INSERT).await, Err(missing));
    one.run(Command::CreateTable(&people())).await.unwrap();
    assert_eq!(other.find(None).await, <[&str; 0]>::default());
    other.change("new", INSERT).await.unwrap();
    assert_eq!(one.find(None).await, ["new"]);
}

#[tokio::test]
async fn policies_of_another_server_are_seen_at_once() {
    let (_, one, other) = servers().await;
    let policies = async |server: &Server| {
        let read = server.engine.read(|view| {
            let table = view.require_table("acct", &people())?;
            Ok::<_, Failure>(view.policies(table)?.len())
        });
        read.await.unwrap()
    };
    let stored = [SignedIdentifier::default()];
    for server in [&one, &other, &one] {
        server
            .run(Command::SetTableAcl(&people(), &stored))
            .await
            .unwrap();
        assert_eq!((policies(&one).await, policies(&other).await), (1, 1));
        server
            .run(Command::SetTableAcl(&people(), &[]))
            .await
            .unwrap();
        assert_eq!((policies(&one).await, policies(&other).await), (0, 0));
    }
}

#[tokio::test]
async fn timestamps_increase_although_clocks_differ() {
    let (_, one, other) = servers().await;
    let upsert = Action::Update {
        mode: Mode::Replace,
        if_match: None,
        properties: &Properties::NONE,
    };
    let mut last = one.change("a", INSERT).await.unwrap();
    for _ in 0..3 {
        for (server, action) in [
            (&other, upsert),
            (&other, DELETE),
            (&other, INSERT),
            (&one, upsert),
            (&other, upsert),
        ] {
            let timestamp = server.change("a", action).await.unwrap();
            assert!(timestamp > last, "{timestamp} after {last}");
            last = timestamp;
        }
    }
    assert_eq!(one.timestamp("a").await, Some(last));
}

#[tokio::test]
async fn a_write_that_comes_between_is_seen() {
    let (storage, one, other) = servers().await;
    let count = |count| Properties::from_iter([("count", ValueRef::Int32(count))]);
    one.change("a", Action::Insert(&count(1))).await.unwrap();
    storage.before_commit(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let write = async move { other.change("a", DELETE).await.unwrap() };
        let run = move || { runtime }.build().unwrap().block_on(write);
        std::thread::spawn(run).join().unwrap();
    });
    // It was decided on the entity that exists, and is decided again.
    let merge = Action::Update {
        mode: Mode::Merge,
        if_match: Some(&IfMatch::Any),
        properties: &count(2),
    };
    let missing = Failure::Rejected(Rejection::ResourceNotFound);
    assert_eq!(one.change("a", merge).await, Err(missing));
}

#[tokio::test]
async fn a_scan_goes_on_from_part_to_part() {
    for part in [1, 2, 3, 7, 1000] {
        let (_, one, other) = servers_over(SharedMemory::with_parts_of(part)).await;
        let mut expected = Vec::new();
        for number in 0..20 {
            let row_key = format!("{number:02}");
            let number = Properties::from_iter([("n", ValueRef::Int32(number))]);
            one.change(&row_key, Action::Insert(&number)).await.unwrap();
            expected.push(row_key);
        }
        assert_eq!(other.find(None).await, expected);
        assert_eq!(other.find(Some("n ge 15")).await, expected[15..]);
        let some = "RowKey eq '03' or RowKey ge '05' and RowKey lt '08' or RowKey eq '19'";
        let some = format!("PartitionKey eq 'p' and ({some})");
        assert_eq!(
            other.find(Some(&some)).await,
            ["03", "05", "06", "07", "19"]
        );
    }
}

#[tokio::test]
async fn points_are_read_in_one_round_trip() {
    let (storage, one, other) = servers().await;
    for row_key in ["a", "b", "c"] {
        one.change(row_key, INSERT).await.unwrap();
    }
    storage.round_trips();
    let filter = "PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'c' or RowKey eq 'x')";
    assert_eq!(other.find(Some(filter)).await, ["a", "c"]);
    assert_eq!(storage.round_trips(), 1);
}

#[tokio::test]
async fn one_server_at_a_time_cleans_up() {
    let (storage, one, other) = servers().await;
    for row_key in ["a", "b"] {
        one.change(row_key, INSERT).await.unwrap();
    }
    one.run(Command::DeleteTable(&people(), Duration::ZERO))
        .await
        .unwrap();
    let (mut first, mut second) = (SharedCleanUp::new(), SharedCleanUp::new());
    let step = async |server: &Server, clean_up: &mut SharedCleanUp| {
        server.engine.shared_clean_up_step(clean_up).await.unwrap()
    };
    assert!(step(&one, &mut first).await);
    assert_eq!(storage.count(b'e'), 0);
    assert!(
        !step(&other, &mut second).await,
        "the first one has the lease"
    );
    assert!(step(&one, &mut first).await);
    assert!(!step(&one, &mut first).await);
    assert_eq!(storage.count(b's'), 1, "an entity may come late");
    // The first server has stopped.
    let later = one.clock.now().saturating_add(Duration::from_secs(700));
    other.clock.set(later);
    assert!(!step(&other, &mut second).await);
    assert_eq!(storage.count(b's'), 0);
}
