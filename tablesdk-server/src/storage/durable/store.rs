//! The open embedded store: writes groups of writes and reads records.
//!
//! The store's background threads end at their first error and do not report it; from then on the store accepts no writes.

use std::error::Error;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fjall::{AbstractTree as _, Database, Keyspace, PersistMode, Readable as _};
use lsm_tree::{AnyTree, SeqNo};

use super::Durability;
use super::compaction::{self, Compactor};
use super::group_mark::{GROUP_KEY, GroupMark};
use super::merge::{self, ReadError, Source};
use super::overlay::{WriteScan, Writes};
use super::recent::Recent;
use super::recovery::Opened;
use super::snapshots::{InUse, Snapshots};
use super::tables::{RunScan, Tables};
use super::watermark::Watermark;
use crate::storage::{
    Reads, Records, Slice, Snapshot, StorageError, Visitor, is_exhausted, visit_records,
};

/// The open embedded store.
pub(super) struct Store {
    /// Dropped first: it uses the store.
    compactor: Compactor,
    database: Database,
    records: Keyspace,
    durability: Durability,
    watermark: Watermark,
    recent: Recent,
    /// Whether the writes are in `recent` that the store had when it was opened.
    has_recent: bool,
    tables: Arc<Tables>,
    /// The former ones. Dropping them may remove files, which takes time.
    replaced_tables: Option<Arc<Tables>>,
    snapshots: Snapshots,
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
            recent: Recent::default(),
            has_recent: false,
            tables: Arc::default(),
            replaced_tables: None,
            compactor: Compactor::default(),
            database: opened.database,
            records: opened.records,
            durability,
            watermark: opened.watermark,
            snapshots: Snapshots::default(),
        }
    }

    /// A snapshot of everything that is written, which has this epoch.
    pub(super) fn durable_records(&mut self, epoch: u64) -> StoredRecords {
        let tree = &self.records.tree;
        let is_complete = self.recent.remove_flushed(tree) && self.has_recent;
        // Read before the snapshot is taken, which has it or a later one.
        let snapshot = self.snapshots.add(self.database.visible_seqno());
        if let Some(tables) = self.tables.newer(tree) {
            self.replaced_tables = Some(mem::replace(&mut self.tables, Arc::new(tables)));
            self.compactor.start(tree, self.snapshots.first());
        }
        let layers = is_complete.then(|| Layers {
            recent: self.recent.writes(),
            tables: Arc::clone(&self.tables),
        });
        StoredRecords(Arc::new(Stored {
            epoch,
            layers,
            snapshot: self.database.snapshot(),
            records: self.records.clone(),
            _in_use: snapshot,
        }))
    }

    /// Closes the store, unless snapshots of it other than `durable` are in use.
    ///
    /// # Errors
    ///
    /// Returns both arguments if there are such snapshots, or a compaction is running.
    #[expect(clippy::result_large_err, reason = "the caller goes on with both")]
    pub(super) fn close(mut self, durable: StoredRecords) -> Result<(), (Self, StoredRecords)> {
        // Of `durable` and of all earlier ones. Nobody can get another one now.
        let is_read = Arc::strong_count(&durable.0) > 1 || self.snapshots.count() > 1;
        if is_read || self.compactor.is_running() {
            return Err((self, durable));
        }
        drop(durable);
        let Self {
            database,
            records,
            snapshots,
            ..
        } = self;
        // The last reader has finished by now.
        debug_assert_eq!(
            snapshots.count(),
            0,
            "readers come from what the caller has given up"
        );
        drop(records);
        // Ends the background threads, and unlocks the directory.
        drop(database);
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
    pub(super) fn write(&self, writes: &Writes, number: u64) -> Result<(), WriteError> {
        let tree = &self.records.tree;
        wait_for_room(tree, || self.snapshots.first(), || self.is_running())?;
        let mode = match self.durability {
            Durability::Relaxed => PersistMode::Buffer,
            // The length of a journal and the times of its last change need no sync: it is created at its full length, and otherwise a sync
            // of the data includes the length.
            Durability::Sync => PersistMode::SyncData,
        };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, record) in writes.records() {
            batch.insert(&self.records, key, record);
        }
        for key in writes.removed() {
            batch.remove(&self.records, key);
        }
        let mark = GroupMark {
            number,
            sequence_min: self.database.seqno(),
        };
        batch.insert(&self.records, GROUP_KEY, mark.record());
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

    /// Drops the tables that the last snapshot has no more.
    pub(super) fn drop_replaced_tables(&mut self) {
        self.replaced_tables = None;
    }

    /// Does what is due when nothing is being written. Returns whether there will be more to do.
    pub(super) fn tidy(&mut self) -> bool {
        self.drop_replaced_tables();
        let tree = &self.records.tree;
        let removals = self.recent.newest_removals();
        let has_much_to_remove = compaction::bytes_hidden(tree, removals) >= HIDDEN_BYTES_MAX;
        if has_much_to_remove {
            // The removals become a table, which is merged with others. An error means that the store has stopped.
            let _ = self.records.rotate_memtable();
        }
        if tree.version_free_list_len() > 0 {
            // Earlier lists of tables, which keep their files and memory tables. The store itself forgets them when a memory table is full.
            let mut versions = tree.get_version_history_lock();
            // If files remain, the store removes them when it is opened.
            let _ = versions.maintenance(self.records.path(), self.snapshots.first());
        }
        has_much_to_remove || self.compactor.is_running()
    }

    /// Copies the writes that are in no table yet. Until then, and until the store has written those tables that were due when it was opened,
    /// reads go through the store.
    pub(super) fn read_recent(&mut self) {
        self.recent = Recent::of(&self.records.tree);
        self.has_recent = true;
    }

    /// Adds a group to the recent writes.
    pub(super) fn add_recent(&mut self, group: &Writes) {
        self.recent.add(group, &self.records.tree);
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

/// Waits until the background threads have caught up, and helps them. The store waits itself within a write, but waits for ever if its
/// background threads have stopped, or have nothing to do.
fn wait_for_room(
    tree: &AnyTree,
    watermark: impl Fn() -> SeqNo,
    is_running: impl Fn() -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    loop {
        let has_many_runs = tree.l0_run_count() >= RUNS_MAX;
        if !has_many_runs && tree.sealed_memtable_count() < SEALED_MEMTABLES_MAX {
            return Ok(());
        }
        is_running()?;
        thread::sleep(ROOM_INTERVAL);
        if has_many_runs {
            let merged = compaction::merge_first_level(tree, watermark());
            merged.map_err(|error| WriteError::Failed(failed("write", &error)))?;
        }
    }
}

/// The durable records. A clone is cheap: the store itself keeps a list of its snapshots, and has one of them for each group.
#[derive(Clone)]
pub(super) struct StoredRecords(Arc<Stored>);

struct Stored {
    epoch: u64,
    /// The way to read them without the store. `None` shortly after the store was opened.
    layers: Option<Layers>,
    snapshot: fjall::Snapshot,
    records: Keyspace,
    /// Dropped last: a snapshot that is not counted holds nothing of the store.
    _in_use: InUse,
}

impl StoredRecords {
    /// Passes all records of a range to a visitor.
    fn visit_all(
        &self,
        start: &[u8],
        end: &[u8],
        reads: Reads,
        visitor: &mut Visitor<'_>,
    ) -> Result<(), StorageError> {
        if let Some(layers) = &self.0.layers {
            let next = layers.visit(start, end, reads, visitor)?;
            debug_assert!(next.is_none(), "a scan that reads files goes to its end");
            return Ok(());
        }
        visit_records(self.range(start, end), visitor)
    }
}

impl Snapshot for StoredRecords {
    fn epoch(&self) -> Option<u64> {
        Some(self.0.epoch)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        if let Some(layers) = &self.0.layers {
            return layers.get(key);
        }
        let record = self.0.snapshot.get(&self.0.records, key);
        let record = record.map_err(|error| failed("read", &error))?;
        Ok(record.map(|record| Slice::Owned(record.into())))
    }

    fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
        if start >= end {
            return Box::new(std::iter::empty());
        }
        let records = self.0.snapshot.range(&self.0.records, start..end);
        Box::new(records.map(|record| {
            let (key, record) = record
                .into_inner()
                .map_err(|error| failed("read", &error))?;
            Ok((Slice::Owned(key.into()), Slice::Owned(record.into())))
        }))
    }

    fn visit(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<(), StorageError> {
        self.visit_all(start, end, Reads::All, visitor)
    }

    fn visit_once(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<(), StorageError> {
        self.visit_all(start, end, Reads::Once, visitor)
    }

    fn visit_in_memory(
        &self,
        start: &[u8],
        end: &[u8],
        visitor: &mut Visitor<'_>,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        match &self.0.layers {
            Some(layers) => layers.visit(start, end, Reads::Memory, visitor),
            None => Ok(Some(start.to_vec())),
        }
    }
}

/// All records: those of a layer hide those of the layers below.
struct Layers {
    /// The newest first.
    recent: Vec<Writes>,
    /// Below all of `recent`.
    tables: Arc<Tables>,
}

impl Layers {
    fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
        match self.recent.iter().find_map(|writes| writes.get(key)) {
            Some(write) => Ok(write.record()),
            None => self.tables.get(key),
        }
    }

    /// Returns the key from which on to continue if a file must be read.
    fn visit(
        &self,
        start: &[u8],
        end: &[u8],
        reads: Reads,
        visitor: &mut Visitor<'_>,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        if start >= end {
            return Ok(None);
        }
        let mut last = Vec::new();
        match self.visit_after(start, end, reads, visitor, &mut last) {
            Ok(()) => Ok(None),
            Err(ReadError::NotInMemory) if last.is_empty() => Ok(Some(start.to_vec())),
            Err(ReadError::NotInMemory) => {
                // The first key after the last one.
                last.push(0);
                Ok(Some(last))
            }
            Err(ReadError::Failed(error)) => Err(error),
        }
    }

    fn visit_after(
        &self,
        start: &[u8],
        end: &[u8],
        reads: Reads,
        visitor: &mut Visitor<'_>,
        last: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let recent = self.recent.iter();
        let recent = recent.flat_map(|writes| writes.scans(start, end));
        let recent = recent.map(|scan| Ok(Scan::Recent(scan)));
        let tables = self.tables.scans(start, end, reads);
        let tables = tables.map(|scan| scan.map(Scan::Run));
        let scans = recent.chain(tables).collect::<Result<_, ReadError>>()?;
        merge::visit(scans, visitor, last)
    }
}

