//! Records in a data directory: committed writes survive the end of the process and, by default, a power loss.
//!
//! Writers add to the pending writes and wait. One thread takes all pending writes, writes them as one batch of the embedded store,
//! syncs once and notifies all waiting writers. Readers see durable records only: no read returns a write that a crash could undo.
//! After a failed write, all writes are refused until the data directory is opened again, because the outcome of the failed write
//! is unknown. If the embedded store has stopped because of too many open files, nothing was written, and the writing thread
//! itself opens the store again: `reopening.rs`.
//! Each group of writes has a number. With it, a data directory that lost some groups is distinguished from a complete one.
//! This module does not know the meaning of the records; see `FORMAT.md` for that.

mod catalog;
mod check;
mod directory;
mod journal;
mod overlay;
mod private;
mod recovery;
mod reopening;
mod store;
mod watermark;

use std::fmt;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

pub(crate) use self::check::{check_files, check_journals};
use self::directory::Directory;
pub(crate) use self::directory::sync_parent;
use self::overlay::{Overlay, Writes};
use self::store::{Store, StoredRecords, Unreadable, WriteError};
use super::{Closed, Commit, Snapshot, Storage, StorageError, WriteBatch, is_exhausted};

/// Which failures an acknowledged write survives.
///
/// ```
/// use tablesdk_server::{Durability, TableServer};
///
/// # fn main() -> std::io::Result<()> {
/// # let place = tempfile::tempdir()?;
/// # let directory = place.path().join("tables");
/// let server = TableServer::builder().data(directory, Durability::Sync).in_process()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// A write survives a crash of the process, but not a crash or power loss of the machine: it is passed to the operating system,
    /// which keeps it in memory for some seconds before it is on the disk. Several times faster with few writers.
    Relaxed,
    /// A write survives a crash or power loss of the machine, too: it is acknowledged after it is synced to the disk.
    #[default]
    Sync,
}

/// A storage in a data directory.
pub(crate) struct DurableStorage {
    shared: Arc<Shared>,
    /// Taken when it is joined.
    writer: Option<JoinHandle<()>>,
    /// Dropped last. The drop notifies the tasks that wait for the data directory to be free.
    closing: watch::Sender<()>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when a write is pending, or when the storage is closing.
    changed: Condvar,
    durability: Durability,
    /// Held until the embedded store is closed.
    directory: Directory,
}

struct State {
    /// Decided writes that the writing thread has not taken yet.
    pending: Group,
    /// The writes that the writing thread is writing.
    writing: Writes,
    /// The size of `writing` in bytes.
    writing_bytes: usize,
    /// The durable records; `None` while the embedded store is closed and about to be opened again.
    durable: Option<StoredRecords>,
    /// Why writes are refused.
    failed: Option<StorageError>,
    is_closing: bool,
}

/// Writes that share a sync.
struct Group {
    writes: Writes,
    bytes: usize,
    waiting: Vec<Waiting>,
}

/// Notifies a writer that waits until its write is durable.
type Waiting = oneshot::Sender<Result<(), StorageError>>;

impl DurableStorage {
    /// Opens a data directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// When another process has the data directory open, its format is another one, it is damaged, or the disk returns an error.
    pub(crate) fn open(path: &Path, durability: Durability) -> io::Result<Self> {
        let (directory, opened) =
            recovery::open(path).map_err(|error| too_many_files(path, error))?;
        let group_number = opened.group_number;
        let store = Store::new(opened, durability);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                pending: Group::new(),
                writing: Writes::new_sync(),
                writing_bytes: 0,
                durable: Some(store.durable_records()),
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
            move || {
                let _end = PoisonOnExit(&shared);
                shared.write_until_closed(store, group_number);
            }
        })?;
        Ok(Self {
            shared,
            writer: Some(writer),
            closing: watch::Sender::new(()),
        })
    }
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
        let (writing, pending) = (state.writing.clone(), state.pending.writes.clone());
        drop(state);
        Box::new(Overlay {
            below: Overlay {
                below,
                writes: writing,
            },
            writes: pending,
        })
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
        state.pending.add(batch);
        state.pending.waiting.push(done);
        drop(state);
        self.shared.changed.notify_one();
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
        drop(state);
        self.shared.changed.notify_one();
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

