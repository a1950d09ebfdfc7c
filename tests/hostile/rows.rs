//! Sequences of operations on single entities that one worker owns.

use std::collections::BTreeMap;
use std::fmt::Debug;

use fastrand::Rng;
use tablesdk::action::DeleteEntity;
use tablesdk::{ETag, Stored, TableClient};

use crate::entity::{Row, snapshot};
use crate::judge::{Effect, Snapshots, Step, Target, judge, token};
use crate::ledger::Said;
use crate::record::Record;
use crate::world::{Asked, World};

/// The table that all of these are in.
pub(crate) const TABLE: &str = "Rows";

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
    settle_and_judge(world, partition, before, subject.steps).await;
}

/// Waits until everything of the operations has arrived, and judges them.
pub(crate) async fn settle_and_judge(
    world: &World,
    partition: &str,
    before: Snapshots,
    mut steps: Vec<Step>,
) {
    for step in &mut steps {
        step.record = world.registry.settle(step.id).await;
    }
    let direct = world.direct.table(TABLE);
    let mut after = BTreeMap::new();
    for row in before.keys() {
        let stored = direct.get(Row::key(partition, row.as_str())).await.unwrap();
        after.insert(row.clone(), stored.as_ref().map(snapshot));
    }
    for step in &steps {
        world.ledger.count(&step.verb, &step.said);
    }
    let findings = judge(&before, &steps, &after);
    world.ledger.enter(findings, || {
        let mut text = format!("  partition {partition}\n  before: {before:?}\n");
        for step in &steps {
            text += &show(world, step);
        }
        text + &format!("  after: {after:?}\n")
    });
}

fn show(world: &World, step: &Step) -> String {
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

    fn note<T: Debug>(
        &mut self,
        call: Call,
        said: Said,
        (effect, is_conditional): (Effect, bool),
        etag: Option<ETag>,
        asked: &Asked<T>,
    ) {
        let target = Target {
            row: self.row.to_owned(),
            effect,
            is_conditional,
            etag,
        };
        let step = step(call, said, vec![target], asked);
        self.steps.push(step);
    }

    async fn insert(&mut self, table: &TableClient, is_once: bool) {
        let id = self.world.next_id();
        let row = Row::whole(self.partition, self.row, token(id));
        let insert = table.insert(&row);
        let insert = if is_once {
            insert.exactly_once()
        } else {
            insert
        };
        let asked = self.world.ask(id, insert.into_future()).await;
        let said = Said::of(&asked.output);
        let etag = asked.output.as_ref().ok().map(|it| it.etag().clone());
        self.note(
            Call {
                id,
                verb: "insert",
                is_once,
            },
            said,
            (Effect::Replace, false),
            etag,
            &asked,
        );
        if let Ok(stored) = asked.output {
            self.stored = Some(stored);
        }
    }

    async fn write(&mut self, table: &TableClient, which: u8) {
        let id = self.world.next_id();
        let (partition, token) = (self.partition, token(id));
        let whole = Row::whole(partition, self.row, token);
        let part = Row::part(partition, self.row, token);
        let (verb, effect, write) = match which {
            0 => (
                "upsert_replace",
                Effect::Replace,
                table.upsert_replace(&whole),
            ),
            1 => ("upsert_merge", Effect::Merge, table.upsert_merge(&part)),
            2 => (
                "replace_unconditional",
                Effect::Replace,
                table.replace_unconditional(&whole),
            ),
            _ => (
                "merge_unconditional",
                Effect::Merge,
                table.merge_unconditional(&part),
            ),
        };
        let asked = self.world.ask(id, write.into_future()).await;
        let said = Said::of(&asked.output);
        let etag = asked.output.as_ref().ok().cloned();
        self.note(
            Call {
                id,
                verb,
                is_once: false,
            },
            said,
            (effect, false),
            etag,
            &asked,
        );
    }

    /// A replace or a merge of the newest version that the client was given.
    async fn conditional(&mut self, table: &TableClient, replaces: bool, is_once: bool) {
        let id = self.world.next_id();
        let mut stored = self.stored.take().unwrap();
        let token = token(id);
        *stored = if replaces {
            Row::whole(self.partition, self.row, token)
        } else {
            Row::part(self.partition, self.row, token)
        };
        let (verb, effect, write) = if replaces {
            ("replace", Effect::Replace, table.replace(&mut stored))
        } else {
            ("merge", Effect::Merge, table.merge(&mut stored))
        };
        let write = if is_once { write.exactly_once() } else { write };
        let asked = self.world.ask(id, write.into_future()).await;
        let said = Said::of(&asked.output);
        let etag = asked.output.as_ref().ok().map(|()| stored.etag().clone());
        self.note(
            Call { id, verb, is_once },
            said,
            (effect, true),
            etag,
            &asked,
        );
        self.stored = Some(stored);
    }

    async fn delete(
        &mut self,
        verb: &'static str,
        delete: DeleteEntity,
        is_conditional: bool,
        is_once: bool,
    ) {
        let id = self.world.next_id();
        let delete = if is_once {
            delete.exactly_once()
        } else {
            delete
        };
        let asked = self.world.ask(id, delete.into_future()).await;
        let said = Said::of_delete(&asked.output);
        let effect = (Effect::Delete, is_conditional);
        self.note(Call { id, verb, is_once }, said, effect, None, &asked);
    }

    async fn modify(&mut self, table: &TableClient, is_once: bool) {
        let id = self.world.next_id();
        let token = token(id);
        let modify = table.modify(Row::key(self.partition, self.row), move |row: &mut Row| {
            (row.token, row.a, row.b) = (token, Some(token), None);
            Ok(())
        });
        let modify = if is_once {
            modify.exactly_once()
        } else {
            modify
        };
        let asked = self.world.ask(id, modify.into_future()).await;
        let said = Said::of(&asked.output);
        let etag = asked.output.as_ref().ok().map(|it| it.etag().clone());
        self.note(
            Call {
                id,
                verb: "modify",
                is_once,
            },
            said,
            (Effect::Replace, true),
            etag,
            &asked,
        );
        if let Ok(stored) = asked.output {
            self.stored = Some(stored);
        }
    }

    async fn patch(&mut self, table: &TableClient) {
        let id = self.world.next_id();
        let token = token(id);
        let patch = table.patch(Row::key(self.partition, self.row));
        let patch = patch.set(|it| it.token, token).set(|it| it.b, token);
        let asked = self.world.ask(id, patch.into_future()).await;
        let said = Said::of(&asked.output);
        let etag = asked.output.as_ref().ok().cloned();
        self.note(
            Call {
                id,
                verb: "patch",
                is_once: false,
            },
            said,
            (Effect::Merge, false),
            etag,
            &asked,
        );
    }

    async fn get(&mut self, table: &TableClient) {
        let id = self.world.next_id();
        let get = table.get(Row::key(self.partition, self.row));
        let asked = self.world.ask(id, get.into_future()).await;
        let said = match &asked.output {
            Ok(found) => Said::Saw(found.as_ref().map(|it| it.token)),
            Err(_) => Said::Unread,
        };
        self.note(
            Call {
                id,
                verb: "get",
                is_once: false,
            },
            said,
            (Effect::Delete, true),
            None,
            &asked,
        );
        if let Ok(found) = asked.output {
            self.stored = found;
        }
    }
}
