//! Wide entities: a reader sees one version as a whole, and after a clean-up nothing else is
//! stored. All properties of an entity have one number, so a mix of versions is seen.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::TryStreamExt as _;
use tablesdk::wide::{StoredWide, WideTable};
use tablesdk::{DynamicEntity, TableServiceClient, Value};
use tablesdk_server::TableServer;
use tokio::time::sleep;

use super::{Before, Outcome, Scenario, Write, done};

type Maps = WideTable<DynamicEntity>;

#[derive(Default)]
pub(super) struct Reports {
    /// The additions to the counter: those that were acknowledged, those that were tried, of which
    /// a modification makes several if it starts over, and the greatest number that was read.
    added: Cell<i32>,
    tried: AtomicI32,
    read: Cell<i32>,
    /// True if there is a counter.
    counts: Cell<bool>,
    /// The versions that the report may have, and the one that it had when it was checked.
    versions: RefCell<Vec<Option<i32>>>,
    checked: Cell<Option<i32>>,
}

fn part(number: i32) -> Vec<u8> {
    vec![u8::try_from(number % 256).unwrap(); 64 * 1024]
}

/// An entity of two parts, written in one transaction.
pub(crate) fn small(number: i32) -> DynamicEntity {
    let properties = (0..300).map(|index| (format!("P{index:03}"), number));
    DynamicEntity::new("ann", "report").with_properties(properties.collect())
}

/// An entity of four parts, written in two transactions.
pub(crate) fn large(number: i32) -> DynamicEntity {
    of_bytes(number, 50)
}

/// An entity of eight parts, written in three transactions.
pub(crate) fn huge(number: i32) -> DynamicEntity {
    of_bytes(number, 110)
}

fn of_bytes(number: i32, count: usize) -> DynamicEntity {
    let part = Value::Binary(part(number));
    let properties = (0..count).map(|index| (format!("P{index:03}"), part.clone()));
    let properties = properties.chain([("P".to_owned(), Value::Int32(number))]);
    DynamicEntity::new("ann", "report").with_properties(properties.collect())
}

fn any_size(number: i32, row_key: &str, rng: &mut Rng) -> DynamicEntity {
    let entity = if rng.u8(..4) == 0 {
        large(number)
    } else {
        small(number)
    };
    DynamicEntity::new("ann", row_key).with_properties(entity.properties().clone())
}

/// The number that all properties of an entity have.
pub(crate) fn number(entity: &DynamicEntity) -> i32 {
    let properties = entity.properties();
    let is_small = properties.get("P").is_none();
    let first = properties.read(if is_small { "P000" } else { "P" });
    let first: i32 = first.unwrap();
    let part = part(first);
    for (name, value) in properties.iter() {
        let is_of_version = match value {
            Value::Int32(number) => *number == first,
            Value::Binary(bytes) => *bytes == part,
            _ => false,
        };
        assert!(is_of_version, "versions are mixed: {name} is not {first}");
    }
    let count = properties.len();
    assert!([51, 111, 300].contains(&count), "{count}");
    first
}

/// The parts that an entity has in the table.
fn parts(found: &StoredWide<DynamicEntity>) -> usize {
    match found.properties().len() {
        51 => 4,
        111 => 8,
        _ => 2,
    }
}

suites!(Reports);

impl Scenario for Reports {
    type Client = Maps;

