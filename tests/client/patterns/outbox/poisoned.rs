//! The outbox: steps that fail again and again.

use std::future::{IntoFuture as _, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use harness::{client, client_with};
use tablesdk::outbox::{Outbox, PoisonedStep, Received, Step};
use tablesdk::{DynamicEntity, ErrorCode, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{
    Renamed, commit, company, failing, leave, outbox_rows, renamed, report, set_title, stored_title,
};

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
    commit(&table, [renamed("a"), set_title(&titles, "a")]).await;
    let (outbox, calls) = failing(&table);
    assert_eq!(drain_for_hours(&server, &outbox).await, 1);
    assert_eq!(calls.load(Ordering::Relaxed), 10);
    // The next step goes on.
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    let poisoned = outbox.poisoned().await.unwrap();
    let [step] = &poisoned[..] else {
        panic!("{poisoned:?}")
    };
    assert_eq!((step.partition(), step.number()), ("Sales", 1));
    assert_eq!(step.message(), Some("renamed"));
    assert!(step.error().contains("the mail server is down"), "{step}");
    let expected = "step 1 of the partition \"Sales\" (message \"renamed\") failed 10 times: ";
    assert!(step.to_string().starts_with(expected), "{step}");
    step.retry().await.unwrap();
    assert_eq!(outbox.poisoned().await.unwrap().len(), 0);
    let working = Outbox::new(&table).on(async |_: Received<Renamed>| Ok(()));
    assert_eq!(working.drain().await.unwrap(), report(1, 0, 0, 0));
    // The pointer of the first write, whose entries are gone.
    server.clock().advance(Duration::from_secs(61));
    working.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
}

/// The second response of each request is handed on.
#[tokio::test(start_paused = true)]
async fn a_message_is_set_aside_after_10_attempts_where_all_requests_arrive_twice() {
    let (server, table, _titles) = company().await;
    leave(&table, [renamed("a")]).await;
    server.faults().on_any().inject(Fault::duplicate());
    let (outbox, calls) = failing(&table);
    assert_eq!(drain_for_hours(&server, &outbox).await, 1);
    assert_eq!(calls.load(Ordering::Relaxed), 10);
    outbox.poisoned().await.unwrap()[0].retry().await.unwrap();
    outbox.drain().await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 11);
}

/// An entity that steps cannot write, and one that they can.
fn steps(missing: &TableClient, titles: &TableClient, name: &str) -> [Step; 2] {
    let other = DynamicEntity::new("Titles", name).with("Title", name);
    [
        set_title(missing, name),
        Step::upsert_replace(titles, &other),
    ]
}

/// Else a retry of the first one would meet the stamp of a later one, and its content would be
/// lost.
#[tokio::test(start_paused = true)]
async fn later_steps_of_the_same_entity_are_set_aside_behind_a_poisoned_one() {
    let (server, table, titles) = company().await;
    let missing = client(&server).table("Missing");
    let outbox = Outbox::new(&table);
    for name in ["a", "b"] {
        leave(&table, steps(&missing, &titles, name)).await;
    }
    assert_eq!(outbox.drain().await.unwrap().set_aside, 2);
    // The second one was not tried at all.
    let poisoned = outbox.poisoned().await.unwrap();
    let numbers: Vec<_> = poisoned.iter().map(PoisonedStep::number).collect();
    assert_eq!(numbers, [1, 3], "{poisoned:?}");
    assert!(poisoned[0].error().contains("TableNotFound"));
    let reason = "step 1 of the same entity was set aside";
    assert_eq!(poisoned[1].error(), reason);
    // A writer sets its own step aside behind them, and the other steps go on.
    commit(&table, steps(&missing, &titles, "c")).await;
    assert_eq!(outbox.poisoned().await.unwrap().len(), 3);
    assert_eq!(titles.query::<DynamicEntity>().count().await.unwrap(), 3);
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
    leave(&table, steps(&missing, &titles, "a")).await;
    let outbox = Outbox::new(&table);
    assert_eq!(drain_for_hours(&server, &outbox).await, 1);
    outbox.poisoned().await.unwrap()[0].discard().await.unwrap();
    assert_eq!(outbox.poisoned().await.unwrap().len(), 0);
    outbox.drain().await.unwrap();
    assert_eq!(outbox_rows(&server), ["head"]);
    // The entity is not blocked any more.
    missing.create_table().await.unwrap();
    commit(&table, [set_title(&missing, "b")]).await;
    assert_eq!(stored_title(&missing).await.as_deref(), Some("b"));
}

/// Waiting does not create it, and the steps behind it would wait, too.
#[tokio::test(start_paused = true)]
async fn a_step_into_a_missing_table_is_set_aside_at_once() {
    let (server, table, titles) = company().await;
    let missing = client(&server).table("Missing");
    let steps = |name: &str| {
        [
            Step::upsert_replace(&missing, &DynamicEntity::new("Titles", name)),
            Step::delete(&missing, ("Titles", "other")),
            set_title(&titles, name),
        ]
    };
    // By a worker.
    leave(&table, steps("a")).await;
    let outbox = Outbox::new(&table);
    let drained = outbox.drain().await.unwrap();
    assert_eq!(stored_title(&titles).await.as_deref(), Some("a"));
    assert_eq!((drained.applied, drained.set_aside), (1, 2));
    assert_eq!((drained.waiting, drained.failed), (0, 2));
    assert!(drained.missing_tables.iter().eq(["Missing"]));
    let poisoned = outbox.poisoned().await.unwrap();
    let expected = "step 1 of the partition \"Sales\" (upsert_replace in \"Missing\" (\"Titles\", \"a\")) failed once: ";
    let shown = poisoned[0].to_string();
    assert!(shown.starts_with(expected), "{shown}");
    assert!(poisoned[0].error().contains("TableNotFound"));
    // By a writer.
    commit(&table, steps("b")).await;
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
    leave(&table, [set_title(&titles, "a")]).await;
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
    commit(&table, [renamed("a")]).await;
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let outbox = Outbox::new(&table).on(move |_: Received<Renamed>| {
        counted.fetch_add(1, Ordering::Relaxed);
        pending()
    });
    for _ in 0..12 {
        // The worker ends.
        let drain = tokio::time::timeout(Duration::from_secs(5), outbox.drain().into_future());
        drop(drain.await);
        server.clock().advance(Duration::from_secs(601));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 10);
    let poisoned = outbox.poisoned().await.unwrap();
    assert_eq!(poisoned[0].error(), "the worker did not survive it");
}

/// Another worker sets it aside during its last attempt, of which the delete is not sent at first.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_set_aside_during_its_last_attempt_is_found() {
    let (server, table, _titles) = company().await;
    leave(&table, [renamed("a")]).await;
    let (failing, _) = failing(&table);
    let goes_on = Arc::new(Notify::new());
    let wait = Arc::clone(&goes_on);
    let outbox = Outbox::new(&table).on(move |_: Received<Renamed>| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            Ok(())
        }
    });
    for _ in 0..9 {
        assert_eq!(failing.drain().await.unwrap().failed, 1);
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
