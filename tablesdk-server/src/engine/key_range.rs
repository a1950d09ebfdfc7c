//! The range of keys that a filter needs to see: what makes a point or range query a seek instead of a scan.
//!
//! Comes from the filter's comparisons of `PartitionKey` and `RowKey`. The range holds every key that the filter could be
//! true of, and may hold others; it never decides on an entity. Knows no entities and no storage.

use std::cmp::Ordering;
use std::ops::Bound;

use tablesdk_protocol::filter::{Comparison, ComparisonOperator, Filter};
use tablesdk_protocol::{Value, compare_utf16};

use super::layout::{self, TableId};

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

    /// The keys that can satisfy the filter; `None` when no key can.
    pub(super) fn of(filter: &'f Filter) -> Option<Self> {
        filter.fold(|filter, parts: Vec<Option<Self>>| match filter {
            Filter::And(_) => parts
                .into_iter()
                .try_fold(Self::ALL, |range, part| range.intersection(&part?)),
            // Ranges far apart are read as one, with what lies between.
            Filter::Or(_) => parts
                .into_iter()
                .flatten()
                .reduce(|range, part| range.hull(&part)),
            Filter::Comparison(comparison) => Self::of_comparison(comparison),
            Filter::Constant(false) => None,
            Filter::Constant(true) | Filter::Not(_) | Filter::Property(_) => Some(Self::ALL),
        })
    }

    /// The range of stored keys. The interval of row keys narrows it within the first and the last partition.
    pub(super) fn to_bytes(self, table: TableId) -> (Vec<u8>, Vec<u8>) {
        let at = |partition_key: &str, row_key: &str| {
            let mut key = layout::partition_start(table, partition_key);
            layout::push_text(&mut key, row_key);
            key
        };
        // Nothing lies between a key and the same key with this byte at its end.
        let after = |partition_key: &str, row_key: &str| {
            let mut key = at(partition_key, row_key);
            key.push(0);
            key
        };
        let start = match self.partition.lower {
            Bound::Unbounded => layout::entities_start(table),
            Bound::Excluded(partition_key) => layout::partition_end(table, partition_key),
            Bound::Included(partition_key) => match self.row.lower {
                Bound::Unbounded => layout::partition_start(table, partition_key),
                Bound::Included(row_key) => at(partition_key, row_key),
                Bound::Excluded(row_key) => after(partition_key, row_key),
            },
        };
        let end = match self.partition.upper {
            Bound::Unbounded => layout::entities_end(table),
            Bound::Excluded(partition_key) => layout::partition_start(table, partition_key),
            Bound::Included(partition_key) => match self.row.upper {
                Bound::Unbounded => layout::partition_end(table, partition_key),
                Bound::Included(row_key) => after(partition_key, row_key),
                Bound::Excluded(row_key) => at(partition_key, row_key),
            },
        };
        (start, end)
    }

    fn of_comparison(comparison: &'f Comparison) -> Option<Self> {
        let is_partition = comparison.property == "PartitionKey";
        if !is_partition && comparison.property != "RowKey" {
            return Some(Self::ALL);
        }
        let Value::String(text) = &comparison.literal else {
            // A key is a text, and a text is less than a literal of any other type.
            let holds = comparison.operator.matches(Ordering::Less);
            return holds.then_some(Self::ALL);
        };
        // The character that separates the two keys in the storage cannot be part of a bound there.
        if text.contains('\0') {
            return Some(Self::ALL);
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

    fn intersection(&self, other: &Self) -> Option<Self> {
        Some(Self {
            partition: self.partition.intersection(&other.partition)?,
            row: self.row.intersection(&other.row)?,
        })
    }

    fn hull(&self, other: &Self) -> Self {
        Self {
            partition: self.partition.hull(&other.partition),
            row: self.row.hull(&other.row),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(property: &str, operator: ComparisonOperator, literal: &str) -> Filter {
        Filter::comparison(property, operator, literal)
    }

    fn pk(literal: &str) -> Filter {
        compare("PartitionKey", ComparisonOperator::Equal, literal)
    }

    fn rk(literal: &str) -> Filter {
        compare("RowKey", ComparisonOperator::Equal, literal)
    }

    /// The two ends of the range, without what every key of the table starts with.
    fn range(filter: &Filter) -> Option<(String, String)> {
        let (start, end) = KeyRange::of(filter)?.to_bytes(TableId(1));
        let prefix = layout::entities_start(TableId(1)).len();
        let text = |key: &[u8]| key[prefix..].escape_ascii().to_string();
        Some((text(&start), text(&end)))
    }

    #[test]
    fn conjunctions_narrow_and_disjunctions_span() {
        use ComparisonOperator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let other = || compare("age", ComparisonOperator::Equal, "x");
        let prefix = compare("RowKey", GreaterThanOrEqual, "2024-03")
            .and(compare("RowKey", LessThan, "2024-04"));
        for (filter, start, end) in [
            (pk("p"), "p\\x00", "p\\x01"),
            (pk("p").and(rk("r")), "p\\x00r", "p\\x00r\\x00"),
            (rk("r").and(other()).and(pk("p")), "p\\x00r", "p\\x00r\\x00"),
            (pk("p").and(prefix), "p\\x002024-03", "p\\x002024-04"),
            (
                compare("PartitionKey", GreaterThan, "a").and(compare(
                    "PartitionKey",
                    LessThanOrEqual,
                    "b",
                )),
                "a\\x01",
                "b\\x01",
            ),
            (
                pk("a").and(rk("1")).or(pk("b").and(rk("2"))),
                "a\\x001",
                "b\\x002\\x00",
            ),
            (
                pk("p").and(rk("5").or(rk("2"))).and(other()),
                "p\\x002",
                "p\\x005\\x00",
            ),
            (pk("p").or(other()), "", "\\xff"),
            (rk("r"), "", "\\xff"),
            (!pk("p"), "", "\\xff"),
            (other().or(Filter::Constant(false)), "", "\\xff"),
            (pk("a\0b"), "", "\\xff"),
        ] {
            let expected = Some((start.to_owned(), end.to_owned()));
            assert_eq!(range(&filter), expected, "{filter:?}");
        }
    }

    #[test]
    fn contradictions_need_no_key() {
        let typed = |operator| Filter::comparison("PartitionKey", operator, 5);
        for filter in [
            pk("a").and(pk("b")),
            pk("a").and(rk("1")).and(rk("2")),
            pk("a").and(compare("PartitionKey", ComparisonOperator::LessThan, "a")),
            typed(ComparisonOperator::Equal),
            Filter::Constant(false).or(Filter::Constant(false)),
        ] {
            assert_eq!(range(&filter), None, "{filter:?}");
        }
        assert!(range(&typed(ComparisonOperator::NotEqual)).is_some());
    }
}
