//! A unique index with entries in other partitions: at any time no two entities have one email, and
//! each has its entry. After a repair, there are no other entries and no tickets.

use fastrand::Rng;
use tablesdk::{ErrorKind, RetryPolicy, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::super::unique_over_partitions::{
    Employee, employee, exact, leave_reservation, none_missing,
};
use super::history::patient;
use super::{Before, Failure, Outcome, Scenario, Write, or_unknown, refused};

pub(super) struct Unique;

const EMAILS: [&str; 3] = ["jones", "smith", "king"];
const OVER_RESERVATION: &str = "insert over a reservation";

suites!(Unique);

impl Scenario for Unique {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        or_unknown(OVER_RESERVATION),
        refused("insert with an email that another has"),
        or_unknown("replace that gains"),
        or_unknown("replace that keeps"),
        or_unknown("modify that gains"),
        or_unknown("delete"),
        or_unknown("batch"),
        or_unknown("exactly once"),
    ];
    const EVERY: u64 = 2;
    const HISTORIES: u64 = 2;

    fn retry() -> RetryPolicy {
        patient()
    }

    async fn new(server: &TableServer, before: Before) -> Self {
        let table = Self.client(&harness::client(server));
        table.create_table().await.unwrap();
        for (id, email) in [(1, "jones"), (2, "smith")] {
            table.insert(&employee(id, email)).await.unwrap();
        }
        if before == Before::Write(OVER_RESERVATION) {
            leave_reservation(&table, 9, "king").await;
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
        let king = || employee(3, "king");
        match name {
            "insert" | OVER_RESERVATION => drop(table.insert(&king()).await?),
            "insert with an email that another has" => {
                drop(table.insert(&employee(3, "jones")).await?);
            }
            "replace that gains" => {
                let mut jones = get(1).await?;
                jones.email = Some("king".into());
                table.replace(&mut jones).await?;
            }
            "replace that keeps" => {
                let mut jones = get(1).await?;
                jones.age += 1;
                table.replace(&mut jones).await?;
            }
            "modify that gains" => {
                let gained = table.modify(Employee::key("Sales", 2), |e| {
                    e.email = Some("king".into());
                    Ok(())
                });
                gained.await?;
            }
            "delete" => drop(table.delete_stored(&get(1).await?).await?),
            "batch" => {
                let (mut one, two) = (get(1).await?, get(2).await?);
                one.email = None;
                let batch = table.batch(Employee::partition("Sales"));
                let batch = batch.replace(&mut one).delete_stored(&two);
                batch.insert(&king()).await?;
            }
            "exactly once" => drop(table.insert(&king()).exactly_once().await?),
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let get = async |id| table.get(Employee::key("Sales", id)).await.unwrap();
        let (one, two, three) = (get(1).await, get(2).await, get(3).await);
        let king = Some("king");
        Some(match name {
            "replace that gains" => one?.email.as_deref() == king,
            "replace that keeps" => one?.age == 37,
            "modify that gains" => two?.email.as_deref() == king,
            "delete" => one.is_none(),
            "batch" => three.is_some() && two.is_none(),
            _ => three.is_some(),
        })
    }

    async fn check(&self, table: &mut TableClient) {
        none_missing(table).await;
    }

    async fn mend(&self, table: &mut TableClient) -> Outcome {
        table.repair::<Employee>().concurrency(3).await?;
        Ok(())
    }

    async fn settle(&self, _: &TableServer, table: &mut TableClient) {
        none_missing(table).await;
        let report = table.repair::<Employee>().await.unwrap();
        assert!(report.is_right(), "{report:?}");
        exact(table).await;
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let id = rng.u32(1..4);
        let email = rng.choice(EMAILS).filter(|_| rng.u8(..) > 40);
        let email = email.map(str::to_owned);
        let key = || Employee::key("Sales", id);
        match rng.u8(0..5) {
            0 => {
                let employee = Employee {
                    email,
                    ..employee(id, "")
                };
                drop(table.insert(&employee).await?);
            }
            1 => {
                if let Some(found) = table.get(key()).await? {
                    table.delete_stored(&found).await?;
                }
            }
            2 => {
                if let Some(mut found) = table.get(key()).await? {
                    found.email = email;
                    found.age += 1;
                    table.replace(&mut found).await?;
                }
            }
            3 => {
                let change = |e: &mut Employee| {
                    e.email.clone_from(&email);
                    Ok(())
                };
                drop(table.modify(key(), change).await?);
            }
            _ => {
                let other = Employee::key("Sales", 1 + (id + rng.u32(..2)) % 3);
                let changed = table.transaction(Employee::partition("Sales"), async |tx| {
                    let one = tx.get(key()).await?;
                    let two = tx.get(other.clone()).await?;
                    if let (Some(mut one), Some(mut two)) = (one, two) {
                        one.email = None;
                        two.age += 1;
                        tx.replace(one).replace(two);
                    }
                    Ok(())
                });
                changed.await?;
            }
        }
        Ok(())
    }

    fn is_expected(failure: &Failure) -> bool {
        !matches!(failure.kind, ErrorKind::Input | ErrorKind::Data)
    }
}
