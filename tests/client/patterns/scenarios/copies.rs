//! Entities with copies, and with parts in another entity: the copies say the same as their entity,
//! at any time.

use fastrand::Rng;
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::super::staff::{Department, Staff, ada, checked, department, open};
use super::{Before, Outcome, Scenario, Write, or_unknown};

pub(super) struct Copies;

const SKILLS: [&str; 4] = ["Maths", "Navy", "Rust", "Welsh"];

/// Only the first employee is a manager.
fn random(id: u32, rng: &mut Rng) -> Staff {
    let skills: Vec<&str> = SKILLS.into_iter().filter(|_| rng.bool()).collect();
    let name = ["Ada", "Grace"][usize::from(rng.bool())];
    Staff {
        email: rng.bool().then(|| format!("{id}@contoso.com")),
        badge: rng.bool().then(|| rng.i32(1..4)),
        is_manager: id == 1 && rng.bool(),
        ..Staff::new(id, name, &skills)
    }
}

suites!(Copies);

impl Scenario for Copies {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        or_unknown("replace that moves"),
        or_unknown("replace that removes a property of a part"),
        or_unknown("modify"),
        or_unknown("delete"),
        or_unknown("transaction that passes a copy on"),
    ];

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = Self.client(&harness::client(server));
        table.create_table().await.unwrap();
        open(&table).await;
        table.insert(&ada()).await.unwrap();
        let grace = Staff::new(2, "Grace", &["Navy"]);
        table.insert(&grace).await.unwrap();
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
            let found = table.get(Staff::key("Sales", id)).await;
            found.map(|found| found.expect("inserted"))
        };
        match name {
            "insert" => {
                let alan = Staff {
                    badge: Some(8),
                    ..Staff::new(3, "Alan", &["Maths", "Running"])
                };
                table.insert(&alan).await?;
            }
            "replace that moves" => {
                let mut ada = get(1).await?;
                ada.skills = vec!["Welsh".to_owned(), "Rust".to_owned()];
                (ada.badge, ada.name) = (Some(9), "Lovelace".to_owned());
                table.replace(&mut ada).await?;
            }
            "replace that removes a property of a part" => {
                let mut ada = get(1).await?;
                ada.email = None;
                table.replace(&mut ada).await?;
            }
            "modify" => {
                let promoted = table.modify(Staff::key("Sales", 2), |staff| {
                    staff.skills.push("Cobol".to_owned());
                    Ok(())
                });
                promoted.await?;
            }
            "delete" => {
                let ada = get(1).await?;
                table.delete_stored(&ada).await?;
            }
            "transaction that passes a copy on" => {
                let passed_on = table.transaction("Sales", async |tx| {
                    let ada = tx.get(Staff::key("Sales", 1)).await?.ok_or("inserted")?;
                    let mut grace = tx.get(Staff::key("Sales", 2)).await?.ok_or("inserted")?;
                    grace.badge = ada.badge;
                    tx.delete_stored(&ada).replace(grace);
                    Ok(())
                });
                passed_on.await?;
            }
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let get = async |id| table.get(Staff::key("Sales", id)).await.unwrap();
        let (ada, grace, alan) = (get(1).await, get(2).await, get(3).await);
        Some(match name {
            "insert" => alan.is_some(),
            "replace that moves" => ada?.name == "Lovelace",
            "replace that removes a property of a part" => {
                ada?.email.is_none() && department(table).await.manager_email.is_none()
            }
            "modify" => grace?.skills.iter().any(|it| it == "Cobol"),
            "delete" => ada.is_none(),
            _ => ada.is_none() && grace?.badge == Some(7),
        })
    }

    async fn check(&self, table: &mut TableClient) {
        checked(table).await;
    }

    async fn mend(&self, table: &mut TableClient) -> Outcome {
        table.repair::<Staff>().concurrency(3).await?;
        Ok(())
    }

    async fn settle(&self, _: &TableServer, table: &mut TableClient) {
        let report = table.repair::<Staff>().await.unwrap();
        assert_eq!(report.mended(), 0, "{report:?}");
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let id = rng.u32(1..4);
        let new = random(id, rng);
        let key = || Staff::key("Sales", id);
        match rng.u8(0..5) {
            0 => drop(table.insert(&new).await?),
            1 => {
                if let Some(found) = table.get(key()).await? {
                    table.delete_stored(&found).await?;
                }
            }
            2 => {
                if let Some(mut found) = table.get(key()).await? {
                    *found = new;
                    table.replace(&mut found).await?;
                }
            }
            3 => {
                let change = |staff: &mut Staff| {
                    staff.clone_from(&new);
                    Ok(())
                };
                let modify = table.modify(key(), change);
                modify.or_insert(|| new.clone()).await?;
            }
            _ => {
                let touch = |_: &mut Department| Ok(());
                table.modify(Department::key("Sales"), touch).await?;
            }
        }
        Ok(())
    }
}
