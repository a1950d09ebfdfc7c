//! The same type as in `open_files.rs`, without the feature `network`: the limit of open files is
//! not known.

#![expect(clippy::unused_self, reason = "the methods of the other type")]

use std::io;
use std::num::NonZeroUsize;

/// The maximum number of connections.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    pub(super) max_connections: usize,
}

impl ConnectionLimit {
    pub(super) const fn new(wanted: NonZeroUsize) -> Self {
        Self {
            max_connections: wanted.get(),
        }
    }

    pub(super) const fn log_reached(&mut self) {}

    pub(super) fn log_failure(&mut self, error: &io::Error) {
        tracing::warn!(%error, "no connection can be accepted");
    }
}
