//! Lints: what the journal says about the design of a table.

use futures::stream;
use harness::raw::RawClient;
use tablesdk::{RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Flavor, Journal, LintKind};

use crate::{Employee, Subject};

async fn start() -> (Subject, TableClient, Journal) {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::none()).await;
    let journal = subject.server.journal();
    (subject, table, journal)
}

fn kinds(journal: &Journal) -> Vec<LintKind> {
    journal.lints().iter().map(|lint| lint.kind).collect()
}

fn employee(department: impl Into<String>, id: usize) -> Employee {
    Employee {
        department: department.into(),
        ..Employee::new(&format!("{id:04}"), "Ada", 36)
    }
}

/// Neither departments nor ids come in order.
fn scattered(index: usize) -> Employee {
    let number = index * 37 % 150;
    employee(format!("d{}", number % 10), number)
}

fn appended(index: usize) -> Employee {
    employee(format!("2024-03-{index:04}"), index)
}

fn in_one_partition(index: usize) -> Employee {
    let department = if index.is_multiple_of(10) {
        "Research"
    } else {
        "Sales"
    };
    employee(department, index * 37 % 150)
}

#[tokio::test]
async fn writes_to_one_partition_and_appended_entities_are_found() {
    type Entity = fn(usize) -> Employee;
    let again_and_again: Entity = |_| Employee::ada();
    for (case, of, upserts, expected) in [
        ("scattered", scattered as Entity, false, vec![]),
        (
            "in one partition",
            in_one_partition,
            true,
            vec![LintKind::HotPartition],
        ),
        ("appended", appended, false, vec![LintKind::LogData]),
        (
            "upserts that append",
            appended,
            true,
            vec![LintKind::LogData],
        ),
        // It is not appended.
        (
            "one entity",
            again_and_again,
            true,
            vec![LintKind::HotPartition],
        ),
    ] {
        let (_subject, table, journal) = start().await;
        for index in 0..150 {
            let employee = of(index);
            if upserts {
                table.upsert_replace(&employee).await.unwrap();
            } else {
                table.insert(&employee).await.unwrap();
            }
        }
        assert_eq!(kinds(&journal), expected, "{case}");
    }
}

#[tokio::test]
async fn queries_by_key_have_no_lint() {
    let (_subject, table, journal) = start().await;
    table.insert(&scattered(1)).await.unwrap();
    let query = table.query::<Employee>().partition("d7");
    assert_eq!(query.collect().await.unwrap().len(), 1);
    assert_eq!(kinds(&journal), []);
}

#[tokio::test]
async fn appended_entities_that_are_read_are_no_log() {
    let (_subject, table, journal) = start().await;
    for index in 0..120 {
        table.insert(&appended(index)).await.unwrap();
    }
    let key = Employee::key("2024-03-0001", "0001");
    assert!(table.get::<Employee>(key).await.unwrap().is_some());
    assert_eq!(kinds(&journal), [LintKind::PrependAppend]);
}

#[tokio::test]
async fn a_scan_names_its_query_and_the_pattern() {
    let (_subject, table, journal) = start().await;
    let query = table.query::<Employee>();
    let query = query.filter(|e| e.email.eq("ada@contoso.com"));
    query.collect().await.unwrap();
    let text = journal.lints()[0].to_string();
    for part in [
        "People: queries read the whole table",
        "scan (Email eq 'ada@contoso.com')",
        "secondary index pattern",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn a_filter_that_only_azurite_accepts_is_found() {
    let server = TableServer::builder().flavor(Flavor::Azurite);
    let server = server.start().await.unwrap();
    let table = harness::client(&server).table("People");
    table.create_table().await.unwrap();
    let journal = server.journal();
    let client = RawClient::of(&server);
    let of_partition = "PartitionKey%20eq%20'Sales'%20and%20";
    for (filter, why) in [
        ("Age%20eq%201498179600055", "have the suffix `L`"),
        ("Age%20eq%20null", "null"),
        ("Age%20eq%20Salary", "a comparison of two properties"),
        ("RowKey", "is no condition"),
    ] {
        journal.clear();
        let line = format!("GET /People()?$filter={of_partition}{filter}");
        let response = client.send(true, &line, &["x-ms-version: 2019-02-02"], "");
        assert_eq!(response.await.unwrap().status, 200, "{filter}");
        assert_eq!(kinds(&journal), [LintKind::RefusedFilter], "{filter}");
        let query = journal.lints()[0].example.query.clone().unwrap();
        let refusal = query.filter_refusal.unwrap();
        assert!(refusal.contains(why), "{refusal}");
    }
    journal.clear();
    let query = table.query::<Employee>().partition("Sales");
    query.odata("Age lt 1498179600055").collect().await.unwrap();
    assert_eq!(kinds(&journal), [], "the client repairs the number");
}

#[tokio::test]
async fn a_wide_read_of_a_partition_is_found() {
    let (_subject, table, journal) = start().await;
    for id in 0..100 {
        table.insert(&employee("Sales", id)).await.unwrap();
    }
    journal.clear();
    let query = table.query::<Employee>().partition("Sales");
    query.filter(|e| e.age.gt(40)).collect().await.unwrap();
    assert_eq!(kinds(&journal), [LintKind::OverWideRead]);
}

#[tokio::test]
async fn large_entities_without_a_projection_are_found() {
    let (_subject, table, journal) = start().await;
    for id in 0..100 {
        let large = Employee {
            name: "x".repeat(5000),
            ..employee("Sales", id)
        };
        table.insert(&large).await.unwrap();
    }
    journal.clear();
    let query = || table.query::<Employee>().partition("Sales");
    query().collect().await.unwrap();
    assert_eq!(kinds(&journal), [LintKind::NoProjection]);
}

#[tokio::test]
async fn entities_that_a_bulk_run_appends_are_found() {
    let (_subject, table, journal) = start().await;
    let employees = (0..200).map(|id| employee("Sales", id));
    let report = table.bulk().insert(stream::iter(employees)).await.unwrap();
    assert!(report.is_success(), "{report:?}");
    assert_eq!(kinds(&journal), [LintKind::HotPartition, LintKind::LogData]);
}

#[tokio::test]
async fn changes_of_rejected_batches_do_not_count() {
    let (_subject, table, journal) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    journal.clear();
    for _ in 0..2 {
        let batch = table.batch("Sales").insert(&Employee::ada());
        let batch = (0..90).fold(batch, |batch, id| batch.insert(&employee("Sales", id)));
        batch.await.unwrap_err();
    }
    assert_eq!(kinds(&journal), []);
}
