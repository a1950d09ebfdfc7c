//! The ranges of keys that a filter has to read. With them, a point or range query is a seek
//! instead of a scan.
//!
//! They contain every key for which the filter could be true, and may contain others; the filter
//! still decides on each entity. Their number, and the time to compute them, are proportional to
//! the size of the filter. This module knows no entities and no storage.

use std::collections::VecDeque;
use std::slice;

use tablesdk_protocol::filter::Filter;

use super::key_codec::TableId;
use super::key_range::{KeyRange, StoredRange};

/// The stored keys that can satisfy a filter, in order and apart from one another.
// A list of ranges and not one range: a filter for two distant keys would otherwise be one range
// with everything between them.
pub(super) fn stored_ranges(filter: Option<&Filter>, table: TableId) -> Vec<StoredRange> {
    let mut ranges = filter.map_or_else(|| vec![KeyRange::ALL], of);
    if ranges.len() > RANGES_MAX {
        // Neighbours are read as one, with what lies between.
        ranges.sort_unstable();
        let together = ranges.len().div_ceil(RANGES_MAX);
        ranges = ranges.chunks(together).filter_map(hull).collect();
    }
    let mut stored: Vec<_> = ranges
        .into_iter()
        .map(|range| range.to_stored_range(table))
        .collect();
    stored.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    let mut apart: Vec<StoredRange> = Vec::with_capacity(stored.len());
    for range in stored {
        match apart.last_mut() {
            Some(last) if range.start < last.end => {
                if range.row_keys != last.row_keys {
                    last.row_keys = None;
                }
                last.end = range.end.max(std::mem::take(&mut last.end));
            }
            _ => apart.push(range),
        }
    }
    apart
}

/// The terms of a filter that do not hold for all keys of its ranges already: those that have to be
/// evaluated for each entity.
///
/// A term on the partition key, or on the row key within one partition, holds for a range of stored
/// keys and for no other key. The ranges that are read lie in that range, unless they were joined
/// with others.
pub(super) fn undecided_terms<'f>(
    filter: &'f Filter,
    ranges: &VecDeque<StoredRange>,
    table: TableId,
) -> Vec<&'f Filter> {
    let terms = match filter {
        Filter::And(terms) => terms.as_slice(),
        filter => slice::from_ref(filter),
    };
    let exact = |term: &Filter| match term {
        Filter::Comparison(comparison) => KeyRange::of_exact_comparison(comparison),
        _ => None,
    };
    let partitions = terms.iter().filter_map(exact);
    let partitions = partitions
        .filter(KeyRange::has_all_row_keys)
        .try_fold(KeyRange::ALL, |all, range| all.intersection(&range));
    let is_decided = |term: &Filter| {
        let range = exact(term)?.intersection(partitions.as_ref()?)?;
        let holds = range.to_stored_range(table);
        let (first, last) = (ranges.front()?, ranges.back()?);
        let is_within = holds.start <= first.start && last.end <= holds.end;
        Some(is_within && holds.row_keys.is_none())
    };
    let terms = terms.iter();
    terms
        .filter(|term| is_decided(term) != Some(true))
        .collect()
}

/// The keys that can satisfy the filter; none when no key can.
fn of(filter: &Filter) -> Vec<KeyRange> {
    let mut effort = EFFORT_MAX;
    filter.fold(|filter, mut parts: Vec<Vec<KeyRange>>| {
        // A filter that is nested deep would hand its ranges on from level to level.
        effort = effort.saturating_sub(parts.iter().map(Vec::len).sum());
        if effort == 0 {
            for part in &mut parts {
                *part = hull(part).into_iter().collect();
            }
        }
        match filter {
            Filter::And(_) => intersection(&parts),
            Filter::Or(_) => {
                let ranges = parts.concat();
                if ranges.contains(&KeyRange::ALL) {
                    vec![KeyRange::ALL]
                } else {
                    ranges
                }
            }
            Filter::Comparison(comparison) => {
                KeyRange::of_comparison(comparison).into_iter().collect()
            }
            Filter::Constant(false) => Vec::new(),
            Filter::Constant(true)
            | Filter::Not(_)
            | Filter::Properties(_)
            | Filter::Property(_) => vec![KeyRange::ALL],
        }
    })
}

