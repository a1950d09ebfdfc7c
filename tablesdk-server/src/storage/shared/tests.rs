//! A shared storage in memory, which counts its round trips, and lets a test come between two of
//! them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::{
    Committed, ConditionalBatch, Connections, Fetched, FetchedRecord, Removed, RoundTrip,
    SharedStorage, Version, Wanted,
};

type Records = BTreeMap<Vec<u8>, (Version, Option<Bytes>)>;

/// The records that all servers of a test share.
#[derive(Default)]
pub(crate) struct SharedMemory {
    records: Mutex<Records>,
    round_trips: AtomicUsize,
    /// Runs before the next commit.
    before_commit: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// A part of a range has at most so many records; 0 for no limit.
    part_max: AtomicUsize,
}

impl SharedMemory {
    pub(crate) fn with_parts_of(records: usize) -> Arc<Self> {
        let memory = Self::default();
        memory.part_max.store(records, Ordering::Relaxed);
        Arc::new(memory)
    }

    /// The number of round trips since the last call.
    pub(crate) fn round_trips(&self) -> usize {
        self.round_trips.swap(0, Ordering::Relaxed)
    }

    /// Runs something between the next decision and its commit.
    pub(crate) fn before_commit(&self, run: impl FnOnce() + Send + 'static) {
        *self.before_commit.lock().unwrap() = Some(Box::new(run));
    }

    /// The records of a kind, without removed ones.
    pub(crate) fn count(&self, kind: u8) -> usize {
        let records = self.records.lock().unwrap();
        let of_kind = records.iter().filter(|(key, _)| key[0] == kind);
        of_kind.filter(|(_, (_, record))| record.is_some()).count()
    }

    fn begin(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }
}

impl SharedStorage for SharedMemory {
    fn fetch(&self, wanted: Wanted) -> RoundTrip<'_, Fetched> {
        Box::pin(async move {
            self.begin();
            let records = self.records.lock().unwrap();
            let mut fetched = Fetched::default();
            for key in wanted.keys {
                if let Some((version, record)) = records.get(&key) {
                    fetched.records.push(FetchedRecord {
                        key,
                        version: *version,
                        record: record.clone(),
                    });
                }
            }
            if let Some(range) = wanted.range {
                let part_max = self.part_max.load(Ordering::Relaxed);
                let records_max = match part_max {
                    0 => range.records_max,
                    part_max => range.records_max.min(part_max),
                };
                let found = records.range(range.start..range.end);
                let found = found.filter_map(|(key, (_, record))| {
                    Some((Bytes::from(key.clone()), record.clone()?))
                });
                fetched.range = found.take(records_max).collect();
                fetched.is_through = fetched.range.len() < records_max;
            }
            Ok(fetched)
        })
    }

    fn commit(&self, batch: ConditionalBatch) -> RoundTrip<'_, Committed> {
        Box::pin(async move {
            self.begin();
            let before = self.before_commit.lock().unwrap().take();
            if let Some(before) = before {
                before();
            }
            let mut records = self.records.lock().unwrap();
            let version_of = |key: &Vec<u8>| records.get(key).map(|(version, _)| *version);
            let mut writes = batch.writes.iter();
            let are_writes = writes.all(|write| {
                let expected = &write.replaced;
                assert!(expected.is_none_or(|expected| expected < batch.version));
                let stored = records.get(&write.key);
                let is_removed = |version, record: &Option<Bytes>| {
                    expected.is_none() && record.is_none() && version < batch.version
                };
                match stored {
                    None => expected.is_none(),
                    Some((version, record)) => {
                        Some(*version) == *expected || is_removed(*version, record)
                    }
                }
            });
            let mut reads = batch.reads.iter();
            let are_reads = reads.all(|(key, version)| version_of(key) == Some(*version));
            if !are_writes || !are_reads {
                return Ok(Committed::Conflict);
            }
            for write in batch.writes {
                let record = write.record.map(Bytes::from);
                records.insert(write.key, (batch.version, record));
            }
            Ok(Committed::Done)
        })
    }

    fn remove(&self, start: Vec<u8>, end: Vec<u8>, records_max: usize) -> RoundTrip<'_, Removed> {
        Box::pin(async move {
            self.begin();
            let mut records = self.records.lock().unwrap();
            let keys = records.range(start..end).map(|(key, _)| key.clone());
            let keys: Vec<_> = keys.take(records_max).collect();
            for key in &keys {
                records.remove(key);
            }
            let last = keys.into_iter().next_back();
            Ok(last.map_or(Removed::All, Removed::Until))
        })
    }

    fn sweep(&self) -> RoundTrip<'_, bool> {
        Box::pin(async { Ok(false) })
    }

    fn part_bytes_max(&self) -> usize {
        0
    }

    fn probe(&self) -> RoundTrip<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn connections(&self) -> Connections {
        Connections::default()
    }
}
