//! Counts the requests of a commit before it is sent. Knows no pattern: each layer counts its own.

use std::ptr;

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
        let of_changes = commit.changes.iter().map(|change| &change.riders);
        let riders: Vec<_> = [commit.riders].into_iter().chain(of_changes).collect();
        let mut all = riders.iter().flat_map(|riders| riders.iter());
        count.requests += usize::from(all.any(|rider| rider.reads_first(table)));
        let mut layers: Vec<_> = riders.iter().copied().flat_map(Riders::layers).collect();
        layers.sort_by_key(|layer| layer.order);
        layers.dedup_by(|one, other| ptr::eq(*one, *other));
        for layer in layers {
            (layer.count)(commit, &mut count);
        }
        count
    }
}
