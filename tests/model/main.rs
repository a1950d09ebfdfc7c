//! Random histories of operations against an oracle: a plain map and the service's documented
//! rules, written without a look at the server's engine or at our own codecs.
//!
//! The seeds are fixed, and a failure shows its seed. `TABLESDK_MODEL_SEED` runs one seed alone, or
//! `random` ones; `TABLESDK_MODEL_OPERATIONS` makes the run longer.

mod filter;
mod history;
mod oracle;
mod server;
mod value;

use harness::{seeds, setting};
use history::run;
use server::Server;

/// The number of operations in all histories together.
const OPERATIONS: usize = 40_000;
const HISTORIES: u64 = 50;

/// Runs so many histories of so many operations, on all threads of the runtime, unless there is no
/// server.
async fn run_all(count: u64, operations: usize, start: impl Fn() -> Option<Server>) {
    let histories = seeds("TABLESDK_MODEL_SEED", count);
    let histories = histories.into_iter();
    let running =
        histories.filter_map(|seed| Some((seed, tokio::spawn(run(seed, operations, start()?)))));
    for (seed, history) in running.collect::<Vec<_>>() {
        let outcome = history.await;
        outcome.unwrap_or_else(|error| panic!("TABLESDK_MODEL_SEED={seed}: {error}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_agree_with_the_oracle() {
    let operations = setting("TABLESDK_MODEL_OPERATIONS").unwrap_or(OPERATIONS);
    let each = operations.div_ceil(usize::try_from(HISTORIES).unwrap());
    run_all(HISTORIES, each, || Some(Server::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_continue_after_crashes_and_restarts() {
    run_all(5, 1_000, || Some(Server::in_a_directory())).await;
}

/// Each request goes to another server: none of them may take what it has read for what is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_over_one_database_are_as_one() {
    run_all(5, 1_000, Server::over_a_database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_continue_after_crashes_of_their_database() {
    run_all(2, 500, Server::over_a_cluster).await;
}
