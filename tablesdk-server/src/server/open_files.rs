//! Limits the number of connections by the limit of open files.
//!
//! A connection is an open file, and so is every table of the store. If connections used all files
//! that the process may open, the store could not write any more. So the number of connections is
//! limited to the limit of open files minus a reserve.

use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use tokio::time::Instant;

use crate::storage::{self, process_files_max};

/// The maximum number of connections, and its reason.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    pub(super) max_connections: usize,
    /// The limit of open files, if it bounds the connections.
    files_max: Option<u64>,
    /// When it was last logged that the limit was reached.
    logged: Option<Instant>,
}

impl ConnectionLimit {
    /// The wanted number, or fewer if the process may not have as many files open.
    pub(super) fn new(wanted: NonZeroUsize) -> Self {
        let limit = process_files_max();
        let wanted = wanted.get();
        let max_connections = limit.map_or(wanted, |limit| within(wanted, limit, files_open()));
        let files_max = limit.filter(|_| max_connections < wanted);
        if files_max.is_some() {
            tracing::info!(
                max_connections,
                files_max,
                "the limit of open files allows fewer connections than wanted ({wanted})"
            );
        }
        Self {
            max_connections,
            files_max,
            logged: None,
        }
    }

    /// Logs, now and then, that all connections are taken.
    pub(super) fn log_reached(&mut self) {
        if !self.is_time_to_log() {
            return;
        }
        let max_connections = self.max_connections;
        match self.files_max {
            Some(files_max) => tracing::warn!(
                max_connections,
                files_max,
                "all connections are taken, so idle ones are closed for new ones: raise the limit of open files (ulimit -n)"
            ),
            None => tracing::warn!(
                max_connections,
                "all connections are taken, so idle ones are closed for new ones"
            ),
        }
    }

    /// Logs, now and then, that a connection could not be accepted.
    pub(super) fn log_failure(&mut self, error: &io::Error) {
        if !self.is_time_to_log() {
            return;
        }
        if storage::is_exhausted(error) {
            tracing::warn!(
                %error,
                files_max = process_files_max(),
                "no connection can be accepted, so idle ones are closed: raise the limit of open files (ulimit -n), or lower \
                 the number of connections"
            );
        } else {
            tracing::warn!(%error, "no connection can be accepted");
        }
    }

    fn is_time_to_log(&mut self) -> bool {
        let now = Instant::now();
        let is_time = self.logged.is_none_or(|last| now - last >= LOG_INTERVAL);
        if is_time {
            self.logged = Some(now);
        }
        is_time
    }
}

fn within(wanted: usize, files_max: u64, files_open: u64) -> usize {
    let reserve = storage::files_max(Some(files_max)) + RESERVE;
    let left = files_max.saturating_sub(files_open + reserve);
    // With such a low limit the server may fail, but without connections it is useless.
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    wanted.min(left.max(CONNECTIONS_MIN))
}

/// The number of open files of the process.
fn files_open() -> u64 {
    let open = std::fs::read_dir("/dev/fd").map(Iterator::count);
    open.map_or(FILES_OPEN, |count| u64::try_from(count).unwrap_or(u64::MAX))
}

/// Files that belong neither to connections nor to the store: for operators, backups and
/// certificates.
const RESERVE: u64 = 32;
/// The minimum number of connections, even if the limit of open files is lower.
const CONNECTIONS_MIN: usize = 8;
/// The assumed number of open files where `/dev/fd` cannot be read.
const FILES_OPEN: u64 = 32;
/// The minimum time between two log events.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_the_files_of_the_store() {
        assert_eq!(within(10_000, 20_000, 20), 10_000);
        assert_eq!(within(10_000, 1024, 20), 1024 - 20 - 128 - 32);
        assert_eq!(within(100, 1024, 20), 100);
        assert_eq!(within(10_000, 64, 20), CONNECTIONS_MIN);
    }

    #[cfg(unix)]
    #[test]
    fn the_limit_and_the_open_files_of_this_process_are_known() {
        let before = files_open();
        let file = std::fs::File::open("/dev/null").unwrap();
        // Other tests open and close files meanwhile, but not all that are open.
        assert!(before > 3 && files_open() > 3);
        assert!(process_files_max().is_none_or(|limit| limit > before));
        drop(file);
        let exhausted = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(storage::is_exhausted(&exhausted));
    }
}
