//! The scan of a query over its ranges of keys.
//!
//! The ranges come from the filter, the continuation token and the permissions of the caller. The
//! filter decides for each entity in them whether it is part of the result. The scan runs in
//! slices: between two slices, its caller can yield to other tasks, or stop because the time limit
//! is reached. Knows no HTTP, no JSON and no runtime; the visitor decides where a page ends.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use tablesdk_protocol::filter::Filter;

use super::evaluate::CompiledFilter;
use super::key_codec::{self, KeyReader, TableId};
use super::key_range::{RowKeyRange, StoredRange};
use super::key_ranges::{stored_ranges, undecided_terms};
use super::scan_budget::ScanBudget;
use super::view::{Entity, EntityBytes, View};
use crate::storage::StorageError;

/// Which entities of a table, from where on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    /// The table.
    pub(crate) table: TableId,
    /// The condition on the entities.
    pub(crate) filter: Option<&'a Filter>,
    /// Where to start.
    pub(crate) from: Option<&'a Position>,
    /// The keys that the caller may see.
    pub(crate) within: &'a KeyBounds,
}

/// The keys from a first to a last one, both included; an absent end is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    /// Where it starts.
    pub(crate) first: Option<Position>,
    /// Where it ends.
    pub(crate) last: Option<LastKey>,
}

/// The end of a [`KeyBounds`]: a whole partition, or one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastKey {
    /// The partition key.
    pub(crate) partition_key: String,
    /// The row key; `None` for the end of the partition.
    pub(crate) row_key: Option<String>,
}

/// A position in the order of keys. It need not be the key of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The partition key.
    pub(crate) partition_key: String,
    /// The row key; empty for the start of the partition.
    pub(crate) row_key: String,
}

impl Query<'_> {
    /// The ranges of stored keys to read, in order.
    fn ranges(&self) -> VecDeque<StoredRange> {
        let mut ranges = stored_ranges(self.filter, self.table);
        for from in self.from.iter().copied().chain(&self.within.first) {
            let first = key_codec::key_at(self.table, &from.partition_key, &from.row_key);
            for range in ranges.iter_mut().filter(|range| range.start < first) {
                range.start.clone_from(&first);
            }
        }
        if let Some(last) = &self.within.last {
            let partition_key = &last.partition_key;
            let end = match &last.row_key {
                Some(row_key) => {
                    key_codec::after(key_codec::key_at(self.table, partition_key, row_key))
                }
                None => key_codec::partition_end(self.table, partition_key),
            };
            for range in ranges.iter_mut().filter(|range| range.end > end) {
                range.end.clone_from(&end);
            }
        }
        ranges.retain(|range| range.start < range.end);
        ranges.into()
    }
}

/// A running query.
#[derive(Debug)]
pub(crate) struct Scan<'f> {
    filter: Option<CompiledFilter<'f>>,
    /// The ranges that are still to be read.
    ranges: VecDeque<StoredRange>,
}

/// How a slice of a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceEnd {
    /// At the end of the scan.
    Ended,
    /// Before an entity that is not in memory.
    NotFetched,
    /// Before the next entity or table, because the budget is spent.
    Paused,
    /// At the entity or table at which the visitor broke.
    Stopped,
}

impl<'f> Scan<'f> {
    /// Starts a query.
    pub(crate) fn new(query: &Query<'f>) -> Self {
        let ranges = query.ranges();
        let terms = query.filter.map_or_else(Vec::new, |filter| {
            undecided_terms(filter, &ranges, query.table)
        });
        let filter = (!terms.is_empty()).then(|| CompiledFilter::new(&terms));
        Self { filter, ranges }
    }

    /// Leaves out what begins with a partition key. Returns where that begins, if it is anything.
    pub(crate) fn end_before(
        &mut self,
        table: TableId,
        partition_key: &str,
    ) -> Result<Option<Position>, StorageError> {
        let end = key_codec::partition_start(table, partition_key);
        let Some(cut) = self.ranges.iter().position(|range| range.end > end) else {
            return Ok(None);
        };
        let mut rest = self.ranges.split_off(cut);
        if let Some(range) = rest.front_mut()
            && range.start < end
        {
            let start = std::mem::replace(&mut range.start, end.clone());
            let row_keys = range.row_keys.clone();
            self.ranges.push_back(StoredRange {
                start,
                end,
                row_keys,
            });
        }
        let filter = None;
        Scan {
            filter,
            ranges: rest,
        }
        .position()
    }

