//! The storage below the engine: ordered records with byte keys.
//!
//! A storage knows neither tables nor entities, neither time nor HTTP. It keeps bytes in the order
//! of their keys, applies a batch of writes as a whole or not at all, and returns snapshots that
//! later writes do not change. `FORMAT.md` describes the layout of keys and records.

#[cfg(feature = "durable")]
mod backup;
mod batch;
mod closed;
mod commit;
#[cfg(feature = "durable")]
mod durable;
#[cfg(any(feature = "durable", feature = "network"))]
mod files;
#[expect(
    clippy::indexing_slicing,
    reason = "indexes and offsets are made by the map, never read from input"
)]
mod map;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg_attr(
    not(any(feature = "postgres", test)),
    expect(dead_code, reason = "only a database is shared")
)]
mod shared;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::ops::{ControlFlow, Deref};
#[cfg(feature = "durable")]
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

#[cfg(feature = "durable")]
pub(crate) use backup::{read as read_backup, restore, write as write_backup};
pub(crate) use batch::{Write, WriteBatch};
pub(crate) use closed::Closed;
pub(crate) use commit::Commit;
#[cfg(feature = "durable")]
pub use durable::Durability;
#[cfg(feature = "durable")]
pub(crate) use durable::{DurableStorage, check_exists, sync_parent};
#[cfg(any(feature = "durable", feature = "network"))]
pub(crate) use files::is_exhausted;
#[cfg(feature = "network")]
pub(crate) use files::{files_max, process_files_max};
pub(crate) use memory::{Checkpoint, MemoryStorage};
#[cfg(feature = "postgres")]
pub(crate) use postgres::{PostgresOptions, PostgresStorage};
#[cfg(test)]
pub(crate) use shared::tests as shared_tests;
pub(crate) use shared::{Committed, Connections, Guesses, PartialSnapshot, Removed, SharedStorage};

/// The storage of a server.
#[derive(Clone, Debug, Default)]
pub(crate) enum StorageOptions {
    /// A data directory, and the durability of writes.
    #[cfg(feature = "durable")]
    Directory(PathBuf, Durability),
    /// Memory: nothing survives the server.
    #[default]
    Memory,
    /// A database that other servers use, too.
    #[cfg(feature = "postgres")]
    Postgres(PostgresOptions),
}

impl StorageOptions {
    /// Returns true if the records are in memory.
    pub(crate) const fn is_memory(&self) -> bool {
        matches!(self, Self::Memory)
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// When a directory cannot be used, or the URL of a database is not valid.
    #[cfg_attr(
        not(any(feature = "durable", feature = "postgres")),
        expect(clippy::unnecessary_wraps, reason = "a directory may not open")
    )]
    pub(crate) fn open(self) -> io::Result<AnyStorage> {
        match self {
            #[cfg(feature = "durable")]
            Self::Directory(path, durability) => {
                let storage = DurableStorage::open(&path, durability)?;
                Ok(Box::new(storage).into())
            }
            Self::Memory => Ok(Box::new(MemoryStorage::default()).into()),
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => {
                let storage: Arc<dyn SharedStorage> = Arc::new(PostgresStorage::new(&options)?);
                Ok(storage.into())
            }
        }
    }
}

/// A storage of either kind.
pub(crate) enum AnyStorage {
    /// One that this server alone uses.
    Local(Box<dyn Storage>),
    /// One that other servers use at the same time.
    Shared(Arc<dyn SharedStorage>),
}

impl AnyStorage {
    /// The storage, if this server alone uses it.
    pub(crate) fn local(&self) -> Option<&dyn Storage> {
        match self {
            Self::Local(storage) => Some(&**storage),
            Self::Shared(_) => None,
        }
    }

    /// The storage, if other servers use it at the same time.
    pub(crate) const fn shared(&self) -> Option<&Arc<dyn SharedStorage>> {
        match self {
            Self::Local(_) => None,
            Self::Shared(storage) => Some(storage),
        }
    }
}

impl<S: Storage + 'static> From<Box<S>> for AnyStorage {
    fn from(storage: Box<S>) -> Self {
        Self::Local(storage)
    }
}

impl From<Box<dyn Storage>> for AnyStorage {
    fn from(storage: Box<dyn Storage>) -> Self {
        Self::Local(storage)
    }
}

impl From<Arc<dyn SharedStorage>> for AnyStorage {
    fn from(storage: Arc<dyn SharedStorage>) -> Self {
        Self::Shared(storage)
    }
}

/// Ordered records, written in atomic batches.
pub(crate) trait Storage: Send + Sync {
    /// A snapshot of all durable records. It is cheap: each request takes one.
    fn snapshot(&self) -> Box<dyn Snapshot>;

    /// The epoch of a snapshot that would be taken now.
    fn epoch(&self) -> Option<u64> {
        self.snapshot().epoch()
    }

    /// A snapshot of all committed records, durable or not. The next write is decided on it.
    fn uncommitted(&self) -> Box<dyn Snapshot>;

    /// Applies a batch as a whole, after the batches before it, without waiting. When the returned
    /// future resolves, every later snapshot contains it.
    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError>;

    /// Resolves when all committed batches are durable.
    fn wait_durable(&self) -> Commit;

    /// Returns true if so many writes are in flight that the caller must
    /// [`wait_durable`](Self::wait_durable) before another commit.
    fn has_backpressure(&self) -> bool;

