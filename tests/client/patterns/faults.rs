//! What the tests of faults share: a write with a fault at each of its requests, and random histories of writers.

use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use tablesdk::{Error, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

/// Runs each write with the fault at its first request, then at its second, and so on, until no request is hit.
pub(crate) async fn at_each_request(
    writes: &[&str],
    company: impl AsyncFn() -> (TableServer, TableClient),
    write: impl AsyncFn(&TableClient, &str) -> Result<(), Error>,
    check: impl AsyncFn(&TableClient),
    fault: fn() -> Fault,
    expect: impl Fn(&str, Result<(), Error>),
) {
    for name in writes {
        for nth in 1.. {
            let (server, table) = company().await;
            let injected = server.faults().on_any().nth(nth).inject(fault());
            let result = write(&table, name).await;
            let hits = injected.hits();
            server.faults().clear();
            sleep(Duration::from_secs(60)).await;
            check(&table).await;
            if hits == 0 {
                assert!(nth > 1, "{name}");
                break;
            }
            expect(name, result);
        }
    }
}

/// Four writers under faults, beside a reader that checks the table at all times, and a repair, which finds nothing wrong and breaks
/// nothing.
pub(crate) async fn random_history(
    seed: u64,
    server: &TableServer,
    table: &TableClient,
    reader: &TableClient,
    write: impl AsyncFn(&TableClient, &mut Rng) -> Result<(), Error>,
    check: impl AsyncFn(&TableClient),
    repair: impl AsyncFn(&TableClient),
) {
    let faults = server.faults();
    let late = Fault::reset().applied_after(Duration::from_secs(5));
    let batches = faults.on(Op::Batch);
    let late = batches.probability(0.1).seed(seed).inject(late);
    let injected = faults.chaos(seed);
    let writers = (0..4_u64).map(|writer| {
        let rng = Rng::with_seed(seed ^ (writer << 8));
        random_writes(rng, 60, async |rng| write(table, rng).await, is_expected)
    });
    let watch = async {
        loop {
            check(reader).await;
            sleep(Duration::from_millis(50)).await;
        }
    };
    let repair = async {
        loop {
            repair(table).await;
            sleep(Duration::from_millis(20)).await;
        }
    };
    let done: u32 = tokio::select! {
        done = join_all(writers) => done.into_iter().sum(),
        () = watch => unreachable!(),
        () = repair => unreachable!(),
    };
    faults.clear();
    sleep(Duration::from_secs(60)).await;
    check(table).await;
    assert!(done > 60, "{done} writes succeeded");
    let hits = (injected.hits(), late.hits());
    assert!(hits.0 > 20 && hits.1 > 0, "{hits:?}");
}

/// The writes of one writer, with random pauses. Returns how many succeeded.
pub(crate) async fn random_writes(
    mut rng: Rng,
    rounds: u32,
    write: impl AsyncFn(&mut Rng) -> Result<(), Error>,
    is_expected: fn(&Error) -> bool,
) -> u32 {
    let mut done = 0;
    for _ in 0..rounds {
        match write(&mut rng).await {
            Ok(()) => done += 1,
            Err(error) => assert!(is_expected(&error), "{error}"),
        }
        sleep(Duration::from_millis(rng.u64(..100))).await;
    }
    done
}

/// Whether the error is one of a rival, or of a fault.
pub(crate) fn is_expected(error: &Error) -> bool {
    let is_of_rival = error.is_conflict() || error.is_not_found() || error.is_precondition_failed();
    is_of_rival || error.is_outcome_unknown() || error.attempts() > 1
}
