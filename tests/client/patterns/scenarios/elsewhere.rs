//! Entities with entries in other partitions: no entity lacks its entry, and after a repair there
//! are no others.

use std::time::Duration;

use fastrand::Rng;
use futures::stream;
use tablesdk::{ErrorKind, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::time::sleep;

use super::super::other_partitions::{Employee, employee, exact, missing, none_missing};
use super::history::patient;
use super::{Before, Failure, Outcome, Scenario, Write, all_of, done, or_unknown, refused};

pub(super) struct Elsewhere;

const NAMES: [&str; 3] = ["Jones", "Smith", "King"];

suites!(Elsewhere);

impl Scenario for Elsewhere {
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
    const HISTORIES: u64 = 3;
    const EPOCHS: u32 = 3;
    const PAUSE: Duration = Duration::from_millis(500);
    // What a client cannot complete is left to a repair, so no client gives up.
    const DROPS: bool = false;

    fn retry() -> RetryPolicy {
        patient()
    }

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = Self.client(&harness::client(server));
        table.create_table().await.unwrap();
        for id in [1, 2] {
            table.insert(&employee("Sales", id, "Jones")).await.unwrap();
        }
        Self
    }

    fn again(&self) -> Self {
        Self
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        service.table("Company")
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let get = async |id: u32| {
            let found = table.get(Employee::key("Sales", id)).await;
            found.map(|found| found.expect("inserted"))
        };
        let king = || employee("Sales", 3, "King");
        match name {
            "insert" => drop(table.insert(&king()).await?),
            "insert of an existing entity" => {
                drop(table.insert(&employee("Sales", 1, "King")).await?);
            }
            "replace that moves" => {
                let mut jones = get(1).await?;
                jones.last_name = Some("King".into());
                table.replace(&mut jones).await?;
            }
            "replace that keeps" => {
                let mut jones = get(1).await?;
                jones.age += 1;
                table.replace(&mut jones).await?;
            }
            "modify that moves" => {
                let moved = table.modify(Employee::key("Sales", 2), |e| {
                    e.last_name = Some("King".into());
                    Ok(())
                });
                moved.await?;
            }
            "delete" => drop(table.delete_stored(&get(1).await?).await?),
            "batch" => {
                let (mut one, two) = (get(1).await?, get(2).await?);
                one.last_name = None;
                let batch = table.batch("Sales").replace(&mut one).delete_stored(&two);
                batch.insert(&employee("Sales", 3, "Jones")).await?;
            }
            "bulk insert" => {
                let more = [3, 4].map(|id| employee("Sales", id, "King"));
                all_of(table.bulk().insert(stream::iter(more))).await?;
            }
            "bulk replace" => {
                let mut found = [get(1).await?, get(2).await?];
                for found in &mut found {
                    found.last_name = Some("King".into());
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
        let get = async |id| table.get(Employee::key("Sales", id)).await.unwrap();
        let (one, two, three) = (get(1).await, get(2).await, get(3).await);
        let king = Some("King");
        Some(match name {
            "insert" | "exactly once" => three.is_some(),
            "insert of an existing entity" | "replace that moves" => {
                one?.last_name.as_deref() == king
            }
            "replace that keeps" => one?.age == 37,
            "modify that moves" => two?.last_name.as_deref() == king,
            "delete" => one.is_none(),
            "bulk insert" => three.is_some() && get(4).await.is_some(),
            "bulk replace" => [one?, two?]
                .iter()
                .all(|it| it.last_name.as_deref() == king),
            "bulk delete" => one.is_none() && two.is_none(),
            _ => three.is_some() && two.is_none(),
        })
    }

    async fn check(&self, table: &mut TableClient) {
        let now = missing(table).await;
        if !now.is_empty() {
            // The entity may be between its insert and the confirmation of its entries: no insert
            // takes longer.
            sleep(Duration::from_secs(1_000)).await;
            let later = missing(table).await;
            assert!(now.is_disjoint(&later), "{now:?} and {later:?}");
        }
    }

    async fn mend(&self, table: &mut TableClient) -> Outcome {
        let repair = table.repair::<Employee>().concurrency(3);
        repair.await?;
        Ok(())
    }

    async fn settle(&self, server: &TableServer, table: &mut TableClient) {
        none_missing(table).await;
        // The time in which an entry may belong to a write under way.
        server.clock().advance(Duration::from_secs(2 * 3600));
        let report = table.repair::<Employee>().await.unwrap();
        assert!(report.is_right(), "{report:?}");
        exact(table).await;
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let id = rng.u32(1..4);
        let name = rng.choice(NAMES).filter(|_| rng.u8(..) > 40);
        let name = name.map(str::to_owned);
        let key = || Employee::key("Sales", id);
        match rng.u8(0..6) {
            0 => {
                let employee = Employee {
                    last_name: name,
                    ..employee("Sales", id, "")
                };
                // A duplicate of the request that arrives after a delete is not carried out.
                let kept = Duration::from_secs(3600);
                drop(table.insert(&employee).exactly_once_for(kept).await?);
            }
            1 => {
                if let Some(found) = table.get(key()).await? {
                    table.delete_stored(&found).await?;
                }
            }
            2 => {
                if let Some(mut found) = table.get(key()).await? {
                    found.last_name = name;
                    found.age += 1;
                    table.replace(&mut found).await?;
                }
            }
            3 => {
                let change = |e: &mut Employee| {
                    e.last_name.clone_from(&name);
                    Ok(())
                };
                drop(table.modify(key(), change).await?);
            }
            4 => {
                let found = [1, 2, 3].map(|id| table.get(Employee::key("Sales", id)));
                let mut stored = Vec::new();
                for found in found {
                    stored.extend(found.await?);
                }
                if rng.bool() {
                    for found in &mut stored {
                        found.last_name.clone_from(&name);
                    }
                    all_of(table.bulk().replace(stream::iter(stored))).await?;
                } else {
                    stored.truncate(2);
                    all_of(table.bulk().delete_stored(stream::iter(stored))).await?;
                }
            }
            _ => {
                let other = Employee::key("Sales", 1 + (id + rng.u32(..2)) % 3);
                let swapped = table.transaction("Sales", async |tx| {
                    let one = tx.get(key()).await?;
                    let two = tx.get(other.clone()).await?;
                    if let (Some(mut one), Some(mut two)) = (one, two) {
                        std::mem::swap(&mut one.last_name, &mut two.last_name);
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
