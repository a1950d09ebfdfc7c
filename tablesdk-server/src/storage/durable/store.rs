//! The open embedded store: writes groups of writes and reads records.
//!
//! The store's background threads end at their first error and do not report it; from then on the store accepts no writes.

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fjall::{AbstractTree as _, Database, Keyspace, PersistMode, Readable as _};

use super::Durability;
use super::group_mark::{GROUP_KEY, GroupMark};
use super::overlay::Writes;
use super::recovery::Opened;
use super::watermark::Watermark;
use crate::storage::{Records, Slice, Snapshot, StorageError, is_exhausted};

/// The open embedded store.
pub(super) struct Store {
    database: Database,
    records: Keyspace,
    durability: Durability,
    watermark: Watermark,
    /// Counts the snapshots, which share it.
    readers: Arc<()>,
}

/// Why a group was not acknowledged.
pub(super) enum WriteError {
    /// The store had stopped before, so nothing of the group was written.
    Stopped,
    /// The outcome is unknown.
    Failed(StorageError),
}

impl Store {
    pub(super) fn new(opened: Opened, durability: Durability) -> Self {
        Self {
            database: opened.database,
            records: opened.records,
            durability,
            watermark: opened.watermark,
            readers: Arc::default(),
        }
    }

    /// A snapshot of everything that is written, which has this epoch.
    pub(super) fn durable_records(&self, epoch: u64) -> StoredRecords {
        StoredRecords(Arc::new(Stored {
            epoch,
            snapshot: self.database.snapshot(),
            records: self.records.clone(),
            _readers: Arc::clone(&self.readers),
        }))
    }

    /// Closes the store, unless snapshots of it other than `durable` are in use.
    ///
    /// # Errors
    ///
    /// Returns both arguments if there are such snapshots.
    pub(super) fn close(self, durable: StoredRecords) -> Result<(), (Self, StoredRecords)> {
        // Of `durable` and of all earlier ones. Nobody can get another one now.
        let is_read = Arc::strong_count(&durable.0) > 1 || Arc::strong_count(&self.readers) > 2;
        if is_read {
            return Err((self, durable));
        }
        drop(durable);
        let Self {
            database,
            records,
            readers,
            ..
        } = self;
        // The last reader has finished by now.
        let is_alone = Arc::into_inner(readers).is_some();
        debug_assert!(is_alone, "readers come from what the caller has given up");
        drop(records);
        // Ends the background threads, and unlocks the directory.
        drop(database);
        Ok(())
    }

    /// Returns an error if the store has stopped.
    pub(super) fn is_running(&self) -> Result<(), WriteError> {
        // The buffer is empty after each write, so this only checks.
        match self.database.persist(PersistMode::Buffer) {
            Ok(()) => Ok(()),
            Err(fjall::Error::Poisoned) => Err(WriteError::Stopped),
            Err(error) => Err(WriteError::Failed(failed("write", &error))),
        }
    }

    /// Writes a group as a whole, with its number.
    pub(super) fn write(&self, writes: &Writes, number: u64) -> Result<(), WriteError> {
        self.wait_for_room()?;
        let mode = match self.durability {
            Durability::Relaxed => PersistMode::Buffer,
            // The length of a journal and the times of its last change need no sync: it is created at its full length, and otherwise a sync
            // of the data includes the length.
            Durability::Sync => PersistMode::SyncData,
        };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, record) in writes.records() {
            batch.insert(&self.records, key, record);
        }
        for key in writes.removed() {
            batch.remove(&self.records, key);
        }
        let mark = GroupMark {
            number,
            sequence_min: self.database.seqno(),
        };
        batch.insert(&self.records, GROUP_KEY, mark.record());
        batch.commit().map_err(|error| match error {
            // Returned before anything is written, and at no other time.
            fjall::Error::Poisoned => WriteError::Stopped,
            error => WriteError::Failed(failed("write", &error)),
        })?;
        match self.durability {
            // A power loss may undo it, so the watermark stays.
            Durability::Relaxed => Ok(()),
            Durability::Sync => self.set_watermark(number).map_err(WriteError::Failed),
        }
    }

    /// Waits until the background threads have caught up. The store does so itself within a write, but waits for ever if its
    /// background threads have stopped.
    fn wait_for_room(&self) -> Result<(), WriteError> {
        let tree = &self.records.tree;
        while tree.sealed_memtable_count() >= SEALED_MEMTABLES_MAX
            || tree.l0_run_count() >= RUNS_MAX
        {
            self.is_running()?;
            thread::sleep(ROOM_INTERVAL);
        }
        Ok(())
    }

    /// Syncs all groups up to this number.
    pub(super) fn sync(&self, number: u64) -> Result<(), StorageError> {
        let synced = self.database.persist(PersistMode::SyncAll);
        synced.map_err(|error| failed("sync", &error))?;
        self.set_watermark(number)
    }

    fn set_watermark(&self, number: u64) -> Result<(), StorageError> {
        let noted = self.watermark.set(number);
        noted.map_err(|error| failed("write", &error))
    }
}

/// The durable records. A clone is cheap: the store itself keeps a list of its snapshots, and has one of them for each group.
#[derive(Clone)]
pub(super) struct StoredRecords(Arc<Stored>);

struct Stored {
    epoch: u64,
    snapshot: fjall::Snapshot,
    records: Keyspace,
    /// Counts the snapshots of the store. Dropped last: a snapshot that is not counted holds nothing of the store.
    _readers: Arc<()>,
}

impl Snapshot for StoredRecords {
    fn epoch(&self) -> Option<u64> {
        Some(self.0.epoch)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        let record = self.0.snapshot.get(&self.0.records, key);
        let record = record.map_err(|error| failed("read", &error))?;
        Ok(record.map(|record| Slice::Owned(record.into())))
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        if start >= end {
            return Box::new(std::iter::empty());
        }
        let records = self.0.snapshot.range(&self.0.records, start..end);
        Box::new(records.map(|record| {
            let (key, record) = record
                .into_inner()
                .map_err(|error| failed("read", &error))?;
            Ok((Slice::Owned(key.into()), Slice::Owned(record.into())))
        }))
    }
}

/// The snapshot while the store is closed: every read fails.
#[derive(Debug)]
pub(super) struct Unreadable(pub(super) StorageError);

impl Snapshot for Unreadable {
    fn get(&self, _: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        Err(self.0.clone())
    }

    fn range(&self, _: &[u8], _: &[u8]) -> Records<'_> {
        Box::new(std::iter::once(Err(self.0.clone())))
    }
}

/// Converts an error of the embedded store. A read that failed because of too many open files may be retried.
pub(super) fn failed(what: &'static str, error: &(dyn Error + 'static)) -> StorageError {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    if what == "read" && causes.any(|cause| cause.downcast_ref().is_some_and(is_exhausted)) {
        return StorageError::Exhausted { what };
    }
    StorageError::Failed {
        what,
        cause: error.to_string().into(),
    }
}

/// The store may wait for ever from 4 on, and one write can add two.
const SEALED_MEMTABLES_MAX: usize = 2;
/// The same, from 30 on.
const RUNS_MAX: usize = 28;
const ROOM_INTERVAL: Duration = Duration::from_millis(1);
