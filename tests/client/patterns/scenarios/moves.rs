//! Moves into another table: an entity is never in neither table, and no acknowledged version is
//! lost.

use std::cell::RefCell;
use std::cmp::max;
use std::time::Duration;

use fastrand::Rng;
use harness::company::indexed::{Employee, checked};

use tablesdk::key::Key;
use tablesdk::{TableClient, TableServiceClient, WritableEntity};
use tablesdk_server::TableServer;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::moves::{Plain, tables};
use super::{Before, Outcome, Scenario, Write, done};

pub(super) struct Moves {
    before: Before,
    /// The greatest version of each entity whose write was acknowledged.
    latest: RefCell<[i64; 3]>,
    /// Held by the only client that may insert an entity: otherwise it could insert an old version
    /// after another one was inserted and moved. The instant is that from when on no earlier insert
    /// is on its way.
    inserts: [Mutex<Instant>; 3],
}

pub(super) struct Client {
    table: TableClient,
    archive: TableClient,
}

const IDS: [&str; 3] = ["1", "2", "3"];

fn employee(name: &str) -> Employee {
    let email = format!("{name}@contoso.com");
    Employee::new(1, name, Some(&email))
}

fn is_indexed(name: &str) -> bool {
    name.starts_with("indexed")
}

impl Moves {
    fn begun(before: Before) -> Self {
        Self {
            before,
            latest: RefCell::new([1; 3]),
            inserts: [(); 3].map(|()| Mutex::new(Instant::now())),
        }
    }

    /// The versions of each entity: in the table, and in the archive.
    async fn found(&self, client: &Client) -> Vec<(Option<i64>, Option<i64>)> {
        let Client { table, archive } = client;
        if matches!(self.before, Before::Write(name) if is_indexed(name)) {
            let version = async |table| {
                let found = checked(table).await;
                let version = |e: &Employee| if e.last_name == "King" { 3 } else { 7 };
                found.first().map(version)
            };
            return vec![(version(table).await, version(archive).await)];
        }
        let mut found = Vec::new();
        for id in IDS {
            // In this order: what is no longer in the table is in the archive.
            let here = Plain::find(table, id).await.map(|e| e.version);
            let there = Plain::find(archive, id).await.map(|e| e.version);
            found.push((here, there));
        }
        found
    }
}

/// Moves an entity, unless the client before has moved it.
async fn move_one<E: WritableEntity>(
    Client { table, archive }: &Client,
    key: Key<E>,
    overwrites: bool,
) -> Outcome {
    let Some(found) = table.get(key).await? else {
        return Ok(());
    };
    let moved = table.move_to(archive, found);
    let moved = if overwrites { moved.overwrite() } else { moved };
    Ok(moved.await.map(drop)?)
}

suites!(Moves);

impl Scenario for Moves {
    type Client = Client;

