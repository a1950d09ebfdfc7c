//! Sequences of operations on entities with entries in other partitions, and on encrypted ones.

use fastrand::Rng;
use tablesdk::{DynamicEntity, ErrorKind, TableClient};

use crate::entity::{ByTown, Numbered as _, Person, Secret};
use crate::judge::Snapshots;
use crate::ledger::{ENTRY_MISSING, Finding, Said};
use crate::network::Network;
use crate::rows::{Subject, settle_and_judge};
use crate::step::Step;
use crate::world::World;

/// A few operations on an entity with entries in other partitions, which are followed at the end.
pub(crate) async fn people(world: &World, rng: &mut Rng) {
    let partition = format!("p{}", world.next_id());
    let mut subject = Subject::<Person>::new(world, &partition, "1");
    let mut steps = Vec::new();
    for _ in 0..rng.usize(1..=4) {
        let table = world.table(rng, Person::TABLE);
        steps.push(subject.operate(&table, rng).await);
    }
    let direct = world.direct.table(Person::TABLE);
    let before = [("1".to_owned(), None)].into();
    let steps = settle_and_judge::<Person>(world, &direct, &partition, before, steps).await;
    let person = direct.get(Person::at(&partition, "1")).await.unwrap();
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
        let lie = || Finding::Lie(format!("in {town} are {found:?} instead of {expected:?}"));
        findings.push(if is_missing {
            Finding::Limit(ENTRY_MISSING)
        } else {
            lie()
        });
    }
    // The guide: of `exactly_once`, the second response is a success, as the first one was.
    let first = &steps[0];
    let is_doubled = first.is_once && world.network == Network::Doubled;
    if is_doubled && first.said == Said::Refused && first.record.is_answered() {
        findings.push(first.lie("an insert of a new entity failed, although it is exactly once"));
    }
    world.enter(findings, &steps, || format!("after: {person:?}"));
}

/// What becomes of all of them in the end: those that have expired are removed, and a repair mends all entries.
pub(crate) async fn end_of_people(world: &World) {
    let later = world.later.table(Person::TABLE);
    let removed = later.clean_up_expired::<Person>().await.unwrap();
    later.repair::<Person>().await.unwrap();
    // An entity that a late copy of a request has inserted has no entry of its bucket until the repair.
    later.clean_up_expired::<Person>().await.unwrap();
    let again = later.repair::<Person>().dry_run().await.unwrap();
    let rows = later.query::<DynamicEntity>().values().collect();
    let rows = rows.await.unwrap().into_iter();
    let people = rows.filter(|row| row.partition_key().starts_with('p'));
    let tokens = people.map(|row| row.properties().read::<i64>("Token").unwrap());
    let left: Vec<_> = tokens
        .filter(|token| Person::is_short_lived(*token))
        .collect();
    let lie = || Finding::Lie("after the removal of what has expired, and a repair".to_owned());
    let is_wrong = !again.is_right() || !left.is_empty() || !removed.unreadable.is_empty();
    world.enter(is_wrong.then(lie), [], || {
        format!("{removed:?}\n  {again:?}\n  expired: {left:?}")
    });
}

/// A few operations on encrypted entities, which are then found by a filter, page by page, by several clients.
pub(crate) async fn secrets(world: &World, rng: &mut Rng) {
    let sealed = &world.sealed;
    let partition = format!("s{}", world.next_id());
    let rows: Vec<_> = (0..rng.usize(1..=5)).map(|row| row.to_string()).collect();
    let before: Snapshots = rows.iter().map(|row| (row.clone(), None)).collect();
    let subjects = rows
        .iter()
        .map(|row| Subject::<Secret>::new(world, &partition, row));
    let mut subjects: Vec<_> = subjects.collect();
    let mut steps = Vec::new();
    for round in 0..rows.len() * rng.usize(1..=2) {
        let _open = sealed.gate.read().await;
        let subject = &mut subjects[round % rows.len()];
        steps.push(subject.operate(sealed.table(rng), rng).await);
    }
    settle_and_judge::<Secret>(world, &sealed.direct, &partition, before, steps).await;

    let all = |table: &TableClient| table.query::<Secret>().partition(partition.as_str());
    let expected = all(&sealed.direct).collect().await.unwrap();
    let expected: Vec<_> = expected.iter().map(|secret| secret.token).collect();
    let mut found = Vec::new();
    let mut next = None;
    let mut failures = 0;
    let lie = loop {
        let page = {
            let _open = sealed.gate.read().await;
            let query = all(sealed.table(rng)).filter(|it| it.owner.eq(partition.as_str()));
            let page = query.page_size(2).page(next.clone()).into_future();
            let call = world.call("page of an encrypted filter", false);
            world.run(call, Said::of_read, page).await.1
        };
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
    world.enter(lie, [], String::new);
}

/// The guide names two cases in which an entity is stored without its entry: the client could not reach the service after an insert, or
/// the network delivered a request after its operation had ended.
fn may_lose_entries(step: &Step) -> bool {
    let exchanges = step.record.exchanges.iter();
    let mut deliveries = exchanges.flat_map(|exchange| &exchange.deliveries);
    matches!(step.said, Said::Unknown { .. }) || deliveries.any(|it| it.ended > step.ended)
}