enum Scan<'a> {
    Recent(WriteScan<'a>),
    Run(RunScan<'a>),
}

impl Source for Scan<'_> {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Recent(scan) => scan.key(),
            Self::Run(scan) => scan.key(),
        }
    }

    fn record(&self) -> Option<&[u8]> {
        match self {
            Self::Recent(scan) => scan.record(),
            Self::Run(scan) => scan.record(),
        }
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        match self {
            Self::Recent(scan) => scan.advance(),
            Self::Run(scan) => scan.advance(),
        }
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

/// Converts an error of the embedded store. A read that failed because of too many open files may be retried.
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
const RUNS_MAX: usize = 28;
/// Writes that remove records do not stay in a memory table at rest if they hide about so many bytes.
const HIDDEN_BYTES_MAX: u64 = 16 * 1024 * 1024;
const ROOM_INTERVAL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;

    use lsm_tree::{Config, SequenceNumberCounter};
    use proptest::prelude::*;

    use super::super::recovery;
    use super::*;
    use crate::storage::WriteBatch;

    /// What a history does.
    #[derive(Clone, Debug)]
    enum Step {
        /// Writes a group of records, or removes their keys. A record has so many bytes.
        Write(Vec<(u16, Option<u16>)>),
        /// The store writes its newest memory table to the disk.
        Flush,
        /// The store merges all tables.
        Compact,
        /// The store is closed and opened again.
        Reopen,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let sizes = prop_oneof![20 => 0_u16..100, 1 => 5000_u16..20_000];
        let record = prop_oneof![3 => sizes.prop_map(Some), 1 => Just(None)];
        let writes = prop::collection::vec((0_u16..300, record), 1..60);
        let step = prop_oneof![
            6 => writes.prop_map(Step::Write),
            3 => Just(Step::Flush),
            1 => Just(Step::Compact),
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

    /// What is in memory, and then the rest. Returns whether there was a rest.
    fn visited_in_turns(records: &StoredRecords, start: &[u8], end: &[u8]) -> (Found, bool) {
        let mut in_memory = Vec::new();
        let next = records.visit_in_memory(start, end, &mut |key, record| {
            in_memory.push((key.to_vec(), record.to_vec()));
            Ok(ControlFlow::Continue(()))
        });
        let next = next.unwrap();
        if let Some(next) = &next {
            in_memory.extend(visited(records, next, end));
        }
        (in_memory, next.is_some())
    }

    /// The store at a moment reads like the model.
    fn check(records: &StoredRecords, model: &BTreeMap<Vec<u8>, Vec<u8>>, from: u16) {
        let owned = model
            .iter()
            .map(|(key, record)| (key.clone(), record.clone()));
        let owned = owned.collect::<Vec<_>>();
        let (found, _) = visited_in_turns(records, b"a", b"z");
        assert_eq!(found, owned);
        assert_eq!(visited(records, b"a", b"z"), owned);
        let (found, has_rest) = visited_in_turns(records, b"a", b"z");
        assert_eq!(found, owned);
        // It was just read.
        assert_eq!(has_rest, records.0.layers.is_none());
        let (start, end) = (key(from), key(from.saturating_add(40)));
        if start < end {
            let range = model.range(start.clone()..end.clone());
            let owned = range.map(|(key, record)| (key.clone(), record.clone()));
            assert_eq!(visited(records, &start, &end), owned.collect::<Vec<_>>());
        }
        assert!(visited(records, &end, &start).is_empty());
        for number in 0..310 {
            let key = key(number);
            let record = records.get(&key).unwrap();
            assert_eq!(record.as_deref(), model.get(&key).map(Vec::as_slice));
        }
    }

    /// The first level was busy each time that the threads of the store looked, so that they have nothing left to do.
    #[test]
    fn a_write_does_not_wait_for_ever_for_a_first_level_that_nobody_merges() {
        let place = tempfile::tempdir().unwrap();
        let counter = SequenceNumberCounter::default;
        let tree = Config::new(place.path(), counter(), counter()).open();
        let tree = tree.unwrap();
        for number in 0..RUNS_MAX {
            for key in ["a", "b"] {
                tree.insert(key, number.to_be_bytes(), number.try_into().unwrap());
            }
            tree.flush_active_memtable(0).unwrap();
        }
        assert_eq!(tree.l0_run_count(), RUNS_MAX);
        let room = wait_for_room(&tree, || 0, || Ok(()));
        assert!(room.is_ok());
        assert!(tree.l0_run_count() < RUNS_MAX);
        let last = tree.get("a", SeqNo::MAX).unwrap().unwrap();
        assert_eq!(*last, (RUNS_MAX - 1).to_be_bytes());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn records_are_read_from_every_layer(steps in steps(), from in 0_u16..300) {
            let place = tempfile::tempdir().unwrap();
            let directory = place.path().join("data");
            let open = || {
                let (directory, opened) = recovery::open(&directory).unwrap();
                let number = opened.group_number;
                let mut store = Store::new(opened, Durability::Relaxed);
                store.read_recent();
                (directory, store, number)
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
                        store.add_recent(&writes);
                    }
                    Step::Flush => store.records.rotate_memtable_and_wait().unwrap(),
                    Step::Compact => store.records.major_compact().unwrap(),
                    Step::Reopen => {
                        earlier.clear();
                        drop((store, opened));
                        (opened, store, number) = open();
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
            let records = store.durable_records(0);
            prop_assert!(records.0.layers.is_some(), "nothing is left to write to tables");
        }
    }

    #[test]
    fn reads_go_through_the_store_until_the_recent_writes_are_known() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("data");
        let (_directory, opened) = recovery::open(&directory).unwrap();
        let mut store = Store::new(opened, Durability::Relaxed);
        let mut writes = Writes::default();
        writes.put(b"key", b"record");
        assert!(store.write(&writes, 1).is_ok());
        let records = store.durable_records(0);
        assert!(records.0.layers.is_none());
        let found = [(b"key".to_vec(), b"record".to_vec())];
        assert_eq!(visited(&records, b"a", b"z"), found);
        store.read_recent();
        let records = store.durable_records(0);
        assert!(records.0.layers.is_some());
        assert_eq!(visited(&records, b"a", b"z"), found);
    }
}
