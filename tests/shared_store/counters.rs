//! Counters that many clients increment: read, replace with the ETag of what was read, and again if
//! another client was first.
//!
//! A counter also has the number of each increment. So a client whose replace has an unknown
//! outcome sees in the next read whether it was applied; if it was not, the ETag keeps it from
//! being applied later than another one.

use std::sync::Arc;

use fastrand::Rng;
use tablesdk::{Error, Stored, TableEntity};

use crate::register::Outcome;
use crate::workload::Workload;

/// So few that the clients meet, and so many that they do not spend the time with that alone.
const COUNTERS: usize = 16;
const PARTITION: &str = "counters";

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
struct Counter {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
    count: u32,
    /// The increments, each followed by a comma.
    log: String,
}

/// Lets that many clients make so many increments each, and compares the counters.
pub(crate) async fn run(workload: &Arc<Workload>, clients: usize, increments: u64, rng: &mut Rng) {
    for counter in 0..COUNTERS {
        let new = Counter {
            partition: PARTITION.to_owned(),
            row: counter.to_string(),
            count: 0,
            log: String::new(),
        };
        workload.table(rng).insert(&new).await.unwrap();
    }
    let tasks = (0..clients).map(|client| {
        let (workload, mut rng) = (Arc::clone(workload), rng.fork());
        tokio::spawn(async move {
            for number in 0..increments {
                let row = (client % COUNTERS).to_string();
                let id = format!("{client}-{number},");
                increment(&workload, &row, &id, &mut rng).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a client does not panic");
    }
    println!("{}", workload.summary());
    let checked = workload.check_failures();
    checked.unwrap_or_else(|it| panic!("{it}"));
    for counter in 0..COUNTERS {
        let stored = read(workload, &counter.to_string(), rng).await;
        let mut expected: Vec<String> = (0..clients)
            .filter(|client| client % COUNTERS == counter)
            .flat_map(|client| (0..increments).map(move |number| format!("{client}-{number}")))
            .collect();
        let mut counted: Vec<&str> = stored.log.split_terminator(',').collect();
        expected.sort_unstable();
        counted.sort_unstable();
        assert_eq!(counted, expected, "counter {counter}");
        assert_eq!(usize::try_from(stored.count), Ok(expected.len()));
    }
}

async fn increment(workload: &Workload, row: &str, id: &str, rng: &mut Rng) {
    loop {
        let mut counter = read(workload, row, rng).await;
        if counter.log.split_inclusive(',').any(|other| other == id) {
            // The outcome was unknown.
            workload.is_done();
            return;
        }
        counter.count += 1;
        counter.log += id;
        let replaced = workload.table(rng).replace(&mut counter).await;
        let outcome = outcome(workload, "increment", &replaced);
        workload.count("increment", &outcome);
        match outcome {
            Outcome::Done(_) => {
                workload.is_done();
                return;
            }
            Outcome::Failed => workload.wait_until_available().await,
            _ => {}
        }
    }
}

/// The counter, through any server that responds.
async fn read(workload: &Workload, row: &str, rng: &mut Rng) -> Stored<Counter> {
    loop {
        let table = workload.table(rng);
        let found = table.get::<Counter>(Counter::key(PARTITION, row)).await;
        let outcome = outcome(workload, "read", &found);
        workload.count("read", &outcome);
        match found {
            Ok(found) => return found.expect("counters are not deleted"),
            Err(_) => workload.wait_until_available().await,
        }
    }
}

fn outcome<T>(workload: &Workload, verb: &'static str, result: &Result<T, Error>) -> Outcome {
    match result {
        Ok(_) => Outcome::Done(None),
        Err(error) => workload.outcome(verb, error),
    }
}
