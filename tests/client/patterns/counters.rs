//! Counters: an amount is counted once, under contention, and after single faults.

use std::pin::pin;
use std::time::Duration;

use futures::future::{FutureExt as _, join_all, try_join_all};
use harness::Subject;
use tablesdk::counter::Counter;
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, Stored, TableClient};
use tablesdk_server::testing::Fault;
use tokio::time::{sleep, timeout};

use crate::on_both_transports;

fn views(table: &TableClient) -> Counter {
    Counter::new(table, ("home", "views"))
}

async fn shards(table: &TableClient) -> Vec<DynamicEntity> {
    let stored = table.query::<DynamicEntity>().partition("home").collect();
    let stored = stored.await.unwrap();
    stored.into_iter().map(Stored::into_inner).collect()
}

on_both_transports! {
    async fn amounts_of_several_clients_are_counted(subject: Subject) {
        let table = subject.table().await;
        let (one, two) = (views(&table), views(&table).shards(100));
        assert_eq!(one.value().await.unwrap(), 0);
        for amount in [1, 20, -5] {
            one.add(amount).await.unwrap();
            two.add(amount).await.unwrap();
        }
        one.add(0).await.unwrap();
        assert_eq!(one.value().await.unwrap(), 32);
        assert_eq!(two.value().await.unwrap(), 32);
    }
}

#[tokio::test]
async fn other_counters_are_not_counted() {
    let (_subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let (one, below) = (views(&table), Counter::new(&table, ("home", "views~00")));
    one.add(1).await.unwrap();
    below.add(1).await.unwrap();
    for key in [
        ("home", "views~"),
        ("home", "views2"),
        ("home", "view"),
        ("away", "views"),
    ] {
        Counter::new(&table, key).add(1).await.unwrap();
    }
    for row_key in [
        "views",
        "views~",
        "views~0",
        "views~000",
        "views~0x",
        "views~ä",
    ] {
        let other = DynamicEntity::new("home", row_key).with("Name", "no counter");
        table.insert(&other).await.unwrap();
    }
    assert_eq!(one.value().await.unwrap(), 1);
    assert_eq!(below.value().await.unwrap(), 1);
}

#[tokio::test]
async fn concurrent_calls_are_written_together() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let journal = subject.server().journal();
    let counter = views(&table);
    counter.add(1).await.unwrap();
    assert_eq!(journal.requests().count(), 2);
    counter.add(1).await.unwrap();
    assert_eq!(journal.requests().count(), 3);
    let adds = (0..1_000).map(|_| counter.add(1));
    try_join_all(adds).await.unwrap();
    assert_eq!(journal.requests().count(), 4);
    assert_eq!(counter.value().await.unwrap(), 1_002);
    assert_eq!(shards(&table).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_while_a_request_is_in_flight_are_the_next_one() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let counter = views(&table);
    counter.add(1).await.unwrap();
    let journal = subject.server().journal();
    journal.clear();
    let second = Duration::from_secs(1);
    faults.on_writes().inject(Fault::delay(second));
    let counter = &counter;
    let adds = (0..20).map(|nth| async move {
        sleep(second * (nth / 10) / 2).await;
        counter.add(1).await.unwrap();
    });
    join_all(adds).await;
    assert_eq!(journal.requests().count(), 2);
    assert_eq!(counter.value().await.unwrap(), 21);
}

#[tokio::test]
async fn clients_that_conflict_go_to_other_shards() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let clients: Vec<Counter> = (0..4).map(|_| views(&table)).collect();
    for _ in 0..50 {
        for counter in &clients {
            counter.add(1).await.unwrap();
        }
    }
    let journal = subject.server().journal();
    journal.clear();
    for _ in 0..10 {
        for counter in &clients {
            counter.add(1).await.unwrap();
        }
    }
    assert_eq!(journal.requests().count(), 40);
    assert_eq!(shards(&table).await.len(), 4);
    assert_eq!(clients[0].value().await.unwrap(), 240);

    // Of one shard, too, each amount is counted.
    let clients: Vec<Counter> = (0..4).map(|_| views(&table).shards(1)).collect();
    for _ in 0..10 {
        let adds = clients.iter().map(|counter| counter.add(1));
        try_join_all(adds).await.unwrap();
    }
    assert_eq!(clients[0].value().await.unwrap(), 280);
}

