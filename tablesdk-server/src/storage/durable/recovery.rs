//! Opens a data directory: first checks its contents as far as possible, before it changes anything.
//! [`open_in`] opens the embedded store in a directory that this process has locked already, both at the start and after a failure.
//!
//! A data directory that has lost acknowledged writes is refused, and the error names the damaged file. Writes that a crash left
//! incomplete, and that were not acknowledged, are truncated.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::config::RestartIntervalPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};

use super::catalog;
use super::directory::Directory;
use super::group_mark::{GROUP_KEY, GroupMark};
use super::journal::{self, Damage, Journals};
use super::watermark::Watermark;
use crate::storage::files::tables_kept_open;
use crate::storage::is_exhausted;

/// An open embedded store.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) records: Keyspace,
    /// The number of the last group of writes.
    pub(super) group_number: u64,
    pub(super) watermark: Watermark,
}

/// The result of reading the files without the store.
pub(super) struct Inspection {
    /// The number of the last group of writes that was acknowledged to last, if that is known.
    pub(super) acknowledged: Option<u64>,
    pub(super) journals: Journals,
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
/// When too many files are open ([`is_exhausted`](crate::storage::is_exhausted)), whatever that has led to; otherwise as for a
/// directory.
pub(super) fn open_in(directory: &Directory) -> io::Result<Opened> {
    // Files that cannot be opened may look like damage.
    open_store(directory).map_err(|error| directory.probe_files().err().unwrap_or(error))
}

fn open_store(directory: &Directory) -> io::Result<Opened> {
    let Inspection {
        acknowledged,
        journals,
    } = inspect(directory)?;
    if let Some(tail) = &journals.tail {
        // The store would truncate it itself, or treat the rest of a group as damage.
        let cut = tail.cut();
        cut.map_err(|error| directory.io("cannot be written to", &error))?;
        tracing::warn!(
            file = %tail.path.display(),
            from = tail.from,
            "the last writes before a crash, which were not acknowledged, are incomplete and removed"
        );
    }
    directory.make_records()?;
    let explain = |error| directory.explain(error);
    // The store panics for some kinds of damage.
    let opening = AssertUnwindSafe(|| {
        let builder = Database::builder(directory.records());
        builder
            .max_cached_files(Some(tables_kept_open()))
            .cache_size(CACHE_BYTES)
            .worker_threads(BACKGROUND_THREADS)
            .open()
    });
    let database = catch_unwind(opening)
        .map_err(|_| directory.damaged("the store in it cannot be read"))?
        .map_err(explain)?;
    let required = acknowledged.max(journals.last).unwrap_or_default();
    if required > 0 && !database.keyspace_exists(RECORDS) {
        return Err(directory.damaged("none of its records are there"));
    }
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(MEMTABLE_BYTES)
            // A key of its own for each record, instead of the bytes in which it differs from the one before: a scan does not have to
            // put them together.
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(1))
    };
    let records = database.keyspace(RECORDS, options);
    let records = records.map_err(explain)?;
    let group_number = match records.get(GROUP_KEY).map_err(explain)? {
        Some(record) => match GroupMark::read(&record) {
            Some(mark) => mark.number,
            None => return Err(directory.damaged("the number of its last write cannot be read")),
        },
        None => 0,
    };
    if group_number < required {
        return Err(lost(directory, &journals, group_number, required));
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

/// Reads the files without the store, and changes none.
///
/// # Errors
///
/// When they are damaged.
pub(super) fn inspect(directory: &Directory) -> io::Result<Inspection> {
    let acknowledged = Watermark::read(directory.path());
    let acknowledged = acknowledged.map_err(|error| {
        directory.damaged(&format!("its file WATERMARK cannot be read: {error}"))
    })?;
    let version = directory.records().join("version");
    match fs::read(&version) {
        Ok(text) if text == STORE_VERSION => {}
        Ok(_) => return Err(directory.damaged(&format!("{} is damaged", version.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if acknowledged.is_some_and(|acknowledged| acknowledged > 0) {
                let why = format!("{} is missing", version.display());
                return Err(directory.damaged(&why));
            }
        }
        Err(error) => return Err(directory.io("cannot be read", &error)),
    }
    let journals = journal::read(&directory.records());
    let journals = journals.map_err(|damage| match &damage {
        Damage::Io { error, .. } if is_exhausted(error) => directory.io("cannot be read", error),
        damage => directory.damaged(&damage.to_string()),
    })?;
    // If the journals are empty, all records may be in tables.
    if let (Some(acknowledged), Some(last)) = (acknowledged, journals.last)
        && acknowledged > last
    {
        return Err(lost(directory, &journals, last, acknowledged));
    }
    let catalogs = catalog::check(&directory.records());
    let catalogs = catalogs.map_err(|error| directory.io("cannot be read", &error))?;
    if !catalogs.is_empty() {
        return Err(directory.damaged(&catalogs.join("; ")));
    }
    Ok(Inspection {
        acknowledged,
        journals,
    })
}

/// The error for a data directory without acknowledged writes.
fn lost(directory: &Directory, journals: &Journals, last: u64, acknowledged: u64) -> io::Error {
    let tail = journals.tail.as_ref();
    let tail = tail.map_or_else(String::new, |tail| format!("{tail}; "));
    directory.damaged(&format!(
        "{tail}its writes end with group {last}, but all up to group {acknowledged} were acknowledged: something is missing"
    ))
}

const RECORDS: &str = "records";

/// How much the store keeps only in memory and in its journal until it writes a table. After a crash, the server reads all of it
/// before it starts.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// How many blocks of tables the store keeps in memory at most.
const CACHE_BYTES: u64 = 256 * 1024 * 1024;

/// After each table, the store orders as many compactions as it has threads. The first of its threads takes none, but puts them back and
/// spins as long as all others are busy. With two threads, that is throughout each compaction.
const BACKGROUND_THREADS: usize = 4;

/// The store's own version: 3.
const STORE_VERSION: &[u8] = b"FJL\x03";
