//! Records in memory: a persistent ordered map, of which a snapshot is a cheap clone.
//!
//! A reader keeps its version of the map, so it neither waits for writers nor makes them wait. The records do not survive the
//! process; the durable storage implements the same trait.

use std::sync::{Mutex, PoisonError, RwLock};

use bytes::Bytes;

use super::map::{self, Map};
use super::{Closed, Commit, Records, Snapshot, Storage, StorageError, Write, WriteBatch};

/// A storage in memory.
#[derive(Default)]
pub(crate) struct MemoryStorage {
    /// Held by a commit from its first write to its publication, so that batches follow one another.
    committing: Mutex<()>,
    /// The records of new snapshots. Locked only for a clone or a replacement, however large the batch.
    published: RwLock<Map<Bytes>>,
}

impl MemoryStorage {
    fn map(&self) -> Map<Bytes> {
        // A map is replaced as a whole, so it is complete also after a panic.
        let published = self.published.read();
        published.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(MemorySnapshot(self.map()))
    }

    fn uncommitted(&self) -> Box<dyn Snapshot> {
        self.snapshot()
    }

    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
        let _committing = self
            .committing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut map = self.map();
        for write in batch.writes {
            match write {
                Write::Delete(key) => {
                    map.remove_mut(&key);
                }
                Write::Put(key, record) => {
                    map.insert_mut(key, record);
                }
            }
        }
        let mut published = self
            .published
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *published, map);
        drop(published);
        // Dropped without the lock, because freeing the removed records can take long.
        drop(before);
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

    fn closed(&self) -> Closed {
        Closed::NOW
    }
}

struct MemorySnapshot(Map<Bytes>);

impl Snapshot for MemorySnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.0.get(key).cloned())
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        let records = map::range(&self.0, start, end);
        Box::new(records.map(|(key, record)| Ok((key.clone(), record.clone()))))
    }
}
