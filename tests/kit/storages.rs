//! The kit of servers with each storage: in memory, in a data directory and over PostgreSQL.

use std::io;
use std::time::Duration;

use harness::postgres::{self, Database};
use tablesdk::{DynamicEntity, RetryPolicy};
use tablesdk_server::testing::{Fault, Op, Throttle};
use tablesdk_server::{Durability, TableServer, TableServerBuilder};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{Employee, Subject, eager, faults};

/// A server over HTTP, and what its storage needs.
struct Stored {
    subject: Subject,
    is_in_memory: bool,
    has_dump: bool,
    _directory: Option<TempDir>,
    /// Dropped after the server.
    _database: Option<Database>,
}

impl Stored {
    async fn start(
        builder: TableServerBuilder,
        directory: Option<TempDir>,
        database: Option<Database>,
    ) -> Self {
        Self {
            subject: Subject::of(builder.start().await.unwrap()),
            is_in_memory: directory.is_none() && database.is_none(),
            has_dump: database.is_none(),
            _directory: directory,
            _database: database,
        }
    }

    async fn in_memory() -> Option<Self> {
        Some(Self::start(TableServer::builder(), None, None).await)
    }

    async fn in_a_directory() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let builder = TableServer::builder().data(directory.path(), Durability::Relaxed);
        Some(Self::start(builder, Some(directory), None).await)
    }

    /// `None` if there is no PostgreSQL on this machine.
    async fn over_postgres() -> Option<Self> {
        let database = postgres::database()?;
        let builder = TableServer::builder().postgres(database.url());
        Some(Self::start(builder, None, Some(database)).await)
    }
}

/// Runs each test with each storage.
macro_rules! with_each_storage {
    ($(async fn $name:ident($stored:ident: Stored) $body:block)*) => {
        $(mod $name {
            use super::*;

            async fn test($stored: Stored) $body

            #[tokio::test]
            async fn in_memory() {
                test(Stored::in_memory().await.unwrap()).await;
            }

            #[tokio::test]
            async fn in_a_data_directory() {
                test(Stored::in_a_directory().await.unwrap()).await;
            }

            #[tokio::test]
            async fn over_postgres() {
                if let Some(stored) = Stored::over_postgres().await {
                    test(stored).await;
                }
            }
        })*
    };
}

