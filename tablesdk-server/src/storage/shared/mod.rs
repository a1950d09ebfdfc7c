//! A storage that several servers share: a database on the network.
//!
//! A local storage has snapshots and one writer at a time. Over a network, a snapshot would be a
//! transaction that is open while a request is handled, and a lock would be one that a stopped
//! server holds. So a shared storage offers two round trips instead: records at one moment, and a
//! batch on the condition that those records are unchanged. The engine decides on a
//! [`PartialSnapshot`] between the two. This module knows no SQL, no tables and no entities.

#[cfg(feature = "postgres")]
mod grouped;
mod partial;
#[cfg(test)]
pub(crate) mod tests;

use std::pin::Pin;

use bytes::Bytes;

use super::StorageError;

#[cfg(feature = "postgres")]
pub(crate) use grouped::{GroupedReads, ReadRecords, Records};
pub(crate) use partial::{Guesses, PartialSnapshot};

/// The future of a round trip.
pub(crate) type RoundTrip<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, StorageError>> + Send + 'a>>;

/// Ordered records that several servers read and write.
pub(crate) trait SharedStorage: Send + Sync {
    /// Reads records, all at one moment, which is after the call.
    fn fetch(&self, wanted: Wanted) -> RoundTrip<'_, Fetched>;

    /// Applies a batch as a whole, if the records that it replaces, and those that it depends on,
    /// are unchanged. That a record is missing is a condition only where one is written. The future
    /// ends with [`StorageError::UnknownOutcome`] if the batch may be applied or not.
    fn commit(&self, batch: ConditionalBatch) -> RoundTrip<'_, Committed>;

    /// Removes up to so many records from the start of a range, for good, without conditions.
    /// Returns the last key that was removed.
    fn remove(&self, start: Vec<u8>, end: Vec<u8>, records_max: usize) -> RoundTrip<'_, Removed>;

    /// Removes a few of what earlier removals have left behind and no server needs any more.
    /// Returns whether there may be more.
    fn sweep(&self) -> RoundTrip<'_, bool>;

    /// The memory that a scan takes for the parts of its range.
    fn part_bytes_max(&self) -> usize;

    /// Checks that the storage can be reached and written.
    fn probe(&self) -> RoundTrip<'_, ()>;

    /// The connections in use, those that wait for use, and the requests that wait for one.
    fn connections(&self) -> Connections;
}

/// When a record was written: in 100 ns since 1970, and later for every later record under the same
/// key.
pub(crate) type Version = i64;

/// The records to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Single keys.
    pub(crate) keys: Vec<Vec<u8>>,
    /// The first records of a range.
    pub(crate) range: Option<WantedRange>,
}

/// The first records of a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedRange {
    pub(crate) start: Vec<u8>,
    /// The key before which the range ends.
    pub(crate) end: Vec<u8>,
    /// At most so many, and fewer if they are large. At least one, if there is one.
    pub(crate) records_max: usize,
}

/// The records of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetched {
    /// The records of the single keys, in any order. A key without a record may be absent.
    pub(crate) records: Vec<FetchedRecord>,
    /// The records of the range, in the order of the keys.
    pub(crate) range: Vec<(Bytes, Bytes)>,
    /// True if the range has no more records.
    pub(crate) is_through: bool,
}

/// A record under a single key.
#[derive(Clone, Debug)]
pub(crate) struct FetchedRecord {
    pub(crate) key: Vec<u8>,
    pub(crate) version: Version,
    /// `None` if it was removed. Its version is kept for a while.
    pub(crate) record: Option<Bytes>,
}

/// A batch and what it depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConditionalBatch {
    /// The writes. No key occurs twice.
    pub(crate) writes: Vec<ConditionalWrite>,
    /// The keys and versions of the records that the batch depends on and does not replace.
    pub(crate) reads: Vec<(Vec<u8>, Version)>,
    /// The version of all written records.
    pub(crate) version: Version,
}

/// One write of such a batch.
#[derive(Clone, Debug)]
pub(crate) struct ConditionalWrite {
    /// The key.
    pub(crate) key: Vec<u8>,
    /// The record to put there; `None` to remove the one that is there.
    pub(crate) record: Option<Vec<u8>>,
    /// The version of what is replaced; `None` for nothing, or for a record that was removed before
    /// the version of this batch.
    pub(crate) replaced: Option<Version>,
}

/// The outcome of a conditional batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// A record that it depends on has changed. Nothing was written.
    Conflict,
    /// It is durable.
    Done,
}

/// The outcome of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The range had so many records, or more. The last key that was removed.
    Until(Vec<u8>),
    /// The range is empty.
    All,
}

/// The use of the connections to a storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connections {
    /// How many there are.
    pub(crate) open: usize,
    /// How many of them no request uses.
    pub(crate) idle: usize,
    /// How many requests wait for one.
    pub(crate) waiting: usize,
}
