//! A network that delivers every request twice, and hands on the second response: what a write has done is known by an id that it wrote.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{client, client_with};
use tablesdk::lease::Lease;
use tablesdk::outbox::{Outbox, Received, Step};
use tablesdk::sequence::Sequence;
use tablesdk::{DynamicEntity, Error, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

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

/// The ways to write an entity with a message.
const WAYS: [&str; 5] = [
    "insert",
    "upsert_replace",
    "replace",
    "delete_stored",
    "transaction",
];

async fn write(table: &TableClient, way: &str) -> Result<(), Error> {
    let old = || async {
        let found = table.get::<DynamicEntity>(("Sales", "dept")).await;
        found.unwrap().expect("it was inserted before")
    };
    let message = renamed("b");
    let batch = table.batch("Sales");
    match way {
        "insert" => {
            let new = DynamicEntity::new("Sales", "new");
            batch
                .insert(&new)
                .step(message)
                .leave_steps()
                .await
                .map(drop)
        }
        "upsert_replace" => {
            let new = department("b");
            let batch = batch.upsert_replace(&new).step(message);
            batch.leave_steps().await.map(drop)
        }
        "replace" => {
            let mut old = old().await;
            old.properties_mut().set("Title", "b");
            batch.replace(&mut old).step(message).leave_steps().await?;
            // It has the ETag of the version that was written.
            table.replace(&mut old).await.map(drop)
        }
        "delete_stored" => {
            let old = old().await;
            batch
                .delete_stored(&old)
                .step(message)
                .leave_steps()
                .await
                .map(drop)
        }
        _ => {
            let change = table.transaction("Sales", async |tx| {
                let mut old = tx
                    .get::<DynamicEntity>(("Sales", "dept"))
                    .await?
                    .ok_or("it was inserted before")?;
                old.properties_mut().set("Title", "b");
                tx.replace(old);
                tx.step(renamed("b"));
                Ok(())
            });
            change.leave_steps().await
        }
    }
}

/// Else a handler that knows messages by their ids would send two mails.
#[tokio::test(start_paused = true)]
async fn a_commit_that_is_delivered_twice_stores_its_message_once() {
    for way in WAYS {
        let (server, service) = world().await;
        let table = service.table("Company");
        table.insert(&department("a")).await.unwrap();
        let commits = server.faults().on(Op::Batch);
        let injected = commits.nth(1).inject(Fault::duplicate());
        write(&table, way).await.expect(way);
        assert_eq!(injected.hits(), 1, "{way}");
        let (outbox, handled) = worker(&table);
        assert_eq!(outbox.drain().await.unwrap().applied, 1, "{way}");
        assert_eq!(handled.lock().unwrap().len(), 1, "{way}");
        assert_eq!(outbox_rows(&server), ["head"], "{way}");
    }
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
async fn a_batch_whose_requests_all_arrive_twice_stores_its_steps_once() {
    for way in WAYS.iter().filter(|way| **way != "replace") {
        let (server, service) = world().await;
        let table = service.table("Company");
        table.insert(&department("a")).await.unwrap();
        double_all(&server);
        let journal = server.journal();
        journal.clear();
        write(&table, way).await.expect(way);
        let commits = journal.requests().op(Op::Batch).count();
        assert_eq!(commits, 2, "{way}");
        let (outbox, handled) = worker(&table);
        outbox.drain().await.unwrap();
        assert_eq!(handled.lock().unwrap().len(), 1, "{way}");
        assert_eq!(outbox_rows(&server), ["head"], "{way}");
    }
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
    // What a delete step has left, and the pointer, whose last entry this worker has not removed for certain.
    server.clock().advance(MINUTE * 61);
    for _ in 0..2 {
        outbox.drain().await.unwrap();
    }
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// What fails is set aside in the end, once, and put back.
#[tokio::test(start_paused = true)]
async fn a_step_that_fails_where_all_requests_arrive_twice_is_set_aside_after_10_attempts() {
    let (server, service) = world().await;
    let table = service.table("Company");
    let batch = table.batch("Sales").insert(&department("a"));
    batch.step(renamed("a")).leave_steps().await.unwrap();
    double_all(&server);
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let failing = Outbox::new(&table).on(move |_: Received<Renamed>| {
        *counted.lock().unwrap() += 1;
        async { Err("the mail server is down".into()) }
    });
    let mut set_aside = 0;
    for _ in 0..12 {
        set_aside += failing.drain().await.unwrap().set_aside;
        server.clock().advance(MINUTE * 11);
    }
    assert_eq!((*calls.lock().unwrap(), set_aside), (10, 1));
    let poisoned = failing.poisoned().await.unwrap();
    poisoned[0].retry().await.unwrap();
    let (outbox, handled) = worker(&table);
    outbox.drain().await.unwrap();
    assert_eq!(handled.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_move_whose_requests_all_arrive_twice_leaves_one_entity() {
    let server = TableServer::in_process();
    let (table, archive) = tables(&client(&server)).await;
    for id in ["1", "2", "3", "4"] {
        table.insert(&Plain::new(id, 1)).await.unwrap();
    }
    // A copy of an earlier move, and another entity.
    archive.insert(&Plain::new("3", 1)).await.unwrap();
    archive.insert(&Plain::new("4", 0)).await.unwrap();
    double_all(&server);
    let found = async |id: &str| Plain::find(&table, id).await.expect("it was inserted");
    let mut moved = table.move_to(&archive, found("1").await).await.unwrap();
    // It has the ETag of the archive.
    let archived = Plain::find(&archive, "1").await.unwrap();
    assert_eq!(moved.etag(), archived.etag());
    let over = table.move_to(&archive, found("4").await).overwrite();
    drop(over.await.unwrap());
    let rest = table.query::<Plain>().partition("Sales").move_to(&archive);
    let report = rest.await.unwrap();
    assert_eq!(report.progress().written, 2, "{report:?}");
    server.faults().clear();
    assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    let all = archive.query::<Plain>().values().collect().await.unwrap();
    assert_eq!(all, ["1", "2", "3", "4"].map(|id| Plain::new(id, 1)));
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

#[tokio::test(start_paused = true)]
async fn a_lease_whose_requests_all_arrive_twice_is_renewed_and_released() {
    let (server, service) = world().await;
    let table = service.table("Company");
    double_all(&server);
    let acquire = || Lease::acquire(&table, ("payroll", "lock"), MINUTE);
    for token in [1, 2] {
        let mut lease = acquire().await.unwrap().expect("it is free");
        assert_eq!(lease.token(), token);
        for _ in 0..2 {
            tokio::time::sleep(MINUTE / 2).await;
            lease.renew().await.unwrap();
            assert_eq!(lease.remaining(), Duration::from_secs(54));
        }
        let run = DynamicEntity::new("payroll", format!("run {token}"));
        let fenced = lease.fence(table.batch("payroll")).insert(&run);
        // A batch proves nothing about itself.
        assert!(fenced.await.unwrap_err().is_precondition_failed());
        lease.renew().await.unwrap();
        assert!(lease.is_held());
        lease.release().await.unwrap();
    }
}
