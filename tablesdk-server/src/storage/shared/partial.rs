//! [`PartialSnapshot`]: the records of a shared storage that a request has read so far, as a
//! [`Snapshot`].
//!
//! The engine reads a snapshot without waiting. Where it comes to a record that was not fetched, it
//! stops with [`StorageError::NotFetched`], the snapshot fetches everything that was asked for, and
//! the engine starts over. So what the engine returns in the end was read at one moment. Announced
//! keys and guesses lead to all keys in the first round trip: what was read by a wrong guess is
//! never returned, because the guessed record is among those that are fetched.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{
    ConditionalBatch, ConditionalWrite, Fetched, SharedStorage, Version, Wanted, WantedRange,
};
use crate::storage::{Records, Slice, StorageError, Visitor, Write, WriteBatch};

/// The fetched records of a shared storage.
pub(crate) struct PartialSnapshot {
    storage: Arc<dyn SharedStorage>,
    guesses: Arc<Guesses>,
    state: Mutex<FetchState>,
}

#[derive(Default)]
struct FetchState {
    /// The keys that the engine asked for since it started over.
    asked: HashSet<Vec<u8>>,
    /// The range that it asked for, and that was not fetched.
    missing: Option<WantedRange>,
    /// The range that it asked for, and that was fetched.
    found: Option<WantedRange>,
    /// The single records of the last round trip.
    records: HashMap<Vec<u8>, Option<Stored>>,
    /// The last part of a range.
    chunk: Option<Chunk>,
    /// The part after it, if it is already being fetched.
    ahead: Option<Ahead>,
    /// True if parts of a range are fetched before they are asked for.
    reads_ahead: bool,
    /// True if records may be presumed, because the decision is a condition of the commit.
    may_presume: bool,
    has_presumed: bool,
    round_trips: u32,
}

impl FetchState {
    /// Asks for a range.
    fn miss(&mut self, start: &[u8], end: &[u8]) {
        self.missing = Some(WantedRange {
            start: start.to_vec(),
            end: end.to_vec(),
            records_max: CHUNK_RECORDS_MAX,
        });
    }

    /// Keeps the records under single keys.
    fn keep(&mut self, keys: Vec<Vec<u8>>, fetched: &Fetched) {
        self.records.extend(keys.into_iter().map(|key| (key, None)));
        for fetched in &fetched.records {
            let stored = Stored {
                version: fetched.version,
                record: fetched.record.clone(),
            };
            self.records.insert(fetched.key.clone(), Some(stored));
        }
    }
}

/// A record or what is left of it.
#[derive(Clone, Debug)]
struct Stored {
    version: Version,
    record: Option<Bytes>,
}

/// Keys and records, in order.
type FetchedRange = Arc<[(Bytes, Bytes)]>;

/// A part of a range.
struct Chunk {
    start: Vec<u8>,
    /// The key before which the part ends.
    end: Vec<u8>,
    records: FetchedRange,
    wanted: WantedRange,
}

impl Chunk {
    fn new(wanted: WantedRange, fetched: Fetched) -> Self {
        let end = match fetched.range.last() {
            Some((last, _)) if !fetched.is_through => after(last),
            _ => wanted.end.clone(),
        };
        Self {
            start: wanted.start.clone(),
            end,
            records: fetched.range.into(),
            wanted,
        }
    }

    /// Where the records from a key on begin; `None` if that may be outside.
    fn position(&self, start: &[u8]) -> Option<usize> {
        let is_within = self.start.as_slice() <= start && start < self.end.as_slice();
        is_within.then(|| self.records.partition_point(|(key, _)| **key < *start))
    }
}

/// A part of a range that is being fetched. It ends by itself: to abort it would cost a connection.
struct Ahead {
    wanted: WantedRange,
    task: JoinHandle<Result<Fetched, StorageError>>,
}

impl PartialSnapshot {
    /// A snapshot without records.
    pub(crate) fn new(storage: &Arc<dyn SharedStorage>, guesses: &Arc<Guesses>) -> Self {
        Self {
            storage: Arc::clone(storage),
            guesses: Arc::clone(guesses),
            state: Mutex::default(),
        }
    }

    /// Permits to decide on what the records probably are, until some are fetched. Only for a
    /// commit, whose conditions tell.
    pub(crate) fn may_presume(&self) {
        self.state().may_presume = true;
    }

