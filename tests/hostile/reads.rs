//! Queries of entities that do not change, alone and while other entities are inserted and deleted:
//! no entity is lost, and none comes twice.

use fastrand::Rng;
use futures::{TryStreamExt as _, stream};
use harness::written::Row;
use tablesdk::action::QueryEntities;
use tablesdk::{Error, Stored};

use crate::ledger::Said;
use crate::rows::TABLE;
use crate::step::{Step, token, when};
use crate::world::World;

/// So many entities never change.
const STABLE: usize = 300;
/// The number of entities of which every other one comes and goes.
const CHANGING: usize = 120;

/// Stores what is read.
pub(crate) async fn prepare(world: &World) {
    let table = world.direct.table(TABLE);
    let stable = (0..STABLE).map(|index| Row::whole("stable", &name(index), number(index)));
    let changing = (0..CHANGING).map(|index| Row::whole("changing", &name(index), number(index)));
    let rows = stable.chain(changing);
    let stored = table.bulk().upsert_replace(stream::iter(rows));
    assert!(stored.await.unwrap().is_success());
}

fn name(index: usize) -> String {
    format!("{index:04}")
}

fn number(index: usize) -> i64 {
    token(u64::try_from(index).unwrap())
}

/// One read, of one kind or another.
pub(crate) async fn read(world: &World, rng: &mut Rng) {
    match rng.u8(..9) {
        0..=2 => stable(world, rng).await,
        8 => pages(world, rng).await,
        3..=4 => changing(world, rng).await,
        5 => count(world, rng).await,
        6 => many(world, rng).await,
        _ => change(world, rng).await,
    }
}

/// The entities that a read has found until its end, and how it ended.
type Found = (Vec<Stored<Row>>, Result<(), Error>);

fn said((_, output): &Found) -> Said {
    Said::of_read(output)
}

/// Enters a read, and what is wrong with its result.
fn enter(world: &World, step: &Step, wrong: Option<String>) {
    let lie = wrong.map(|wrong| step.lie(&wrong));
    world.enter(lie, [step], String::new);
}

/// Follows a stream, page by page.
async fn follow(world: &World, partition: &str, rng: &mut Rng) -> Found {
    let query = world.table(rng, TABLE).query::<Row>().partition(partition);
    let query = query.page_size(rng.usize(10..STABLE));
    let mut rows = when(rng.bool(), query, QueryEntities::prefetch).stream();
    let mut found = Vec::new();
    loop {
        match rows.try_next().await {
            Ok(Some(row)) => found.push(row),
            Ok(None) => return (found, Ok(())),
            Err(error) => return (found, Err(error)),
        }
    }
}

async fn stable(world: &World, rng: &mut Rng) {
    let call = world.call("query of what does not change", false);
    let (step, found) = world.run(call, said, follow(world, "stable", rng)).await;
    enter(world, &step, wrong_of_stable(&found));
}

/// Follows page tokens. A page that fails is read again.
async fn pages(world: &World, rng: &mut Rng) {
    let table = world.table(rng, TABLE);
    let size = rng.usize(20..150);
    let read = async {
        let (mut found, mut token, mut failures) = (Vec::new(), None, 0);
        loop {
            let query = table.query::<Row>().partition("stable").page_size(size);
            match query.page(token.clone()).await {
                Ok(page) => {
                    found.extend(page.items);
                    token = page.next;
                    if token.is_none() {
                        return (found, Ok(()));
                    }
                }
                Err(error) if failures == 3 => return (found, Err(error)),
                Err(_) => failures += 1,
            }
        }
    };
    let (step, found) = world.run(world.call("pages", false), said, read).await;
    enter(world, &step, wrong_of_stable(&found));
}

/// Checks that a read found the first of the stable entities, and all of them if it succeeded.
fn wrong_of_stable((found, output): &Found) -> Option<String> {
    let is_right =
        |(index, row): (usize, &Stored<Row>)| row.row == name(index) && row.token == number(index);
    let is_prefix = found.iter().enumerate().all(is_right);
    let is_complete = output.is_err() || found.len() == STABLE;
    (!is_prefix || !is_complete).then(|| shown(found))
}

async fn changing(world: &World, rng: &mut Rng) {
    let call = world.call("query of what changes", false);
    let (step, (found, output)) = world.run(call, said, follow(world, "changing", rng)).await;
    let is_ascending = found.is_sorted_by(|one, two| one.row < two.row);
    let end = match (output, found.last()) {
        (Ok(()), _) => CHANGING,
        (Err(_), Some(last)) => last.row.parse().unwrap(),
        (Err(_), None) => 0,
    };
    let is_there = |index: usize| found.iter().any(|row| row.row == name(index));
    let is_complete = (0..end).step_by(2).all(is_there);
    enter(
        world,
        &step,
        (!is_ascending || !is_complete).then(|| shown(&found)),
    );
}

fn shown(rows: &[Stored<Row>]) -> String {
    let names: Vec<_> = rows.iter().map(|row| row.row.as_str()).collect();
    format!("{} entities: {names:?}", rows.len())
}

async fn count(world: &World, rng: &mut Rng) {
    let query = world.table(rng, TABLE).query::<Row>().partition("stable");
    let count = query.page_size(100).count();
    let call = world.call("count of a query", false);
    let (step, count) = world.run(call, Said::of_read, count).await;
    let count = count.ok().filter(|count| *count != STABLE);
    enter(
        world,
        &step,
        count.map(|count| format!("{count} are counted")),
    );
}

async fn many(world: &World, rng: &mut Rng) {
    let indexes = (0..rng.usize(2..12)).map(|_| rng.usize(..STABLE + 20));
    let indexes: Vec<_> = indexes.collect();
    let keys = indexes.iter().map(|index| Row::key("stable", name(*index)));
    let get = world.table(rng, TABLE).get_many(keys).concurrency(3);
    let call = world.call("get_many", false);
    let (step, found) = world.run(call, Said::of_read, get).await;
    let is_right = |(index, found): (&usize, &Option<Stored<Row>>)| match found {
        Some(row) => row.token == number(*index),
        None => *index >= STABLE,
    };
    let wrong = found
        .ok()
        .filter(|found| !indexes.iter().zip(found).all(is_right));
    enter(
        world,
        &step,
        wrong.map(|found| format!("{indexes:?}: {found:?}")),
    );
}

/// Lets entities come and go.
async fn change(world: &World, rng: &mut Rng) {
    let call = world.call("change beside a query", false);
    let name = name(rng.usize(..CHANGING / 2) * 2 + 1);
    let row = Row::whole("changing", &name, token(call.id));
    let table = world.table(rng, TABLE);
    let deletes = rng.bool();
    let change = async {
        if deletes {
            table.delete(Row::key("changing", name)).await.map(drop)
        } else {
            table.upsert_replace(&row).await.map(drop)
        }
    };
    let _ = world.run(call, Said::of, change).await;
}
