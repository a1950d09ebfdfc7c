//! Snapshots, dumps and files of a server's tables.

use std::time::Duration;

use tablesdk::{DynamicEntity, Guid, RetryPolicy, TableClient, Timestamp};
use tablesdk_server::testing::{Fault, Op};
use tablesdk_server::{Durability, TableServer};
use tokio::time::{Instant, timeout};

use crate::{Employee, Subject, over_http_and_in_process, service_over_http};

/// An entity with every type and awkward characters.
fn every_type() -> DynamicEntity {
    let time: Timestamp = "2024-03-15T10:20:30.1234567Z".parse().unwrap();
    DynamicEntity::new("it's", "ä\u{10ffff}")
        .with("Binary", vec![0_u8, 255])
        .with("Boolean", true)
        .with("DateTime", time)
        .with("Double", 1.0)
        .with("Guid", Guid::from_bytes([7; 16]))
        .with("Int32", -1)
        .with("Int64", 1_i64)
        .with("String", "O'Hare\n\"")
}

async fn names(table: &TableClient) -> Vec<String> {
    let all = table.query::<Employee>().collect().await.unwrap();
    all.iter().map(|employee| employee.name.clone()).collect()
}

over_http_and_in_process! {
    async fn a_snapshot_is_restored_any_number_of_times(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        let before = subject.server.snapshot().unwrap();
        for _ in 0..2 {
            table.upsert_replace(&Employee::grace()).await.unwrap();
            table.insert(&Employee::new("2", "Alan", 41)).await.unwrap();
            subject.service(RetryPolicy::none()).table("More").create_table().await.unwrap();
            assert_eq!(names(&table).await, ["Grace", "Alan"]);
            subject.server.restore(&before).unwrap();
            assert_eq!(names(&table).await, ["Ada"]);
        }
        let tables = subject.service(RetryPolicy::none()).tables().collect().await.unwrap();
        assert_eq!(tables, ["People"]);
    }

    async fn a_deleted_table_is_restored(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        for id in 0..600 {
            table.insert(&Employee::new(&id.to_string(), "Ada", 36)).await.unwrap();
        }
        let before = subject.server.snapshot().unwrap();
        for _ in 0..3 {
            table.delete_table().await.unwrap();
            // A clean-up of the table may be running, and must not remove what comes back.
            subject.server.restore(&before).unwrap();
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            assert_eq!(table.query::<Employee>().count().await.unwrap(), 600);
        }
    }

    async fn no_etag_of_before_is_one_of_after(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let before = subject.server.snapshot().unwrap();
        let clock = subject.server.clock();
        clock.freeze();
        let first = table.insert(&Employee::ada()).await.unwrap();
        subject.server.restore(&before).unwrap();
        let second = table.insert(&Employee::grace()).await.unwrap();
        assert_ne!(first.etag(), second.etag());
    }

    async fn a_reset_server_is_empty(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        subject.server.reset().unwrap();
        assert_eq!(subject.server.dump().unwrap(), "");
        table.create_table().await.unwrap();
        assert!(names(&table).await.is_empty());
    }

    async fn a_dump_is_sorted_and_shows_types(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        table.insert(&every_type()).await.unwrap();
        subject.service(RetryPolicy::none()).table("Empty").create_table().await.unwrap();
        let expected = "\
Empty
People
People(PartitionKey='Sales',RowKey='1')
  Age = 36
  Name = \"Ada\"
People(PartitionKey='it''s',RowKey='ä\u{10ffff}')
  Binary = X'00ff'
  Boolean = true
  DateTime = datetime'2024-03-15T10:20:30.1234567Z'
  Double = 1.0
  Guid = guid'07070707-0707-0707-0707-070707070707'
  Int32 = -1
  Int64 = 1L
  String = \"O'Hare\\n\\\"\"
";
        assert_eq!(subject.server.dump().unwrap(), expected);
    }

    async fn saved_lines_are_loaded_elsewhere(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&every_type()).await.unwrap();
        table.insert(&Employee::ada()).await.unwrap();
        let lines = subject.server.save().unwrap();
        let other = TableServer::in_process();
        other.load(&lines).await.unwrap();
        assert_eq!(other.dump().unwrap(), subject.server.dump().unwrap());
    }

    async fn faults_and_clock_survive_a_restore(subject: Subject) {
        let before = subject.server.snapshot().unwrap();
        let clock = subject.server.clock();
        clock.freeze();
        let rule = subject.server.faults().on_writes().times(1).inject(Fault::reset());
        subject.server.restore(&before).unwrap();
        clock.advance(Duration::from_secs(1));
        let table = subject.service(RetryPolicy::none()).table("People");
        table.create_table().await.unwrap_err();
        assert!(clock.is_frozen() && rule.hits() == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_of_before_has_an_effect_after_a_reset() {
    let subject = Subject::in_process();
    let server = &subject.server;
    let table = subject.table(RetryPolicy::none()).await;
    let minute = Duration::from_secs(60);
    for fault in [Fault::reset().applied_after(minute), Fault::delay(minute)] {
        let rule = server.faults().next(Op::InsertEntity, fault);
        let given_up = timeout(minute / 2, table.insert(&Employee::ada())).await;
        assert!(!matches!(given_up, Ok(Ok(_))) && rule.hits() == 1);
        server.faults().clear();
        server.reset().unwrap();
        table.create_table().await.unwrap();
        tokio::time::sleep(2 * minute).await;
        assert_eq!(server.dump().unwrap(), "People\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_breaks_the_connection_of_a_delayed_request() {
    let subject = Subject::in_process();
    let server = &subject.server;
    let hour = Duration::from_secs(3600);
    let mut rule = server.faults().next(Op::CreateTable, Fault::delay(hour));
    let table = subject.service(RetryPolicy::none()).table("People");
    let reset = async {
        rule.wait_for_hits(1).await;
        server.reset().unwrap();
    };
    let began = Instant::now();
    let (created, ()) = tokio::join!(table.create_table(), reset);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(created.unwrap_err().is_outcome_unknown());
    assert_eq!(server.dump().unwrap(), "");
}

#[tokio::test]
async fn a_shutdown_ends_the_waits_of_faults() {
    let server = TableServer::start().await.unwrap();
    let service = service_over_http(&server, RetryPolicy::none());
    let hour = Duration::from_secs(3600);
    let mut silent = server.faults().next(Op::CreateTable, Fault::no_response());
    let mut slow = server.faults().next(Op::QueryTables, Fault::delay(hour));
    let table = service.table("People");
    let shutdown = async {
        silent.wait_for_hits(1).await;
        slow.wait_for_hits(1).await;
        server.shutdown().await
    };
    let tables = service.tables().collect();
    let (created, tables, ended) = tokio::join!(table.create_table(), tables, shutdown);
    assert!(created.unwrap_err().is_outcome_unknown());
    assert_eq!(tables.unwrap(), Vec::<String>::new());
    ended.unwrap();
}

#[tokio::test]
async fn a_late_request_does_not_hold_a_data_directory() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let builder = TableServer::builder().data(directory.path(), Durability::Sync);
        builder.in_process()
    };
    let opened_with_a_late_request = async || {
        let server = open().unwrap();
        let late = Fault::reset().applied_after(Duration::from_secs(3600));
        server.faults().next(Op::CreateTable, late);
        let retry = RetryPolicy::none();
        let service = harness::client_with(&server, |builder| builder.retry(retry));
        service.table("People").create_table().await.unwrap_err();
        server
    };
    let server = opened_with_a_late_request().await;
    server.shutdown().await.unwrap();
    drop(opened_with_a_late_request().await);
    while open().is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn lines_that_are_malformed_are_named() {
    let server = TableServer::in_process();
    for (lines, problem) in [
        (
            "{\"table\":\"People\"}\n\n{\"table\":\"a\"}",
            "line 3: the name of the table is not valid",
        ),
        (
            r#"{"table":"People","entity":{"PartitionKey":"a"}}"#,
            "line 1: 400 PropertiesNeedValue: property \"RowKey\" is missing",
        ),
        (
            r#"{"table":"People","entity":{"PartitionKey":7,"RowKey":"b"}}"#,
            "line 1: 400 InvalidInput: property \"PartitionKey\": the value is not of type Edm.String",
        ),
        (
            r#"{"table":"People","entity":{"PartitionKey":"a","RowKey":"b","Age@odata.type":"Edm.Age","Age":"7"}}"#,
            "line 1: 400 InvalidInput: property \"Age\": its annotation",
        ),
        (
            r#"{"table":"People","entity":{"PartitionKey":"a","RowKey":"b","Age":2147483648}}"#,
            "line 1: 400 InvalidInput: property \"Age\": an integer beyond Edm.Int32",
        ),
        (
            r#"{"table":"People","entity":{"PartitionKey":"a","RowKey":"b","first name":"Ada"}}"#,
            "line 1: 400 PropertyNameInvalid: property \"first name\": the character ' '",
        ),
        (
            "\n[]",
            "line 2: the line is not a JSON object with the members of a line: invalid length 0, expected an object with \"table\"",
        ),
        (
            "\n{",
            "line 2: the line is not a JSON object with the members of a line: EOF while parsing an object at column 1",
        ),
        (
            r#"{"table":"People","entity":{"PartitionKey":"a","RowKey":"b/c"}}"#,
            "line 1: 400",
        ),
        (
            r#"{"end":{"tables":1,"entities":0}}"#,
            "line 1: the file should have 1 tables and 0 entities, and has 0 and 0",
        ),
        (
            r#"{"format":"tablesdk","version":2}"#,
            "line 1: the file has version 2",
        ),
    ] {
        let error = server.load(lines).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        assert!(error.to_string().starts_with(problem), "{error}");
    }
}

#[tokio::test]
async fn a_snapshot_can_start_another_server() {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::none()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let snapshot = subject.server.snapshot().unwrap();
    let other = TableServer::in_process();
    other.restore(&snapshot).unwrap();
    let others = harness::client(&other).table("People");
    others.upsert_replace(&Employee::grace()).await.unwrap();
    assert_eq!(names(&table).await, ["Ada"]);
    assert_eq!(names(&others).await, ["Grace"]);
}

#[tokio::test]
async fn a_data_directory_has_backups_instead() {
    let directory = tempfile::tempdir().unwrap();
    let builder = TableServer::builder().data(directory.path(), Durability::Sync);
    let server = builder.in_process().unwrap();
    let error = server.snapshot().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("backups"), "{error}");
    let memory = TableServer::in_process().snapshot().unwrap();
    let error = server.restore(&memory).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}
