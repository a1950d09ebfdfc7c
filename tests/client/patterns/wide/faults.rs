//! Faults at each request of a write: a reader sees one version as a whole, and after a clean-up nothing else is stored.
//!
//! A failure of the random test prints its seed; `TABLESDK_WIDE_SEED` runs that seed.

use std::time::Duration;

use harness::client_with;
use tablesdk::wide::{StoredWide, WideTable};
use tablesdk::{DynamicEntity, Error, RetryPolicy, TableClient, Value};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::sleep;

/// An entity of two parts, written in one transaction.
pub(super) fn small(number: i32) -> DynamicEntity {
    let properties = (0..300).map(|index| (format!("P{index:03}"), number));
    DynamicEntity::new("ann", "report").with_properties(properties.collect())
}

/// An entity of four parts, written in two transactions.
pub(super) fn large(number: i32) -> DynamicEntity {
    of_bytes(number, 50)
}

/// An entity of eight parts, written in three transactions.
pub(super) fn huge(number: i32) -> DynamicEntity {
    of_bytes(number, 110)
}

fn of_bytes(number: i32, count: usize) -> DynamicEntity {
    let bytes = vec![u8::try_from(number).unwrap(); 64 * 1024];
    let properties = (0..count).map(|index| (format!("P{index:03}"), Value::Binary(bytes.clone())));
    DynamicEntity::new("ann", "report").with_properties(properties.collect())
}

/// The number that all properties of an entity have.
pub(super) fn number(entity: &DynamicEntity) -> i32 {
    let number = |value: &Value| match value {
        Value::Int32(number) => *number,
        Value::Binary(bytes) => {
            assert_eq!(bytes[..], *vec![bytes[0]; 64 * 1024]);
            bytes[0].into()
        }
        value => panic!("{value:?}"),
    };
    let mut numbers = entity.properties().iter().map(|(_, value)| number(value));
    let first = numbers.next().unwrap();
    assert!(numbers.all(|number| number == first), "versions are mixed");
    assert!([50, 110, 300].contains(&entity.properties().len()));
    first
}

pub(super) async fn read(maps: &WideTable<DynamicEntity>) -> Option<StoredWide<DynamicEntity>> {
    let found = maps.get(("ann", "report")).await.unwrap();
    found.inspect(|found| assert!(number(found) > 0))
}

/// After a clean-up, the entity is as before, and nothing else is stored.
async fn check_clean(server: &TableServer, maps: &WideTable<DynamicEntity>) {
    let before = read(maps).await;
    maps.clean_up_siblings("ann", Duration::ZERO).await.unwrap();
    assert_eq!(read(maps).await, before);
    let parts = before.map_or(0, |found| match found.properties().len() {
        50 => 4,
        110 => 8,
        _ => 2,
    });
    let rows = super::rows(server);
    assert_eq!(rows.len(), parts, "{rows:?}");
}

const WRITES: [&str; 9] = [
    "insert",
    "insert large",
    "insert huge",
    "replace",
    "replace by large",
    "replace large by large",
    "modify large",
    "delete",
    "delete large",
];

/// A table with the entity that the write replaces or deletes: number 1.
async fn stored(retry: RetryPolicy, write: &str) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(retry)).table("Reports");
    table.create_table().await.unwrap();
    let maps = table.wide();
    if !write.starts_with("insert") {
        let is_large = ["replace large", "modify large", "delete large"];
        let is_large = is_large.iter().any(|start| write.starts_with(start));
        let entity = if is_large { large(1) } else { small(1) };
        maps.insert(&entity).await.unwrap();
    }
    (server, table)
}

/// Carries out a write that makes number 2, or deletes.
async fn write(table: &TableClient, name: &str) -> Result<(), Error> {
    let maps = table.wide::<DynamicEntity>();
    let replace = async |entity: DynamicEntity| {
        let mut found = maps.get(("ann", "report")).await?.expect("was inserted");
        *found = entity;
        maps.replace(&mut found).await
    };
    match name {
        "insert" => maps.insert(&small(2)).await.map(drop),
        "insert large" => maps.insert(&large(2)).await.map(drop),
        "insert huge" => maps.insert(&huge(2)).await.map(drop),
        "replace" | "replace large" => replace(small(2)).await,
        "replace by large" | "replace large by large" => replace(large(2)).await,
        "modify large" => {
            let change = |entity: &mut DynamicEntity| {
                *entity = large(2);
                Ok(())
            };
            maps.modify(("ann", "report"), change).await.map(drop)
        }
        "delete" | "delete large" => maps.delete(("ann", "report")).await.map(drop),
        _ => unreachable!("{name}"),
    }
}

