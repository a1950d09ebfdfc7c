//! Sequences of operations on single entities that one worker owns.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fastrand::Rng;
use tablesdk::action::{DeleteEntity, Modified};
use tablesdk::{ETag, Error, Stored, TableClient};

use crate::entity::{Numbered, Row, snapshot};
use crate::judge::{Effect, Snapshots, Step, Target, judge, token};
use crate::ledger::{Finding, Said};
use crate::record::Record;
use crate::world::{Asked, World};

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
        world,
        partition,
        row: &row,
        stored,
        steps: Vec::new(),
    };
    for _ in 0..[1, 1, 1, 2, 3, 5][rng.usize(..6)] {
        subject.operate(rng).await;
    }
    settle_and_judge::<Row>(world, &direct, partition, before, subject.steps).await;
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
        step.record = world.registry.settle(step.id).await;
    }
    let mut after = BTreeMap::new();
    for row in before.keys() {
        let stored = direct.get(E::at(partition, row)).await.unwrap();
        after.insert(row.clone(), stored.as_ref().map(snapshot));
    }
    for step in &steps {
        world.ledger.count(&step.verb, &step.said);
    }
    let mut findings = judge(&before, &steps, &after);
    let refused = steps
        .iter()
        .find(|step| step.words.contains("AuthenticationFailed"));
    findings.extend(refused.map(|step| {
        let text = format!(
            "{} {}: the key that changed was refused",
            step.verb, step.id
        );
        Finding::Lie(text)
    }));
    world.ledger.enter(findings, || {
        let mut text = format!("  partition {partition}\n  before: {before:?}\n");
        for step in &steps {
            text += &show(world, step);
        }
        text + &format!("  after: {after:?}\n")
    });
    steps
}

pub(crate) fn show(world: &World, step: &Step) -> String {
    let ms = |time: std::time::Instant| (time - world.ledger.origin()).as_millis();
    let Step {
        id,
        verb,
        said,
        words,
        began,
        ended,
        record,
        ..
    } = step;
    let rows: Vec<_> = step.targets.iter().map(|it| it.row.as_str()).collect();
    let times = format!("{}-{}", ms(*began), ms(*ended));
    let record = record.show(world.ledger.origin());
    format!("  {id} {verb} {rows:?} at {times}: {said:?}: {words}\n{record}")
}

/// What is called, under which number.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) verb: &'static str,
    pub(crate) is_once: bool,
}

/// An operation before it is settled.
pub(crate) fn step<T: Debug>(
    call: Call,
    said: Said,
    targets: Vec<Target>,
    asked: &Asked<T>,
) -> Step {
    let Call { id, verb, is_once } = call;
    let verb = if is_once {
        format!("{verb}, exactly once")
    } else {
        verb.to_owned()
    };
    Step {
        id,
        verb,
        in_batches: is_once,
        is_once,
        targets,
        said,
        words: format!("{:?}", asked.output),
        began: asked.began,
        ended: asked.ended,
        record: Record::default(),
    }
}

struct Subject<'w> {
    world: &'w World,
    partition: &'w str,
    row: &'w str,
    /// The newest version that the client was given.
    stored: Option<Stored<Row>>,
    steps: Vec<Step>,
}

