//! The marks of the groups of writes, by which a group is missed that the store has lost.
//!
//! A group writes its number under two keys: its own, and that of the group before it. So the
//! record under the key of a group is the number of the next one, unless that one is missing, or
//! was applied before it. A key is used again after [`MARKED`] groups, by when the records of its
//! former group are in tables. This module does not know the records of the engine.

use std::ops::Range;

/// The marks of a group.
pub(super) fn of(number: u64) -> [([u8; 5], [u8; 8]); 2] {
    let record = number.to_be_bytes();
    [number.saturating_sub(1), number].map(|group| (key(group), record))
}

/// The range of the keys of all marks. No key of the engine is in it.
pub(super) const KEYS: Range<&[u8]> = b"\0"..b"\x01";

/// Reads all marks, and returns the number of the last group, or 0.
///
/// # Errors
///
/// When a group before it is missing, or a mark is malformed.
pub(super) fn last<E>(
    marks: impl Iterator<Item = Result<(impl AsRef<[u8]>, impl AsRef<[u8]>), E>>,
) -> Result<Result<u64, String>, E> {
    let mut found = Vec::new();
    for mark in marks {
        let (key, record) = mark?;
        let slot = key.as_ref().strip_prefix(b"\0");
        let slot = slot.and_then(|slot| slot.try_into().ok());
        let (Some(slot), Ok(number)) = (slot, record.as_ref().try_into()) else {
            return Ok(Err("the number of a write cannot be read".to_owned()));
        };
        found.push((u32::from_be_bytes(slot), u64::from_be_bytes(number)));
    }
    Ok(check(&found))
}

/// Where the marks of groups after `required` are in the bytes of a journal: of each group, the one
/// under its own key. That under the key of the group before is just in front of it.
pub(super) fn find(bytes: &[u8], required: u64) -> impl Iterator<Item = usize> {
    let windows = bytes.windows(MARK_BYTES).enumerate();
    windows.filter_map(move |(index, mark)| {
        let (own, record) = mark.split_first_chunk()?;
        let number = u64::from_be_bytes(record.try_into().ok()?);
        if number <= required || *own != key(number) {
            return None;
        }
        // Other bytes may look like one mark by chance.
        let [(before, record), _] = of(number);
        let mut in_front = bytes
            .get(index.saturating_sub(MARK_DISTANCE)..index)?
            .windows(MARK_BYTES);
        in_front
            .any(|mark| mark.starts_with(&before) && mark.ends_with(&record))
            .then_some(index)
    })
}

/// The marks are in the order of their slots.
fn check(marks: &[(u32, u64)]) -> Result<u64, String> {
    let Some(last) = marks.iter().map(|(_, number)| *number).max() else {
        return Ok(0);
    };
    let first = (last + 1).saturating_sub(MARKED);
    let find = |group| {
        let slot = slot(group);
        let index = marks.binary_search_by_key(&slot, |(slot, _)| *slot);
        index.ok().and_then(|index| marks.get(index))
    };
    for group in first..=last {
        let next = last.min(group + 1);
        if find(group).is_none_or(|(_, number)| *number != next) {
            return Err(format!(
                "group {next} of its writes is missing, or not where it was written, and groups up to {last} are there"
            ));
        }
    }
    Ok(last)
}

fn key(group: u64) -> [u8; 5] {
    let [a, b, c, d] = slot(group).to_be_bytes();
    [0, a, b, c, d]
}

fn slot(group: u64) -> u32 {
    u32::try_from(group % MARKED).unwrap_or_default()
}

/// The key and the record of a mark.
const MARK_BYTES: usize = 5 + 8;
/// From the first mark of a group to the second, with what the store writes between them, or more.
const MARK_DISTANCE: usize = 64;

/// So many groups are marked. The store keeps up to three memory tables of 16 MiB that are in no
/// table yet, and a group takes more than 350 bytes of them.
const MARKED: u64 = 150_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The marks of groups in the order in which they were applied.
    fn applied(groups: impl Iterator<Item = u64>) -> Result<u64, String> {
        let marks: BTreeMap<_, _> = groups.flat_map(of).collect();
        last(marks.iter().map(Ok::<_, ()>)).unwrap()
    }

    #[test]
    fn a_group_that_is_missing_is_named() {
        assert_eq!(applied(0..0), Ok(0));
        for last in [1, 2, 3, MARKED - 1, MARKED, MARKED + 1, 2 * MARKED + 7] {
            assert_eq!(applied(1..=last), Ok(last));
        }
        for last in [40, MARKED + 40] {
            for missing in last - 39..last {
                for lost in 1..last - missing {
                    let rest =
                        (1..=last).filter(|group| !(missing..missing + lost).contains(group));
                    let error = applied(rest).unwrap_err();
                    assert!(error.contains(&format!("group {missing} of")), "{error}");
                    if last > 40 || lost > 2 {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn a_group_that_was_applied_out_of_order_is_noticed() {
        for (group, later) in [(5, 6), (5, 20), (1, 2), (20, 21)] {
            let before = (1..=30).filter(|other| *other != group && *other < later);
            let after = (1..=30).filter(|other| *other >= later);
            applied(before.chain([group]).chain(after)).unwrap_or_else(|error| {
                assert!(later > group + 1, "{error}");
                0
            });
            let late = (1..=30).filter(|other| *other != group).chain([group]);
            assert!(applied(late).is_err(), "{group}");
        }
        let early = [3].into_iter().chain((1..=30).filter(|other| *other != 3));
        assert!(applied(early).is_err());
    }

    #[test]
    fn malformed_marks_are_errors() {
        let good = (b"\0\0\0\0\x01".to_vec(), 1_u64.to_be_bytes().to_vec());
        for (key, record) in [
            (b"\0\0".to_vec(), good.1.clone()),
            (good.0.clone(), b"1".to_vec()),
        ] {
            let marks = [Ok::<_, ()>((key, record))];
            assert!(last(marks.into_iter()).unwrap().is_err());
        }
    }
}
