//! Faults at each request of a write with steps and of the workers after it: nothing is lost, nothing is applied twice in effect, and the
//! order is kept.
//!
//! A failure of the random test prints its seed; `TABLESDK_OUTBOX_SEED` runs that seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use harness::{client_with, seeds};
use tablesdk::outbox::{Outbox, Received, Step};
use tablesdk::{DynamicEntity, Error, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::sleep;

use super::outbox::{HOUR, Renamed, outbox_rows, renamed};

const MINUTE: Duration = Duration::from_secs(60);

/// A table of transactions, a table that steps write, and what handlers have got.
struct World {
    server: TableServer,
    table: TableClient,
    targets: TableClient,
    handled: Arc<Mutex<Vec<String>>>,
}

/// What a write does to a target.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Replace,
    Merge,
    Delete,
    Message,
}

/// A write: the entity `row` is inserted, and these effects follow, with the name of the row as their value.
#[derive(Clone, Debug)]
struct Write {
    row: String,
    steps: Vec<(Effect, u8)>,
}

/// What is stored of a target: the last value, and the value that was merged since.
type Target = BTreeMap<String, String>;

impl World {
    async fn new(retry: RetryPolicy) -> Self {
        let server = TableServer::in_process();
        let service = client_with(&server, |builder| builder.retry(retry));
        let (table, targets) = (service.table("Company"), service.table("Targets"));
        table.create_table().await.unwrap();
        targets.create_table().await.unwrap();
        Self {
            server,
            table,
            targets,
            handled: Arc::default(),
        }
    }

    fn outbox(&self, table: &TableClient) -> Outbox {
        let handled = Arc::clone(&self.handled);
        Outbox::new(table).on(move |message: Received<Renamed>| {
            handled.lock().unwrap().push(message.title.clone());
            async { Ok(()) }
        })
    }

    fn step(&self, row: &str, (effect, target): (Effect, u8)) -> Step {
        let key = format!("t{target}");
        let entity = |name: &str| DynamicEntity::new("Targets", key.as_str()).with(name, row);
        match effect {
            Effect::Replace => Step::upsert_replace(&self.targets, &entity("Value")),
            Effect::Merge => Step::upsert_merge(&self.targets, &entity("Merged")),
            Effect::Delete => Step::delete(&self.targets, ("Targets", key.as_str())),
            Effect::Message => renamed(row),
        }
    }

    async fn write(&self, write: &Write, how: How) -> Result<(), Error> {
        let inserted = DynamicEntity::new("Sales", write.row.as_str()).with("Of", "a writer");
        if how.is_transaction {
            let transaction = self.table.transaction("Sales", async |tx| {
                let found = tx
                    .get::<DynamicEntity>(("Sales", write.row.as_str()))
                    .await?;
                if found.is_some() {
                    return Err("it is written once".into());
                }
                tx.insert(&inserted);
                for step in &write.steps {
                    tx.step(self.step(&write.row, *step));
                }
                Ok(())
            });
            let transaction = if how.is_later {
                transaction.leave_steps()
            } else {
                transaction
            };
            return if how.is_exactly_once {
                transaction.exactly_once().await
            } else {
                transaction.await
            };
        }
        let mut batch = self.table.batch("Sales").insert(&inserted);
        for step in &write.steps {
            batch = batch.step(self.step(&write.row, *step));
        }
        let batch = if how.is_later {
            batch.leave_steps()
        } else {
            batch
        };
        let result = if how.is_exactly_once {
            batch.exactly_once().await
        } else {
            batch.await
        };
        result.map(|_| ())
    }

