//! Batches of changes of entities that one worker owns: all changes happen, or none.

use fastrand::Rng;
use tablesdk::{ETag, Stored, TableClient};

use crate::entity::{Row, snapshot};
use crate::judge::{Effect, Step, Target, token};
use crate::ledger::Said;
use crate::rows::{Call, TABLE, settle_and_judge, step};
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
        .map(|(row, stored)| (row.clone(), stored.as_ref().map(snapshot)))
        .collect();
    let mut steps = Vec::new();
    for _ in 0..[1, 1, 2][rng.usize(..3)] {
        let table = world.table(rng, TABLE);
        steps.push(commit(world, &table, partition, &mut rows, rng).await);
    }
    settle_and_judge::<Row>(world, &direct, partition, before, steps).await;
}

async fn commit(
    world: &World,
    table: &TableClient,
    partition: &str,
    rows: &mut [(String, Option<Stored<Row>>)],
    rng: &mut Rng,
) -> Step {
    let id = world.next_id();
    let token = token(id);
    let is_once = rng.bool();
    let mut targets = Vec::new();
    let mut batch = table.batch(partition);
    for (row, stored) in rows {
        let whole = Row::whole(partition, row, token);
        let part = Row::part(partition, row, token);
        let effect;
        let mut is_conditional = false;
        (batch, effect) = match (rng.u8(..7), stored) {
            (0, _) => (batch.upsert_replace(&whole), Effect::Replace),
            (1, _) => (batch.upsert_merge(&part), Effect::Merge),
            (_, None) => (batch.insert(&whole), Effect::Replace),
            (2, Some(_)) => (batch.replace_if(&whole, ETag::ANY), Effect::Replace),
            (3, Some(_)) => {
                let key = Row::key(partition, row.as_str());
                (batch.delete(key), Effect::Delete)
            }
            (4, Some(stored)) => {
                is_conditional = true;
                (batch.delete_stored(stored), Effect::Delete)
            }
            (5, Some(stored)) => {
                is_conditional = true;
                **stored = part;
                (batch.merge(stored), Effect::Merge)
            }
            (_, Some(stored)) => {
                is_conditional = true;
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
    if is_once {
        batch = batch.exactly_once();
    }
    // One change with a condition makes all of them conditional.
    let is_conditional = targets.iter().any(|target| target.is_conditional);
    let asked = world.ask(id, batch.into_future()).await;
    if let Ok(result) = &asked.output {
        for (target, etag) in targets.iter_mut().zip(result.etags()) {
            target.etag.clone_from(etag);
        }
    }
    for target in &mut targets {
        target.is_conditional = is_conditional;
    }
    let call = Call {
        id,
        verb: "batch",
        is_once,
    };
    let said = Said::of(&asked.output);
    Step {
        in_batches: true,
        ..step(call, said, targets, &asked)
    }
}