    /// Names the entities that are read next, if so many are wanted.
    pub(crate) fn announce(&self, view: &View, entities_max: usize) {
        // Points are read together. Of other ranges, the first is read, and the next ones when they
        // are reached.
        let mut ranges = self.ranges.iter().take(POINTS_MAX);
        let reads_ahead = self.filter.is_some() || self.ranges.len() > 1;
        // The entity after the page shows that there is a next page.
        let records_max = if self.filter.is_some() {
            usize::MAX
        } else {
            entities_max.saturating_add(1)
        };
        for range in &mut ranges {
            view.announce_range(&range.start, &range.end, records_max, reads_ahead);
            if !range.is_point() {
                break;
            }
        }
    }

    /// Passes the matching entities to the visitor, in the order of their keys, until it breaks or
    /// the budget is spent. Examines at least one entity, or one empty range of keys, unless it is
    /// not in memory.
    pub(crate) fn slice(
        &mut self,
        view: &View,
        budget: &mut ScanBudget,
        mut visit: impl FnMut(&Entity<'_>) -> Result<ControlFlow<()>, StorageError>,
    ) -> Result<SliceEnd, StorageError> {
        let mut is_first = true;
        while let Some(range) = self.ranges.front_mut() {
            // A seek costs time, also in an empty range.
            if !is_first && budget.is_spent() {
                return Ok(SliceEnd::Paused);
            }
            is_first = false;
            budget.spend(SEEK_COST);
            match walk(view, range, self.filter.as_mut(), budget, &mut visit)? {
                Walked::Through => {
                    self.ranges.pop_front();
                }
                Walked::Until(key) => {
                    range.start = key;
                    return Ok(SliceEnd::Paused);
                }
                Walked::NotFetched(key) => {
                    range.start = key;
                    return Ok(SliceEnd::NotFetched);
                }
                Walked::Past(key) => range.start = key,
                Walked::Stopped => return Ok(SliceEnd::Stopped),
            }
        }
        Ok(SliceEnd::Ended)
    }

    /// Where the next slice continues after a pause: at the next entity, or at the start of the
    /// next range.
    pub(crate) fn position(&self) -> Result<Option<Position>, StorageError> {
        let Some(range) = self.ranges.front() else {
            return Ok(None);
        };
        let (partition_key, row_key) = key_codec::read_start(&range.start)?;
        Ok(Some(Position {
            partition_key,
            row_key,
        }))
    }
}

/// How the walk over a range ended.
enum Walked {
    /// Before an entity that is not in memory, which has this key or a later one.
    NotFetched(Vec<u8>),
    /// After many entities with unwanted row keys in a row: a seek to this key is cheaper.
    Past(Vec<u8>),
    /// At the entity at which the visitor broke.
    Stopped,
    /// At the end of the range.
    Through,
    /// Before the entity with this key.
    Until(Vec<u8>),
}

fn walk(
    view: &View,
    range: &StoredRange,
    mut filter: Option<&mut CompiledFilter<'_>>,
    budget: &mut ScanBudget,
    visit: &mut impl FnMut(&Entity<'_>) -> Result<ControlFlow<()>, StorageError>,
) -> Result<Walked, StorageError> {
    let mut walked = Walked::Through;
    let mut passed = 0;
    let mut keys = KeyReader::default();
    let filter_cost = filter.as_ref().map_or(0, |filter| filter.cost());
    let entity_cost = filter_cost.saturating_add(ENTITY_COST);
    let missing = view.visit_entities(&range.start, &range.end, |stored| {
        if budget.is_done() {
            walked = Walked::Until(stored.key.to_vec());
            return Ok(ControlFlow::Break(()));
        }
        if let Some(row_keys) = &range.row_keys {
            if let Some(next) = next_in(row_keys, stored.key) {
                budget.examine(ENTITY_COST);
                passed += 1;
                if passed == PASSED_MAX {
                    walked = Walked::Past(next);
                    return Ok(ControlFlow::Break(()));
                }
                return Ok(ControlFlow::Continue(()));
            }
            passed = 0;
        }
        budget.examine(entity_cost);
        if let Some(filter) = &mut filter {
            // A filter may look at every string.
            budget.spend_bytes(stored.record.len() / 8);
            let holds = match filter.glance(stored.record) {
                Some(holds) => holds,
                None => search(filter, stored, budget)?,
            };
            if !holds {
                return Ok(ControlFlow::Continue(()));
            }
        }
        let next = pass(stored, &mut keys, budget, visit)?;
        if next.is_break() {
            walked = Walked::Stopped;
        }
        Ok(next)
    })?;
    Ok(match missing {
        Some(key) => Walked::NotFetched(key),
        None => walked,
    })
}

/// Evaluates a filter for an entity that needs a closer look.
#[inline(never)]
fn search(
    filter: &mut CompiledFilter<'_>,
    stored: EntityBytes<'_>,
    budget: &mut ScanBudget,
) -> Result<bool, StorageError> {
    let (holds, copied) = filter.holds(stored)?;
    budget.spend_bytes(copied);
    Ok(holds)
}

/// Passes an entity to the visitor. Most of a filtered scan does without, and its loop has to be
/// small.
#[inline(never)]
fn pass(
    stored: EntityBytes<'_>,
    keys: &mut KeyReader,
    budget: &mut ScanBudget,
    visit: &mut impl FnMut(&Entity<'_>) -> Result<ControlFlow<()>, StorageError>,
) -> Result<ControlFlow<()>, StorageError> {
    budget.spend_bytes(stored.record.len());
    visit(&stored.open(keys)?)
}

/// The next key with a wanted row key, for the key of an entity that is not wanted; `None` for one
/// that is.
fn next_in(row_keys: &RowKeyRange, key: &[u8]) -> Option<Vec<u8>> {
    // A malformed key is detected when it is read.
    let (partition, row_key) = key_codec::split_entity_key(key)?;
    if row_key < row_keys.start.as_slice() {
        return Some([partition, &row_keys.start].concat());
    }
    let end = row_keys.end.as_deref()?;
    (row_key >= end).then(|| key_codec::end_of_partition(partition))
}

/// The cost of a seek to the first entity of a range: a microsecond in memory, and some in files.
const SEEK_COST: u64 = 5000;

/// The most points that are read together. Each may have a megabyte.
const POINTS_MAX: usize = 20;

/// The cost of an entity, whatever its size.
const ENTITY_COST: u64 = 200;

/// After so many unwanted entities in a row, a seek is cheaper than reading on. Small partitions
/// never reach this number.
const PASSED_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;
    use tablesdk_protocol::filter::ComparisonOperator;
    use tablesdk_protocol::{EntityKey, Timestamp};

    use super::*;
    use crate::engine::entity_codec::Properties;
    use crate::storage::{MemoryStorage, Records, Slice, Snapshot, Storage, WriteBatch};

    /// Counts the records that are read.
    struct Counting(Box<dyn Snapshot>, Arc<AtomicUsize>);

    impl Snapshot for Counting {
        fn get(&self, key: &[u8]) -> Result<Option<Slice<'_>>, StorageError> {
            self.0.get(key)
        }

        fn range(&self, start: &[u8], end: &[u8]) -> Records<'_> {
            let records = self.0.range(start, end);
            Box::new(records.inspect(|_| {
                self.1.fetch_add(1, Ordering::Relaxed);
            }))
        }
    }

