//! `merged`: several partitions as one list in the order of row keys.
//!
//! Each part keeps some items that were read ahead. The smallest one is next as soon as each part
//! has one or is at its end. A page token is the key of the last item: the service finds what
//! follows by a range of row keys, so a token contains one position and not one for each part.

use std::collections::{BTreeMap, VecDeque};
use std::convert::identity;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::{KeyKind, PartitionKey, RowKey};

use super::conditions::Condition;
use super::paged::PagedQuery;
use super::parallel::{ITEMS_AHEAD, ParallelQuery};
use super::request::OPERATION;
use crate::action::query_entities::QueryEntities;
use crate::action::refusal::refused;
use crate::entity::TableEntity;
use crate::error::Error;
use crate::filter::AccessClass;
use crate::query::{EntityStream, Keyed, Page, PageToken, Selection, fingerprint};

/// The order of a [`ParallelQuery`] by row key. See [`merged`](ParallelQuery::merged).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Merged;

impl<E: TableEntity, S: Selection<E>> ParallelQuery<E, S> {
    /// Yields the items of all [`partitions`](crate::action::QueryEntities::partitions) in the
    /// order of their row keys; those of one row key in the order of their partition keys. So a
    /// program reads a log in order that [`Shard`](crate::key::Shard) has spread over partitions.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # let table = service.table("Readings");
    /// # table.create_table().await?;
    /// use tablesdk::TableEntity;
    /// use tablesdk::key::Shard;
    ///
    /// #[derive(TableEntity)]
    /// #[table(partition_key = "{shard}_{hour}", row_key = "{minute:02}_{sensor}")]
    /// struct Reading {
    ///     shard: Shard<16>,
    ///     hour: String,
    ///     minute: u32,
    ///     sensor: String,
    ///     celsius: f64,
    /// }
    ///
    /// let hour = "2024-03-15T10";
    /// for (minute, sensor) in [(0, "roof"), (0, "cellar"), (1, "garden"), (2, "roof"), (2, "cellar")] {
    ///     let reading = Reading { hour: hour.into(), shard: Shard::of(sensor), minute, sensor: sensor.into(), celsius: 18.5 };
    ///     table.insert(&reading).await?;
    /// }
    /// let query = || {
    ///     let partitions = Shard::all().map(|shard| Reading::partition(shard, hour));
    ///     table.query::<Reading>().partitions(partitions).merged().take(3)
    /// };
    /// let page = query().page(None).await?;
    /// assert_eq!((page.items[0].minute, page.items[2].minute), (0, 1));
    /// let page = query().page(page.next).await?;
    /// assert_eq!((page.items[0].minute, page.items[1].minute), (2, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each partition is read by requests of its own, so a page of a few items takes at least one
    /// request for each partition. [`parallel`](Self::parallel) of them are in flight at a time. In
    /// memory are up to 24,000 items that were read ahead, or two of each partition, if these are
    /// more. With [`take`](Self::take), the requests ask for about twice the share of each
    /// partition.
    ///
    /// The list is not a snapshot: an entity that is inserted meanwhile is in it if it is after the
    /// items that were read.
    ///
    /// It is not an option for [`row_ranges`](crate::action::QueryEntities::row_ranges) and
    /// [`partition_ranges`](crate::action::QueryEntities::partition_ranges), and a partition must
    /// not be given twice: both are errors of kind [`Input`](crate::ErrorKind::Input). An order by
    /// row key and one [by partitions](Self::in_order) exclude each other:
    ///
    /// ```compile_fail,E0599
    #[doc = include_str!("../../docs/employees.md")]
    /// table.query::<Employee>().partitions(["Sales", "Legal"]).merged().in_order().collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn merged(self) -> ParallelQuery<E, S, Merged> {
        self.ordered()
    }
}

