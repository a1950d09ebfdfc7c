//! A network that delivers every request twice, and hands on the second response: what a write has
//! done is known by an id that it wrote.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{client, client_with};
use tablesdk::outbox::{Outbox, Received, Step};
use tablesdk::sequence::Sequence;
use tablesdk::{DynamicEntity, Error, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::testing::{Fault, Op};
use tablesdk_server::{ErrorCode, TableServer};

use super::moves::{Plain, tables};
use super::outbox::{Renamed, department, outbox_rows, renamed, stored_title, title};

const MINUTE: Duration = Duration::from_secs(60);

/// A client of two tables, `Company` and `Titles`, which the network does not reach well.
async fn world() -> (TableServer, TableServiceClient) {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()));
    for name in ["Company", "Titles"] {
        service.table(name).create_table().await.unwrap();
    }
    (server, service)
}

fn double_all(server: &TableServer) {
    server.faults().on_any().inject(Fault::duplicate());
}

/// A worker, and the ids of the messages that it has handled.
fn worker(table: &TableClient) -> (Outbox, Arc<Mutex<Vec<String>>>) {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&handled);
    let outbox = Outbox::new(table).on(move |message: Received<Renamed>| {
        log.lock().unwrap().push(message.id().to_owned());
        async { Ok(()) }
    });
    (outbox, handled)
}

/// Writes an entity with a message.
async fn write(table: &TableClient, way: &str) -> Result<(), Error> {
    let key = ("Sales", "dept");
    if way == "transaction" {
        let change = table.transaction("Sales", async |tx| {
            let old = tx.get::<DynamicEntity>(key).await?;
            tx.replace(old.ok_or("it was inserted before")?);
            tx.step(renamed("b"));
            Ok(())
        });
        return change.leave_steps().await;
    }
    let old = table.get::<DynamicEntity>(key).await?;
    let mut old = old.expect("it was inserted before");
    let (new, changed) = (DynamicEntity::new("Sales", "new"), department("b"));
    let batch = table.batch("Sales").step(renamed("b"));
    let batch = match way {
        "insert" => batch.insert(&new),
        "upsert_replace" => batch.upsert_replace(&changed),
        "replace" => batch.replace(&mut old),
        _ => batch.delete_stored(&old),
    };
    batch.leave_steps().await?;
    if way == "replace" {
        // It has the ETag of the version that was written.
        table.replace(&mut old).await?;
    }
    Ok(())
}

/// Else a handler that knows messages by their ids would send two mails.
#[tokio::test(start_paused = true)]
async fn a_commit_that_is_delivered_twice_stores_its_message_once() {
    for (way, are_all_doubled) in [
        ("insert", false),
        ("upsert_replace", false),
        ("replace", false),
        ("delete_stored", false),
        ("transaction", false),
        ("insert", true),
        ("upsert_replace", true),
        ("delete_stored", true),
        ("transaction", true),
    ] {
        let (server, service) = world().await;
        let table = service.table("Company");
        table.insert(&department("a")).await.unwrap();
        let doubled = if are_all_doubled {
            server.faults().on_any()
        } else {
            server.faults().on(Op::Batch).nth(1)
        };
        doubled.inject(Fault::duplicate());
        let journal = server.journal();
        journal.clear();
        write(&table, way).await.expect(way);
        assert_eq!(journal.requests().op(Op::Batch).count(), 2, "{way}");
        let (outbox, handled) = worker(&table);
        outbox.drain().await.unwrap();
        assert_eq!(handled.lock().unwrap().len(), 1, "{way}");
        assert_eq!(outbox_rows(&server), ["head"], "{way}");
    }
}

/// The second one is refused, or both have no response. The head shows that the commit was carried
/// out.
#[tokio::test(start_paused = true)]
async fn a_commit_whose_response_is_lost_is_known() {
    for responses in [1, 20] {
        let (server, service) = world().await;
        let table = service.table("Company");
        let commits = server.faults().on(Op::Batch).times(responses);
        let timed_out = Fault::error(ErrorCode::OperationTimedOut).applied();
        let hidden = commits.inject(timed_out);
        let inserted = DynamicEntity::new("Sales", "new");
        let batch = table.batch("Sales").insert(&inserted).step(renamed("a"));
        batch.leave_steps().await.unwrap();
        assert!(hidden.hits() > 0);
    }
}

