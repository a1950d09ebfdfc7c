//! `partitions`, `partition_ranges` and `row_ranges`: a query that is read in several parts at a
//! time.

use std::collections::VecDeque;
use std::future::ready;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::{KeyKind, PartitionKey, RowKey};

use super::request::OPERATION;
use crate::action::QueryEntities;
use crate::action::query_entities::partition_is;
use crate::action::refusal::refused;
use crate::entity::key::{PartitionOf, RowRange};
use crate::entity::{DynamicEntity, Stored, TableEntity};
use crate::error::{ClosureError, Error};
use crate::query::{EntityStream, Explanation, IntoFilter, Resolve, Selection, Values, Whole};

/// A query that is read in several parts at a time, in the order `O` of its items. See
/// [`QueryEntities::partitions`], [`QueryEntities::partition_ranges`] and
/// [`QueryEntities::row_ranges`].
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
pub struct ParallelQuery<E, S = Whole<E>, O = ()> {
    pub(crate) query: QueryEntities<E, S>,
    /// The condition of each part.
    pub(crate) parts: Vec<Result<Tree, Error>>,
    pub(crate) parallel: usize,
    pub(crate) in_order: bool,
    order: PhantomData<fn() -> O>,
}

/// Ways to divide a query.
impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// Reads these partitions, several at a time.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # for (department, id) in [("Sales", "1"), ("Marketing", "2"), ("Legal", "3")] {
    /// #     table.insert(&Employee::new(department, id, "Ada")).await?;
    /// # }
    /// let departments = ["Sales", "Marketing"];
    /// let query = table.query::<Employee>().select(|e| e.id);
    /// let ids = query.partitions(departments).parallel(2).in_order().collect().await?;
    /// assert_eq!(ids, ["1", "2"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn partitions<P: PartitionOf<E>>(
        self,
        partitions: impl IntoIterator<Item = P>,
    ) -> ParallelQuery<E, S> {
        ParallelQuery::new(self, partitions.into_iter().map(partition_is).collect())
    }

    /// Reads the whole table as several ranges at a time: the partitions below the first boundary,
    /// from the first to the second, and so on. Boundaries must ascend, and need not be keys of
    /// entities.
    ///
    /// Each of these reads is a [scan](crate::query::AccessClass::Scan).
    pub fn partition_ranges<B: Into<String>>(
        self,
        boundaries: impl IntoIterator<Item = B>,
    ) -> ParallelQuery<E, S> {
        ParallelQuery::new(self, ranges(KeyKind::PartitionKey, boundaries))
    }

    /// Reads a partition as several ranges at a time: the entities with row keys below the first
    /// boundary, from the first to the second, and so on. Boundaries must ascend, and need not be
    /// keys of entities.
    pub fn row_ranges<B: Into<String>>(
        self,
        boundaries: impl IntoIterator<Item = B>,
    ) -> ParallelQuery<E, S> {
        ParallelQuery::new(self, ranges(KeyKind::RowKey, boundaries))
    }
}

impl<E: TableEntity, S: Selection<E>> ParallelQuery<E, S> {
    const fn new(query: QueryEntities<E, S>, parts: Vec<Result<Tree, Error>>) -> Self {
        Self {
            query,
            parts,
            parallel: PARALLEL,
            in_order: false,
            order: PhantomData,
        }
    }

