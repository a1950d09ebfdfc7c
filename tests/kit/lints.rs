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

#[tokio::test]
async fn queries_by_key_and_scattered_writes_have_no_lint() {
    let (_subject, table, journal) = start().await;
    for id in 0..150 {
        // Neither departments nor ids come in order.
        let number = id * 37 % 150;
        table
            .insert(&employee(format!("d{}", number % 10), number))
            .await
            .unwrap();
    }
    table
        .query::<Employee>()
        .partition("d1")
        .collect()
        .await
        .unwrap();
    assert_eq!(kinds(&journal), []);
}

#[tokio::test]
async fn a_scan_names_its_query_and_the_pattern() {
    let (_subject, table, journal) = start().await;
    table
        .query::<Employee>()
        .filter(|e| e.email.eq("ada@contoso.com"))
        .collect()
        .await
        .unwrap();
    let lints = journal.lints();
    let text = lints[0].to_string();
    assert!(
        text.starts_with("People: queries read the whole table"),
        "{text}"
    );
    assert!(text.contains("scan (Email eq 'ada@contoso.com')"), "{text}");
    assert!(text.contains("secondary index pattern"), "{text}");
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
        let response = client
            .send(true, &line, &["x-ms-version: 2019-02-02"], "")
            .await;
        assert_eq!(response.unwrap().status, 200, "{filter}");
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
async fn writes_to_one_partition_are_found() {
    let (_subject, table, journal) = start().await;
    for id in 0..150 {
        let department = if id % 10 == 0 { "Research" } else { "Sales" };
        table
            .upsert_replace(&employee(department, id * 37 % 150))
            .await
            .unwrap();
    }
    assert_eq!(kinds(&journal), [LintKind::HotPartition]);
}

#[tokio::test]
async fn appended_entities_are_found() {
    let (_subject, table, journal) = start().await;
    for id in 0..120 {
        table
            .insert(&employee(format!("2024-03-{id:04}"), id))
            .await
            .unwrap();
    }
    assert_eq!(kinds(&journal), [LintKind::LogData]);
    // Once entities are read by key, it is no log.
    table
        .get::<Employee>(Employee::key("2024-03-0001", "0001"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kinds(&journal), [LintKind::PrependAppend]);
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
async fn appended_upserts_are_found() {
    let (_subject, table, journal) = start().await;
    for id in 0..120 {
        let employee = employee(format!("2024-03-{id:04}"), id);
        table.upsert_replace(&employee).await.unwrap();
    }
    assert_eq!(kinds(&journal), [LintKind::LogData]);
}

#[tokio::test]
async fn an_entity_that_is_replaced_again_and_again_is_not_appended() {
    let (_subject, table, journal) = start().await;
    for _ in 0..120 {
        table.upsert_replace(&Employee::ada()).await.unwrap();
    }
    assert_eq!(kinds(&journal), [LintKind::HotPartition]);
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
