//! Sequences of operations on single entities that one worker owns.

use std::fmt::Debug;

use fastrand::Rng;
use harness::written::Row;
use tablesdk::action::{DeleteEntity, InsertEntity, Modified, Modify, Write};
use tablesdk::{ETag, Error, Stored, TableClient};

use crate::judge::{Snapshot, Snapshots, judge};
use crate::ledger::Said;
use crate::step::{Call, Effect, Step, Target, token, when};
use crate::world::World;

/// The table that all of these are in.
pub(crate) const TABLE: &str = "Rows";

/// A few operations on one entity, one after another without a look at what is there; then
/// everything that is in flight arrives, and they are judged.
pub(crate) async fn sequence(world: &World, partition: &str, rng: &mut Rng) {
    let row = format!("r{}", rng.u8(..4));
    let direct = world.direct.table(TABLE);
    let stored = direct.get(Row::key(partition, row.as_str())).await.unwrap();
    let before: Snapshots = [(row.clone(), stored.as_ref().map(Snapshot::of))].into();
    let mut subject = Subject {
        world,
        partition,
        row: &row,
        stored,
    };
    let mut steps = Vec::new();
    for _ in 0..[1, 1, 1, 2, 3, 5][rng.usize(..6)] {
        let table = world.table(rng, TABLE);
        steps.push(subject.operate(&table, rng).await);
    }
    settle_and_judge(world, partition, &before, steps).await;
}

/// Waits until everything of the operations has arrived, and judges them.
pub(crate) async fn settle_and_judge(
    world: &World,
    partition: &str,
    before: &Snapshots,
    mut steps: Vec<Step>,
) {
    for step in &mut steps {
        world.settle(step).await;
    }
    let direct = world.direct.table(TABLE);
    let mut after = Snapshots::new();
    for row in before.keys() {
        let stored = direct.get(Row::key(partition, row.as_str())).await.unwrap();
        after.insert(row.clone(), stored.as_ref().map(Snapshot::of));
    }
    let is_refused = |step: &&Step| step.words.contains("AuthenticationFailed");
    let refused = steps.iter().filter(is_refused);
    let refused = refused.map(|step| step.lie("the key that changed was refused"));
    let findings = judge(before, &steps, &after).into_iter().chain(refused);
    world.enter(findings, &steps, || {
        format!("partition {partition}\n  before: {before:?}\n  after: {after:?}")
    });
}

/// An entity, on which operations follow one after another.
struct Subject<'w> {
    world: &'w World,
    partition: &'w str,
    row: &'w str,
    /// The newest version that the client was given.
    stored: Option<Stored<Row>>,
}

