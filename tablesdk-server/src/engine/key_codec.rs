//! The keys under which tables and entities are stored, and the records of tables; see `storage/FORMAT.md`.
//!
//! The order of the bytes is the order in which the service lists entities and tables: entities by the UTF-16 code units of
//! partition key and row key, tables by their lower-cased names. This module knows no records of entities and no storage.

use std::borrow::Cow;

use tablesdk_protocol::{EntityKey, TableName, Timestamp};

use crate::storage::StorageError;

/// What entities are stored under: never used for a second table, so a new table of an old name starts empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableId(pub(super) u64);

impl TableId {
    /// The id under which nothing is ever stored.
    pub(super) const NONE: Self = Self(0);

    /// The id of the table that is created next.
    pub(super) fn next(self) -> Result<Self, StorageError> {
        // The ids do not run out: only a damaged number is the last one.
        let next = self.0.checked_add(1);
        next.map(Self).ok_or(NUMBER_OF_TABLES)
    }
}

/// A table as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// What its entities are stored under.
    pub(crate) id: TableId,
    /// Its name in the case it was created with.
    pub(crate) name: String,
}

/// The key under which the next table's id is stored.
pub(super) const NEXT_TABLE_ID: &[u8] = b"n";

/// Prints the record of [`NEXT_TABLE_ID`].
pub(super) fn table_id_record(id: TableId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

/// Reads the record of [`NEXT_TABLE_ID`].
pub(super) fn read_table_id(record: &[u8]) -> Result<TableId, StorageError> {
    let id = record.try_into().map_err(|_| NUMBER_OF_TABLES)?;
    Ok(TableId(u64::from_be_bytes(id)))
}

/// The key under which the timestamp of the last write is stored: later ones are later, whatever the clock says.
pub(super) const LAST_WRITE: &[u8] = b"w";

/// Prints the record of [`LAST_WRITE`].
pub(super) fn last_write_record(timestamp: Timestamp) -> Vec<u8> {
    timestamp.unix_ticks().to_be_bytes().to_vec()
}

/// Reads the record of [`LAST_WRITE`].
pub(super) fn read_last_write(record: &[u8]) -> Result<Timestamp, StorageError> {
    let ticks = record.try_into().map_err(|_| TIME_OF_LAST_WRITE)?;
    Timestamp::from_unix_ticks(i64::from_be_bytes(ticks)).map_err(|_| TIME_OF_LAST_WRITE)
}

/// The key of a table.
pub(super) fn table_key(account: &str, name: &TableName) -> Vec<u8> {
    table_key_from(account, &name.to_lowercase())
}

/// The key at which the tables with that lower-cased name or a later one start; any text does for a name.
pub(super) fn table_key_from(account: &str, name: &str) -> Vec<u8> {
    let mut key = table_prefix(account, 0);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The key before which the tables of an account end.
pub(super) fn tables_end(account: &str) -> Vec<u8> {
    table_prefix(account, 1)
}

/// The key of what is left of a table that was deleted.
pub(super) fn deleted_table_key(account: &str, name: &TableName) -> Vec<u8> {
    let mut key = deleted_prefix(account, 0);
    key.extend_from_slice(name.to_lowercase().as_bytes());
    key
}

/// The keys of what is left of all tables of an account that were deleted.
pub(super) fn deleted_tables(account: &str) -> (Vec<u8>, Vec<u8>) {
    (deleted_prefix(account, 0), deleted_prefix(account, 1))
}

/// Prints until when the name of a deleted table stays taken.
pub(super) fn deleted_table_record(until: Timestamp) -> Vec<u8> {
    until.unix_ticks().to_be_bytes().to_vec()
}

/// Reads until when the name of a deleted table stays taken.
pub(super) fn read_deleted_table(record: &[u8]) -> Result<Timestamp, StorageError> {
    let ticks = record.try_into().ok().map(i64::from_be_bytes);
    let until = ticks.and_then(|ticks| Timestamp::from_unix_ticks(ticks).ok());
    until.ok_or(StorageError::Corrupt {
        what: "deleted table",
    })
}

/// Prints the record of a table.
pub(super) fn table_record(table: &Table) -> Vec<u8> {
    let mut record = table.id.0.to_be_bytes().to_vec();
    record.extend_from_slice(table.name.as_bytes());
    record
}

/// Reads the record of a table.
pub(super) fn read_table(record: &[u8]) -> Result<Table, StorageError> {
    let table = record.split_first_chunk().and_then(|(id, name)| {
        Some(Table {
            id: TableId(u64::from_be_bytes(*id)),
            name: std::str::from_utf8(name).ok()?.to_owned(),
        })
    });
    table.ok_or(StorageError::Corrupt { what: "table" })
}

/// The key of the stored access policies of a table.
pub(super) fn acl_key(table: TableId) -> Vec<u8> {
    let mut key = b"a".to_vec();
    key.extend_from_slice(&table.0.to_be_bytes());
    key
}

/// The key of the mark of a deleted table whose entities are still to be swept.
pub(super) fn clean_up_key(table: TableId) -> Vec<u8> {
    let mut key = b"s".to_vec();
    key.extend_from_slice(&table.0.to_be_bytes());
    key
}

/// The key before which all such marks lie.
pub(super) const CLEAN_UPS_END: &[u8] = b"t";

/// Reads the key of such a mark.
pub(super) fn read_clean_up_key(key: &[u8]) -> Result<TableId, StorageError> {
    let id = key.get(1..).and_then(|id| id.try_into().ok());
    let id = id.ok_or(StorageError::Corrupt {
        what: "mark of a deleted table",
    })?;
    Ok(TableId(u64::from_be_bytes(id)))
}

/// The key of the service properties of an account.
pub(super) fn properties_key(account: &str) -> Vec<u8> {
    let mut key = b"p".to_vec();
    key.extend_from_slice(account.as_bytes());
    key
}

/// The key of an entity.
pub(super) fn entity_key(table: TableId, key: &EntityKey) -> Vec<u8> {
    let (partition_key, row_key) = (key.partition_key().as_str(), key.row_key().as_str());
    let mut bytes = partition_start(table, partition_key);
    push_string(&mut bytes, row_key);
    bytes
}

/// The key at which the entities of a table start.
pub(super) fn entities_start(table: TableId) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(b'e');
    key.extend_from_slice(&table.0.to_be_bytes());
    key
}

/// The key before which the entities of a table end.
pub(super) fn entities_end(table: TableId) -> Vec<u8> {
    let mut key = entities_start(table);
    // No encoded text starts with this byte.
    key.push(0xFF);
    key
}

/// The key at which a partition starts. The partition need not exist.
pub(super) fn partition_start(table: TableId, partition_key: &str) -> Vec<u8> {
    let mut key = entities_start(table);
    push_string(&mut key, partition_key);
    key.push(SEPARATOR);
    key
}

/// The key before which a partition ends: whatever can follow the partition key sorts after it.
pub(super) fn partition_end(table: TableId, partition_key: &str) -> Vec<u8> {
    let mut key = entities_start(table);
    push_string(&mut key, partition_key);
    key.push(SEPARATOR + 1);
    key
}

/// The first key after that one: nothing lies between a key and the same key with this byte at its end.
pub(super) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Cuts the key of an entity behind the separator: what its partition has in common, and the row key.
pub(super) fn split_entity_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, keys) = key.split_first_chunk::<ENTITY_PREFIX_BYTES>()?;
    let end = keys.iter().position(|byte| *byte == SEPARATOR)?;
    key.split_at_checked(ENTITY_PREFIX_BYTES + end + 1)
}