    /// Yields the items part by part, in the order of the parts. Without this option, items come as
    /// they arrive. The items of one part are in order in any case.
    pub const fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// The items as a stream. [`take`](QueryEntities::take) counts the items of all parts together.
    /// Each part is read in a task of its own, up to 1,000 items and a page ahead of the consumer,
    /// which needs a tokio runtime. For an entity that cannot be read, the stream yields an error,
    /// and continues, as that of [`QueryEntities::stream`]. Any other error ends the stream.
    pub fn stream(self) -> EntityStream<S::Item> {
        if let Err(error) = self.check_parallel() {
            return EntityStream::failed(self.query.table.pipeline.locate(error));
        }
        let Self {
            query,
            parts,
            parallel,
            in_order,
            ..
        } = self;
        let take = query.pages.take;
        let parts = query.divided(parts);
        if in_order {
            EntityStream::first(take, one_after_another(parts, parallel))
        } else {
            // Each in a task of its own: a request must not wait for the consumer of the items of
            // other parts.
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

/// The options of a query are the same after it is divided as before.
impl<E: TableEntity, S: Selection<E>, O> ParallelQuery<E, S, O> {
    pub(crate) fn map<T>(
        self,
        map: impl FnOnce(QueryEntities<E, S>) -> QueryEntities<E, T>,
    ) -> ParallelQuery<E, T, O> {
        ParallelQuery {
            query: map(self.query),
            parts: self.parts,
            parallel: self.parallel,
            in_order: self.in_order,
            order: PhantomData,
        }
    }

    /// The same, in another order.
    pub(crate) fn ordered<P>(self) -> ParallelQuery<E, S, P> {
        ParallelQuery {
            query: self.query,
            parts: self.parts,
            parallel: self.parallel,
            in_order: self.in_order,
            order: PhantomData,
        }
    }

    pub(crate) fn check_parallel(&self) -> Result<(), Error> {
        if self.parallel == 0 {
            let problem = "nothing can be read with a parallelism of 0";
            return Err(refused(OPERATION, problem));
        }
        Ok(())
    }

    /// Returns the first request of the first part, and the number of requests: at least one for
    /// each part. Nothing is sent.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// let query = table.query::<Employee>().partitions(["Sales", "Legal"]).merged();
    /// assert_eq!(query.explain()?.requests(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::explain`]. A query without parts sends nothing:
    /// [`ErrorKind::Input`](crate::ErrorKind::Input).
    pub fn explain(&self) -> Result<Explanation, Error> {
        if self.parts.is_empty() {
            let error = refused(OPERATION, "a query without parts sends nothing");
            return Err(self.query.table.pipeline.locate(error));
        }
        self.query.explain_parts(&self.parts)
    }

    /// How many parts are read at a time; 8 by default. Must not be 0.
    pub const fn parallel(mut self, parts: usize) -> Self {
        self.parallel = parts;
        self
    }

    /// Counts the items of all parts, as [`QueryEntities::count`].
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `TableNotFound`.
    pub async fn count(self) -> Result<usize, Error> {
        let items = self.ordered::<()>().map(QueryEntities::presence).stream();
        items.try_fold(0, |count, ()| ready(Ok(count + 1))).await
    }

    /// As [`QueryEntities::partition`].
    pub fn partition(self, partition: impl PartitionOf<E>) -> Self {
        self.map(|query| query.partition(partition))
    }

    /// As [`QueryEntities::rows`].
    pub fn rows(self, rows: impl Into<RowRange<E>>) -> Self {
        self.map(|query| query.rows(rows))
    }

    /// As [`QueryEntities::filter`].
    pub fn filter<F: IntoFilter<E>>(self, filter: impl FnOnce(E::Columns) -> F) -> Self {
        self.map(|query| query.filter(filter))
    }

    /// As [`QueryEntities::odata`].
    pub fn odata(self, text: &str) -> Self {
        self.map(|query| query.odata(text))
    }

    /// As [`QueryEntities::take`]: counts the items of all parts together.
    pub fn take(self, count: usize) -> Self {
        self.map(|query| query.take(count))
    }

    /// As [`QueryEntities::page_size`].
    pub fn page_size(self, count: usize) -> Self {
        self.map(|query| query.page_size(count))
    }

    /// As [`QueryEntities::prefetch`].
    pub fn prefetch(self) -> Self {
        self.map(QueryEntities::prefetch)
    }

    /// As [`QueryEntities::skip_unreadable`].
    pub fn skip_unreadable(self, report: impl Fn(Error) + Send + Sync + 'static) -> Self {
        self.map(|query| query.skip_unreadable(report))
    }

    /// As [`QueryEntities::values`].
    pub fn values<T>(self) -> ParallelQuery<E, Values<S>, O>
    where
        S: Selection<E, Item = Stored<T>>,
        T: Send + 'static,
    {
        self.map(QueryEntities::values)
    }
}

impl<E: TableEntity, O> ParallelQuery<E, Whole<E>, O> {
    /// As [`QueryEntities::select`].
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # for (department, id) in [("Sales", "1"), ("Marketing", "2"), ("Legal", "3")] {
    /// #     table.insert(&Employee::new(department, id, "Ada")).await?;
    /// # }
    /// let query = table.query::<Employee>().partitions(["Sales", "Marketing"]);
    /// let ids = query.filter(|e| e.name.eq("Ada")).select(|e| e.id).in_order().collect().await?;
    /// assert_eq!(ids, ["1", "2"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn select<S: Selection<E>>(
        self,
        columns: impl FnOnce(E::Columns) -> S,
    ) -> ParallelQuery<E, S, O> {
        self.map(|query| query.select(columns))
    }

    /// As [`QueryEntities::resolve`].
    pub fn resolve<T, F>(self, resolve: F) -> ParallelQuery<E, Resolve<F>, O>
    where
        T: Send + 'static,
        F: Fn(Stored<DynamicEntity>) -> Result<T, ClosureError> + Send + Sync + 'static,
    {
        self.map(|query| query.resolve(resolve))
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
fn ranges(
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

call_options!(impl[E, S, O] ParallelQuery<E, S, O>, query.table.pipeline);
debug_by_fields!(ParallelQuery<E, S, O> { query, parallel, in_order });

const PARALLEL: usize = 8;
pub(crate) const ITEMS_AHEAD: usize = 1_000;
