//! Requests that arrive late or twice: these tests check what the guides state about them. In process, on virtual time.

use std::time::Duration;

use harness::Subject;
use harness::faults::{Fault, Op};
use tablesdk::{RetryPolicy, TableClient};
use tokio::time::sleep;

use crate::Employee;

const LATE: Duration = Duration::from_secs(50);
const LATER: Duration = Duration::from_secs(60);

async fn name(table: &TableClient) -> Option<String> {
    let row = Employee::find(&table).await;
    row.map(|row| row.into_inner().name)
}

#[tokio::test(start_paused = true)]
async fn an_older_unconditional_write_that_arrives_late_undoes_a_newer_one() {
    for is_merge in [false, true] {
        let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
        faults.plan(Op::Update, [Fault::Straggle(LATE)]);
        if is_merge {
            table.upsert_merge(&Employee::ada()).await.unwrap();
        } else {
            table.upsert_replace(&Employee::ada()).await.unwrap();
        }
        table.upsert_replace(&Employee::grace()).await.unwrap();
        assert_eq!(name(&table).await.as_deref(), Some("Grace"));
        sleep(LATER).await;
        assert_eq!(name(&table).await.as_deref(), Some("Ada"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_arrives_late_deletes_what_was_inserted_since() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Delete, [Fault::Straggle(LATE)]);
    assert!(table.delete(("Sales", "1")).await.unwrap());
    table.insert(&Employee::grace()).await.unwrap();
    sleep(LATER).await;
    assert_eq!(name(&table).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_older_conditional_write_that_arrives_late_is_refused() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut row = table.insert(&Employee::ada()).await.unwrap();
    row.age = 37;
    faults.plan(Op::Update, [Fault::Straggle(LATE)]);
    table.replace(&mut row).await.unwrap();
    *row = Employee::grace();
    table.replace(&mut row).await.unwrap();
    sleep(LATER).await;
    assert_eq!(name(&table).await.as_deref(), Some("Grace"));

    faults.plan(Op::Delete, [Fault::Straggle(LATE)]);
    assert!(table.delete_stored(&row).await.unwrap());
    table.insert(&Employee::ada()).await.unwrap();
    sleep(LATER).await;
    assert_eq!(name(&table).await.as_deref(), Some("Ada"));
}

#[tokio::test(start_paused = true)]
async fn an_older_write_that_happens_exactly_once_is_refused_when_it_arrives_late() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Batch, [Fault::Straggle(LATE)]);
    let batch = table.batch("Sales").upsert_replace(&Employee::ada());
    batch.exactly_once().await.unwrap();
    table.upsert_replace(&Employee::grace()).await.unwrap();
    sleep(LATER).await;
    assert_eq!(name(&table).await.as_deref(), Some("Grace"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_network_duplicates_is_reported_as_a_failure() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let twice = |op| faults.plan(op, [Fault::Duplicate]);
    twice(Op::Insert);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_conflict() && name(&table).await.is_some());

    let mut row = Employee::find(&table).await.unwrap();
    *row = Employee::grace();
    twice(Op::Update);
    let error = table.replace(&mut row).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(name(&table).await.as_deref(), Some("Grace"));

    twice(Op::Delete);
    assert!(!table.delete(("Sales", "1")).await.unwrap());
    assert_eq!(name(&table).await, None);

    twice(Op::Batch);
    let batch = table.batch("Sales").insert(&Employee::ada());
    let error = batch.await.unwrap_err();
    assert!(error.is_conflict() && name(&table).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_modification_whose_request_the_network_duplicates_changes_twice() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.plan(Op::Update, [Fault::Duplicate]);
    let row = table
        .modify(("Sales", "1"), Employee::grow_older)
        .await
        .unwrap();
    assert_eq!(row.age, 38);

    faults.plan(Op::Batch, [Fault::Duplicate]);
    let modify = table
        .modify(("Sales", "1"), Employee::grow_older)
        .exactly_once();
    assert_eq!(modify.await.unwrap().age, 39);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_network_duplicates_succeeds_exactly_once() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let twice = || faults.plan(Op::Batch, [Fault::Duplicate]);
    twice();
    let mut row = table.insert(&Employee::ada()).exactly_once().await.unwrap();
    *row = Employee::grace();
    twice();
    table.replace(&mut row).exactly_once().await.unwrap();
    twice();
    assert!(table.delete_stored(&row).exactly_once().await.unwrap());
    twice();
    let batch = table.batch("Sales").insert(&Employee::ada()).exactly_once();
    batch.await.unwrap();
    assert_eq!(name(&table).await.as_deref(), Some("Ada"));
}