    const WRITES: &'static [Write] = &[
        done("one"),
        done("one that is there"),
        done("one over another"),
        done("indexed"),
        done("indexed over another"),
        done("all"),
        done("all that are there"),
    ];
    const STEPS: u32 = 60;

    async fn new(server: &TableServer, before: Before) -> Self {
        let (table, archive) = tables(&harness::client(server)).await;
        match before {
            Before::Write(name) if is_indexed(name) => {
                table.insert(&employee("Lovelace")).await.unwrap();
            }
            Before::Write(_) => {
                for id in IDS {
                    table.insert(&Plain::new(id, 7)).await.unwrap();
                }
            }
            Before::History => {
                for id in IDS {
                    table.insert(&Plain::new(id, 1)).await.unwrap();
                }
            }
        }
        let there: &[(&str, i64)] = match before {
            Before::Write("one that is there") => &[("1", 7)],
            Before::Write("one over another") => &[("1", 3)],
            Before::Write("all that are there") => &[("1", 7), ("3", 7)],
            _ => &[],
        };
        for (id, version) in there {
            archive.insert(&Plain::new(id, *version)).await.unwrap();
        }
        if before == Before::Write("indexed over another") {
            archive.insert(&employee("King")).await.unwrap();
        }
        Self::begun(before)
    }

    fn again(&self) -> Self {
        Self::begun(self.before)
    }

    fn client(&self, service: &TableServiceClient) -> Client {
        Client {
            table: service.table("Company"),
            archive: service.table("Archive"),
        }
    }

    async fn write(&self, client: &mut Client, name: &str) -> Outcome {
        let Client { table, archive } = client;
        if name.starts_with("all") {
            let sales = table.query::<Plain>().partition("Sales");
            let report = match sales.move_to(archive).await {
                Ok(report) => report,
                Err(error) => return Err(error.error().expect("a request failed").into()),
            };
            let first = report.failures().first();
            return first.map_or(Ok(()), |failure| Err(failure.error().into()));
        }
        let overwrites = name.ends_with("another");
        if is_indexed(name) {
            return move_one(client, Employee::key("Sales", 1), overwrites).await;
        }
        move_one(client, Plain::key("Sales", "1"), overwrites).await
    }

    async fn is_done(&self, client: &mut Client, name: &str) -> Option<bool> {
        let found = self.found(client).await;
        let moved = if name.starts_with("all") {
            &found[..]
        } else {
            &found[..1]
        };
        // One that failed may have moved some of them.
        let is_done = moved.iter().all(|found| *found == (None, Some(7)));
        (is_done || !name.starts_with("all")).then_some(is_done)
    }

    async fn check(&self, client: &mut Client) {
        let least = match self.before {
            Before::Write(_) => [7; 3],
            Before::History => *self.latest.borrow(),
        };
        for (nth, (here, there)) in self.found(client).await.into_iter().enumerate() {
            let found = max(here, there);
            assert!(
                found.is_some_and(|found| found >= least[nth]),
                "{nth}: {here:?}, {there:?}, not {}",
                least[nth]
            );
        }
    }

    async fn settle(&self, _: &TableServer, client: &mut Client) {
        // A move that has not ended is finished by the same move again.
        if let Before::Write(name) = self.before {
            self.write(client, name).await.unwrap();
            assert_eq!(self.is_done(client, name).await, Some(true));
        }
    }

    /// Each write makes a version of its own, which is greater than all before.
    async fn step(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        let Client { table, archive } = client;
        let which = rng.usize(..IDS.len());
        let key = || Plain::key("Sales", IDS[which]);
        let note = |version: i64| {
            let mut latest = self.latest.borrow_mut();
            latest[which] = max(latest[which], version);
        };
        match rng.u8(..5) {
            0 | 1 => {
                if let Some(found) = table.get(key()).await? {
                    sleep(Duration::from_millis(rng.u64(..20))).await;
                    let run = table.move_to(archive, found);
                    let run = if rng.bool() { run.overwrite() } else { run };
                    run.await?;
                }
            }
            2 => {
                let sales = table.query::<Plain>().partition("Sales");
                let run = sales.move_to(archive);
                let run = if rng.bool() { run.overwrite() } else { run };
                // The failures of single entities are those of rivals or of faults.
                drop(run.await);
            }
            3 => {
                if let Some(mut found) = table.get(key()).await? {
                    found.version += 1;
                    table.replace(&mut found).await?;
                    note(found.version);
                }
            }
            _ => {
                // It comes back from the archive, as a newer version.
                let mut only = self.inserts[which].lock().await;
                sleep_until(*only).await;
                if let (None, Some(found)) = (table.get(key()).await?, archive.get(key()).await?) {
                    let back = Plain::new(IDS[which], found.version + 1);
                    // No late attempt of it brings back an old version: also if this future is
                    // dropped.
                    *only = Instant::now() + Self::LATE;
                    let kept = Duration::from_secs(600);
                    table.insert(&back).exactly_once_for(kept).await?;
                    *only = Instant::now();
                    note(back.version);
                }
            }
        }
        Ok(())
    }
}
