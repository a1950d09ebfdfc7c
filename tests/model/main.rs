//! Random histories of operations against an oracle: a plain map and the service's documented rules, written without a look
//! at the server's engine or at our own codecs.
//!
//! A failure prints its seed; `TABLESDK_MODEL_SEED` runs that seed alone. `TABLESDK_MODEL_OPERATIONS` makes the run longer.

mod filter;
mod history;
mod oracle;
mod server;
mod value;

use harness::setting;
use history::run;
use server::Server;

/// So many operations together, whatever the number of histories.
const OPERATIONS: usize = 100_000;
const HISTORIES: usize = 50;

#[tokio::test]
async fn every_history_goes_on_when_the_server_crashes_or_is_opened_again() {
    // So many, with some restarts in each.
    const OPERATIONS: usize = 5_000;
    const HISTORIES: usize = 5;
    let seed = setting("TABLESDK_MODEL_SEED");
    for _ in 0..if seed.is_some() { 1 } else { HISTORIES } {
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        println!("TABLESDK_MODEL_SEED={seed}");
        let folder = tempfile::tempdir().unwrap();
        let server = Server::in_folder(&folder.path().join("tables"));
        run(seed, OPERATIONS / HISTORIES, server).await;
    }
}

#[tokio::test]
async fn every_history_is_as_the_oracle_says() {
    let operations = setting("TABLESDK_MODEL_OPERATIONS").unwrap_or(OPERATIONS);
    if let Some(seed) = setting("TABLESDK_MODEL_SEED") {
        run(seed, operations / HISTORIES, Server::new()).await;
        return;
    }
    let mut answered = 0;
    for _ in 0..HISTORIES {
        let seed = fastrand::u64(..);
        // A failing test shows what it printed: the last seed is the one.
        println!("TABLESDK_MODEL_SEED={seed}");
        answered += run(seed, operations / HISTORIES, Server::new()).await;
    }
    println!("{answered} operations were answered as the oracle says");
    assert!(answered >= operations / HISTORIES * HISTORIES);
}
