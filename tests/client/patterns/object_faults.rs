//! Faults at each request to the store and to the table, and random histories: an entity never names an object that is not there, and a
//! clean-up leaves no object that no entity names.
//!
//! A failure of the random test prints its seed; `TABLESDK_OBJECT_SEED` runs that seed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use harness::{client_with, seeds};
use tablesdk::action::QueryEntities;
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::{Error, ErrorKind, RetryPolicy, TableClient, TableEntity};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::sleep;

use super::faults::{at_each_request, random_history};
use super::test_store::{StoreFault, TestStore};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{department}",
    row_key = "{id:06}"
)]
struct Employee {
    department: String,
    id: u32,
    /// The bytes of the photo.
    bytes: String,
    photo: ObjectRef,
}

async fn employee(photos: &Objects, id: u32, bytes: &str) -> Result<Employee, Error> {
    Ok(Employee {
        department: "Sales".into(),
        id,
        bytes: bytes.into(),
        photo: photos.put(bytes.to_owned()).await?,
    })
}

fn all(table: &TableClient) -> QueryEntities<Employee> {
    table.query::<Employee>().page_size(2)
}

async fn clean_up(table: &TableClient, photos: &Objects) -> Result<u64, Error> {
    let entities = all(table).select(|e| e.photo);
    let report = photos.clean_up_objects(entities).older_than(HOUR).await?;
    Ok(report.deleted)
}

/// A table with two employees, and a store with an object that none names.
async fn company(retry: RetryPolicy, store: &TestStore) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(retry)).table("Company");
    table.create_table().await.unwrap();
    let photos = photos(store);
    photos.put("unnamed").await.unwrap();
    for id in [1, 2] {
        let employee = employee(&photos, id, "first").await.unwrap();
        table.insert(&employee).await.unwrap();
    }
    store.advance(2 * HOUR);
    (server, table)
}

fn photos(store: &TestStore) -> Objects {
    Objects::new(store.clone(), "photos")
}

const WRITES: [&str; 5] = ["insert", "replace", "renumber", "delete", "clean up"];

async fn write(table: &TableClient, photos: &Objects, name: &str) -> Result<(), Error> {
    let first = async || {
        let first = table.get(Employee::key("Sales", 1)).await;
        first.map(|first| first.expect("was inserted"))
    };
    match name {
        "insert" => {
            let third = employee(photos, 3, "third").await?;
            table.insert(&third).await?;
        }
        "replace" => {
            let mut first = first().await?;
            *first = employee(photos, 1, "second").await?;
            table.replace(&mut first).await?;
        }
        "renumber" => {
            let first = first().await?;
            let renumbered = Employee {
                id: 9,
                ..(*first).clone()
            };
            let batch = table.batch("Sales").insert(&renumbered);
            batch.delete_stored(&first).await?;
        }
        "delete" => {
            table.delete_stored(&first().await?).await?;
        }
        "clean up" => {
            clean_up(table, photos).await?;
        }
        _ => unreachable!("{name}"),
    }
    Ok(())
}

