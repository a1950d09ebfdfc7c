//! Reopens the embedded store after it has stopped, commonly because of too many open files.
//!
//! The store stops as a whole when one of its background threads has an error, such as a file that
//! it cannot open. It cannot be started again, but it can be closed and opened again, as after a
//! crash. No acknowledged write is lost: the group that met the stop was not written, and the
//! number of the last group in the store proves that all earlier groups are there. As long as too
//! many files are open, reads continue. Then reads are refused for a moment, because all snapshots
//! must be dropped before the data directory is opened a second time. The writing thread does all
//! of this, one attempt at a time, with increasing pauses.
//!
//! After a failed write or sync of the writing thread itself, the store is not reopened: the
//! outcome is unknown, and data in the system's memory is possibly not on the disk. Neither is it
//! on a disk that is full: it would stop again, and refuse reads meanwhile.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use super::recovery;
use super::state::{Shared, StoreState};
use super::store::{Store, failed};
use crate::storage::is_exhausted;

impl Shared {
    /// Opens the embedded store again, as soon as possible. `number` is that of its last group.
    /// `stops` is the number of its stops in close succession: the more, the longer is the pause
    /// before. Returns `None` when the data directory is closed in the meantime, or after a
    /// permanent failure.
    pub(super) fn reopen(&self, store: Store, number: u64, stops: u32) -> Option<Store> {
        let mut store = Some(store);
        let mut pause = first_pause(stops);
        let mut attempts = 0;
        loop {
            if self.is_over_after(pause) {
                return None;
            }
            pause = (2 * pause).min(PAUSE_MAX);
            if self.directory.probe_files().is_err() {
                continue;
            }
            if let Some(stopped) = store.take()
                && let Err(stopped) = self.close(stopped)
            {
                store = Some(stopped);
                continue;
            }
            match recovery::open_in(&self.directory) {
                Ok(opened) if opened.group_number == number => {
                    return self.go_on(Store::new(opened, self.durability));
                }
                Ok(opened) => {
                    let found = opened.group_number;
                    let why = format!("its writes end with group {found} instead of {number}");
                    self.give_up(&self.directory.damaged(&why));
                    return None;
                }
                Err(error) if is_temporary(&error) => {}
                // Too many open files may look like damage, and may be closed by now.
                Err(_) if attempts < ATTEMPTS_MAX => attempts += 1,
                Err(error) => {
                    self.give_up(&error);
                    return None;
                }
            }
        }
    }

    /// Closes a store when no snapshot of it is in use. Returns it if that takes too long, and
    /// allows reads again.
    fn close(&self, mut store: Store) -> Result<(), Store> {
        let Some(mut durable) = self.state().durable.take() else {
            return Err(store);
        };
        for _ in 0..DRAIN_LOOKS {
            match store.close(durable) {
                Ok(()) => return Ok(()),
                Err(read) => (store, durable) = read,
            }
            if self.is_over_after(DRAIN_INTERVAL) {
                break;
            }
        }
        self.state().durable = Some(durable);
        Err(store)
    }

    fn go_on(&self, store: Store) -> Option<Store> {
        let mut state = self.state();
        state.durable = Some(store.durable_records(state.durable_epoch));
        if !state.has_temporary_failure() {
            return None;
        }
        state.failed = None;
        drop(state);
        tracing::warn!("the embedded store was opened anew: the data directory takes writes again");
        Some(store)
    }

    fn give_up(&self, error: &io::Error) {
        let error = failed("be opened again", error);
        self.state().fail(error);
    }

    /// Waits, and returns whether the data directory is being closed, or has failed permanently.
    fn is_over_after(&self, pause: Duration) -> bool {
        let state = self.state();
        let is_over = |state: &StoreState| state.is_closing || !state.has_temporary_failure();
        let woken = self
            .changed
            .wait_timeout_while(state, pause, |state| !is_over(state));
        let (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        is_over(&state)
    }
}

/// The pause before the first attempt. It doubles with each stop but the first.
fn first_pause(stops: u32) -> Duration {
    let doublings = stops.saturating_sub(1).min(u32::BITS - 1);
    PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX)
}

/// Returns true if too many files are open again, or the old store has not released the directory
/// yet.
fn is_temporary(error: &io::Error) -> bool {
    is_exhausted(error) || error.kind() == io::ErrorKind::ResourceBusy
}

