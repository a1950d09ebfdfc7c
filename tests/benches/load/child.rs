//! A server as a separate process, so that its processor time, its memory, its data directory and
//! its start can be measured.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cores::Cores;

/// The server that a child process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Azurite, by the file of its program for tables.
    Azurite(PathBuf),
    /// The plain server of this program.
    Plain,
    /// A `tablesdk-server`.
    Program(PathBuf),
    /// The same, with its tables in a database, and so many connections to it.
    Store {
        program: PathBuf,
        url: String,
        connections: usize,
    },
}

impl Subject {
    /// Azurite, where `tests/interop/install.sh` installs it.
    pub(crate) fn azurite() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
        Self::Azurite(target.join("interop/node/node_modules/.bin/azurite-table"))
    }

    /// Returns true if the program of the server exists.
    pub(crate) fn is_installed(&self) -> bool {
        match self {
            Self::Azurite(file) | Self::Program(file) | Self::Store { program: file, .. } => {
                file.exists()
            }
            Self::Plain => true,
        }
    }

    /// The command that starts it, with its tables in memory or in a directory.
    fn command(&self, directory: Option<&Path>, cores: Cores) -> Result<Command, Box<dyn Error>> {
        let program = match self {
            Self::Azurite(file) | Self::Program(file) | Self::Store { program: file, .. } => {
                file.clone()
            }
            Self::Plain => std::env::current_exe()?,
        };
        let mut command = cores.command(&program);
        match self {
            Self::Azurite(_) => {
                // Azurite does not say which port it has, so that a free one is chosen here.
                let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
                    .local_addr()?
                    .port();
                command.args([
                    "--inMemoryPersistence",
                    "--skipApiVersionCheck",
                    "--disableTelemetry",
                ]);
                command.args(["--tableHost", "127.0.0.1", "--tablePort", &port.to_string()]);
            }
            Self::Plain => {
                command.arg("plain");
            }
            Self::Program(_) => {
                command.args(["--port", "0"]);
            }
            Self::Store {
                url, connections, ..
            } => {
                command.args(["--port", "0", "--store", url]);
                command.args(["--store-connections", &connections.to_string()]);
            }
        }
        if let Some(directory) = directory {
            command.arg("--data").arg(directory);
        }
        Ok(command)
    }
}

impl From<&str> for Subject {
    /// A program, or one of the others by its name.
    fn from(text: &str) -> Self {
        match text {
            "azurite" => Self::azurite(),
            "plain" => Self::Plain,
            file => Self::Program(file.into()),
        }
    }
}

/// A process that runs until this is dropped.
pub(crate) struct ChildServer {
    subject: Subject,
    directory: Option<tempfile::TempDir>,
    cores: Cores,
    running: Running,
}

struct Running {
    child: Child,
    connection_string: String,
    started_within: Duration,
}

impl ChildServer {
    /// Starts a server, with its tables in memory or in a data directory within the working
    /// directory.
    pub(crate) fn start(
        subject: &Subject,
        in_directory: bool,
        cores: Cores,
    ) -> Result<Self, Box<dyn Error>> {
        let directory = in_directory
            .then(|| tempfile::tempdir_in(std::env::current_dir()?))
            .transpose()?;
        let path = directory.as_ref().map(tempfile::TempDir::path);
        let running = start(subject, path, cores)?;
        Ok(Self {
            subject: subject.clone(),
            directory,
            cores,
            running,
        })
    }

    pub(crate) fn connection_string(&self) -> &str {
        &self.running.connection_string
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.child.id()
    }

    /// Where its tables are, if not in memory.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_ref().map(tempfile::TempDir::path)
    }

    /// Kills the process and starts it again, if it has a data directory.
    pub(crate) fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(directory) = &self.directory {
            self.running.child.kill()?;
            self.running.child.wait()?;
            self.running = start(&self.subject, Some(directory.path()), self.cores)?;
        }
        Ok(())
    }

    /// The memory and disk space of the process, and the time that its start took.
    pub(crate) fn footprint(&self) -> String {
        let mut text = format!(
            "started within {} ms",
            self.running.started_within.as_millis()
        );
        if let Some(bytes) = resident_bytes(self.id()) {
            text += &format!(", {} MiB of memory", bytes >> 20);
        }
        if let Some(directory) = self.directory() {
            text += &format!(", {} MiB on disk", used_bytes(directory) >> 20);
        }
        text
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        let _ = self.running.child.kill();
        let _ = self.running.child.wait();
    }
}

fn start(
    subject: &Subject,
    directory: Option<&Path>,
    cores: Cores,
) -> Result<Running, Box<dyn Error>> {
    let began = Instant::now();
    let mut command = subject.command(directory, cores)?;
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("the program has no output")?);
    let mut line = String::new();
    let connection_string = loop {
        line.clear();
        if stdout.read_line(&mut line)? == 0 {
            return Err("the program ended before it served".into());
        }
        if let Some((_, text)) = line.split_once("connection string: ") {
            break text.trim().to_owned();
        }
        if let Some((_, address)) = line.split_once("successfully started on ") {
            break format!(
                "AccountName={AZURITE};AccountKey={AZURITE_KEY};TableEndpoint=http://{}/{AZURITE}",
                address.trim()
            );
        }
    };
    let started_within = began.elapsed();
    // Azurite logs each request, and must not wait for a reader.
    thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    Ok(Running {
        child,
        connection_string,
        started_within,
    })
}

/// The resident memory of a process, as Linux counts it; `None` elsewhere.
pub(crate) fn resident_bytes(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The disk space of the files below a directory.
fn used_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            used_bytes(&path)
        } else {
            entry.metadata().map_or(0, |metadata| blocks(&metadata))
        }
    });
    sizes.sum()
}

#[cfg(unix)]
fn blocks(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;

    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn blocks(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// The development account.
const AZURITE: &str = "devstoreaccount1";
const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
