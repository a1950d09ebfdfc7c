//! Opens a data directory, and checks that the store in it has all acknowledged writes. [`open_in`]
//! opens the embedded store in a directory that this process has locked already, both at the start
//! and after a failure.
//!
//! The store cuts a journal at the first bytes that it cannot read. After a crash that is right,
//! because those writes were never acknowledged. After damage, it loses the writes behind it, so a
//! data directory without acknowledged writes is refused.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::config::{BlockSizePolicy, RestartIntervalPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions};

use super::directory::Directory;
use super::group_mark;
use super::torn_tail::TornTail;
use super::watermark::Watermark;
use crate::storage::files::tables_kept_open;

/// An open embedded store.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) records: Keyspace,
    /// The number of the last group of writes.
    pub(super) group_number: u64,
    pub(super) watermark: Watermark,
}

/// Opens a data directory, which is created if it does not exist.
pub(super) fn open(path: &Path) -> io::Result<(Directory, Opened)> {
    let directory = Directory::open(path)?;
    directory.lock()?;
    let opened = open_in(&directory)?;
    directory.hold()?;
    Ok((directory, opened))
}

/// Opens the embedded store in a locked data directory.
///
/// # Errors
///
/// When too many files are open ([`is_exhausted`](crate::storage::is_exhausted)), whatever that has
/// led to; otherwise as for a directory.
pub(super) fn open_in(directory: &Directory) -> io::Result<Opened> {
    // Files that cannot be opened may look like damage.
    open_store(directory).map_err(|error| directory.probe_files().err().unwrap_or(error))
}

fn open_store(directory: &Directory) -> io::Result<Opened> {
    let acknowledged = Watermark::read(directory.path());
    let acknowledged = acknowledged.map_err(|error| {
        directory.damaged(&format!("its file WATERMARK cannot be read: {error}"))
    })?;
    let required = acknowledged.unwrap_or_default();
    if required > 0 && !directory.has_store() {
        return Err(directory.damaged("none of its records are there"));
    }
    directory.make_records()?;
    let explain = |error| directory.explain(error);
    // The store panics for some kinds of damage.
    let open = || {
        let opening = AssertUnwindSafe(|| {
            let builder = Database::builder(directory.records());
            builder
                .max_cached_files(Some(tables_kept_open()))
                .cache_size(CACHE_BYTES)
                .worker_threads(BACKGROUND_THREADS)
                .open()
        });
        catch_unwind(opening).map_err(|_| directory.damaged("the store in it cannot be read"))
    };
    let mut database = open()?;
    // Without the number, it is unknown which groups must be there.
    if is_torn(&database) && acknowledged.is_some() {
        let cannot_be = |what| move |error| directory.io(what, &error);
        let tail = TornTail::read(&directory.records(), required);
        let mut tail = tail.map_err(cannot_be("cannot be read"))?;
        while let Some(torn) = &mut tail
            && is_torn(&database)
            && torn.cut().map_err(cannot_be("cannot be written to"))?
        {
            database = open()?;
        }
    }
    let database = database.map_err(explain)?;
    if required > 0 && !database.keyspace_exists(RECORDS) {
        return Err(directory.damaged("none of its records are there"));
    }
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE_BYTES)
            // A key of its own for each record, instead of the bytes in which it differs from the
            // one before: a scan does not have to put them together.
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(1))
            // A scan looks each block up in the cache. With 16 KiB instead of 4 KiB, a page of
            // 1,000 entities took 0.82 of the processor time, and a point read 0.9.
            .data_block_size_policy(BlockSizePolicy::all(16 * 1024))
    };
    let records = database.keyspace(RECORDS, options);
    let records = records.map_err(explain)?;
    let marks = records.range(group_mark::KEYS);
    let group_number = group_mark::last(marks.map(fjall::Guard::into_inner)).map_err(explain)?;
    let group_number = group_number.map_err(|why| directory.damaged(&why))?;
    if group_number < required {
        return Err(directory.damaged(&format!(
            "its writes end with group {group_number}, but all up to group {required} were acknowledged: something is missing"
        )));
    }
    if acknowledged.is_none() && group_number > 0 {
        let why = "its file WATERMARK is missing, so it is unknown whether all writes are there";
        return Err(directory.damaged(why));
    }
    // All reads see the current contents from now on, so they must be durable.
    database
        .persist(fjall::PersistMode::SyncAll)
        .map_err(explain)?;
    let watermark = Watermark::open(directory.path(), group_number);
    let watermark = watermark.map_err(|error| directory.io("cannot be written to", &error))?;
    Ok(Opened {
        database,
        records,
        group_number,
        watermark,
    })
}

