//! Decided writes that are not durable yet, on top of a snapshot of the durable records.
//!
//! A record or a removal in the overlay hides the record with the same key below it. An overlay is
//! cheap to clone, like its maps.

use std::iter::Peekable;

use crate::storage::map::Map;
use crate::storage::{Records, Slice, Snapshot, StorageError, Write, WriteBatch};

/// The last write under each key.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    /// The records that are put.
    records: Map,
    /// The keys that are removed, none of which is in `records`. Their records are empty.
    removed: Map,
}

impl Writes {
    /// Adds a batch after the others.
    pub(super) fn add(&mut self, batch: &WriteBatch) {
        for write in batch.iter() {
            match write {
                Write::Delete(key) => self.delete(key),
                Write::Put(key, record) => self.put(key, record),
            }
        }
    }

    pub(super) fn put(&mut self, key: &[u8], record: &[u8]) {
        self.records.insert(key, record);
        self.removed.remove(key);
    }

    pub(super) fn delete(&mut self, key: &[u8]) {
        self.records.remove(key);
        self.removed.insert(key, &[]);
    }

    /// The write of a key, if there is one.
    pub(super) fn get(&self, key: &[u8]) -> Option<Written<'_>> {
        match self.records.get(key) {
            Some(record) => Some(Written::Put(record)),
            None => self.removes(key).then_some(Written::Removed),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.removed.is_empty()
    }

    /// The records that are put.
    pub(super) fn records(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.records.iter()
    }

    /// The keys that are removed.
    pub(super) fn removed(&self) -> impl Iterator<Item = &[u8]> {
        self.removed.iter().map(|(key, _)| key)
    }

    fn removes(&self, key: &[u8]) -> bool {
        self.removed.get(key).is_some()
    }
}

/// The last write of a key.
pub(super) enum Written<'a> {
    Put(&'a [u8]),
    Removed,
}

impl<'a> Written<'a> {
    pub(super) fn record(self) -> Option<Slice<'a>> {
        match self {
            Self::Put(record) => Some(Slice::Borrowed(record)),
            Self::Removed => None,
        }
    }
}

/// A snapshot with writes on top of it.
#[derive(Debug)]
pub(super) struct Overlay<S> {
    pub(super) below: S,
    pub(super) writes: Writes,
    /// The epoch that the last of the writes starts, if one does.
    pub(super) epoch: Option<u64>,
}

impl<S: Snapshot> Snapshot for Overlay<S> {
    fn epoch(&self) -> Option<u64> {
        self.epoch.or_else(|| self.below.epoch())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        match self.writes.get(key) {
            Some(write) => Ok(write.record()),
            None => self.below.get(key),
        }
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        let below = self.below.range(start, end).filter(|record| {
            let key = record.as_ref().map(|(key, _)| key);
            !key.is_ok_and(|key| self.writes.removes(key))
        });
        Box::new(Merged {
            writes: self.writes.records.range(start, end).peekable(),
            below: below.peekable(),
        })
    }
}

/// Two sequences in the order of their keys as one; of two records under one key, the written one.
struct Merged<W: Iterator, B: Iterator> {
    writes: Peekable<W>,
    below: Peekable<B>,
}

impl<'a, W, B> Iterator for Merged<W, B>
where
    W: Iterator<Item = (&'a [u8], &'a [u8])>,
    B: Iterator<Item = Result<(Slice<'a>, Slice<'a>), StorageError>>,
{
    type Item = Result<(Slice<'a>, Slice<'a>), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(&(written, _)) = self.writes.peek() else {
            return self.below.next();
        };
        match self.below.peek() {
            Some(Err(_)) => return self.below.next(),
            Some(Ok((key, _))) if **key < *written => return self.below.next(),
            Some(Ok((key, _))) if **key == *written => drop(self.below.next()),
            _ => {}
        }
        let (key, record) = self.writes.next()?;
        Some(Ok((Slice::Borrowed(key), Slice::Borrowed(record))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::{MemoryStorage, Storage};

    proptest! {
        #[test]
        fn an_overlay_reads_like_written_records(
            before in prop::collection::vec((0_u8..20, any::<bool>()), 0..30),
            after in prop::collection::vec((0_u8..20, any::<bool>()), 0..30),
            (start, end) in (0_u8..21, 0_u8..21),
        ) {
            let batch = |writes: &[(u8, bool)], text: &str| {
                let mut batch = WriteBatch::default();
                for (key, put) in writes {
                    if *put {
                        batch.put(vec![*key], text.as_bytes());
                    } else {
                        batch.delete(vec![*key]);
                    }
                }
                batch
            };
            let commit = |storage: &MemoryStorage, batch| {
                drop(storage.commit(batch).unwrap());
            };
            let storage = MemoryStorage::default();
            commit(&storage, batch(&before, "before"));
            let mut writes = Writes::default();
            writes.add(&batch(&after, "after"));
            let overlay = Overlay { below: Boxed(storage.snapshot()), writes, epoch: None };
            commit(&storage, batch(&after, "after"));
            let written = storage.snapshot();

            let all = |snapshot: &dyn Snapshot| {
                let records = snapshot.range(&[start], &[end]).map(Result::unwrap);
                let owned = records.map(|(key, record)| (key.to_vec(), record.to_vec()));
                owned.collect::<Vec<_>>()
            };
            prop_assert_eq!(all(&overlay), all(&*written));
            for key in 0..20 {
                prop_assert_eq!(overlay.get(&[key]), written.get(&[key]));
            }
        }
    }

    struct Boxed(Box<dyn Snapshot>);

    impl Snapshot for Boxed {
        fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
            self.0.get(key)
        }

        fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
            self.0.range(start, end)
        }
    }
}