/// Runs each write with the fault at each of its requests, and `beside` while the request is delayed.
async fn at_each_request(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    beside: impl AsyncFn(&WideTable<DynamicEntity>),
    expect: impl Fn(&str, &Result<(), Error>),
) {
    for name in WRITES {
        for nth in 1.. {
            let (server, table) = stored(retry(), name).await;
            let other = harness::client(&server).table("Reports").wide();
            let injected = server.faults().on_any().nth(nth).inject(fault());
            let beside = async {
                sleep(Duration::from_secs(1)).await;
                server.faults().clear();
                beside(&other).await;
            };
            let (result, ()) = tokio::join!(write(&table, name), beside);
            if injected.hits() == 0 {
                assert!(nth > 1, "{name}");
                break;
            }
            let found = read(&other).await;
            let found = found.as_ref().map(|found| number(found));
            let (old, new) = match name {
                "insert" | "insert large" | "insert huge" => (None, Some(2)),
                "delete" | "delete large" => (Some(1), None),
                _ => (Some(1), Some(2)),
            };
            assert!(found == old || found == new, "{name}, {nth}: {found:?}");
            match &result {
                Ok(()) => assert_eq!(found, new, "{name}, {nth}"),
                Err(error) if error.is_outcome_unknown() => {}
                Err(_) => assert_eq!(found, old, "{name}, {nth}"),
            }
            expect(name, &result);
            // What is still in flight arrives.
            sleep(Duration::from_secs(60)).await;
            check_clean(&server, &other).await;
        }
    }
}

async fn nothing(_: &WideTable<DynamicEntity>) {}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_sent_leaves_the_old_version() {
    at_each_request(RetryPolicy::none, Fault::reset, nothing, |name, result| {
        assert!(result.is_err(), "{name}");
    })
    .await;
    at_each_request(
        RetryPolicy::exponential,
        Fault::reset,
        nothing,
        |name, result| {
            assert!(result.is_ok(), "{name}: {result:?}");
        },
    )
    .await;
}

/// Each write has a version of its own, which shows whether it was carried out.
#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_lost_response_is_found() {
    at_each_request(RetryPolicy::none, Fault::lost_response, nothing, |_, _| ()).await;
    at_each_request(
        RetryPolicy::exponential,
        Fault::lost_response,
        nothing,
        |name, result| {
            assert!(result.is_ok(), "{name}: {result:?}");
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_carried_out_twice_or_late_mixes_no_versions() {
    at_each_request(
        RetryPolicy::exponential,
        Fault::duplicate,
        nothing,
        |_, _| (),
    )
    .await;
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::none, late, nothing, |_, _| ()).await;
    at_each_request(RetryPolicy::exponential, late, nothing, |_, _| ()).await;
}

fn slow() -> Fault {
    Fault::delay(Duration::from_secs(10))
}

/// Before each request of a write, another client sees the old version or the new one.
#[tokio::test(start_paused = true)]
async fn a_reader_sees_one_version_between_the_requests_of_a_write() {
    let read = async |maps: &WideTable<DynamicEntity>| drop(read(maps).await);
    at_each_request(RetryPolicy::none, slow, read, |name, result| {
        assert!(result.is_ok(), "{name}: {result:?}");
    })
    .await;
}

/// A writer that is slower than the age of a clean-up fails, or has written all.
#[tokio::test(start_paused = true)]
async fn a_clean_up_beside_a_slow_writer_deletes_no_committed_version() {
    let clean_up = async |maps: &WideTable<DynamicEntity>| {
        maps.clean_up_siblings("ann", Duration::ZERO).await.unwrap();
    };
    at_each_request(RetryPolicy::exponential, slow, clean_up, |name, result| {
        if let Err(error) = result {
            assert!(
                (name.contains("large") || name.contains("huge")) && error.is_timeout(),
                "{name}: {error}"
            );
        }
    })
    .await;
}
