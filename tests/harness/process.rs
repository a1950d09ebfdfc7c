//! The server as a separate process: a test can start, halt, kill and restart it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock};

use fastrand::Rng;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A running `tablesdk-server`. The process is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    connection_string: String,
    address: SocketAddr,
    id: u32,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// Runs the command, which starts the program, and waits until the server can be reached.
    ///
    /// # Errors
    ///
    /// When the process ends before that.
    pub async fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        // Why it ended stands on standard error.
        let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
        let (_, text) = line
            .split_once(" listens on ")
            .ok_or_else(|| io::Error::other(format!("an unexpected line: {line}")))?;
        // Not of accounts that the program was given.
        let connection_string = text.split_once("connection string: ");
        let address = text.split(['/', ',']).nth(2).unwrap_or_default();
        Ok(Self {
            connection_string: connection_string
                .map_or_else(String::new, |(_, text)| text.to_owned()),
            address: address.parse().map_err(io::Error::other)?,
            id: child.id().ok_or(io::ErrorKind::NotFound)?,
            child: Mutex::new(Some(child)),
        })
    }

    /// The connection string of a client; empty if the program was started with accounts.
    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }

    /// A part of the connection string, such as `AccountName`.
    pub fn part(&self, name: &str) -> &str {
        part(&self.connection_string, name)
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The operating system's number of the process.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Sends a signal: `STOP` halts the process at any point, `CONT` continues it.
    pub fn signal(&self, name: &str) {
        let kill = std::process::Command::new("kill")
            .args(["-s", name, &self.id.to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Ends the process at once, with a signal that it cannot handle.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        child.as_mut().unwrap().start_kill().unwrap();
    }

    /// Returns when the process is gone, and its data directory free.
    pub async fn wait_until_dead(&self) {
        let child = self.child.lock().unwrap().take();
        child.unwrap().wait().await.unwrap();
    }
}

fn part<'t>(connection_string: &'t str, name: &str) -> &'t str {
    let parts = connection_string.trim().split(';');
    let mut parts = parts.filter_map(|part| part.split_once('='));
    parts
        .find(|(key, _)| *key == name)
        .map_or("", |(_, value)| value)
}

/// The path of the program, built in the profile that the running test was built in. It is next to
/// the directory of the tests.
pub fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        // With an example, cargo selects the features of a run of all tests, which has built it.
        let arguments = "build --quiet --workspace --bin tablesdk-server --example first_program";
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(arguments.split(' '));
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

/// A port below those that the system gives to connections, so that it is still free after a kill.
pub fn free_port(rng: &mut Rng) -> u16 {
    loop {
        let port = rng.u16(20_000..30_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