impl<E: TableEntity, S: Selection<E>> ParallelQuery<E, S, Merged> {
    /// The items as a stream. For an entity that cannot be read, the stream yields an error in its
    /// place, and continues. Any other error ends the stream.
    pub fn stream(self) -> EntityStream<S::Item> {
        let reads_ahead = self.query.pages.prefetch;
        let mut merge = match self.merge(None) {
            Ok((merge, _)) => merge,
            Err(error) => return EntityStream::failed(error),
        };
        let items = async_stream::try_stream! {
            while let Some((_, item)) = merge.next().await? {
                yield item;
            }
        };
        // An item may be the error of one entity.
        let items = EntityStream::first(None, items.map(|item| item.and_then(identity)));
        if reads_ahead {
            items.read_ahead(ITEMS_AHEAD)
        } else {
            items
        }
    }

    /// All items at once.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::collect`](crate::action::QueryEntities::collect).
    pub async fn collect(self) -> Result<Vec<S::Item>, Error> {
        self.stream().try_collect().await
    }

    /// Reads one page: exactly [`take`](Self::take) items, if there are as many, or 1,000 without
    /// that option. The page begins after the item before the token, or at the start without one.
    ///
    /// A token contains the keys of the last item in readable form.
    ///
    /// # Errors
    ///
    /// As [`QueryEntities::page`](crate::action::QueryEntities::page). A token is one of the table,
    /// filter, projection and partitions with which the page was read: with other partitions, such
    /// as those of another number of shards, it is an error of kind
    /// [`Input`](crate::ErrorKind::Input).
    pub async fn page(
        self,
        token: impl Into<Option<PageToken>> + Send,
    ) -> Result<Page<S::Item>, Error> {
        let token = token.into();
        let pipeline = self.query.table.pipeline.clone();
        let take = self.query.pages.take.unwrap_or(PAGE_ITEMS_MAX);
        if take == 0 {
            let error = refused(OPERATION, "a page of no items leads nowhere");
            return Err(pipeline.locate(error));
        }
        if token.is_some() {
            self.query.load().await?;
        }
        let (mut merge, fingerprint) = self.take(take).merge(token)?;
        let mut items = Vec::new();
        let mut last = None;
        while let Some((position, item)) = merge.next().await? {
            last = Some(position);
            items.push(item);
        }
        let last = last.filter(|_| !merge.is_at_end());
        let next = last.map(|(row_key, part)| merge.token(fingerprint, &row_key, part));
        let items = items.into_iter();
        let items = items.map(|item| item.map_err(|error| error.with_next_page(next.clone())));
        let items = items.collect::<Result<_, _>>()?;
        Ok(Page { items, next })
    }

    /// As [`page`](Self::page), with the token as a string: see
    /// [`QueryEntities::page_after`](crate::action::QueryEntities::page_after).
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the string
    /// is not a page token.
    pub async fn page_after(self, token: Option<&str>) -> Result<Page<S::Item>, Error> {
        let token = PageToken::optional(token).map_err(|error| {
            let error = refused(OPERATION, error);
            self.query.table.pipeline.locate(error)
        })?;
        self.page(token).await
    }

    /// The read, and what its tokens are bound to.
    fn merge(self, token: Option<PageToken>) -> Result<(Merge<E, S>, u64), Error> {
        let pipeline = self.query.table.pipeline.clone();
        let merge = self.begin(token);
        merge.map_err(|error| pipeline.locate(error))
    }