    const WRITES: &'static [Write] = &[
        done("insert"),
        done("insert large"),
        done("insert huge"),
        done("replace"),
        done("replace by large"),
        done("replace large by large"),
        done("modify large"),
        done("delete"),
        done("delete large"),
    ];
    const HISTORIES: u64 = 2;
    const STEPS: u32 = 20;
    const EVERY: u64 = 7;

    async fn new(server: &TableServer, before: Before) -> Self {
        let service = harness::client(server);
        let scenario = Self::default();
        let maps = scenario.client(&service);
        service.table("Reports").create_table().await.unwrap();
        match before {
            Before::Write(name) if name.starts_with("insert") => {}
            Before::Write(name) => {
                let large_before = ["replace large", "modify large", "delete large"];
                let is_large = large_before.iter().any(|start| name.starts_with(start));
                let entity = if is_large { large(1) } else { small(1) };
                maps.insert(&entity).await.unwrap();
            }
            Before::History => {
                let counter = DynamicEntity::new("ann", "counter");
                let counter = counter.with_properties(small(0).properties().clone());
                maps.insert(&counter).await.unwrap();
                scenario.counts.set(true);
            }
        }
        scenario
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, service: &TableServiceClient) -> Maps {
        service.table("Reports").wide()
    }

    /// Makes number 2, or deletes.
    async fn write(&self, maps: &mut Maps, name: &str) -> Outcome {
        let (old, new) = match name {
            "insert" | "insert large" | "insert huge" => (None, Some(2)),
            "delete" | "delete large" => (Some(1), None),
            _ => (Some(1), Some(2)),
        };
        self.versions.replace(vec![old, new]);
        let replace = async |entity: DynamicEntity| {
            let found = maps.get(("ann", "report")).await?;
            let mut found = found.expect("was inserted");
            *found = entity;
            maps.replace(&mut found).await
        };
        match name {
            "insert" => drop(maps.insert(&small(2)).await?),
            "insert large" => drop(maps.insert(&large(2)).await?),
            "insert huge" => drop(maps.insert(&huge(2)).await?),
            "replace" => replace(small(2)).await?,
            "replace by large" | "replace large by large" => replace(large(2)).await?,
            "modify large" => {
                let change = |entity: &mut DynamicEntity| {
                    *entity = large(2);
                    Ok(())
                };
                drop(maps.modify(("ann", "report"), change).await?);
            }
            "delete" | "delete large" => drop(maps.delete(("ann", "report")).await?),
            _ => unreachable!("{name}"),
        }
        Ok(())
    }

    async fn is_done(&self, _: &mut Maps, name: &str) -> Option<bool> {
        let expected = (!name.starts_with("delete")).then_some(2);
        Some(self.checked.get() == expected)
    }

    async fn check(&self, maps: &mut Maps) {
        let all: Vec<_> = maps.stream("ann").try_collect().await.unwrap();
        assert!(all.len() <= 2);
        for found in all {
            let number = number(&found);
            if found.row_key() == "counter" {
                let before = self.read.replace(number);
                assert!(number >= before, "{number} after {before}");
            }
        }
        let found = maps.get(("ann", "report")).await.unwrap();
        let found = found.as_ref().map(|found| number(found));
        self.checked.set(found);
        let versions = self.versions.borrow();
        let is_one = versions.is_empty() || versions.contains(&found);
        assert!(is_one, "{found:?}");
    }

    /// A writer that is slower than the clean-up fails, or has written all.
    async fn mend(&self, maps: &mut Maps) -> Outcome {
        maps.clean_up_siblings("ann", Duration::ZERO).await?;
        Ok(())
    }

    async fn settle(&self, server: &TableServer, maps: &mut Maps) {
        while maps.clean_up_siblings("ann", Duration::ZERO).await.unwrap() > 0 {}
        let (mut report, mut counter, mut expected) = (None, 0, 0);
        for found in maps.stream("ann").try_collect::<Vec<_>>().await.unwrap() {
            expected += parts(&found);
            match found.row_key() {
                "counter" => counter = number(&found),
                _ => report = Some(number(&found)),
            }
        }
        assert_eq!(report, self.checked.get());
        let rows = super::super::wide::rows(server);
        assert_eq!(rows.len(), expected, "{rows:?}");
        if self.counts.get() {
            let possible = self.added.get()..=self.tried.load(Ordering::Relaxed);
            assert!(possible.contains(&counter), "{counter}: {possible:?}");
        }
    }

    async fn step(&self, maps: &mut Maps, rng: &mut Rng) -> Outcome {
        let key = ("ann", "report");
        let report = any_size(rng.i32(1..100), "report", rng);
        match rng.u8(..6) {
            0 | 1 => {
                let (mut rng, tried) = (rng.fork(), &self.tried);
                let add = |counter: &mut DynamicEntity| {
                    tried.fetch_add(1, Ordering::Relaxed);
                    *counter = any_size(number(counter) + 1, "counter", &mut rng);
                    Ok(())
                };
                maps.modify(("ann", "counter"), add).await?;
                self.added.set(self.added.get() + 1);
            }
            2 => drop(maps.insert(&report).await?),
            3 => drop(maps.upsert_replace(&report).await?),
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
}
