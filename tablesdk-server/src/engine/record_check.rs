//! Checks all stored data: whether each key and each record can be read, and whether they are
//! consistent.
//!
//! It reads the storage once, from its first key to its last, and changes nothing.

use std::collections::HashSet;

use super::entity_codec::{Properties, Record};
use super::key_codec::{self, TableId};
use super::settings;
use super::view::View;
use crate::storage::StorageError;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) tables: u64,
    pub(crate) entities: u64,
    /// The first problems, as one sentence each.
    pub(crate) problems: Vec<String>,
}

impl Findings {
    fn add(&mut self, problem: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem());
        }
    }
}

/// Reads all records. Periodically calls `progress` with the number of records read so far.
pub(super) fn check(view: &View, mut progress: impl FnMut(u64)) -> Findings {
    let mut findings = Findings::default();
    // Tables and marks follow the entities in the order of keys, and there are few of them.
    let mut tables = HashSet::from([TableId::NONE.0]);
    for (key, record) in view.records(b"s", b"u").filter_map(Result::ok) {
        let id = match key.first() {
            Some(b't') => key_codec::read_table(&record).map(|table| table.id),
            _ => key_codec::read_clean_up_key(&key),
        };
        // Unreadable records are reported below.
        tables.extend(id.map(|id| id.0));
    }
    let next_id = view.next_table_id().map_or(u64::MAX, |id| id.0);
    let mut count = 0;
    for record in view.records(FIRST, END) {
        count += 1;
        if count % 10_000 == 0 {
            progress(count);
        }
        match record {
            Ok((key, record)) => check_record(&key, &record, &tables, next_id, &mut findings),
            Err(error) => {
                findings.add(|| error.to_string());
                // The records after it cannot be found.
                break;
            }
        }
    }
    progress(count);
    findings
}

fn check_record(
    key: &[u8],
    record: &[u8],
    tables: &HashSet<u64>,
    next_id: u64,
    findings: &mut Findings,
) {
    let read = match key.split_first() {
        Some((b'w', [])) => key_codec::read_time(record, "time of the last write").map(drop),
        Some((b'n', [])) => key_codec::read_table_id(record).map(drop),
        Some((b'a', id)) => belongs(id, tables).and_then(|()| settings::read_acl(record).map(drop)),
        Some((b'd', _)) => key_codec::read_time(record, "deleted table").map(drop),
        Some((b'p', _)) => settings::read_properties(record).map(drop),
        Some((b's', _)) => key_codec::read_clean_up_key(key).map(drop),
        Some((b't', rest)) => {
            findings.tables += 1;
            check_table(rest, record, next_id)
        }
        Some((b'e', rest)) => {
            findings.entities += 1;
            belongs(rest, tables).and_then(|()| check_entity(key, record))
        }
        _ => Err(StorageError::corrupt("key")),
    };
    if let Err(error) = read {
        findings.add(|| format!("{error}: under the key {}", key.escape_ascii()));
    }
}

/// The name of a table must be that in its key, and its id one that was assigned.
fn check_table(key: &[u8], record: &[u8], next_id: u64) -> Result<(), StorageError> {
    let table = key_codec::read_table(record)?;
    let name = key.rsplit(|byte| *byte == 0).next().unwrap_or_default();
    if name == table.name.to_ascii_lowercase().as_bytes() && table.id.0 < next_id {
        return Ok(());
    }
    Err(StorageError::corrupt("table"))
}

/// The record must be the one that would be written for its values.
fn check_entity(key: &[u8], record: &[u8]) -> Result<(), StorageError> {
    key_codec::read_entity_key(key)?;
    let stored = Record::open(record)?;
    let mut again = Properties::with_capacity(stored.json().len());
    for property in stored.values() {
        let (name, value) = property?;
        again.push(name, &value);
    }
    if again.record(stored.timestamp()) == record {
        return Ok(());
    }
    Err(StorageError::corrupt("entity"))
}

/// The id at the start of the rest must be that of a table, or of a deleted table that is not
/// cleaned up yet.
fn belongs(rest: &[u8], tables: &HashSet<u64>) -> Result<(), StorageError> {
    let id = rest.first_chunk().map(|id| u64::from_be_bytes(*id));
    if id.is_some_and(|id| tables.contains(&id)) {
        return Ok(());
    }
    Err(StorageError::corrupt("entity, which is of no table,"))
}

/// Before all keys.
pub(super) const FIRST: &[u8] = &[1];
/// After all keys.
pub(super) const END: &[u8] = &[0xFF];

/// The maximum number of problems that are reported individually.
const PROBLEMS_MAX: usize = 50;
