//! `partitions`, `partition_ranges` and `row_ranges`: a query that is read in several parts at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::{KeyKind, PartitionKey, RowKey};

use crate::action::QueryEntities;
use crate::entity::TableEntity;
use crate::error::Error;
use crate::query::{EntityStream, Selection, Whole};

/// A query that is read in several parts at a time. See [`QueryEntities::partitions`],
/// [`QueryEntities::partition_ranges`] and [`QueryEntities::row_ranges`].
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::TryStreamExt;
///
/// # for (department, id) in [("Legal", "1"), ("Sales", "2"), ("Sales", "3")] {
/// #     table.insert(&Employee::new(department, id, "Ada")).await?;
/// # }
/// let query = table.query::<Employee>().partitions(["Sales", "Legal"]).parallel(2).in_order();
/// let ids: Vec<String> = query.stream().map_ok(|e| e.id.clone()).try_collect().await?;
/// assert_eq!(ids, ["2", "3", "1"], "department by department");
/// # Ok(())
/// # }
/// ```
#[must_use = "a query does nothing until it is read"]
pub struct ParallelQuery<E, S = Whole<E>> {
    query: QueryEntities<E, Arc<S>>,
    /// The condition of each part.
    parts: Vec<Result<Tree, Error>>,
    parallel: usize,
    in_order: bool,
}

impl<E: TableEntity, S: Selection<E>> ParallelQuery<E, S> {
    pub(in crate::action) const fn new(
        query: QueryEntities<E, Arc<S>>,
        parts: Vec<Result<Tree, Error>>,
    ) -> Self {
        Self {
            query,
            parts,
            parallel: PARALLEL,
            in_order: false,
        }
    }

    /// How many parts are read at a time; 8 by default. Must not be 0.
    pub const fn parallel(mut self, parts: usize) -> Self {
        self.parallel = parts;
        self
    }

    /// Yields the items part by part, in the order of the parts. Without this option, items come as they
    /// arrive. The items of one part are in order in any case.
    pub const fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// The items as a stream. [`take`](QueryEntities::take) counts the items of all parts together. Each part is read in a task
    /// of its own, up to 1,000 items and a page ahead of the consumer, which needs a tokio runtime. The first error ends the
    /// stream; it is one of [`collect`](Self::collect).
    pub fn stream(self) -> EntityStream<S::Item> {
        let Self {
            query,
            parts,
            parallel,
            in_order,
        } = self;
        if parallel == 0 {
            let error = Error::input("nothing can be read with a parallelism of 0");
            return EntityStream::failed(error.with_operation("query entities"));
        }
        let take = query.pages.take;
        let parts = parts
            .into_iter()
            .map(move |part| query.with_condition(part));
        if in_order {
            EntityStream::first(take, one_after_another(parts, parallel))
        } else {
            // Each in a task of its own: a request must not wait for the consumer of the items of other parts.
            let items = parts.map(|part| part.stream().read_ahead(ITEMS_AHEAD));
            let items = stream::iter(items).flatten_unordered(parallel);
            EntityStream::first(take, items)
        }
    }

    /// All items at once.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::collect`].
    pub async fn collect(self) -> Result<Vec<S::Item>, Error> {
        self.stream().try_collect().await
    }
}

/// Reads ahead at some parts while the items of the first of them are consumed.
fn one_after_another<E: TableEntity, S: Selection<E>>(
    mut parts: impl Iterator<Item = QueryEntities<E, Arc<S>>> + Send + 'static,
    parallel: usize,
) -> impl futures_core::Stream<Item = Result<S::Item, Error>> + Send {
    async_stream::stream! {
        let mut begun = VecDeque::new();
        loop {
            while begun.len() < parallel && let Some(part) = parts.next() {
                begun.push_back(part.stream().read_ahead(ITEMS_AHEAD));
            }
            let Some(mut items) = begun.pop_front() else {
                break;
            };
            while let Some(item) = items.next().await {
                yield item;
            }
        }
    }
}

/// The conditions of ranges of a key that meet at the boundaries.
pub(in crate::action) fn ranges(
    part: KeyKind,
    boundaries: impl IntoIterator<Item = impl Into<String>>,
) -> Vec<Result<Tree, Error>> {
    let boundaries: Vec<String> = boundaries.into_iter().map(Into::into).collect();
    if let Err(error) = check(part, &boundaries) {
        return vec![Err(error)];
    }
    let compare = |operator, boundary: &String| {
        Tree::comparison(part.property(), operator, boundary.as_str())
    };
    let from = |boundary| compare(ComparisonOperator::GreaterThanOrEqual, boundary);
    let below = |boundary| compare(ComparisonOperator::LessThan, boundary);
    let (Some(first), Some(last)) = (boundaries.first(), boundaries.last()) else {
        // SERVICE: every key is at least the empty one.
        return vec![Ok(from(&String::new()))];
    };
    let between = boundaries.iter().zip(boundaries.iter().skip(1));
    let between = between.map(|(lower, upper)| Ok(from(lower).and(below(upper))));
    let mut ranges = vec![Ok(below(first))];
    ranges.extend(between);
    ranges.push(Ok(from(last)));
    ranges
}

fn check(part: KeyKind, boundaries: &[String]) -> Result<(), Error> {
    let is_sorted = match part {
        KeyKind::RowKey => {
            let keys: Result<Vec<_>, _> = boundaries.iter().map(RowKey::new).collect();
            keys.map_err(Error::input)?.is_sorted_by(|a, b| a < b)
        }
        KeyKind::PartitionKey => {
            let keys: Result<Vec<_>, _> = boundaries.iter().map(PartitionKey::new).collect();
            keys.map_err(Error::input)?.is_sorted_by(|a, b| a < b)
        }
    };
    if is_sorted {
        Ok(())
    } else {
        Err(Error::input(format!(
            "the boundaries of {part} ranges must ascend, each once"
        )))
    }
}

call_options!(impl[E, S] ParallelQuery<E, S>, query.table.pipeline);
debug_by_fields!(ParallelQuery<E, S> { query, parallel, in_order });

const PARALLEL: usize = 8;
const ITEMS_AHEAD: usize = 1_000;
