//! One of many clients: random operations on entities that all of them write, each through any
//! server, in one attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use harness::written::Row;
use tablesdk::{ETag, Error, TableClient};

use crate::history::{Name, Op};
use crate::register::{Action, Condition, Effect, Outcome, Refusal};
use crate::workload::{Workload, seen, version};

/// Runs that many clients until there were operations enough, and reads all entities once more.
pub(crate) async fn run(workload: &Arc<Workload>, clients: usize, rng: &mut Rng) {
    let mut worker = || Worker {
        workload: Arc::clone(workload),
        rng: rng.fork(),
    };
    let tasks = (0..clients).map(|_| {
        let mut worker = worker();
        tokio::spawn(async move { worker.work().await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a client does not panic");
    }
    let mut last = worker();
    for partition in 0..workload.size.partitions {
        let partition = format!("p{partition}");
        while !last.query(&partition).await {
            workload.wait_until_available().await;
        }
    }
}

struct Worker {
    workload: Arc<Workload>,
    rng: Rng,
}

/// A write of one entity.
struct Change {
    name: Name,
    effect: Effect,
    condition: Condition,
    etag: Option<ETag>,
}

impl Worker {
    async fn work(&mut self) {
        while !self.workload.is_over() {
            // A server in this process may respond without a wait for anything, and others would
            // never run.
            tokio::task::yield_now().await;
            let name = self.name();
            let is_answered = match self.rng.u8(..20) {
                0..=4 => self.get(&name).await,
                5..=6 => self.query(&name.0).await,
                7..=10 => self.batch(&name.0).await,
                _ => self.write(name).await,
            };
            if is_answered {
                self.workload.is_done();
            } else {
                self.workload.wait_until_available().await;
            }
        }
    }

    fn name(&mut self) -> Name {
        let size = self.workload.size;
        let partition = self.rng.usize(..size.partitions);
        let row = self.rng.usize(..size.rows);
        (format!("p{partition}"), format!("r{row}"))
    }

    /// A random write, which can mostly succeed.
    fn change(&mut self, name: Name) -> Change {
        let etag = self.workload.etag(&name);
        let known = etag.as_ref().map(|etag| Condition::Version(version(etag)));
        let (effect, condition) = match (self.rng.u8(..12), known) {
            (0 | 1, _) => (Effect::Replace, Condition::Any),
            (2, _) => (Effect::Merge, Condition::Any),
            (3, _) => (Effect::Delete, Condition::Present),
            (4, _) => (Effect::Replace, Condition::Present),
            (5, _) => (Effect::Merge, Condition::Present),
            (6..=7, Some(known)) => (Effect::Replace, known),
            (8, Some(known)) => (Effect::Merge, known),
            (9, Some(known)) => (Effect::Delete, known),
            _ => (Effect::Replace, Condition::Absent),
        };
        Change {
            name,
            effect,
            condition,
            etag,
        }
    }

    async fn get(&mut self, name: &Name) -> bool {
        let table = self.workload.table(&mut self.rng);
        let called = self.workload.now();
        let found = table.get(Row::key(name.0.as_str(), name.1.as_str())).await;
        let moments = (called, self.workload.now());
        let outcome = match found {
            Ok(found) => {
                if let Some(row) = &found {
                    self.workload.learn(name, row.etag());
                }
                Outcome::Saw(found.as_ref().map(seen))
            }
            Err(error) => self.workload.outcome("get", &error),
        };
        self.workload.count("get", &outcome);
        let op = Op::new(0, Action::Read, outcome, moments);
        self.workload.note(name, op);
        matches!(outcome, Outcome::Saw(_))
    }

    /// Reads all entities of a partition at one moment.
    async fn query(&mut self, partition: &str) -> bool {
        let table = self.workload.table(&mut self.rng);
        let query = table.query::<Row>().partition(partition);
        let called = self.workload.now();
        let found = query.collect().await;
        let moments = (called, self.workload.now());
        let outcome = match found {
            Ok(found) => {
                let all = (0..self.workload.size.rows).map(|row| (format!("r{row}"), None));
                let mut rows: BTreeMap<_, _> = all.collect();
                rows.extend(found.iter().map(|row| (row.row.clone(), Some(seen(row)))));
                self.workload.note_query(partition, rows, moments);
                Outcome::Saw(None)
            }
            Err(error) => self.workload.outcome("query", &error),
        };
        self.workload.count("query", &outcome);
        matches!(outcome, Outcome::Saw(_))
    }

    async fn write(&mut self, name: Name) -> bool {
        let change = self.change(name);
        let token = self.workload.next_token();
        let table = self.workload.table(&mut self.rng);
        let called = self.workload.now();
        let written = change.send(&table, token).await;
        let moments = (called, self.workload.now());
        let outcome = match written {
            Ok(Some(etag)) => {
                self.workload.learn(&change.name, &etag);
                Outcome::Done(Some(version(&etag)))
            }
            Ok(None) => Outcome::Done(None),
            Err(Failure::Missing) => Outcome::Refused(Refusal::Missing),
            Err(Failure::Error(error)) => self.workload.outcome(change.verb(), &error),
        };
        self.workload.count(change.verb(), &outcome);
        let action = Action::Write(change.effect, change.condition);
        let op = Op::new(token, action, outcome, moments);
        self.workload.note(&change.name, op);
        outcome != Outcome::Failed
    }

    async fn batch(&mut self, partition: &str) -> bool {
        let rows = self.workload.size.rows;
        let first = self.rng.usize(..rows);
        let count = self.rng.usize(2..=rows.min(4));
        let changes: Vec<Change> = (0..count)
            .map(|index| format!("r{}", (first + index) % rows))
            .map(|row| self.change((partition.to_owned(), row)))
            .collect();
        let token = self.workload.next_token();
        let table = self.workload.table(&mut self.rng);
        let mut batch = table.batch(partition);
        for change in &changes {
            let (partition, row) = (change.name.0.as_str(), change.name.1.as_str());
            let whole = Row::whole(partition, row, token);
            let part = Row::part(partition, row, token);
            let etag = change.etag.as_ref();
            batch = match (change.effect, change.condition) {
                (Effect::Replace, Condition::Absent) => batch.insert(&whole),
                (Effect::Replace, Condition::Any) => batch.upsert_replace(&whole),
                (Effect::Replace, Condition::Present) => batch.replace_if(&whole, ETag::ANY),
                (Effect::Replace, Condition::Version(_)) => batch.replace_if(&whole, etag.unwrap()),
                (Effect::Merge, Condition::Present) => batch.merge_if(&part, ETag::ANY),
                (Effect::Merge, Condition::Version(_)) => batch.merge_if(&part, etag.unwrap()),
                (Effect::Merge, _) => batch.upsert_merge(&part),
                (Effect::Delete, Condition::Version(_)) => {
                    batch.delete_if(Row::key(partition, row), etag.unwrap())
                }
                (Effect::Delete, _) => batch.delete(Row::key(partition, row)),
            };
        }
        let called = self.workload.now();
        let result = batch.await;
        let moments = (called, self.workload.now());
        let of_batch = match &result {
            Ok(_) => Outcome::Done(None),
            Err(error) => self.workload.outcome("batch", error),
        };
        self.workload.count("batch", &of_batch);
        for (index, change) in changes.iter().enumerate() {
            let outcome = match &result {
                Ok(result) => {
                    let etag = result.etags()[index].as_ref();
                    if let Some(etag) = etag {
                        self.workload.learn(&change.name, etag);
                    }
                    Outcome::Done(etag.map(version))
                }
                // The rejection is of one of them.
                Err(error) if matches!(of_batch, Outcome::Refused(_)) => {
                    let is_reason = error.batch_index() == Some(index);
                    if is_reason { of_batch } else { Outcome::Failed }
                }
                Err(_) => of_batch,
            };
            let action = Action::Write(change.effect, change.condition);
            let op = Op::new(token, action, outcome, moments);
            self.workload.note(&change.name, op);
        }
        of_batch != Outcome::Failed
    }
}

enum Failure {
    /// A delete found no entity.
    Missing,
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Change {
    const fn verb(&self) -> &'static str {
        match (self.effect, self.condition) {
            (Effect::Replace, Condition::Absent) => "insert",
            (Effect::Replace, Condition::Any) => "upsert_replace",
            (Effect::Replace, Condition::Present) => "replace_if any",
            (Effect::Replace, Condition::Version(_)) => "replace_if",
            (Effect::Merge, Condition::Version(_)) => "merge_if",
            (Effect::Merge, Condition::Present) => "merge_if any",
            (Effect::Merge, _) => "upsert_merge",
            (Effect::Delete, Condition::Version(_)) => "delete_if",
            (Effect::Delete, _) => "delete",
        }
    }

    /// Sends it alone. Returns the new ETag, if there is one.
    async fn send(&self, table: &TableClient, token: i64) -> Result<Option<ETag>, Failure> {
        let (partition, row) = (self.name.0.as_str(), self.name.1.as_str());
        let whole = Row::whole(partition, row, token);
        let part = Row::part(partition, row, token);
        let etag = self.etag.as_ref();
        let write = match (self.effect, self.condition) {
            (Effect::Replace, Condition::Absent) => {
                return Ok(Some(table.insert(&whole).await?.etag().clone()));
            }
            (Effect::Delete, condition) => {
                let delete = table.delete(Row::key(partition, row));
                let delete = match (condition, etag) {
                    (Condition::Version(_), Some(etag)) => delete.if_match(etag),
                    _ => delete,
                };
                let is_deleted = delete.await?;
                return is_deleted.then_some(None).ok_or(Failure::Missing);
            }
            (Effect::Replace, Condition::Any) => table.upsert_replace(&whole),
            (Effect::Replace, Condition::Present) => table.replace_if(&whole, ETag::ANY),
            (Effect::Replace, Condition::Version(_)) => table.replace_if(&whole, etag.unwrap()),
            (Effect::Merge, Condition::Version(_)) => table.merge_if(&part, etag.unwrap()),
            (Effect::Merge, Condition::Present) => table.merge_if(&part, ETag::ANY),
            (Effect::Merge, _) => table.upsert_merge(&part),
        };
        Ok(Some(write.await?))
    }
}
