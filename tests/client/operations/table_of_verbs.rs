//! The table of verbs in the guide to concurrency: what each verb does to an entity that is missing
//! or was changed, and how many requests it sends.

use std::fs;
use std::path::Path;

use futures::stream;
use tablesdk::action::Batch;
use tablesdk::{DynamicEntity, Error, Stored, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Journal;

use super::Employee;

/// Verb, missing, changed, requests: of each row.
fn rows() -> Vec<[String; 4]> {
    let guide = "../tablesdk/src/guide/concurrency.md";
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(guide)).unwrap();
    let table = guide.split("| the program | verb |").nth(1).unwrap();
    let lines = table.lines().skip(2);
    let lines = lines.take_while(|line| line.starts_with('|'));
    let mut rows = Vec::new();
    for line in lines {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        for verb in cells[2].split(", ") {
            let verb = verb.split('`').nth(1).unwrap();
            rows.push([verb, cells[3], cells[4], cells[5]].map(str::to_owned));
        }
    }
    rows
}

/// A new table, its requests, and its only entity as this client has read it.
async fn start() -> (TableClient, Journal, Stored<Employee>) {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Employees");
    table.create_table().await.unwrap();
    let ada = table.insert(&Employee::ada()).await.unwrap();
    (table, server.journal(), ada)
}

/// Writes one entity: Ada, who is 37 now.
async fn write(verb: &str, table: &TableClient, mut ada: Stored<Employee>) -> Result<(), Error> {
    ada.age = 37;
    let (etag, key) = (ada.etag().clone(), Employee::key("Sales", "1"));
    match verb {
        "insert" => table.insert(&*ada).await.map(drop),
        "upsert_replace" => table.upsert_replace(&*ada).await.map(drop),
        "upsert_merge" => table.upsert_merge(&*ada).await.map(drop),
        "replace" => table.replace(&mut ada).await.map(drop),
        "merge" => table.merge(&mut ada).await.map(drop),
        "replace_if" => table.replace_if(&*ada, etag).await.map(drop),
        "merge_if" => table.merge_if(&*ada, etag).await.map(drop),
        "patch" => table.patch(key).set(|e| e.age, 37).await.map(drop),
        "modify" => {
            let older = table.modify(key, |e: &mut Employee| e.grow_older());
            older.await.map(drop)
        }
        _ => panic!("the table has a verb that this test does not know: {verb}"),
    }
}

/// The outcome of a verb for an entity that was missing.
async fn missing(verb: &str) -> String {
    let (table, _, ada) = start().await;
    assert!(table.delete(ada.key()).await.unwrap());
    if let Err(error) = write(verb, &table, ada).await {
        return failure(&error).to_owned();
    }
    assert!(Employee::find(&table).await.is_some());
    "creates it".to_owned()
}

/// The outcome of a verb for an entity that another client replaced, by one with another name and
/// age, and with a badge.
async fn changed(verb: &str) -> String {
    let (table, _, ada) = start().await;
    let grace = DynamicEntity::from_entity(&Employee::grace()).unwrap();
    let grace = grace.with("Badge", 7);
    table.upsert_replace(&grace).await.unwrap();
    if let Err(error) = write(verb, &table, ada).await {
        let found = Employee::find(&table).await.unwrap();
        assert_eq!(found.name, "Grace");
        return failure(&error).to_owned();
    }
    let found = table.get::<DynamicEntity>(("Sales", "1")).await.unwrap();
    let found = found.unwrap().into_inner();
    let name: String = found.properties().read("Name").unwrap();
    let age: i32 = found.properties().read("Age").unwrap();
    let keeps_badge = found.properties().get("Badge").is_some();
    let was = match (keeps_badge, name.as_str(), age) {
        (false, "Ada", 37) => "overwrites it",
        (true, "Ada", 37) => "overwrites the struct's properties",
        (true, "Grace", 37) => "overwrites these properties",
        // What it writes comes from the current values. `modify` tests a change after the read.
        (true, "Grace", 51) => "reads it again and starts over",
        _ => panic!("{verb}: {found:?}"),
    };
    was.to_owned()
}

fn failure(error: &Error) -> &'static str {
    match () {
        () if error.is_conflict() => "fails: `is_conflict()`",
        () if error.is_not_found() => "fails: `is_not_found()`",
        () if error.is_precondition_failed() => "fails: `is_precondition_failed()`",
        () => panic!("{error:?}"),
    }
}

/// How many requests it sends if the entity is as the client knows it.
async fn requests(verb: &str) -> String {
    let (table, journal, ada) = start().await;
    if verb == "insert" {
        table.delete(ada.key()).await.unwrap();
    }
    journal.clear();
    write(verb, &table, ada).await.unwrap();
    let sent = journal.requests().count().to_string();
    match verb {
        "modify" => format!("{sent} per round"),
        _ => sent,
    }
}

#[tokio::test]
async fn the_table_of_verbs_is_true() {
    let rows = rows();
    assert!(rows.len() >= 12, "{rows:?}");
    for row in rows {
        let [verb, of_missing, of_changed, of_requests] = &row;
        match verb.as_str() {
            "batch" | "bulk" | "transaction" => {}
            verb => {
                assert_eq!(&missing(verb).await, of_missing, "{verb}");
                assert_eq!(&changed(verb).await, of_changed, "{verb}");
                assert_eq!(&requests(verb).await, of_requests, "{verb}");
            }
        }
    }
}

#[tokio::test]
async fn a_hundred_changes_of_a_partition_are_one_request() {
    let employees: Vec<_> = (2..102)
        .map(|id| Employee::new(&id.to_string(), "Alan", 41))
        .collect();
    for verb in ["batch", "bulk"] {
        let row = rows().into_iter().find(|row| row[0] == verb).unwrap();
        let (table, journal, _) = start().await;
        journal.clear();
        if verb == "batch" {
            let batch = table.batch("Sales");
            let batch = employees.iter().fold(batch, Batch::insert);
            batch.await.unwrap();
        } else {
            let report = table.bulk().insert(stream::iter(employees.clone())).await;
            assert!(report.unwrap().is_success());
        }
        let sent = journal.requests().count().to_string();
        assert!(row[3].starts_with(&sent), "{row:?}: {sent}");
        assert_eq!(table.query::<Employee>().count().await.unwrap(), 101);
    }
}

/// The cells are facts that `transactions` asserts:
/// `an_inserted_entity_that_was_read_as_missing_…`, `every_verb_on_an_entity_that_was_read_…`,
/// `joined_reads_send_…` and `the_last_conflict_…`.
#[test]
fn the_row_of_transactions_says_what_their_tests_assert() {
    let row = rows().into_iter().find(|row| row[0] == "transaction");
    let [_, missing, changed, requests] = row.unwrap();
    assert_eq!(missing, "reads `None`");
    assert_eq!(changed, "runs the closure again");
    assert_eq!(requests, "1 per read, and 1");
}
