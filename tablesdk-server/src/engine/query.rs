//! The walk of a query over its range of keys.
//!
//! The range comes from the filter and from the continuation; whether an entity in it is wanted, the filter decides on
//! each. Knows no HTTP and no JSON; where a page ends is the visitor's business.

use std::ops::ControlFlow;

use tablesdk_protocol::filter::Filter;

use super::key_range::KeyRange;
use super::layout::{self, TableId};
use super::matches;
use super::view::{Entity, View};
use crate::storage::StorageError;

/// Which entities of a table, from where on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    /// The table.
    pub(crate) table: TableId,
    /// What must hold for an entity.
    pub(crate) filter: Option<&'a Filter>,
    /// Where to start.
    pub(crate) from: Option<&'a Position>,
    /// What lies outside is not there.
    pub(crate) within: &'a Span,
}

/// The keys from a first to a last one, both included; an absent end is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where it starts.
    pub(crate) first: Option<Position>,
    /// Where it ends.
    pub(crate) last: Option<SpanEnd>,
}

/// The end of a [`Span`]: a whole partition, or one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpanEnd {
    /// The partition key.
    pub(crate) partition_key: String,
    /// The row key; `None` for the end of the partition.
    pub(crate) row_key: Option<String>,
}

/// A place in the order of keys, whether or not an entity is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The partition key.
    pub(crate) partition_key: String,
    /// The row key; empty for the start of the partition.
    pub(crate) row_key: String,
}