with_each_storage! {
    async fn faults_decide_whether_a_request_is_carried_out(stored: Stored) {
        faults::decide_whether_the_request_is_carried_out(&stored.subject).await;
    }

    async fn late_and_delayed_requests_are_carried_out(stored: Stored) {
        let Stored { subject, .. } = &stored;
        let table = subject.table(RetryPolicy::none()).await;
        let journal = subject.server.journal();
        let soon = Duration::from_millis(20);
        for fault in [
            Fault::delay(soon),
            Fault::delayed_response(soon),
            Fault::reset().applied_after(soon),
            Fault::no_response().applied(),
            Fault::late_duplicate(soon),
        ] {
            journal.clear();
            let limit = RetryPolicy::none().try_timeout(Duration::from_millis(200));
            let write = subject.service(limit).table("People");
            let rule = subject.server.faults().next(Op::InsertOrReplaceEntity, fault.clone());
            let _ = write.upsert_replace(&Employee::ada()).await;
            // A request without a response ends by this.
            subject.server.faults().clear();
            let writes = || journal.requests().op(Op::InsertOrReplaceEntity).status(204).count();
            let expected = if fault == Fault::late_duplicate(soon) { 2 } else { 1 };
            let written = async {
                while writes() < expected {
                    tokio::task::yield_now().await;
                }
            };
            let found = timeout(Duration::from_secs(10), written).await;
            assert!(found.is_ok(), "{fault}: {:?}", journal.requests());
            assert_eq!(rule.hits(), 1, "{fault}");
            assert!(table.delete(("Sales", "1")).await.unwrap(), "{fault}");
        }
    }

    async fn chaos_loses_nothing(stored: Stored) {
        let Stored { subject, .. } = &stored;
        let table = subject.table(eager().attempts(20)).await;
        let chaos = subject.server.faults().chaos(7);
        for id in 0..60 {
            let employee = Employee::new(&id.to_string(), "Ada", 36);
            table.upsert_replace(&employee).await.unwrap();
        }
        assert!(chaos.hits() > 0);
        subject.server.faults().clear();
        assert_eq!(table.query::<Employee>().count().await.unwrap(), 60);
    }

    async fn the_journal_counts_what_requests_read(stored: Stored) {
        let Stored { subject, .. } = &stored;
        let table = subject.table(RetryPolicy::none()).await;
        for id in 0..5 {
            table.insert(&Employee::new(&id.to_string(), "Ada", id)).await.unwrap();
        }
        let journal = subject.server.journal();
        table.query::<Employee>().odata("Age ge 3").collect().await.unwrap();
        table.get(Employee::key("Sales", "1")).await.unwrap();
        let requests = journal.requests();
        let counts: Vec<_> = requests
            .iter()
            .map(|it| (it.op.unwrap(), it.entities_examined, it.entities_returned))
            .collect();
        assert_eq!(counts[0], (Op::QueryEntities, 5, 2));
        assert_eq!((counts[1].0, counts[1].2), (Op::QueryEntity, 1));
        assert!(journal.lints().iter().any(|lint| lint.to_string().contains("People")));
    }

    async fn the_throttle_and_the_timestamps_follow_the_clock(stored: Stored) {
        let Stored { subject, .. } = &stored;
        let table = subject.table(RetryPolicy::none()).await;
        let clock = subject.server.clock();
        clock.freeze();
        subject.server.faults().throttle(Throttle::none().per_partition(2));
        let mut written = Vec::new();
        for _ in 0..3 {
            for _ in 0..3 {
                match table.upsert_replace(&Employee::ada()).await {
                    Ok(stored) => written.push(stored.timestamp().unwrap()),
                    Err(error) => assert!(error.is_throttled(), "{error}"),
                }
            }
            clock.advance(Duration::from_secs(60));
        }
        assert_eq!(written.len(), 6);
        assert!(written.is_sorted());
        // Each write has a timestamp of its own.
        let since = written[4].abs_diff(written[0]);
        let moved = Duration::from_secs(120);
        assert!(since.abs_diff(moved) < Duration::from_millis(1), "{since:?}");
    }

    async fn ranges_end_pages_and_move(stored: Stored) {
        let Stored { subject, .. } = &stored;
        let table = subject.table(RetryPolicy::none()).await;
        for partition in ["a", "m", "z"] {
            table.insert(&DynamicEntity::new(partition, "1")).await.unwrap();
        }
        let clock = subject.server.clock();
        clock.freeze();
        let partitions = subject.server.partitions("People").unwrap();
        partitions.split_at("m").unwrap();
        let query = || table.query::<DynamicEntity>().one_response();
        let first = query().page(None).await.unwrap();
        assert_eq!(first.items.len(), 1);
        partitions.move_range("m").unwrap();
        let next = || query().page(first.next.clone());
        assert!(next().await.unwrap_err().is_throttled());
        clock.advance(Duration::from_secs(3));
        assert!(!next().await.unwrap_err().is_throttled());
        clock.advance(Duration::from_secs(2));
        assert_eq!(next().await.unwrap().items.len(), 2);
    }

    async fn snapshots_are_of_a_server_in_memory_and_others_say_so(stored: Stored) {
        let Stored { subject, is_in_memory, .. } = &stored;
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        let kept = TableServer::in_process().snapshot().unwrap();
        for result in [
            subject.server.snapshot().map(drop),
            subject.server.restore(&kept),
            subject.server.reset(),
        ] {
            let Err(error) = result else {
                assert!(is_in_memory);
                continue;
            };
            assert_eq!((*is_in_memory, error.kind()), (false, io::ErrorKind::Unsupported), "{error}");
            assert!(subject.has_ada().await, "nothing has changed");
        }
    }

    async fn tables_are_loaded_and_dumped(stored: Stored) {
        let Stored { subject, .. } = &stored;
        let line = r#"{"table":"People","entity":{"PartitionKey":"Sales","RowKey":"1"}}"#;
        subject.server.load(line).await.unwrap();
        let table = subject.service(RetryPolicy::none()).table("People");
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 1);
        match subject.server.dump() {
            Ok(text) => assert_eq!(text, "People\nPeople(PartitionKey='Sales',RowKey='1')\n"),
            // Of a database, no snapshot of all records is taken.
            Err(error) => assert!(error.to_string().contains("servers share"), "{error}"),
        }
        assert_eq!(subject.server.dump().is_ok(), stored.has_dump);
    }
}
