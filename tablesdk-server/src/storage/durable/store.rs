//! The open embedded store: writes groups of writes and reads records, by its public interface.
//!
//! The store's background threads end at their first error and do not report it; from then on the
//! store accepts no writes.

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fjall::{Database, Keyspace, PersistMode, Readable as _};

use super::durability::Durability;
use super::group_mark;
use super::overlay::Writes;
use super::recovery::Opened;
use super::watermark::Watermark;
use crate::storage::{Records, Slice, Snapshot, StorageError, Visitor, is_exhausted};

/// The open embedded store.
pub(super) struct Store {
    database: Database,
    records: Keyspace,
    durability: Durability,
    watermark: Watermark,
    /// Each snapshot in use has another reference.
    in_use: Arc<()>,
    /// How many keys were removed since the removals were last merged.
    removed: usize,
    /// How many were removed before, and since the removals were last merged at rest. What
    /// snapshots or later writes needed meanwhile may still be there.
    merged: usize,
    /// How many more tables are written so that the store merges the removals with what they hide.
    tables_due: u32,
    /// How often a table has waited for a merge.
    waits: u32,
    /// About how many bytes went to the journal since the store was last made to look at its
    /// length, or was opened.
    journaled: usize,
}

/// Why a group was not acknowledged.
pub(super) enum WriteError {
    /// The store had stopped before, so nothing of the group was written.
    Stopped,
    /// The outcome is unknown.
    Failed(StorageError),
}

impl Store {
    pub(super) fn new(opened: Opened, durability: Durability) -> Self {
        Self {
            database: opened.database,
            records: opened.records,
            durability,
            watermark: opened.watermark,
            in_use: Arc::default(),
            removed: 0,
            merged: 0,
            tables_due: 0,
            waits: 0,
            journaled: 0,
        }
    }

    /// A snapshot of everything that is written, which has this epoch.
    pub(super) fn durable_records(&self, epoch: u64) -> StoredRecords {
        StoredRecords(Arc::new(Stored {
            epoch,
            snapshot: self.database.snapshot(),
            records: self.records.clone(),
            _in_use: Arc::clone(&self.in_use),
        }))
    }

    /// Closes the store, unless snapshots of it other than `durable` are in use.
    ///
    /// # Errors
    ///
    /// Returns both arguments if there are such snapshots.
    pub(super) fn close(self, durable: StoredRecords) -> Result<(), (Self, StoredRecords)> {
        // Of `durable` and of all earlier ones. Nobody can get another one now.
        if Arc::strong_count(&durable.0) > 1 || Arc::strong_count(&self.in_use) > 2 {
            return Err((self, durable));
        }
        // The last reference ends the background threads, and unlocks the directory.
        drop((durable, self));
        Ok(())
    }

    /// Returns an error if the store has stopped.
    pub(super) fn is_running(&self) -> Result<(), WriteError> {
        // The buffer is empty after each write, so this only checks.
        match self.database.persist(PersistMode::Buffer) {
            Ok(()) => Ok(()),
            Err(fjall::Error::Poisoned) => Err(WriteError::Stopped),
            Err(error) => Err(WriteError::Failed(failed("write", &error))),
        }
    }

    /// Writes a group as a whole, with its number.
    pub(super) fn write(&mut self, writes: &Writes, number: u64) -> Result<(), WriteError> {
        self.wait_for_room(number)?;
        let mode = match self.durability {
            Durability::Relaxed => PersistMode::Buffer,
            // The length of a journal and the times of its last change need no sync: it is created
            // at its full length, and otherwise a sync of the data includes the length.
            Durability::Sync => PersistMode::SyncData,
        };
        let mut batch = self.database.batch().durability(Some(mode));
        let mut bytes = 3 * ITEM_BYTES;
        for (key, record) in writes.records() {
            batch.insert(&self.records, key, record);
            bytes += key.len() + record.len() + ITEM_BYTES;
        }
        for key in writes.removed() {
            batch.remove(&self.records, key);
            bytes += key.len() + ITEM_BYTES;
            self.removed += 1;
        }
        self.journaled = self.journaled.saturating_add(bytes);
        for (key, record) in group_mark::of(number) {
            batch.insert(&self.records, key, record);
        }
        batch.commit().map_err(|error| match error {
            // Returned before anything is written, and at no other time.
            fjall::Error::Poisoned => WriteError::Stopped,
            error => WriteError::Failed(failed("write", &error)),
        })?;
        match self.durability {
            // A power loss may undo it, so the watermark stays.
            Durability::Relaxed => Ok(()),
            Durability::Sync => self.set_watermark(number).map_err(WriteError::Failed),
        }
    }

