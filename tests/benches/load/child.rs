//! The server as a separate process, so that its memory, its data directory and its start can be measured.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that runs until this is dropped.
pub(crate) struct ChildServer {
    program: PathBuf,
    directory: Option<tempfile::TempDir>,
    child: Child,
    connection_string: String,
    started_within: Duration,
}

impl ChildServer {
    /// Starts the program, with its tables in memory or in a data directory within the working directory.
    pub(crate) fn start(program: &Path, in_directory: bool) -> Result<Self, Box<dyn Error>> {
        let directory = in_directory
            .then(|| tempfile::tempdir_in(std::env::current_dir()?))
            .transpose()?;
        let (child, connection_string, started_within) =
            start(program, directory.as_ref().map(tempfile::TempDir::path))?;
        Ok(Self {
            program: program.to_owned(),
            directory,
            child,
            connection_string,
            started_within,
        })
    }

    pub(crate) fn connection_string(&self) -> &str {
        &self.connection_string
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program and starts it again, if it has a data directory.
    pub(crate) fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(directory) = &self.directory {
            self.child.kill()?;
            self.child.wait()?;
            let (child, text, within) = start(&self.program, Some(directory.path()))?;
            self.child = child;
            self.connection_string = text;
            self.started_within = within;
        }
        Ok(())
    }

    /// What it takes of memory and disk, and how long it took to start.
    pub(crate) fn footprint(&self) -> String {
        let mut text = format!("started within {} ms", self.started_within.as_millis());
        if let Some(bytes) = resident_bytes(self.child.id()) {
            text += &format!(", {} MiB of memory", bytes >> 20);
        }
        if let Some(directory) = &self.directory {
            text += &format!(", {} MiB on disk", used_bytes(directory.path()) >> 20);
        }
        text
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(
    program: &Path,
    directory: Option<&Path>,
) -> Result<(Child, String, Duration), Box<dyn Error>> {
    let began = Instant::now();
    let mut command = Command::new(program);
    command.args(["--port", "0"]).stdout(Stdio::piped());
    if let Some(directory) = directory {
        command.arg("--data").arg(directory);
    }
    let mut child = command.spawn()?;
    let mut line = String::new();
    let stdout = child.stdout.take().ok_or("the program has no output")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let started_within = began.elapsed();
    let (_, text) = line
        .split_once("connection string: ")
        .ok_or("the program does not say where it is")?;
    Ok((child, text.trim().to_owned(), started_within))
}

/// Of a process, as Linux counts; `None` elsewhere.
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
