//! On which core a thread runs: the measured server has one, and the load another. Where the system
//! has no `taskset`, or only one core, nothing is pinned.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The core of the servers that are measured by their processor time.
pub(crate) const SERVERS: Cores = Cores::One(0);
/// The core of the load.
pub(crate) const LOAD: Cores = Cores::One(1);

/// The cores on which a thread may run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cores {
    All,
    One(usize),
}

impl Cores {
    /// As `taskset` takes it; `None` if the machine has no such core.
    fn list(self) -> Option<String> {
        let count = thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::All => Some(format!("0-{}", MOST - 1)),
            Self::One(core) => (core < count.max(2)).then(|| core.to_string()),
        }
    }

    /// Pins the main thread, and those that it starts from now on. Call it from the main thread
    /// alone.
    pub(crate) fn pin(self) {
        let Some(list) = self.list() else { return };
        let mut command = Command::new("taskset");
        command.args(["-cp", &list, &std::process::id().to_string()]);
        // Without it the figures are less stable, and no less true.
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    /// A command that runs a program on these cores.
    pub(crate) fn command(self, program: &Path) -> Command {
        let is_possible = || Command::new("taskset").arg("-V").output().is_ok();
        match self.list().filter(|_| is_possible()) {
            Some(list) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &list]).arg(program);
                command
            }
            None => Command::new(program),
        }
    }
}

/// No machine has more cores; those that it does not have are ignored.
const MOST: usize = 1024;