    /// Waits, before the group with that number, until the background threads have caught up. The
    /// store waits itself within a write, but waits for ever if its background threads have
    /// stopped, or have nothing to do: they look whether there is something to merge once for each
    /// table that they write, and do not know of a memory table that could not be written by an
    /// ingestion.
    fn wait_for_room(&self, number: u64) -> Result<(), WriteError> {
        let (mut looks, mut next) = (0, LOOKS_MIN);
        loop {
            let has_many_tables = self.records.l0_table_count() >= FIRST_LEVEL_MAX;
            let has_many_in_memory = self.records.sealed_memtable_count() >= SEALED_MEMTABLES_MAX;
            if !has_many_tables && !has_many_in_memory {
                return Ok(());
            }
            self.is_running()?;
            thread::sleep(ROOM_INTERVAL);
            looks += 1;
            if looks < next {
                continue;
            }
            next = looks * 2;
            if has_many_in_memory {
                let written = self.write_tables(number.saturating_sub(1));
                // Nothing of the group is written.
                written.map_err(|_| WriteError::Stopped)?;
            } else if let Ok(nothing) = self.records.start_ingestion() {
                // An ingestion of nothing makes them look again. An error means that the store has
                // stopped.
                let _ = nothing.finish();
            }
        }
    }

    /// Does what is due when nothing is being written. `is_at_rest`: whether this is so for some
    /// time. Returns whether there will be more to do.
    ///
    /// The store merges tables when a level has many of them, or many bytes. A removal takes few
    /// bytes and may hide many, so records that were deleted could stay: those of deleted tables
    /// are not written again. So some more tables are written after many removals.
    pub(super) fn tidy(&mut self, number: u64, is_at_rest: bool) -> bool {
        let all = self.removed.saturating_add(self.merged);
        let (removed, merged, per_removal) = if is_at_rest {
            (all, 0, ENTRIES_PER_REMOVAL_AT_REST)
        } else {
            (self.removed, all, ENTRIES_PER_REMOVAL)
        };
        let is_much = removed.saturating_mul(per_removal) >= self.records.approximate_len().max(1);
        if is_much && self.records.disk_space() >= HIDDEN_BYTES_MAX {
            (self.removed, self.merged) = (0, merged);
            self.tables_due = TABLES_PER_CLEAN_UP;
        }
        if self.tables_due == 0 {
            return false;
        }
        if self.records.l0_table_count() >= MERGED_MIN && self.waits < WAITS_MAX {
            // A merge of what comes now would begin before the end of this one, and not remove what
            // it has replaced.
            self.waits += 1;
            return true;
        }
        (self.tables_due, self.waits) = (self.tables_due - 1, 0);
        if self.journaled >= JOURNAL_BYTES {
            // The store begins a new journal only when a memory table is full, which may never
            // happen between two clean-ups. An error means that it has stopped.
            let _ = self.records.rotate_memtable();
            self.journaled = 0;
        }
        // After an error, the records stay in memory and in the journal.
        self.tables_due = self.write_tables(number).map_or(0, |()| self.tables_due);
        self.tables_due > 0
    }

    /// Makes a table of what is in memory, and another one of the mark of the last group, which is
    /// written again.
    fn write_tables(&self, number: u64) -> fjall::Result<()> {
        let [_, (key, record)] = group_mark::of(number);
        let mut table = self.records.start_ingestion()?;
        table.write(key, record)?;
        table.finish()
    }

