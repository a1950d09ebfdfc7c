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

#[tokio::test]
async fn a_filter_that_no_entity_can_match_is_found_and_explained() {
    let (_subject, table, journal) = start().await;
    let of_partition = || table.query::<Employee>().partition("Sales");
    let found = of_partition().filter(|e| e.id.ge("9") & e.id.lt("10"));
    let explanation = found.explain().unwrap();
    assert_eq!(explanation.contradiction(), Some("RowKey"));
    let line = "result: none, since the bounds of RowKey exclude each other";
    assert!(explanation.to_string().contains(line), "{explanation}");
    assert!(found.collect().await.unwrap().is_empty());
    assert_eq!(kinds(&journal), [LintKind::ContradictoryFilter]);
    let text = journal.lints()[0].to_string();
    assert!(text.contains("RowKey ge '9' and RowKey lt '10'"), "{text}");

    journal.clear();
    let found = of_partition().filter(|e| e.id.ge("10") & e.id.lt("9"));
    assert_eq!(found.explain().unwrap().contradiction(), None);
    assert!(found.collect().await.unwrap().is_empty(), "by chance");
    assert_eq!(kinds(&journal), []);
}

#[tokio::test]
async fn writes_that_are_refused_because_of_others_are_found() {
    for refusals in [9, 10] {
        let (_subject, table, journal) = start().await;
        let ada = table.insert(&Employee::ada()).await.unwrap();
        let mut current = ada.clone();
        for age in 0..refusals {
            current.age = age;
            table.replace(&mut current).await.unwrap();
            // Another client has the entity as it was.
            let mut stale = ada.clone();
            stale.age = 99;
            let batch = table.batch("Sales").replace(&mut stale);
            let refused = batch
                .insert(&Employee::new(&format!("new {age}"), "Alan", 41))
                .await;
            assert!(refused.unwrap_err().is_precondition_failed());
        }
        let expected = if refusals < 10 {
            vec![]
        } else {
            vec![LintKind::Contention]
        };
        assert_eq!(kinds(&journal), expected, "{refusals}");
        if let [lint] = &journal.lints()[..] {
            assert_eq!(lint.requests, 10);
        }
    }
}

#[tokio::test]
async fn conflicts_of_different_entities_and_few_of_many_writes_are_no_contention() {
    let (_subject, table, journal) = start().await;
    let mut ada = table.insert(&Employee::ada()).await.unwrap();
    for id in 2..30 {
        let other = Employee::new(&id.to_string(), "Alan", 41);
        table.insert(&other).await.unwrap();
        assert!(table.insert(&other).await.unwrap_err().is_conflict());
    }
    assert_eq!(kinds(&journal), []);
    for age in 0..100 {
        ada.age = age;
        table.replace(&mut ada).await.unwrap();
    }
    for _ in 0..10 {
        let refused = table.insert(&Employee::ada()).await;
        assert!(refused.unwrap_err().is_conflict());
    }
    let found = kinds(&journal);
    assert!(!found.contains(&LintKind::Contention), "{found:?}");
}

#[tokio::test]
async fn keys_that_grow_are_found_in_one_partition_and_among_the_partition_keys() {
    type Entity = fn(usize) -> Employee;
    // A partition for each day, and its entities in any order.
    let of_days: Entity = |at| employee(format!("2024-03-{:02}", at / 12), at * 37 % 150);
    let of_days_back: Entity = |at| employee(format!("2024-03-{:02}", 30 - at / 12), at * 37 % 150);
    let of_few_days: Entity = |at| employee(format!("2024-03-{:02}", at / 40), at * 37 % 200);
    // One partition grows at its end, and the others are written anywhere.
    let of_one: Entity = |at| match at % 3 {
        0 => scattered(at),
        _ => employee("Log", at),
    };
    for (case, of, is_expected) in [
        ("days", of_days, true),
        ("days, backwards", of_days_back, true),
        ("few days", of_few_days, false),
        ("one partition", of_one, true),
    ] {
        let (_subject, table, journal) = start().await;
        for index in 0..180 {
            let inserted = table.upsert_replace(&of(index)).await;
            inserted.unwrap();
        }
        let found = kinds(&journal);
        assert_eq!(
            found.contains(&LintKind::LogData),
            is_expected,
            "{case}: {found:?}"
        );
    }
}
