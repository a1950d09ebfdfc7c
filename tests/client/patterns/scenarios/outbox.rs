//! Writes with steps, and workers that apply them: no step is lost, none is applied twice in
//! effect, and their order is that of the commits.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use tablesdk::outbox::{Outbox, Received, Step};
use tablesdk::{DynamicEntity, Error, TableClient, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Faults};
use tokio::time::sleep;

use super::super::outbox::{HOUR, Renamed, outbox_rows, renamed};
use super::{Before, Failure, Outcome, Scenario, Write, done, or_unknown};

const MINUTE: Duration = Duration::from_secs(60);

/// The transactions that clients have written, and the messages that handlers have got.
#[derive(Default)]
pub(super) struct Transactions {
    written: RefCell<Vec<Written>>,
    handled: Arc<Mutex<Vec<String>>>,
    clients: Cell<u32>,
}

/// The entity `row` is inserted, and these effects follow, with the name of the row as their value.
#[derive(Clone, Debug)]
struct Written {
    row: String,
    steps: Vec<(Effect, u8)>,
    /// True if the client knows that it was committed, false if it knows that it was not.
    is_committed: Option<bool>,
}

/// The effect of a step on a target.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Replace,
    Merge,
    Delete,
    Message,
}

/// The stored values of a target: the last value, and the value that was merged since.
type Target = BTreeMap<String, String>;

pub(super) struct Client {
    number: u32,
    rows: u32,
    table: TableClient,
    targets: TableClient,
}

/// How a write is made.
#[derive(Clone, Copy, Debug)]
struct How {
    is_later: bool,
    is_transaction: bool,
    is_exactly_once: bool,
}

impl Transactions {
    fn outbox(&self, client: &Client) -> Outbox {
        let handled = Arc::clone(&self.handled);
        Outbox::new(&client.table).on(move |message: Received<Renamed>| {
            handled.lock().unwrap().push(message.title.clone());
            async { Ok(()) }
        })
    }

    async fn insert(
        &self,
        client: &mut Client,
        steps: Vec<(Effect, u8)>,
        how: How,
    ) -> Result<(), Error> {
        let row = format!("{}-{:02}", client.number, client.rows);
        client.rows += 1;
        let nth = self.written.borrow().len();
        self.written.borrow_mut().push(Written {
            row: row.clone(),
            steps: steps.clone(),
            is_committed: None,
        });
        let result = send(client, &row, &steps, how).await;
        self.written.borrow_mut()[nth].is_committed = match &result {
            Ok(()) => Some(true),
            Err(error) if error.is_outcome_unknown() => None,
            // Of a write that a proxy sends twice, the second response is returned, unless it is
            // exactly once.
            Err(error) if error.is_conflict() && !how.is_exactly_once => None,
            Err(_) => Some(false),
        };
        result
    }

    /// The expected content of the targets, after the committed writes in the order of their
    /// commits.
    fn expected(&self, committed: &[String]) -> (BTreeMap<String, Target>, Vec<String>) {
        let written = self.written.borrow();
        let mut targets = BTreeMap::<String, Target>::new();
        let mut messages = Vec::new();
        for row in committed {
            let write = written.iter().find(|write| write.row == *row).unwrap();
            for (effect, target) in &write.steps {
                let key = format!("t{target}");
                match effect {
                    Effect::Replace => {
                        let value = ("Value".to_owned(), row.clone());
                        targets.insert(key, Target::from([value]));
                    }
                    Effect::Merge => {
                        let target = targets.entry(key).or_default();
                        target.insert("Merged".to_owned(), row.clone());
                    }
                    Effect::Delete => drop(targets.remove(&key)),
                    // A message is known by its row alone.
                    Effect::Message if !messages.contains(row) => messages.push(row.clone()),
                    Effect::Message => {}
                }
            }
        }
        (targets, messages)
    }
}

async fn send(client: &Client, row: &str, steps: &[(Effect, u8)], how: How) -> Result<(), Error> {
    let inserted = DynamicEntity::new("Sales", row).with("Of", "a writer");
    let step = |(effect, target): (Effect, u8)| {
        let key = format!("t{target}");
        let entity = |name: &str| DynamicEntity::new("Targets", key.as_str()).with(name, row);
        match effect {
            Effect::Replace => Step::upsert_replace(&client.targets, &entity("Value")),
            Effect::Merge => Step::upsert_merge(&client.targets, &entity("Merged")),
            Effect::Delete => Step::delete(&client.targets, ("Targets", key.as_str())),
            Effect::Message => renamed(row),
        }
    };
    if how.is_transaction {
        let run = client.table.transaction("Sales", async |tx| {
            if tx.get::<DynamicEntity>(("Sales", row)).await?.is_some() {
                return Err("it is written once".into());
            }
            tx.insert(&inserted);
            for it in steps {
                tx.step(step(*it));
            }
            Ok(())
        });
        let run = if how.is_later { run.leave_steps() } else { run };
        return if how.is_exactly_once {
            run.exactly_once().await
        } else {
            run.await
        };
    }
    let mut batch = client.table.batch("Sales").insert(&inserted);
    for it in steps {
        batch = batch.step(step(*it));
    }
    let batch = if how.is_later {
        batch.leave_steps()
    } else {
        batch
    };
    let sent = if how.is_exactly_once {
        batch.exactly_once().await
    } else {
        batch.await
    };
    sent.map(drop)
}