/// Each entity names its object. Once all are old, a clean-up leaves these objects and no other.
async fn check(table: &TableClient, store: &TestStore) {
    let photos = photos(store);
    let named = async || {
        let mut paths = BTreeSet::new();
        for employee in all(table).collect().await.unwrap() {
            let bytes = photos.get(&employee.photo).await.unwrap();
            assert_eq!(bytes, employee.bytes);
            paths.insert(employee.photo.name().to_owned());
        }
        paths.into_iter().collect::<Vec<_>>()
    };
    let before = named().await;
    store.advance(2 * HOUR);
    clean_up(table, &photos).await.unwrap();
    assert_eq!(named().await, before);
    assert_eq!(store.paths().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_store_leaves_no_entity_without_its_object() {
    for fault in [StoreFault::NotSent, StoreFault::ResponseLost] {
        for name in WRITES {
            for nth in 1.. {
                let store = TestStore::new();
                let (_server, table) = company(RetryPolicy::none(), &store).await;
                store.fail(nth, fault);
                let result = write(&table, &photos(&store), name).await;
                let has_failed = store.has_failed();
                store.heal();
                check(&table, &store).await;
                if !has_failed {
                    result.expect(name);
                    let least = if name == "clean up" { 5 } else { 1 };
                    assert!(nth >= least, "{name}: {nth}");
                    break;
                }
                assert_eq!(result.expect_err(name).kind(), ErrorKind::ObjectStore);
            }
        }
    }
}

/// Runs each write with the fault at each of its requests to the table.
async fn with_faults_of_the_table(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    expect: impl Fn(&str, Result<(), Error>),
) {
    let store = RefCell::new(TestStore::new());
    let current = || store.borrow().clone();
    let company = async || {
        store.replace(TestStore::new());
        company(retry(), &current()).await
    };
    let write =
        async |table: &TableClient, name: &str| write(table, &photos(&current()), name).await;
    let check = async |table: &TableClient| check(table, &current()).await;
    at_each_request(&WRITES, company, write, check, fault, expect).await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_table_leaves_no_entity_without_its_object() {
    let failed = |name: &str, result: Result<(), Error>| drop(result.expect_err(name));
    with_faults_of_the_table(RetryPolicy::none, Fault::reset, failed).await;
    with_faults_of_the_table(RetryPolicy::none, Fault::lost_response, failed).await;
    with_faults_of_the_table(RetryPolicy::exponential, Fault::lost_response, |_, _| ()).await;
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    with_faults_of_the_table(RetryPolicy::none, late, |_, _| ()).await;
    with_faults_of_the_table(RetryPolicy::exponential, late, |_, _| ()).await;
}

async fn random_write(table: &TableClient, photos: &Objects, rng: &mut Rng) -> Result<(), Error> {
    sleep(Duration::from_millis(rng.u64(..1500))).await;
    let id = rng.u32(1..9);
    let bytes = format!("photo {}", rng.u32(..));
    let found = table.get(Employee::key("Sales", id)).await?;
    match (found, rng.u8(..3)) {
        (None, _) => {
            let new = employee(photos, id, &bytes).await?;
            table.insert(&new).await?;
        }
        (Some(mut found), 0) => {
            *found = employee(photos, id, &bytes).await?;
            table.replace(&mut found).await?;
        }
        (Some(found), 1) => {
            table.delete_stored(&found).await?;
        }
        (Some(found), _) => {
            let id = rng.u32(1..9);
            let renumbered = Employee {
                id,
                ..(*found).clone()
            };
            if id != found.id {
                let batch = table.batch("Sales").insert(&renumbered);
                batch.delete_stored(&found).await?;
            }
        }
    }
    Ok(())
}

/// What a reader sees at any time: an object that is not there is no longer named.
async fn read_all(table: &TableClient, photos: &Objects) {
    for employee in all(table).collect().await.unwrap() {
        match photos.get(&employee.photo).await {
            Ok(bytes) => assert_eq!(bytes, employee.bytes),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ObjectStore, "{error}");
                let names_it = all(table).filter(|e| e.photo.eq(employee.photo.clone()));
                assert_eq!(names_it.count().await.unwrap(), 0, "{error}");
            }
        }
    }
}

/// The clock of the store runs 200 times faster, and a write takes 15 seconds at most: 50 minutes.
#[tokio::test(start_paused = true)]
async fn random_histories_leave_no_entity_without_its_object() {
    for seed in seeds("TABLESDK_OBJECT_SEED", 4) {
        println!("TABLESDK_OBJECT_SEED={seed}");
        fastrand::seed(seed);
        let store = TestStore::with_pace(200);
        let retry = RetryPolicy::exponential().deadline(Duration::from_secs(10));
        let (server, table) = company(retry, &store).await;
        let reader = client_with(&server, |builder| builder).table("Company");
        let photos = photos(&store);
        let deleted = Cell::new(0);
        let write =
            async |table: &TableClient, rng: &mut Rng| random_write(table, &photos, rng).await;
        let read = async |table: &TableClient| read_all(table, &photos).await;
        let clean_up = async |table: &TableClient| {
            if let Ok(count) = clean_up(table, &photos).await {
                deleted.set(deleted.get() + count);
            }
        };
        random_history(seed, &server, &table, &reader, write, read, clean_up).await;
        assert!(deleted.get() > 20, "{} were deleted", deleted.get());
        check(&reader, &store).await;
    }
}