    /// Returns true if a record was presumed. Then nothing but the success of a commit may be
    /// reported.
    pub(crate) fn has_presumed(&self) -> bool {
        self.state().has_presumed
    }

    /// The part of a range that was fetched last, if it has the start: its records, the first one
    /// from the start on, and the key before which it ends. Else, asks for the range.
    fn part(&self, start: &[u8], end: &[u8]) -> Option<(FetchedRange, usize, Vec<u8>)> {
        let mut state = self.state();
        let part = state.chunk.as_ref().and_then(|chunk| {
            let first = chunk.position(start)?;
            let records = Arc::clone(&chunk.records);
            Some((records, first, chunk.end.clone(), chunk.wanted.clone()))
        });
        let Some((records, first, covered, wanted)) = part else {
            if start < end {
                state.miss(start, end);
            }
            return None;
        };
        state.found = Some(wanted);
        Some((records, first, covered))
    }

    fn state(&self) -> MutexGuard<'_, FetchState> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what was asked for, if anything of it was not fetched, at one moment. Returns whether
    /// it did: then the engine must start over.
    pub(crate) async fn fetch_missing(&self) -> Result<bool, StorageError> {
        let wanted = {
            let mut state = self.state();
            let FetchState {
                asked,
                missing,
                records,
                ..
            } = &mut *state;
            if missing.is_none() && asked.iter().all(|key| records.contains_key(key)) {
                return Ok(false);
            }
            state.round_trips += 1;
            if state.round_trips > ROUND_TRIPS_MAX {
                return Err(StorageError::Contended);
            }
            Wanted {
                keys: state.asked.drain().collect(),
                range: state.missing.take().or_else(|| state.found.take()),
            }
        };
        let fetched = self.storage.fetch(wanted.clone()).await?;
        let mut state = self.state();
        state.records.clear();
        (state.may_presume, state.has_presumed) = (false, false);
        state.keep(wanted.keys, &fetched);
        state.chunk = None;
        if let Some(range) = wanted.range {
            self.take_chunk(&mut state, range, fetched, false);
        }
        Ok(true)
    }

    /// Reads more of what a scan asked for, at a later moment than the parts before it. Returns
    /// false if there is nothing.
    pub(crate) async fn fetch_next(&self) -> Result<bool, StorageError> {
        let (keys, range, ahead) = {
            let mut state = self.state();
            let unknown = |key: &&Vec<u8>| !state.records.contains_key(*key);
            let keys: Vec<_> = state.asked.iter().filter(unknown).cloned().collect();
            (keys, state.missing.take(), state.ahead.take())
        };
        if keys.is_empty() && range.is_none() {
            return Ok(false);
        }
        if let (Some(range), Some(ahead)) = (&range, ahead)
            && keys.is_empty()
            && self.take_ahead(range, ahead).await?
        {
            return Ok(true);
        }
        let wanted = Wanted {
            keys,
            range: range.clone(),
        };
        let fetched = self.storage.fetch(wanted.clone()).await?;
        let mut state = self.state();
        state.keep(wanted.keys, &fetched);
        if let Some(range) = range {
            self.take_chunk(&mut state, range, fetched, true);
        }
        Ok(true)
    }

    /// Takes the part of a range that is being fetched. Returns whether it is the one that is asked
    /// for.
    async fn take_ahead(&self, range: &WantedRange, ahead: Ahead) -> Result<bool, StorageError> {
        if ahead.wanted.start > range.start || ahead.wanted.end != range.end {
            return Ok(false);
        }
        let fetched = ahead.task.await;
        let fetched = fetched.map_err(|_| StorageError::Closed)??;
        let mut state = self.state();
        self.take_chunk(&mut state, ahead.wanted, fetched, true);
        let chunk = state.chunk.as_ref();
        Ok(chunk.is_some_and(|chunk| chunk.position(&range.start).is_some()))
    }

