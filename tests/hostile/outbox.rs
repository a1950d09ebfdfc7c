//! Writes with steps, and workers that apply them: a write has one message, a step one effect, and their order stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use serde::{Deserialize, Serialize};
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{Error, TableClient};

use crate::entity::Row;
use crate::judge::token;
use crate::ledger::{DUPLICATE_REFUSED, Finding, Said};
use crate::record::Record;
use crate::rows::TABLE;
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
    id: u64,
    verb: &'static str,
    said: Said,
    words: String,
    /// Of a write.
    write: Option<Write>,
    record: Record,
}

#[derive(Clone, Copy)]
struct Write {
    is_once: bool,
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
    let mut ended = Vec::new();
    if rng.bool() {
        ended = join_all(actions).await;
    } else {
        for action in actions {
            ended.push(action.await);
        }
    }
    for action in &mut ended {
        action.record = world.registry.settle(action.id).await;
        world.ledger.count(action.verb, &action.said);
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
    let mut firsts = Vec::new();
    for (number, ..) in &handled {
        if !firsts.contains(number) {
            firsts.push(*number);
        }
    }
    if !firsts.is_sorted() {
        lie(format!("the messages came in the order {firsts:?}"));
    }
    let in_order: BTreeMap<_, _> = handled
        .iter()
        .map(|(number, _, token)| (*number, *token))
        .collect();
    let has_step = |of: &&i64| {
        let mut writes = ended.iter().filter(|ended| token(ended.id) == **of);
        writes.any(|ended| ended.write.is_some_and(|write| write.has_step))
    };
    let expected = in_order.values().rev().find(has_step).copied();
    if latest != expected {
        lie(format!(
            "the last step wrote {expected:?}, and {latest:?} is there"
        ));
    }
    for ended in &ended {
        let Some(write) = ended.write else { continue };
        let of_write = handled.iter().filter(|(.., of)| *of == token(ended.id));
        let ids: BTreeSet<_> = of_write.map(|(_, id, _)| id).collect();
        let is_stored = rows.iter().any(|row| row.token == token(ended.id));
        findings.extend(judge(ended, write, ids.len(), is_stored));
    }
    world.ledger.enter(findings, || {
        let mut text = format!("  partition {partition}, handled: {handled:?}, {reports:?}\n");
        for Ended {
            id,
            verb,
            said,
            words,
            record,
            ..
        } in &ended
        {
            let record = record.show(world.ledger.origin());
            text += &format!("  {id} {verb}: {said:?}: {words}\n{record}");
        }
        text
    });
}

/// Compares what was said of a write with the number of its messages.
fn judge(ended: &Ended, write: Write, messages: usize, is_stored: bool) -> Option<Finding> {
    let Ended { id, verb, said, .. } = ended;
    let lie = |text: &str| {
        let text = format!("{verb} {id}: {text}: {messages} messages");
        Some(Finding::Lie(text))
    };
    match said {
        _ if (messages > 0) != is_stored => lie("only one of entity and message is there"),
        _ if messages > 1 => lie("it has several messages"),
        Said::Done if messages == 0 => lie("said to be done"),
        Said::Refused if messages == 0 => None,
        Said::Refused if !write.is_once && ended.record.is_duplicated() => {
            Some(Finding::Limit(DUPLICATE_REFUSED))
        }
        Said::Refused => lie("said not to be done"),
        _ => None,
    }
}

async fn write(world: &World, partition: &str, mut rng: Rng) -> Ended {
    let id = world.next_id();
    let write = Write {
        is_once: rng.bool(),
        has_step: rng.bool(),
    };
    let is_later = rng.bool();
    let table = world.table(&mut rng, TABLE);
    let row = Row::whole(partition, &id.to_string(), token(id));
    let message = || Step::message(&Written { token: token(id) });
    let of_all = Row::whole(&latest(partition), "1", token(id));
    let step = || {
        write
            .has_step
            .then(|| Step::upsert_replace(&table, &of_all))
    };
    let (verb, asked);
    if rng.u8(..3) == 0 {
        let transaction = table.transaction(partition, async |tx| {
            if tx.get(Row::key(partition, id.to_string())).await?.is_some() {
                return Err("it is written once".into());
            }
            tx.insert(&row).step(message());
            if let Some(step) = step() {
                tx.step(step);
            }
            Ok(())
        });
        let transaction = if is_later {
            transaction.leave_steps()
        } else {
            transaction
        };
        let transaction = if write.is_once {
            transaction.exactly_once()
        } else {
            transaction
        };
        verb = [
            "transaction with steps",
            "transaction with steps, exactly once",
        ];
        asked = world.ask(id, transaction.into_future()).await;
    } else {
        let batch = table.batch(partition).insert(&row).step(message());
        let batch = match step() {
            Some(step) => batch.step(step),
            None => batch,
        };
        let batch = if is_later { batch.leave_steps() } else { batch };
        let batch = if write.is_once {
            batch.exactly_once()
        } else {
            batch
        };
        verb = ["batch with steps", "batch with steps, exactly once"];
        asked = world.ask(id, async { batch.await.map(drop) }).await;
    }
    Ended {
        id,
        verb: verb[usize::from(write.is_once)],
        said: Said::of_reader(&asked.output),
        words: format!("{:?}", asked.output),
        write: Some(write),
        record: Record::default(),
    }
}

async fn drain(world: &World, partition: &str, handled: &Handled, mut rng: Rng) -> Ended {
    let id = world.next_id();
    let outbox = outbox(&world.table(&mut rng, TABLE), handled);
    let drain = outbox.drain().partition(partition);
    let output: Result<_, Error> = world.ask(id, drain.into_future()).await.output;
    Ended {
        id,
        verb: "drain",
        said: Said::of_read(&output),
        words: format!("{output:?}"),
        write: None,
        record: Record::default(),
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