    /// Lets everything that is in flight arrive, drains the outbox with two workers, and compares what is stored with the writes that were
    /// committed, in the order of their commits. Returns their rows.
    async fn settle(&self, writes: &[Write]) -> Vec<String> {
        self.server.faults().clear();
        sleep(MINUTE * 30).await;
        let service = client_with(&self.server, |builder| {
            builder.retry(RetryPolicy::exponential())
        });
        let (table, targets) = (service.table("Company"), service.table("Targets"));
        let outbox = self.outbox(&table);
        for pause in [MINUTE * 11, HOUR, MINUTE * 2] {
            let (one, two) = tokio::join!(outbox.drain(), outbox.drain());
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_eq!(one.set_aside + two.set_aside, 0);
            sleep(pause).await;
        }
        let rows = outbox_rows(&self.server);
        assert!(rows.iter().all(|row| row == "head"), "{rows:?}");

        let stored = table
            .query::<DynamicEntity>()
            .partition("Sales")
            .collect()
            .await
            .unwrap();
        let mut committed: Vec<_> = stored
            .iter()
            .map(|row| (row.timestamp().unwrap(), row.row_key().to_owned()))
            .collect();
        committed.sort();
        let committed: Vec<String> = committed.into_iter().map(|(_, row)| row).collect();

        let mut expected = BTreeMap::<String, Target>::new();
        let mut messages = Vec::new();
        for row in &committed {
            let write = writes.iter().find(|write| write.row == *row).unwrap();
            for (effect, target) in &write.steps {
                let key = format!("t{target}");
                let of_target = expected.entry(key.clone()).or_default();
                match effect {
                    Effect::Replace => {
                        *of_target = Target::from([("Value".to_owned(), row.clone())]);
                    }
                    Effect::Merge => {
                        of_target.insert("Merged".to_owned(), row.clone());
                    }
                    Effect::Delete => {
                        expected.remove(&key);
                    }
                    // A message is known by its row alone.
                    Effect::Message if !messages.contains(row) => messages.push(row.clone()),
                    Effect::Message => {}
                }
            }
        }
        expected.retain(|_, properties| !properties.is_empty());
        let mut found = BTreeMap::new();
        for target in targets.query::<DynamicEntity>().collect().await.unwrap() {
            let mut properties = Target::new();
            for name in ["Value", "Merged"] {
                if target.properties().get(name).is_some() {
                    properties.insert(name.to_owned(), target.properties().read(name).unwrap());
                }
            }
            found.insert(target.row_key().to_owned(), properties);
        }
        assert_eq!(found, expected, "{committed:?} of {writes:?}");
        // A message may come again, and not before an earlier one has come.
        let handled = std::mem::take(&mut *self.handled.lock().unwrap());
        let mut first = Vec::new();
        for row in handled {
            if !first.contains(&row) {
                first.push(row);
            }
        }
        assert_eq!(first, messages);
        committed
    }
}

/// How a write is made.
#[derive(Clone, Copy, Debug)]
struct How {
    is_later: bool,
    is_transaction: bool,
    is_exactly_once: bool,
}

const WAYS: [How; 3] = [
    How {
        is_later: true,
        is_transaction: false,
        is_exactly_once: false,
    },
    How {
        is_later: false,
        is_transaction: false,
        is_exactly_once: false,
    },
    How {
        is_later: false,
        is_transaction: true,
        is_exactly_once: true,
    },
];

fn writes() -> [Write; 3] {
    use Effect::{Delete, Merge, Message, Replace};
    let write = |row: &str, steps: &[(Effect, u8)]| Write {
        row: row.to_owned(),
        steps: steps.to_vec(),
    };
    [
        write("1", &[(Replace, 1), (Message, 0), (Merge, 1), (Replace, 2)]),
        write("2", &[(Delete, 1), (Replace, 2)]),
        write("3", &[(Merge, 1), (Message, 0)]),
    ]
}

