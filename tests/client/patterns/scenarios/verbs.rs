//! The plain verbs: what they return is true, and a change that is counted is counted once.

use std::cell::RefCell;

use fastrand::Rng;
use tablesdk::{ETag, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use super::super::moves::Plain;
use super::{Before, Outcome, Scenario, Write, done, or_unknown};

/// Of each counter: the additions that were acknowledged, and those that were tried.
#[derive(Default)]
pub(super) struct Verbs(RefCell<[(i64, i64); 3]>);

const IDS: [&str; 3] = ["1", "2", "3"];

impl Verbs {
    fn tried(&self, which: usize) {
        self.0.borrow_mut()[which].1 += 1;
    }

    fn added(&self, which: usize) {
        self.0.borrow_mut()[which].0 += 1;
    }
}

suites!(Verbs);

impl Scenario for Verbs {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        or_unknown("insert"),
        done("insert exactly once"),
        done("upsert_replace"),
        done("upsert_merge"),
        or_unknown("replace"),
        or_unknown("merge"),
        done("replace_if any"),
        or_unknown("modify"),
        done("modify exactly once"),
        or_unknown("delete"),
        or_unknown("delete_stored"),
        or_unknown("batch"),
        done("batch exactly once"),
        or_unknown("transaction"),
        done("transaction exactly once"),
    ];

    async fn new(server: &TableServer, _: Before) -> Self {
        let table = Self::default().client(&harness::client(server));
        table.create_table().await.unwrap();
        for id in IDS {
            table.insert(&Plain::new(id, 0)).await.unwrap();
        }
        Self::default()
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        service.table("Company")
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let new = Plain::new("9", 7);
        let changed = Plain::new("1", 7);
        let key = || Plain::key("Sales", "1");
        let change = |found: &mut Plain| {
            found.version = 7;
            Ok(())
        };
        let get = async || {
            let found = table.get(key()).await;
            found.map(|found| found.expect("inserted"))
        };
        match name {
            "insert" => drop(table.insert(&new).await?),
            "insert exactly once" => drop(table.insert(&new).exactly_once().await?),
            "upsert_replace" => drop(table.upsert_replace(&changed).await?),
            "upsert_merge" => drop(table.upsert_merge(&changed).await?),
            "replace" => {
                let mut found = get().await?;
                found.version = 7;
                table.replace(&mut found).await?;
            }
            "merge" => {
                let mut found = get().await?;
                found.version = 7;
                table.merge(&mut found).await?;
            }
            "replace_if any" => drop(table.replace_if(&changed, ETag::ANY).await?),
            "modify" => drop(table.modify(key(), change).await?),
            "modify exactly once" => drop(table.modify(key(), change).exactly_once().await?),
            "delete" => drop(table.delete(key()).await?),
            "delete_stored" => drop(table.delete_stored(&get().await?).await?),
            "batch" | "batch exactly once" => {
                let batch = table.batch("Sales").insert(&new).upsert_replace(&changed);
                if name == "batch" {
                    batch.await?;
                } else {
                    batch.exactly_once().await?;
                }
            }
            _ => {
                let run = table.transaction("Sales", async |tx| {
                    let mut found = tx.get(key()).await?.ok_or("inserted")?;
                    found.version = 7;
                    tx.replace(found);
                    Ok(())
                });
                if name == "transaction" {
                    run.await?;
                } else {
                    run.exactly_once().await?;
                }
            }
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let (one, new) = (Plain::find(table, "1").await, Plain::find(table, "9").await);
        let is_changed = one.as_ref().is_some_and(|one| one.version == 7);
        Some(match name {
            "insert" | "insert exactly once" => new.is_some(),
            "delete" | "delete_stored" => one.is_none(),
            "batch" | "batch exactly once" => new.is_some() && is_changed,
            _ => is_changed,
        })
    }

    async fn check(&self, table: &mut TableClient) {
        for (which, id) in IDS.into_iter().enumerate() {
            let (added, _) = self.0.borrow()[which];
            let found = Plain::find(table, id).await;
            let (_, tried) = self.0.borrow()[which];
            if tried > 0 {
                let version = found.expect("nobody deletes it").version;
                assert!(
                    (added..=tried).contains(&version),
                    "{id}: {version}, {added} of {tried}"
                );
            }
        }
    }

    async fn settle(&self, _: &TableServer, table: &mut TableClient) {
        self.check(table).await;
        let keys = table
            .query::<tablesdk::DynamicEntity>()
            .partition("Sales")
            .collect()
            .await;
        let keys = keys.unwrap();
        let markers = keys
            .iter()
            .filter(|row| row.row_key().starts_with("~tablesdk."));
        assert_eq!(markers.count(), 0, "queries hide them");
    }

    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let which = rng.usize(..IDS.len());
        let key = || Plain::key("Sales", IDS[which]);
        let change = |found: &mut Plain| {
            found.version += 1;
            Ok(())
        };
        self.tried(which);
        match rng.u8(..4) {
            0 => drop(table.modify(key(), change).exactly_once().await?),
            1 => {
                let mut found = table.get(key()).await?.expect("nobody deletes it");
                found.version += 1;
                if rng.bool() {
                    table.replace(&mut found).await?;
                } else {
                    table.merge(&mut found).await?;
                }
            }
            2 => {
                let found = table.get(key()).await?.expect("nobody deletes it");
                let mut next = found.clone();
                next.version += 1;
                let batch = table.batch("Sales").replace(&mut next);
                if rng.bool() {
                    batch.await?;
                } else {
                    batch.exactly_once().await?;
                }
            }
            _ => {
                let run = table.transaction("Sales", async |tx| {
                    let mut found = tx.get(key()).await?.ok_or("nobody deletes it")?;
                    found.version += 1;
                    tx.replace(found);
                    Ok(())
                });
                run.exactly_once().await?;
            }
        }
        self.added(which);
        Ok(())
    }
}