    /// `is_scanned`: whether parts before it were read, so that those after it probably will be,
    /// too.
    fn take_chunk(
        &self,
        state: &mut FetchState,
        range: WantedRange,
        fetched: Fetched,
        is_scanned: bool,
    ) {
        let is_through = fetched.is_through;
        let end = range.end.clone();
        let chunk = Chunk::new(range, fetched);
        if state.reads_ahead
            && is_scanned
            && !is_through
            && let Ok(runtime) = Handle::try_current()
        {
            let wanted = WantedRange {
                start: chunk.end.clone(),
                end,
                records_max: CHUNK_RECORDS_MAX,
            };
            let (storage, range) = (Arc::clone(&self.storage), Some(wanted.clone()));
            let keys = Vec::new();
            let task = runtime.spawn(async move { storage.fetch(Wanted { keys, range }).await });
            state.ahead = Some(Ahead { wanted, task });
        }
        state.chunk = Some(chunk);
    }

    /// The version of a record that was asked for.
    pub(crate) fn version(&self, key: &[u8]) -> Option<Version> {
        let state = self.state();
        let stored = state.records.get(key)?.as_ref();
        stored.map(|stored| stored.version)
    }

    /// The latest version of the records that were asked for.
    pub(crate) fn latest_version(&self) -> Option<Version> {
        let state = self.state();
        let stored = state.records.values().flatten();
        stored.map(|stored| stored.version).max()
    }

    /// Asks for the records that a batch replaces and that were not asked for. Returns whether
    /// there are any.
    pub(crate) fn ask_for(&self, batch: &WriteBatch) -> bool {
        let mut state = self.state();
        let keys = batch.iter().map(Write::key);
        let unknown: Vec<_> = keys
            .filter(|key| !state.records.contains_key(*key))
            .map(<[u8]>::to_vec)
            .collect();
        let is_any = !unknown.is_empty();
        state.asked.extend(unknown);
        is_any
    }

    /// The batch on the condition that all records that were asked for are unchanged.
    pub(crate) fn conditional(&self, batch: &WriteBatch, version: Version) -> ConditionalBatch {
        let mut state = self.state();
        let mut writes = Vec::with_capacity(batch.len());
        for write in batch.iter() {
            let replaced = state.records.remove(write.key()).flatten();
            let is_there = replaced
                .as_ref()
                .is_some_and(|stored| stored.record.is_some());
            if is_there || matches!(write, Write::Put(..)) {
                writes.push(ConditionalWrite {
                    key: write.key().to_vec(),
                    record: match write {
                        Write::Delete(_) => None,
                        Write::Put(_, record) => Some(record.to_vec()),
                    },
                    replaced: replaced.map(|stored| stored.version),
                });
            }
        }
        // In one order everywhere, so that two batches never wait for each other.
        writes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let reads = state.records.drain();
        let reads = reads.filter_map(|(key, stored)| Some((key, stored?.version)));
        ConditionalBatch {
            writes,
            reads: reads.collect(),
            version,
        }
    }
}

impl PartialSnapshot {
    /// Passes the keys and records of a range to a visitor, until it breaks or the next one was not
    /// fetched. Returns the key from which on to continue in that case.
    pub(crate) fn visit_fetched(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        if is_key(start, end) {
            return match self.get(start) {
                Ok(Some(record)) => {
                    // The range has no other key.
                    let _: ControlFlow<()> = visitor(start, &record)?;
                    Ok(None)
                }
                Ok(None) => Ok(None),
                Err(_) => Ok(Some(start.to_vec())),
            };
        }
        let Some((records, first, covered)) = self.part(start, end) else {
            return Ok((start < end).then(|| start.to_vec()));
        };
        // Borrowed: a reference to each record would have to be counted.
        for (key, record) in records.iter().skip(first) {
            if **key >= *end || visitor(key, record)?.is_break() {
                return Ok(None);
            }
        }
        if covered.as_slice() >= end {
            return Ok(None);
        }
        self.state().miss(&covered, end);
        Ok(Some(covered))
    }

