//! Sequences of operations on entities with entries in other partitions, and on encrypted ones.

use std::collections::BTreeMap;

use fastrand::Rng;
use futures::TryStreamExt as _;
use tablesdk::{DynamicEntity, ErrorKind, Stored, TableClient};

use crate::entity::{ByTown, Numbered, Person, Secret};
use crate::judge::{Effect, Snapshots, Step, Target, token};
use crate::ledger::{ENTRY_MISSING, Finding, Said};
use crate::network::Network;
use crate::rows::{Call, settle_and_judge, show, step};
use crate::world::World;

/// A few operations on an entity with entries in other partitions, which are followed at the end.
pub(crate) async fn people(world: &World, rng: &mut Rng) {
    let partition = format!("p{}", world.next_id());
    let mut steps = Vec::new();
    let mut stored = None;
    for _ in 0..rng.usize(1..=4) {
        let table = world.table(rng, Person::TABLE);
        steps.push(operate::<Person>(world, &table, (&partition, "1"), &mut stored, rng).await);
    }
    let direct = world.direct.table(Person::TABLE);
    let before = [("1".to_owned(), None)].into();
    let steps = settle_and_judge::<Person>(world, &direct, &partition, before, steps).await;
    let person = direct
        .get(Person::key(partition.as_str(), "1"))
        .await
        .unwrap();
    let mut findings = Vec::new();
    for number in 0..2 {
        let town = Person::town(&partition, number);
        let entries = direct
            .query::<ByTown>()
            .partition(ByTown::partition(town.as_str()));
        let found: Vec<_> = entries.follow().collect().await.unwrap();
        let found: Vec<_> = found.iter().map(|found| found.token).collect();
        let lives_there = person.as_ref().filter(|person| person.town == town);
        let expected: Vec<_> = lives_there.iter().map(|person| person.token).collect();
        if found == expected {
            continue;
        }
        let is_missing = found.is_empty() && steps.iter().any(may_lose_entries);
        findings.push(if is_missing {
            Finding::Limit(ENTRY_MISSING)
        } else {
            Finding::Lie(format!("in {town} are {found:?} instead of {expected:?}"))
        });
    }
    // The guide: of `exactly_once`, the second response is a success, as the first one was.
    let first = steps
        .first()
        .filter(|first| first.is_once && world.network == Network::Doubled);
    if first.is_some_and(|first| first.said == Said::Refused && first.record.is_answered()) {
        let text = "an insert of a new entity failed, although it is exactly once";
        findings.push(Finding::Lie(text.to_owned()));
    }
    world.ledger.enter(findings, || {
        let steps = steps.iter().map(|step| show(world, step));
        format!("{}  after: {person:?}\n", steps.collect::<String>())
    });
}

/// What becomes of all of them in the end: those that have expired are removed, and a repair mends all entries.
pub(crate) async fn end_of_people(world: &World) {
    let later = world.later.table(Person::TABLE);
    let removed = later.clean_up_expired::<Person>().await.unwrap();
    later.repair::<Person>().await.unwrap();
    // An entity that a late copy of a request has inserted has no entry of its bucket until the repair.
    later.clean_up_expired::<Person>().await.unwrap();
    let again = later.repair::<Person>().dry_run().await.unwrap();
    let rows = later.query::<DynamicEntity>().values().stream();
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    let tokens = rows
        .iter()
        .filter(|row| row.partition_key().starts_with('p'));
    let tokens = tokens.map(|row| row.properties().read::<i64>("Token").unwrap());
    let left: Vec<_> = tokens
        .filter(|token| Person::is_short_lived(*token))
        .collect();
    let lie = || Finding::Lie("after the removal of what has expired, and a repair".to_owned());
    let is_wrong = !again.is_right() || !left.is_empty() || !removed.unreadable.is_empty();
    world
        .ledger
        .enter(is_wrong.then(lie).into_iter().collect(), || {
            format!("  {removed:?}\n  {again:?}\n  expired: {left:?}\n")
        });
}

