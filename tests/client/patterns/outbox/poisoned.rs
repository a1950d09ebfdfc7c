//! The outbox: steps that fail again and again.

use std::future::{IntoFuture as _, pending};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{client, client_with};
use tablesdk::outbox::{Outbox, PoisonedStep, Received, Step};
use tablesdk::{DynamicEntity, ErrorCode, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{
    Renamed, company, department, outbox_rows, renamed, report, stored, stored_title, title,
};

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
        .step(renamed("a"))
        .step(Step::upsert_replace(&titles, &title("a")));
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
    let write = |name: &str| {
        let mut batch = table.batch("Sales").upsert_replace(&department(name));
        for step in steps(&missing, &titles, name) {
            batch = batch.step(step);
        }
        batch
    };
    let outbox = Outbox::new(&table);
    write("a").leave_steps().await.unwrap();
    write("b").leave_steps().await.unwrap();
    assert_eq!(outbox.drain().await.unwrap().set_aside, 2);
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
    write("c").await.unwrap();
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
        batch = batch.step(step);
    }
    batch.leave_steps().await.unwrap();
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
        .step(Step::upsert_replace(&missing, &title("b")))
        .await
        .unwrap();
    assert_eq!(stored_title(&missing).await.as_deref(), Some("b"));
}

/// Waiting does not create it, and the steps behind it would wait, too.
#[tokio::test(start_paused = true)]
async fn a_step_into_a_missing_table_is_set_aside_at_once() {
    let (server, table, titles) = company().await;
    let missing = client(&server).table("Missing");
    let write = |name: &str| {
        let batch = table.batch("Sales").upsert_replace(&department(name));
        let entity = DynamicEntity::new("Titles", name).with("Title", name);
        let batch = batch.step(Step::upsert_replace(&missing, &entity));
        let batch = batch.step(Step::delete(&missing, ("Titles", "other")));
        batch.step(Step::upsert_replace(&titles, &title(name)))
    };
    // By a worker.
    write("a").leave_steps().await.unwrap();
    let outbox = Outbox::new(&table);
    let drained = outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    assert_eq!((drained.applied, drained.set_aside), (1, 2));
    assert_eq!((drained.waiting, drained.failed), (0, 2));
    assert!(drained.missing_tables.iter().eq(["Missing"]));
    let poisoned = outbox.poisoned().await.unwrap();
    let expected = "step 1 of the partition \"Sales\" (upsert_replace in \"Missing\" (\"Titles\", \"a\")) failed once: ";
    assert!(
        poisoned[0].to_string().starts_with(expected),
        "{}",
        poisoned[0]
    );
    assert!(poisoned[0].error().contains("TableNotFound"));
    // By a writer.
    write("b").await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("b"));
    assert_eq!(outbox.poisoned().await.unwrap().len(), 4);

    missing.create_table().await.unwrap();
    for step in outbox.poisoned().await.unwrap() {
        step.retry().await.unwrap();
    }
    assert_eq!(outbox.drain().await.unwrap(), report(4, 0, 0, 0));
    assert_eq!(missing.query::<DynamicEntity>().count().await.unwrap(), 2);
}

/// A step whose target fails in that way, and its worker.
async fn with_failing_target(fault: Fault) -> (TableServer, Outbox) {
    let server = TableServer::in_process();
    let once = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let (table, titles) = (once.table("Company"), once.table("Titles"));
    table.create_table().await.unwrap();
    titles.create_table().await.unwrap();
    let batch = table.batch("Sales").insert(&department("a"));
    let step = Step::upsert_replace(&titles, &title("a"));
    batch.step(step).leave_steps().await.unwrap();
    server.faults().on_any().table("Titles").inject(fault);
    (server, Outbox::new(&table))
}

/// A busy service is not the fault of the step.
#[tokio::test(start_paused = true)]
async fn a_step_is_not_set_aside_while_the_service_is_busy() {
    for code in [ErrorCode::ServerBusy, ErrorCode::TooManyRequests] {
        let (server, outbox) = with_failing_target(Fault::error(code)).await;
        let drain = async || outbox.drain().partition("Sales").await;
        for _ in 0..120 {
            assert_eq!(drain().await.unwrap(), report(0, 1, 1, 0));
            // The pause grows, and not to the longest one.
            assert_eq!(drain().await.unwrap(), report(0, 1, 0, 0));
            server.clock().advance(Duration::from_secs(481));
        }
        server.faults().clear();
        assert_eq!(outbox.drain().await.unwrap(), report(1, 0, 0, 0));
    }
}

/// Such as a proxy that accepts no body of that size.
#[tokio::test(start_paused = true)]
async fn a_step_whose_target_always_fails_is_set_aside_after_100_attempts() {
    for fault in [Fault::error(ErrorCode::InternalError), Fault::reset()] {
        let (server, outbox) = with_failing_target(fault).await;
        let drain = async || outbox.drain().partition("Sales").await;
        for _ in 1..100 {
            assert_eq!(drain().await.unwrap(), report(0, 1, 1, 0));
            assert_eq!(drain().await.unwrap(), report(0, 1, 0, 0));
            server.clock().advance(Duration::from_secs(601));
        }
        assert_eq!(outbox.drain().await.unwrap(), report(0, 0, 1, 1));
        let poisoned = outbox.poisoned().await.unwrap();
        assert!(poisoned[0].to_string().contains("failed 100 times: "));
        server.faults().clear();
        poisoned[0].retry().await.unwrap();
        assert_eq!(outbox.drain().await.unwrap(), report(1, 0, 0, 0));
    }
}

/// A worker that ends during an attempt has counted it before.
#[tokio::test(start_paused = true)]
async fn a_message_that_ends_its_worker_is_set_aside() {
    let (server, table, _titles) = company().await;
    let batch = table
        .batch("Sales")
        .insert(&department("a"))
        .step(renamed("a"));
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
    batch.step(renamed("a")).leave_steps().await.unwrap();
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
