//! The processor time of a server. It measures the cost of a response even if the machine runs
//! other programs.
//!
//! It is read from Linux's `/proc`; on other systems, and for a server elsewhere, it is not known.

use std::fs;
use std::time::Duration;

/// Where a server runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cpu {
    /// On the threads of this process with that name.
    Threads(&'static str),
    /// In the process with that id.
    Process(u32),
}

impl Cpu {
    /// The processor time that the server has used; `None` if it cannot be read.
    pub(crate) fn time(self) -> Option<Duration> {
        let (directory, name) = match self {
            Self::Threads(name) => ("/proc/self/task".to_owned(), Some(name)),
            Self::Process(id) => (format!("/proc/{id}/task"), None),
        };
        let mut time = Duration::ZERO;
        for thread in fs::read_dir(directory).ok()? {
            let directory = thread.ok()?.path();
            let is_of_server = match name {
                Some(name) => fs::read_to_string(directory.join("comm")).ok()?.trim_end() == name,
                None => true,
            };
            if is_of_server {
                let statistics = fs::read_to_string(directory.join("schedstat")).ok()?;
                let nanoseconds = statistics.split(' ').next()?.parse().ok()?;
                time += Duration::from_nanos(nanoseconds);
            }
        }
        Some(time)
    }
}
