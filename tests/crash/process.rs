//! The server as a process of its own, and a client of it that knows nothing of ours.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use http::{HeaderMap, HeaderValue, Method, Uri};
use tablesdk::{ETag, SharedKey, Timestamp};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

pub(crate) struct Server {
    address: SocketAddr,
    key: SharedKey,
    child: Mutex<Option<Child>>,
}

/// An answer, taken apart.
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
    /// Starts the program on a folder, and waits until it can be reached.
    pub(crate) async fn start(folder: &Path) -> Self {
        let mut command = Command::new(program());
        command.args(["--port", "0", "--data"]).arg(folder);
        Self::start_as(command).await
    }

    /// The same, but no file may grow beyond that many KiB, and whoever tries is told so.
    pub(crate) async fn start_with_file_limit(folder: &Path, kib: u64) -> Self {
        let mut command = Command::new("bash");
        let script = format!("ulimit -f {kib}; trap '' XFSZ; exec \"$@\"");
        command.args(["-c", &script, "limited"]).arg(program());
        command.args(["--port", "0", "--data"]).arg(folder);
        Self::start_as(command).await
    }

    async fn start_as(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap();
        let line = line.expect("the server says where it is, or why not on standard error");
        let (_, text) = line.split_once("connection string: ").unwrap();
        let part = |name: &str| {
            let mut parts = text.split(';').filter_map(|part| part.split_once('='));
            parts.find(|(key, _)| *key == name).unwrap().1
        };
        let address = part("TableEndpoint").split('/').nth(2).unwrap();
        Self {
            address: address.parse().unwrap(),
            key: SharedKey::new(part("AccountName"), part("AccountKey")).unwrap(),
            child: Mutex::new(Some(child)),
        }
    }

    /// Halts the process wherever it is, or lets it go on.
    pub(crate) fn signal(&self, name: &str) {
        let child = self.child.lock().unwrap();
        let id = child.as_ref().unwrap().id().unwrap().to_string();
        let kill = std::process::Command::new("kill")
            .args(["-s", name, &id])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Ends the process at once, with a signal that it cannot handle.
    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.as_mut().unwrap().start_kill().unwrap();
    }

    /// Returns when the process is gone, and its folder free.
    pub(crate) async fn wait_until_dead(&self) {
        let child = self.child.lock().unwrap().take();
        child.unwrap().wait().await.unwrap();
    }

    /// Sends a signed request to a path below the account. An error means that nobody knows what became of it.
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
            self.address,
            signature.expose(),
            body.len()
        );
        for (name, value) in &map {
            request += &format!("{name}: {}\r\n", value.to_str().unwrap());
        }
        request = request + "\r\n" + body;

        let mut socket = TcpStream::connect(self.address).await?;
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

/// The program, built as these tests are. It lies beside the folder of the tests' own.
fn program() -> PathBuf {
    static PROGRAM: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let build = || {
        let arguments = ["build", "--quiet", "--package", "tablesdk-server", "--bin"];
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(arguments).arg("tablesdk-server");
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        cargo.arg("--target-dir").arg(profile.parent().unwrap());
        assert!(cargo.status().unwrap().success(), "cannot build the server");
        profile.join(format!("tablesdk-server{}", std::env::consts::EXE_SUFFIX))
    };
    PROGRAM.get_or_init(build).clone()
}