    /// Syncs all groups up to this number.
    pub(super) fn sync(&self, number: u64) -> Result<(), StorageError> {
        let synced = self.database.persist(PersistMode::SyncAll);
        synced.map_err(|error| failed("sync", &error))?;
        self.set_watermark(number)
    }

    fn set_watermark(&self, number: u64) -> Result<(), StorageError> {
        let noted = self.watermark.set(number);
        noted.map_err(|error| failed("write", &error))
    }
}

/// The durable records. A clone is cheap: the store itself keeps a list of its snapshots, and has
/// one of them for each group.
#[derive(Clone)]
pub(super) struct StoredRecords(Arc<Stored>);

struct Stored {
    epoch: u64,
    snapshot: fjall::Snapshot,
    records: Keyspace,
    /// Dropped last: a snapshot that is not counted holds nothing of the store.
    _in_use: Arc<()>,
}

impl StoredRecords {
    fn entries(
        &self,
        start: &[u8],
        end: &[u8],
    ) -> impl Iterator<Item = Result<fjall::KvPair, StorageError>> + use<> {
        // The store takes a range that ends before it starts for an error of its caller.
        let entries = (start < end).then(|| self.0.snapshot.range(&self.0.records, start..end));
        let entries = entries.into_iter().flatten();
        entries.map(|entry| entry.into_inner().map_err(|error| failed("read", &error)))
    }
}

impl Snapshot for StoredRecords {
    fn epoch(&self) -> Option<u64> {
        Some(self.0.epoch)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        let record = self.0.snapshot.get(&self.0.records, key);
        let record = record.map_err(|error| failed("read", &error))?;
        Ok(record.map(|record| Slice::Owned(record.into())))
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        let entries = self.entries(start, end);
        Box::new(entries.map(|entry| {
            let (key, record) = entry?;
            Ok((Slice::Owned(key.into()), Slice::Owned(record.into())))
        }))
    }

