//! The outbox: steps and messages that follow a transaction.

use std::future::{IntoFuture, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{client, client_with};
use serde::{Deserialize, Serialize};
use tablesdk::action::{DrainReport, Message, Outbox, PoisonedStep, Received, Step};
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::entity::{Employee, checked};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// A server, the table of the transactions, and a table that steps write.
pub(super) fn tables(server: &TableServer) -> (TableClient, TableClient) {
    let service = client_with(server, |builder| builder.retry(RetryPolicy::exponential()));
    (service.table("Company"), service.table("Titles"))
}

async fn company() -> (TableServer, TableClient, TableClient) {
    let server = TableServer::in_process();
    let (table, titles) = tables(&server);
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    (server, table, titles)
}

pub(super) fn department(title: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", "dept").with("Title", title)
}

fn title(title: &str) -> DynamicEntity {
    DynamicEntity::new("Titles", "Sales").with("Title", title)
}

/// The row keys of the outbox in all tables, as they are stored.
pub(super) fn outbox_rows(server: &TableServer) -> Vec<String> {
    let dump = server.dump().unwrap();
    let keys = dump
        .lines()
        .filter_map(|line| line.split_once("RowKey='~tablesdk.outbox."));
    keys.map(|(_, rest)| rest.trim_end_matches("')").to_owned())
        .collect()
}

/// A string property of an entity; `None` where there is no entity.
pub(super) async fn stored(table: &TableClient, key: (&str, &str), name: &str) -> Option<String> {
    let found = table.get::<DynamicEntity>(key).await.unwrap()?;
    Some(found.properties().read(name).unwrap())
}

async fn stored_title(titles: &TableClient) -> Option<String> {
    stored(titles, ("Titles", "Sales"), "Title").await
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Renamed {
    pub(super) title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

pub(super) fn renamed(title: &str) -> Step {
    Step::message(&Renamed {
        title: title.to_owned(),
    })
}

fn report(applied: u64, waiting: u64, failed: u64, set_aside: u64) -> DrainReport {
    let mut report = DrainReport::default();
    report.applied = applied;
    report.waiting = waiting;
    report.failed = failed;
    report.set_aside = set_aside;
    report
}

#[tokio::test(start_paused = true)]
async fn a_step_is_applied_at_once_and_leaves_nothing_but_the_head() {
    let (server, table, titles) = company().await;
    let journal = server.journal();
    let batch = table.batch("Sales").insert(&department("Sales"));
    let result = batch
        .then(Step::upsert_replace(&titles, &title("Sales")))
        .await;
    assert_eq!(result.unwrap().etags().len(), 1);
    // The head, the pointer, the batch, the log, the entity twice, the log, and the pointer.
    assert_eq!(journal.requests().count(), 8);
    assert_eq!(stored_title(&titles).await.as_deref(), Some("Sales"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_for_later_is_applied_by_a_worker() {
    let (server, table, titles) = company().await;
    let journal = server.journal();
    let batch = table.batch("Sales").insert(&department("Sales"));
    let step = Step::upsert_replace(&titles, &title("Sales"));
    batch.then(step).later().await.unwrap();
    assert_eq!(journal.requests().count(), 3);
    assert_eq!(stored_title(&titles).await, None);
    let outbox = Outbox::new(&table);
    assert_eq!(outbox.drain().await.unwrap(), report(1, 0, 0, 0));
    assert_eq!(stored_title(&titles).await.as_deref(), Some("Sales"));
    assert_eq!(outbox_rows(&server), ["head"]);
    assert_eq!(outbox.drain().await.unwrap(), report(0, 0, 0, 0));
}

/// By the outbox of a worker of one partition, without the search for others.
#[tokio::test(start_paused = true)]
async fn a_worker_drains_one_partition() {
    let (server, table, titles) = company().await;
    for department in ["Sales", "Legal"] {
        let entity = DynamicEntity::new(department, "dept");
        let step = Step::upsert_replace(&titles, &DynamicEntity::new("Titles", department));
        let batch = table.batch(department).insert(&entity).then(step);
        batch.later().await.unwrap();
    }
    let journal = server.journal();
    let drain = Outbox::new(&table).drain().partition("Legal");
    assert_eq!(drain.await.unwrap(), report(1, 0, 0, 0));
    // The log, the attempt, the entity twice, the log, and the pointer.
    assert_eq!(journal.requests().count(), 6);
    assert!(
        titles
            .get::<DynamicEntity>(("Titles", "Legal"))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 1);
}

#[tokio::test(start_paused = true)]
async fn steps_of_every_kind_follow_in_their_order() {
    let (server, table, titles) = company().await;
    let remark = DynamicEntity::new("Titles", "Sales").with("Remark", "merged");
    let old = DynamicEntity::new("Titles", "Old");
    titles.insert(&old).await.unwrap();
    let other = DynamicEntity::new("Elsewhere", "1").with("Title", "in the same table");
    let batch = table
        .batch("Sales")
        .insert(&department("Sales"))
        .then(Step::upsert_replace(&titles, &title("Sales")))
        .then(Step::upsert_merge(&titles, &remark))
        .then(Step::delete(&titles, ("Titles", "Old")))
        .then(Step::upsert_replace(&table, &other));
    batch.await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("Sales"));
    let key = ("Titles", "Sales");
    assert_eq!(
        stored(&titles, key, "Remark").await.as_deref(),
        Some("merged")
    );
    assert!(
        titles
            .get::<DynamicEntity>(("Titles", "Old"))
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        table
            .get::<DynamicEntity>(("Elsewhere", "1"))
            .await
            .unwrap()
            .is_some()
    );
    // What a delete step deleted is looked at once more.
    let rows = outbox_rows(&server);
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[1], "removed.00000000000000000003");
    let outbox = Outbox::new(&table);
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server).len(), 3);
    server.clock().advance(HOUR + Duration::from_secs(60));
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn entities_have_their_new_etags_before_steps_are_applied() {
    let (server, table, titles) = company().await;
    table.insert(&department("a")).await.unwrap();
    let key = ("Sales", "dept");
    let mut sales = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
    let old = sales.etag().clone();
    let slow = server.faults().on_writes().table("Titles");
    let injected = slow.inject(Fault::delay(HOUR));
    let step = Step::upsert_replace(&titles, &title("a"));
    let batch = table.batch("Sales").replace(&mut sales).then(step);
    let limited = timeout(Duration::from_secs(1), batch.into_future()).await;
    assert!(limited.is_err());
    assert_eq!(injected.hits(), 1);
    assert_ne!(*sales.etag(), old);
    table.replace(&mut sales).await.unwrap();
}

fn by_number(titles: &TableClient, n: usize) -> Step {
    Step::upsert_replace(titles, &DynamicEntity::new("Titles", n.to_string()))
}

#[tokio::test(start_paused = true)]
async fn a_writer_does_not_apply_a_long_log_of_others() {
    let (server, table, titles) = company().await;
    for round in 0..3 {
        let mut batch = table.batch("Sales");
        for n in 0..99 {
            batch = batch.then(by_number(&titles, round * 99 + n));
        }
        batch.later().await.unwrap();
    }
    let journal = server.journal();
    let batch = table.batch("Sales").insert(&department("a"));
    batch.then(by_number(&titles, 297)).await.unwrap();
    // The head, the pointer, the batch, the log, 100 steps, their deletes, and the pointer of the first batch.
    assert_eq!(journal.requests().count(), 206);
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 100);
    let outbox = Outbox::new(&table);
    assert_eq!(outbox.drain().await.unwrap(), report(198, 0, 0, 0));
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// The other writer commits after this one, and before this one reads the log.
#[tokio::test(start_paused = true)]
async fn a_writer_does_not_apply_the_steps_behind_its_own() {
    let (server, table, titles) = company().await;
    let reads = server.faults().on(Op::QueryEntities).nth(2);
    let injected = reads.inject(Fault::delay(Duration::from_secs(10)));
    let batch = table.batch("Sales").insert(&department("a"));
    let own = batch.then(by_number(&titles, 1)).into_future();
    let other = async {
        sleep(Duration::from_secs(5)).await;
        let batch = table.batch("Sales").then(by_number(&titles, 2));
        batch.later().await
    };
    let (own, other) = tokio::join!(own, other);
    own.and(other).unwrap();
    assert_eq!(injected.hits(), 1);
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 1);
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_batch_limits_its_steps() {
    let (server, table, titles) = company().await;
    let slow = server.faults().on_any().table("Titles");
    slow.inject(Fault::delay(Duration::from_secs(2)));
    let mut batch = table.batch("Sales").insert(&department("a"));
    for n in 0..20 {
        batch = batch.then(by_number(&titles, n));
    }
    // One step takes 4 seconds.
    let limit = Duration::from_secs(5);
    timeout(limit * 2, batch.deadline(limit).into_future())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 20);
}

/// A property of the entity that no step has stays after a merge, and not after a replace.
#[tokio::test(start_paused = true)]
async fn a_step_merges_into_what_the_program_has_written() {
    let (_server, table, titles) = company().await;
    titles
        .insert(&title("Sales").with("Floor", "3"))
        .await
        .unwrap();
    let renamed = |name| Step::upsert_merge(&titles, &title(name));
    let batch = table.batch("Sales").insert(&department("a"));
    batch.then(renamed("a")).await.unwrap();
    let key = ("Titles", "Sales");
    assert_eq!(stored(&titles, key, "Floor").await.as_deref(), Some("3"));
    // An entity that a step has written can be written by the next one as it was read.
    let read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    let batch = table.batch("Sales").upsert_replace(&department("b"));
    batch
        .then(Step::upsert_replace(&titles, &*read))
        .await
        .unwrap();
    assert_eq!(stored(&titles, key, "Floor").await.as_deref(), Some("3"));
    let batch = table.batch("Sales").upsert_replace(&department("c"));
    batch
        .then(Step::upsert_replace(&titles, &title("c")))
        .await
        .unwrap();
    let read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    assert_eq!(read.properties().get("Floor"), None);
}

#[tokio::test(start_paused = true)]
async fn messages_are_handled_in_their_order() {
    let (server, table, _titles) = company().await;
    for name in ["a", "b"] {
        let batch = table.batch("Sales").upsert_replace(&department(name));
        batch
            .then(renamed(name))
            .then(renamed("again"))
            .await
            .unwrap();
    }
    // They wait for a worker with a handler.
    assert_eq!(
        Outbox::new(&table).drain().await.unwrap(),
        report(0, 4, 0, 0)
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let (title, number) = (message.title.clone(), message.number());
        assert_eq!(message.partition(), "Sales");
        assert!(message.id().ends_with(&format!(".{number:020}")));
        log.lock().unwrap().push((title, number));
        async { Ok(()) }
    });
    assert_eq!(outbox.drain().await.unwrap(), report(4, 0, 0, 0));
    let expected = [("a", 1), ("again", 2), ("b", 3), ("again", 4)];
    let expected = expected.map(|(title, number)| (title.to_owned(), number));
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A function that notes in a table which messages it has handled.
#[tokio::test(start_paused = true)]
async fn the_id_of_a_message_can_be_a_key() {
    let (_server, table, titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    batch.then(renamed("a")).await.unwrap();
    let handled = titles.clone();
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let handled = handled.clone();
        async move {
            let note = DynamicEntity::new(message.id(), message.id());
            handled.insert(&note).await?;
            Ok(())
        }
    });
    assert_eq!(outbox.drain().await.unwrap(), report(1, 0, 0, 0));
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_is_tried_again_and_blocks_its_partition() {
    let (server, table, _titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    batch
        .then(renamed("first"))
        .then(renamed("second"))
        .later()
        .await
        .unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&calls);
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let mut calls = log.lock().unwrap();
        calls.push(message.title.clone());
        let fails = calls.len() < 3;
        async move {
            if fails {
                Err("the mail server is down".into())
            } else {
                Ok(())
            }
        }
    });
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 1, 0));
    // Not before 30 seconds have passed.
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 0, 0));
    server.clock().advance(Duration::from_secs(31));
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 1, 0));
    // Then twice as long.
    server.clock().advance(Duration::from_secs(31));
    assert_eq!(outbox.drain().await.unwrap(), report(0, 2, 0, 0));
    server.clock().advance(Duration::from_secs(31));
    assert_eq!(outbox.drain().await.unwrap(), report(2, 0, 0, 0));
    assert_eq!(
        *calls.lock().unwrap(),
        ["first", "first", "first", "second"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_transaction_has_steps() {
    let (server, table, titles) = company().await;
    table.insert(&department("a")).await.unwrap();
    let rename = || {
        table.transaction("Sales", async |tx| {
            let mut found = tx
                .get::<DynamicEntity>(("Sales", "dept"))
                .await?
                .ok_or("none")?;
            found.properties_mut().set("Title", "b");
            tx.replace(found)
                .then(Step::upsert_replace(&titles, &title("b")));
            Ok(())
        })
    };
    rename().await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("b"));
    titles.delete(("Titles", "Sales")).await.unwrap();
    rename().later().exactly_once().await.unwrap();
    assert_eq!(stored_title(&titles).await, None);
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 1);
    assert_eq!(outbox_rows(&server), ["head"]);
    // Steps alone: what was read is checked all the same.
    let mirror = table.transaction("Sales", async |tx| {
        let found = tx
            .get::<DynamicEntity>(("Sales", "dept"))
            .await?
            .ok_or("none")?;
        let name: String = found.properties().read("Title")?;
        tx.then(Step::upsert_replace(&titles, &title(&name)));
        Ok(())
    });
    mirror.await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn steps_and_indexes_are_committed_together() {
    let (server, table, titles) = company().await;
    let ada = Employee::new(1, "Lovelace", Some("ada@contoso.com"));
    for (id, name) in [(1, "one"), (2, "two")] {
        let employee = Employee { id, ..ada.clone() };
        let step = Step::upsert_replace(&titles, &title(name));
        let batch = table.batch("Sales").insert(&employee).then(step);
        let result = if id == 1 {
            batch.await
        } else {
            batch.exactly_once().await
        };
        // The second one has the entry of the first one.
        assert_eq!(result.is_ok(), id == 1);
        if let Err(error) = result {
            assert_eq!(
                (error.index(), error.batch_index()),
                (Some("ByEmail"), Some(0)),
                "{error}"
            );
        }
        checked(&table).await;
    }
    assert_eq!(stored_title(&titles).await.as_deref(), Some("one"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_keeps_its_index_and_stores_no_step() {
    let (server, table, titles) = company().await;
    table.insert(&department("a")).await.unwrap();
    let batch = table
        .batch("Sales")
        .insert(&DynamicEntity::new("Sales", "other"))
        .insert(&department("b"))
        .then(Step::upsert_replace(&titles, &title("b")));
    let error = batch.await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(error.batch_index(), Some(1));
    assert_eq!(outbox_rows(&server), ["head"]);
    assert_eq!(stored_title(&titles).await, None);
}

/// Nothing of the program was sent when the pointer fails.
#[tokio::test(start_paused = true)]
async fn a_write_whose_pointer_is_lost_is_not_of_unknown_outcome() {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let table = service.table("Company");
    table.create_table().await.unwrap();
    let pointers = server.faults().on(Op::InsertOrMergeEntity);
    let injected = pointers.inject(Fault::lost_response());
    let batch = table
        .batch("Sales")
        .insert(&department("a"))
        .then(renamed("a"));
    let error = batch.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    assert_eq!(injected.hits(), 1);
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    sleep(Duration::from_secs(61)).await;
    Outbox::new(&table).drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// A worker has moved the head to delete the pointer, which the writer then has to write again, under another ETag.
#[tokio::test(start_paused = true)]
async fn a_writer_that_was_taken_for_lost_writes_its_pointer_again() {
    let (server, table, titles) = company().await;
    let batches = server.faults().on(Op::EntityGroupTransaction);
    let slow = batches
        .times(1)
        .inject(Fault::delay(Duration::from_secs(25)));
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let late = deletes
        .times(1)
        .inject(Fault::delay(Duration::from_secs(20)));
    let batch = table.batch("Sales").insert(&department("a"));
    let step = Step::upsert_replace(&titles, &title("a"));
    let write = async { batch.then(step).later().await };
    let worker = async {
        sleep(Duration::from_secs(1)).await;
        server.clock().advance(Duration::from_secs(61));
        Outbox::new(&table).drain().await
    };
    let (written, drained) = tokio::join!(write, worker);
    written.unwrap();
    assert_eq!(drained.unwrap(), report(0, 0, 0, 0));
    assert_eq!((slow.hits(), late.hits()), (1, 1));
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 1);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// Both writers read the head before either of them commits.
#[tokio::test(start_paused = true)]
async fn two_writers_of_a_partition_both_succeed() {
    let (server, table, titles) = company().await;
    let write = async |name: &str| {
        let entity = DynamicEntity::new("Sales", name);
        let step = Step::upsert_replace(&titles, &DynamicEntity::new("Titles", name));
        table
            .batch("Sales")
            .insert(&entity)
            .then(step)
            .later()
            .await
    };
    server
        .faults()
        .on(Op::EntityGroupTransaction)
        .times(2)
        .inject(Fault::delay(Duration::from_secs(1)));
    let (one, two, three) = tokio::join!(write("1"), write("2"), write("3"));
    one.and(two).and(three).unwrap();
    assert_eq!(Outbox::new(&table).drain().await.unwrap().applied, 3);
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test]
async fn bad_steps_are_refused_before_anything_is_sent() {
    let (server, table, titles) = company().await;
    let journal = server.journal();
    let text = "DefaultEndpointsProtocol=https;AccountName=other;AccountKey=a2V5;EndpointSuffix=core.windows.net";
    let other = TableServiceClient::from_connection_string(text).unwrap();
    let batch = |step| table.batch("Sales").insert(&department("a")).then(step);
    let wide = (0..245).fold(title("wide"), |entity, n| entity.with(format!("P{n}"), n));
    for (step, expected) in [
        (
            Step::upsert_replace(&titles, &title("a").with("TablesdkBody", 1)),
            "reserved for the outbox",
        ),
        (
            Step::upsert_replace(&other.table("Titles"), &title("a")),
            "the step is for the account",
        ),
        (Step::upsert_merge(&titles, &wide), "properties"),
        (Step::delete(&titles, ("a/b", "1")), "'/'"),
        (renamed(&"x".repeat(40_000)), "32768"),
    ] {
        let error = batch(step).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut many = table.batch("Sales").insert(&department("a"));
    for _ in 0..99 {
        many = many.then(renamed("a"));
    }
    let error = many.await.unwrap_err();
    assert!(
        error.to_string().contains("99 steps and the head"),
        "{error}"
    );
    assert_eq!(journal.requests().count(), 0);
    table.batch("Sales").insert(&department("a")).await.unwrap();
    assert_eq!(journal.requests().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_program_does_not_see_the_outbox() {
    let (server, table, _titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    batch.then(renamed("a")).await.unwrap();
    assert_eq!(outbox_rows(&server).len(), 3);
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 1);
    assert_eq!(
        table
            .query::<DynamicEntity>()
            .collect()
            .await
            .unwrap()
            .len(),
        1
    );
    let deleted = table.query::<DynamicEntity>().delete_all().await.unwrap();
    assert_eq!(deleted.progress().written, 1);
    assert_eq!(outbox_rows(&server).len(), 3);
    assert_eq!(
        client(&server)
            .table("Company")
            .query::<DynamicEntity>()
            .count()
            .await
            .unwrap(),
        0
    );
}

/// A worker whose handler always fails, and how often it was called.
fn failing(table: &TableClient) -> (Outbox, Arc<Mutex<u32>>) {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let outbox = Outbox::new(table).on(move |_: Received<Renamed>| {
        *counted.lock().unwrap() += 1;
        async { Err("the mail server is down".into()) }
    });
    (outbox, calls)
}

/// Drains again and again, for as long as it takes to set a step aside.
async fn drain_for_hours(server: &TableServer, outbox: &Outbox) -> u64 {
    let mut set_aside = 0;
    for _ in 0..12 {
        set_aside += outbox.drain().await.unwrap().set_aside;
        server.clock().advance(Duration::from_secs(601));
    }
    set_aside
}

#[tokio::test(start_paused = true)]
async fn a_message_is_set_aside_after_10_attempts_and_can_be_retried() {
    let (server, table, titles) = company().await;
    let batch = table
        .batch("Sales")
        .insert(&department("a"))
        .then(renamed("a"))
        .then(Step::upsert_replace(&titles, &title("a")));
    batch.await.unwrap();
    let (outbox, calls) = failing(&table);
    assert_eq!(drain_for_hours(&server, &outbox).await, 1);
    assert_eq!(*calls.lock().unwrap(), 10);
    // The next step goes on.
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    let poisoned = outbox.poisoned().await.unwrap();
    let [step] = &poisoned[..] else {
        panic!("{poisoned:?}")
    };
    assert_eq!((step.partition(), step.number()), ("Sales", 1));
    assert_eq!(step.message(), Some("renamed"));
    assert!(step.error().contains("the mail server is down"), "{step}");
    assert!(
        step.to_string().starts_with(
            "step 1 of the partition \"Sales\" (message \"renamed\") failed 10 times: "
        ),
        "{step}"
    );
    step.retry().await.unwrap();
    assert_eq!(outbox.poisoned().await.unwrap().len(), 0);
    let working = Outbox::new(&table).on(async |_: Received<Renamed>| Ok(()));
    assert_eq!(working.drain().await.unwrap(), report(1, 0, 0, 0));
    // The pointer of the first write, whose entries are gone.
    server.clock().advance(Duration::from_secs(61));
    working.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// An entity that steps cannot write, and one that they can.
fn steps(missing: &TableClient, titles: &TableClient, name: &str) -> [Step; 2] {
    let entity = |row: &str| DynamicEntity::new("Titles", row).with("Title", name);
    [
        Step::upsert_replace(missing, &entity("Sales")),
        Step::upsert_replace(titles, &entity(name)),
    ]
}

/// Else a retry of the first one would meet the stamp of a later one, and its content would be lost.
#[tokio::test(start_paused = true)]
async fn later_steps_of_the_same_entity_are_set_aside_behind_a_poisoned_one() {
    let (server, table, titles) = company().await;
    let missing = client(&server).table("Missing");
    let write = async |name: &str| {
        let mut batch = table.batch("Sales").upsert_replace(&department(name));
        for step in steps(&missing, &titles, name) {
            batch = batch.then(step);
        }
        batch.await.unwrap();
    };
    let outbox = Outbox::new(&table);
    write("a").await;
    write("b").await;
    assert_eq!(drain_for_hours(&server, &outbox).await, 2);
    // The second one was not tried at all.
    let poisoned = outbox.poisoned().await.unwrap();
    let numbers: Vec<_> = poisoned.iter().map(PoisonedStep::number).collect();
    assert_eq!(numbers, [1, 3], "{poisoned:?}");
    assert!(
        poisoned[0].error().contains("TableNotFound"),
        "{}",
        poisoned[0]
    );
    assert_eq!(
        poisoned[1].error(),
        "step 1 of the same entity was set aside"
    );
    // A writer sets its own step aside behind them, and the other steps go on.
    write("c").await;
    assert_eq!(outbox.poisoned().await.unwrap().len(), 3);
    for name in ["a", "b", "c"] {
        assert_eq!(
            stored(&titles, ("Titles", name), "Title").await.as_deref(),
            Some(name)
        );
    }
    missing.create_table().await.unwrap();
    // Any of them puts all of them back, in their order.
    poisoned[1].retry().await.unwrap();
    assert_eq!(outbox.drain().await.unwrap(), report(3, 0, 0, 0));
    assert_eq!(stored_title(&missing).await.as_deref(), Some("c"));
    server.clock().advance(Duration::from_secs(61));
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_step_can_be_discarded() {
    let (server, table, titles) = company().await;
    let missing = client(&server).table("Missing");
    let mut batch = table.batch("Sales").insert(&department("a"));
    for step in steps(&missing, &titles, "a") {
        batch = batch.then(step);
    }
    batch.later().await.unwrap();
    let outbox = Outbox::new(&table);
    assert_eq!(drain_for_hours(&server, &outbox).await, 1);
    outbox.poisoned().await.unwrap()[0].discard().await.unwrap();
    assert_eq!(outbox.poisoned().await.unwrap().len(), 0);
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
    // The entity is not blocked any more.
    missing.create_table().await.unwrap();
    let batch = table.batch("Sales").upsert_replace(&department("b"));
    batch
        .then(Step::upsert_replace(&missing, &title("b")))
        .await
        .unwrap();
    assert_eq!(stored_title(&missing).await.as_deref(), Some("b"));
}

/// A busy service is not the fault of the step.
#[tokio::test(start_paused = true)]
async fn a_step_is_not_set_aside_while_the_service_is_busy() {
    let (server, table, titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    let step = Step::upsert_replace(&titles, &title("a"));
    batch.then(step).later().await.unwrap();
    let busy = Fault::error(ErrorCode::ServerBusy);
    let injected = server.faults().on(Op::QueryEntity).inject(busy);
    let outbox = Outbox::new(&table);
    assert_eq!(drain_for_hours(&server, &outbox).await, 0);
    assert!(injected.hits() >= 12);
    server.faults().clear();
    assert_eq!(outbox.drain().await.unwrap(), report(1, 0, 0, 0));
}

/// A worker that ends during an attempt has counted it before.
#[tokio::test(start_paused = true)]
async fn a_message_that_ends_its_worker_is_set_aside() {
    let (server, table, _titles) = company().await;
    let batch = table
        .batch("Sales")
        .insert(&department("a"))
        .then(renamed("a"));
    batch.await.unwrap();
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let outbox = Outbox::new(&table).on(move |_: Received<Renamed>| {
        *counted.lock().unwrap() += 1;
        pending()
    });
    for _ in 0..12 {
        // The worker ends.
        let drain = tokio::time::timeout(Duration::from_secs(5), outbox.drain().into_future());
        drop(drain.await);
        server.clock().advance(Duration::from_secs(601));
    }
    assert_eq!(*calls.lock().unwrap(), 10);
    let poisoned = outbox.poisoned().await.unwrap();
    assert_eq!(poisoned[0].error(), "the worker did not survive it");
}

/// Another worker sets it aside during its last attempt, of which the delete is not sent at first.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_set_aside_during_its_last_attempt_is_found() {
    let (server, table, _titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    batch.then(renamed("a")).later().await.unwrap();
    let (calls, goes_on) = (Arc::new(Mutex::new(0)), Arc::new(Notify::new()));
    let wait = Arc::clone(&goes_on);
    let outbox = Outbox::new(&table).on(move |_: Received<Renamed>| {
        let wait = Arc::clone(&wait);
        *calls.lock().unwrap() += 1;
        let fails = *calls.lock().unwrap() < 10;
        async move {
            if fails {
                return Err("the mail server is down".into());
            }
            wait.notified().await;
            Ok(())
        }
    });
    for _ in 0..9 {
        assert_eq!(outbox.drain().await.unwrap().failed, 1);
        server.clock().advance(Duration::from_secs(700));
    }
    let other = async {
        sleep(Duration::from_secs(1)).await;
        server.clock().advance(Duration::from_secs(700));
        let report = outbox.drain().await.unwrap();
        let deletes = server.faults().on(Op::DeleteEntity).times(1);
        let injected = deletes.inject(Fault::reset());
        goes_on.notify_one();
        (report, injected)
    };
    let (slow, (other, injected)) = tokio::join!(outbox.drain().into_future(), other);
    slow.unwrap();
    assert_eq!((other.set_aside, injected.hits()), (1, 1));
    assert_eq!(outbox.poisoned().await.unwrap().len(), 1);
}

/// The worker that applied it has the log of the table that was deleted since.
#[tokio::test(start_paused = true)]
async fn a_late_delete_does_not_remove_a_step_of_a_table_made_again() {
    let (server, table, titles) = company().await;
    let write = async |name: &str| {
        let batch = table.batch("Sales").insert(&department(name));
        batch
            .then(Step::upsert_replace(&titles, &title(name)))
            .later()
            .await
    };
    write("old").await.unwrap();
    let deletes = server.faults().on(Op::DeleteEntity).times(1);
    let late = Fault::reset().applied_after(Duration::from_secs(60));
    let injected = deletes.inject(late);
    let outbox = Outbox::new(&table);
    let once = outbox.drain().retry(RetryPolicy::none());
    drop(once.await);
    assert_eq!(injected.hits(), 1);
    table.delete_table().await.unwrap();
    table.create_table().await.unwrap();
    write("new").await.unwrap();
    sleep(Duration::from_secs(90)).await;
    assert_eq!(outbox.drain().await.unwrap().applied, 1);
    assert_eq!(stored_title(&titles).await.as_deref(), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn a_pointer_without_entries_is_deleted_when_no_commit_can_follow() {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let (table, titles) = (service.table("Company"), service.table("Titles"));
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    let batches = server.faults().on(Op::EntityGroupTransaction);
    let late = Fault::reset().applied_after(Duration::from_secs(180));
    let injected = batches.times(1).inject(late);
    let batch = table.batch("Sales").insert(&department("a"));
    let step = Step::upsert_replace(&titles, &title("a"));
    let error = batch.then(step).await.unwrap_err();
    assert!(
        error.is_outcome_unknown() && injected.hits() == 1,
        "{error}"
    );
    let outbox = Outbox::new(&table);
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server).len(), 1, "the commit may be in flight");
    sleep(Duration::from_secs(61)).await;
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
    // The commit arrives now, and is refused.
    sleep(Duration::from_secs(180)).await;
    assert_eq!(outbox_rows(&server), ["head"]);
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
}

/// A late insert of an earlier step brings a deleted entity back: it is deleted again, when no such request can be in flight any more.
#[tokio::test(start_paused = true)]
async fn a_deleted_entity_that_comes_back_is_deleted_again() {
    let (server, table, titles) = company().await;
    let batch = table.batch("Sales").insert(&department("a"));
    let step = Step::upsert_replace(&titles, &title("a"));
    let inserts = server.faults().on(Op::InsertEntity).table("Titles");
    let late = Fault::late_duplicate(Duration::from_secs(1_800));
    let injected = inserts.times(1).inject(late);
    batch.then(step).await.unwrap();
    assert_eq!(injected.hits(), 1);
    let batch = table.batch("Sales").upsert_replace(&department("b"));
    batch
        .then(Step::delete(&titles, ("Titles", "Sales")))
        .await
        .unwrap();
    sleep(Duration::from_secs(1_801)).await;
    assert_eq!(
        stored_title(&titles).await.as_deref(),
        Some("a"),
        "it came back"
    );
    let outbox = Outbox::new(&table);
    outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    sleep(HOUR).await;
    outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await, None);
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// The entity shows that the step was applied, although its entry was not deleted: what the program wrote since stays.
#[tokio::test(start_paused = true)]
async fn a_step_that_was_applied_is_not_applied_again() {
    let (server, table, titles) = company().await;
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.inject(Fault::reset());
    let batch = table.batch("Sales").insert(&department("a"));
    batch
        .then(Step::upsert_replace(&titles, &title("a")))
        .await
        .unwrap();
    assert!(injected.hits() > 0);
    server.faults().clear();
    let key = ("Titles", "Sales");
    let mut read = titles.get::<DynamicEntity>(key).await.unwrap().unwrap();
    read.properties_mut().set("Title", "edited");
    titles.replace(&mut read).await.unwrap();
    assert_eq!(
        Outbox::new(&table).drain().await.unwrap(),
        report(1, 0, 0, 0)
    );
    assert_eq!(stored_title(&titles).await.as_deref(), Some("edited"));
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// Else the worker that comes after would write the deleted entity anew.
#[tokio::test(start_paused = true)]
async fn an_applied_step_is_removed_before_a_delete_step_begins() {
    let (server, table, titles) = company().await;
    let batch = table
        .batch("Sales")
        .insert(&department("a"))
        .then(Step::upsert_replace(&titles, &title("a")))
        .then(Step::delete(&titles, ("Titles", "Sales")));
    batch.later().await.unwrap();
    let deletes = server.faults().on(Op::DeleteEntity).table("Company");
    let injected = deletes.inject(Fault::reset());
    let outbox = Outbox::new(&table);
    drop(outbox.drain().await);
    assert!(injected.hits() > 0);
    server.faults().clear();
    sleep(Duration::from_secs(31)).await;
    outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await, None);
}

/// A worker that is slow for hours does not write what was deleted meanwhile, when the delete is not looked at any more.
#[tokio::test(start_paused = true)]
async fn a_worker_reads_the_log_again_after_a_long_pause() {
    let (server, table, titles) = company().await;
    for step in [
        Step::upsert_replace(&titles, &title("a")),
        Step::delete(&titles, ("Titles", "Sales")),
    ] {
        let batch = table.batch("Sales").upsert_replace(&department("a"));
        batch.then(step).later().await.unwrap();
    }
    let patient = RetryPolicy::none().try_timeout(HOUR * 3).deadline(HOUR * 3);
    let slow = client_with(&server, |builder| builder.retry(patient)).table("Company");
    let reads = server.faults().on(Op::QueryEntity).table("Titles");
    let pause = Fault::delayed_response(HOUR * 2);
    let injected = reads.times(1).inject(pause);
    let others = async {
        for pause in [60, 60, 3_700, 60] {
            sleep(Duration::from_secs(pause)).await;
            Outbox::new(&table).drain().await.unwrap();
        }
        assert_eq!(outbox_rows(&server), ["head"]);
    };
    let slow = Outbox::new(&slow);
    let (drained, ()) = tokio::join!(slow.drain(), others);
    assert_eq!((drained.unwrap(), injected.hits()), (report(0, 0, 0, 0), 1));
    assert_eq!(stored_title(&titles).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_step_does_not_merge_into_an_entity_that_came_back() {
    let (server, table, titles) = company().await;
    let inserts = server.faults().on(Op::InsertEntity).table("Titles");
    let late = Fault::late_duplicate(Duration::from_secs(1_800));
    let injected = inserts.times(1).inject(late);
    let write = async |step| {
        let batch = table.batch("Sales").upsert_replace(&department("a"));
        batch.then(step).await.unwrap();
    };
    write(Step::upsert_replace(&titles, &title("a"))).await;
    write(Step::delete(&titles, ("Titles", "Sales"))).await;
    assert_eq!(injected.hits(), 1);
    sleep(Duration::from_secs(1_801)).await;
    let remark = DynamicEntity::new("Titles", "Sales").with("Remark", "new");
    write(Step::upsert_merge(&titles, &remark)).await;
    let found = titles
        .get::<DynamicEntity>(("Titles", "Sales"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.properties().get("Title"), None);
    assert_eq!(found.properties().read::<String>("Remark").unwrap(), "new");
    sleep(HOUR).await;
    Outbox::new(&table).drain().await.unwrap();
    // It is newer than the delete step.
    assert!(
        titles
            .get::<DynamicEntity>(("Titles", "Sales"))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// More entries than fit into a page.
#[tokio::test(start_paused = true)]
async fn a_long_log_is_applied_in_its_order() {
    let (server, table, titles) = company().await;
    let text = "x".repeat(30_000);
    for round in 0..8 {
        let mut batch = table.batch("Sales").upsert_replace(&department("a"));
        for n in 0..12 {
            let entity = title(&format!("{round}-{n}"))
                .with("A", text.as_str())
                .with("B", text.as_str());
            batch = batch.then(Step::upsert_merge(&titles, &entity));
        }
        batch.later().await.unwrap();
    }
    let outbox = Outbox::new(&table);
    assert_eq!(outbox.drain().await.unwrap(), report(96, 0, 0, 0));
    assert_eq!(stored_title(&titles).await.as_deref(), Some("7-11"));
    sleep(Duration::from_secs(61)).await;
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}