/// The keys in all the parts. A part that would multiply the ranges too much counts as one range.
fn intersection(parts: &[Vec<KeyRange>]) -> Vec<KeyRange> {
    let mut common = Some(KeyRange::ALL);
    for part in parts {
        let hull = hull(part);
        common = common.and_then(|common| common.intersection(&hull?));
    }
    let mut ranges: Vec<_> = common.into_iter().collect();
    for part in parts.iter().filter(|part| part.len() > 1) {
        if ranges.len() == 1 || ranges.len() * part.len() <= PRODUCT_MAX {
            let pairs = ranges
                .iter()
                .flat_map(|range| part.iter().map(move |other| range.intersection(other)));
            ranges = pairs.flatten().collect();
        }
    }
    ranges
}

fn hull(ranges: &[KeyRange]) -> Option<KeyRange> {
    let (first, rest) = ranges.split_first()?;
    Some(
        rest.iter()
            .fold(first.clone(), |hull, range| hull.hull(range)),
    )
}

/// The most ranges of a query. More would each be cheaper to read, but take longer to seek and more
/// room to keep.
const RANGES_MAX: usize = 1000;

/// How many ranges are looked at until they are made fewer. A flat filter is looked at twice,
/// whatever its length.
const EFFORT_MAX: usize = 50_000;

