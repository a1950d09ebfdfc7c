//! Entities with entries in other partitions, or in other tables: no entity lacks its entry, and
//! after a repair there are no others.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::time::Duration;

use fastrand::Rng;
use futures::stream;
use tablesdk::key::EntityKey;
use tablesdk::{ErrorKind, RetryPolicy, TableClient, TableServiceClient, WritableEntity};
use tablesdk_server::TableServer;
use tokio::time::sleep;

use super::super::{other_partitions, other_table};
use super::history::patient;
use super::{Before, Failure, Outcome, Scenario, Write, all_of, done, or_unknown, refused};
use super::{faults, history};

/// The place of the entries is that of the indexes of `E`.
pub(super) struct Elsewhere<E>(PhantomData<fn() -> E>);

/// An employee with an index of names elsewhere.
pub(super) trait Employee: WritableEntity + Clone + Sync {
    fn new(id: u32, name: Option<&str>) -> Self;
    fn employee_key(id: u32) -> EntityKey;
    fn name(&self) -> Option<&str>;
    fn set_name(&mut self, name: Option<&str>);
    /// How often the age was changed since `new`.
    fn age(&self) -> u32;
    fn add_year(&mut self);
    /// Creates the tables.
    async fn create(table: &TableClient);
    /// The keys of the entries that employees should have and do not.
    async fn missing(table: &TableClient) -> BTreeSet<(String, String)>;
    /// The entries are those of the employees, and no others.
    async fn exact(table: &TableClient);
}

macro_rules! employee {
    ($module:ident, $table:ident, $create:expr) => {
        impl Employee for $module::Employee {
            fn new(id: u32, name: Option<&str>) -> Self {
                Self {
                    last_name: name.map(str::to_owned),
                    ..$module::employee("Sales", id, "")
                }
            }

            fn employee_key(id: u32) -> EntityKey {
                $module::employee("Sales", id, "").entity_key().unwrap()
            }

            fn name(&self) -> Option<&str> {
                self.last_name.as_deref()
            }

            fn set_name(&mut self, name: Option<&str>) {
                self.last_name = name.map(str::to_owned);
            }

            fn age(&self) -> u32 {
                u32::try_from(self.age).unwrap() - 36
            }

            fn add_year(&mut self) {
                self.age += 1;
            }

            async fn create($table: &TableClient) {
                $create
            }

            async fn missing(table: &TableClient) -> BTreeSet<(String, String)> {
                $module::missing(table).await
            }

            async fn exact(table: &TableClient) {
                $module::exact(table).await;
            }
        }
    };
}

employee!(other_partitions, table, table.create_table().await.unwrap());
employee!(other_table, table, other_table::create(table).await);

const NAMES: [&str; 3] = ["Jones", "Smith", "King"];

mod in_other_partitions {
    suites!(super::Elsewhere<super::other_partitions::Employee>);
}

mod in_other_tables {
    suites!(super::Elsewhere<super::other_table::Employee>);
}

