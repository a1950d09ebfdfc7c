//! The form of keys in the database: the same order, and at most 2,061 bytes.
//!
//! An index of PostgreSQL takes no key above 2,704 bytes, and the longest key of an entity has
//! 3,082: three bytes for each of 1,024 UTF-16 code units. So from the first code unit with three
//! bytes on, up to the end of the partition key or row key, each code unit takes two bytes. Keys of
//! letters with one or two bytes stay as they are, and can be read in `psql`.

use crate::storage::StorageError;

/// The key in the form of the database.
pub(super) fn stored(key: &[u8]) -> Vec<u8> {
    if !letters(key).iter().any(|byte| *byte >= THREE_BYTES) {
        return key.to_vec();
    }
    let mut out = Vec::with_capacity(key.len());
    let (prefix, mut rest) = key.split_at(key.len().min(PREFIX_BYTES));
    out.extend_from_slice(prefix);
    let mut is_wide = false;
    while let Some((&first, tail)) = rest.split_first() {
        let (unit, after) = match (first, tail) {
            (0xE0..=0xEF, [b, c, after @ ..]) => {
                let unit = u16::from(first & 0x0F) << 12 | bits(*b) << 6 | bits(*c);
                (unit, after)
            }
            (0xC0..=0xDF, [b, after @ ..]) if is_wide => {
                (u16::from(first & 0x1F) << 6 | bits(*b), after)
            }
            _ => (u16::from(first), tail),
        };
        if first >= 0xE0 && !is_wide && first < 0xF0 {
            out.push(WIDE);
            is_wide = true;
        }
        if is_wide {
            out.extend_from_slice(&unit.to_be_bytes());
        } else {
            out.push(first);
        }
        // The separator of partition key and row key, or what stands in its place at the end of a
        // range.
        if first <= 1 {
            is_wide = false;
        }
        rest = if is_wide || first <= 1 { after } else { tail };
    }
    out
}

/// The key of a form of the database.
pub(super) fn read(stored: &[u8]) -> Result<Vec<u8>, StorageError> {
    if !letters(stored).contains(&WIDE) {
        return Ok(stored.to_vec());
    }
    let mut key = Vec::with_capacity(stored.len() + stored.len() / 2);
    let (prefix, mut rest) = stored.split_at(stored.len().min(PREFIX_BYTES));
    key.extend_from_slice(prefix);
    let mut is_wide = false;
    while let Some((&first, tail)) = rest.split_first() {
        if !is_wide {
            is_wide = first == WIDE;
            if !is_wide {
                key.push(first);
            }
            rest = tail;
            continue;
        }
        let [second, after @ ..] = tail else {
            return Err(StorageError::corrupt("key in the database"));
        };
        let unit = u16::from_be_bytes([first, *second]);
        push_unit(&mut key, unit);
        is_wide = unit > 1;
        rest = after;
    }
    Ok(key)
}

/// The part of a key that may be in another form. It is looked for first, since most keys have
/// letters of one byte only.
fn letters(key: &[u8]) -> &[u8] {
    key.get(PREFIX_BYTES..).unwrap_or_default()
}

/// Adds a code unit as UTF-8 writes a character of that number.
fn push_unit(key: &mut Vec<u8>, unit: u16) {
    let [high, low] = unit.to_be_bytes();
    match unit {
        ..0x80 => key.push(low),
        0x80..0x800 => key.extend([0xC0 | high << 2 | low >> 6, 0x80 | low & 0x3F]),
        0x800.. => key.extend([
            0xE0 | high >> 4,
            0x80 | (high & 0x0F) << 2 | low >> 6,
            0x80 | low & 0x3F,
        ]),
    }
}

fn bits(byte: u8) -> u16 {
    u16::from(byte & 0x3F)
}

/// The kind of a key and the id of a table, which are no text. Keys of other kinds have letters of
/// one byte.
const PREFIX_BYTES: usize = 9;

/// From this byte on, UTF-8 starts a character of three bytes.
const THREE_BYTES: u8 = 0xE0;

/// Begins the code units of two bytes. It sorts after all that a key has before it: no string in
/// UTF-8 has it.
const WIDE: u8 = 0xFE;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Strings as they are in keys: CESU-8, without control characters.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        let unit = prop_oneof![
            3 => 0x20_u16..0x7F,
            1 => 0xA0_u16..0x800,
            3 => 0x800_u16..=0xFFFF,
            1 => Just(0x20),
            1 => Just(0x800),
            1 => Just(0xFFFF),
        ];
        proptest::collection::vec(unit, 0..6).prop_map(|units| {
            let mut part = Vec::new();
            for unit in units {
                push_unit(&mut part, unit);
            }
            part
        })
    }

    /// Keys of entities, and the ends of ranges: a 0 or 1 may follow any string.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let end = prop_oneof![Just(vec![]), Just(vec![0]), Just(vec![1])];
        let rest = prop_oneof![
            (part(), part(), end.clone()).prop_map(|(p, r, end)| [p, vec![0], r, end].concat()),
            (part(), end).prop_map(|(p, end)| [p, end].concat()),
            Just(vec![0xFF]),
        ];
        rest.prop_map(|rest| [&b"e\0\0\0\0\0\0\0\x07"[..], &rest].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn the_order_is_the_same(a in key(), b in key()) {
            prop_assert_eq!(stored(&a).cmp(&stored(&b)), a.cmp(&b));
        }

        #[test]
        fn keys_are_read_back(key in key()) {
            prop_assert_eq!(read(&stored(&key)), Ok(key));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&bytes);
            stored(&bytes);
        }
    }

    #[test]
    fn the_longest_key_fits_into_an_index() {
        let mut key = b"e\0\0\0\0\0\0\0\x07".to_vec();
        for _ in 0..512 {
            push_unit(&mut key, 0x4E2D);
        }
        key.push(0);
        for _ in 0..512 {
            push_unit(&mut key, 0x4E2D);
        }
        assert_eq!((key.len(), stored(&key).len()), (3082, 2061));
    }

    #[test]
    fn letters_of_one_and_two_bytes_stay_as_they_are() {
        let key = "e\0\0\0\0\0\0\0\x07Müller\0Å".as_bytes();
        assert_eq!(stored(key), key);
    }
}