/// The most ranges that two parts of a conjunction make together, unless one of them is a single
/// range.
const PRODUCT_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use tablesdk_protocol::filter::ComparisonOperator;

    use super::super::key_codec;
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

    /// The two ends of each range, without what every key of the table starts with.
    fn ranges(filter: &Filter) -> String {
        let prefix = key_codec::entities_start(TableId(1)).len();
        let mut text = String::new();
        for StoredRange {
            start,
            end,
            row_keys,
        } in stored_ranges(Some(filter), TableId(1))
        {
            let (start, end) = (start[prefix..].escape_ascii(), end[prefix..].escape_ascii());
            write!(text, "[{start} {end}").unwrap();
            if let Some(row_keys) = row_keys {
                let end = row_keys.end.unwrap_or_else(|| b"*".to_vec());
                let (start, end) = (row_keys.start.escape_ascii(), end.escape_ascii());
                write!(text, " of which [{start} {end}]").unwrap();
            }
            text.push(']');
        }
        text
    }

    #[test]
    fn conjunctions_narrow_and_disjunctions_add() {
        use ComparisonOperator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let other = || compare("age", ComparisonOperator::Equal, "x");
        let prefix = |property| {
            compare(property, GreaterThanOrEqual, "2024-03")
                .and(compare(property, LessThan, "2024-04"))
        };
        let between = compare("PartitionKey", GreaterThan, "a").and(compare(
            "PartitionKey",
            LessThanOrEqual,
            "b",
        ));
        for (filter, expected) in [
            (pk("p"), r"[p\x00 p\x01]"),
            (pk("p").and(rk("r")), r"[p\x00r p\x00r\x00]"),
            (rk("r").and(other()).and(pk("p")), r"[p\x00r p\x00r\x00]"),
            (
                pk("p").and(prefix("RowKey")),
                r"[p\x002024-03 p\x002024-04]",
            ),
            (prefix("PartitionKey"), r"[2024-03\x00 2024-04\x00]"),
            (between.clone(), r"[a\x01 b\x01]"),
            (
                between.and(rk("r")),
                r"[a\x01 b\x00r\x00 of which [r r\x00]]",
            ),
            (
                pk("b").and(rk("2")).or(pk("a").and(rk("1"))),
                r"[a\x001 a\x001\x00][b\x002 b\x002\x00]",
            ),
            (
                pk("a").or(pk("b")).and(rk("1").or(rk("2"))),
                r"[a\x001 a\x001\x00][a\x002 a\x002\x00][b\x001 b\x001\x00][b\x002 b\x002\x00]",
            ),
            (
                pk("p").and(rk("5").or(rk("2"))).and(other()),
                r"[p\x002 p\x002\x00][p\x005 p\x005\x00]",
            ),
            (
                pk("p").or(pk("p").and(rk("r"))).or(pk("q")),
                r"[p\x00 p\x01][q\x00 q\x01]",
            ),
            (pk("p").or(other()), r"[ \xff]"),
            (rk("r"), r"[ \xff of which [r r\x00]]"),
            (
                compare("RowKey", GreaterThan, "r"),
                r"[ \xff of which [r\x00 *]]",
            ),
            (!pk("p"), r"[ \xff]"),
            (other().or(Filter::Constant(false)), r"[ \xff]"),
            (pk("a").and(!pk("a")), r"[a\x00 a\x01]"),
        ] {
            assert_eq!(ranges(&filter), expected, "{filter:?}");
        }
    }

    #[test]
    fn contradictions_need_no_key() {
        let typed = |operator| Filter::comparison("PartitionKey", operator, 5);
        for filter in [
            pk("a").and(pk("b")),
            pk("a").and(rk("1")).and(rk("2")),
            pk("a").and(compare("PartitionKey", ComparisonOperator::LessThan, "a")),
            pk("a").or(pk("b")).and(pk("c").or(pk("d"))),
            typed(ComparisonOperator::Equal),
            Filter::Constant(false).or(Filter::Constant(false)),
            pk("a\0b"),
            pk(&"x".repeat(2000)),
        ] {
            assert_eq!(ranges(&filter), "", "{filter:?}");
        }
        for filter in [
            typed(ComparisonOperator::NotEqual),
            compare("PartitionKey", ComparisonOperator::LessThan, "a\0b"),
            compare(
                "PartitionKey",
                ComparisonOperator::LessThan,
                &"x".repeat(2000),
            ),
        ] {
            assert_eq!(ranges(&filter), r"[ \xff]", "{filter:?}");
        }
    }

    #[test]
    fn terms_that_hold_for_all_keys_of_the_ranges_are_not_evaluated() {
        use ComparisonOperator::{GreaterThan, GreaterThanOrEqual, LessThan, NotEqual};
        let other = || compare("Age", ComparisonOperator::Equal, "1");
        let from = |operator, literal| compare("PartitionKey", operator, literal);
        let row = |operator, literal| compare("RowKey", operator, literal);
        let none = Vec::new;
        for (filter, undecided) in [
            (pk("a"), none()),
            (from(GreaterThan, "a"), none()),
            (pk("a").and(rk("1")), none()),
            (pk("a").and(other()), vec![other()]),
            (
                pk("a").and(row(GreaterThan, "1")).and(row(LessThan, "5")),
                none(),
            ),
            (
                from(GreaterThanOrEqual, "a").and(from(LessThan, "b")),
                none(),
            ),
            // A row key in more than one partition is no range of stored keys.
            (rk("1"), vec![rk("1")]),
            (from(GreaterThan, "a").and(rk("1")), vec![rk("1")]),
            (from(NotEqual, "a"), vec![from(NotEqual, "a")]),
            (pk("a").and(!pk("b")), vec![!pk("b")]),
            (pk("a").or(pk("b")), vec![pk("a").or(pk("b"))]),
            (pk("a").and(rk("1").or(rk("2"))), vec![rk("1").or(rk("2"))]),
            (
                Filter::comparison("PartitionKey", GreaterThan, 5),
                Vec::new(),
            ),
        ] {
            let ranges: VecDeque<_> = stored_ranges(Some(&filter), TableId(1)).into();
            let found = undecided_terms(&filter, &ranges, TableId(1));
            if ranges.is_empty() {
                // Nothing is read.
                continue;
            }
            assert_eq!(found, undecided.iter().collect::<Vec<_>>(), "{filter:?}");
        }
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let any = |property: &str, count: usize| {
            let equal = |number: usize| {
                compare(property, ComparisonOperator::Equal, &format!("{number:05}"))
            };
            Filter::Or((0..count).map(equal).collect())
        };
        let count = |filter: &Filter| stored_ranges(Some(filter), TableId(1)).len();
        assert_eq!(count(&any("PartitionKey", 1000)), 1000);
        assert_eq!(count(&pk("p").and(any("RowKey", 1000))), 1000);
        let many = any("PartitionKey", 2500);
        let stored = stored_ranges(Some(&many), TableId(1));
        assert_eq!(stored.len(), 834);
        assert!(
            stored
                .iter()
                .any(|range| range.start == key_codec::partition_start(TableId(1), "00003"))
        );
        // Ten times ten points, but not a hundred times a hundred.
        assert_eq!(count(&any("PartitionKey", 10).and(any("RowKey", 10))), 100);
        assert_eq!(
            count(&any("PartitionKey", 100).and(any("RowKey", 100))),
            100
        );
    }
}