/// Makes three writes one after the other, of which a worker applies what is left, with the fault at the first request, then at the second
/// one, and so on, until no request is hit.
async fn at_each_request(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    expect: impl Fn(How, &[Result<(), Error>]),
) {
    let writes = writes();
    for how in WAYS {
        for nth in 1.. {
            let world = World::new(retry()).await;
            let injected = world.server.faults().on_any().nth(nth).inject(fault());
            let outbox = world.outbox(&world.table);
            let mut results = Vec::new();
            for write in &writes {
                results.push(world.write(write, how).await);
                // Without the reads of pointers, which change nothing.
                drop(outbox.drain().partition("Sales").await);
            }
            let hits = injected.hits();
            let committed = world.settle(&writes).await;
            for (write, result) in writes.iter().zip(&results) {
                let is_committed = committed.contains(&write.row);
                match result {
                    Ok(()) => assert!(is_committed, "{how:?} {nth}: {write:?}"),
                    // Of a write that a proxy sends twice, the second response is returned, unless it is exactly once.
                    Err(error) => assert!(
                        !is_committed
                            || error.is_outcome_unknown()
                            || error.is_conflict() && !how.is_exactly_once,
                        "{how:?} {nth}: {write:?}: {error}"
                    ),
                }
            }
            if hits == 0 {
                assert!(nth > 10, "{how:?}");
                break;
            }
            expect(how, &results);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_outbox_that_is_not_sent_loses_nothing() {
    at_each_request(RetryPolicy::none, Fault::reset, |_, _| ()).await;
    at_each_request(RetryPolicy::exponential, Fault::reset, |how, results| {
        assert!(results.iter().all(Result::is_ok), "{how:?}: {results:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_the_outbox_loses_nothing() {
    at_each_request(RetryPolicy::none, Fault::lost_response, |_, _| ()).await;
    at_each_request(
        RetryPolicy::exponential,
        Fault::lost_response,
        |how, results| {
            if how.is_exactly_once {
                assert!(results.iter().all(Result::is_ok), "{how:?}: {results:?}");
            }
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_outbox_that_is_carried_out_twice_has_one_effect() {
    at_each_request(RetryPolicy::exponential, Fault::duplicate, |_, _| ()).await;
    let late = || Fault::late_duplicate(MINUTE * 20);
    at_each_request(RetryPolicy::none, late, |_, _| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_outbox_that_is_late_has_one_effect() {
    let late = || Fault::reset().applied_after(MINUTE * 20);
    at_each_request(RetryPolicy::none, late, |_, _| ()).await;
    let late = || Fault::reset().applied_after(Duration::from_secs(90));
    at_each_request(RetryPolicy::exponential, late, |_, _| ()).await;
}

const WRITERS: u64 = 3;
const ROUNDS: u32 = 12;

fn random_write(row: String, rng: &mut Rng) -> Write {
    let effects = [
        Effect::Replace,
        Effect::Merge,
        Effect::Delete,
        Effect::Message,
    ];
    let steps = (0..rng.usize(1..4)).map(|_| {
        let effect = rng.choice(effects).unwrap();
        (effect, rng.u8(0..3))
    });
    Write {
        steps: steps.collect(),
        row,
    }
}

/// Writers and workers at the same time, with faults of every kind.
#[tokio::test(start_paused = true)]
async fn random_histories_with_faults_are_applied_in_the_order_of_their_commits() {
    for seed in seeds("TABLESDK_OUTBOX_SEED", 6) {
        println!("TABLESDK_OUTBOX_SEED={seed}");
        fastrand::seed(seed);
        let world = World::new(RetryPolicy::exponential()).await;
        let faults = world.server.faults();
        let of_targets = faults.on_writes().table("Targets").probability(0.2);
        let duplicates = of_targets
            .seed(seed)
            .inject(Fault::late_duplicate(MINUTE * 3));
        let late = Fault::reset().applied_after(MINUTE * 2);
        let late = faults.on_writes().probability(0.05).seed(seed).inject(late);
        let chaos = faults.chaos(seed);
        let made = Mutex::new(Vec::new());
        let clients = (0..WRITERS).map(|client| {
            let mut rng = Rng::with_seed(seed ^ (client << 8));
            let (world, made) = (&world, &made);
            async move {
                let mut results = Vec::new();
                for round in 0..ROUNDS {
                    let write = random_write(format!("{client}-{round:02}"), &mut rng);
                    made.lock().unwrap().push(write.clone());
                    let how = How {
                        is_later: rng.bool(),
                        is_transaction: rng.bool(),
                        is_exactly_once: rng.bool(),
                    };
                    let result = world.write(&write, how).await;
                    results.push((write.row, how, result));
                    sleep(Duration::from_millis(rng.u64(..60_000))).await;
                }
                results
            }
        });
        let workers = async {
            let outbox = world.outbox(&world.table);
            loop {
                drop(tokio::join!(outbox.drain(), outbox.drain()));
                sleep(Duration::from_secs(7)).await;
            }
        };
        let results = tokio::select! {
            results = join_all(clients) => results,
            () = workers => unreachable!(),
        };
        let writes = made.into_inner().unwrap();
        let committed = world.settle(&writes).await;
        for (row, how, result) in results.into_iter().flatten() {
            match result {
                Ok(()) => assert!(committed.contains(&row), "{row}"),
                Err(error) => assert!(
                    !committed.contains(&row)
                        || error.is_outcome_unknown()
                        || error.is_conflict() && !how.is_exactly_once,
                    "{row}: {error}"
                ),
            }
        }
        assert!(committed.len() > 15, "{} writes", committed.len());
        let hits = [late.hits(), duplicates.hits(), chaos.hits()];
        assert!(hits.iter().all(|hits| *hits > 0), "{hits:?}");
    }
}