impl Query<'_> {
    /// Shows the entities to the visitor in the order of their keys, until it breaks.
    pub(crate) fn run(
        &self,
        view: &View,
        mut visit: impl FnMut(&Entity<'_>) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        let Some((start, end)) = self.range() else {
            return Ok(());
        };
        for row in view.rows(&start, &end) {
            let row = row?;
            let entity = row.read()?;
            let wanted = self
                .filter
                .is_none_or(|filter| matches(filter, &|name: &str| entity.property(name)));
            if wanted && visit(&entity).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The range of bytes to read; `None` when no key can satisfy the filter.
    fn range(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let keys = self.filter.map_or(Some(KeyRange::ALL), KeyRange::of)?;
        let (mut start, mut end) = keys.to_bytes(self.table);
        for from in self.from.iter().copied().chain(&self.within.first) {
            start = start.max(self.key(&from.partition_key, &from.row_key));
        }
        if let Some(last) = &self.within.last {
            let partition_key = &last.partition_key;
            end = end.min(match &last.row_key {
                Some(row_key) => {
                    let mut key = self.key(partition_key, row_key);
                    // Nothing lies between a key and the same key with this byte at its end.
                    key.push(0);
                    key
                }
                None => layout::partition_end(self.table, partition_key),
            });
        }
        Some((start, end))
    }

    fn key(&self, partition_key: &str, row_key: &str) -> Vec<u8> {
        let mut key = layout::partition_start(self.table, partition_key);
        layout::push_text(&mut key, row_key);
        key
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use proptest::prelude::*;
    use tablesdk_protocol::filter::ComparisonOperator;
    use tablesdk_protocol::{EntityKey, Timestamp};

    use super::*;
    use crate::engine::record::Record;
    use crate::storage::{MemoryStorage, Records, Snapshot, Storage, WriteBatch};

    /// Counts the records that are read.
    #[derive(Debug)]
    struct Counting(Box<dyn Snapshot>, Arc<AtomicUsize>);

    impl Snapshot for Counting {
        fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
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
        let record = Record::encode(Timestamp::UNIX_EPOCH, std::iter::empty());
        for (table, (partition_key, row_key)) in [6, 7, 8]
            .iter()
            .flat_map(|id| keys.iter().map(move |key| (TableId(*id), key)))
        {
            let key = EntityKey::new(*partition_key, *row_key).unwrap();
            batch.put(layout::entity_key(table, &key), record.clone());
        }
        storage.commit(batch).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        (
            View::new(Box::new(Counting(storage.snapshot(), Arc::clone(&count)))),
            count,
        )
    }

    /// The keys found, up to a number of them.
    fn find(
        view: &View,
        filter: Option<&Filter>,
        from: Option<&Position>,
        within: &Span,
        count_max: usize,
    ) -> Vec<(String, String)> {
        let table = TABLE;
        let mut found = Vec::new();
        let query = Query {
            table,
            filter,
            from,
            within,
        };
        query
            .run(view, |entity| {
                let head = entity.head();
                found.push((head.partition_key.to_owned(), head.row_key.to_owned()));
                if found.len() == count_max {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
        found
    }

    fn compare(property: &str, operator: ComparisonOperator, literal: &str) -> Filter {
        Filter::comparison(property, operator, literal)
    }

    #[test]
    fn a_seek_reads_the_rows_of_its_range_alone() {
        use ComparisonOperator::{Equal, GreaterThanOrEqual, LessThan};
        let names: Vec<String> = (0..100).map(|number| format!("{number:02}")).collect();
        let keys: Vec<(&str, &str)> = names
            .iter()
            .flat_map(|partition| names.iter().map(|row| (partition.as_str(), row.as_str())))
            .collect();
        let (view, read) = view(&keys);
        let partition = || compare("PartitionKey", Equal, "50");
        let tens =
            compare("RowKey", GreaterThanOrEqual, "20").and(compare("RowKey", LessThan, "30"));
        let point = partition().and(compare("RowKey", Equal, "07"));
        let missing = partition().and(compare("Age", Equal, "none has it"));
        let from = Position {
            partition_key: "50".to_owned(),
            row_key: "97".to_owned(),
        };
        let far = Position {
            partition_key: "60".to_owned(),
            row_key: String::new(),
        };
        for (filter, from, count_max, found, reads) in [
            (&point, None, 1000, 1, 1),
            (&partition(), None, 1000, 100, 100),
            (&partition().and(tens), None, 1000, 10, 10),
            (&missing, None, 1000, 0, 100),
            (&partition(), None, 3, 3, 3),
            (&partition(), Some(&from), 1000, 3, 3),
            (&partition(), Some(&far), 1000, 0, 0),
            (
                &partition().and(compare("PartitionKey", Equal, "51")),
                None,
                1000,
                0,
                0,
            ),
        ] {
            read.store(0, Ordering::Relaxed);
            assert_eq!(
                find(&view, Some(filter), from, &Span::default(), count_max).len(),
                found,
                "{filter:?}"
            );
            assert_eq!(read.load(Ordering::Relaxed), reads, "{filter:?}");
        }
        assert_eq!(
            find(&view, None, None, &Span::default(), usize::MAX).len(),
            10_000
        );
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
        fn the_range_leaves_out_nothing_that_the_filter_wants(
            filter in filter(),
            from in prop::option::of((0..KEYS.len(), 0..KEYS.len())),
            first in prop::option::of((0..KEYS.len(), 0..KEYS.len())),
            last in prop::option::of((0..KEYS.len(), prop::option::of(0..KEYS.len()))),
        ) {
            let keys: Vec<(&str, &str)> =
                KEYS.iter().flat_map(|p| KEYS.iter().map(move |r| (*p, *r))).collect();
            let (view, _) = view(&keys);
            let from = from.map(|(p, r)| (KEYS[p], KEYS[r]));
            let position = from.map(|(p, r)| Position { partition_key: p.to_owned(), row_key: r.to_owned() });
            let first = first.map(|(p, r)| (KEYS[p], KEYS[r]));
            let last = last.map(|(p, r)| (KEYS[p], r.map(|r| KEYS[r])));
            let within = Span {
                first: first.map(|(p, r)| Position { partition_key: p.to_owned(), row_key: r.to_owned() }),
                last: last.map(|(p, r)| SpanEnd { partition_key: p.to_owned(), row_key: r.map(str::to_owned) }),
            };
            let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
            let mut expected: Vec<_> = keys
                .into_iter()
                .filter(|(p, r)| from.is_none_or(|(q, s)| (units(p), units(r)) >= (units(q), units(s))))
                .filter(|(p, r)| first.is_none_or(|(q, s)| (units(p), units(r)) >= (units(q), units(s))))
                .filter(|(p, r)| last.is_none_or(|(q, s)| {
                    units(p) < units(q) || p == &q && s.is_none_or(|s| units(r) <= units(s))
                }))
                .filter(|(p, r)| matches(&filter, &|name: &str| match name {
                    "PartitionKey" => Some(tablesdk_protocol::ValueRef::String((*p).into())),
                    _ => Some(tablesdk_protocol::ValueRef::String((*r).into())),
                }))
                .map(|(p, r)| (p.to_owned(), r.to_owned()))
                .collect();
            expected.sort_by_key(|(p, r)| (units(p), units(r)));
            prop_assert_eq!(find(&view, Some(&filter), position.as_ref(), &within, usize::MAX), expected);
        }
    }
}
