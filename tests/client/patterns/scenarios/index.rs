//! Entities with entries in their own partition: the entries are theirs and no others, at any time.

use fastrand::Rng;
use futures::stream;
use harness::company::indexed::{Employee, checked};
use tablesdk::{ErrorKind, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::{Before, Failure, Outcome, Scenario, Write, all_of, done, or_unknown, refused};

pub(super) struct Index;

const EMAILS: [&str; 3] = ["a@contoso.com", "b@contoso.com", "c@contoso.com"];

suites!(Index);

impl Scenario for Index {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        refused("insert of a taken entry"),
        or_unknown("replace that moves"),
        or_unknown("replace that keeps"),
        or_unknown("modify"),
        or_unknown("delete"),
        or_unknown("batch that passes an entry on"),
        or_unknown("transaction"),
        or_unknown("bulk insert"),
        or_unknown("bulk replace"),
        done("bulk delete"),
    ];

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = Self.client(&harness::client(server));
        table.create_table().await.unwrap();
        for (id, name, email) in [
            (1, "Lovelace", Some("ada@contoso.com")),
            (2, "Hopper", None),
        ] {
            table.insert(&Employee::new(id, name, email)).await.unwrap();
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
        match name {
            "insert" => {
                let alan = Employee::new(3, "Turing", Some("alan@contoso.com"));
                table.insert(&alan).await?;
            }
            "insert of a taken entry" => {
                let alan = Employee::new(3, "Turing", Some("ada@contoso.com"));
                table.insert(&alan).await?;
            }
            "replace that moves" => {
                let mut ada = get(1).await?;
                ada.email = Some("lovelace@contoso.com".to_owned());
                ada.last_name = "King".into();
                table.replace(&mut ada).await?;
            }
            "replace that keeps" => {
                let mut ada = get(1).await?;
                ada.age += 1;
                table.replace(&mut ada).await?;
            }
            "modify" => {
                let named = table.modify(Employee::key("Sales", 2), |e| {
                    e.email = Some("grace@contoso.com".to_owned());
                    Ok(())
                });
                named.await?;
            }
            "delete" => {
                let ada = get(1).await?;
                table.delete_stored(&ada).await?;
            }
            "bulk insert" => {
                let more = [3, 4]
                    .map(|id| Employee::new(id, "Turing", Some(&format!("{id}@contoso.com"))));
                all_of(table.bulk().insert(stream::iter(more))).await?;
            }
            "bulk replace" => {
                let (mut ada, mut grace) = (get(1).await?, get(2).await?);
                ada.email = Some("lovelace@contoso.com".to_owned());
                grace.email = Some("grace@contoso.com".to_owned());
                all_of(table.bulk().replace(stream::iter([ada, grace]))).await?;
            }
            "bulk delete" => {
                let found = [get(1).await?, get(2).await?];
                all_of(table.bulk().delete_stored(stream::iter(found))).await?;
            }
            "batch that passes an entry on" => {
                let (mut ada, mut grace) = (get(1).await?, get(2).await?);
                grace.email = ada.email.take();
                let batch = table.batch("Sales").replace(&mut grace);
                batch.replace(&mut ada).await?;
            }
            "transaction" => {
                let swapped = table.transaction("Sales", async |tx| {
                    let ada = tx.get(Employee::key("Sales", 1)).await?.ok_or("inserted")?;
                    let mut grace = tx.get(Employee::key("Sales", 2)).await?.ok_or("inserted")?;
                    grace.email.clone_from(&ada.email);
                    tx.delete_stored(&ada).replace(grace);
                    Ok(())
                });
                swapped.await?;
            }
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let get = async |id| table.get(Employee::key("Sales", id)).await.unwrap();
        let (ada, grace, alan) = (get(1).await, get(2).await, get(3).await);
        Some(match name {
            "insert" | "insert of a taken entry" => alan.is_some(),
            "replace that moves" => ada?.last_name == "King",
            "replace that keeps" => ada?.age == 37,
            "delete" => ada.is_none(),
            "bulk insert" => alan.is_some() && get(4).await.is_some(),
            "bulk replace" => {
                ada?.email.as_deref() == Some("lovelace@contoso.com") && grace?.email.is_some()
            }
            "bulk delete" => ada.is_none() && grace.is_none(),
            "modify" => grace?.email.is_some(),
            "batch that passes an entry on" => ada?.email.is_none() && grace?.email.is_some(),
            _ => ada.is_none() && grace?.email.is_some(),
        })
    }

    async fn check(&self, table: &mut TableClient) {
        checked(table).await;
    }

    async fn mend(&self, table: &mut TableClient) -> Outcome {
        let repair = table.repair::<Employee>().concurrency(3);
        repair.await?;
        Ok(())
    }

    async fn settle(&self, _: &TableServer, table: &mut TableClient) {
        let before = checked(table).await;
        // No write of a client, whatever becomes of it, leaves something to repair.
        let report = table.repair::<Employee>().await.unwrap();
        assert_eq!(report.mended(), 0, "{report:?}");
        assert_eq!(checked(table).await, before);
    }

    /// If two entities are read one after the other, both may have an email that a third client has
    /// passed on.
    fn is_expected(failure: &Failure) -> bool {
        super::is_expected(failure) || failure.kind == ErrorKind::Input
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let id = rng.u32(1..5);
        let email = rng.choice(EMAILS).filter(|_| rng.u8(..) > 80);
        let email = email.map(str::to_owned);
        let name = ["Lovelace", "King"][usize::from(rng.bool())].to_owned();
        let key = || Employee::key("Sales", id);
        let other = Employee::key("Sales", 1 + (id + rng.u32(..3)) % 4);
        match rng.u8(0..8) {
            0 => {
                let employee = Employee {
                    email,
                    ..Employee::new(id, &name, None)
                };
                table.insert(&employee).await?;
            }
            1 => {
                if let Some(found) = table.get(key()).await? {
                    table.delete_stored(&found).await?;
                }
            }
            2 => {
                if let Some(mut found) = table.get(key()).await? {
                    (found.email, found.last_name) = (email, name);
                    table.replace(&mut found).await?;
                }
            }
            3 => {
                let change = |e: &mut Employee| {
                    e.email.clone_from(&email);
                    e.age += 1;
                    Ok(())
                };
                table.modify(key(), change).await?;
            }
            4 => {
                let found = (table.get(key()).await?, table.get(other).await?);
                if let (Some(mut one), Some(mut two)) = found {
                    std::mem::swap(&mut one.email, &mut two.email);
                    let batch = table.batch("Sales").replace(&mut one);
                    batch.replace(&mut two).await?;
                }
            }
            5 => {
                let more = (1..5).map(|id| Employee {
                    email: rng.choice(EMAILS).map(str::to_owned),
                    ..Employee::new(id, &name, None)
                });
                let more: Vec<_> = more.collect();
                all_of(table.bulk().insert(stream::iter(more))).await?;
            }
            6 => {
                let found = [table.get(key()).await?, table.get(other).await?];
                let found: Vec<_> = found.into_iter().flatten().collect();
                if rng.bool() {
                    all_of(table.bulk().delete_stored(stream::iter(found))).await?;
                } else {
                    let given = found.into_iter().map(|mut found| {
                        found.email = rng.choice(EMAILS).map(str::to_owned);
                        found
                    });
                    let given: Vec<_> = given.collect();
                    all_of(table.bulk().replace(stream::iter(given))).await?;
                }
            }
            _ => {
                let moved = table.transaction("Sales", async |tx| {
                    let one = tx.get(key()).await?;
                    let two = tx.get(other.clone()).await?;
                    if let (Some(one), Some(mut two)) = (one, two) {
                        two.email.clone_from(&one.email);
                        tx.delete_stored(&one).replace(two);
                    }
                    Ok(())
                });
                moved.await?;
            }
        }
        Ok(())
    }
}