/// How many attempts may fail for other reasons than too many open files.
const ATTEMPTS_MAX: u32 = 5;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long new reads are refused at a time, while the ones in flight end.
const DRAIN_LOOKS: u32 = 200;
const DRAIN_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::process::Command;

    use super::super::{Durability, DurableStorage, StorageError};
    use super::*;
    use crate::storage::{Snapshot, Storage as _, WriteBatch};

    /// Enough for the store, and for the threads of the test.
    const FILES_MAX: u32 = 64;
    static RECORD: [u8; 64 * 1024] = [7; 64 * 1024];

    fn key(number: u32) -> String {
        format!("{number:08}")
    }

    async fn write(storage: &DurableStorage, number: u32) -> Result<(), StorageError> {
        let mut batch = WriteBatch::default();
        batch.put(key(number), &RECORD[..]);
        storage.commit(batch)?.await
    }

    /// Holds all files that the process may have open, but for so many.
    fn exhaust(free: usize) -> Vec<File> {
        let mut held: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        held.truncate(held.len().saturating_sub(free));
        held
    }

    /// Checks that all acknowledged records are there, and no others.
    fn check(snapshot: &dyn Snapshot, written: u32) {
        let mut records = snapshot.range(b"0", b":");
        for number in 0..written {
            let (found, record) = records.next().unwrap().unwrap();
            assert_eq!(*found, *key(number).as_bytes());
            assert_eq!(*record, RECORD[..]);
        }
        assert!(records.next().is_none());
    }

    async fn recovered(storage: &DurableStorage) {
        let recovered = async {
            while storage.is_writable().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let recovered = tokio::time::timeout(Duration::from_secs(60), recovered);
        recovered.await.expect("the store recovers");
    }

    /// The work of the child, under a limit of open files.
    async fn exhaust_and_recover(directory: &Path) {
        let mut written = 0;
        for free in 0..3 {
            let storage = DurableStorage::open(directory, Durability::Sync).unwrap();
            check(&*storage.snapshot(), written);
            let reader = storage.snapshot();
            let before = written;
            let held = exhaust(free);
            // Until a table is to be written, or merged with others.
            let error = loop {
                match write(&storage, written).await {
                    Ok(()) => written += 1,
                    Err(error) => break error,
                }
                assert!(written - before < 5_000, "the store needs no file");
            };
            assert!(error.is_temporary(), "{free} free: {error}");
            assert!(error.to_string().contains("ulimit -n"), "{error}");
            assert_eq!(storage.is_writable().unwrap_err(), error);
            assert_eq!(write(&storage, written).await.unwrap_err(), error);
            drop(held);
            // A snapshot that is read meanwhile stays readable.
            check(&*reader, before);
            drop(reader);
            recovered(&storage).await;
            check(&*storage.snapshot(), written);
            for _ in 0..10 {
                write(&storage, written).await.unwrap();
                written += 1;
            }
            check(&*storage.snapshot(), written);
        }
        // Shortages so brief that the cause of the store's stop remains unknown.
        let storage = DurableStorage::open(directory, Durability::Sync).unwrap();
        let end = written + 200;
        let mut held = Vec::new();
        while written < end {
            if held.is_empty() {
                held = exhaust(0);
            } else {
                held.clear();
            }
            match write(&storage, written).await {
                Ok(()) => written += 1,
                Err(error) => {
                    assert!(error.is_temporary(), "{error}");
                    held.clear();
                    recovered(&storage).await;
                }
            }
        }
        held.clear();
        check(&*storage.snapshot(), written);
        drop(storage);
        // A directory that cannot be opened for want of files is not taken for damaged, and is as
        // it was.
        for free in 0..16 {
            let held = exhaust(free);
            if let Err(error) = DurableStorage::open(directory, Durability::Sync) {
                let text = error.to_string();
                assert!(text.contains("open files"), "{free} free: {text}");
            }
            drop(held);
        }
        let storage = DurableStorage::open(directory, Durability::Sync).unwrap();
        check(&*storage.snapshot(), written);
    }

    #[tokio::test]
    #[ignore = "run by the next one, in a process of its own"]
    #[expect(clippy::disallowed_methods, reason = "the parent names the directory")]
    async fn child() {
        if let Ok(directory) = std::env::var("TABLESDK_TEST_FOLDER") {
            exhaust_and_recover(Path::new(&directory)).await;
        }
    }

    #[test]
    fn pauses_grow_while_the_store_stops_again() {
        let millis = |stops| first_pause(stops).as_millis();
        let pauses = [0, 1, 2, 3, 7, 8, 20, u32::MAX].map(millis);
        assert_eq!(pauses, [50, 50, 100, 200, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn writes_recover_from_too_many_open_files() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {FILES_MAX}; exec \"$@\""), "sh"]);
        command.arg(std::env::current_exe().unwrap());
        let child = module_path!().split_once("::").unwrap().1.to_owned() + "::child";
        command.args(["--exact", &child, "--ignored", "--nocapture"]);
        command.env("TABLESDK_TEST_FOLDER", directory.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
    }
}