    fn visit(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<(), StorageError> {
        for entry in self.entries(start, end) {
            let (key, record) = entry?;
            if visitor(&key, &record)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The snapshot while the store is closed: every read fails.
#[derive(Debug)]
pub(super) struct Unreadable(pub(super) StorageError);

impl Snapshot for Unreadable {
    fn get(&self, _: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        Err(self.0.clone())
    }

    fn range(&self, _: &[u8], _: &[u8]) -> Records<'_> {
        Box::new(std::iter::once(Err(self.0.clone())))
    }
}

/// Converts an error of the embedded store. A read that failed because of too many open files may
/// be retried.
pub(super) fn failed(what: &'static str, error: &(dyn Error + 'static)) -> StorageError {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    if what == "read" && causes.any(|cause| cause.downcast_ref().is_some_and(is_exhausted)) {
        return StorageError::Exhausted { what };
    }
    StorageError::Failed {
        what,
        cause: error.to_string().into(),
    }
}

/// The store may wait for ever from 4 on, and one write can add two.
const SEALED_MEMTABLES_MAX: usize = 2;
/// The same, from 30 on.
const FIRST_LEVEL_MAX: usize = 28;
const ROOM_INTERVAL: Duration = Duration::from_millis(1);
/// After so many intervals, the threads are helped.
const LOOKS_MIN: u32 = 1000;

/// If one entry of so many is a removal, the removals are merged with what they hide.
const ENTRIES_PER_REMOVAL: usize = 8;
/// The same at rest: the records that they hide may be larger than others.
const ENTRIES_PER_REMOVAL_AT_REST: usize = 64;
/// So many bytes of deleted records may stay.
const HIDDEN_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// For three merges. What a snapshot needed at the first one, the second one removes, and the third
/// one removes the files that the second one has replaced.
const TABLES_PER_CLEAN_UP: u32 = 12;
/// The store merges the first level when it has so many tables.
const MERGED_MIN: usize = 4;
/// The store begins another journal when one is so long and a memory table is written.
const JOURNAL_BYTES: usize = 64 * 1024 * 1024;
/// The most bytes that a journal adds to an item.
const ITEM_BYTES: usize = 32;
/// After so many looks, the next table makes the store look again.
const WAITS_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::directory::Directory;
    use super::super::recovery;
    use super::*;
    use crate::storage::WriteBatch;

    /// A step of a history.
    #[derive(Clone, Debug)]
    enum Step {
        /// Writes a group of records, or removes their keys. A record has so many bytes.
        Write(Vec<(u16, Option<u16>)>),
        /// The store writes its newest memory table to the disk, and merges tables when it has
        /// several.
        Tidy,
        /// The store is closed and opened again.
        Reopen,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let sizes = prop_oneof![20 => 0_u16..100, 1 => 5000_u16..20_000];
        let record = prop_oneof![3 => sizes.prop_map(Some), 1 => Just(None)];
        let writes = prop::collection::vec((0_u16..300, record), 1..60);
        let step = prop_oneof![
            6 => writes.prop_map(Step::Write),
            3 => Just(Step::Tidy),
            1 => Just(Step::Reopen),
        ];
        prop::collection::vec(step, 1..30)
    }

    /// Keys of several lengths, with common beginnings.
    fn key(number: u16) -> Vec<u8> {
        let mut key = format!("e{:02}", number / 10).into_bytes();
        key.extend(std::iter::repeat_n(b'k', usize::from(number % 10)));
        key
    }

    type Found = Vec<(Vec<u8>, Vec<u8>)>;

    fn visited(records: &StoredRecords, start: &[u8], end: &[u8]) -> Found {
        let mut visited = Vec::new();
        let result = records.visit(start, end, &mut |key, record| {
            visited.push((key.to_vec(), record.to_vec()));
            Ok(ControlFlow::Continue(()))
        });
        result.unwrap();
        visited
    }

    /// The store at a moment reads like the model.
    fn check(records: &StoredRecords, model: &BTreeMap<Vec<u8>, Vec<u8>>, from: u16) {
        let owned = |range: std::collections::btree_map::Range<'_, _, _>| {
            let owned =
                range.map(|(key, record): (&Vec<u8>, &Vec<u8>)| (key.clone(), record.clone()));
            owned.collect::<Vec<_>>()
        };
        assert_eq!(visited(records, b"a", b"z"), owned(model.range(vec![]..)));
        let (start, end) = (key(from), key(from.saturating_add(40)));
        if start < end {
            let range = model.range(start.clone()..end.clone());
            assert_eq!(visited(records, &start, &end), owned(range));
        }
        assert!(visited(records, &end, &start).is_empty());
        for number in 0..310 {
            let key = key(number);
            let record = records.get(&key).unwrap();
            assert_eq!(record.as_deref(), model.get(&key).map(Vec::as_slice));
        }
    }

