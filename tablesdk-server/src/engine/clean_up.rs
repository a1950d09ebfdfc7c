//! Removes the entities of deleted tables, after the deletion of the table.
//!
//! Deleting a table removes its name and writes a mark with its id. The clean-up removes the
//! entities later, in small batches. The remaining work is recorded in the storage only, so that a
//! clean-up continues where the previous one ended, also in a new process. No request reads or
//! writes entities of a deleted table, so a clean-up does not need the writer's lock.
//!
//! A log-structured store keeps a tombstone of each removed record until it compacts, and a read
//! skips over all of them. So a cursor in memory records where the next batch begins: without it,
//! each batch would skip over the tombstones of all earlier batches. A new process has no cursor,
//! and skips over them once.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::key_codec::{self, TableId};
use super::view::View;
use crate::storage::{StorageError, WriteBatch};

/// Where the next batch begins.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The least id that the next deleted table may have.
    table: TableId,
    /// Within that table, the first key that is not yet removed; `None` before its first batch.
    key: Option<Bytes>,
    /// How often a checkpoint was restored before.
    restores: u64,
}

impl Cursor {
    /// Begins anew if a checkpoint was restored since: entities that were removed may be there
    /// again.
    pub(super) fn follow(&mut self, restores: u64) {
        if self.restores != restores {
            *self = Self {
                restores,
                ..Self::default()
            };
        }
    }
}

impl Default for Cursor {
    /// At the first deleted table.
    fn default() -> Self {
        Self {
            table: TableId::NONE,
            key: None,
            restores: 0,
        }
    }
}

/// The next removals; `None` when all deleted tables are cleaned up. Moves the cursor past them: if
/// the batch is not committed, the cursor must be dropped.
pub(super) fn next_batch(
    view: &View,
    cursor: &mut Cursor,
) -> Result<Option<WriteBatch>, StorageError> {
    let mut marks = view.deleted_table_ids(cursor.table);
    let table = match marks.next().transpose()? {
        Some(table) => table,
        // A table with a lower id may have been deleted since.
        None if cursor.table != TableId::NONE => match view.deleted_table_ids(TableId::NONE).next()
        {
            Some(table) => table?,
            None => return Ok(None),
        },
        None => return Ok(None),
    };
    let key = cursor.key.take().filter(|_| cursor.table == table);
    let start = key.unwrap_or_else(|| key_codec::entities_start(table).into());
    let end = key_codec::entities_end(table);
    let mut batch = WriteBatch::default();
    let mut next = None;
    view.visit_entities(&start, &end, |entity| {
        if batch.len() == ENTITIES_MAX {
            next = Some(Bytes::copy_from_slice(entity.key));
            return Ok(ControlFlow::Break(()));
        }
        batch.delete(entity.key);
        Ok(ControlFlow::Continue(()))
    })?;
    cursor.table = table;
    match next {
        Some(next) => cursor.key = Some(next),
        None => batch.delete(key_codec::clean_up_key(table)),
    }
    Ok(Some(batch))
}

/// The mark of a deleted table.
pub(super) fn mark(table: TableId, batch: &mut WriteBatch) {
    batch.put(key_codec::clean_up_key(table), []);
}

