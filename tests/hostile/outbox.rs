//! Writes with steps, and workers that apply them: a write has one message, a step one effect, and their order stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream;
use serde::{Deserialize, Serialize};
use tablesdk::TableClient;
use tablesdk::action::{Batch, RunTransaction};
use tablesdk::outbox::{self, Message, Outbox, Received};

use crate::entity::Row;
use crate::ledger::{DUPLICATE_REFUSED, Finding, Said};
use crate::rows::TABLE;
use crate::step::{Step, token, when};
use crate::world::World;

#[derive(Serialize, Deserialize)]
struct Written {
    token: i64,
}

impl Message for Written {
    const NAME: &'static str = "written";
}

/// Number, id and content of the messages, in the order in which they came.
type Handled = Arc<Mutex<Vec<(u64, String, i64)>>>;

/// A write with steps, or a worker.
struct Ended {
    step: Step,
    is_write: bool,
    /// It also replaces the entity that all of them replace.
    has_step: bool,
}

/// Some writes and workers of a partition, one after the other or at the same time.
pub(crate) async fn run(world: &World, rng: &mut Rng) {
    let partition = format!("o{}", world.next_id());
    let handled = Handled::default();
    let mut actions = Vec::<BoxFuture<'_, Ended>>::new();
    for _ in 0..rng.usize(1..=4) {
        let rng = rng.fork();
        actions.push(match actions.len() {
            0 | 2 => write(world, &partition, rng).boxed(),
            _ => drain(world, &partition, &handled, rng).boxed(),
        });
    }
    let at_once = if rng.bool() { actions.len() } else { 1 };
    let ended = stream::iter(actions).buffered(at_once);
    let mut ended = ended.collect::<Vec<_>>().await;
    for Ended { step, .. } in &mut ended {
        world.settle(step).await;
    }
    let outbox = outbox(&world.later.table(TABLE), &handled);
    let mut reports = Vec::new();
    for _ in 0..ROUNDS {
        let report = outbox.drain().partition(partition.as_str()).await.unwrap();
        let is_over = report.waiting == 0;
        reports.push(report);
        if is_over {
            break;
        }
    }
    let mut findings = Vec::new();
    let mut lie = |text: String| findings.push(Finding::Lie(text));
    if reports.iter().any(|report| report.set_aside > 0)
        || reports.last().is_some_and(|report| report.waiting > 0)
    {
        lie("a step was not applied in the end".to_owned());
    }
    let direct = world.direct.table(TABLE);
    let rows = direct.query::<Row>().partition(partition.as_str());
    let rows = rows.collect().await.unwrap();
    let latest = direct.get(Row::key(latest(&partition), "1")).await.unwrap();
    let latest = latest.map(|row| row.token);
    let handled = handled.lock().unwrap().clone();
    let mut seen = BTreeSet::new();
    let firsts = handled.iter().map(|(number, ..)| *number);
    let firsts: Vec<_> = firsts.filter(|number| seen.insert(*number)).collect();
    if !firsts.is_sorted() {
        lie(format!("the messages came in the order {firsts:?}"));
    }
    let in_order: BTreeMap<_, _> = handled
        .iter()
        .map(|(number, _, token)| (*number, *token))
        .collect();
    let has_step = |of: &&i64| {
        let mut writes = ended.iter().filter(|ended| ended.has_step);
        writes.any(|ended| token(ended.step.id) == **of)
    };
    let expected = in_order.values().rev().find(has_step).copied();
    if latest != expected {
        lie(format!(
            "the last step wrote {expected:?}, and {latest:?} is there"
        ));
    }
    for Ended { step, .. } in ended.iter().filter(|ended| ended.is_write) {
        let of_write = handled.iter().filter(|(.., of)| *of == token(step.id));
        let ids: BTreeSet<_> = of_write.map(|(_, id, _)| id).collect();
        let is_stored = rows.iter().any(|row| row.token == token(step.id));
        findings.extend(judge(step, ids.len(), is_stored));
    }
    world.enter(findings, ended.iter().map(|ended| &ended.step), || {
        format!("partition {partition}, handled: {handled:?}, {reports:?}")
    });
}

/// Compares what was said of a write with the number of its messages.
fn judge(step: &Step, messages: usize, is_stored: bool) -> Option<Finding> {
    let lie = |text: &str| Some(step.lie(&format!("{text}: {messages} messages")));
    match step.said {
        _ if (messages > 0) != is_stored => lie("only one of entity and message is there"),
        _ if messages > 1 => lie("it has several messages"),
        Said::Done if messages == 0 => lie("said to be done"),
        Said::Refused if messages == 0 => None,
        Said::Refused if !step.is_once && step.record.is_duplicated() => {
            Some(Finding::Limit(DUPLICATE_REFUSED))
        }
        Said::Refused => lie("said not to be done"),
        _ => None,
    }
}

async fn write(world: &World, partition: &str, mut rng: Rng) -> Ended {
    let (is_once, has_step, is_later) = (rng.bool(), rng.bool(), rng.bool());
    let is_transaction = rng.u8(..3) == 0;
    let verb = if is_transaction {
        "transaction"
    } else {
        "batch"
    };
    let call = world.call(&format!("{verb} with steps"), is_once);
    let (id, token) = (call.id.to_string(), token(call.id));
    let table = world.table(&mut rng, TABLE);
    let row = Row::whole(partition, &id, token);
    let message = || outbox::Step::message(&Written { token });
    let of_all = Row::whole(&latest(partition), "1", token);
    let replace = || has_step.then(|| outbox::Step::upsert_replace(&table, &of_all));
    let transaction = table.transaction(partition, async |tx| {
        if tx.get(Row::key(partition, id.as_str())).await?.is_some() {
            return Err("it is written once".into());
        }
        tx.insert(&row).step(message());
        if let Some(step) = replace() {
            tx.step(step);
        }
        Ok(())
    });
    let transaction = when(is_later, transaction, RunTransaction::leave_steps);
    let transaction = when(is_once, transaction, RunTransaction::exactly_once);
    let batch = table.batch(partition).insert(&row).step(message());
    let batch = replace().into_iter().fold(batch, Batch::step);
    let batch = when(is_later, batch, Batch::leave_steps);
    let batch = when(is_once, batch, Batch::exactly_once);
    let write = async {
        if is_transaction {
            transaction.await
        } else {
            batch.await.map(drop)
        }
    };
    let (step, _) = world.ask(call, Said::of_reader, write).await;
    Ended {
        step,
        is_write: true,
        has_step,
    }
}

async fn drain(world: &World, partition: &str, handled: &Handled, mut rng: Rng) -> Ended {
    let outbox = outbox(&world.table(&mut rng, TABLE), handled);
    let drain = outbox.drain().partition(partition).into_future();
    let (step, _) = world
        .ask(world.call("drain", false), Said::of_read, drain)
        .await;
    Ended {
        step,
        is_write: false,
        has_step: false,
    }
}

fn outbox(table: &TableClient, handled: &Handled) -> Outbox {
    let handled = Arc::clone(handled);
    Outbox::new(table).on(move |written: Received<Written>| {
        let message = (written.number(), written.id().to_owned(), written.token);
        handled.lock().unwrap().push(message);
        async { Ok(()) }
    })
}

/// The partition of the entity that steps write.
fn latest(partition: &str) -> String {
    format!("l{partition}")
}

const ROUNDS: usize = 20;
