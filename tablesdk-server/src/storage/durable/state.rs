//! The state that the writers of a durable storage share: the writes that are pending or being
//! written, the durable records, and why writes are refused.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::directory::Directory;
use super::durability::Durability;
use super::overlay::Writes;
use super::store::{self, StoredRecords};
use super::writer::Turn;
use crate::storage::{StorageError, WriteBatch};

/// The parts of a durable storage that its threads use.
pub(super) struct Shared {
    pub(super) state: Mutex<StoreState>,
    /// Notified when a write is pending, or when the storage is closing.
    pub(super) changed: Condvar,
    pub(super) durability: Durability,
    /// Held until the embedded store is closed.
    pub(super) directory: Directory,
}

pub(super) struct StoreState {
    /// Whose turn it is to write.
    pub(super) turn: Turn,
    /// How often the writing thread still checks, after the last write, whether the embedded store
    /// has stopped.
    pub(super) looks: u32,
    /// How many writers waited for the last group of writes.
    pub(super) last_writers: usize,
    /// Decided writes that are in no group yet.
    pub(super) pending: Group,
    /// The group that is being written.
    pub(super) writing: Writes,
    /// The size of `writing` in bytes.
    pub(super) writing_bytes: usize,
    /// The epoch that the last write in `writing` starts, if one does.
    pub(super) writing_epoch: Option<u64>,
    /// The last epoch that a batch has started, whether it became durable or not.
    pub(super) last_epoch: u64,
    /// The epoch of the durable records.
    pub(super) durable_epoch: u64,
    /// The durable records; `None` while the embedded store is closed and about to be opened again.
    pub(super) durable: Option<StoredRecords>,
    /// Why writes are refused.
    pub(super) failed: Option<StorageError>,
    pub(super) is_closing: bool,
}

/// Writes that share a sync.
pub(super) struct Group {
    pub(super) writes: Writes,
    pub(super) bytes: usize,
    /// The last epoch that a batch of the group starts, if one does.
    pub(super) epoch: Option<u64>,
    pub(super) waiting: Vec<Waiting>,
}

/// Notifies a writer that waits until its write is durable.
pub(super) type Waiting = oneshot::Sender<Result<(), StorageError>>;

impl Group {
    pub(super) fn new() -> Self {
        Self {
            writes: Writes::default(),
            bytes: 0,
            epoch: None,
            waiting: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, batch: &WriteBatch) {
        self.bytes = self.bytes.saturating_add(batch.bytes());
        self.writes.add(batch);
    }
}

impl StoreState {
    /// Refuses all writes from now on. Only the first reason is logged, unless it was temporary and
    /// this one is not.
    pub(super) fn fail(&mut self, error: StorageError) {
        let is_new = match &self.failed {
            None => true,
            Some(failed) => failed.is_temporary() && !error.is_temporary(),
        };
        if is_new {
            tracing::error!(%error, "the data directory takes no more writes");
            self.failed = Some(error);
        }
    }

    /// Returns true if the next write would be alone in its group, as the last one was. Any other
    /// group would delay the writers that are about to come.
    pub(super) fn is_lone(&self) -> bool {
        self.turn.is_free() && self.pending.waiting.is_empty() && self.last_writers <= 1
    }

    pub(super) fn has_temporary_failure(&self) -> bool {
        let failed = self.failed.as_ref();
        failed.is_some_and(StorageError::is_temporary)
    }

    /// Why nothing can be read while the embedded store is closed.
    pub(super) fn unreadable(&self) -> StorageError {
        match &self.failed {
            Some(StorageError::Exhausted { .. }) => StorageError::Exhausted { what: "read" },
            Some(StorageError::Stopped { .. }) => StorageError::Stopped { what: "read" },
            Some(failed) => failed.clone(),
            None => StorageError::Closed,
        }
    }

    pub(super) fn has_backpressure(&self) -> bool {
        // After a failure no write is in flight, and the next writer must get the error instead of
        // waiting.
        self.failed.is_none() && self.pending.bytes.saturating_add(self.writing_bytes) >= BYTES_MAX
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, StoreState> {
        // Nothing that holds the lock panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses all writes from now on if the data directory was removed, moved or replaced.
    pub(super) fn check_in_place(&self) {
        if let Err(error) = self.look_in_place() {
            self.state().fail(error);
        }
    }

    pub(super) fn look_in_place(&self) -> Result<(), StorageError> {
        let in_place = self.directory.check_in_place();
        in_place.map_err(|error| store::failed("write", &error))
    }
}

/// The maximum size of the writes in flight, written or pending, before writers have to wait. A
/// writer waits before it decides its batch, there is one writer at a time, and one more batch is
/// always accepted. So the size never exceeds this value plus the largest batch, which is a hundred
/// merges into entities of 1 MiB, with their JSON.
pub(super) const BYTES_MAX: usize = 64 * 1024 * 1024;
