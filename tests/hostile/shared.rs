//! Entities that all workers write at the same time: counters, and races for the first insert.

use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use tablesdk::TableEntity;

use crate::entity::Row;
use crate::judge::{judge_copies, judge_count, token};
use crate::ledger::{DUPLICATE_REFUSED, Finding, Said};
use crate::network::Network;
use crate::rows::TABLE;
use crate::world::World;

/// A counter with the operations that it counted.
#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Counter {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    count: i64,
    /// The numbers of the operations, each followed by a comma.
    log: String,
}

/// The entities of the moment: after some operations, others take their places.
#[derive(Default)]
pub(crate) struct Shared {
    modified: AtomicU64,
    raced: AtomicU64,
}

impl Shared {
    /// Adds one to a counter.
    pub(crate) async fn count(&self, world: &World, rng: &mut Rng) {
        let number = self.modified.fetch_add(1, Ordering::Relaxed);
        let row = format!("{}-{}", number / 60, rng.u8(..3));
        let direct = world.direct.table(TABLE);
        let new = Counter {
            partition: COUNTERS.to_owned(),
            row: row.clone(),
            count: 0,
            log: String::new(),
        };
        match direct.insert(&new).await {
            Ok(_) => {}
            Err(error) if error.is_conflict() || error.is_outcome_unknown() => {}
            Err(error) => panic!("{error:?}"),
        }

        let id = world.next_id();
        let is_once = rng.bool();
        let is_transaction = rng.u8(..3) == 0;
        let table = world.table(rng, TABLE);
        let key = || Counter::key(COUNTERS, row.as_str());
        let add = |it: &mut Counter| {
            it.count += 1;
            it.log += &format!("{id},");
        };
        let modify = table.modify(key(), |it| {
            add(it);
            Ok(())
        });
        let transaction = table.transaction(COUNTERS, async |tx| {
            let mut counter = tx.get(key()).await?.ok_or("no test deletes counters")?;
            add(&mut counter);
            tx.replace(counter);
            Ok(())
        });
        let count = async {
            match (is_transaction, is_once) {
                (true, true) => transaction.exactly_once().await,
                (true, false) => transaction.await,
                (false, true) => modify.exactly_once().await.map(drop),
                (false, false) => modify.await.map(drop),
            }
        };
        let asked = world.ask(id, count).await;
        let said = Said::of_reader(&asked.output);
        let record = world.registry.settle(id).await;
        let stored = direct
            .get(Counter::key(COUNTERS, row.as_str()))
            .await
            .unwrap();
        let stored = stored.expect("no test deletes counters");
        let counted = stored.log.split(',').filter_map(|id| id.parse().ok());
        let counted: Vec<u64> = counted.collect();
        let times = counted.iter().filter(|other| **other == id).count();
        let verb = match (is_transaction, is_once) {
            (true, true) => "count in a transaction, exactly once",
            (true, false) => "count in a transaction",
            (false, true) => "count, exactly once",
            (false, false) => "count",
        };
        world.ledger.count(verb, &said);
        let finding = judge_count(&said, is_once, times, record.is_duplicated());
        let mut findings: Vec<_> = finding.into_iter().collect();
        if world.network == Network::Doubled && record.is_all_doubled() {
            findings.extend(judge_copies(id, &counted));
        }
        if usize::try_from(stored.count) != Ok(counted.len()) {
            findings.push(Finding::Lie(
                "a counter counted what it did not note".to_owned(),
            ));
        }
        world.ledger.enter(findings, || {
            let record = record.show(world.ledger.origin());
            let output = &asked.output;
            format!("  {id} {verb} of {row}: {said:?}: {output:?}\n{record}  after: {stored:?}\n")
        });
    }

    /// Inserts what others insert, too, with another content. One of them wins.
    pub(crate) async fn race(&self, world: &World, rng: &mut Rng) {
        let number = self.raced.fetch_add(1, Ordering::Relaxed);
        let row = format!("{}", number / 3);
        let id = world.next_id();
        let is_once = rng.bool();
        let table = world.table(rng, TABLE);
        let insert = table.insert(&Row::whole(RACES, &row, token(id)));
        let insert = if is_once {
            insert.exactly_once()
        } else {
            insert
        };
        let asked = world.ask(id, insert.into_future()).await;
        let said = Said::of(&asked.output);
        let record = world.registry.settle(id).await;
        let direct = world.direct.table(TABLE);
        let stored = direct.get(Row::key(RACES, row.as_str())).await.unwrap();
        let is_winner = stored.as_ref().is_some_and(|row| row.token == token(id));
        let verb = if is_once {
            "insert of many, exactly once"
        } else {
            "insert of many"
        };
        world.ledger.count(verb, &said);
        let lie = |text: &str| Some(Finding::Lie(format!("{verb} {id}: {text}")));
        let finding = match said {
            Said::Done if !is_winner => lie("said to have won, and another one's is there"),
            Said::Refused if is_winner && (is_once || !record.is_duplicated()) => {
                lie("said to have lost, and is there")
            }
            Said::Refused if is_winner => Some(Finding::Limit(DUPLICATE_REFUSED)),
            Said::Unknown { equals_sent: true } if !is_winner => {
                lie("what is there is said to equal what was sent, and does not")
            }
            _ => None,
        };
        world.ledger.enter(finding.into_iter().collect(), || {
            let record = record.show(world.ledger.origin());
            let output = &asked.output;
            format!("  {id} {verb} of {row}: {said:?}: {output:?}\n{record}  after: {stored:?}\n")
        });
    }
}

const COUNTERS: &str = "counters";
const RACES: &str = "races";
