//! A lone writer writes its group itself, on its own thread.
//!
//! To wake the writing thread, and then the thread of the writer again, takes about as long as a
//! sync. A writer alone saves both. The pending writes stay where the writing thread finds them, so
//! it makes no difference to others who takes them.

use std::fmt;
use std::sync::Arc;

use super::state::Shared;
use super::writer::PoisonOnExit;

/// A pending write for which the writing thread was not woken.
pub(crate) struct LoneCommit(Option<Arc<Shared>>);

impl LoneCommit {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Some(Arc::clone(shared)))
    }

    /// Writes the pending writes on this thread, which waits for the disk, unless another thread is
    /// writing.
    pub(crate) fn write(mut self) {
        let Some(shared) = self.0.take() else {
            return;
        };
        let mut state = shared.state();
        if state.pending.waiting.is_empty() {
            // The writing thread has taken it.
            return;
        }
        let Some(writer) = state.turn.take() else {
            // It looks for pending writes at the end.
            return;
        };
        let group = state.begin_group();
        drop(state);
        let _poison = PoisonOnExit(&shared);
        if shared.write_group(writer, group) {
            shared.changed.notify_one();
        }
    }
}

impl Drop for LoneCommit {
    /// Leaves the write to the writing thread.
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.changed.notify_one();
        }
    }
}

impl fmt::Debug for LoneCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoneCommit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use proptest::prelude::*;
    use tempfile::TempDir;
    use tokio::sync::oneshot;

    use super::super::state::Group;
    use super::super::watermark::Watermark;
    use super::super::writer::{GroupWriter, Turn};
    use super::super::{Durability, DurableStorage};
    use super::*;
    use crate::storage::{Commit, Storage as _, WriteBatch};

    fn open() -> (TempDir, DurableStorage) {
        let directory = tempfile::tempdir().unwrap();
        let storage = DurableStorage::open(directory.path(), Durability::Sync).unwrap();
        (directory, storage)
    }

    /// Not one of the marks of groups.
    fn key_of(number: u32) -> String {
        format!("k{number}")
    }

    fn put(storage: &DurableStorage, key: u32) -> Commit {
        let mut batch = WriteBatch::default();
        batch.put(key_of(key), "record");
        storage.commit(batch).unwrap()
    }

    fn has(storage: &DurableStorage, key: u32) -> bool {
        let snapshot = storage.snapshot();
        snapshot.get(key_of(key).as_bytes()).unwrap().is_some()
    }

    /// Takes the turn, which the writing thread has for a moment now and then.
    fn take_turn(shared: &Shared) -> GroupWriter {
        loop {
            if let Some(writer) = shared.state().turn.take() {
                return writer;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_write_is_seen_after_its_sync() {
        let (directory, storage) = open();
        let shared = &storage.shared;
        for key in 1..20 {
            let writer = take_turn(shared);
            let mut commit = put(&storage, key);
            assert!(commit.take_lone().is_none(), "another thread writes");
            assert!(!has(&storage, key), "nothing has written it");
            let group = shared.state().begin_group();
            shared.write_group(writer, group);
            // Written after the sync of a group, and before anything else.
            let synced = Watermark::read(directory.path()).unwrap();
            assert_eq!(synced, Some(key.into()));
            assert!(has(&storage, key));
            commit.wait().unwrap();
        }
    }

    #[test]
    fn a_lone_writer_writes_itself() {
        let (directory, storage) = open();
        let mut lone_writes = 0;
        for key in 1..100 {
            let mut commit = put(&storage, key);
            if let Some(lone) = commit.take_lone() {
                lone.write();
                lone_writes += 1;
            }
            commit.wait().unwrap();
            let synced = Watermark::read(directory.path()).unwrap();
            assert_eq!(synced, Some(key.into()));
            assert!(has(&storage, key));
        }
        assert!(lone_writes > 0);
    }

    #[test]
    fn a_writer_beside_others_is_not_alone() {
        let (_directory, storage) = open();
        let writer = take_turn(&storage.shared);
        let mut state = storage.shared.state();
        assert!(!state.is_lone(), "another thread writes");
        state.turn = Turn::Free(writer);
        assert!(state.is_lone());
        let (done, _commit) = oneshot::channel();
        state.pending.waiting.push(done);
        assert!(!state.is_lone(), "another write is pending");
        state.pending = Group::new();
        state.last_writers = 2;
        assert!(!state.is_lone(), "others are about to come");
    }

    #[test]
    fn the_writing_thread_sees_that_a_lone_writer_has_panicked() {
        let (_directory, storage) = open();
        let shared = Arc::clone(&storage.shared);
        let writer = thread::spawn(move || {
            let _taken = take_turn(&shared);
            let _poison = PoisonOnExit(&shared);
            panic!("as a store might");
        });
        writer.join().unwrap_err();
        assert!(storage.commit(WriteBatch::default()).is_err());
        // It does not wait for a turn that never ends.
        drop(storage);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn writes_of_lone_and_other_writers_are_durable(
            writers in prop::collection::vec(prop::collection::vec(0_u8..3, 1..40), 1..5),
        ) {
            let (directory, storage) = open();
            thread::scope(|scope| {
                for (writer, ways) in (0_u32..).zip(&writers) {
                    let storage = &storage;
                    scope.spawn(move || {
                        for (number, way) in (0_u32..).zip(ways) {
                            let key = writer << 16 | number;
                            let mut commit = put(storage, key);
                            match (way, commit.take_lone()) {
                                (0, Some(lone)) => lone.write(),
                                (1, lone) => drop(lone),
                                // A lone writer that is interrupted before it begins.
                                (_, lone) => {
                                    thread::yield_now();
                                    lone.map(LoneCommit::write).unwrap_or_default();
                                }
                            }
                            commit.wait().unwrap();
                            assert!(has(storage, key));
                        }
                    });
                }
            });
            drop(storage);
            // Refused if the numbers of the groups had a gap.
            let storage = DurableStorage::open(directory.path(), Durability::Sync).unwrap();
            for (writer, ways) in (0_u32..).zip(&writers) {
                for (number, _) in (0_u32..).zip(ways) {
                    prop_assert!(has(&storage, writer << 16 | number));
                }
            }
        }
    }
}
