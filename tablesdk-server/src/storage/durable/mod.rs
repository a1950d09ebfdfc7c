//! Records in a data directory: committed writes survive the end of the process and, by default, a
//! power loss.
//!
//! Writers add to the pending writes and wait. One thread at a time takes all pending writes,
//! writes them as one batch of the embedded store, syncs once and notifies all waiting writers: the
//! writing thread, or that of a [lone writer](lone). Readers see durable records only: no read
//! returns a write that a crash could undo. After a failed write, all writes are refused until the
//! data directory is opened again, because the outcome of the failed write is unknown. If the
//! embedded store has stopped because of too many open files, nothing was written, and the writing
//! thread itself opens the store again: `reopening.rs`. Each group of writes has a number. With it,
//! a data directory that lost some groups is distinguished from a complete one. This module does
//! not know the meaning of the records; see `FORMAT.md` for that.

mod directory;
mod durability;
mod group_mark;
mod lone;
mod overlay;
mod private;
mod recovery;
mod reopening;
mod state;
mod store;
mod torn_tail;
mod watermark;
mod writer;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use tokio::sync::{oneshot, watch};

use self::directory::Directory;
pub(crate) use self::directory::sync_parent;
pub use self::durability::Durability;
pub(in crate::storage) use self::lone::LoneCommit;
use self::overlay::{Overlay, Writes};
use self::state::{Group, Shared, StoreState};
use self::store::{Store, Unreadable};
use self::writer::{GroupWriter, LOOKS, Turn};
use super::{Closed, Commit, Snapshot, Storage, StorageError, WriteBatch, is_exhausted};

/// A storage in a data directory.
pub(crate) struct DurableStorage {
    shared: Arc<Shared>,
    /// Taken when it is joined.
    writer: Option<JoinHandle<()>>,
    /// Dropped last. The drop notifies the tasks that wait for the data directory to be free.
    closing: watch::Sender<()>,
}

impl DurableStorage {
    /// Opens a data directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// When another process has the data directory open, its format is another one, it is damaged,
    /// or the disk returns an error.
    pub(crate) fn open(path: &Path, durability: Durability) -> io::Result<Self> {
        let (directory, opened) =
            recovery::open(path).map_err(|error| too_many_files(path, error))?;
        let group_number = opened.group_number;
        let store = Store::new(opened, durability);
        let shared = Arc::new(Shared {
            state: Mutex::new(StoreState {
                durable: Some(store.durable_records(0)),
                turn: Turn::Free(GroupWriter::new(store, group_number)),
                looks: LOOKS,
                last_writers: 0,
                pending: Group::new(),
                writing: Writes::default(),
                writing_bytes: 0,
                writing_epoch: None,
                last_epoch: 0,
                durable_epoch: 0,
                failed: None,
                is_closing: false,
            }),
            changed: Condvar::new(),
            directory,
            durability,
        });
        let writer = thread::Builder::new().name("tablesdk-storage".to_owned());
        let writer = writer.spawn({
            let shared = Arc::clone(&shared);
            move || shared.write_until_closed()
        })?;
        Ok(Self {
            shared,
            writer: Some(writer),
            closing: watch::Sender::new(()),
        })
    }
}

/// Checks that a path is a data directory, and creates none.
///
/// # Errors
///
/// When it is none, or its format is another one.
pub(crate) fn check_exists(path: &Path) -> io::Result<()> {
    Directory::check_exists(path)
}

impl Storage for DurableStorage {
    fn snapshot(&self) -> Box<dyn Snapshot> {
        let state = self.shared.state();
        match &state.durable {
            Some(durable) => Box::new(durable.clone()),
            None => Box::new(Unreadable(state.unreadable())),
        }
    }

    fn uncommitted(&self) -> Box<dyn Snapshot> {
        let state = self.shared.state();
        let Some(below) = state.durable.clone() else {
            return Box::new(Unreadable(state.unreadable()));
        };
        let below = Overlay {
            below,
            writes: state.writing.clone(),
            epoch: state.writing_epoch,
        };
        Box::new(Overlay {
            below,
            writes: state.pending.writes.clone(),
            epoch: state.pending.epoch,
        })
    }

    fn epoch(&self) -> Option<u64> {
        let state = self.shared.state();
        state.durable.as_ref().map(|_| state.durable_epoch)
    }

    fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
        let mut state = self.shared.state();
        if let Some(failed) = &state.failed {
            return Err(failed.clone());
        }
        if state.is_closing {
            return Err(StorageError::Closed);
        }
        let (done, commit) = oneshot::channel();
        if batch.starts_epoch {
            // Of its own, even if the batch is lost: another one may be decided in its place.
            state.last_epoch += 1;
            state.pending.epoch = Some(state.last_epoch);
        }
        let is_lone = state.is_lone();
        state.pending.add(&batch);
        state.pending.waiting.push(done);
        let is_free = state.turn.is_free();
        drop(state);
        if is_lone {
            return Ok(Commit::lone(LoneCommit::new(&self.shared), commit));
        }
        if is_free {
            self.shared.changed.notify_one();
        }
        Ok(Commit::pending(commit))
    }

    fn wait_durable(&self) -> Commit {
        let mut state = self.shared.state();
        let (done, commit) = oneshot::channel();
        if let Some(failed) = &state.failed {
            // A response that was decided on a lost state must not be sent either.
            let _ = done.send(Err(failed.clone()));
            return Commit::pending(commit);
        }
        if state.writing.is_empty() && state.pending.writes.is_empty() {
            return Commit::DONE;
        }
        // Notified after all earlier writes, because a group of writes completes as a whole.
        state.pending.waiting.push(done);
        if state.turn.is_free() {
            self.shared.changed.notify_one();
        }
        Commit::pending(commit)
    }

    fn has_backpressure(&self) -> bool {
        self.shared.state().has_backpressure()
    }

    fn is_writable(&self) -> Result<(), StorageError> {
        self.shared.check_in_place();
        self.shared.state().failed.clone().map_or(Ok(()), Err)
    }

    fn is_persistent(&self) -> bool {
        true
    }

    fn closed(&self) -> Closed {
        Closed::after(self.closing.subscribe())
    }
}

impl Drop for DurableStorage {
    /// Writes the pending writes and closes the data directory.
    fn drop(&mut self) {
        self.shared.state().is_closing = true;
        self.shared.changed.notify_one();
        if let Some(writer) = self.writer.take() {
            // The thread has notified all waiting writers already.
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for DurableStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableStorage").finish_non_exhaustive()
    }
}

/// Adds the path of the data directory to an error if the cause is too many open files.
fn too_many_files(path: &Path, error: io::Error) -> io::Error {
    if !is_exhausted(&error) {
        return error;
    }
    let path = path.display();
    let message = format!(
        "the data directory {path} cannot be opened: {error}; raise the limit of open files (ulimit -n)"
    );
    io::Error::new(error.kind(), message)
}

#[cfg(test)]
mod tests {
    use super::state::BYTES_MAX;
    use super::writer::PoisonOnExit;
    use super::*;

    #[tokio::test]
    async fn after_a_failure_only_reads_succeed() {
        let directory = tempfile::tempdir().unwrap();
        let storage = DurableStorage::open(directory.path(), Durability::Sync).unwrap();
        let batch = || {
            let mut batch = WriteBatch::default();
            batch.put("a", "1");
            batch
        };
        storage.commit(batch()).unwrap().await.unwrap();
        let failed = StorageError::Failed {
            what: "write",
            cause: "the disk is gone".into(),
        };
        storage.shared.state().failed = Some(failed.clone());
        assert_eq!(storage.wait_durable().await, Err(failed.clone()));
        assert_eq!(storage.commit(batch()).unwrap_err(), failed);
        assert!(storage.snapshot().get(b"a").unwrap().is_some());
    }

    #[tokio::test]
    async fn has_backpressure_until_writes_are_durable() {
        let directory = tempfile::tempdir().unwrap();
        let storage = DurableStorage::open(directory.path(), Durability::Sync).unwrap();
        let mut batch = WriteBatch::default();
        batch.put("a", vec![0; BYTES_MAX / 2]);
        {
            // The writing thread cannot take them from here.
            let mut state = storage.shared.state();
            state.pending.add(&batch);
            assert!(!state.has_backpressure());
            state.pending.add(&batch);
            assert!(state.has_backpressure());
            state.pending = Group::new();
        }
        storage.commit(batch.clone()).unwrap().await.unwrap();
        assert!(!storage.has_backpressure());
        let mut state = storage.shared.state();
        state.writing_bytes = BYTES_MAX;
        assert!(state.has_backpressure());
        state.failed = Some(StorageError::Closed);
        assert!(
            !state.has_backpressure(),
            "a wait for a group that never comes must end"
        );
    }

    #[tokio::test]
    async fn a_panic_of_the_writing_thread_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let storage = DurableStorage::open(directory.path(), Durability::Sync).unwrap();
        let shared = Arc::clone(&storage.shared);
        let thread = thread::spawn(move || {
            let _end = PoisonOnExit(&shared);
            panic!("as a store might");
        });
        thread.join().unwrap_err();
        assert!(storage.wait_durable().await.is_err());
        assert!(storage.commit(WriteBatch::default()).is_err());
    }
}
