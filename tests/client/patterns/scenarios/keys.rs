//! Moves to another key: an entity is never under neither key, and no acknowledged version is lost.

use std::cell::RefCell;
use std::cmp::max;
use std::time::Duration;

use fastrand::Rng;
use tablesdk::{TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tokio::time::sleep;

use super::super::moves::{Plain, tables};
use super::super::other_partitions::{Employee, employee, exact, none_missing};
use super::{Before, Outcome, Scenario, Write, done};

pub(super) struct Keys {
    before: Before,
    /// The greatest version of each entity whose write was acknowledged.
    latest: RefCell<[i64; 3]>,
}

const IDS: [&str; 3] = ["1", "2", "3"];
const DEPARTMENTS: [&str; 3] = ["Legal", "Sales", "Service"];

/// An entity whose rows begin with its id, which the key does not identify.
fn plain(department: &str, which: usize, number: u32, version: i64) -> Plain {
    Plain {
        department: department.to_owned(),
        id: format!("{}.{number}", IDS[which]),
        version,
    }
}

fn is_indexed(name: &str) -> bool {
    name.starts_with("indexed")
}

fn is_all(name: &str) -> bool {
    name.contains("all ")
}

/// The key to which a write moves the entity `1.0` of `Sales`.
fn target(name: &str) -> (&'static str, u32) {
    if name.contains("within") {
        ("Sales", 1)
    } else {
        ("Legal", 0)
    }
}

impl Keys {
    fn begun(before: Before) -> Self {
        let latest = RefCell::new([1; 3]);
        Self { before, latest }
    }
}

/// All entities, read by one request.
async fn found(table: &TableClient) -> Vec<Plain> {
    let found = table.query::<Plain>().values().collect().await;
    found.expect("the table can be read")
}

async fn indexed(table: &TableClient) -> Vec<(String, u32)> {
    let found = table.query::<Employee>().values().collect().await;
    let found = found.expect("the table can be read").into_iter();
    found.map(|found| (found.department, found.id)).collect()
}

suites!(Keys);

impl Scenario for Keys {
    type Client = TableClient;

    const WRITES: &'static [Write] = &[
        done("within"),
        done("within, over another"),
        done("between"),
        done("between, where it is"),
        done("between, over another"),
        done("all within"),
        done("all between"),
        done("indexed within"),
        done("indexed between"),
        done("indexed, all between"),
    ];
    const EVERY: u64 = 2;
    const STEPS: u32 = 60;

    async fn new(server: &TableServer, before: Before) -> Self {
        let (table, _) = tables(&harness::client(server)).await;
        match before {
            Before::Write(name) if is_indexed(name) => {
                table.insert(&employee("Sales", 1, "Jones")).await.unwrap();
                if is_all(name) {
                    table.insert(&employee("Sales", 2, "Smith")).await.unwrap();
                }
            }
            Before::Write(name) if is_all(name) => {
                for which in 0..IDS.len() {
                    table.insert(&plain("Sales", which, 0, 7)).await.unwrap();
                }
            }
            Before::Write(name) => {
                table.insert(&plain("Sales", 0, 0, 7)).await.unwrap();
                let (department, number) = target(name);
                let version = if name.ends_with("where it is") { 7 } else { 3 };
                if name.contains(',') {
                    let there = plain(department, 0, number, version);
                    table.insert(&there).await.unwrap();
                }
            }
            Before::History => {
                for which in 0..IDS.len() {
                    table.insert(&plain("Sales", which, 0, 1)).await.unwrap();
                }
            }
        }
        Self::begun(before)
    }

    fn again(&self) -> Self {
        Self::begun(self.before)
    }

    fn client(&self, service: &TableServiceClient) -> TableClient {
        service.table("Company")
    }

    async fn write(&self, table: &mut TableClient, name: &str) -> Outcome {
        let (department, number) = target(name);
        if is_all(name) {
            let report = if is_indexed(name) {
                let sales = table.query::<Employee>().partition("Sales");
                sales.move_keys(|e| e.department = "Legal".into()).await
            } else {
                let sales = table.query::<Plain>().partition("Sales");
                let moved = sales.move_keys(|e| {
                    e.department = department.into();
                    e.id.truncate(2);
                    e.id += &number.to_string();
                });
                moved.await
            };
            let report = match report {
                Ok(report) => report,
                Err(error) => return Err(error.error().expect("a request failed").into()),
            };
            let first = report.failures().first();
            return first.map_or(Ok(()), |failure| Err(failure.error().into()));
        }
        if is_indexed(name) {
            if let Some(mut found) = table.get(Employee::key("Sales", 1)).await? {
                found.department = department.into();
                found.id += number;
                table.move_key(&mut found).await?;
            }
            return Ok(());
        }
        if let Some(mut found) = table.get(Plain::key("Sales", "1.0")).await? {
            found.department = department.into();
            found.id = format!("1.{number}");
            let run = table.move_key(&mut found);
            let over = name.ends_with("another");
            let run = if over { run.overwrite() } else { run };
            run.await?;
        }
        Ok(())
    }

    async fn is_done(&self, table: &mut TableClient, name: &str) -> Option<bool> {
        let (department, number) = target(name);
        if is_all(name) {
            let is_done = if is_indexed(name) {
                indexed(table).await == [("Legal".to_owned(), 1), ("Legal".to_owned(), 2)]
            } else {
                let moved = (0..IDS.len()).map(|which| plain(department, which, number, 7));
                found(table).await == moved.collect::<Vec<_>>()
            };
            // One that failed may have moved some of them.
            return is_done.then_some(true);
        }
        Some(if is_indexed(name) {
            indexed(table).await == [(department.to_owned(), 1 + number)]
        } else {
            found(table).await == [plain(department, 0, number, 7)]
        })
    }

    async fn check(&self, table: &mut TableClient) {
        if matches!(self.before, Before::Write(name) if is_indexed(name)) {
            assert!(!indexed(table).await.is_empty());
            return none_missing(table).await;
        }
        let (least, ids) = match self.before {
            Before::Write(name) if !is_all(name) => ([7; 3], &IDS[..1]),
            Before::Write(_) => ([7; 3], &IDS[..]),
            Before::History => (*self.latest.borrow(), &IDS[..]),
        };
        let found = found(table).await;
        for (id, least) in ids.iter().zip(least) {
            let of_id = found.iter().filter(|it| it.id.starts_with(id));
            let newest = of_id.map(|it| it.version).max();
            assert!(newest >= Some(least), "{id}: {found:?}, not {least}");
        }
    }

    async fn settle(&self, server: &TableServer, table: &mut TableClient) {
        // A move that has not ended is finished by the same move again.
        let Before::Write(name) = self.before else {
            return;
        };
        self.write(table, name).await.unwrap();
        assert_eq!(self.is_done(table, name).await, Some(true));
        if is_indexed(name) {
            none_missing(table).await;
            // The time in which an entry may belong to a write under way.
            server.clock().advance(Duration::from_secs(2 * 3600));
            let report = table.repair::<Employee>().await.unwrap();
            assert!(report.is_right(), "{report:?}");
            exact(table).await;
        }
    }

    /// Each write makes a version that is greater than that of the entity before.
    async fn step(&self, table: &mut TableClient, rng: &mut Rng) -> Outcome {
        let which = rng.usize(..IDS.len());
        let of_id = table.query::<Plain>().filter(|it| {
            let prefix = IDS[which];
            it.id.ge(format!("{prefix}.")) & it.id.lt(format!("{prefix}/"))
        });
        let mut found = of_id.collect().await?;
        if found.is_empty() {
            // A response of another request.
            return Ok(());
        }
        let mut found = found.swap_remove(rng.usize(..found.len()));
        sleep(Duration::from_millis(rng.u64(..20))).await;
        let mut version = None;
        if rng.bool() {
            found.version += 1;
            version = Some(found.version);
        }
        match rng.u8(..5) {
            4 => {
                // The failures of single entities are those of rivals or of faults.
                let department = rng.choice(DEPARTMENTS).expect("there are three");
                let all = table.query::<Plain>();
                drop(all.move_keys(|e| e.department = department.into()).await);
                return Ok(());
            }
            0 => drop(table.replace(&mut found).await?),
            1 => {
                found.id = format!("{}.{}", IDS[which], rng.u32(..3));
                table.move_key(&mut found).await?;
            }
            _ => {
                found.department = rng.choice(DEPARTMENTS).expect("there are three").into();
                table.move_key(&mut found).await?;
            }
        }
        if let Some(version) = version {
            let mut latest = self.latest.borrow_mut();
            latest[which] = max(latest[which], version);
        }
        Ok(())
    }
}