impl Subject<'_> {
    async fn operate(&mut self, table: &TableClient, rng: &mut Rng) -> Step {
        let is_once = rng.u8(..3) == 0;
        let (partition, row) = (self.partition, self.row);
        let key = Row::key(partition, row);
        let whole = |token| Row::whole(partition, row, token);
        let part = |token| Row::part(partition, row, token);
        match rng.u8(..14) {
            0 => {
                let write = |token| table.upsert_replace(&whole(token));
                self.write("upsert_replace", Effect::Replace, write).await
            }
            1 => {
                let write = |token| table.upsert_merge(&part(token));
                self.write("upsert_merge", Effect::Merge, write).await
            }
            2 => {
                let write = |token| table.replace_if(&whole(token), ETag::ANY);
                self.write("replace_if any", Effect::Replace, write).await
            }
            3 => {
                let write = |token| table.merge_if(&part(token), ETag::ANY);
                self.write("merge_if any", Effect::Merge, write).await
            }
            4 => {
                let patch = table.patch(key);
                let patch = |token| patch.set(|it| it.token, token).set(|it| it.b, token);
                self.write("patch", Effect::Merge, patch).await
            }
            5 => {
                let delete = table.delete(key);
                self.delete("delete", delete, false, is_once).await
            }
            6..=8 if self.stored.is_some() => self.update(table, rng.bool(), is_once).await,
            9 if self.stored.is_some() => {
                let delete = table.delete_stored(self.stored.as_ref().unwrap());
                self.delete("delete_stored", delete, true, is_once).await
            }
            10 => self.modify(table, is_once).await,
            11 => self.get(table).await,
            _ => self.insert(table, is_once).await,
        }
    }

    /// Runs an operation. `etag` is that of the entity after a success.
    async fn run<T: Debug>(
        &self,
        call: Call,
        (effect, is_conditional): (Effect, bool),
        said: impl FnOnce(&Result<T, Error>) -> Said,
        operation: impl IntoFuture<Output = Result<T, Error>>,
        etag: impl FnOnce(&T) -> Option<ETag>,
    ) -> (Step, Result<T, Error>) {
        let (mut step, output) = self.world.ask(call, said, operation).await;
        step.targets.push(Target {
            row: self.row.to_owned(),
            effect,
            is_conditional,
            etag: output.as_ref().ok().and_then(etag),
        });
        (step, output)
    }

    /// Writes without a look at the version that is there.
    async fn write<W>(&self, verb: &str, effect: Effect, write: impl FnOnce(i64) -> W) -> Step
    where
        W: IntoFuture<Output = Result<ETag, Error>>,
    {
        let call = self.world.call(verb, false);
        let write = write(token(call.id));
        let etag = |etag: &ETag| Some(etag.clone());
        let written = self.run(call, (effect, false), Said::of, write, etag);
        written.await.0
    }

    async fn insert(&mut self, table: &TableClient, is_once: bool) -> Step {
        let call = self.world.call("insert", is_once);
        let whole = Row::whole(self.partition, self.row, token(call.id));
        let insert = when(is_once, table.insert(&whole), InsertEntity::exactly_once);
        let etag = |stored: &Stored<Row>| Some(stored.etag().clone());
        let inserted = self.run(call, (Effect::Replace, false), Said::of, insert, etag);
        let (step, inserted) = inserted.await;
        if let Ok(stored) = inserted {
            self.stored = Some(stored);
        }
        step
    }

    /// A replace or a merge of the newest version that the client was given.
    async fn update(&mut self, table: &TableClient, replaces: bool, is_once: bool) -> Step {
        let mut stored = self.stored.take().unwrap();
        let verb = if replaces { "replace" } else { "merge" };
        let call = self.world.call(verb, is_once);
        let token = token(call.id);
        let (effect, write) = if replaces {
            *stored = Row::whole(self.partition, self.row, token);
            (Effect::Replace, table.replace(&mut stored))
        } else {
            *stored = Row::part(self.partition, self.row, token);
            (Effect::Merge, table.merge(&mut stored))
        };
        let write = when(is_once, write, Write::exactly_once);
        let etag = |etag: &ETag| Some(etag.clone());
        let (step, written) = self.run(call, (effect, true), Said::of, write, etag).await;
        if let Ok(etag) = written {
            assert_eq!(*stored.etag(), etag);
        }
        self.stored = Some(stored);
        step
    }

    async fn delete(
        &self,
        verb: &str,
        delete: DeleteEntity,
        is_conditional: bool,
        is_once: bool,
    ) -> Step {
        let call = self.world.call(verb, is_once);
        let delete = when(is_once, delete, DeleteEntity::exactly_once);
        let effect = (Effect::Delete, is_conditional);
        let deleted = self.run(call, effect, Said::of_delete, delete, |_| None);
        deleted.await.0
    }

    async fn modify(&mut self, table: &TableClient, is_once: bool) -> Step {
        let call = self.world.call("modify", is_once);
        let token = token(call.id);
        let modify = table.modify(Row::key(self.partition, self.row), move |row| {
            (row.token, row.a, row.b) = (token, Some(token), None);
            Ok(())
        });
        let modify = when(is_once, modify, Modify::exactly_once);
        let etag = |stored: &Modified<Row>| Some(stored.etag().clone());
        let modified = self.run(call, (Effect::Replace, true), Said::of, modify, etag);
        let (step, modified) = modified.await;
        if let Ok(modified) = modified {
            self.stored = Some(modified.into_stored());
        }
        step
    }

    async fn get(&mut self, table: &TableClient) -> Step {
        let call = self.world.call("get", false);
        let get = table.get(Row::key(self.partition, self.row));
        let said = |found: &Result<Option<Stored<Row>>, Error>| match found {
            Ok(found) => Said::Saw(found.as_ref().map(|it| it.token)),
            Err(_) => Said::Unread,
        };
        let effect = (Effect::Delete, true);
        let (step, found) = self.run(call, effect, said, get, |_| None).await;
        if let Ok(found) = found {
            self.stored = found;
        }
        step
    }
}