/// Refuses all waiting and all later writes if the writing thread panics.
struct PoisonOnExit<'s>(&'s Shared);

impl Drop for PoisonOnExit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if thread::panicking() {
            state.failed = Some(StorageError::Failed {
                what: "write",
                cause: "the thread that writes has panicked".into(),
            });
        }
        state.pending = Group::new();
        state.writing = Writes::new_sync();
    }
}

impl Group {
    fn new() -> Self {
        Self {
            writes: Writes::new_sync(),
            bytes: 0,
            waiting: Vec::new(),
        }
    }

    fn add(&mut self, batch: WriteBatch) {
        self.bytes = self.bytes.saturating_add(batch.bytes());
        overlay::add(&mut self.writes, batch);
    }
}

impl State {
    /// Refuses all writes from now on. Only the first reason is logged, unless it was temporary and this one is not.
    fn fail(&mut self, error: StorageError) {
        let is_new = match &self.failed {
            None => true,
            Some(failed) => failed.is_temporary() && !error.is_temporary(),
        };
        if is_new {
            tracing::error!(%error, "the data directory takes no more writes");
            self.failed = Some(error);
        }
    }

    /// Why nothing can be read while the embedded store is closed.
    fn unreadable(&self) -> StorageError {
        match &self.failed {
            Some(StorageError::Exhausted { .. }) => StorageError::Exhausted { what: "read" },
            Some(StorageError::Stopped { .. }) => StorageError::Stopped { what: "read" },
            Some(failed) => failed.clone(),
            None => StorageError::Closed,
        }
    }

    fn has_backpressure(&self) -> bool {
        // After a failure no write is in flight, and the next writer must get the error instead of waiting.
        self.failed.is_none() && self.pending.bytes.saturating_add(self.writing_bytes) >= BYTES_MAX
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses all writes from now on if the data directory was removed, moved or replaced.
    fn check_in_place(&self) {
        if let Err(error) = self.look_in_place() {
            self.state().fail(error);
        }
    }

    fn look_in_place(&self) -> Result<(), StorageError> {
        let in_place = self.directory.check_in_place();
        in_place.map_err(|error| store::failed("write", &error))
    }

    fn write_until_closed(&self, mut store: Store, mut number: u64) {
        let mut stops = Stops::default();
        loop {
            let (writes, waiting) = match self.next(&store) {
                Next::Group(writes, waiting) => (writes, waiting),
                Next::Stopped => (Writes::new_sync(), Vec::new()),
                Next::End => break,
            };
            let result = self.write(&store, &writes, number, &mut stops);
            let mut state = self.state();
            match &result {
                Ok(written) => {
                    number = *written;
                    state.durable = Some(store.durable_records());
                }
                Err(error) => state.fail(error.clone()),
            }
            state.writing = Writes::new_sync();
            state.writing_bytes = 0;
            let mut refused = Vec::new();
            if result.is_err() {
                // They were decided on writes that may not have been stored.
                refused = mem::replace(&mut state.pending, Group::new()).waiting;
            }
            drop(state);
            let result = result.map(drop);
            for done in waiting.into_iter().chain(refused) {
                // Fails if the writer does not wait any more.
                let _ = done.send(result.clone());
            }
            if result.is_err_and(|error| error.is_temporary()) {
                match self.reopen(store, number) {
                    Some(opened) => store = opened,
                    None => return,
                }
            }
        }
        // An error is ignored: acknowledged writes already have the durability that was acknowledged.
        if self.state().failed.is_none() && store.sync(number).is_ok() {
            self.directory.release();
        }
    }

    /// Writes a group after the group with that number. Returns the number of the last group.
    fn write(
        &self,
        store: &Store,
        writes: &Writes,
        number: u64,
        stops: &mut Stops,
    ) -> Result<u64, StorageError> {
        let written = if writes.is_empty() {
            // A caller waits for earlier writes, or the store may have stopped.
            store.is_running().map(|()| number)
        } else {
            let next = number.saturating_add(1);
            store.write(writes, next).map(|()| next)
        };
        match written {
            Ok(number) => {
                // Removed files accept writes, and lose them when the process ends.
                self.look_in_place()?;
                Ok(number)
            }
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::Stopped) if self.directory.probe_files().is_err() => {
                Err(StorageError::Exhausted { what: "write" })
            }
            Err(WriteError::Stopped) if stops.is_too_many(number) => Err(StorageError::Failed {
                what: "write",
                cause: "the embedded store stops again and again after an error of the disk or the system, which it does not name".into(),
            }),
            // The limit of open files may have been reached for a moment. Nothing was written, and opening the store again shows
            // which groups it has.
            Err(WriteError::Stopped) => Err(StorageError::Stopped { what: "write" }),
        }
    }