/// The maximum number of entities in a batch, which bounds the time that writers wait.
const ENTITIES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use bytes::Bytes;

    use tablesdk_protocol::{Clock, EntityKey, TableName};

    use super::*;
    use crate::engine::{Action, Change, Command, Engine, Failure, Paging, Properties};
    use crate::storage::tests::StorageDouble;
    use crate::storage::{Commit, MemoryStorage, Records, Slice, Snapshot, Storage, Write};
    use crate::time::monotonic_clock::tests::ManualClock;

    /// A storage that outlives engines.
    #[derive(Clone, Default)]
    struct Persistent(Arc<MemoryStorage>);

    impl StorageDouble for Persistent {
        fn inner(&self) -> &dyn Storage {
            &*self.0
        }

        fn is_persistent(&self) -> bool {
            true
        }
    }

    impl Persistent {
        fn engine(&self) -> Engine {
            let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
            Engine::new(Box::new(self.clone()), clock, Paging::default()).unwrap()
        }

        fn entities(&self) -> usize {
            self.0.snapshot().range(b"e", b"f").count()
        }
    }

    fn wait_for<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().unwrap().block_on(future)
    }

    fn run(engine: &Engine, command: &Command<'_>) -> Result<(), Failure> {
        wait_for(engine.commit("acct", command)).map(|_| ())
    }

    fn clean_up(engine: &Engine) -> Result<bool, StorageError> {
        let mut cursor = engine.try_begin_clean_up().unwrap();
        let Some(commit) = engine.clean_up_step(&mut cursor)? else {
            return Ok(false);
        };
        wait_for(commit)?;
        Ok(true)
    }

    fn fill(engine: &Engine, table: &TableName, count: usize) {
        run(engine, &Command::CreateTable(table)).unwrap();
        for number in 0..count {
            let key = &EntityKey::new("p", format!("{number:05}")).unwrap();
            let action = Action::Insert(&Properties::NONE);
            run(engine, &Command::Change(table, Change { key, action })).unwrap();
        }
    }

    #[test]
    fn a_deleted_table_is_cleaned_up_in_small_steps() {
        let storage = Persistent::default();
        let engine = storage.engine();
        let (old, other) = ("old".parse().unwrap(), "other".parse().unwrap());
        fill(&engine, &old, 2 * ENTITIES_MAX + 1);
        fill(&engine, &other, 3);
        assert_eq!(clean_up(&engine), Ok(false));

        run(&engine, &Command::DeleteTable(&old, Duration::ZERO)).unwrap();
        assert_eq!(storage.entities(), 2 * ENTITIES_MAX + 4);
        assert_eq!(clean_up(&engine), Ok(true));
        assert_eq!(storage.entities(), ENTITIES_MAX + 4);
        // Its name is free, and what is created now has nothing to do with what is swept.
        fill(&engine, &old, 2);
        assert_eq!(clean_up(&engine), Ok(true));
        // The next engine on the storage continues the clean-up.
        let engine = storage.engine();
        assert_eq!(clean_up(&engine), Ok(true));
        assert_eq!(storage.entities(), 5);
        assert_eq!(clean_up(&engine), Ok(false));
        assert_eq!(storage.0.snapshot().range(b"s", b"t").count(), 0);
    }

    #[test]
    fn tables_are_cleaned_up_one_after_another() {
        let storage = Persistent::default();
        let engine = storage.engine();
        for name in ["one", "two", "six"] {
            let table = name.parse().unwrap();
            fill(&engine, &table, ENTITIES_MAX);
            run(&engine, &Command::DeleteTable(&table, Duration::ZERO)).unwrap();
        }
        let mut steps_taken = 0;
        while clean_up(&engine).unwrap() {
            steps_taken += 1;
        }
        assert_eq!((steps_taken, storage.entities()), (3, 0));
    }

    /// Keeps removed records as tombstones, as a log-structured store does until it compacts, and
    /// counts the records and tombstones that reads step over.
    #[derive(Clone, Default)]
    struct Tombstones {
        inner: Persistent,
        records: Arc<Mutex<BTreeMap<Bytes, Option<Bytes>>>>,
        steps: Arc<AtomicUsize>,
    }

    impl StorageDouble for Tombstones {
        fn inner(&self) -> &dyn Storage {
            &self.inner
        }

        fn snapshot(&self) -> Box<dyn Snapshot> {
            Box::new(TombstonesSnapshot {
                records: self.records.lock().unwrap().clone(),
                steps: Arc::clone(&self.steps),
            })
        }

        fn uncommitted(&self) -> Box<dyn Snapshot> {
            StorageDouble::snapshot(self)
        }

        fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
            let mut records = self.records.lock().unwrap();
            for write in batch.iter() {
                let key = Bytes::copy_from_slice(write.key());
                records.insert(
                    key,
                    match write {
                        Write::Delete(_) => None,
                        Write::Put(_, record) => Some(Bytes::copy_from_slice(record)),
                    },
                );
            }
            Ok(Commit::DONE)
        }
    }

    #[derive(Debug)]
    struct TombstonesSnapshot {
        records: BTreeMap<Bytes, Option<Bytes>>,
        steps: Arc<AtomicUsize>,
    }

    impl Snapshot for TombstonesSnapshot {
        fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
            Ok(self.records.get(key).cloned().flatten().map(Slice::Owned))
        }

        fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
            let bounds = (Bound::Included(start), Bound::Excluded(end));
            let records = self.records.range::<[u8], _>(bounds);
            Box::new(records.filter_map(|(key, record)| {
                self.steps.fetch_add(1, Ordering::Relaxed);
                let record = record.clone()?;
                Some(Ok((Slice::Borrowed(key), Slice::Owned(record))))
            }))
        }
    }

    impl Tombstones {
        fn engine(&self) -> Engine {
            let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
            Engine::new(Box::new(self.clone()), clock, Paging::default()).unwrap()
        }

        /// How many records and tombstones an action steps over.
        fn steps_of(&self, action: impl FnOnce()) -> usize {
            let before = self.steps.load(Ordering::Relaxed);
            action();
            self.steps.load(Ordering::Relaxed) - before
        }
    }

    #[test]
    fn the_clean_up_skips_each_tombstone_once() {
        let storage = Tombstones::default();
        let engine = storage.engine();
        let table = "old".parse().unwrap();
        let count = 10 * ENTITIES_MAX;
        fill(&engine, &table, count);
        run(&engine, &Command::DeleteTable(&table, Duration::ZERO)).unwrap();
        let steps = storage.steps_of(|| while clean_up(&engine).unwrap() {});
        // Each step reads its mark, and one record ahead of what it removes.
        assert!(steps <= count + 100, "{steps} steps over {count} records");
    }

    #[test]
    fn a_new_process_skips_tombstones_once() {
        let storage = Tombstones::default();
        let engine = storage.engine();
        let table = "old".parse().unwrap();
        let count = 10 * ENTITIES_MAX;
        fill(&engine, &table, count);
        run(&engine, &Command::DeleteTable(&table, Duration::ZERO)).unwrap();
        for _ in 0..5 {
            assert_eq!(clean_up(&engine), Ok(true));
        }
        let engine = storage.engine();
        let steps = storage.steps_of(|| while clean_up(&engine).unwrap() {});
        assert!(steps <= count + 100, "{steps} steps over {count} records");
        assert_eq!(Storage::snapshot(&storage).range(b"e", b"f").count(), 0);
    }

    #[test]
    fn a_table_deleted_meanwhile_is_cleaned_up_for_any_id() {
        let storage = Persistent::default();
        let engine = storage.engine();
        let names = ["one", "two", "six"].map(|name| name.parse().unwrap());
        for table in &names {
            fill(&engine, table, ENTITIES_MAX + 1);
        }
        let [one, two, six] = &names;
        run(&engine, &Command::DeleteTable(two, Duration::ZERO)).unwrap();
        assert_eq!(clean_up(&engine), Ok(true));
        for table in [one, six] {
            run(&engine, &Command::DeleteTable(table, Duration::ZERO)).unwrap();
        }
        let mut steps_taken = 1;
        while clean_up(&engine).unwrap() {
            steps_taken += 1;
        }
        assert_eq!((steps_taken, storage.entities()), (6, 0));
        assert!(!engine.has_deleted_tables());
    }
}
