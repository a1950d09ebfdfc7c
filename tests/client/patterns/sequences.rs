//! Sequences: unique numbers under contention.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{FutureExt as _, join_all, try_join_all};
use harness::Subject;
use tablesdk::sequence::Sequence;
use tablesdk::{DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::Instant;

use crate::on_both_transports;

fn claims(table: &TableClient, block: u32) -> Sequence {
    Sequence::new(table, ("numbers", "claims")).block(block)
}

on_both_transports! {
    async fn numbers_are_unique_and_start_at_one(subject: Subject) {
        let table = subject.table().await;
        let (one, two) = (claims(&table, 3), claims(&table, 2));
        let mut given = Vec::new();
        for _ in 0..4 {
            given.push(one.next().await.unwrap());
            given.push(two.next().await.unwrap());
        }
        assert_eq!(given, [1, 4, 2, 5, 3, 6, 8, 7]);
        let stored = table.get::<DynamicEntity>(("numbers", "claims")).await;
        let next = stored.unwrap().unwrap().properties().read::<i64>("Next");
        assert_eq!(next.unwrap(), 11);
    }
}

#[tokio::test]
async fn concurrent_callers_share_a_block() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let journal = subject.server().journal();
    journal.clear();
    let sequence = claims(&table, 1_000);
    let given = try_join_all((0..1_000).map(|_| sequence.next())).await;
    let given: BTreeSet<u64> = given.unwrap().into_iter().collect();
    assert_eq!(given, (1..=1_000).collect());
    assert_eq!(journal.requests().count(), 2);
    assert_eq!(sequence.next().await.unwrap(), 1_001);
    assert_eq!(journal.requests().count(), 4);
}

/// The stored entity shows whether a block is taken. One that may still be taken, by a late
/// request, is left out.
#[tokio::test(start_paused = true)]
async fn a_write_of_unknown_outcome_costs_a_block_at_most() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    assert_eq!(claims(&table, 10).next().await.unwrap(), 1);
    let timed_out = Fault::error(ErrorCode::OperationTimedOut);
    for (fault, expected) in [(timed_out.clone().applied(), 11), (timed_out, 21)] {
        let lost = faults.on_writes().times(1).inject(fault);
        assert_eq!(claims(&table, 10).next().await.unwrap(), expected);
        assert_eq!(lost.hits(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_callers_share_the_error() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let sequence = claims(&table, 10);
    faults.on_any().inject(Fault::no_response());
    let began = Instant::now();
    let results = join_all((0..50).map(|_| sequence.next())).await;
    let errors = results.into_iter().map(|it| it.unwrap_err().to_string());
    let errors: Vec<String> = errors.collect();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    assert!(began.elapsed() <= Duration::from_secs(60));

    // A later caller asks again.
    faults.clear();
    assert_eq!(sequence.next().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_polled_no_more_stops_no_other() {
    let (_subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let sequence = claims(&table, 10);
    let slow = Fault::delayed_response(Duration::from_secs(1));
    faults.on_any().times(1).inject(slow);
    let mut aside = pin!(sequence.next());
    assert!(aside.as_mut().now_or_never().is_none());
    assert_eq!(sequence.next().await.unwrap(), 2);
    assert_eq!(aside.await.unwrap(), 1);
}

#[tokio::test]
async fn a_caller_in_a_loop_does_not_keep_others_waiting() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    for block in [1, 10, 1_000] {
        let key = ("numbers", format!("by-{block}"));
        let sequence = Arc::new(Sequence::new(&table, key).block(block));
        let looping = Arc::clone(&sequence);
        let looping = tokio::spawn(async move {
            for _ in 0..1_000 {
                looping.next().await.unwrap();
            }
        });
        tokio::task::yield_now().await;
        let number = sequence.next().await.unwrap();
        assert!(number < 200, "{number} of blocks of {block}");
        looping.await.unwrap();
    }
}

#[tokio::test]
async fn the_numbers_end_with_an_error() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let journal = subject.server().journal();
    let last = i64::MAX - 1;
    let almost = DynamicEntity::new("numbers", "claims").with("Next", last - 1);
    table.insert(&almost).await.unwrap();
    let sequence = claims(&table, 100);
    assert_eq!(sequence.next().await.unwrap(), last.unsigned_abs() - 1);
    assert_eq!(sequence.next().await.unwrap(), last.unsigned_abs());
    for _ in 0..2 {
        let error = sequence.next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let expected = "take numbers in \"Tests\" at in-process.invalid/devstoreaccount1 (\"numbers\", \"claims\"): the sequence has no more numbers";
        assert_eq!(error.to_string(), expected);
    }
    let writes = journal.requests();
    let writes = writes.filter(|it| it.op.is_some_and(Op::is_write));
    assert_eq!(writes.count(), 2, "the entity, and one block");
}

#[tokio::test]
async fn bad_input_and_an_entity_that_is_no_sequence_are_refused() {
    let (_subject, table, _) = Subject::with_table(RetryPolicy::exponential()).await;
    let error = claims(&table, 0).next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    let sequence = Sequence::new(&table, ("a/b", "c"));
    let error = sequence.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    assert_eq!(error.operation(), Some("take numbers"));
    for entity in [
        DynamicEntity::new("numbers", "claims"),
        DynamicEntity::new("numbers", "claims").with("Next", "5"),
        DynamicEntity::new("numbers", "claims").with("Next", 0_i64),
    ] {
        table.upsert_replace(&entity).await.unwrap();
        let error = claims(&table, 1).next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.to_string().contains("Next"), "{error}");
    }
}
