//! The keys under which tables and entities are stored, and the records of tables; see
//! `storage/FORMAT.md`.
//!
//! The order of the bytes is the order in which the service lists entities and tables: entities by
//! the UTF-16 code units of partition key and row key, tables by their lower-cased names. This
//! module knows no records of entities and no storage.

use std::borrow::Cow;

use tablesdk_protocol::{EntityKey, Guid, TableName, Timestamp};

use crate::storage::StorageError;

/// The number under which the entities of a table are stored. It is never used again, so a new
/// table with an old name is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableId(pub(super) u64);

impl TableId {
    /// The id of no table.
    pub(super) const NONE: Self = Self(0);

    /// The id of the table that is created next.
    pub(super) fn next(self) -> Result<Self, StorageError> {
        // The ids do not run out: only a damaged number is the last one.
        let next = self.0.checked_add(1);
        next.map(Self).ok_or(StorageError::corrupt(TABLE_COUNT))
    }

    /// A key of this kind for the table.
    fn key(self, kind: u8) -> Vec<u8> {
        self.key_of(kind, 64)
    }

    /// The same, with room for so many bytes.
    fn key_of(self, kind: u8, bytes: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(bytes);
        self.push(kind, &mut key);
        key
    }

    fn push(self, kind: u8, key: &mut Vec<u8>) {
        key.push(kind);
        key.extend_from_slice(&self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self(u64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

/// A stored table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) id: TableId,
    /// The name in the case in which the table was created.
    pub(crate) name: String,
}

/// The key of the id of the next table.
pub(super) const NEXT_TABLE_ID: &[u8] = b"n";

/// Writes the record of [`NEXT_TABLE_ID`].
pub(super) fn table_id_record(id: TableId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}

/// Reads the record of [`NEXT_TABLE_ID`].
pub(super) fn read_table_id(record: &[u8]) -> Result<TableId, StorageError> {
    TableId::read(record).ok_or(StorageError::corrupt(TABLE_COUNT))
}

/// The key of the timestamp of the last write. Later timestamps are later, whatever the clock
/// returns.
pub(super) const LAST_WRITE: &[u8] = b"w";

/// Writes a record that is a time: of [`LAST_WRITE`], or until when the name of a deleted table is
/// reserved.
pub(super) fn time_record(time: Timestamp) -> Vec<u8> {
    time.unix_ticks().to_be_bytes().to_vec()
}

/// Reads a record that is a time. `what` names it in the error.
pub(super) fn read_time(record: &[u8], what: &'static str) -> Result<Timestamp, StorageError> {
    let ticks = record.try_into().ok().map(i64::from_be_bytes);
    let time = ticks.and_then(|ticks| Timestamp::from_unix_ticks(ticks).ok());
    time.ok_or_else(|| StorageError::corrupt(what))
}

/// The key of the lease of the server that cleans up a shared storage.
pub(super) const CLEAN_UP_LEASE: &[u8] = b"c";

/// Writes the record of [`CLEAN_UP_LEASE`].
pub(super) fn lease_record(holder: Guid, until: Timestamp) -> Vec<u8> {
    [&holder.to_bytes()[..], &time_record(until)].concat()
}

/// Reads the record of [`CLEAN_UP_LEASE`].
pub(super) fn read_lease(record: &[u8]) -> Result<(Guid, Timestamp), StorageError> {
    let what = "lease of the clean-up";
    let (holder, until) = record
        .split_first_chunk()
        .ok_or_else(|| StorageError::corrupt(what))?;
    Ok((Guid::from_bytes(*holder), read_time(until, what)?))
}

/// The key of a table.
pub(super) fn table_key(account: &str, name: &TableName) -> Vec<u8> {
    table_key_from(account, &name.to_lowercase())
}

/// The key at which the tables with this lower-cased name or a later one start. The name may be any
/// string.
pub(super) fn table_key_from(account: &str, name: &str) -> Vec<u8> {
    account_key(b't', account, 0, name)
}

/// The key before which the tables of an account end.
pub(super) fn tables_end(account: &str) -> Vec<u8> {
    account_key(b't', account, 1, "")
}

/// The key of the reservation of a deleted table's name.
pub(super) fn deleted_table_key(account: &str, name: &TableName) -> Vec<u8> {
    account_key(b'd', account, 0, &name.to_lowercase())
}

/// The range of the reservations of an account.
pub(super) fn deleted_tables(account: &str) -> (Vec<u8>, Vec<u8>) {
    let key = |end| account_key(b'd', account, end, "");
    (key(0), key(1))
}

/// Writes the record of a table.
pub(super) fn table_record(table: &Table) -> Vec<u8> {
    let mut record = table_id_record(table.id);
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
    table.ok_or(StorageError::corrupt("table"))
}

/// The key of the stored access policies of a table.
pub(super) fn acl_key(table: TableId) -> Vec<u8> {
    table.key(b'a')
}

/// The key of the mark of a deleted table that is not cleaned up yet.
pub(super) fn clean_up_key(table: TableId) -> Vec<u8> {
    table.key(b's')
}

/// The key before which all such marks lie.
pub(super) const CLEAN_UPS_END: &[u8] = b"t";

/// Reads the key of such a mark.
pub(super) fn read_clean_up_key(key: &[u8]) -> Result<TableId, StorageError> {
    let id = key.get(1..).and_then(TableId::read);
    id.ok_or(StorageError::corrupt("mark of a deleted table"))
}

/// The key of the service properties of an account.
pub(super) fn properties_key(account: &str) -> Vec<u8> {
    [b"p", account.as_bytes()].concat()
}

/// The key of an entity.
pub(super) fn entity_key(table: TableId, key: &EntityKey) -> Vec<u8> {
    key_at(table, key.partition_key().as_str(), key.row_key().as_str())
}

/// The key of an entity with these keys, which may be any strings.
pub(super) fn key_at(table: TableId, partition_key: &str, row_key: &str) -> Vec<u8> {
    // Exactly, unless characters beyond U+FFFF are in it.
    let bytes = ENTITY_PREFIX_BYTES + partition_key.len() + 1 + row_key.len();
    let mut key = Vec::with_capacity(bytes);
    push_key_at(&mut key, table, partition_key, row_key);
    key
}

/// The length of the key of an entity, unless characters beyond U+FFFF are in it.
pub(super) fn bytes_of_key(key: &EntityKey) -> usize {
    ENTITY_PREFIX_BYTES + key.partition_key().as_str().len() + 1 + key.row_key().as_str().len()
}

/// Adds the key of an entity.
pub(super) fn push_entity_key(out: &mut Vec<u8>, table: TableId, key: &EntityKey) {
    let (partition_key, row_key) = (key.partition_key().as_str(), key.row_key().as_str());
    push_key_at(out, table, partition_key, row_key);
}

fn push_key_at(out: &mut Vec<u8>, table: TableId, partition_key: &str, row_key: &str) {
    table.push(b'e', out);
    push_string(out, partition_key);
    out.push(SEPARATOR);
    push_string(out, row_key);
}

/// The key of an entity with these encoded keys.
pub(super) fn key_of_encoded(table: TableId, partition_key: &[u8], row_key: &[u8]) -> Vec<u8> {
    [&entities_start(table), partition_key, &[SEPARATOR], row_key].concat()
}

/// The key at which the entities of a table start.
pub(super) fn entities_start(table: TableId) -> Vec<u8> {
    table.key(b'e')
}

/// The key before which the entities of a table end.
pub(super) fn entities_end(table: TableId) -> Vec<u8> {
    let mut key = entities_start(table);
    // No encoded string starts with this byte.
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

/// The key before which a partition ends: all that can follow the partition key sorts after it.
pub(super) fn partition_end(table: TableId, partition_key: &str) -> Vec<u8> {
    end_of_partition(&partition_start(table, partition_key))
}

/// The next key: nothing lies between a key and the same key with this byte at its end.
pub(super) fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// Splits the key of an entity after the separator: the part that all keys of the partition have in
/// common, and the row key.
pub(super) fn split_entity_key(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, keys) = key.split_first_chunk::<ENTITY_PREFIX_BYTES>()?;
    let end = keys.iter().position(|byte| *byte == SEPARATOR)?;
    key.split_at_checked(ENTITY_PREFIX_BYTES + end + 1)
}

/// The key before which the partition ends whose keys have this in common.
pub(super) fn end_of_partition(common: &[u8]) -> Vec<u8> {
    let mut key = common.to_vec();
    key.pop();
    key.push(SEPARATOR_AND_NEXT);
    key
}

/// Reads the partition key and the row key; borrowed where UTF-8 and CESU-8 are the same.
pub(super) fn read_entity_key(key: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), StorageError> {
    let keys = split_entity_key(key).and_then(|(partition, row_key)| {
        let (_, partition_key) = partition.split_first_chunk::<ENTITY_PREFIX_BYTES>()?;
        let (_, partition_key) = partition_key.split_last()?;
        Some((read_string(partition_key)?, read_string(row_key)?))
    });
    keys.ok_or(StorageError::corrupt(ENTITY_KEY))
}

/// Reads the keys of entities one after another. Entities beside each other are mostly of one
/// partition, so its key is read once.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    /// The bytes that all keys of the partition begin with.
    common: Vec<u8>,
    partition_key: String,
}

impl KeyReader {
    /// The same as [`read_entity_key`].
    #[inline]
    pub(super) fn read<'k>(
        &'k mut self,
        key: &'k [u8],
    ) -> Result<(&'k str, Cow<'k, str>), StorageError> {
        // The common part ends with the only separator of the key, so no other partition has it.
        let row_key = match key.strip_prefix(self.common.as_slice()) {
            Some(row_key) if !self.common.is_empty() => read_string(row_key),
            _ => self.enter(key),
        };
        let row_key = row_key.ok_or(StorageError::corrupt(ENTITY_KEY))?;
        Ok((&self.partition_key, row_key))
    }

    /// Reads the key of the first entity of a partition. Returns the row key.
    fn enter<'k>(&mut self, key: &'k [u8]) -> Option<Cow<'k, str>> {
        self.common.clear();
        let (common, row_key) = split_entity_key(key)?;
        let (_, partition_key) = common.split_first_chunk::<ENTITY_PREFIX_BYTES>()?;
        let (_, partition_key) = partition_key.split_last()?;
        self.partition_key.clear();
        self.partition_key.push_str(&read_string(partition_key)?);
        self.common.extend_from_slice(common);
        read_string(row_key)
    }
}

