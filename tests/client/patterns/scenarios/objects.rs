//! Entities that name objects of a store: no entity names an object that is not there, and a
//! clean-up leaves no object that none names.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use tablesdk::action::QueryEntities;
use tablesdk::objects::{ObjectRef, Objects};
use tablesdk::{Error, ErrorKind, RetryPolicy, TableClient, TableEntity, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::time::sleep;

use super::super::test_store::TestStore;
use super::{Before, Outcome, Scenario, Write, or_unknown};

const HOUR: Duration = Duration::from_secs(3600);

pub(crate) struct EmployeesWithPhotos {
    pub(crate) store: TestStore,
}

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

impl EmployeesWithPhotos {
    fn photos(&self) -> Objects {
        Objects::new(self.store.clone(), "photos")
    }

    async fn clean_up(&self, table: &TableClient) -> Result<u64, Error> {
        let entities = all(table).select(|e| e.photo);
        let photos = self.photos();
        let report = photos.clean_up_objects(entities).older_than(HOUR).await?;
        Ok(report.deleted)
    }
}

suites!(EmployeesWithPhotos);

impl Scenario for EmployeesWithPhotos {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        or_unknown("replace"),
        or_unknown("renumber"),
        or_unknown("delete"),
        or_unknown("clean up"),
    ];
    const STEPS: u32 = 60;

    /// The clock of the store runs 200 times faster than that of a history, and a write takes 15
    /// seconds at most: 50 minutes.
    fn retry() -> RetryPolicy {
        RetryPolicy::exponential().deadline(Duration::from_secs(10))
    }

    async fn new(server: &TableServer, before: Before) -> Self {
        let store = TestStore::with_pace(if before == Before::History { 200 } else { 1 });
        let scenario = Self { store };
        let table = scenario.client(&harness::client(server));
        table.create_table().await.unwrap();
        scenario.photos().put("unnamed").await.unwrap();
        for id in [1, 2] {
            let employee = employee(&scenario.photos(), id, "first").await.unwrap();
            table.insert(&employee).await.unwrap();
        }
        scenario.store.advance(2 * HOUR);
        scenario
    }

    fn again(&self) -> Self {
        Self {
            store: self.store.fork(),
        }
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        service.table("Company")
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let photos = self.photos();
        let first = async || {
            let first = table.get(Employee::key("Sales", 1)).await;
            first.map(|first| first.expect("was inserted"))
        };
        match name {
            "insert" => {
                let third = employee(&photos, 3, "third").await?;
                table.insert(&third).await?;
            }
            "replace" => {
                let mut first = first().await?;
                *first = employee(&photos, 1, "second").await?;
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
                self.clean_up(table).await?;
            }
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let get = async |id| table.get(Employee::key("Sales", id)).await.unwrap();
        let (first, third) = (get(1).await, get(3).await);
        match name {
            "insert" => Some(third.is_some()),
            "replace" => Some(first?.bytes == "second"),
            "renumber" => Some(first.is_none() && get(9).await.is_some()),
            "delete" => Some(first.is_none()),
            _ => None,
        }
    }

    /// An object that is not there is no longer named.
    async fn check(&self, table: &mut TableClient) {
        for employee in all(table).collect().await.unwrap() {
            match self.photos().get(&employee.photo).await {
                Ok(bytes) => assert_eq!(bytes, employee.bytes),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::ObjectStore, "{error}");
                    let names_it = all(table).filter(|e| e.photo.eq(employee.photo.clone()));
                    assert_eq!(names_it.count().await.unwrap(), 0, "{error}");
                }
            }
        }
    }

    async fn mend(&self, table: &mut TableClient) -> Outcome {
        Ok(self.clean_up(table).await.map(drop)?)
    }

    async fn settle(&self, _: &TableServer, table: &mut TableClient) {
        let named = async |table: &TableClient| {
            let mut paths = BTreeSet::new();
            for employee in all(table).collect().await.unwrap() {
                let bytes = self.photos().get(&employee.photo).await.unwrap();
                assert_eq!(bytes, employee.bytes);
                paths.insert(employee.photo.name().to_owned());
            }
            paths.into_iter().collect::<Vec<_>>()
        };
        let before = named(table).await;
        self.store.advance(2 * HOUR);
        self.clean_up(table).await.unwrap();
        assert_eq!(named(table).await, before);
        assert_eq!(self.store.paths().await, before);
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let photos = self.photos();
        sleep(Duration::from_millis(rng.u64(..1500))).await;
        let id = rng.u32(1..9);
        let bytes = format!("photo {}", rng.u32(..));
        let found = table.get(Employee::key("Sales", id)).await?;
        match (found, rng.u8(..3)) {
            (None, _) => {
                let new = employee(&photos, id, &bytes).await?;
                table.insert(&new).await?;
            }
            (Some(mut found), 0) => {
                *found = employee(&photos, id, &bytes).await?;
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
}
