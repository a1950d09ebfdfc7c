//! Records in memory: a persistent ordered map, of which a snapshot is a cheap clone.
//!
//! A reader keeps the version that it took, so it neither waits for writers nor makes them wait. Nothing survives the
//! process; what must survive goes to a durable storage behind the same trait.

use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError, RwLock};

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;

use super::{Records, Snapshot, Storage, StorageError, Write, WriteBatch};

/// A storage that lasts as long as the process.
#[derive(Default)]
pub(crate) struct MemoryStorage {
    /// Held by a commit from its first write to its publication: batches follow one another.
    committing: Mutex<()>,
    /// What snapshots are taken of. Locked only for a clone or an exchange, however large the batch.
    published: RwLock<Map>,
}

type Map = RedBlackTreeMapSync<Bytes, Bytes>;

impl MemoryStorage {
    fn map(&self) -> Map {
        // A map is exchanged as a whole, so one that a panic left behind is whole, too.
        let published = self.published.read();
        published.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Storage for MemoryStorage {
    fn snapshot(&self) -> Box<dyn Snapshot> {
        Box::new(MemorySnapshot(self.map()))
    }

    fn commit(&self, batch: WriteBatch) -> Result<(), StorageError> {
        let _committing = self
            .committing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut map = self.map();
        for write in batch {
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
        // Freeing what the batch removed may take a while, and nobody needs to wait for it.
        drop(before);
        Ok(())
    }
}

impl fmt::Debug for MemoryStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStorage")
            .field("records", &self.map().size())
            .finish()
    }
}

struct MemorySnapshot(Map);

impl Snapshot for MemorySnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        Ok(self.0.get(key).cloned())
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        // The map takes a range that ends before it starts for a mistake of the program; here it is an empty one.
        if start >= end {
            return Box::new(std::iter::empty());
        }
        // The iterator owns its bounds, so that it lives as long as the snapshot and not as long as the arguments.
        let bounds = (
            Bound::Included(Bytes::copy_from_slice(start)),
            Bound::Excluded(Bytes::copy_from_slice(end)),
        );
        let records = self.0.range::<Bytes, _>(bounds);
        Box::new(records.map(|(key, record)| Ok((key.clone(), record.clone()))))
    }
}

impl fmt::Debug for MemorySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySnapshot")
            .field("records", &self.0.size())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(storage: &MemoryStorage, keys: &[&'static str]) {
        let mut batch = WriteBatch::default();
        for key in keys {
            batch.put(*key, format!("record of {key}"));
        }
        storage.commit(batch).unwrap();
    }

    fn keys(snapshot: &dyn Snapshot, start: &str, end: &str) -> Vec<String> {
        let records = snapshot.range(start.as_bytes(), end.as_bytes());
        records
            .map(|record| String::from_utf8(record.unwrap().0.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn ranges_are_ordered_and_half_open() {
        let storage = MemoryStorage::default();
        put(&storage, &["c", "a", "b", "bb", "d"]);
        let snapshot = storage.snapshot();
        assert_eq!(keys(&*snapshot, "a", "c"), ["a", "b", "bb"]);
        assert_eq!(keys(&*snapshot, "aa", "z"), ["b", "bb", "c", "d"]);
        for (start, end) in [("b", "b"), ("c", "a"), ("e", "z")] {
            assert!(keys(&*snapshot, start, end).is_empty(), "{start} to {end}");
        }
    }

    #[test]
    fn a_snapshot_does_not_see_later_writes() {
        let storage = MemoryStorage::default();
        put(&storage, &["a", "b"]);
        let before = storage.snapshot();
        let mut batch = WriteBatch::default();
        batch.put("c", "new");
        batch.put("a", "changed");
        batch.delete("b");
        batch.delete("never there");
        storage.commit(batch).unwrap();

        assert_eq!(keys(&*before, "a", "z"), ["a", "b"]);
        assert_eq!(
            before.get(b"a"),
            Ok(Some(Bytes::from_static(b"record of a")))
        );
        let after = storage.snapshot();
        assert_eq!(keys(&*after, "a", "z"), ["a", "c"]);
        assert_eq!(after.get(b"a"), Ok(Some(Bytes::from_static(b"changed"))));
        assert_eq!(after.get(b"b"), Ok(None));
    }

    #[test]
    fn writes_of_a_batch_happen_in_order() {
        let storage = MemoryStorage::default();
        let mut batch = WriteBatch::default();
        batch.put("a", "first");
        batch.delete("a");
        batch.put("a", "last");
        storage.commit(batch).unwrap();
        assert_eq!(
            storage.snapshot().get(b"a"),
            Ok(Some(Bytes::from_static(b"last")))
        );
    }
}