    const TABLE: TableId = TableId(7);

    /// A table with these keys, between two tables with the same.
    fn view(keys: &[(&str, &str)]) -> (View, Arc<AtomicUsize>) {
        let storage = MemoryStorage::default();
        let mut batch = WriteBatch::default();
        let record = Properties::NONE.record(Timestamp::UNIX_EPOCH);
        for (table, (partition_key, row_key)) in [6, 7, 8]
            .iter()
            .flat_map(|id| keys.iter().map(move |key| (TableId(*id), key)))
        {
            let key = EntityKey::new(*partition_key, *row_key).unwrap();
            batch.put(key_codec::entity_key(table, &key), record.clone());
        }
        drop(storage.commit(batch).unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        (
            View::local(
                Box::new(Counting(storage.snapshot(), Arc::clone(&count))),
                &Arc::default(),
            ),
            count,
        )
    }

    /// The keys found, up to a maximum number, in slices with that much work. Each slice starts at
    /// the position that the previous slice returned, as a page does.
    fn find_in_slices(
        view: &View,
        query: &Query<'_>,
        count_max: usize,
        budget: impl Fn() -> ScanBudget,
    ) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut from = query.from.cloned();
        loop {
            let mut scan = Scan::new(&Query {
                from: from.as_ref(),
                ..*query
            });
            let progress = scan.slice(view, &mut budget(), |entity| {
                let head = entity.head();
                found.push((head.partition_key.to_owned(), head.row_key.to_owned()));
                Ok(if found.len() == count_max {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            });
            match progress.unwrap() {
                SliceEnd::Ended | SliceEnd::Stopped => return found,
                SliceEnd::Paused => {
                    let next = scan.position().unwrap();
                    assert_ne!(next, from, "a slice must look at one entity at least");
                    from = next;
                }
                SliceEnd::NotFetched => unreachable!("the slice reads all"),
            }
        }
    }

    /// The keys found, up to a number of them.
    fn find(
        view: &View,
        filter: Option<&Filter>,
        from: Option<&Position>,
        within: &KeyBounds,
        count_max: usize,
    ) -> Vec<(String, String)> {
        let query = Query {
            table: TABLE,
            filter,
            from,
            within,
        };
        find_in_slices(view, &query, count_max, ScanBudget::slice)
    }

    fn compare(property: &str, operator: ComparisonOperator, literal: &str) -> Filter {
        Filter::comparison(property, operator, literal)
    }

    /// A hundred partitions of a hundred rows.
    fn square() -> Vec<(String, String)> {
        let names = || (0..100).map(|number| format!("{number:02}"));
        let keys = |partition: String| names().map(move |row_key| (partition.clone(), row_key));
        names().flat_map(keys).collect()
    }

    fn view_of_square() -> (View, Arc<AtomicUsize>) {
        let keys = square();
        let keys: Vec<_> = keys.iter().map(|(p, r)| (p.as_str(), r.as_str())).collect();
        view(&keys)
    }

    fn position(partition_key: &str, row_key: &str) -> Position {
        Position {
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
        }
    }

    #[test]
    fn a_seek_reads_only_its_range() {
        use ComparisonOperator::{Equal, GreaterThanOrEqual, LessThan};
        let (view, read) = view_of_square();
        let pk = |key: &str| compare("PartitionKey", Equal, key);
        let rk = |key: &str| compare("RowKey", Equal, key);
        let prefix = |property| {
            let from = compare(property, GreaterThanOrEqual, "2");
            from.and(compare(property, LessThan, "3"))
        };
        let age = || compare("Age", Equal, "none has it");
        let many = (0..100).map(|n| pk(&format!("{n:02}")).and(rk(&format!("{:02}", 99 - n))));
        for (filter, from, count_max, found, reads) in [
            (pk("50").and(rk("07")), None, 1000, 1, 1),
            (pk("50").and(rk("none")), None, 1000, 0, 0),
            (pk("50"), None, 1000, 100, 100),
            (pk("50").and(prefix("RowKey")), None, 1000, 10, 10),
            (prefix("PartitionKey"), None, 1000, 1000, 1000),
            (pk("50").and(age()), None, 1000, 0, 100),
            (pk("50"), None, 3, 3, 3),
            (pk("50"), Some(position("50", "97")), 1000, 3, 3),
            (pk("50"), Some(position("60", "")), 1000, 0, 0),
            (pk("50").and(pk("51")), None, 1000, 0, 0),
            // Points, far from one another.
            (Filter::Or(many.collect()), None, 1000, 100, 100),
            (pk("10").or(pk("90")), None, 1000, 200, 200),
            (
                pk("10").or(pk("90")).and(rk("1").or(rk("20"))),
                None,
                1000,
                2,
                2,
            ),
            (
                pk("10").or(pk("90")),
                Some(position("50", "")),
                1000,
                100,
                100,
            ),
        ] {
            read.store(0, Ordering::Relaxed);
            let everywhere = KeyBounds::default();
            let keys = find(&view, Some(&filter), from.as_ref(), &everywhere, count_max);
            assert_eq!(keys.len(), found, "{filter:?}");
            assert_eq!(read.load(Ordering::Relaxed), reads, "{filter:?}");
        }
        assert_eq!(
            find(&view, None, None, &KeyBounds::default(), usize::MAX),
            square()
        );
    }

    #[test]
    fn a_row_key_is_searched_in_each_partition() {
        use ComparisonOperator::{Equal, GreaterThan, GreaterThanOrEqual, LessThan};
        let (view, read) = view_of_square();
        let partitions = || compare("PartitionKey", GreaterThan, "49");
        let tens =
            compare("RowKey", GreaterThanOrEqual, "20").and(compare("RowKey", LessThan, "30"));
        for (filter, found, seeks) in [
            (compare("RowKey", Equal, "50"), 100, 200),
            (compare("RowKey", Equal, "none"), 0, 100),
            (compare("RowKey", GreaterThan, "97"), 200, 100),
            (tens, 1000, 200),
            (partitions().and(compare("RowKey", Equal, "50")), 50, 100),
        ] {
            read.store(0, Ordering::Relaxed);
            let keys = find(
                &view,
                Some(&filter),
                None,
                &KeyBounds::default(),
                usize::MAX,
            );
            assert_eq!(keys.len(), found, "{filter:?}");
            // The last number is for the rows at which slices begin.
            let reads_max = found + seeks * PASSED_MAX + 50;
            let reads = read.load(Ordering::Relaxed);
            assert!(
                reads <= reads_max,
                "{reads} of at most {reads_max}: {filter:?}"
            );
        }
    }

    #[test]
    fn keys_outside_of_the_bounds_are_not_read() {
        let (view, read) = view_of_square();
        let last = |partition_key: &str, row_key: Option<&str>| LastKey {
            partition_key: partition_key.to_owned(),
            row_key: row_key.map(str::to_owned),
        };
        for (first, last, found) in [
            (Some(position("50", "10")), Some(last("50", Some("19"))), 10),
            (Some(position("50", "")), Some(last("51", None)), 200),
            (Some(position("99", "90")), None, 10),
            (None, Some(last("00", Some("04"))), 5),
            (Some(position("60", "")), Some(last("50", None)), 0),
        ] {
            read.store(0, Ordering::Relaxed);
            let within = KeyBounds { first, last };
            assert_eq!(find(&view, None, None, &within, usize::MAX).len(), found);
            assert_eq!(read.load(Ordering::Relaxed), found, "{within:?}");
        }
    }

    #[test]
    fn a_slice_ends_when_its_budget_is_spent() {
        let (view, read) = view_of_square();
        let slices = |filter: &Filter| {
            let query = Query {
                table: TABLE,
                filter: Some(filter),
                from: None,
                within: &KeyBounds::default(),
            };
            let mut scan = Scan::new(&query);
            let mut slices = 1;
            loop {
                let keep_on = |_: &Entity<'_>| Ok(ControlFlow::Continue(()));
                match scan
                    .slice(&view, &mut ScanBudget::slice(), keep_on)
                    .unwrap()
                {
                    SliceEnd::Paused => slices += 1,
                    _ => return slices,
                }
            }
        };
        let term = || compare("Age", ComparisonOperator::Equal, "none has it");
        let few = slices(&term());
        assert!((2..10).contains(&few), "{few}");
        // A filter makes each entity cost more, so that a slice has fewer of them.
        read.store(0, Ordering::Relaxed);
        let many = slices(&Filter::Or((0..3000).map(|_| term()).collect()));
        assert!(many > 100 * few, "{many}");
        // Where a slice ends, an entity is read once more.
        assert_eq!(read.load(Ordering::Relaxed), 10_000 + many - 1);
    }

    #[test]
    fn a_slice_without_matches_ends_too() {
        let (view, read) = view_of_square();
        let points = (0..900).map(|n| {
            let partition = compare("PartitionKey", ComparisonOperator::Equal, &format!("{n}x"));
            partition.and(compare("RowKey", ComparisonOperator::Equal, "none"))
        });
        let filter = Filter::Or(points.collect());
        let query = Query {
            table: TABLE,
            filter: Some(&filter),
            from: None,
            within: &KeyBounds::default(),
        };
        let mut scan = Scan::new(&query);
        let mut slices = 1;
        let mut last = None;
        loop {
            let find = |_: &Entity<'_>| panic!("there is nothing");
            match scan.slice(&view, &mut ScanBudget::slice(), find).unwrap() {
                SliceEnd::Paused => slices += 1,
                _ => break,
            }
            let next = scan.position().unwrap().unwrap();
            let key = (next.partition_key, next.row_key);
            assert!(last.as_ref() < Some(&key), "{last:?} and then {key:?}");
            last = Some(key);
        }
        assert!(slices > 1, "{slices}");
        assert_eq!(read.load(Ordering::Relaxed), 0);
    }

    /// Keys around the borders of both encodings, and literals that no key can be.
    const KEYS: [&str; 8] = ["", "a", "a ", "ab", "b", "\u{FFFF}", "😀", "\u{A0}"];
    const LITERALS: [&str; 10] = [
        "",
        "a",
        "a ",
        "a\0",
        "a\u{1}",
        "ab",
        "b",
        "\u{E000}",
        "😀",
        "\u{10FFFF}",
    ];

    fn filter() -> impl Strategy<Value = Filter> {
        let operator = prop::sample::select(vec![
            ComparisonOperator::Equal,
            ComparisonOperator::GreaterThan,
            ComparisonOperator::GreaterThanOrEqual,
            ComparisonOperator::LessThan,
            ComparisonOperator::LessThanOrEqual,
            ComparisonOperator::NotEqual,
        ]);
        let property = prop::sample::select(vec!["PartitionKey", "RowKey"]);
        let literal = prop_oneof![
            9 => prop::sample::select(LITERALS.to_vec()).prop_map(tablesdk_protocol::Value::from),
            1 => Just(tablesdk_protocol::Value::from(5)),
        ];
        let comparison = (property, operator, literal).prop_map(|(property, operator, literal)| {
            Filter::comparison(property, operator, literal)
        });
        let leaf = prop_oneof![9 => comparison, 1 => any::<bool>().prop_map(Filter::Constant)];
        leaf.prop_recursive(4, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::And),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::Or),
                inner.prop_map(|filter| !filter),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_ranges_contain_all_matches(
            filter in filter(),
            from in prop::option::of((0..KEYS.len(), 0..KEYS.len())),
            first in prop::option::of((0..KEYS.len(), 0..KEYS.len())),
            last in prop::option::of((0..KEYS.len(), prop::option::of(0..KEYS.len()))),
        ) {
            let keys: Vec<(&str, &str)> =
                KEYS.iter().flat_map(|p| KEYS.iter().map(move |r| (*p, *r))).collect();
            let (view, _) = view(&keys);
            let from = from.map(|(p, r)| (KEYS[p], KEYS[r]));
            let position = from.map(|(p, r)| position(p, r));
            let first = first.map(|(p, r)| (KEYS[p], KEYS[r]));
            let last = last.map(|(p, r)| (KEYS[p], r.map(|r| KEYS[r])));
            let within = KeyBounds {
                first: first.map(|(p, r)| self::position(p, r)),
                last: last.map(|(p, r)| LastKey { partition_key: p.to_owned(), row_key: r.map(str::to_owned) }),
            };
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            let mut compiled = CompiledFilter::new(&[&filter]);
            let record = Properties::NONE.record(Timestamp::UNIX_EPOCH);
            let mut expected: Vec<_> = keys
                .into_iter()
                .filter(|(p, r)| from.is_none_or(|(q, s)| (units(p), units(r)) >= (units(q), units(s))))
                .filter(|(p, r)| first.is_none_or(|(q, s)| (units(p), units(r)) >= (units(q), units(s))))
                .filter(|(p, r)| last.is_none_or(|(q, s)| {
                    units(p) < units(q) || p == &q && s.is_none_or(|s| units(r) <= units(s))
                }))
                .filter(|(p, r)| {
                    let key = EntityKey::new(*p, *r).unwrap();
                    let key = key_codec::entity_key(TABLE, &key);
                    let holds = compiled.holds(EntityBytes { key: &key, record: &record });
                    holds.unwrap().0
                })
                .map(|(p, r)| (p.to_owned(), r.to_owned()))
                .collect();
            expected.sort_by_key(|(p, r)| (units(p), units(r)));
            let query = Query {
                table: TABLE,
                filter: Some(&filter),
                from: position.as_ref(),
                within: &within,
            };
            for budget in [ScanBudget::slice, ScanBudget::least] {
                prop_assert_eq!(&find_in_slices(&view, &query, usize::MAX, budget), &expected);
            }
        }
    }
}