    /// Waits for the next step of the writing thread.
    fn next(&self, store: &Store) -> Next {
        let mut looks = LOOKS;
        let mut state = self.state();
        while state.pending.waiting.is_empty() {
            if state.is_closing {
                return Next::End;
            }
            if looks == 0 || state.failed.is_some() {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            looks -= 1;
            let woken = self.changed.wait_timeout(state, LOOK_INTERVAL);
            let (woken, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() {
                drop(state);
                if store.is_running().is_err() {
                    return Next::Stopped;
                }
                state = self.state();
            }
        }
        let group = mem::replace(&mut state.pending, Group::new());
        state.writing = group.writes.clone();
        state.writing_bytes = group.bytes;
        Next::Group(group.writes, group.waiting)
    }
}

/// The number of recent stops of the embedded store for an unknown reason.
#[derive(Default)]
struct Stops {
    count: u32,
    /// The number of the last group before the last stop.
    number: u64,
}

impl Stops {
    /// Counts a stop after the group with that number. Stops with many groups between them are treated as unrelated.
    fn is_too_many(&mut self, number: u64) -> bool {
        if number >= self.number.saturating_add(STOP_DISTANCE) {
            self.count = 0;
        }
        self.count += 1;
        self.number = number;
        self.count > STOPS_MAX
    }
}

/// The next step of the writing thread.
enum Next {
    /// Write a group, then notify the writers that wait for it.
    Group(Writes, Vec<Waiting>),
    /// Find out why the embedded store has stopped.
    Stopped,
    /// Close the data directory.
    End,
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

/// The mark that each group of writes contains.
struct GroupMark {
    /// One more than the number of the previous group.
    number: u64,
    /// The next sequence number of the store before it wrote the group.
    sequence_min: u64,
}

impl GroupMark {
    fn record(&self) -> [u8; 16] {
        let mut record = [0; 16];
        let (number, sequence_min) = record.split_at_mut(8);
        number.copy_from_slice(&self.number.to_be_bytes());
        sequence_min.copy_from_slice(&self.sequence_min.to_be_bytes());
        record
    }

    fn read(record: &[u8]) -> Option<Self> {
        let (number, sequence_min) = record.split_first_chunk()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            sequence_min: u64::from_be_bytes(sequence_min.try_into().ok()?),
        })
    }
}

/// The key of the mark of the last group of writes. No key of the engine begins with it.
const GROUP_KEY: &[u8] = b"\0";

/// The maximum size of the writes in flight, written or pending, before writers have to wait. A writer waits before it decides its
/// batch, there is one writer at a time, and one more batch is always accepted. So the size never exceeds this value plus the
/// largest batch, which is a hundred merges into entities of 1 MiB, with their JSON.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// The embedded store may stop so many times for an unknown reason, with fewer than `STOP_DISTANCE` groups between two stops.
const STOPS_MAX: u32 = 20;
const STOP_DISTANCE: u64 = 1000;
/// After a write, the embedded store continues to work in the background. The writing thread then checks `LOOKS` times, at this
/// interval, whether the store has stopped. So the cause can still be found out: the next write may come much later.
const LOOKS: u32 = 100;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn after_a_failure_everything_but_a_read_says_so() {
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
    async fn is_full_until_what_is_on_its_way_has_arrived() {
        let directory = tempfile::tempdir().unwrap();
        let storage = DurableStorage::open(directory.path(), Durability::Sync).unwrap();
        let mut batch = WriteBatch::default();
        batch.put("a", vec![0; BYTES_MAX / 2]);
        {
            // The writing thread cannot take them from here.
            let mut state = storage.shared.state();
            state.pending.add(batch.clone());
            assert!(!state.has_backpressure());
            state.pending.add(batch.clone());
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
            "nobody waits for what does not come"
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