    /// Returns the reason if writes are not possible any more.
    fn is_writable(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Returns true if the records survive the process.
    fn is_persistent(&self) -> bool;

    /// The records at this moment, to be restored later. `None` if the storage cannot restore them.
    fn checkpoint(&self) -> Option<Checkpoint> {
        None
    }

    /// Replaces all records by those of a checkpoint, and starts an epoch. Returns false, without
    /// an effect, if the storage cannot.
    fn restore(&self, checkpoint: &Checkpoint) -> bool {
        let _ = checkpoint;
        false
    }

    /// Resolves when the storage is closed and free for other processes: after its last user has
    /// dropped it.
    fn closed(&self) -> Closed;
}

/// The records of a local storage as they were at one moment.
pub(crate) trait Snapshot: Send + Sync {
    /// The number of the last batch in this snapshot that [starts an
    /// epoch](WriteBatch::starts_epoch). No other such batch of the storage has it. `None` if the
    /// storage does not number them.
    fn epoch(&self) -> Option<u64> {
        None
    }

    /// The record under a key.
    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError>;

    /// The records from `start` up to but not including `end`, in the order of their keys. Seeks to
    /// `start` and reads lazily. Empty when `start` is not before `end`.
    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_>;

    /// Passes the keys and records of a range to a visitor, in order, until it breaks. This is the
    /// way for long scans: an item of an iterator that may own its bytes takes more time than the
    /// search for a record in memory.
    fn visit(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<(), StorageError> {
        for record in self.range(start, end) {
            let (key, record) = record?;
            if visitor(&key, &record)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Gets keys and records one after another, and says whether to continue.
pub(crate) type Visitor<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StorageError> + 'v;

/// Records in the order of their keys.
pub(crate) type Records<'a> =
    Box<dyn Iterator<Item = Result<(Slice<'a>, Slice<'a>), StorageError>> + Send + 'a>;

/// A key or a record of a snapshot. A scan over records in memory borrows them, because counting
/// the references to each would take longer than reading it.
#[derive(Clone, Debug)]
pub(crate) enum Slice<'a> {
    /// Bytes of the snapshot.
    Borrowed(&'a [u8]),
    /// Bytes of its own, such as those that were read from a file.
    Owned(Bytes),
}

impl Deref for Slice<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Slice<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Slice<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl From<Slice<'_>> for Vec<u8> {
    fn from(slice: Slice<'_>) -> Self {
        match slice {
            Slice::Borrowed(bytes) => bytes.to_vec(),
            Slice::Owned(bytes) => bytes.into(),
        }
    }
}

impl StorageError {
    /// A key or record that is malformed.
    pub(crate) const fn corrupt(what: &'static str) -> Self {
        Self::Corrupt { what }
    }

    /// Returns true if a retry may succeed later, without a restart. The failed operation had no
    /// effect.
    pub(crate) const fn is_temporary(&self) -> bool {
        match self {
            #[cfg(feature = "durable")]
            Self::Exhausted { .. } | Self::Stopped { .. } => true,
            Self::Contended | Self::Unavailable { .. } => true,
            _ => false,
        }
    }
}

/// The storage failed. This is a failure of the server, never of the client, and the response
/// contains no details of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StorageError {
    /// A key or a record is malformed.
    #[error("the stored {what} cannot be read")]
    Corrupt {
        /// The kind of key or record.
        what: &'static str,
    },
    /// The storage accepts no more writes, because the server stops.
    #[error("the storage is closed")]
    Closed,
    /// Other servers changed the same records again and again. Nothing was written.
    #[error("other writes to the same records came first, again and again")]
    Contended,
    /// The operation needs all records at one moment, which a shared storage does not offer.
    #[error("a database that servers share has tools of its own for this")]
    Shared,
    /// A record of a shared storage must be fetched first. The engine never returns this.
    #[error("a record was not fetched")]
    NotFetched,
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only a database can be out of reach")
    )]
    /// A shared storage cannot be reached, or refuses to work for now. Nothing was written.
    #[error("the database is not available: {cause}")]
    Unavailable {
        /// The error.
        cause: Arc<str>,
    },
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only the connection to a database can be lost")
    )]
    /// The connection to a shared storage was lost during a commit, which may have been applied or
    /// not.
    #[error(
        "the connection to the database was lost during a commit, which may be applied or not: {cause}"
    )]
    UnknownOutcome {
        /// The error.
        cause: Arc<str>,
    },
    /// The embedded store has stopped, and nothing was written. The storage opens it again without
    /// a restart.
    #[cfg(feature = "durable")]
    #[error(
        "the storage cannot {what}, because the embedded store has stopped after an error of the disk or the system, and is opened \
         anew"
    )]
    Stopped {
        /// The operation that failed.
        what: &'static str,
    },
    /// Too many files are open, and nothing was written. The storage accepts writes again when
    /// there are fewer.
    #[cfg(feature = "durable")]
    #[error(
        "the storage cannot {what}, because there are too many open files, and goes on once there are fewer: raise the limit of \
         open files (ulimit -n), or lower the number of connections (--max-connections)"
    )]
    Exhausted {
        /// The operation that failed.
        what: &'static str,
    },
    /// The tables in the database are of a later version.
    #[cfg(feature = "postgres")]
    #[error(
        "the database has tables of version {version}, and this server knows version {known}: use a newer server"
    )]
    NewerSchema {
        /// The version of the tables.
        version: i32,
        /// The version of this server.
        known: i32,
    },
    /// The embedded store or the database returned an error.
    #[cfg(any(feature = "durable", feature = "postgres"))]
    #[error("the storage cannot {what}: {cause}")]
    Failed {
        /// The operation that failed.
        what: &'static str,
        /// The error.
        cause: Arc<str>,
    },
}
