//! Counts the requests of a commit before it is sent. Knows no pattern: each layer counts its own.

use super::ride::{Commit, Riders};
use crate::pipeline::Table;

/// The requests of a commit that meets neither another client nor an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestCount {
    pub(crate) requests: usize,
    /// The changes of the request that carries out those of the program.
    pub(crate) changes: usize,
    /// The rule for further requests; `None` where the number is exact.
    pub(crate) more: Option<&'static str>,
}

impl RequestCount {
    /// Counts changes that are sent as one request, with what goes along with them.
    pub(crate) fn of(table: &Table, commit: Commit<'_>) -> Self {
        let mut count = Self {
            requests: 1,
            changes: commit.changes.len(),
            more: None,
        };
        if let Some(keep) = commit.exactly_once {
            count.changes += 1;
            // The delete of the marker.
            count.requests += usize::from(keep.0.is_zero());
        }
        let mut all = commit.all_riders().flat_map(Riders::iter);
        count.requests += usize::from(all.any(|rider| rider.reads_first(table)));
        for layer in commit.layers() {
            (layer.count)(commit, &mut count);
        }
        count
    }
}