/// Reads where a range of entities starts, as the first keys that an entity in it could have.
///
/// A range may start where no entity can be: after everything that begins with a string, which is a
/// byte below all that a key can hold at the end of that string.
pub(super) fn read_start(start: &[u8]) -> Result<(String, String), StorageError> {
    let string = |bytes: &[u8]| match bytes.split_last() {
        Some((..=SEPARATOR_AND_NEXT, before)) => {
            Some(read_string(before)?.into_owned() + FIRST_CHARACTER)
        }
        _ => read_string(bytes).map(Cow::into_owned),
    };
    let keys = start
        .split_first_chunk::<ENTITY_PREFIX_BYTES>()
        .and_then(|(_, keys)| {
            let mut parts = keys.splitn(2, |byte| *byte == SEPARATOR);
            let partition_key = string(parts.next().unwrap_or_default())?;
            Some((partition_key, string(parts.next().unwrap_or_default())?))
        });
    keys.ok_or(StorageError::corrupt(ENTITY_KEY))
}

/// Adds a string in CESU-8: its UTF-16 code units, each as UTF-8 writes a character of that number.
pub(super) fn push_string(out: &mut Vec<u8>, string: &str) {
    if !string.bytes().any(|byte| byte >= FOUR_BYTES) {
        out.extend_from_slice(string.as_bytes());
        return;
    }
    let mut buffer = [0; 4];
    for character in string.chars() {
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

/// Reads a string in CESU-8; `None` if it is malformed.
#[inline]
fn read_string(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // UTF-8 has no surrogates, so valid UTF-8 is the same in CESU-8.
    match std::str::from_utf8(bytes) {
        Ok(string) => Some(Cow::Borrowed(string)),
        Err(_) => read_surrogates(bytes).map(Cow::Owned),
    }
}

fn read_surrogates(bytes: &[u8]) -> Option<String> {
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
    String::from_utf16(&units).ok()
}

/// The kind, the account, a byte that is 0 except at the end of a range, and a lower-cased name.
fn account_key(kind: u8, account: &str, end: u8, name: &str) -> Vec<u8> {
    [&[kind], account.as_bytes(), &[end], name.as_bytes()].concat()
}

fn low_byte(number: u16) -> u8 {
    let [_, low] = number.to_be_bytes();
    low
}

fn bits(byte: u8, mask: u8) -> u16 {
    u16::from(byte & mask)
}

const TABLE_COUNT: &str = "number of tables";
const ENTITY_KEY: &str = "key of an entity";

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
        fn keys_read_one_after_another_are_those_read_alone(
            keys in prop::collection::vec(("[ab\u{10000}é]{0,2}", KEY, 0..2_u64), 0..12),
            place: prop::sample::Index,
            byte: u8,
        ) {
            let mut reader = KeyReader::default();
            for (p, r, id) in keys {
                let whole = entity_key(TableId(id), &EntityKey::new(p, r).unwrap());
                let mut damaged = whole.clone();
                damaged[place.index(whole.len())] = byte;
                for key in [&whole, &damaged, &whole] {
                    let alone = read_entity_key(key).map(|(p, r)| (p.into_owned(), r.into_owned()));
                    let read = reader.read(key).map(|(p, r)| (p.to_owned(), r.into_owned()));
                    prop_assert_eq!(read, alone);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read_entity_key(&bytes);
            let _ = read_table(&bytes);
            let _ = read_table_id(&bytes);
            let _ = read_time(&bytes, "time");
            let _ = read_string(&bytes);
        }
    }

    #[test]
    fn accounts_and_tables_have_separate_ranges() {
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