/// Returns true if the store has read a group of writes in a journal to its end, and it is not as
/// it was written.
const fn is_torn(opened: &fjall::Result<Database>) -> bool {
    use fjall::JournalRecoveryError::InvalidFileName;

    matches!(opened, Err(fjall::Error::JournalRecovery(why)) if !matches!(why, InvalidFileName))
}

const RECORDS: &str = "records";

/// How much the store keeps only in memory and in its journal until it writes a table. After a
/// crash, the server reads all of it before it starts.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// How many blocks of tables the store keeps in memory at most.
const CACHE_BYTES: u64 = 256 * 1024 * 1024;

/// After each table, the store orders as many compactions as it has threads. The first of its
/// threads takes none, but puts them back and spins as long as all others are busy. With two
/// threads, that is throughout each compaction.
const BACKGROUND_THREADS: usize = 4;

#[cfg(test)]
mod tests {
    use std::fs;

    use xxhash_rust::xxh3::xxh3_64;

    use super::super::overlay::Writes;
    use super::super::store::Store;
    use super::*;
    use crate::storage::{Durability, WriteBatch};

    const GROUPS: u64 = 20;

    /// A record of several pages, which cannot be compressed.
    fn record(number: u64) -> Vec<u8> {
        let word = |index: u64| xxh3_64(&(number << 32 | index).to_le_bytes());
        let words = (0..2500_u64).map(word);
        words.flat_map(u64::to_le_bytes).collect()
    }

    fn key(number: u64) -> Vec<u8> {
        format!("k{number:03}").into_bytes()
    }

    /// Writes groups of one record, and returns the journal.
    fn written(path: &Path) -> (std::path::PathBuf, Vec<u8>) {
        let (_directory, opened) = open(path).unwrap();
        let mut store = Store::new(opened, Durability::Sync);
        for number in 1..=GROUPS {
            let mut batch = WriteBatch::default();
            batch.put(key(number), record(number));
            let mut writes = Writes::default();
            writes.add(&batch);
            assert!(store.write(&writes, number).is_ok());
        }
        let entries = fs::read_dir(path.join("records")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let journal = paths.find(|path| path.extension().is_some_and(|name| name == "jnl"));
        let journal = journal.unwrap();
        let mut bytes = fs::read(&journal).unwrap();
        // The rest is not used yet.
        bytes.truncate(1024 * 1024);
        (journal, bytes)
    }

    /// Loses a page in the middle of the record of a group.
    fn tear(bytes: &mut [u8], group: u64) {
        let record = record(group);
        let part = &record[10_000..10_100];
        let found = bytes.windows(part.len()).position(|bytes| bytes == part);
        let page = found.unwrap() / 4096 * 4096;
        bytes[page..page + 4096].fill(0);
    }

    #[test]
    fn a_group_that_lost_a_page_when_the_power_went_does_not_prevent_the_start() {
        for (torn, acknowledged) in [
            (GROUPS, GROUPS - 1),
            (GROUPS, 3),
            (GROUPS - 6, GROUPS - 7),
            (1, 0),
        ] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("data");
            let (journal, mut bytes) = written(&path);
            tear(&mut bytes, torn);
            fs::write(&journal, &bytes).unwrap();
            Watermark::open(&path, acknowledged).unwrap();
            let (_directory, opened) = open(&path).unwrap();
            let last = opened.group_number;
            assert!((acknowledged..torn).contains(&last), "{last}");
            if torn == GROUPS {
                assert_eq!(last, torn - 1, "no other group is lost");
            }
            for number in 1..=GROUPS {
                let found = opened.records.get(key(number)).unwrap();
                let expected = (number <= last).then(|| record(number));
                assert_eq!(found.as_deref(), expected.as_deref(), "{number}");
            }
        }
    }

    #[test]
    fn an_acknowledged_group_that_is_damaged_is_missed_and_nothing_is_cut_off() {
        for (damaged, acknowledged) in [(GROUPS, GROUPS), (GROUPS - 6, GROUPS - 5), (2, 2)] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("data");
            let (journal, mut bytes) = written(&path);
            tear(&mut bytes, damaged);
            fs::write(&journal, &bytes).unwrap();
            Watermark::open(&path, acknowledged).unwrap();
            let error = open(&path).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
            assert!(fs::read(&journal).unwrap() == bytes, "it is as it was");
        }
    }
}