/// The key before which the partition ends that has this in common.
pub(super) fn end_of_partition(common: &[u8]) -> Vec<u8> {
    let mut key = common.to_vec();
    key.pop();
    key.push(SEPARATOR + 1);
    key
}

/// Reads the partition key and the row key; borrowed where UTF-8 and CESU-8 are the same.
pub(super) fn read_entity_key(key: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), StorageError> {
    let texts = key
        .split_first_chunk::<ENTITY_PREFIX_BYTES>()
        .and_then(|(_, keys)| {
            let end = keys.iter().position(|byte| *byte == SEPARATOR)?;
            let (partition_key, row_key) = keys.split_at_checked(end)?;
            let (_, row_key) = row_key.split_first()?;
            Some((read_string(partition_key)?, read_string(row_key)?))
        });
    texts.ok_or(StorageError::Corrupt {
        what: "key of an entity",
    })
}

/// Reads where a range of entities starts, as the first keys that an entity in it could have.
///
/// A range may start where no entity can be: behind all that begins with a text, which is a byte below all that a key can
/// hold at the end of that text.
pub(super) fn read_start(start: &[u8]) -> Result<(String, String), StorageError> {
    let text = |bytes: &[u8]| match bytes.split_last() {
        Some((..=SEPARATOR_AND_NEXT, before)) => {
            Some(read_string(before)?.into_owned() + FIRST_CHARACTER)
        }
        _ => read_string(bytes).map(Cow::into_owned),
    };
    let texts = start
        .split_first_chunk::<ENTITY_PREFIX_BYTES>()
        .and_then(|(_, keys)| {
            let mut parts = keys.splitn(2, |byte| *byte == SEPARATOR);
            let partition_key = text(parts.next().unwrap_or_default())?;
            Some((partition_key, text(parts.next().unwrap_or_default())?))
        });
    texts.ok_or(StorageError::Corrupt {
        what: "key of an entity",
    })
}