    /// Without a thread that merges, a write would wait for ever.
    #[test]
    fn a_write_does_not_wait_for_ever_for_a_first_level_that_nobody_merges() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("data");
        drop(recovery::open(&directory).unwrap());
        // As if all threads had found the level busy when they looked.
        let idle = Database::builder(directory.join("records")).worker_threads_unchecked(0);
        let idle = idle.open().unwrap();
        let records = idle.keyspace("records", || panic!("it exists")).unwrap();
        for _ in 0..FIRST_LEVEL_MAX {
            let mut table = records.start_ingestion().unwrap();
            table.write("a", "record").unwrap();
            table.finish().unwrap();
        }
        assert_eq!(records.l0_table_count(), FIRST_LEVEL_MAX);
        drop((records, idle));
        let (_directory, opened) = recovery::open(&directory).unwrap();
        let store = Store::new(opened, Durability::Relaxed);
        assert!(store.wait_for_room(1).is_ok());
        assert!(store.records.l0_table_count() < FIRST_LEVEL_MAX);
        assert_eq!(&*store.records.get("a").unwrap().unwrap(), b"record");
    }

    fn open(directory: &Path) -> (Directory, Store, u64) {
        let (directory, opened) = recovery::open(directory).unwrap();
        let number = opened.group_number;
        (directory, Store::new(opened, Durability::Relaxed), number)
    }

    fn put(key: &str, record: &[u8]) -> Writes {
        let mut batch = WriteBatch::default();
        batch.put(key, record);
        let mut writes = Writes::default();
        writes.add(&batch);
        writes
    }

    #[test]
    fn journals_do_not_grow_while_removals_are_merged() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        let (_directory, mut store, _) = open(&path);
        // The store compresses larger ones.
        let record = [7; 4000];
        let mut number = 0;
        // Less than a memory table each time, and more than three journals in the end.
        for _ in 0..30 {
            for index in 0..2000 {
                number += 1;
                let writes = put(&format!("k{index}"), &record);
                assert!(store.write(&writes, number).is_ok());
            }
            (store.tables_due, store.waits) = (1, WAITS_MAX);
            assert!(!store.tidy(number, false));
        }
        let bytes = || {
            let entries = std::fs::read_dir(path.join("records")).unwrap();
            let paths = entries.map(|entry| entry.unwrap().path());
            let journals = paths.filter(|path| path.extension().is_some_and(|name| name == "jnl"));
            // One may be removed at this moment.
            journals
                .map(|path| std::fs::metadata(path).map_or(0, |file| file.len()))
                .sum::<u64>()
        };
        let is_small = || bytes() <= 3 * 64 * 1024 * 1024;
        let waits = (0..500).take_while(|_| {
            thread::sleep(Duration::from_millis(10));
            !is_small()
        });
        assert!(waits.count() < 500, "{} bytes of journals", bytes());
    }

    /// As after two moments at which the disk was full.
    #[test]
    fn a_write_does_not_wait_for_ever_for_memory_tables_that_nobody_writes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        let (_directory, mut store, _) = open(&path);
        let tables = path.join("records/keyspaces/1/tables");
        let away = place.path().join("away");
        for number in 1..=2 {
            assert!(store.write(&put("a", b"1"), number).is_ok());
            let mut table = store.records.start_ingestion().unwrap();
            table.write("b", "2").unwrap();
            std::fs::rename(&tables, &away).unwrap();
            assert!(table.finish().is_err());
            std::fs::rename(&away, &tables).unwrap();
        }
        assert_eq!(store.records.sealed_memtable_count(), SEALED_MEMTABLES_MAX);
        assert!(store.write(&put("a", b"3"), 3).is_ok());
        assert_eq!(&*store.records.get("a").unwrap().unwrap(), b"3");
        assert_eq!(store.records.sealed_memtable_count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn snapshots_read_what_was_written_before(steps in steps(), from in 0_u16..300) {
            let place = tempfile::tempdir().unwrap();
            let directory = place.path().join("data");
            let open = || {
                let (directory, opened) = recovery::open(&directory).unwrap();
                let number = opened.group_number;
                (directory, Store::new(opened, Durability::Relaxed), number)
            };
            let (mut opened, mut store, mut number) = open();
            let mut model = BTreeMap::new();
            // Snapshots keep what they had.
            let mut earlier = Vec::new();
            for step in steps {
                match step {
                    Step::Write(writes) => {
                        let mut batch = WriteBatch::default();
                        for (number, record) in writes {
                            let key = key(number);
                            match record {
                                Some(bytes) => {
                                    let record = vec![bytes.to_le_bytes()[0]; bytes.into()];
                                    batch.put(key.clone(), record.clone());
                                    model.insert(key, record);
                                }
                                None => {
                                    batch.delete(key.clone());
                                    model.remove(&key);
                                }
                            }
                        }
                        let mut writes = Writes::default();
                        writes.add(&batch);
                        number += 1;
                        prop_assert!(store.write(&writes, number).is_ok());
                    }
                    Step::Tidy => {
                        (store.tables_due, store.waits) = (1, WAITS_MAX);
                        prop_assert!(!store.tidy(number, false));
                    }
                    Step::Reopen => {
                        earlier.clear();
                        drop((store, opened));
                        let before = number;
                        (opened, store, number) = open();
                        prop_assert_eq!(number, before);
                    }
                }
                let records = store.durable_records(0);
                check(&records, &model, from);
                earlier.push((records, model.clone()));
                if earlier.len() > 3 {
                    earlier.remove(0);
                }
            }
            for (records, model) in &earlier {
                check(records, model, from);
            }
        }
    }
}
