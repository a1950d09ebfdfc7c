//! The server as a separate process, and a client that sends raw requests to it without our client library's encoder.

use std::io;
use std::path::Path;

use harness::process::{Process, program};
use http::{HeaderMap, HeaderValue, Method, Uri};
use tablesdk::{ETag, SharedKey, Timestamp};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

pub(crate) struct Server {
    key: SharedKey,
    process: Process,
}

/// A response, parsed.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The time of the version in the answer.
    pub(crate) fn timestamp(&self) -> Option<Timestamp> {
        let mut lines = self.head.lines();
        let etag = lines.find_map(|line| line.strip_prefix("etag: "))?;
        ETag::from_opaque(etag).timestamp()
    }
}

impl Server {
    /// Starts the program with a data directory, and waits until it can be reached.
    pub(crate) async fn start(folder: &Path) -> Self {
        let mut command = Command::new(program());
        command.args(["--port", "0", "--data"]).arg(folder);
        Self::start_as(command).await
    }

    /// As [`Self::start`], but no file may grow beyond that many KiB: a write beyond the limit fails with an error.
    pub(crate) async fn start_with_file_limit(folder: &Path, kib: u64) -> Self {
        let mut command = Command::new("bash");
        let script = format!("ulimit -f {kib}; trap '' XFSZ; exec \"$@\"");
        command.args(["-c", &script, "limited"]).arg(program());
        command.args(["--port", "0", "--data"]).arg(folder);
        Self::start_as(command).await
    }

    async fn start_as(command: Command) -> Self {
        let process = Process::start(command).await.unwrap();
        Self {
            key: SharedKey::new(process.part("AccountName"), process.part("AccountKey")).unwrap(),
            process,
        }
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

    /// Sends a signed request to a path below the account. An error means that the outcome of the request is unknown.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        let account = self.key.account();
        let target = format!("/{account}{path}");
        let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
        let mut map = HeaderMap::new();
        map.insert("x-ms-date", now.to_http_date().parse().unwrap());
        map.insert("content-type", HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let verb = Method::from_bytes(method.as_bytes()).unwrap();
        let uri: Uri = target.parse().unwrap();
        let text = string_to_sign(Scheme::SharedKey, account, &verb, &uri, &map);
        let signature = self.key.sign(&text);
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: application/json;odata=nometadata\r\n\
             Authorization: SharedKey {account}:{}\r\nContent-Length: {}\r\n",
            self.process.address(),
            signature.expose(),
            body.len()
        );
        for (name, value) in &map {
            request += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        request = request + "\r\n" + body;

        let mut socket = TcpStream::connect(self.process.address()).await?;
        socket.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await?;
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if length.is_some_and(|length| length.parse() != Ok(body.len())) {
            return Err(cut());
        }
        let status = head.split(' ').nth(1).unwrap();
        Ok(Answer {
            status: status.parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }
}
