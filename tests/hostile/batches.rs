//! Batches of changes of entities that one worker owns: all changes happen, or none.

use fastrand::Rng;
use harness::written::Row;
use tablesdk::action::{Batch, BatchResult};
use tablesdk::{ETag, Stored, TableClient};

use crate::judge::Snapshot;
use crate::ledger::Said;
use crate::rows::{TABLE, settle_and_judge};
use crate::step::{Effect, Step, Target, token, when};
use crate::world::World;

/// Entities that a worker has for batches.
const ROWS: usize = 8;

/// One batch, or two that follow on each other, of a few entities.
pub(crate) async fn sequence(world: &World, partition: &str, rng: &mut Rng) {
    let direct = world.direct.table(TABLE);
    let mut rows = Vec::new();
    let first = rng.usize(..ROWS);
    for index in 0..rng.usize(1..=5) {
        let row = format!("b{}", (first + index) % ROWS);
        let stored = direct.get(Row::key(partition, row.as_str())).await.unwrap();
        rows.push((row, stored));
    }
    let before = rows
        .iter()
        .map(|(row, stored)| (row.clone(), stored.as_ref().map(Snapshot::of)))
        .collect();
    let mut steps = Vec::new();
    for _ in 0..[1, 1, 2][rng.usize(..3)] {
        let table = world.table(rng, TABLE);
        steps.push(commit(world, &table, partition, &mut rows, rng).await);
    }
    settle_and_judge(world, partition, &before, steps).await;
}

async fn commit(
    world: &World,
    table: &TableClient,
    partition: &str,
    rows: &mut [(String, Option<Stored<Row>>)],
    rng: &mut Rng,
) -> Step {
    let call = world.call("batch", rng.bool());
    let token = token(call.id);
    let mut targets = Vec::new();
    let mut batch = table.batch(partition);
    for (row, stored) in rows {
        let whole = Row::whole(partition, row, token);
        let part = Row::part(partition, row, token);
        let which = rng.u8(..7);
        let is_conditional = which >= 4 && stored.is_some();
        let effect;
        (batch, effect) = match (which, stored) {
            (0, _) => (batch.upsert_replace(&whole), Effect::Replace),
            (1, _) => (batch.upsert_merge(&part), Effect::Merge),
            (_, None) => (batch.insert(&whole), Effect::Replace),
            (2, Some(_)) => (batch.replace_if(&whole, ETag::ANY), Effect::Replace),
            (3, Some(_)) => {
                let key = Row::key(partition, row.as_str());
                (batch.delete(key), Effect::Delete)
            }
            (4, Some(stored)) => (batch.delete_stored(stored), Effect::Delete),
            (5, Some(stored)) => {
                **stored = part;
                (batch.merge(stored), Effect::Merge)
            }
            (_, Some(stored)) => {
                **stored = whole;
                (batch.replace(stored), Effect::Replace)
            }
        };
        targets.push(Target {
            row: row.clone(),
            effect,
            is_conditional,
            etag: None,
        });
    }
    let batch = when(call.is_once, batch, Batch::exactly_once);
    let (step, output) = world.ask(call, Said::of, batch).await;
    let etags = output.iter().flat_map(BatchResult::etags);
    for (target, etag) in targets.iter_mut().zip(etags) {
        target.etag.clone_from(etag);
    }
    // One change with a condition makes all of them conditional.
    let is_conditional = targets.iter().any(|target| target.is_conditional);
    for target in &mut targets {
        target.is_conditional = is_conditional;
    }
    Step {
        in_batches: true,
        targets,
        ..step
    }
}
