//! Sequences: unique numbers under contention and faults.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{FutureExt as _, join_all};
use harness::{Subject, client, client_with, seeds};
use tablesdk::sequence::Sequence;
use tablesdk::{DynamicEntity, Error, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::{Instant, sleep};

use super::faults;
use crate::on_both_transports;

fn claims(table: &TableClient, block: u32) -> Sequence {
    Sequence::new(table, ("numbers", "claims")).block(block)
}

async fn numbers(retry: RetryPolicy) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let service = client_with(&server, |builder| builder.retry(retry));
    let table = service.table("Numbers");
    table.create_table().await.unwrap();
    (server, table)
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
    let (server, table) = numbers(RetryPolicy::exponential()).await;
    let journal = server.journal();
    journal.clear();
    let sequence = Arc::new(claims(&table, 1_000));
    let callers = (0..1_000).map(|_| {
        let sequence = Arc::clone(&sequence);
        tokio::spawn(async move { sequence.next().await.unwrap() })
    });
    let given: BTreeSet<u64> = join_all(callers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(given, (1..=1_000).collect());
    assert_eq!(journal.requests().count(), 2);
    assert_eq!(sequence.next().await.unwrap(), 1_001);
    assert_eq!(journal.requests().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn concurrent_callers_share_the_error() {
    let (server, table) = numbers(RetryPolicy::exponential()).await;
    let sequence = claims(&table, 10);
    server.faults().on_any().inject(Fault::no_response());
    let began = Instant::now();
    let results = join_all((0..50).map(|_| sequence.next())).await;
    let errors: Vec<String> = results
        .into_iter()
        .map(|it| it.unwrap_err().to_string())
        .collect();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    assert!(began.elapsed() <= Duration::from_secs(60));

    // A later caller asks again.
    server.faults().clear();
    assert_eq!(sequence.next().await.unwrap(), 1);
}

#[tokio::test]
async fn a_caller_that_is_dropped_leaves_the_sequence_usable() {
    let (server, table) = numbers(RetryPolicy::exponential()).await;
    let sequence = claims(&table, 10);
    let slow = Fault::delayed_response(Duration::from_millis(50));
    server.faults().on_writes().times(1).inject(slow);
    tokio::select! {
        biased;
        _ = sequence.next() => panic!("the response takes longer"),
        () = tokio::task::yield_now() => {}
    }
    assert!(sequence.next().await.unwrap() >= 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_polled_no_more_stops_no_other() {
    let (server, table) = numbers(RetryPolicy::exponential()).await;
    let sequence = claims(&table, 10);
    let slow = Fault::delayed_response(Duration::from_secs(1));
    server.faults().on_any().times(1).inject(slow);
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
    let (server, table) = numbers(RetryPolicy::exponential()).await;
    let journal = server.journal();
    let last = i64::MAX - 1;
    let almost = DynamicEntity::new("numbers", "claims").with("Next", last - 1);
    table.insert(&almost).await.unwrap();
    let sequence = claims(&table, 100);
    assert_eq!(sequence.next().await.unwrap(), last.unsigned_abs() - 1);
    assert_eq!(sequence.next().await.unwrap(), last.unsigned_abs());
    for _ in 0..2 {
        let error = sequence.next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let expected = "take numbers in \"Numbers\" at in-process.invalid/devstoreaccount1 (\"numbers\", \"claims\"): the sequence has no more numbers";
        assert_eq!(error.to_string(), expected);
    }
    let writes = journal
        .requests()
        .filter(|it| it.op.is_some_and(Op::is_write));
    assert_eq!(writes.count(), 2, "the entity, and one block");
}

#[tokio::test]
async fn bad_input_and_an_entity_that_is_no_sequence_are_refused() {
    let (_server, table) = numbers(RetryPolicy::exponential()).await;
    let error = claims(&table, 0).next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    let error = Sequence::new(&table, ("a/b", "c"))
        .next()
        .await
        .unwrap_err();
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

/// Two blocks of two numbers, with a fault at each request.
async fn at_each_request(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    expect: impl Fn(&str, Result<(), Error>),
) {
    let unique = async |table: &TableClient, _: &str| {
        let sequence = claims(table, 2);
        let mut given = BTreeSet::new();
        let mut result = Ok(());
        for _ in 0..4 {
            match sequence.next().await {
                Ok(number) => assert!(given.insert(number), "{number} of {given:?}"),
                Err(error) => result = Err(error),
            }
        }
        // Another client, and this one once more.
        for sequence in [&claims(table, 3), &sequence, &claims(table, 1)] {
            let number = sequence.next().await.unwrap();
            assert!(given.insert(number), "{number} of {given:?}");
        }
        result
    };
    let company = || numbers(retry());
    let check = async |_: &TableClient| ();
    faults::at_each_request(&["numbers"], company, unique, check, fault, expect).await;
}

#[tokio::test(start_paused = true)]
async fn numbers_are_unique_with_a_fault_at_each_request() {
    let succeeds = |name: &str, result: Result<(), Error>| result.expect(name);
    at_each_request(RetryPolicy::exponential, Fault::reset, succeeds).await;
    at_each_request(RetryPolicy::exponential, Fault::lost_response, succeeds).await;
    at_each_request(RetryPolicy::exponential, Fault::duplicate, succeeds).await;
    let any = |_: &str, _: Result<(), Error>| ();
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::exponential, late, any).await;
}

/// A failure prints its seed; `TABLESDK_SEQUENCE_SEED` runs that seed.
#[tokio::test(start_paused = true)]
async fn numbers_of_many_clients_under_faults_are_unique() {
    for seed in seeds("TABLESDK_SEQUENCE_SEED", 8) {
        println!("TABLESDK_SEQUENCE_SEED={seed}");
        let (server, table) = numbers(RetryPolicy::exponential()).await;
        let faults = server.faults();
        let late = Fault::reset().applied_after(Duration::from_secs(5));
        let late = faults.on_writes().probability(0.1).seed(seed).inject(late);
        let chaos = faults.chaos(seed);
        let clients = (0..4_u64).map(|nth| {
            let table = client(&server).table(table.name());
            async move {
                let mut rng = Rng::with_seed(seed ^ (nth << 8));
                let sequence = claims(&table, rng.u32(1..4));
                let mut given: Vec<u64> = Vec::new();
                for _ in 0..40 {
                    match sequence.next().await {
                        Ok(number) => given.push(number),
                        Err(error) => assert!(error.attempts() > 1, "{error}"),
                    }
                    sleep(Duration::from_millis(rng.u64(..50))).await;
                }
                assert!(given.is_sorted(), "{given:?}");
                given
            }
        });
        let given: Vec<u64> = join_all(clients).await.concat();
        let unique: BTreeSet<_> = given.iter().collect();
        assert_eq!(unique.len(), given.len(), "{given:?}");
        assert!(given.len() > 100, "{}", given.len());
        assert!(chaos.hits() > 10 && late.hits() > 0);
    }
}
