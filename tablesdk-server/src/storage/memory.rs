//! Records in memory: a persistent ordered map, of which a snapshot is a cheap clone.
//!
//! A reader keeps its version of the map. A commit changes in place what no reader has, and copies
//! the rest. The records do not survive the process; the durable storage implements the same trait.

use std::mem;
use std::ops::ControlFlow;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::map::Map;
use super::{
    Closed, Commit, Records, Slice, Snapshot, Storage, StorageError, Visitor, Write, WriteBatch,
};

/// A storage in memory.
#[derive(Default)]
pub(crate) struct MemoryStorage {
    /// Locked for a clone, or for the writes of one batch: a write takes less than a microsecond in
    /// a node that no reader has.
    latest: RwLock<MemorySnapshot>,
}

impl MemoryStorage {
    fn latest(&self) -> RwLockReadGuard<'_, MemorySnapshot> {
        // Nothing panics while it is locked, so no batch is in it in part.
        self.latest.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(self.latest().clone())
    }

    fn epoch(&self) -> Option<u64> {
        self.latest().epoch()
    }

    fn uncommitted(&self) -> Box<dyn Snapshot> {
        self.snapshot()
    }

    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
        // The system takes time to free large records, so they are dropped after the lock.
        let mut large = Vec::new();
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        latest.epoch += u64::from(batch.starts_epoch);
        for write in batch.iter() {
            large.extend(match write {
                Write::Delete(key) => latest.records.remove(key),
                Write::Put(key, record) => latest.records.insert(key, record),
            });
        }
        drop(latest);
        Ok(Commit::DONE)
    }

    fn wait_durable(&self) -> Commit {
        Commit::DONE
    }

    fn has_backpressure(&self) -> bool {
        false
    }

    fn is_persistent(&self) -> bool {
        false
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        Some(Checkpoint(self.latest().records.clone()))
    }

    fn restore(&self, checkpoint: &Checkpoint) -> bool {
        let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        latest.epoch += 1;
        let replaced = mem::replace(&mut latest.records, checkpoint.0.clone());
        drop(latest);
        // The system takes time to free what the checkpoint does not have.
        drop(replaced);
        true
    }

    fn closed(&self) -> Closed {
        Closed::NOW
    }
}

/// The records of a moment. They share memory with the storage, as far as they did not change
/// since.
#[derive(Clone, Default)]
pub(crate) struct Checkpoint(Map);

#[derive(Clone, Default)]
struct MemorySnapshot {
    epoch: u64,
    records: Map,
}

impl Snapshot for MemorySnapshot {
    fn epoch(&self) -> Option<u64> {
        Some(self.epoch)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        Ok(self.records.get(key).map(Slice::Borrowed))
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        let records = self.records.range(start, end);
        Box::new(records.map(|(key, record)| Ok((Slice::Borrowed(key), Slice::Borrowed(record)))))
    }

    fn visit(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<(), StorageError> {
        let visit = |key: &_, record: &_| match visitor(key, record) {
            Ok(next) => next.map_break(Ok),
            Err(error) => ControlFlow::Break(Err(error)),
        };
        match self.records.range(start, end).visit(visit) {
            ControlFlow::Break(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }
}
