//! Queries of entities that do not change, alone and while other entities are inserted and deleted: no entity is lost, and none
//! comes twice.

use std::fmt::Debug;

use fastrand::Rng;
use futures::{TryStreamExt as _, stream};
use tablesdk::{Error, Stored};

use crate::entity::Row;
use crate::judge::token;
use crate::ledger::{Finding, Said};
use crate::rows::TABLE;
use crate::world::{Asked, World};

/// So many entities never change.
const STABLE: usize = 300;
/// Of so many, every other one comes and goes.
const CHANGING: usize = 120;

/// Stores what is read.
pub(crate) async fn prepare(world: &World) {
    let table = world.direct.table(TABLE);
    let stable = (0..STABLE).map(|index| Row::whole("stable", &name(index), number(index)));
    let changing = (0..CHANGING).map(|index| Row::whole("changing", &name(index), number(index)));
    let rows = stable.chain(changing);
    let report = table
        .bulk()
        .upsert_replace(stream::iter(rows))
        .await
        .unwrap();
    assert!(report.is_success());
}

fn name(index: usize) -> String {
    format!("{index:04}")
}

fn number(index: usize) -> i64 {
    token(u64::try_from(index).unwrap())
}

/// Enters a read, and what is wrong with its result.
async fn enter<T: Debug>(
    world: &World,
    verb: &'static str,
    id: u64,
    asked: &Asked<Result<T, Error>>,
    wrong: Option<String>,
) {
    world.ledger.count(verb, &Said::of_read(&asked.output));
    let record = world.registry.settle(id).await;
    let lie = wrong.map(|wrong| Finding::Lie(format!("{verb} {id}: {wrong}")));
    let findings = lie.into_iter().collect();
    world
        .ledger
        .enter(findings, || record.show(world.ledger.origin()));
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

/// Follows a stream, page by page.
async fn follow(
    world: &World,
    partition: &str,
    rng: &mut Rng,
) -> (u64, Asked<Result<(), Error>>, Vec<Stored<Row>>) {
    let id = world.next_id();
    let mut query = world.table(rng, TABLE).query::<Row>().partition(partition);
    query = query.page_size(rng.usize(10..STABLE));
    if rng.bool() {
        query = query.prefetch();
    }
    let mut found = Vec::new();
    let mut rows = query.stream();
    let asked = world
        .ask(id, async {
            while let Some(row) = rows.try_next().await? {
                found.push(row);
            }
            Ok(())
        })
        .await;
    (id, asked, found)
}

async fn stable(world: &World, rng: &mut Rng) {
    let (id, asked, found) = follow(world, "stable", rng).await;
    let wrong = wrong_of_stable(&asked.output, &found);
    enter(world, "query of what does not change", id, &asked, wrong).await;
}

/// Follows page tokens. A page that fails is read again.
async fn pages(world: &World, rng: &mut Rng) {
    let id = world.next_id();
    let table = world.table(rng, TABLE);
    let size = rng.usize(20..150);
    let mut found = Vec::new();
    let asked = world
        .ask(id, async {
            let mut token = None;
            let mut failures = 0;
            loop {
                let query = table.query::<Row>().partition("stable").page_size(size);
                match query.page(token.clone()).await {
                    Ok(page) => {
                        found.extend(page.items);
                        token = page.next;
                        if token.is_none() {
                            return Ok(());
                        }
                    }
                    Err(error) if failures == 3 => return Err(error),
                    Err(_) => failures += 1,
                }
            }
        })
        .await;
    let wrong = wrong_of_stable(&asked.output, &found);
    enter(world, "pages", id, &asked, wrong).await;
}

/// What was found begins with what is there, and is all of it where the read succeeded.
fn wrong_of_stable(output: &Result<(), Error>, found: &[Stored<Row>]) -> Option<String> {
    let is_right =
        |(index, row): (usize, &Stored<Row>)| row.row == name(index) && row.token == number(index);
    let is_prefix = found.iter().enumerate().all(is_right);
    let is_complete = output.is_err() || found.len() == STABLE;
    (!is_prefix || !is_complete).then(|| shown(found))
}

async fn changing(world: &World, rng: &mut Rng) {
    let (id, asked, found) = follow(world, "changing", rng).await;
    let is_ascending = found.is_sorted_by(|one, two| one.row < two.row);
    let end = match (&asked.output, found.last()) {
        (Ok(()), _) => CHANGING,
        (Err(_), Some(last)) => last.row.parse().unwrap(),
        (Err(_), None) => 0,
    };
    let is_there = |index: usize| found.iter().any(|row| row.row == name(index));
    let is_complete = (0..end).step_by(2).all(is_there);
    let wrong = (!is_ascending || !is_complete).then(|| shown(&found));
    enter(world, "query of what changes", id, &asked, wrong).await;
}

fn shown(rows: &[Stored<Row>]) -> String {
    let names: Vec<_> = rows.iter().map(|row| row.row.as_str()).collect();
    format!("{} entities: {names:?}", rows.len())
}

async fn count(world: &World, rng: &mut Rng) {
    let id = world.next_id();
    let table = world.table(rng, TABLE);
    let query = table.query::<Row>().partition("stable").page_size(100);
    let asked = world.ask(id, query.count()).await;
    let wrong = match &asked.output {
        Ok(count) if *count != STABLE => Some(format!("{count} are counted")),
        _ => None,
    };
    enter(world, "count of a query", id, &asked, wrong).await;
}

async fn many(world: &World, rng: &mut Rng) {
    let id = world.next_id();
    let indexes: Vec<_> = (0..rng.usize(2..12))
        .map(|_| rng.usize(..STABLE + 20))
        .collect();
    let keys = indexes.iter().map(|index| Row::key("stable", name(*index)));
    let get = world.table(rng, TABLE).get_many(keys).concurrency(3);
    let asked = world.ask(id, get.into_future()).await;
    let is_right = |(index, found): (&usize, &Option<Stored<Row>>)| match found {
        Some(row) => row.token == number(*index),
        None => *index >= STABLE,
    };
    let wrong = match &asked.output {
        Ok(found) if !indexes.iter().zip(found).all(is_right) => {
            Some(format!("{indexes:?}: {found:?}"))
        }
        _ => None,
    };
    enter(world, "get_many", id, &asked, wrong).await;
}

/// Lets entities come and go.
async fn change(world: &World, rng: &mut Rng) {
    let id = world.next_id();
    let index = rng.usize(..CHANGING / 2) * 2 + 1;
    let table = world.table(rng, TABLE);
    let deletes = rng.bool();
    let asked = world
        .ask(id, async {
            if deletes {
                table
                    .delete(Row::key("changing", name(index)))
                    .await
                    .map(drop)
            } else {
                let row = Row::whole("changing", &name(index), token(id));
                table.upsert_replace(&row).await.map(drop)
            }
        })
        .await;
    world
        .ledger
        .count("change beside a query", &Said::of(&asked.output));
    world.registry.settle(id).await;
}
