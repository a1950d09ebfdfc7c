//! [`EntityCounts`]: how many entities a request reads, for the journal of a test.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many entities a request has read.
#[derive(Debug, Default)]
pub(crate) struct EntityCounts {
    returned: AtomicUsize,
    examined: AtomicU64,
}

impl EntityCounts {
    /// Counts entities that a response contains.
    pub(crate) fn returned(&self, entities: usize) {
        self.returned.fetch_add(entities, Ordering::Relaxed);
    }

    /// Counts entities that were examined.
    pub(crate) fn examined(&self, entities: u64) {
        self.examined.fetch_add(entities, Ordering::Relaxed);
    }

    /// How many entities the response contains.
    pub(crate) fn all_returned(&self) -> usize {
        self.returned.load(Ordering::Relaxed)
    }

    /// How many entities were examined.
    pub(crate) fn all_examined(&self) -> u64 {
        self.examined.load(Ordering::Relaxed)
    }
}
