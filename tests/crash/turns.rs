//! Tables that are made, filled and deleted in turns: neither the data directory nor the memory of
//! the server grows with them. `TABLESDK_CRASH_TURNS` sets their number.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::directory::files_below;
use harness::process::program;
use harness::setting;
use tokio::process::Command;

use crate::process::{BATCH, Server, batch};

const TURNS: u64 = 60;
/// A turn writes about 600 KB, and removes them.
const ENTITIES: usize = 20;
const CONTENT_BYTES: usize = 30_000;
/// About 16 MiB of deleted records may stay until something is written.
const HIDDEN_BYTES_MAX: u64 = 17 * 1024 * 1024;
/// So many tables have more bytes than the store keeps in memory only.
const TABLES_MAX: usize = 40;

/// The bytes of the tables of the embedded store, and of its journals, each of which has its full
/// length from the start.
fn bytes(directory: &Path) -> (u64, u64) {
    let (mut tables, mut journals) = (0, 0);
    for file in files_below(&directory.join("records")) {
        // It may be removed at this moment.
        let length = std::fs::metadata(&file).map_or(0, |file| file.len());
        if file.extension().is_some_and(|name| name == "jnl") {
            journals += length;
        } else {
            tables += length;
        }
    }
    (tables, journals)
}

/// A batch that inserts the entities of a turn.
fn inserts(table: &str) -> String {
    let content = "x".repeat(CONTENT_BYTES);
    batch((0..ENTITIES).map(|number| {
        format!(
            "POST http://localhost/{table} HTTP/1.1\r\nContent-Type: application/json\r\n\
             Prefer: return-no-content\r\n\r\n\
             {{\"PartitionKey\":\"p\",\"RowKey\":\"{number:03}\",\"Content\":\"{content}\"}}"
        )
    }))
}

async fn delete(server: &Server, table: Option<String>) {
    let delete = format!("DELETE /Tables('{}')", table.unwrap());
    let deleted = server.send(&delete, &[], "").await.unwrap();
    assert_eq!(deleted.status, 204);
}

#[tokio::test]
async fn tables_that_are_deleted_leave_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("data");
    let mut command = Command::new(program());
    command.args(["--port", "0", "--durability", "relaxed", "--data"]);
    command.arg(&directory);
    let server = Server::start_as(command).await;
    let mut tables = VecDeque::new();
    for turn in 0..setting("TABLESDK_CRASH_TURNS").unwrap_or(TURNS) {
        let table = format!("turn{turn}");
        assert_eq!(server.create(&table).await, 201);
        let inserts = inserts(&table);
        let filled = server.send("POST /$batch", &[BATCH], &inserts).await;
        let filled = filled.unwrap();
        let inserted = filled.body.matches("204 No Content").count();
        assert_eq!(inserted, ENTITIES, "{filled:?}");
        tables.push_back(table);
        // By then, the store has written its entities to the disk.
        if tables.len() > TABLES_MAX {
            delete(&server, tables.pop_front()).await;
        }
    }
    while !tables.is_empty() {
        delete(&server, tables.pop_front()).await;
    }
    // The entities are removed in the background, which takes long after many turns.
    let mut least = (u64::MAX, Instant::now());
    let (tables, journals) = loop {
        let (tables, journals) = bytes(&directory);
        if tables < least.0 {
            least = (tables, Instant::now());
        }
        if tables < 1024 * 1024 || least.1.elapsed() > Duration::from_secs(15) {
            break (tables, journals);
        }
        tokio::time::timeout(Duration::from_millis(50), std::future::pending::<()>())
            .await
            .unwrap_err();
    };
    let resident = server.resident_bytes();
    println!("{tables} bytes of tables, {journals} of journals, {resident:?} resident");
    assert!(tables < HIDDEN_BYTES_MAX);
    assert!(journals <= 3 * 64 * 1024 * 1024);
    // On systems that tell.
    assert!(resident.is_none_or(|resident| resident < 256 * 1024 * 1024));
}
