//! Moves into another table, beside each other and beside a writer: the entity is always in one of the tables, in its newest version.

use fastrand::Rng;
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream;
use tablesdk::moves::MoveEntity;
use tablesdk::{ErrorKind, TableClient};

use crate::entity::{Numbered as _, Row};
use crate::ledger::{Finding, MOVED_HALFWAY, Said};
use crate::record::Record;
use crate::rows::TABLE;
use crate::step::{Step, token, when};
use crate::world::World;

/// Where the entities are moved.
pub(crate) const ARCHIVE: &str = "Archive";

/// A move, or a modification.
struct Ended {
    step: Step,
    /// The version that it moved or made.
    version: Option<i64>,
    is_move: bool,
    /// It succeeded, or the service has refused it.
    is_certain: bool,
}

/// Some moves and modifications of an entity, one after the other or at the same time.
pub(crate) async fn run(world: &World, rng: &mut Rng) {
    let partition = format!("m{}", world.next_id());
    let [table, archive] = [TABLE, ARCHIVE].map(|name| world.direct.table(name));
    let first = Row {
        a: Some(0),
        ..Row::whole(&partition, "1", 0)
    };
    // Its outcome is known also while the server is killed.
    table.upsert_replace(&first).await.unwrap();
    let mut actions = Vec::<BoxFuture<'_, Option<Ended>>>::new();
    for _ in 0..rng.usize(1..=4) {
        let rng = rng.fork();
        actions.push(match actions.len() {
            1 => modify(world, &partition, rng).boxed(),
            _ => move_one(world, &partition, rng).boxed(),
        });
    }
    let at_once = if rng.bool() { actions.len() } else { 1 };
    let ended = stream::iter(actions).buffered(at_once).collect::<Vec<_>>();
    let mut ended: Vec<_> = ended.await.into_iter().flatten().collect();
    for Ended { step, .. } in &mut ended {
        world.settle(step).await;
    }
    let stored = async |table: &TableClient| table.get(Row::at(&partition, "1")).await.unwrap();
    let (here, there) = (stored(&table).await, stored(&archive).await);
    let found = [&here, &there].map(|row| row.as_ref().and_then(|row| row.a));
    let mut findings = judge(&ended, found);
    if let Some(here) = here {
        let again = table.move_to(&archive, here);
        let is_other = found[1].is_some() && found[1] != found[0];
        let again = when(is_other, again, MoveEntity::overwrite).await;
        let again = again.map(|moved| moved.a);
        if !matches!(again, Ok(version) if version == found[0]) {
            findings.push(Finding::Lie(format!("another move gave {again:?}")));
        }
    }
    world.enter(findings, ended.iter().map(|ended| &ended.step), || {
        let versions: Vec<_> = ended.iter().map(|ended| ended.version).collect();
        format!("partition {partition}: {found:?}, of versions {versions:?}")
    });
}

/// Compares what was said with the versions in both tables.
fn judge(ended: &[Ended], [here, there]: [Option<i64>; 2]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lie = |text: &str| Finding::Lie(text.to_owned());
    let newest = here.max(there);
    if newest.is_none() {
        findings.push(lie("the entity is in neither table"));
    }
    let done = ended.iter().filter(|ended| ended.step.said == Said::Done);
    for Ended {
        step,
        version,
        is_move,
        ..
    } in done
    {
        if *version > newest {
            findings.push(step.lie(&format!("version {version:?} is lost")));
        }
        if *is_move && (here == *version || there < *version) {
            findings.push(step.lie(&format!("version {version:?} is said to be moved")));
        }
    }
    if here.is_some() && there.is_some() {
        let mut moves = ended.iter().filter(|ended| ended.is_move);
        // A move whose insert came twice does not know that the copy is its own.
        let is_broken_off = |it: &Ended| {
            let record = &it.step.record;
            !it.is_certain || !record.is_answered() || record.is_duplicated() || keeps_copy(record)
        };
        findings.push(if there > here {
            lie("the archive has a newer version")
        } else if moves.any(is_broken_off) {
            Finding::Limit(MOVED_HALFWAY)
        } else {
            lie("the entity stays in both tables")
        });
    }
    findings
}

/// Whether a copy was written, and no request to remove it arrived: it met a connection that was closed.
fn keeps_copy(record: &Record) -> bool {
    let of_archive = |verb: &str| {
        let mut exchanges = record.exchanges.iter();
        exchanges.any(|it| it.method == verb && it.target.contains(ARCHIVE))
    };
    of_archive("POST") && !of_archive("DELETE")
}

async fn move_one(world: &World, partition: &str, mut rng: Rng) -> Option<Ended> {
    let found = world.direct.table(TABLE).get(Row::key(partition, "1"));
    let found = found.await.unwrap()?;
    let version = found.a;
    let client = world.client(&mut rng);
    let move_to = client.table(TABLE).move_to(&client.table(ARCHIVE), found);
    let call = world.call("move_to", false);
    let (step, output) = world
        .ask(call, Said::of_reader, move_to.into_future())
        .await;
    let error = output.as_ref().err();
    Some(Ended {
        step,
        version,
        is_move: true,
        is_certain: error.is_none_or(|error| error.kind() == ErrorKind::Service),
    })
}

async fn modify(world: &World, partition: &str, mut rng: Rng) -> Option<Ended> {
    let call = world.call("modify beside moves", false);
    let token = token(call.id);
    let table = world.table(&mut rng, TABLE);
    let modify = table.modify(Row::key(partition, "1"), move |row| {
        row.token = token;
        row.a = row.a.map(|version| version + 1);
        Ok(())
    });
    let (step, output) = world.ask(call, Said::of_reader, modify.into_future()).await;
    Some(Ended {
        step,
        version: output.ok().and_then(|row| row.a),
        is_move: false,
        is_certain: true,
    })
}