impl<E: Employee> Scenario for Elsewhere<E> {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        refused("insert of an existing entity"),
        or_unknown("replace that moves"),
        or_unknown("replace that keeps"),
        or_unknown("modify that moves"),
        or_unknown("delete"),
        or_unknown("batch"),
        or_unknown("exactly once"),
        or_unknown("bulk insert"),
        or_unknown("bulk replace"),
        done("bulk delete"),
    ];
    const EVERY: u64 = 2;
    const HISTORIES: u64 = 2;
    const EPOCHS: u32 = 3;
    const PAUSE: Duration = Duration::from_millis(500);
    // What a client cannot complete is left to a repair, so no client gives up.
    const DROPS: bool = false;

    fn retry() -> RetryPolicy {
        patient()
    }

    async fn new(server: &TableServer, _: Before) -> Self {
        let this = Self(PhantomData);
        let table = this.client(&harness::client(server));
        E::create(&table).await;
        for id in [1, 2] {
            table.insert(&E::new(id, Some("Jones"))).await.unwrap();
        }
        this
    }

    fn again(&self) -> Self {
        Self(PhantomData)
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        service.table("Company")
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let get = async |id: u32| {
            let found = table.get::<E>(E::employee_key(id)).await;
            found.map(|found| found.expect("inserted"))
        };
        let king = || E::new(3, Some("King"));
        match name {
            "insert" => drop(table.insert(&king()).await?),
            "insert of an existing entity" => {
                drop(table.insert(&E::new(1, Some("King"))).await?);
            }
            "replace that moves" => {
                let mut jones = get(1).await?;
                jones.set_name(Some("King"));
                table.replace(&mut jones).await?;
            }
            "replace that keeps" => {
                let mut jones = get(1).await?;
                jones.add_year();
                table.replace(&mut jones).await?;
            }
            "modify that moves" => {
                let moved = table.modify(E::employee_key(2), |e: &mut E| {
                    e.set_name(Some("King"));
                    Ok(())
                });
                moved.await?;
            }
            "delete" => drop(table.delete_stored(&get(1).await?).await?),
            "batch" => {
                let (mut one, two) = (get(1).await?, get(2).await?);
                one.set_name(None);
                let batch = table.batch("Sales").replace(&mut one).delete_stored(&two);
                batch.insert(&E::new(3, Some("Jones"))).await?;
            }
            "bulk insert" => {
                let more = [3, 4].map(|id| E::new(id, Some("King")));
                all_of(table.bulk().insert(stream::iter(more))).await?;
            }
            "bulk replace" => {
                let mut found = [get(1).await?, get(2).await?];
                for found in &mut found {
                    found.set_name(Some("King"));
                }
                all_of(table.bulk().replace(stream::iter(found))).await?;
            }
            "bulk delete" => {
                let found = [get(1).await?, get(2).await?];
                all_of(table.bulk().delete_stored(stream::iter(found))).await?;
            }
            "exactly once" => drop(table.insert(&king()).exactly_once().await?),
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let get = async |id| table.get::<E>(E::employee_key(id)).await.unwrap();
        let (one, two, three) = (get(1).await, get(2).await, get(3).await);
        let king = Some("King");
        Some(match name {
            "insert" | "exactly once" => three.is_some(),
            "insert of an existing entity" | "replace that moves" => one?.name() == king,
            "replace that keeps" => one?.age() == 1,
            "modify that moves" => two?.name() == king,
            "delete" => one.is_none(),
            "bulk insert" => three.is_some() && get(4).await.is_some(),
            "bulk replace" => [one?, two?].iter().all(|it| it.name() == king),
            "bulk delete" => one.is_none() && two.is_none(),
            _ => three.is_some() && two.is_none(),
        })
    }

    async fn check(&self, table: &mut TableClient) {
        let now = E::missing(table).await;
        if !now.is_empty() {
            // The entity may be between its insert and the confirmation of its entries: no insert
            // takes longer.
            sleep(Duration::from_secs(1_000)).await;
            let later = E::missing(table).await;
            assert!(now.is_disjoint(&later), "{now:?} and {later:?}");
        }
    }

    async fn mend(&self, table: &mut TableClient) -> Outcome {
        let repair = table.repair::<E>().concurrency(3);
        repair.await?;
        Ok(())
    }

    async fn settle(&self, server: &TableServer, table: &mut TableClient) {
        assert_eq!(E::missing(table).await, BTreeSet::new());
        // The time in which an entry may belong to a write under way.
        server.clock().advance(Duration::from_secs(2 * 3600));
        let report = table.repair::<E>().await.unwrap();
        assert!(report.is_right(), "{report:?}");
        E::exact(table).await;
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let id = rng.u32(1..4);
        let name = rng.choice(NAMES).filter(|_| rng.u8(..) > 40);
        let key = || E::employee_key(id);
        match rng.u8(0..6) {
            0 => {
                let employee = E::new(id, name);
                // A duplicate of the request that arrives after a delete is not carried out.
                let kept = Duration::from_secs(3600);
                drop(table.insert(&employee).exactly_once_for(kept).await?);
            }
            1 => {
                if let Some(found) = table.get::<E>(key()).await? {
                    table.delete_stored(&found).await?;
                }
            }
            2 => {
                if let Some(mut found) = table.get::<E>(key()).await? {
                    found.set_name(name);
                    found.add_year();
                    table.replace(&mut found).await?;
                }
            }
            3 => {
                let change = |e: &mut E| {
                    e.set_name(name);
                    Ok(())
                };
                drop(table.modify(key(), change).await?);
            }
            4 => {
                let found = [1, 2, 3].map(|id| table.get::<E>(E::employee_key(id)));
                let mut stored = Vec::new();
                for found in found {
                    stored.extend(found.await?);
                }
                if rng.bool() {
                    for found in &mut stored {
                        found.set_name(name);
                    }
                    all_of(table.bulk().replace(stream::iter(stored))).await?;
                } else {
                    stored.truncate(2);
                    all_of(table.bulk().delete_stored(stream::iter(stored))).await?;
                }
            }
            _ => {
                let other = E::employee_key(1 + (id + rng.u32(..2)) % 3);
                let swapped = table.transaction("Sales", async |tx| {
                    let one = tx.get::<E>(key()).await?;
                    let two = tx.get::<E>(other.clone()).await?;
                    if let (Some(mut one), Some(mut two)) = (one, two) {
                        let (first, second) = (one.name().map(str::to_owned), two.name());
                        one.set_name(second);
                        two.set_name(first.as_deref());
                        tx.replace(one).replace(two);
                    }
                    Ok(())
                });
                swapped.await?;
            }
        }
        Ok(())
    }

    fn is_expected(failure: &Failure) -> bool {
        !matches!(failure.kind, ErrorKind::Input | ErrorKind::Data)
    }
}
