//! 64 tasks each increment the same counter 15 times, while requests and responses are lost, late, duplicated, or rejected
//! with 412 and 503. In process, on virtual time, on one thread: a seed reproduces a run.
//!
//! A failure prints its seed; `TABLESDK_CONCURRENCY_SEED` runs that seed.

use std::time::Duration;

use futures::future::join_all;
use harness::proxy::{Reply, batch_refusal, refusal};
use harness::{Subject, setting};
use tablesdk::{RetryPolicy, TableEntity};
use tablesdk_server::testing::Op;
use tokio::time::sleep;

use crate::random_faults::{Counts, assert_injected, inject};

const TASKS: u64 = 64;
const ADDITIONS: u64 = 15;

#[derive(Debug, TableEntity)]
struct Counter {
    #[table(partition_key)]
    class: String,
    #[table(row_key)]
    id: String,
    sum: i64,
}

#[derive(Debug, PartialEq)]
struct Outcome {
    acknowledged: i64,
    unknown: i64,
    refused: i64,
    sum: i64,
    injected: Counts,
}

async fn run(seed: u64, exactly_once: bool) -> Outcome {
    // The client's own pauses and names.
    fastrand::seed(seed);
    let policy = RetryPolicy::exponential()
        .attempts(10)
        .budget(u32::MAX)
        .deadline(Duration::from_secs(3600));
    let (subject, table, proxy) = Subject::behind_proxy(policy).await;
    let faults = subject.server().faults();
    let counter = Counter {
        class: "A".to_owned(),
        id: "1".to_owned(),
        sum: 0,
    };
    table.insert(&counter).await.unwrap();

    // An ordinary write cannot detect that a rejection is that of a duplicate.
    let injected = inject(&faults, &proxy, seed, exactly_once, |op| {
        let changed = "UpdateConditionNotSatisfied";
        Some(Reply::Respond(match op {
            Op::UpdateEntity => refusal(412, changed),
            Op::Batch => batch_refusal(1, 412, changed),
            _ => return None,
        }))
    });

    let tasks = (0..TASKS).map(|_| {
        let table = table.clone();
        tokio::spawn(async move {
            let (mut acknowledged, mut unknown, mut refused) = (0, 0, 0);
            for _ in 0..ADDITIONS {
                let add = |counter: &mut Counter| {
                    counter.sum += 1;
                    Ok(())
                };
                let modify = table.modify(("A", "1"), add).rounds(u32::MAX);
                let modified = if exactly_once {
                    modify.exactly_once().await
                } else {
                    modify.await
                };
                match modified {
                    Ok(_) => acknowledged += 1,
                    Err(error) if error.is_outcome_unknown() => unknown += 1,
                    Err(_) => refused += 1,
                }
            }
            (acknowledged, unknown, refused)
        })
    });
    let (mut acknowledged, mut unknown, mut refused) = (0, 0, 0);
    for task in join_all(tasks).await {
        let (a, u, r) = task.unwrap();
        acknowledged += a;
        unknown += u;
        refused += r;
    }
    faults.clear();
    proxy.clear();
    // Until the last late request has arrived.
    sleep(Duration::from_secs(60)).await;
    let sum = table.get::<Counter>(("A", "1")).await.unwrap().unwrap().sum;
    let injected = injected.lock().unwrap().clone();
    Outcome {
        acknowledged,
        unknown,
        refused,
        sum,
        injected,
    }
}

fn seed() -> u64 {
    let seed = setting("TABLESDK_CONCURRENCY_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("TABLESDK_CONCURRENCY_SEED={seed}");
    seed
}

#[tokio::test(start_paused = true)]
async fn exactly_once_additions_add_up() {
    let outcome = run(seed(), true).await;
    println!("{outcome:?}");
    assert_injected(&outcome.injected, &["rejection"]);
    let additions = i64::try_from(TASKS * ADDITIONS).unwrap();
    assert_eq!((outcome.unknown, outcome.refused), (0, 0), "{outcome:?}");
    assert_eq!((outcome.acknowledged, outcome.sum), (additions, additions));
}

#[tokio::test(start_paused = true)]
async fn acknowledged_additions_are_applied() {
    let outcome = run(seed(), false).await;
    println!("{outcome:?}");
    assert_injected(&outcome.injected, &["rejection"]);
    let Outcome {
        acknowledged,
        unknown,
        sum,
        ..
    } = outcome;
    assert!(unknown > 0, "ordinary writes may be ambiguous: {outcome:?}");
    assert_eq!(outcome.refused, 0, "{outcome:?}");
    assert!(acknowledged <= sum, "{outcome:?}");
    assert!(sum <= acknowledged + unknown, "{outcome:?}");
}