/// The head has another version, and only its content would say whose.
#[tokio::test(start_paused = true)]
async fn a_refused_commit_is_of_unknown_outcome_if_the_head_cannot_be_read() {
    let (server, service) = world().await;
    let table = service.table("Company");
    let commits = server.faults().on(Op::Batch);
    commits.nth(1).inject(Fault::duplicate());
    let reads = server.faults().on(Op::QueryEntities);
    let denied = Fault::error(ErrorCode::AuthorizationFailure);
    reads.nth(2).inject(denied);
    let inserted = DynamicEntity::new("Sales", "new");
    let batch = table.batch("Sales").insert(&inserted).step(renamed("a"));
    let error = batch.leave_steps().await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    let (outbox, handled) = worker(&table);
    outbox.drain().await.unwrap();
    assert_eq!(handled.lock().unwrap().len(), 1);
}

/// A worker is so fast that the entry of the commit is gone when its second response arrives.
#[tokio::test(start_paused = true)]
async fn a_commit_whose_message_was_handled_meanwhile_is_known() {
    let (server, service) = world().await;
    let table = service.table("Company");
    let commits = server.faults().on(Op::Batch);
    commits.nth(1).inject(Fault::duplicate());
    // The read of the head after the refusal.
    let reads = server.faults().on(Op::QueryEntities);
    let slow = reads.nth(2).inject(Fault::delay(MINUTE));
    let (outbox, handled) = worker(&table);
    let draining = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        outbox.drain().partition("Sales").await.unwrap()
    };
    let new = department("a");
    let batch = table.batch("Sales").upsert_replace(&new).step(renamed("a"));
    let (written, drained) = tokio::join!(batch.leave_steps(), draining);
    written.unwrap();
    assert_eq!((drained.applied, slow.hits()), (1, 1));
    outbox.drain().await.unwrap();
    assert_eq!(handled.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_requests_all_arrive_twice_applies_each_step() {
    let (server, service) = world().await;
    let (table, titles) = (service.table("Company"), service.table("Titles"));
    let other = DynamicEntity::new("Titles", "Other");
    titles.insert(&other).await.unwrap();
    let batch = table.batch("Sales").insert(&department("a"));
    let batch = batch
        .step(renamed("a"))
        .step(Step::upsert_replace(&titles, &title("a")))
        .step(Step::delete(&titles, ("Titles", "Other")))
        .step(renamed("b"));
    batch.leave_steps().await.unwrap();
    double_all(&server);
    let (outbox, handled) = worker(&table);
    let report = outbox.drain().await.unwrap();
    assert_eq!((report.waiting, report.failed, report.set_aside), (0, 0, 0));
    assert_eq!(handled.lock().unwrap().len(), 2);
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    let found = titles.get::<DynamicEntity>(("Titles", "Other")).await;
    assert_eq!(found.unwrap(), None);
    assert_eq!(outbox.poisoned().await.unwrap().len(), 0);
    // What a delete step has left, and the pointer, whose last entry this worker has not removed
    // for certain.
    server.clock().advance(MINUTE * 61);
    for _ in 0..2 {
        outbox.drain().await.unwrap();
    }
    assert_eq!(outbox_rows(&server), ["head"]);
}

#[tokio::test(start_paused = true)]
async fn a_move_whose_requests_all_arrive_twice_returns_the_entity_of_the_other_table() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    table.insert(&Plain::new("1", 1)).await.unwrap();
    double_all(&server);
    let found = Plain::find(&table, "1").await.expect("it was inserted");
    let mut moved = table.move_to(&archive, found).await.unwrap();
    server.faults().clear();
    moved.version = 2;
    archive.replace(&mut moved).await.unwrap();
    // A marker that was met remains until it is cleaned up.
    server.clock().advance(MINUTE * 61);
    archive.clean_up_markers("Sales").await.unwrap();
    let dump = server.dump().unwrap();
    assert!(!dump.contains("~tablesdk"), "{dump}");
}

#[tokio::test(start_paused = true)]
async fn a_sequence_whose_requests_all_arrive_twice_loses_no_block() {
    let (server, service) = world().await;
    let table = service.table("Company");
    double_all(&server);
    let sequence = Sequence::new(&table, ("numbers", "claims")).block(2);
    for expected in 1..=6 {
        assert_eq!(sequence.next().await.unwrap(), expected);
    }
    let other = Sequence::new(&table, ("numbers", "claims")).block(2);
    assert_eq!(other.next().await.unwrap(), 7);
}