    /// The record under a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        let mut state = self.state();
        if !state.asked.contains(key) {
            state.asked.insert(key.to_vec());
        }
        match state.records.get(key) {
            Some(stored) => {
                let record = stored.as_ref().and_then(|stored| stored.record.clone());
                Ok(record.map(Slice::Owned))
            }
            None => Err(StorageError::NotFetched),
        }
    }

    /// The same record, or else the one that it was some time ago, which leads to other records.
    /// [`get`](Self::get) must have the same record before anything is returned to a client.
    pub(crate) fn get_or_guess(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        match self.get(key) {
            Ok(record) => {
                let state = self.state();
                let stored = state.records.get(key).and_then(Option::as_ref);
                self.guesses.learn(key, stored);
                Ok(record)
            }
            Err(StorageError::NotFetched) => {
                let guess = self.guesses.find(key).ok_or(StorageError::NotFetched)?;
                let record = guess.record.clone();
                let mut state = self.state();
                if state.may_presume {
                    state.records.insert(key.to_vec(), Some(guess));
                    state.has_presumed = true;
                }
                Ok(record.map(Slice::Owned))
            }
            Err(error) => Err(error),
        }
    }

    /// The records of a range, in order. Where one was not fetched, the last item is
    /// [`StorageError::NotFetched`].
    pub(crate) fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        let Some((records, first, covered)) = self.part(start, end) else {
            let error = (start < end).then_some(Err(StorageError::NotFetched));
            return Box::new(error.into_iter());
        };
        let end = end.to_vec();
        let mut index = first;
        let mut is_over = false;
        Box::new(std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            match records.get(index) {
                Some((key, record)) if **key < *end => {
                    index += 1;
                    let record = Slice::Owned(record.clone());
                    Some(Ok((Slice::Owned(key.clone()), record)))
                }
                None if covered < end => {
                    is_over = true;
                    self.state().miss(&covered, &end);
                    Some(Err(StorageError::NotFetched))
                }
                _ => None,
            }
        }))
    }

    /// Names keys that are read next, and under which there is probably no record.
    pub(crate) fn presume_absent(&self, keys: impl Iterator<Item = Vec<u8>>) {
        let mut state = self.state();
        if !state.may_presume {
            state.asked.extend(keys);
            return;
        }
        for key in keys {
            state.records.entry(key).or_insert(None);
        }
        state.has_presumed = true;
    }

    /// Names keys that are read next, so that they are read together.
    pub(crate) fn announce(&self, keys: impl Iterator<Item = Vec<u8>>) {
        self.state().asked.extend(keys);
    }

    /// Names the range that is read next, and how many of its first records are probably enough.
    /// `reads_ahead`: whether the records after those are probably read, too.
    pub(crate) fn announce_range(
        &self,
        start: &[u8],
        end: &[u8],
        records_max: usize,
        reads_ahead: bool,
    ) {
        let mut state = self.state();
        state.reads_ahead = reads_ahead;
        if is_key(start, end) {
            state.asked.insert(start.to_vec());
            return;
        }
        let is_fetched = |chunk: &Chunk| chunk.position(start).is_some();
        if !state.chunk.as_ref().is_some_and(is_fetched) {
            state.missing = Some(WantedRange {
                start: start.to_vec(),
                end: end.to_vec(),
                records_max: records_max.clamp(1, CHUNK_RECORDS_MAX),
            });
        }
    }
}

/// Returns true if a range has room for one key alone.
fn is_key(start: &[u8], end: &[u8]) -> bool {
    end.split_last() == Some((&0, start))
}

/// The next key: nothing lies between a key and the same key with this byte at its end.
fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Some records as they were last read. Other servers may have changed them since.
#[derive(Debug, Default)]
pub(crate) struct Guesses(RwLock<HashMap<Vec<u8>, Stored>>);

impl Guesses {
    fn find(&self, key: &[u8]) -> Option<Stored> {
        let guesses = self.0.read().unwrap_or_else(PoisonError::into_inner);
        guesses.get(key).cloned()
    }

    fn learn(&self, key: &[u8], stored: Option<&Stored>) {
        let known = self.find(key).map(|known| known.version);
        if known == stored.map(|stored| stored.version) {
            return;
        }
        let mut guesses = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if guesses.len() >= GUESSES_MAX {
            guesses.clear();
        }
        match stored.filter(|stored| stored.record.is_some()) {
            Some(stored) => guesses.insert(key.to_vec(), stored.clone()),
            None => guesses.remove(key),
        };
    }
}

/// The most records of a part of a range.
const CHUNK_RECORDS_MAX: usize = 1001;

/// The most round trips of a request before it gives up, because what leads to its keys changes
/// again and again.
const ROUND_TRIPS_MAX: u32 = 8;

/// The most guesses. A server with more tables in use starts again from time to time.
const GUESSES_MAX: usize = 4096;
