//! The range of keys that one term of a filter has to read: an interval of partition keys, and an interval of row keys.
//!
//! It is derived from the filter's comparisons of `PartitionKey` and `RowKey`, and contains every key for which they could be
//! true. `key_ranges.rs` combines them into the ranges of a filter. This module knows no entities and no storage.

use std::cmp::Ordering;
use std::ops::Bound;

use tablesdk_protocol::filter::{Comparison, ComparisonOperator};
use tablesdk_protocol::limits::KEY_UNITS_MAX;
use tablesdk_protocol::{Value, compare_utf16};

use super::key_codec::{self, TableId};

/// The keys that can satisfy a filter: an interval of partition keys and one of row keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRange<'f> {
    partition: Interval<'f>,
    row: Interval<'f>,
}

impl<'f> KeyRange<'f> {
    /// Every key.
    pub(super) const ALL: Self = Self {
        partition: Interval::ALL,
        row: Interval::ALL,
    };

    /// The range of stored keys.
    pub(super) fn to_stored_range(self, table: TableId) -> StoredRange {
        let at = |partition_key: &str, row_key: &str| {
            let mut key = key_codec::partition_start(table, partition_key);
            key_codec::push_string(&mut key, row_key);
            key
        };
        let start = match self.partition.lower {
            Bound::Unbounded => key_codec::entities_start(table),
            Bound::Excluded(partition_key) => key_codec::partition_end(table, partition_key),
            Bound::Included(partition_key) => match self.row.lower {
                Bound::Unbounded => key_codec::partition_start(table, partition_key),
                Bound::Included(row_key) => at(partition_key, row_key),
                Bound::Excluded(row_key) => key_codec::after(at(partition_key, row_key)),
            },
        };
        let end = match self.partition.upper {
            Bound::Unbounded => key_codec::entities_end(table),
            Bound::Excluded(partition_key) => key_codec::partition_start(table, partition_key),
            Bound::Included(partition_key) => match self.row.upper {
                Bound::Unbounded => key_codec::partition_end(table, partition_key),
                Bound::Included(row_key) => key_codec::after(at(partition_key, row_key)),
                Bound::Excluded(row_key) => at(partition_key, row_key),
            },
        };
        StoredRange {
            start,
            end,
            row_keys: self.row_keys(),
        }
    }

    /// The interval of row keys, where it cuts something out of the middle of the range.
    fn row_keys(self) -> Option<RowKeyRange> {
        let is_one_partition = match (self.partition.lower, self.partition.upper) {
            (Bound::Included(first), Bound::Included(last)) => first == last,
            _ => false,
        };
        if is_one_partition || self.row == Interval::ALL {
            return None;
        }
        let bytes = |text: &str| {
            let mut bytes = Vec::with_capacity(text.len() + 1);
            key_codec::push_string(&mut bytes, text);
            bytes
        };
        Some(RowKeyRange {
            start: match self.row.lower {
                Bound::Unbounded => Vec::new(),
                Bound::Included(text) => bytes(text),
                Bound::Excluded(text) => key_codec::after(bytes(text)),
            },
            end: match self.row.upper {
                Bound::Unbounded => None,
                Bound::Included(text) => Some(key_codec::after(bytes(text))),
                Bound::Excluded(text) => Some(bytes(text)),
            },
        })
    }

    /// The order in which ranges start.
    pub(super) fn compare_starts(&self, other: &Self) -> Ordering {
        compare_lower(&self.partition.lower, &other.partition.lower)
            .then_with(|| compare_lower(&self.row.lower, &other.row.lower))
    }

    /// The keys for which the comparison holds, or more; `None` when it holds for none.
    pub(super) fn of_comparison(comparison: &'f Comparison) -> Option<Self> {
        let is_partition = comparison.property == "PartitionKey";
        if !is_partition && comparison.property != "RowKey" {
            return Some(Self::ALL);
        }
        let Value::String(text) = &comparison.literal else {
            // A key is a text, and a text is less than a literal of any other type.
            let holds = comparison.operator.matches(Ordering::Less);
            return holds.then_some(Self::ALL);
        };
        // The character that separates the two keys in the storage cannot be part of a bound there, and a text that is longer
        // than any key need not be: many of them would take room.
        if text.contains('\0') || text.len() > KEY_BYTES_MAX {
            return (comparison.operator != ComparisonOperator::Equal).then_some(Self::ALL);
        }
        let interval = Interval::of(comparison.operator, text);
        Some(if is_partition {
            Self {
                partition: interval,
                ..Self::ALL
            }
        } else {
            Self {
                row: interval,
                ..Self::ALL
            }
        })
    }

