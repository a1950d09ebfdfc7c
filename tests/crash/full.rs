//! A full disk: simulated by a limit on the length of files, which every user may set for a
//! process, and a real one in memory, which needs a namespace of its own.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use harness::process::program;
use tokio::process::Command;

use crate::process::{JSON, Server};

/// The journal has a few KiB when the data directory is reopened, and soon reaches this limit.
const LIMIT_KIB: u64 = 600;

#[tokio::test]
async fn a_full_disk_ends_writes_but_not_reads() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path()).await;
    assert_eq!(server.create("people").await, 201);
    server.kill();
    server.wait_until_dead().await;

    let server = Server::start_with_file_limit(directory.path(), LIMIT_KIB).await;
    let noise = || (0..4_000).map(|_| fastrand::alphanumeric()).collect();
    let (acknowledged, refused) = fill(&server, 0, noise).await;
    assert!(acknowledged.len() > 10);
    // Nothing is written any more, since the effect of the failed write on the files is unknown.
    assert_read_only(&server, &acknowledged, &refused, 3).await;
    let delete = "DELETE /people(PartitionKey='p',RowKey='000000')";
    let deleted = server.send(delete, &["If-Match: *"], "").await;
    assert_eq!(deleted.unwrap().status, 500);
    assert_eq!(rows(&server).await, acknowledged);
    server.kill();
    server.wait_until_dead().await;

    // Without the limit, the directory has the same entities and accepts writes again.
    let server = Server::start(directory.path()).await;
    let found = rows(&server).await;
    let mut with_refused = acknowledged.clone();
    with_refused.insert(refused);
    assert!(found == acknowledged || found == with_refused);
    assert_eq!(put(&server, "more", "").await, 204);
}

/// Writes an entity. Returns the status.
async fn put(server: &Server, row: &str, filler: &str) -> u16 {
    let line = format!("PUT /people(PartitionKey='p',RowKey='{row}')");
    let body = format!(r#"{{"filler":"{filler}"}}"#);
    let response = server.send(&line, &[JSON], &body).await.unwrap();
    let is_refused = response.status == 500 && response.body.contains("InternalError");
    assert!(response.status == 204 || is_refused, "{response:?}");
    response.status
}

/// Writes until a write is refused. Returns the rows that were acknowledged, and the one that was
/// not.
async fn fill(
    server: &Server,
    first: usize,
    filler: impl Fn() -> String,
) -> (BTreeSet<String>, String) {
    let mut acknowledged = BTreeSet::new();
    loop {
        let row = format!("{:06}", first + acknowledged.len());
        if put(server, &row, &filler()).await == 500 {
            return (acknowledged, row);
        }
        acknowledged.insert(row);
        assert!(acknowledged.len() < 5_000, "the disk is larger");
    }
}

/// That the entities can be read, and that a refused write is refused again, so many times.
async fn assert_read_only(server: &Server, written: &BTreeSet<String>, refused: &str, times: u32) {
    for number in 0..times {
        assert_eq!(rows(server).await, *written, "{number}");
        assert_eq!(put(server, refused, "").await, 500, "{number}");
    }
}

async fn rows(server: &Server) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    let mut query = "GET /people()?$select=RowKey".to_owned();
    loop {
        let response = server.send(&query, &[], "").await.unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        let page: serde_json::Value = serde_json::from_str(&response.body).unwrap();
        let page = page["value"].as_array().unwrap().iter();
        rows.extend(page.map(|row| row["RowKey"].as_str().unwrap().to_owned()));
        let next = |name| response.header(&format!("x-ms-continuation-{name}"));
        let Some(partition) = next("NextPartitionKey") else {
            return rows;
        };
        let row = next("NextRowKey").unwrap();
        query =
            format!("GET /people()?$select=RowKey&NextPartitionKey={partition}&NextRowKey={row}");
    }
}

/// A small file system in memory, which only the processes of its namespace see. It is gone when
/// this is dropped.
struct SmallDisk {
    /// Keeps the namespace.
    holder: Child,
    path: PathBuf,
}

impl SmallDisk {
    /// `None` where users may not create one. Standard error says so.
    fn new(path: &Path, mib: u32) -> Option<Self> {
        let script = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && echo mounted && exec cat";
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command.args(["sh", "-c", script, "sh"]);
        command.arg(format!("{mib}m")).arg(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut line = String::new();
        let holder = command.spawn().and_then(|mut holder| {
            let stdout = holder.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
            BufReader::new(stdout).read_line(&mut line)?;
            Ok(holder)
        });
        match holder {
            Ok(holder) if line == "mounted\n" => Some(Self {
                holder,
                path: path.to_owned(),
            }),
            failed => {
                eprintln!("SKIPPED: no file system of its own: {failed:?}");
                None
            }
        }
    }

    /// Starts the program with a data directory on it, and a log in this file.
    async fn start(&self, log: &Path) -> Server {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--mount", "--preserve-credentials"]);
        command.args(["--target", &self.holder.id().to_string()]);
        command.arg(program()).args(["--port", "0", "--data"]);
        command.arg(self.path.join("data"));
        command.stderr(File::create(log).unwrap());
        Server::start_as(command).await
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test]
async fn a_disk_without_room_for_a_table_ends_writes_once_but_not_reads() {
    let place = tempfile::tempdir().unwrap();
    let disk = place.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    // For a journal that is as long as a memory table, and a part of the table.
    let Some(disk) = SmallDisk::new(&disk, 24) else {
        return;
    };
    let mut written = BTreeSet::new();
    let mut refused = String::new();
    for round in ["new", "restarted"] {
        let log = place.path().join(round);
        let server = disk.start(&log).await;
        let created = server.create("people").await;
        assert!([201, 409, 500].contains(&created), "{created}");
        if rows(&server).await.contains(&refused) {
            // It was written, and then the disk was full.
            written.insert(refused);
        }
        let (acknowledged, last) = fill(&server, written.len(), || "x".repeat(30_000)).await;
        written.extend(acknowledged);
        refused = last;
        assert_read_only(&server, &written, &refused, 20).await;
        server.kill();
        server.wait_until_dead().await;
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(log.matches("takes no more writes").count(), 1, "{log}");
        assert_eq!(log.matches("opened anew").count(), 0, "{log}");
    }
}