    fn begin(self, token: Option<PageToken>) -> Result<(Merge<E, S>, u64), Error> {
        let refused = |problem: &str| refused(OPERATION, problem);
        self.check_parallel()?;
        if self.in_order {
            return Err(refused(
                "`in_order` and `merged` are two orders: remove one",
            ));
        }
        let mut partitions = BTreeMap::new();
        for tree in self.parts {
            let tree = tree.map_err(|error| error.with_operation(OPERATION))?;
            let key = AccessClass::partition(Some(&tree)).map(PartitionKey::new);
            let Some(Ok(key)) = key else {
                return Err(refused("`merged` is for `partitions`, and not for ranges"));
            };
            if let Some(Ok(tree)) = partitions.insert(key, Ok(tree)) {
                let problem =
                    format!("`merged` reads each partition once, and {tree} is given twice");
                return Err(refused(&problem));
            }
        }
        let pages = self.query.pages;
        let (keys, trees): (Vec<_>, Vec<_>) = partitions.into_iter().unzip();
        let parts = self.query.map_selection(Keyed::new).divided(trees);
        let parts: Vec<_> = parts.collect();
        let prints = parts.iter().map(QueryEntities::fingerprints);
        let prints: Vec<Vec<u64>> = prints.collect::<Result<_, Error>>()?;
        // Each part has one for each key.
        let keyed = prints.iter().map(Vec::len).min().unwrap_or(1);
        let prints: Vec<u64> = (0..keyed)
            .map(|key| {
                let of_key = prints.iter().filter_map(|prints| prints.get(key));
                let of_key: Vec<_> = of_key.map(u64::to_string).collect();
                fingerprint(["merged"].into_iter().chain(of_key.iter().map(|it| &**it)))
            })
            .collect();
        let after = token.map(|token| token.into_continuation_of(&prints));
        let after = after
            .transpose()
            .map_err(|error| refused(&error.to_string()))?;
        let parts = keys.into_iter().zip(parts).map(|(key, part)| {
            let part = match &after {
                Some(after) => part.and(Condition::Rows, rows_after(after, &key)),
                None => part,
            };
            let (query, _) = part.into_paged()?;
            Ok(Part {
                key,
                query,
                items: VecDeque::new(),
                last: None,
                rest: Rest::Page(None),
                is_waiting: true,
            })
        });
        let merge = Merge {
            parts: parts.collect::<Result<_, Error>>()?,
            heads: BTreeMap::new(),
            parallel: self.parallel,
            left: pages.take,
            page_size: pages.page_size.unwrap_or(PAGE_ITEMS_MAX),
        };
        let fingerprint = prints.first().copied().unwrap_or_default();
        Ok((merge, fingerprint))
    }
}

/// The condition for the rows of that partition that follow a position.
fn rows_after(after: &EntityContinuation, partition: &PartitionKey) -> Result<Tree, Error> {
    let last = PartitionKey::new(after.next_partition_key.as_str()).map_err(Error::input)?;
    let row_key = after.next_row_key.clone().unwrap_or_default();
    let operator = if *partition > last {
        ComparisonOperator::GreaterThanOrEqual
    } else {
        ComparisonOperator::GreaterThan
    };
    Ok(Tree::comparison(
        KeyKind::RowKey.property(),
        operator,
        row_key,
    ))
}

/// A read of several partitions in the order of row keys.
struct Merge<E, S: Selection<E>> {
    /// In the order of the partition keys.
    parts: Vec<Part<E, S>>,
    /// The first item of each part that has one.
    heads: BTreeMap<Position, Result<S::Item, Error>>,
    parallel: usize,
    left: Option<usize>,
    page_size: usize,
}

/// A row key, and the number of the part.
type Position = (RowKey, usize);

/// One partition.
struct Part<E, S: Selection<E>> {
    key: PartitionKey,
    query: Arc<PagedQuery<Arc<Keyed<S>>>>,
    /// The items after the head.
    items: VecDeque<(RowKey, Result<S::Item, Error>)>,
    /// The row key of the last item that was read.
    last: Option<RowKey>,
    rest: Rest,
    /// It has no head, and may have more items.
    is_waiting: bool,
}

/// The items that were not read yet.
enum Rest {
    /// They begin at the continuation, or at the start.
    Page(Option<EntityContinuation>),
    End,
}

impl<E: TableEntity, S: Selection<E>> Merge<E, S> {
    /// The next item; an `Err` in it is that of an entity that cannot be read.
    async fn next(&mut self) -> Result<Option<(Position, Result<S::Item, Error>)>, Error> {
        if self.left == Some(0) {
            return Ok(None);
        }
        while self.parts.iter().any(|part| part.is_waiting) {
            // Seldom, and large.
            Box::pin(self.fetch()).await?;
        }
        let next = self.heads.pop_first();
        if let Some(((_, part), _)) = &next {
            self.left = self.left.map(|left| left - 1);
            self.advance(*part);
        }
        Ok(next)
    }

