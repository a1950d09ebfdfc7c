//! Sequences of operations on single entities that one worker owns.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fastrand::Rng;
use tablesdk::action::{DeleteEntity, InsertEntity, Modified, Modify, Write};
use tablesdk::{ETag, Error, Stored, TableClient};

use crate::entity::{Numbered, Row, snapshot};
use crate::judge::{Snapshots, judge};
use crate::ledger::Said;
use crate::step::{Call, Effect, Step, Target, token, when};
use crate::world::World;

/// The table that all of these are in.
pub(crate) const TABLE: &str = Row::TABLE;

/// A few operations on one entity, one after another without a look at what is there; then everything that is in flight
/// arrives, and they are judged.
pub(crate) async fn sequence(world: &World, partition: &str, rng: &mut Rng) {
    let row = format!("r{}", rng.u8(..4));
    let direct = world.direct.table(TABLE);
    let stored = direct.get(Row::key(partition, row.as_str())).await.unwrap();
    let before: Snapshots = [(row.clone(), stored.as_ref().map(snapshot))].into();
    let mut subject = Subject {
        stored,
        ..Subject::new(world, partition, &row)
    };
    let mut steps = Vec::new();
    for _ in 0..[1, 1, 1, 2, 3, 5][rng.usize(..6)] {
        let table = world.table(rng, TABLE);
        steps.push(if rng.bool() {
            subject.operate(&table, rng).await
        } else {
            subject.operate_on_row(&table, rng).await
        });
    }
    settle_and_judge::<Row>(world, &direct, partition, before, steps).await;
}

/// Waits until everything of the operations has arrived, and judges them. Returns them with their records.
pub(crate) async fn settle_and_judge<E: Numbered>(
    world: &World,
    direct: &TableClient,
    partition: &str,
    before: Snapshots,
    mut steps: Vec<Step>,
) -> Vec<Step> {
    for step in &mut steps {
        world.settle(step).await;
    }
    let mut after = BTreeMap::new();
    for row in before.keys() {
        let stored = direct.get(E::at(partition, row)).await.unwrap();
        after.insert(row.clone(), stored.as_ref().map(snapshot));
    }
    let mut findings = judge(&before, &steps, &after);
    let mut steps_refused = steps.iter();
    let refused = steps_refused.find(|step| step.words.contains("AuthenticationFailed"));
    findings.extend(refused.map(|step| step.lie("the key that changed was refused")));
    world.enter(findings, &steps, || {
        format!("partition {partition}\n  before: {before:?}\n  after: {after:?}")
    });
    steps
}

/// An entity, on which operations follow one after another.
pub(crate) struct Subject<'w, E> {
    world: &'w World,
    partition: &'w str,
    row: &'w str,
    /// The newest version that the client was given.
    stored: Option<Stored<E>>,
}

impl<'w, E: Numbered> Subject<'w, E> {
    pub(crate) const fn new(world: &'w World, partition: &'w str, row: &'w str) -> Self {
        Self {
            world,
            partition,
            row,
            stored: None,
        }
    }

    /// One of the operations that there are for entities of every type.
    pub(crate) async fn operate(&mut self, table: &TableClient, rng: &mut Rng) -> Step {
        let is_once = rng.u8(..3) == 0;
        match rng.u8(..7) {
            0..=1 if self.stored.is_some() => {
                let call = self.call("replace", is_once);
                let whole = E::whole(self.partition, self.row, token(call.id));
                let replace = TableClient::replace;
                self.update(table, call, Effect::Replace, whole, replace)
                    .await
            }
            2 if self.stored.is_some() => {
                let delete = table.delete_stored(self.stored.as_ref().unwrap());
                self.delete("delete_stored", delete, true, is_once).await
            }
            3..=4 if self.stored.is_some() => self.modify(table, is_once).await,
            5 if self.stored.is_some() => self.get(table).await,
            _ => self.insert(table, is_once).await,
        }
    }

    fn call(&self, verb: &str, is_once: bool) -> Call {
        self.world.call(&format!("{}: {verb}", E::TABLE), is_once)
    }