suites!(Transactions);

impl Scenario for Transactions {
    type Client = Client;

    const WRITES: &'static [Write] = &[
        or_unknown("batches whose steps are left"),
        or_unknown("batches"),
        done("transactions exactly once"),
    ];
    const STEPS: u32 = 12;
    const PAUSE: Duration = Duration::from_secs(2);
    const EVERY: u64 = 7;
    const LATE: Duration = Duration::from_secs(20 * 60);

    async fn new(server: &TableServer, _: Before) -> Self {
        let scenario = Self::default();
        let client = scenario.client(&harness::client(server));
        client.table.create_table().await.unwrap();
        client.targets.create_table().await.unwrap();
        scenario
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, service: &TableServiceClient) -> Client {
        self.clients.set(self.clients.get() + 1);
        Client {
            number: self.clients.get(),
            rows: 0,
            table: service.table("Company"),
            targets: service.table("Targets"),
        }
    }

    fn more_faults() -> Vec<Fault> {
        vec![Fault::late_duplicate(MINUTE * 20)]
    }

    fn inject(&self, faults: &Faults, seed: u64) {
        let targets = faults.on_writes().table("Targets").probability(0.2);
        let late = Fault::late_duplicate(MINUTE * 3);
        targets.seed(seed).inject(late);
    }

    /// Three writes, after each of which a worker applies what is left.
    async fn write(&self, client: &mut Client, name: &str) -> Outcome {
        use Effect::{Delete, Merge, Message, Replace};
        let is_transaction = name == "transactions exactly once";
        let how = How {
            is_later: name == "batches whose steps are left",
            is_transaction,
            is_exactly_once: is_transaction,
        };
        let mut result = Ok(());
        for steps in [
            vec![(Replace, 1), (Message, 0), (Merge, 1), (Replace, 2)],
            vec![(Delete, 1), (Replace, 2)],
            vec![(Merge, 1), (Message, 0)],
        ] {
            let sent = self.insert(client, steps, how).await;
            result = result.and(sent.map_err(Failure::from));
            // Without the reads of pointers, which change nothing.
            drop(self.outbox(client).drain().partition("Sales").await);
        }
        result
    }

    async fn mend(&self, client: &mut Client) -> Outcome {
        let outbox = self.outbox(client);
        let (one, two) = tokio::join!(outbox.drain(), outbox.drain());
        sleep(Duration::from_secs(7)).await;
        Ok(one.and(two).map(drop)?)
    }

    async fn settle(&self, server: &TableServer, client: &mut Client) {
        // Everything that is on its way arrives.
        sleep(MINUTE * 30).await;
        let outbox = self.outbox(client);
        for pause in [MINUTE * 11, HOUR, MINUTE * 2] {
            let (one, two) = tokio::join!(outbox.drain(), outbox.drain());
            assert_eq!(one.unwrap().set_aside + two.unwrap().set_aside, 0);
            sleep(pause).await;
        }
        let rows = outbox_rows(server);
        assert!(rows.iter().all(|row| row == "head"), "{rows:?}");

        let stored = client.table.query::<DynamicEntity>().partition("Sales");
        let stored = stored.collect().await.unwrap();
        let commits = stored.iter().map(|row| (row.timestamp(), row.row_key()));
        // In their order.
        let commits = commits.collect::<BTreeSet<_>>().into_iter();
        let committed: Vec<String> = commits.map(|(_, row)| row.to_owned()).collect();
        for write in self.written.borrow().iter() {
            let is_committed = committed.contains(&write.row);
            assert!(
                write.is_committed.is_none_or(|known| known == is_committed),
                "{write:?}"
            );
        }
        let (expected, messages) = self.expected(&committed);
        let stored = client.targets.query::<DynamicEntity>().values();
        let found = stored.collect().await.unwrap().into_iter().map(|target| {
            let property = |name: &str| {
                target.properties().get(name)?;
                let value = target.properties().read(name).unwrap();
                Some((name.to_owned(), value))
            };
            let properties = ["Value", "Merged"].into_iter().filter_map(property);
            (target.row_key().to_owned(), properties.collect())
        });
        let found: BTreeMap<String, Target> = found.collect();
        assert_eq!(found, expected, "{committed:?} of {:?}", self.written);
        // A message may come again, and not before an earlier one has come.
        let mut first = Vec::new();
        for row in std::mem::take(&mut *self.handled.lock().unwrap()) {
            if !first.contains(&row) {
                first.push(row);
            }
        }
        assert_eq!(first, messages);
    }

    async fn step(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        sleep(Duration::from_millis(rng.u64(..60_000))).await;
        let effects = [
            Effect::Replace,
            Effect::Merge,
            Effect::Delete,
            Effect::Message,
        ];
        let steps = (0..rng.usize(1..4)).map(|_| (rng.choice(effects).unwrap(), rng.u8(0..3)));
        let steps = steps.collect();
        let how = How {
            is_later: rng.bool(),
            is_transaction: rng.bool(),
            is_exactly_once: rng.bool(),
        };
        Ok(self.insert(client, steps, how).await?)
    }
}
