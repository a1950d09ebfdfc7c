//! Every write that a server with a data directory acknowledged is there after the process was
//! killed, at any moment, with many writers.
//!
//! The server is a child process. Each writer records which of its writes were acknowledged. After
//! the kill, the data directory is opened again: each writer's entities must be in the acknowledged
//! state, or in that state plus the writer's last unanswered write, which is there completely or
//! not at all. `TABLESDK_CRASH_ROUNDS` and `TABLESDK_CRASH_WRITERS` make the run longer. The seed
//! is fixed and printed; `TABLESDK_CRASH_SEED` sets it, or makes it `random`.

mod damage;
mod fixture;
mod full;
mod postgres;
mod process;
mod turns;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;
use harness::{seed, setting};
use process::{JSON, Server, timestamp};
use tablesdk_server::{Durability, TableServer};
use writer::Writer;

/// The content of a data directory: a line for each table and each entity, in the format of
/// exports.
fn content(directory: &Path) -> Vec<String> {
    let server = TableServer::builder().data(directory, Durability::Sync);
    let lines = server.in_process().unwrap().save().unwrap();
    lines_of_content(std::str::from_utf8(&lines).unwrap())
}

/// Without the first and the last line of an export.
fn lines_of_content(export: &str) -> Vec<String> {
    let lines = export.lines().filter(|line| line.starts_with("{\"table\""));
    lines.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_kills() {
    let mut rng = Rng::with_seed(seed("TABLESDK_CRASH_SEED"));
    let rounds = setting("TABLESDK_CRASH_ROUNDS").unwrap_or(2);
    let count = setting("TABLESDK_CRASH_WRITERS").unwrap_or(64);
    let directory = tempfile::tempdir().unwrap();

    let mut server = Server::start(directory.path()).await;
    assert_eq!(server.create("people").await, 201);
    let writers = (0..count).map(|number| Writer::new(number, rng.fork()));
    let mut writers: Vec<Writer> = writers.collect();
    let mut acknowledged = 0;
    for round in 0..rounds {
        let kill_after = rng.usize(50..2_000);
        let answered = Arc::new(AtomicUsize::new(0));
        let running = Arc::new(server);
        let tasks: Vec<_> = writers
            .drain(..)
            .map(|mut writer| {
                let (server, answered) = (Arc::clone(&running), Arc::clone(&answered));
                tokio::spawn(async move {
                    while writer.write(&server).await {
                        if answered.fetch_add(1, Ordering::Relaxed) == kill_after {
                            server.kill();
                        }
                    }
                    writer
                })
            })
            .collect();
        for task in tasks {
            writers.push(task.await.unwrap());
        }
        running.wait_until_dead().await;
        acknowledged += answered.load(Ordering::Relaxed);

        server = Server::start(directory.path()).await;
        let latest = writers.iter().map(Writer::latest).max().unwrap();
        for writer in &mut writers {
            writer.check(&server, round).await;
        }
        // Timestamps increase, whatever the clock says.
        let written = server.send("PUT /people(PartitionKey='time',RowKey='')", &[JSON], "{}");
        let written = written.await.unwrap();
        assert!(timestamp(&written).unwrap() > latest, "round {round}");
    }
    println!("{acknowledged} writes were acknowledged in {rounds} rounds, and none was lost");
    assert!(acknowledged > 0);
}
