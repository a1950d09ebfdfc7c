//! One run of the program `postgres`, which ends with the test at the latest.
//!
//! A shell starts it and waits for the end of its own input, which is a pipe from the test: however
//! the test ends, its end of the pipe is closed, and the shell ends the cluster and deletes its
//! directory.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Programs;

/// `$0` is the directory; the other arguments are the command. It prints the number of the process.
///
/// A signal for an immediate end would be lost if it arrived before the program expects it. The
/// other one ends the program also then, and would wait for connections otherwise; both together
/// end it at once.
const GUARD: &str = r#"
trap '' INT HUP
"$@" </dev/null >/dev/null &
echo $!
exec >/dev/null 2>&1
if read -r line; then wait; exit; fi
kill -s TERM $!
kill -s QUIT $!
wait
rm -rf "$0"
"#;

/// How long a start may take: after a crash, it reads the log.
const START_MAX: Duration = Duration::from_secs(60);

/// A running cluster. Its end deletes the directory.
#[derive(Debug)]
pub(super) struct Process {
    guard: Child,
    id: u32,
    /// Ends when the last process of the cluster has ended.
    output: Option<JoinHandle<()>>,
}

/// Why a cluster did not start.
#[derive(Debug)]
pub(super) enum StartError {
    /// Another program listens on the port.
    PortTaken,
    /// The reason, from the log.
    Other(String),
}

impl Process {
    /// Starts the cluster in `data`, and waits until it accepts connections. `directory` contains
    /// `data`, and is what is deleted.
    pub(super) fn start(
        programs: &Programs,
        directory: &Path,
        data: &Path,
        settings: &[String],
    ) -> Result<Self, StartError> {
        let mut command = programs.as_user("sh", directory);
        command.arg("-c").arg(GUARD).arg(directory);
        command.arg(programs.path("postgres")).arg("-D").arg(data);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let mut guard = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let (stdout, stderr) = (guard.stdout.take(), guard.stderr.take());
        let mut id = String::new();
        BufReader::new(stdout.expect("it is a pipe"))
            .read_line(&mut id)
            .expect("the shell prints a number");

        let (sender, receiver) = mpsc::channel();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = Arc::clone(&log);
        let mut stderr = BufReader::new(stderr.expect("it is a pipe"));
        let output = std::thread::spawn(move || {
            let mut line = String::new();
            while let Ok(1..) = stderr.read_line(&mut line) {
                // Of a standby, it continues with other words.
                if line.contains("database system is ready to accept") {
                    sender.send(()).ok();
                    break;
                }
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.push_str(&std::mem::take(&mut line));
            }
            drop(sender);
            // The rest, or the cluster would wait for a reader.
            let mut rest = [0; 8192];
            while let Ok(1..) = stderr.read(&mut rest) {}
        });
        let mut process = Self {
            guard,
            id: id.trim().parse().expect("the shell prints a number"),
            output: Some(output),
        };
        match receiver.recv_timeout(START_MAX) {
            Ok(()) => Ok(process),
            Err(why) => {
                let log = log.lock().unwrap_or_else(PoisonError::into_inner);
                if why == RecvTimeoutError::Timeout {
                    return Err(StartError::Other(format!("no end of the start:\n{log}")));
                }
                // Without the deletion of the directory.
                process.release();
                if log.contains("Address already in use") {
                    return Err(StartError::PortTaken);
                }
                Err(StartError::Other(log.clone()))
            }
        }
    }

    /// Sends a signal to the first process of the cluster, `INT` for an end as operators have it,
    /// or `KILL`. Waits until all its processes have ended.
    pub(super) fn end(mut self, signal: &str) {
        // The program `kill` is not on every machine; shells have a command of that name.
        let status = Command::new("sh")
            .args(["-c", "kill -s $0 $1", signal, &self.id.to_string()])
            .status();
        assert!(status.expect("a shell can be started").success());
        self.release();
    }

    /// Waits until all processes have ended, and ends the guard without the deletion.
    fn release(&mut self) {
        if let Some(output) = self.output.take() {
            output.join().expect("a reader does not panic");
        }
        if let Some(mut stdin) = self.guard.stdin.take() {
            stdin.write_all(b"ended\n").ok();
        }
        self.guard.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().ok();
    }
}