    /// Runs an operation. `etag` is that of the entity after a success.
    async fn run<T: Debug>(
        &self,
        call: Call,
        (effect, is_conditional): (Effect, bool),
        said: impl FnOnce(&Result<T, Error>) -> Said,
        operation: impl Future<Output = Result<T, Error>>,
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

    async fn insert(&mut self, table: &TableClient, is_once: bool) -> Step {
        let call = self.call("insert", is_once);
        let whole = E::whole(self.partition, self.row, token(call.id));
        let insert = when(is_once, table.insert(&whole), InsertEntity::exactly_once);
        let etag = |stored: &Stored<E>| Some(stored.etag().clone());
        let effect = (Effect::Replace, false);
        let insert = self.run(call, effect, Said::of, insert.into_future(), etag);
        let (step, inserted) = insert.await;
        if let Ok(stored) = inserted {
            self.stored = Some(stored);
        }
        step
    }

    /// Writes the newest version that the client was given.
    async fn update(
        &mut self,
        table: &TableClient,
        call: Call,
        effect: Effect,
        entity: E,
        write: for<'e> fn(&TableClient, &'e mut Stored<E>) -> Write<&'e mut Stored<E>>,
    ) -> Step {
        let mut stored = self.stored.take().unwrap();
        *stored = entity;
        let write = when(call.is_once, write(table, &mut stored), Write::exactly_once);
        let effect = (effect, true);
        let write = self.run(call, effect, Said::of, write.into_future(), given);
        let (step, written) = write.await;
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
        let call = self.call(verb, is_once);
        let delete = when(is_once, delete, DeleteEntity::exactly_once);
        let effect = (Effect::Delete, is_conditional);
        let delete = delete.into_future();
        let deleted = self.run(call, effect, Said::of_delete, delete, |_| None);
        deleted.await.0
    }

    async fn modify(&mut self, table: &TableClient, is_once: bool) -> Step {
        let call = self.call("modify", is_once);
        let whole = E::whole(self.partition, self.row, token(call.id));
        let modify = table.modify(E::at(self.partition, self.row), move |it: &mut E| {
            *it = whole.clone();
            Ok(())
        });
        let modify = when(is_once, modify, Modify::exactly_once);
        let etag = |stored: &Modified<E>| Some(stored.etag().clone());
        let effect = (Effect::Replace, true);
        let modify = self.run(call, effect, Said::of, modify.into_future(), etag);
        let (step, modified) = modify.await;
        if let Ok(modified) = modified {
            self.stored = Some(modified.into_stored());
        }
        step
    }

    async fn get(&mut self, table: &TableClient) -> Step {
        let get = table.get(E::at(self.partition, self.row)).into_future();
        let said = |found: &Result<Option<Stored<E>>, Error>| match found {
            Ok(found) => Said::Saw(found.as_ref().map(|it| it.numbers().0)),
            Err(_) => Said::Unread,
        };
        let effect = (Effect::Delete, true);
        let (step, found) = self
            .run(self.call("get", false), effect, said, get, |_| None)
            .await;
        if let Ok(found) = found {
            self.stored = found;
        }
        step
    }
}

impl Subject<'_, Row> {
    /// One of the operations that there are only for entities without entries.
    async fn operate_on_row(&mut self, table: &TableClient, rng: &mut Rng) -> Step {
        let is_once = rng.u8(..3) == 0;
        let (partition, row) = (self.partition, self.row);
        let key = Row::key(partition, row);
        let whole = |token| Row::whole(partition, row, token);
        let part = |token| Row::part(partition, row, token);
        match rng.u8(..7) {
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
            4 if self.stored.is_some() => {
                let call = self.call("merge", is_once);
                let part = part(token(call.id));
                let merge = TableClient::merge;
                self.update(table, call, Effect::Merge, part, merge).await
            }
            5 => {
                let delete = table.delete(key);
                self.delete("delete", delete, false, is_once).await
            }
            _ => {
                let patch = table.patch(key);
                let patch = |token| patch.set(|it| it.token, token).set(|it| it.b, token);
                self.write("patch", Effect::Merge, patch).await
            }
        }
    }

    /// Writes without a look at the version that is there.
    async fn write<W>(&self, verb: &str, effect: Effect, write: impl FnOnce(i64) -> W) -> Step
    where
        W: IntoFuture<Output = Result<ETag, Error>>,
    {
        let call = self.call(verb, false);
        let write = write(token(call.id)).into_future();
        let written = self.run(call, (effect, false), Said::of, write, given);
        written.await.0
    }
}

/// The ETag that a write returned.
#[expect(clippy::unnecessary_wraps, reason = "as other operations have it")]
fn given(etag: &ETag) -> Option<ETag> {
    Some(etag.clone())
}