    /// The keys in both; `None` when there are none.
    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        Some(Self {
            partition: self.partition.intersection(&other.partition)?,
            row: self.row.intersection(&other.row)?,
        })
    }

    /// The keys in either, and others.
    pub(super) fn hull(&self, other: &Self) -> Self {
        Self {
            partition: self.partition.hull(&other.partition),
            row: self.row.hull(&other.row),
        }
    }
}

/// The stored keys from `start` up to but not including `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredRange {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    /// In each partition, only these.
    pub(super) row_keys: Option<RowKeyRange>,
}

/// The stored row keys from `start` up to but not including `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowKeyRange {
    pub(super) start: Vec<u8>,
    pub(super) end: Option<Vec<u8>>,
}

/// The texts between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval<'f> {
    lower: Bound<&'f str>,
    upper: Bound<&'f str>,
}

impl<'f> Interval<'f> {
    const ALL: Self = Self {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    /// The texts for which the comparison with that literal holds, or more.
    const fn of(operator: ComparisonOperator, literal: &'f str) -> Self {
        let (lower, upper) = match operator {
            ComparisonOperator::Equal => (Bound::Included(literal), Bound::Included(literal)),
            ComparisonOperator::GreaterThan => (Bound::Excluded(literal), Bound::Unbounded),
            ComparisonOperator::GreaterThanOrEqual => (Bound::Included(literal), Bound::Unbounded),
            ComparisonOperator::LessThan => (Bound::Unbounded, Bound::Excluded(literal)),
            ComparisonOperator::LessThanOrEqual => (Bound::Unbounded, Bound::Included(literal)),
            ComparisonOperator::NotEqual => (Bound::Unbounded, Bound::Unbounded),
        };
        Self { lower, upper }
    }

    /// The texts in both; `None` when there are none.
    fn intersection(&self, other: &Self) -> Option<Self> {
        let lower = match compare_lower(&self.lower, &other.lower) {
            Ordering::Less => other.lower,
            _ => self.lower,
        };
        let upper = match compare_upper(&self.upper, &other.upper) {
            Ordering::Greater => other.upper,
            _ => self.upper,
        };
        let is_empty = match (lower, upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => compare_utf16(low, high).is_gt(),
            (
                Bound::Included(low) | Bound::Excluded(low),
                Bound::Included(high) | Bound::Excluded(high),
            ) => compare_utf16(low, high).is_ge(),
        };
        (!is_empty).then_some(Self { lower, upper })
    }

    /// The texts in either, and between them.
    fn hull(&self, other: &Self) -> Self {
        Self {
            lower: match compare_lower(&self.lower, &other.lower) {
                Ordering::Greater => other.lower,
                _ => self.lower,
            },
            upper: match compare_upper(&self.upper, &other.upper) {
                Ordering::Less => other.upper,
                _ => self.upper,
            },
        }
    }
}

/// Which of two lower bounds admits less: that one is greater.
fn compare_lower(a: &Bound<&str>, b: &Bound<&str>) -> Ordering {
    let rank = |bound: &Bound<&str>| u8::from(matches!(bound, Bound::Excluded(_)));
    match (text_of(a), text_of(b)) {
        (Some(x), Some(y)) => compare_utf16(x, y).then(rank(a).cmp(&rank(b))),
        (x, y) => x.is_some().cmp(&y.is_some()),
    }
}

/// Which of two upper bounds admits more: that one is greater.
fn compare_upper(a: &Bound<&str>, b: &Bound<&str>) -> Ordering {
    let rank = |bound: &Bound<&str>| u8::from(matches!(bound, Bound::Included(_)));
    match (text_of(a), text_of(b)) {
        (Some(x), Some(y)) => compare_utf16(x, y).then(rank(a).cmp(&rank(b))),
        (x, y) => x.is_none().cmp(&y.is_none()),
    }
}

const fn text_of<'f>(bound: &Bound<&'f str>) -> Option<&'f str> {
    match bound {
        Bound::Included(text) | Bound::Excluded(text) => Some(text),
        Bound::Unbounded => None,
    }
}

/// No key is longer: 512 UTF-16 units, three bytes each.
const KEY_BYTES_MAX: usize = KEY_UNITS_MAX * 3;
