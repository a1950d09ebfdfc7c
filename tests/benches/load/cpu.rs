//! The processor time of a server's threads. It measures the cost of a response even if the machine runs other programs.
//!
//! It is read from Linux's `/proc`; on other systems, and for a server in another process, it is not known.

use std::fs;
use std::time::Duration;

/// The processor time that the threads of that name have used; `None` if it cannot be read.
pub(crate) fn of_threads(name: &str) -> Option<Duration> {
    let mut time = Duration::ZERO;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let directory = thread.ok()?.path();
        if fs::read_to_string(directory.join("comm")).ok()?.trim_end() == name {
            let statistics = fs::read_to_string(directory.join("schedstat")).ok()?;
            let nanoseconds = statistics.split(' ').next()?.parse().ok()?;
            time += Duration::from_nanos(nanoseconds);
        }
    }
    Some(time)
}
