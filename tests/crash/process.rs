//! The server as a separate process, and a client that sends raw requests to it without our client
//! library's encoder.

use std::io;
use std::path::Path;

use harness::process::{Process, program};
use harness::raw::{RawClient, Response};
use tablesdk::{ETag, SharedKey, Timestamp};
use tokio::process::Command;

pub(crate) struct Server {
    client: RawClient,
    process: Process,
}

/// The time in the ETag of a response.
pub(crate) fn timestamp(response: &Response) -> Option<Timestamp> {
    ETag::from_opaque(response.header("etag")?).timestamp()
}

impl Server {
    /// Starts the program with a data directory, and waits until it can be reached.
    pub(crate) async fn start(directory: &Path) -> Self {
        let mut command = Command::new(program());
        command.args(["--port", "0", "--data"]).arg(directory);
        Self::start_as(command).await
    }

    /// As [`Self::start`], but no file may grow beyond that many KiB: a write beyond the limit
    /// fails with an error.
    pub(crate) async fn start_with_file_limit(directory: &Path, kib: u64) -> Self {
        let mut command = Command::new("bash");
        let script = format!("ulimit -f {kib}; trap '' XFSZ; exec \"$@\"");
        command.args(["-c", &script, "limited"]).arg(program());
        command.args(["--port", "0", "--data"]).arg(directory);
        Self::start_as(command).await
    }

    /// Runs a command that starts the program, and waits until it can be reached.
    pub(crate) async fn start_as(command: Command) -> Self {
        let process = Process::start(command).await.unwrap();
        let client = RawClient {
            address: process.address(),
            key: SharedKey::new(process.part("AccountName"), process.part("AccountKey")).unwrap(),
        };
        Self { client, process }
    }

    /// The memory that the process has now, where the system tells.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let (_, resident) = status.split_once("VmRSS:")?;
        let kib: u64 = resident.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    }

    /// Halts the process at any point, or lets it continue.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Ends the process at once, with a signal that it cannot handle.
    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    /// Returns when the process has ended and its data directory is free.
    pub(crate) async fn wait_until_dead(&self) {
        self.process.wait_until_dead().await;
    }

    /// Creates a table. Returns the status.
    pub(crate) async fn create(&self, table: &str) -> u16 {
        let body = format!(r#"{{"TableName":"{table}"}}"#);
        let created = self.send("POST /Tables", &[JSON], &body).await;
        created.unwrap().status
    }

    /// Sends a signed request. An error means that the outcome of the request is unknown.
    pub(crate) async fn send(
        &self,
        line: &str,
        headers: &[&str],
        body: &str,
    ) -> io::Result<Response> {
        let accept = "Accept: application/json;odata=nometadata";
        let headers = [headers, &[accept]].concat();
        self.client.send(true, line, &headers, body).await
    }
}

/// The body of a batch of these requests, each a request line with headers and a body.
pub(crate) fn batch(requests: impl IntoIterator<Item = String>) -> String {
    let parts = requests.into_iter().map(|request| {
        format!(
            "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             {request}\r\n"
        )
    });
    let parts: String = parts.collect();
    format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n\r\n--b--\r\n")
}

/// The type of the body of a batch.
pub(crate) const BATCH: &str = "Content-Type: multipart/mixed; boundary=b";
/// The type of the body of most requests.
pub(crate) const JSON: &str = "Content-Type: application/json";
