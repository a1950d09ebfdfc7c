//! Random histories of writers, readers and clean-ups under faults. All properties of an entity have one number, so a mix of versions is
//! seen.
//!
//! A failure prints its seed; `TABLESDK_WIDE_SEED` runs that seed.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::TryStreamExt as _;
use futures::future::join_all;
use harness::{client, client_with, seeds};
use tablesdk::wide::WideTable;
use tablesdk::{DynamicEntity, Error, RetryPolicy};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::sleep;

use super::super::faults::{is_expected, random_writes};
use super::faults::{large, number, small};

type Maps = WideTable<DynamicEntity>;

fn any_size(number: i32, row_key: &str, rng: &mut Rng) -> DynamicEntity {
    let entity = if rng.u8(..4) == 0 {
        large(number)
    } else {
        small(number)
    };
    DynamicEntity::new("ann", row_key).with_properties(entity.properties().clone())
}

/// One random write: an addition to the counter, or any other of the report.
async fn random_write(maps: &Maps, rng: &mut Rng, added: &AtomicI32) -> Result<(), Error> {
    let key = ("ann", "report");
    let report = any_size(rng.i32(1..100), "report", rng);
    match rng.u8(..6) {
        0 | 1 => {
            let mut rng = rng.fork();
            let add = |counter: &mut DynamicEntity| {
                *counter = any_size(number(counter) + 1, "counter", &mut rng);
                Ok(())
            };
            maps.modify(("ann", "counter"), add).await?;
            added.fetch_add(1, Ordering::SeqCst);
        }
        2 => maps.insert(&report).await.map(drop)?,
        3 => maps.upsert_replace(&report).await.map(drop)?,
        4 => {
            if let Some(mut found) = maps.get(key).await? {
                *found = report;
                sleep(Duration::from_millis(rng.u64(..20))).await;
                maps.replace(&mut found).await?;
            }
        }
        _ => drop(maps.delete(key).await?),
    }
    Ok(())
}

/// Every entity that a reader finds is of one version, and the counter does not go back.
async fn watch(maps: &Maps, least: &mut i32) -> Result<(), Error> {
    let all: Vec<_> = maps.stream("ann").try_collect().await?;
    assert!(all.len() <= 2);
    for found in all {
        let number = number(&found);
        if found.row_key() == "counter" {
            assert!(number >= *least, "{number} after {least}");
            *least = number;
        }
    }
    if let Some(found) = maps.get(("ann", "report")).await? {
        number(&found);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_histories_with_faults_mix_no_versions_and_lose_none() {
    for seed in seeds("TABLESDK_WIDE_SEED", 4) {
        println!("TABLESDK_WIDE_SEED={seed}");
        fastrand::seed(seed);
        let server = TableServer::in_process();
        let table = client(&server).table("Reports");
        table.create_table().await.unwrap();
        let reader: Maps = table.wide();
        let counter =
            DynamicEntity::new("ann", "counter").with_properties(small(0).properties().clone());
        reader.insert(&counter).await.unwrap();
        let faults = server.faults();
        let late = Fault::reset().applied_after(Duration::from_secs(5));
        let late = faults.on_writes().probability(0.1).seed(seed).inject(late);
        let injected = faults.chaos(seed);
        let added = AtomicI32::new(0);
        let writers = (0..3_u64).map(|writer| {
            let service = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()));
            let (maps, added): (Maps, _) = (service.table("Reports").wide(), &added);
            let rng = Rng::with_seed(seed ^ (writer << 8));
            random_writes(
                rng,
                25,
                async move |rng| random_write(&maps, rng, added).await,
                |error| {
                    // A clean-up was faster.
                    is_expected(error) || error.is_timeout()
                },
            )
        });
        let quiet = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()));
        let (cleaner, mut least): (Maps, _) = (quiet.table("Reports").wide(), 0);
        let watching = async {
            loop {
                if let Err(error) = watch(&cleaner, &mut least).await {
                    assert!(is_expected(&error), "{error}");
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let cleaning = async {
            let mut rng = Rng::with_seed(seed);
            loop {
                let age = Duration::from_millis(rng.u64(..2_000));
                if let Err(error) = cleaner.clean_up_siblings("ann", age).await {
                    assert!(is_expected(&error), "{error}");
                }
                sleep(Duration::from_millis(rng.u64(..500))).await;
            }
        };
        let done: u32 = tokio::select! {
            done = join_all(writers) => done.into_iter().sum(),
            () = watching => unreachable!(),
            () = cleaning => unreachable!(),
        };
        faults.clear();
        sleep(Duration::from_secs(60)).await;
        let found = reader.get(("ann", "counter")).await.unwrap().unwrap();
        let (found, added) = (number(&found), added.into_inner());
        assert!(
            (added..=added + 75).contains(&found),
            "{found}, and {added} were added"
        );
        while reader
            .clean_up_siblings("ann", Duration::ZERO)
            .await
            .unwrap()
            > 0
        {}
        let mut parts = 0;
        for row_key in ["counter", "report"] {
            let found = reader.get(("ann", row_key)).await.unwrap();
            parts += found.map_or(
                0,
                |found| if found.properties().len() == 50 { 4 } else { 2 },
            );
        }
        let rows = super::rows(&server);
        assert_eq!(rows.len(), parts, "{rows:?}");
        println!(
            "{done} writes, {added} additions, {} and {} faults",
            injected.hits(),
            late.hits()
        );
        assert!(done > 15 && injected.hits() > 10 && late.hits() > 0);
    }
}
