//! The range of keys that one term of a filter has to read: an interval of partition keys, and an
//! interval of row keys.
//!
//! It is derived from the filter's comparisons of `PartitionKey` and `RowKey`, and contains every
//! key for which they could be true. `key_ranges.rs` combines them into the ranges of a filter.
//! This module knows no entities and no storage.

use std::cmp::Ordering;

use tablesdk_protocol::Value;
use tablesdk_protocol::filter::{Comparison, ComparisonOperator};
use tablesdk_protocol::limits::KEY_UNITS_MAX;

use super::key_codec::{self, TableId};

/// The keys that can satisfy a filter: an interval of partition keys and one of row keys. Ranges
/// are ordered by their starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyRange {
    partition: Interval,
    row: Interval,
}

impl KeyRange {
    /// Every key.
    pub(super) const ALL: Self = Self {
        partition: Interval::ALL,
        row: Interval::ALL,
    };

    /// The range of stored keys.
    pub(super) fn to_stored_range(&self, table: TableId) -> StoredRange {
        let key = |partition_key, row_key| key_codec::key_of_encoded(table, partition_key, row_key);
        let partition_end = |partition_key| key_codec::end_of_partition(&key(partition_key, &[]));
        let start = match self.partition.start.as_deref().map(Border::of) {
            None => key_codec::entities_start(table),
            Some(Border::At(first)) => key(first, self.row.start.as_deref().unwrap_or_default()),
            Some(Border::After(before)) => partition_end(before),
        };
        let end = match self.partition.end.as_deref().map(Border::of) {
            None => key_codec::entities_end(table),
            Some(Border::At(after)) => key(after, &[]),
            Some(Border::After(last)) => match &self.row.end {
                None => partition_end(last),
                Some(row_key) => key(last, row_key),
            },
        };
        let row_keys = (!self.is_one_partition() && self.row != Interval::ALL).then(|| {
            let Interval { start, end } = self.row.clone();
            let start = start.unwrap_or_default();
            RowKeyRange { start, end }
        });
        StoredRange {
            start,
            end,
            row_keys,
        }
    }

    /// Returns true if the interval of row keys cuts nothing out of the middle of the range.
    fn is_one_partition(&self) -> bool {
        let end = self.partition.end.as_deref().map(Border::of);
        matches!((&self.partition.start, end), (Some(first), Some(Border::After(last))) if first == last)
    }

    /// The keys for which the comparison holds, or more; `None` when it holds for none.
    pub(super) fn of_comparison(comparison: &Comparison) -> Option<Self> {
        let is_partition = comparison.property == "PartitionKey";
        if !is_partition && comparison.property != "RowKey" {
            return Some(Self::ALL);
        }
        let Value::String(literal) = &comparison.literal else {
            // A key is a string, and a string is less than a literal of any other type.
            let holds = comparison.operator.matches(Ordering::Less);
            return holds.then_some(Self::ALL);
        };
        // The character that separates the two keys in the storage must not be part of a bound. A
        // string that is longer than any key needs no bound, and many of them would take memory.
        if literal.contains('\0') || literal.len() > KEY_BYTES_MAX {
            return (comparison.operator != ComparisonOperator::Equal).then_some(Self::ALL);
        }
        let interval = Interval::of(comparison.operator, literal);
        let (partition, row) = if is_partition {
            (interval, Interval::ALL)
        } else {
            (Interval::ALL, interval)
        };
        Some(Self { partition, row })
    }

    /// The keys for which the comparison holds, and no others; `None` for a comparison that no
    /// range describes.
    pub(super) fn of_exact_comparison(comparison: &Comparison) -> Option<Self> {
        Self::of_comparison(comparison).filter(|range| *range != Self::ALL)
    }

    /// Returns true if the range does not limit the row keys.
    pub(super) fn has_all_row_keys(&self) -> bool {
        self.row == Interval::ALL
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

impl StoredRange {
    /// Returns true if the range has room for one entity alone.
    pub(super) fn is_point(&self) -> bool {
        self.end.split_last() == Some((&0, &self.start))
    }
}

/// The stored row keys from `start` up to but not including `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowKeyRange {
    pub(super) start: Vec<u8>,
    pub(super) end: Option<Vec<u8>>,
}

/// The encoded strings from `start` up to but not including `end`; `None` for no bound.
///
/// A bound is an encoded string, or an encoded string with a 0 at its end, which is the next one in
/// the order of bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

impl Interval {
    const ALL: Self = Self {
        start: None,
        end: None,
    };

    /// The strings for which the comparison with that literal holds, or more.
    fn of(operator: ComparisonOperator, literal: &str) -> Self {
        let at = || {
            let mut bytes = Vec::with_capacity(literal.len() + 1);
            key_codec::push_string(&mut bytes, literal);
            Some(bytes)
        };
        let after = || at().map(key_codec::after);
        let (start, end) = match operator {
            ComparisonOperator::Equal => (at(), after()),
            ComparisonOperator::GreaterThan => (after(), None),
            ComparisonOperator::GreaterThanOrEqual => (at(), None),
            ComparisonOperator::LessThan => (None, at()),
            ComparisonOperator::LessThanOrEqual => (None, after()),
            ComparisonOperator::NotEqual => (None, None),
        };
        Self { start, end }
    }

    /// The strings in both; `None` when there are none.
    fn intersection(&self, other: &Self) -> Option<Self> {
        let start = self.start.as_ref().max(other.start.as_ref());
        let ends = self.end.iter().chain(&other.end);
        let end = ends.min();
        let is_empty = matches!((start, end), (Some(start), Some(end)) if start >= end);
        (!is_empty).then(|| Self {
            start: start.cloned(),
            end: end.cloned(),
        })
    }

    /// The strings in either, and between them.
    fn hull(&self, other: &Self) -> Self {
        let ends = self.end.as_ref().zip(other.end.as_ref());
        Self {
            start: self.start.as_ref().min(other.start.as_ref()).cloned(),
            end: ends.map(|(a, b)| a.max(b).clone()),
        }
    }
}

/// A bound of an [`Interval`].
enum Border<'b> {
    /// Directly before this string.
    At(&'b [u8]),
    /// Directly after this string.
    After(&'b [u8]),
}

impl<'b> Border<'b> {
    fn of(bound: &'b [u8]) -> Self {
        match bound.strip_suffix(&[0]) {
            Some(string) => Self::After(string),
            None => Self::At(bound),
        }
    }
}

/// No key is longer: 512 UTF-16 units, three bytes each.
const KEY_BYTES_MAX: usize = KEY_UNITS_MAX * 3;
