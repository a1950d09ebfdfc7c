//! Which snapshots of the embedded store are in use: what they see is kept, and the store is not closed meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::SeqNo;

/// The sequence numbers of the snapshots in use, and how many snapshots have each.
#[derive(Clone, Default)]
pub(super) struct Snapshots(Arc<Mutex<BTreeMap<SeqNo, usize>>>);

impl Snapshots {
    /// Adds a snapshot that has this sequence number or a later one.
    pub(super) fn add(&self, number: SeqNo) -> InUse {
        *self.lock().entry(number).or_default() += 1;
        InUse(self.clone(), number)
    }

    pub(super) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    /// The first sequence number; 0 if there is no snapshot.
    pub(super) fn first(&self) -> SeqNo {
        let numbers = self.lock();
        numbers.keys().next().copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a snapshot until it is dropped.
pub(super) struct InUse(Snapshots, SeqNo);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut numbers = self.0.lock();
        if let Some(count) = numbers.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                numbers.remove(&self.1);
            }
        }
    }
}