#[tokio::test]
async fn a_count_that_exceeds_64_bits_is_an_error() {
    let (_subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let counter = views(&table).shards(1);
    counter.add(i64::MAX - 1).await.unwrap();
    counter.add(1).await.unwrap();
    let error = counter.add(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let expected = "add to counter in \"Tests\" at in-process.invalid/devstoreaccount1 (\"home\", \"views~00\"): the count does not fit into 64 bits";
    assert_eq!(error.to_string(), expected);
    assert_eq!(counter.value().await.unwrap(), i64::MAX);
    counter.add(-1).await.unwrap();
    counter.add(i64::MIN).await.unwrap();
    assert_eq!(counter.value().await.unwrap(), -2);
    // The amounts of one request exceed 64 bits, and their sum with the count does not.
    let (one, two, three) = tokio::join!(
        counter.add(0),
        counter.add(i64::MAX),
        counter.add(2 + i64::MIN + 1)
    );
    one.and(two).and(three).unwrap();
    assert_eq!(counter.value().await.unwrap(), 0);

    let other = DynamicEntity::new("home", "views~01").with("Count", i64::MAX);
    table.insert(&other).await.unwrap();
    counter.add(1).await.unwrap();
    let error = counter.value().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let is_right = error.to_string().ends_with("does not fit into 64 bits");
    assert!(is_right, "{error}");
}

#[tokio::test]
async fn bad_input_and_an_entity_that_is_no_shard_are_refused() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let journal = subject.server().journal();
    for shards in [0, 101] {
        let counter = views(&table).shards(shards);
        let error = counter.add(1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let rule = "a counter has 1 to 100 shards";
        assert!(error.to_string().ends_with(rule), "{error}");
        counter.value().await.unwrap_err();
    }
    let long = Counter::new(&table, ("home", "v".repeat(512)));
    assert_eq!(long.add(1).await.unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(journal.requests().count(), 0);
    let longest = Counter::new(&table, ("home", "v".repeat(509)));
    longest.add(1).await.unwrap();

    let shard = || DynamicEntity::new("home", "views~00");
    for entity in [
        shard().with("Count", 1_i64),
        shard().with("Writers", ""),
        shard().with("Count", 1_i64).with("Writers", "a"),
        shard().with("Count", "1").with("Writers", ""),
    ] {
        let etag = table.upsert_replace(&entity).await.unwrap();
        let error = views(&table).shards(1).add(1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let expected =
            "(\"home\", \"views~00\"): the entity is not that of a counter: its property";
        assert!(error.to_string().contains(expected), "{error}");
        let stored = table.get::<DynamicEntity>(("home", "views~00")).await;
        assert_eq!(*stored.unwrap().unwrap().etag(), etag);
    }
}

#[tokio::test(start_paused = true)]
async fn the_amount_of_a_dropped_call_is_counted_at_most_once() {
    for fault in [
        Fault::delayed_response(Duration::from_secs(5)),
        Fault::delay(Duration::from_secs(5)),
        Fault::no_response(),
        Fault::no_response().applied_after(Duration::from_secs(2)),
    ] {
        let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
        let counter = views(&table).shards(1);
        counter.add(1).await.unwrap();
        let injected = faults.on_writes().times(1).inject(fault);
        let dropped = timeout(Duration::from_secs(1), counter.add(20)).await;
        assert!(dropped.is_err());
        assert_eq!(injected.hits(), 1);
        // It finishes what was begun, and then adds its own amount.
        counter.add(300).await.unwrap();
        assert_eq!(counter.value().await.unwrap(), 321);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(counter.value().await.unwrap(), 321);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_polled_no_more_stops_no_other() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let counter = views(&table);
    let slow = Fault::delayed_response(Duration::from_secs(1));
    let injected = faults.on_any().times(1).inject(slow);
    let mut aside = pin!(counter.add(1));
    for _ in 0..2 {
        assert!(aside.as_mut().now_or_never().is_none());
    }
    assert_eq!(injected.hits(), 1, "it has sent its request");
    counter.add(20).await.unwrap();
    assert_eq!(counter.value().await.unwrap(), 21);
    aside.await.unwrap();
    assert_eq!(counter.value().await.unwrap(), 21);
}

#[tokio::test(start_paused = true)]
async fn callers_share_the_error_of_their_request() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let counter = views(&table);
    counter.add(1).await.unwrap();
    faults.on_writes().times(1).inject(Fault::reset());
    let results = join_all((0..10).map(|_| counter.add(1))).await;
    let mut errors = results.into_iter().map(Result::unwrap_err);
    assert!(errors.all(|error| error.is_outcome_unknown()));
    counter.add(1).await.unwrap();
    assert_eq!(counter.value().await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_after_a_lost_request_does_not_say_that_the_amount_is_not_counted() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let counter = views(&table).shards(1);
    counter.add(1).await.unwrap();
    let late = Fault::error(ErrorCode::InternalError).applied_after(Duration::from_secs(30));
    let refused = Fault::error(ErrorCode::AuthorizationPermissionMismatch);
    let injected = faults.on_writes().inject_each([late, refused]);
    let error = counter.add(10).await.unwrap_err();
    assert_eq!(injected.hits(), 2);
    assert!(error.is_outcome_unknown(), "{error}");
    faults.clear();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(counter.value().await.unwrap(), 11);
}
