//! Entities that all workers write at the same time: counters, and races for the first insert.

use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use harness::written::Row;
use tablesdk::TableEntity;
use tablesdk::action::{InsertEntity, Modify, RunTransaction};

use crate::judge::{judge_copies, judge_count};
use crate::ledger::{DUPLICATE_REFUSED, Finding, Said};
use crate::network::Network;
use crate::rows::TABLE;
use crate::step::{token, when};
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

        let (is_once, is_transaction) = (rng.bool(), rng.u8(..3) == 0);
        let verb = if is_transaction {
            "count in a transaction"
        } else {
            "count"
        };
        let call = world.call(verb, is_once);
        let id = call.id;
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
        let modify = when(is_once, modify, Modify::exactly_once);
        let transaction = table.transaction(COUNTERS, async |tx| {
            let mut counter = tx.get(key()).await?.ok_or("no test deletes counters")?;
            add(&mut counter);
            tx.replace(counter);
            Ok(())
        });
        let transaction = when(is_once, transaction, RunTransaction::exactly_once);
        let count = async {
            if is_transaction {
                transaction.await
            } else {
                modify.await.map(drop)
            }
        };
        let (step, _) = world.run(call, Said::of_reader, count).await;
        let stored = direct.get(key()).await.unwrap();
        let stored = stored.expect("no test deletes counters");
        let counted = stored.log.split(',').filter_map(|id| id.parse().ok());
        let counted: Vec<u64> = counted.collect();
        let times = counted.iter().filter(|other| **other == id).count();
        let mut findings: Vec<_> = judge_count(&step, times).into_iter().collect();
        if world.network == Network::Doubled && step.record.is_all_doubled() {
            findings.extend(judge_copies(id, &counted));
        }
        if usize::try_from(stored.count) != Ok(counted.len()) {
            findings.push(step.lie("the counter counted what it did not note"));
        }
        world.enter(findings, [&step], || format!("after: {stored:?}"));
    }

    /// Inserts what others insert, too, with another content. One of them wins.
    pub(crate) async fn race(&self, world: &World, rng: &mut Rng) {
        let number = self.raced.fetch_add(1, Ordering::Relaxed);
        let row = format!("{}", number / 3);
        let call = world.call("insert of many", rng.bool());
        let token = token(call.id);
        let insert = world
            .table(rng, TABLE)
            .insert(&Row::whole(RACES, &row, token));
        let insert = when(call.is_once, insert, InsertEntity::exactly_once);
        let (step, _) = world.run(call, Said::of, insert).await;
        let direct = world.direct.table(TABLE);
        let stored = direct.get(Row::key(RACES, row.as_str())).await.unwrap();
        let is_winner = stored.as_ref().is_some_and(|row| row.token == token);
        let is_limit = !step.is_once && step.record.is_duplicated();
        let finding = match step.said {
            Said::Done if !is_winner => {
                Some(step.lie("said to have won, and another one's is there"))
            }
            Said::Refused if is_winner && is_limit => Some(Finding::Limit(DUPLICATE_REFUSED)),
            Said::Refused if is_winner => Some(step.lie("said to have lost, and is there")),
            Said::Unknown { equals_sent: true } if !is_winner => {
                Some(step.lie("what is there is said to equal what was sent, and does not"))
            }
            _ => None,
        };
        world.enter(finding, [&step], || format!("after: {stored:?}"));
    }
}

const COUNTERS: &str = "counters";
const RACES: &str = "races";