/// A few operations on encrypted entities, which are then found by a filter, page by page, by several clients.
pub(crate) async fn secrets(world: &World, rng: &mut Rng) {
    let sealed = &world.sealed;
    let partition = format!("s{}", world.next_id());
    let rows: Vec<_> = (0..rng.usize(1..=5)).map(|row| row.to_string()).collect();
    let before: Snapshots = rows.iter().map(|row| (row.clone(), None)).collect();
    let mut stored = BTreeMap::<&str, Option<Stored<Secret>>>::new();
    let mut steps = Vec::new();
    for round in 0..rows.len() * rng.usize(1..=2) {
        let row = rows[round % rows.len()].as_str();
        let known = stored.entry(row).or_default();
        let _open = sealed.gate.read().await;
        let table = sealed.table(rng);
        steps.push(operate::<Secret>(world, table, (&partition, row), known, rng).await);
    }
    settle_and_judge::<Secret>(world, &sealed.direct, &partition, before, steps).await;

    let all = sealed
        .direct
        .query::<Secret>()
        .partition(partition.as_str());
    let expected: Vec<_> = all.collect().await.unwrap();
    let expected: Vec<_> = expected.iter().map(|secret| secret.token).collect();
    let mut found = Vec::new();
    let mut next = None;
    let mut failures = 0;
    let lie = loop {
        let page = {
            let _open = sealed.gate.read().await;
            let query = sealed
                .table(rng)
                .query::<Secret>()
                .partition(partition.as_str());
            let query = query.filter(|secret| secret.owner.eq(partition.as_str()));
            let id = world.next_id();
            let page = world
                .ask(id, query.page_size(2).page(next.clone()))
                .await
                .output;
            world.registry.settle(id).await;
            page
        };
        world
            .ledger
            .count("page of an encrypted filter", &Said::of_read(&page));
        match page {
            Ok(page) => {
                found.extend(page.items.iter().map(|secret| secret.token));
                next = page.next;
                if next.is_none() {
                    break (found != expected)
                        .then(|| format!("{found:?} were found instead of {expected:?}"));
                }
            }
            Err(error) if error.kind() == ErrorKind::Input => break Some(error.to_string()),
            Err(_) if failures == 5 => break None,
            Err(_) => failures += 1,
        }
    };
    let lie = lie.map(|lie| Finding::Lie(format!("pages of {partition}: {lie}")));
    world.ledger.enter(lie.into_iter().collect(), String::new);
}

/// One operation on an entity. `stored` is the newest version that the client was given.
async fn operate<E: Numbered>(
    world: &World,
    table: &TableClient,
    (partition, row): (&str, &str),
    stored: &mut Option<Stored<E>>,
    rng: &mut Rng,
) -> Step {
    let id = world.next_id();
    let is_once = rng.u8(..3) == 0;
    let whole = E::whole(partition, row, token(id));
    let mut target = Target {
        row: row.to_owned(),
        effect: Effect::Replace,
        is_conditional: true,
        etag: None,
    };
    let call = |verb| Call { id, verb, is_once };
    let mut step = match (rng.u8(..7), stored.as_mut()) {
        (0..=1, Some(known)) => {
            **known = whole;
            let replace = table.replace(known);
            let replace = if is_once {
                replace.exactly_once()
            } else {
                replace
            };
            let asked = world.ask(id, replace.into_future()).await;
            if asked.output.is_ok() {
                target.etag = Some(known.etag().clone());
            }
            step(
                call("replace"),
                Said::of(&asked.output),
                vec![target],
                &asked,
            )
        }
        (2, Some(known)) => {
            target.effect = Effect::Delete;
            let delete = table.delete_stored(known);
            let delete = if is_once {
                delete.exactly_once()
            } else {
                delete
            };
            let asked = world.ask(id, delete.into_future()).await;
            let said = Said::of_delete(&asked.output);
            step(call("delete_stored"), said, vec![target], &asked)
        }
        (3..=4, Some(_)) => {
            let modify = table.modify(E::at(partition, row), move |it: &mut E| {
                *it = whole.clone();
                Ok(())
            });
            let modify = if is_once {
                modify.exactly_once()
            } else {
                modify
            };
            let asked = world.ask(id, modify.into_future()).await;
            if let Ok(modified) = &asked.output {
                target.etag = Some(modified.etag().clone());
                *stored = Some(modified.clone().into_stored());
            }
            step(
                call("modify"),
                Said::of(&asked.output),
                vec![target],
                &asked,
            )
        }
        (5, Some(_)) => {
            target.effect = Effect::Delete;
            let get = table.get(E::at(partition, row));
            let asked = world.ask(id, get.into_future()).await;
            let said = match &asked.output {
                Ok(found) => Said::Saw(found.as_ref().map(|found| found.numbers().0)),
                Err(_) => Said::Unread,
            };
            if let Ok(found) = &asked.output {
                stored.clone_from(found);
            }
            step(call("get"), said, vec![target], &asked)
        }
        _ => {
            target.is_conditional = false;
            let insert = table.insert(&whole);
            let insert = if is_once {
                insert.exactly_once()
            } else {
                insert
            };
            let asked = world.ask(id, insert.into_future()).await;
            if let Ok(inserted) = &asked.output {
                target.etag = Some(inserted.etag().clone());
                *stored = Some(inserted.clone());
            }
            step(
                call("insert"),
                Said::of(&asked.output),
                vec![target],
                &asked,
            )
        }
    };
    step.verb = format!("{}: {}", E::TABLE, step.verb);
    step
}

/// The guide names two cases in which an entity is stored without its entry: the client could not reach the service after an insert, or
/// the network delivered a request after its operation had ended.
fn may_lose_entries(step: &Step) -> bool {
    let exchanges = step.record.exchanges.iter();
    let mut deliveries = exchanges.flat_map(|exchange| &exchange.deliveries);
    matches!(step.said, Said::Unknown { .. }) || deliveries.any(|it| it.ended > step.ended)
}
