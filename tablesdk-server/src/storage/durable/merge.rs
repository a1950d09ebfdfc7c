//! Merges sorted sources of keys and records, of which the newer ones hide the older ones.

use crate::storage::{StorageError, Visitor};

/// Entries in the order of their keys. It stands at one of them, or is at its end.
pub(super) trait Source {
    /// The key, which is not empty; `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// The record; `None` if the key is removed.
    fn record(&self) -> Option<&[u8]>;

    /// Goes to the next entry, which may have the same key: the first one hides the others.
    fn advance(&mut self) -> Result<(), ReadError>;
}

/// Why an entry was not read.
pub(super) enum ReadError {
    /// It is in a file, and files were not to be read.
    NotInMemory,
    Failed(StorageError),
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self::Failed(error)
    }
}

/// Passes the newest entry of each key to a visitor, unless it removes the key. The newest source is the first. `last` is empty, and
/// becomes the last key.
pub(super) fn visit<S: Source>(
    mut sources: Vec<S>,
    visitor: &mut Visitor<'_>,
    last: &mut Vec<u8>,
) -> Result<(), ReadError> {
    sources.retain(|source| source.key().is_some());
    // The first of several sources with the same key.
    while let Some(source) = sources.iter_mut().min_by(|a, b| a.key().cmp(&b.key())) {
        if let Some(key) = source.key()
            && *key != **last
        {
            last.clear();
            last.extend_from_slice(key);
            if let Some(record) = source.record()
                && visitor(key, record)?.is_break()
            {
                break;
            }
        }
        source.advance()?;
        if source.key().is_none() {
            sources.retain(|source| source.key().is_some());
        }
    }
    Ok(())
}