/// Adds a text in CESU-8: its UTF-16 code units, each as UTF-8 writes a character of that number.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    if !text.bytes().any(|byte| byte >= FOUR_BYTES) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let mut buffer = [0; 4];
    for character in text.chars() {
        if character <= '\u{FFFF}' {
            out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let group = [
                    0xE0 | low_byte(*unit >> 12),
                    0x80 | low_byte(*unit >> 6 & 0x3F),
                    0x80 | low_byte(*unit & 0x3F),
                ];
                out.extend_from_slice(&group);
            }
        }
    }
}

/// Reads a text in CESU-8; `None` when it is none.
fn read_string(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // Surrogates are no UTF-8, so what is UTF-8 has none.
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let (unit, after) = match rest {
            [a @ ..0x80, after @ ..] => (u16::from(*a), after),
            [a @ 0xC0..=0xDF, b, after @ ..] => (bits(*a, 0x1F) << 6 | bits(*b, 0x3F), after),
            [a @ 0xE0..=0xEF, b, c, after @ ..] => (
                bits(*a, 0x0F) << 12 | bits(*b, 0x3F) << 6 | bits(*c, 0x3F),
                after,
            ),
            _ => return None,
        };
        units.push(unit);
        rest = after;
    }
    String::from_utf16(&units).ok().map(Cow::Owned)
}

fn table_prefix(account: &str, end: u8) -> Vec<u8> {
    account_prefix(b't', account, end)
}

fn deleted_prefix(account: &str, end: u8) -> Vec<u8> {
    account_prefix(b'd', account, end)
}

fn account_prefix(kind: u8, account: &str, end: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(kind);
    key.extend_from_slice(account.as_bytes());
    key.push(end);
    key
}

fn low_byte(number: u16) -> u8 {
    let [_, low] = number.to_be_bytes();
    low
}

fn bits(byte: u8, mask: u8) -> u16 {
    u16::from(byte & mask)
}

const NUMBER_OF_TABLES: StorageError = StorageError::Corrupt {
    what: "number of tables",
};

const TIME_OF_LAST_WRITE: StorageError = StorageError::Corrupt {
    what: "time of the last write",
};

/// Stands between partition key and row key; sorts before every byte that a key can hold.
const SEPARATOR: u8 = 0;

/// The separator, and the byte that stands in its place where a partition has ended.
const SEPARATOR_AND_NEXT: u8 = SEPARATOR + 1;

/// The first character that a key can hold.
const FIRST_CHARACTER: &str = " ";

/// The kind of the key and the table's id.
const ENTITY_PREFIX_BYTES: usize = 1 + size_of::<u64>();

/// From this byte on, UTF-8 starts a character above U+FFFF.
const FOUR_BYTES: u8 = 0xF0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts of characters around every border of both encodings, and of any others.
    const KEY: &str = "[ a~\u{A0}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}😀é]{0,6}|[^/\\\\#?\\p{Cc}]{0,20}";

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    proptest! {
        #[test]
        fn bytes_are_ordered_as_utf16_keys(p in KEY, r in KEY, q in KEY, s in KEY) {
            let bytes = |p: &str, r: &str| entity_key(TableId(7), &EntityKey::new(p, r).unwrap());
            let expected = (units(&p), units(&r)).cmp(&(units(&q), units(&s)));
            prop_assert_eq!(bytes(&p, &r).cmp(&bytes(&q, &s)), expected);
            let same_partition = units(&r).cmp(&units(&s));
            prop_assert_eq!(bytes(&p, &r).cmp(&bytes(&p, &s)), same_partition);
        }

        #[test]
        fn keys_read_back_and_lie_in_their_partition(p in KEY, r in KEY, id: u64) {
            let table = TableId(id);
            let key = entity_key(table, &EntityKey::new(p.as_str(), r.as_str()).unwrap());
            let (partition_key, row_key) = read_entity_key(&key).unwrap();
            prop_assert_eq!((partition_key.as_ref(), row_key.as_ref()), (&*p, &*r));
            prop_assert!((partition_start(table, &p)..partition_end(table, &p)).contains(&key));
            prop_assert!((entities_start(table)..entities_end(table)).contains(&key));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read_entity_key(&bytes);
            let _ = read_table(&bytes);
            let _ = read_table_id(&bytes);
            let _ = read_deleted_table(&bytes);
            let _ = read_string(&bytes);
        }
    }

    #[test]
    fn accounts_and_tables_keep_apart() {
        let name = |text: &str| TableName::new(text).unwrap();
        let key = table_key("acct", &name("People"));
        assert_eq!(key, table_key("acct", &name("pEOPLE")));
        assert!((table_key_from("acct", "")..tables_end("acct")).contains(&key));
        assert!(!(table_key_from("acc", "")..tables_end("acc")).contains(&key));
        let table = Table {
            id: TableId(258),
            name: "People".to_owned(),
        };
        assert_eq!(read_table(&table_record(&table)), Ok(table));
        assert!(entities_end(TableId(1)) < entities_start(TableId(2)));
    }
}