impl Subject<'_> {
    async fn operate(&mut self, rng: &mut Rng) {
        let table = self.world.table(rng, TABLE);
        let is_once = rng.u8(..3) == 0;
        match rng.u8(..14) {
            2..=5 => self.write(&table, rng.u8(..4)).await,
            6..=8 if self.stored.is_some() => self.conditional(&table, rng.bool(), is_once).await,
            9 if self.stored.is_some() => {
                let delete = table.delete_stored(self.stored.as_ref().unwrap());
                self.delete("delete_stored", delete, true, is_once).await;
            }
            10 => {
                let delete = table.delete(Row::key(self.partition, self.row));
                self.delete("delete", delete, false, is_once).await;
            }
            11 => self.modify(&table, is_once).await,
            12 => self.patch(&table).await,
            13 => self.get(&table).await,
            _ => self.insert(&table, is_once).await,
        }
    }

    /// Runs an operation and notes it. `etag` is that of the entity after a success.
    async fn run<T: Debug>(
        &mut self,
        call: Call,
        (effect, is_conditional): (Effect, bool),
        said: fn(&Result<T, Error>) -> Said,
        operation: impl Future<Output = Result<T, Error>>,
        etag: fn(&T) -> Option<ETag>,
    ) -> Result<T, Error> {
        let asked = self.world.ask(call.id, operation).await;
        let target = Target {
            row: self.row.to_owned(),
            effect,
            is_conditional,
            etag: asked.output.as_ref().ok().and_then(etag),
        };
        let said = said(&asked.output);
        self.steps.push(step(call, said, vec![target], &asked));
        asked.output
    }

    fn call(&self, verb: &'static str, is_once: bool) -> Call {
        let id = self.world.next_id();
        Call { id, verb, is_once }
    }

    async fn insert(&mut self, table: &TableClient, is_once: bool) {
        let call = self.call("insert", is_once);
        let row = Row::whole(self.partition, self.row, token(call.id));
        let insert = table.insert(&row);
        let insert = if is_once {
            insert.exactly_once()
        } else {
            insert
        };
        let etag = |stored: &Stored<Row>| Some(stored.etag().clone());
        let effect = (Effect::Replace, false);
        if let Ok(stored) = self
            .run(call, effect, Said::of, insert.into_future(), etag)
            .await
        {
            self.stored = Some(stored);
        }
    }

    async fn write(&mut self, table: &TableClient, which: u8) {
        let mut call = self.call("", false);
        let whole = Row::whole(self.partition, self.row, token(call.id));
        let part = Row::part(self.partition, self.row, token(call.id));
        let (effect, write);
        (call.verb, effect, write) = match which {
            0 => (
                "upsert_replace",
                Effect::Replace,
                table.upsert_replace(&whole),
            ),
            1 => ("upsert_merge", Effect::Merge, table.upsert_merge(&part)),
            2 => {
                let replace = table.replace_if(&whole, ETag::ANY);
                ("replace_if any", Effect::Replace, replace)
            }
            _ => {
                let merge = table.merge_if(&part, ETag::ANY);
                ("merge_if any", Effect::Merge, merge)
            }
        };
        let etag = |etag: &ETag| Some(etag.clone());
        let _ = self
            .run(call, (effect, false), Said::of, write.into_future(), etag)
            .await;
    }

    /// A replace or a merge of the newest version that the client was given.
    async fn conditional(&mut self, table: &TableClient, replaces: bool, is_once: bool) {
        let mut stored = self.stored.take().unwrap();
        let verb = if replaces { "replace" } else { "merge" };
        let call = self.call(verb, is_once);
        let token = token(call.id);
        let (effect, write);
        if replaces {
            *stored = Row::whole(self.partition, self.row, token);
            (effect, write) = (Effect::Replace, table.replace(&mut stored));
        } else {
            *stored = Row::part(self.partition, self.row, token);
            (effect, write) = (Effect::Merge, table.merge(&mut stored));
        }
        let write = if is_once { write.exactly_once() } else { write };
        let etag = |etag: &ETag| Some(etag.clone());
        let written = self
            .run(call, (effect, true), Said::of, write.into_future(), etag)
            .await;
        if let Ok(etag) = written {
            assert_eq!(*stored.etag(), etag);
        }
        self.stored = Some(stored);
    }

    async fn delete(
        &mut self,
        verb: &'static str,
        delete: DeleteEntity,
        is_conditional: bool,
        is_once: bool,
    ) {
        let call = self.call(verb, is_once);
        let delete = if is_once {
            delete.exactly_once()
        } else {
            delete
        };
        let effect = (Effect::Delete, is_conditional);
        let deleted = self.run(call, effect, Said::of_delete, delete.into_future(), |_| {
            None
        });
        let _ = deleted.await;
    }

    async fn modify(&mut self, table: &TableClient, is_once: bool) {
        let call = self.call("modify", is_once);
        let token = token(call.id);
        let modify = table.modify(Row::key(self.partition, self.row), move |row| {
            (row.token, row.a, row.b) = (token, Some(token), None);
            Ok(())
        });
        let modify = if is_once {
            modify.exactly_once()
        } else {
            modify
        };
        let etag = |stored: &Modified<Row>| Some(stored.etag().clone());
        let effect = (Effect::Replace, true);
        if let Ok(stored) = self
            .run(call, effect, Said::of, modify.into_future(), etag)
            .await
        {
            self.stored = Some(stored.into_stored());
        }
    }

    async fn patch(&mut self, table: &TableClient) {
        let call = self.call("patch", false);
        let token = token(call.id);
        let patch = table.patch(Row::key(self.partition, self.row));
        let patch = patch.set(|it| it.token, token).set(|it| it.b, token);
        let etag = |etag: &ETag| Some(etag.clone());
        let effect = (Effect::Merge, false);
        let _ = self
            .run(call, effect, Said::of, patch.into_future(), etag)
            .await;
    }

    async fn get(&mut self, table: &TableClient) {
        let call = self.call("get", false);
        let get = table.get(Row::key(self.partition, self.row));
        let said = |found: &Result<Option<Stored<Row>>, Error>| match found {
            Ok(found) => Said::Saw(found.as_ref().map(|it| it.token)),
            Err(_) => Said::Unread,
        };
        let effect = (Effect::Delete, true);
        if let Ok(found) = self
            .run(call, effect, said, get.into_future(), |_| None)
            .await
        {
            self.stored = found;
        }
    }
}