    fn is_at_end(&self) -> bool {
        self.heads.is_empty() && !self.parts.iter().any(|part| part.is_waiting)
    }

    /// Makes the next item of a part its head.
    fn advance(&mut self, number: usize) {
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        match part.items.pop_front() {
            Some((row_key, item)) => {
                part.is_waiting = false;
                self.heads.insert((row_key, number), item);
            }
            None => part.is_waiting = matches!(part.rest, Rest::Page(_)),
        }
    }

    /// Reads a page of each part that has no item left. Without a limit, also of those that will
    /// have none soon: with even parts, these are all.
    async fn fetch(&mut self) -> Result<(), Error> {
        let share = (AHEAD_MAX / self.parts.len()).clamp(1, self.page_size);
        let (left, count) = (self.left, self.parts.len());
        let requests = self.parts.iter().enumerate().filter_map(|(number, part)| {
            let Rest::Page(continuation) = &part.rest else {
                return None;
            };
            let is_soon = left.is_none() && part.items.len() <= share / 2;
            let top = match (left, continuation) {
                // The first items of all may be in one part, but seldom are.
                (Some(left), None) => share.min(left.div_ceil(count).saturating_mul(2)),
                (Some(left), Some(_)) => share.min(left),
                (None, _) => share,
            };
            let (query, continuation) = (Arc::clone(&part.query), continuation.clone());
            (part.is_waiting || is_soon).then_some(async move {
                let page = query.page::<E>(Some(top), continuation).await;
                page.map(|page| (number, page))
            })
        });
        let requests: Vec<_> = requests.collect();
        let pages = stream::iter(requests).buffer_unordered(self.parallel);
        for (number, (items, next)) in pages.try_collect::<Vec<_>>().await? {
            let Some(part) = self.parts.get_mut(number) else {
                continue;
            };
            part.add(items)?;
            part.rest = next.map_or(Rest::End, |next| Rest::Page(Some(next)));
            if matches!(part.rest, Rest::End) {
                part.query.end();
            }
            if part.is_waiting {
                self.advance(number);
            }
        }
        Ok(())
    }

    /// The token of the items after that position.
    fn token(&self, fingerprint: u64, row_key: &RowKey, part: usize) -> PageToken {
        let partition = self.parts.get(part).map(|part| part.key.as_str());
        let continuation = EntityContinuation {
            next_partition_key: partition.unwrap_or_default().to_owned(),
            next_row_key: Some(row_key.as_str().to_owned()),
        };
        PageToken::new(fingerprint, continuation)
    }
}

impl<E, S: Selection<E>> Part<E, S> {
    /// Adds the items of a page. Each needs a row key, also one that cannot be read, and the order
    /// that the merge relies on.
    fn add(&mut self, items: Vec<Result<(RowKey, S::Item), Error>>) -> Result<(), Error> {
        for item in items {
            let (row_key, item) = match item {
                Ok((row_key, item)) => (row_key, Ok(item)),
                Err(error) => match error.key() {
                    Some(key) => (key.row_key().clone(), Err(error)),
                    None => return Err(error),
                },
            };
            let before = self.items.back().map(|(row_key, _)| row_key);
            let before = before.or(self.last.as_ref());
            if before.is_some_and(|before| *before >= row_key) {
                return Err(self.query.fail(Error::response(OrderError)));
            }
            self.items.push_back((row_key, item));
        }
        if let Some((row_key, _)) = self.items.back() {
            self.last = Some(row_key.clone());
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the row keys of a partition do not ascend, so the partitions cannot be merged")]
struct OrderError;

/// How many items the first pages of all parts have together.
const AHEAD_MAX: usize = 16_000;
