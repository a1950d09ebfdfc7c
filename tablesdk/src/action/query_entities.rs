//! `query`: Query Entities.

use std::error::Error as _;
use std::fmt;
use std::future::ready;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tablesdk_protocol::KeyKind;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use super::query::paged::PagedQuery;
use super::query::parallel::ranges;
use super::query::request::{OPERATION, QueryRequest};
use super::{DeleteAll, ParallelQuery, refused};
use crate::entity::key::{IntoPartitionKey, Partition, RowRange};
use crate::entity::{DynamicEntity, Stored, TableEntity};
use crate::error::{ClosureError, Error};
use crate::filter::{AccessClass, Filter, FilterError, without};
use crate::pipeline::Table;
use crate::query::{
    EntityStream, Explanation, Keys, Page, PageToken, Pages, Presence, Resolve, Selection, Whole,
};

/// Reads many entities of type `E`. See [`TableClient::query`](crate::TableClient::query).
///
/// The markers that [`exactly_once`](crate::guide::errors_and_retries#exactly-once) stores for a moment are not returned.
///
/// Conditions add up: each call of [`partition`](Self::partition), [`filter`](Self::filter) and [`odata`](Self::odata)
/// narrows the query further.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # for (id, name) in [("1", "Ada"), ("2", "Grace"), ("3", "Alan")] {
/// #     table.insert(&Employee::new("Sales", id, name)).await?;
/// # }
/// let sales = || table.query::<Employee>().partition("Sales");
///
/// assert_eq!(sales().count().await?, 3);
/// assert_eq!(sales().first().await?.expect("there are some").name, "Ada");
/// assert_eq!(sales().filter(|e| e.name.eq("Grace")).one().await?.expect("there is one").id, "2");
/// assert!(!sales().odata("Name gt 'M'").exists().await?);
///
/// // Two in all, asked for one by one; nothing but their names is sent.
/// let names = sales().select(|e| e.name).take(2).page_size(1).collect().await?;
/// assert_eq!(names, ["Ada", "Grace"]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a query does nothing until it is read"]
pub struct QueryEntities<E, S = Whole<E>> {
    pub(super) table: Table,
    filter: Result<Option<Tree>, Error>,
    selection: S,
    pub(super) pages: Pages,
    entity: PhantomData<fn() -> E>,
}

impl<E: TableEntity> QueryEntities<E> {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            // A query of a struct does not read the other entities of the table.
            filter: Ok(E::SCHEMA.own_rows()),
            selection: Whole::new(),
            pages: Pages::default(),
            entity: PhantomData,
        }
    }

    /// Reads only some columns: one, or a tuple of up to eight. The query then yields their values.
    pub fn select<S: Selection<E>>(
        self,
        columns: impl FnOnce(E::Columns) -> S,
    ) -> QueryEntities<E, S> {
        let selection = columns(E::columns());
        let condition = selection.condition().map_err(Error::input);
        let this = match condition.transpose() {
            Some(condition) => self.and(condition),
            None => self,
        };
        this.map_selection(|_| selection)
    }

    /// Reads only entities of types that `E` knows. For an enum of entities, these are the types of its variants, except the
    /// variant marked `other`. Without this option, an entity of an unknown type is an error, or is read as `other`. Queries of a
    /// struct are always restricted in this way: to its entity type or else to the prefix of its row keys.
    ///
    /// ```
    #[doc = include_str!("../docs/company.md")]
    /// table.insert(&Ship { fleet: "Sales".into(), name: "Erebus".into() }).await?;
    /// assert!(table.query::<CompanyRow>().collect().await.is_err());
    /// assert_eq!(table.query::<CompanyRow>().known_types().collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn known_types(self) -> Self {
        match E::SCHEMA.known_rows() {
            Some(known) if E::SCHEMA.own_rows().is_none() => self.and(Ok(known)),
            _ => self,
        }
    }

    /// Converts each entity with a closure, which gets every property with its exact type: for entities of many types without a
    /// Rust type for each. For a projection, the properties are those of its fields.
    ///
    /// ```
    #[doc = include_str!("../docs/company.md")]
    /// use tablesdk::DynamicEntity;
    ///
    /// let names = table.query::<DynamicEntity>().partition("Sales").resolve(|entity| {
    ///     let name = match entity.properties().read::<String>("EntityType")?.as_str() {
    ///         "Department" => entity.properties().read::<String>("title")?,
    ///         _ => entity.properties().read::<String>("name")?,
    ///     };
    ///     Ok(name)
    /// });
    /// assert_eq!(names.collect().await?, ["Sales and marketing", "Ada"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the closure fails, reading ends with [`ErrorKind::CalledOff`](crate::ErrorKind::CalledOff) and the key of the entity;
    /// [`Error::downcast_ref`] returns the closure's error.
    pub fn resolve<T, F>(self, resolve: F) -> QueryEntities<E, Resolve<F>>
    where
        T: Send + 'static,
        F: Fn(Stored<DynamicEntity>) -> Result<T, ClosureError> + Send + Sync + 'static,
    {
        self.map_selection(|_| Resolve::new(resolve, E::SCHEMA.select()))
    }
}

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// Reads one partition only.
    pub fn partition(self, partition: impl Into<Partition<E>>) -> Self {
        self.and(partition_is(partition))
    }

    /// Reads only entities whose keys are in a range, given by leading parts of the key: `E::rows()` has a method for each part.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # let table = service.table("Reviews");
    /// # table.create_table().await?;
    /// use tablesdk::TableEntity;
    ///
    /// #[derive(TableEntity)]
    /// #[table(partition_key = "{department}", row_key = "{employee:06}_{year:04}")]
    /// struct Review {
    ///     department: String,
    ///     employee: u32,
    ///     year: u16,
    ///     rating: i32,
    /// }
    ///
    /// for (employee, year) in [(17, 2022), (17, 2023), (17, 2024), (170, 2024)] {
    ///     let review = Review { department: "Sales".into(), employee, year, rating: 4 };
    ///     table.insert(&review).await?;
    /// }
    /// let sales = || table.query::<Review>().partition("Sales");
    /// assert_eq!(sales().rows(Review::rows().employee(17)).count().await?, 3);
    /// assert_eq!(sales().rows(Review::rows().employee(17).year(2023..)).count().await?, 2);
    /// assert_eq!(sales().rows(Review::rows().employee(18..=200)).count().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rows(self, rows: impl Into<RowRange<E>>) -> Self {
        let rows = rows.into();
        let this = match E::SCHEMA.own_row_range() {
            Some((beginning, own)) if rows.begins_with(beginning) => self.but_for(&own),
            _ => self,
        };
        match rows.into_tree() {
            Ok(None) => this,
            Ok(Some(tree)) => this.and(Ok(tree)),
            Err(error) => this.and(Err(Error::input(error))),
        }
    }

    /// Reads only entities that match the filter.
    pub fn filter(self, filter: impl FnOnce(E::Columns) -> Filter<E>) -> Self {
        let tree = filter(E::columns()).into_tree();
        self.and(tree.map_err(Error::input))
    }

    /// Reads only entities that match an OData filter, such as `Salary ge 50000.0 or Name eq 'O''Brien'`: for conditions that
    /// columns cannot express. Do not put untrusted input into it.
    pub fn odata(self, text: &str) -> Self {
        let tree = text.parse::<Tree>();
        self.and(tree.map_err(|error| {
            Error::input(FilterError::OData {
                text: text.to_owned(),
                error,
            })
        }))
    }

    /// Reads at most that many entities in total.
    pub fn take(mut self, count: usize) -> Self {
        self.pages.take = Some(count);
        self
    }

    /// The number of entities to ask for in one request, from 1 to 1,000. It does not limit how many entities are read in total:
    /// use [`take`](Self::take) for that.
    pub fn page_size(mut self, count: usize) -> Self {
        if !(1..=PAGE_ITEMS_MAX).contains(&count) {
            return self.and(Err(Error::input(PageSizeError { count })));
        }
        self.pages.page_size = Some(count);
        self
    }

    /// Fetches the next page while the items of one page are consumed. One more page is then held in memory, and it may be fetched
    /// without being used. Needs a tokio runtime. Has no effect on a single [`page`](Self::page).
    pub fn prefetch(mut self) -> Self {
        self.pages.prefetch = true;
        self
    }

    /// Reads these partitions, several at a time.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
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
    pub fn partitions<P: Into<Partition<E>>>(
        self,
        partitions: impl IntoIterator<Item = P>,
    ) -> ParallelQuery<E, S> {
        self.in_parts(partitions.into_iter().map(partition_is).collect())
    }

    /// Reads the whole table as several ranges at a time: the partitions below the first boundary, from the first to the second,
    /// and so on. Boundaries must ascend, and need not be keys of entities.
    ///
    /// Each of these reads is a [scan](AccessClass::Scan).
    pub fn partition_ranges<B: Into<String>>(
        self,
        boundaries: impl IntoIterator<Item = B>,
    ) -> ParallelQuery<E, S> {
        self.in_parts(ranges(KeyKind::PartitionKey, boundaries))
    }

    /// Reads a partition as several ranges at a time: the entities with row keys below the first boundary, from the first to the
    /// second, and so on. Boundaries must ascend, and need not be keys of entities.
    pub fn row_ranges<B: Into<String>>(
        self,
        boundaries: impl IntoIterator<Item = B>,
    ) -> ParallelQuery<E, S> {
        self.in_parts(ranges(KeyKind::RowKey, boundaries))
    }

    fn in_parts(mut self, mut parts: Vec<Result<Tree, Error>>) -> ParallelQuery<E, S> {
        match mem::replace(&mut self.filter, Ok(None)) {
            Ok(filter) => self.filter = Ok(filter),
            Err(error) => parts = vec![Err(error)],
        }
        ParallelQuery::new(self.map_selection(Arc::new), parts)
    }

    /// Returns the first request that the query would send, and how the service would find the entities. Nothing is sent.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use tablesdk::query::AccessClass;
    ///
    /// let query = table.query::<Employee>().partition("Sales").filter(|e| e.id.ge("2"));
    /// let explanation = query.explain()?;
    /// assert_eq!(explanation.access(), AccessClass::RowRange);
    /// assert_eq!(explanation.filter(), Some("PartitionKey eq 'Sales' and RowKey ge '2'"));
    /// println!("{explanation}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors that running the query reports before anything is sent. A [scan](AccessClass::Scan) is not an error here, even
    /// where the client denies scans.
    pub fn explain(&self) -> Result<Explanation, Error> {
        let refuse = |error: &Error| refused(OPERATION, causes(error));
        let filter = self.filter.as_ref().map_err(refuse)?.clone();
        let request = self.request(filter)?;
        let endpoint = self.table.endpoint();
        let http = match request.point() {
            Some(key) => request.for_entity(&key, endpoint),
            None => request.for_page(self.pages.top(self.pages.take), None, endpoint)?,
        };
        Ok(Explanation {
            method: "GET",
            url: http.uri().to_string(),
            filter: request.filter(),
            access: request.access(),
        })
    }

    /// The items as a stream, in the order of their keys. Pages are fetched as items are consumed. The first error ends the stream;
    /// it is one of [`collect`](Self::collect).
    pub fn stream(self) -> EntityStream<S::Item> {
        match self.into_paged() {
            Ok((query, pages)) => items::<E, S>(&query, pages, true),
            Err(error) => EntityStream::failed(error),
        }
    }

    fn request(&self, filter: Option<Tree>) -> Result<QueryRequest, Error> {
        Ok(QueryRequest {
            table: self.table.checked_name(OPERATION)?,
            filter,
            select: self.selection.names(),
        })
    }

    /// What stays the same from page to page, if it may be sent.
    fn into_paged(self) -> Result<(Arc<PagedQuery<S>>, Pages), Error> {
        let pipeline = self.table.pipeline.clone();
        self.checked().map_err(|error| pipeline.locate(error))
    }

    fn checked(mut self) -> Result<(Arc<PagedQuery<S>>, Pages), Error> {
        let filter = mem::replace(&mut self.filter, Ok(None));
        let request = self.request(filter.map_err(|error| error.with_operation(OPERATION))?)?;
        if request.access() == AccessClass::Scan && self.table.pipeline.denies_scans {
            return Err(refused(OPERATION, ScanError));
        }
        let query = PagedQuery::new(self.table, request, self.selection);
        Ok((Arc::new(query), self.pages))
    }

    /// All items at once.
    ///
    /// # Errors
    ///
    /// `TableNotFound`; and [`ErrorKind::Data`](crate::ErrorKind::Data) when an entity is not of this type.
    pub async fn collect(self) -> Result<Vec<S::Item>, Error> {
        self.stream().try_collect().await
    }

    /// Reads one page: as many items as [`page_size`](Self::page_size) or the service puts into a page, or exactly
    /// [`take`](Self::take) items, if there are as many. The page begins at the token, or at the start without one.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use tablesdk::query::PageToken;
    ///
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let query = || table.query::<Employee>().partition("Sales").take(2);
    /// let page = query().page(None).await?;
    /// assert_eq!(page.items.len(), 2);
    ///
    /// let text = page.next.expect("there is a third").to_string();
    /// let token: PageToken = text.parse()?;
    /// let page = query().page(token).await?;
    /// assert_eq!(page.items[0].id, "3");
    /// assert!(page.next.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the token comes from a query of
    /// another table, filter or projection.
    pub async fn page(
        self,
        token: impl Into<Option<PageToken>> + Send,
    ) -> Result<Page<S::Item>, Error> {
        let token: Option<PageToken> = token.into();
        let (query, pages) = self.into_paged()?;
        let take = pages.take;
        let fingerprint = query.request().fingerprint();
        let mut continuation = token
            .map(|token| token.into_continuation(fingerprint))
            .transpose()
            .map_err(|error| refused(OPERATION, error))?;
        if take == Some(0) {
            return Err(refused(OPERATION, "a page of no items leads nowhere"));
        }
        let mut items = Vec::new();
        loop {
            let left = take.map(|take| take - items.len());
            let page = Box::pin(query.page::<E>(pages.top(left), continuation));
            let (more, next) = page.await?;
            if left.is_some_and(|left| more.len() > left) {
                // The token would be after items that the caller does not get.
                return Err(query.fail(Error::response(TooManyError)));
            }
            items.extend(more);
            let is_full = match take {
                Some(take) => items.len() == take,
                None => !items.is_empty(),
            };
            continuation = next;
            if is_full || continuation.is_none() {
                let next = continuation.map(|next| PageToken::new(fingerprint, next));
                return Ok(Page { items, next });
            }
        }
    }

    /// The first item in the order of keys, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect).
    pub async fn first(self) -> Result<Option<S::Item>, Error> {
        self.at_most(1).stream().try_next().await
    }

    /// The only item, or `None` where there is none.
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect); and [`ErrorKind::NotUnique`](crate::ErrorKind::NotUnique) when there are several.
    pub async fn one(self) -> Result<Option<S::Item>, Error> {
        let (query, pages) = self.at_most(2).into_paged()?;
        // Whether it succeeds is known after the last page: until then, its operation does not end.
        let mut items = items::<E, S>(&query, pages, false);
        let item = items.try_next().await?;
        match items.try_next().await? {
            Some(_) => Err(query.fail(Error::not_unique(SeveralError))),
            None => Ok(item),
        }
    }

    /// Whether there is any item.
    ///
    /// # Errors
    ///
    /// Those of the service, such as `TableNotFound`.
    pub async fn exists(self) -> Result<bool, Error> {
        let mut items = self.at_most(1).presence().stream();
        Ok(items.try_next().await?.is_some())
    }

    /// Counts the items. The query reads all of them, but of each only the row key.
    ///
    /// # Errors
    ///
    /// Those of the service, such as `TableNotFound`.
    pub async fn count(self) -> Result<usize, Error> {
        let items = self.presence().stream();
        items.try_fold(0, |count, ()| ready(Ok(count + 1))).await
    }

    /// Deletes the entities that the query finds, in batches, several at a time, even if they have changed since they were found.
    /// An entity that another client deletes meanwhile is not a failure.
    ///
    /// Without a partition and a filter, it empties the table. For a struct that is identified by its entity type or its row keys,
    /// it deletes only the entities of that struct. For an enum, it also deletes entities of unknown types, unless
    /// [`known_types`](Self::known_types) is set: the entities are not decoded.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let sales = || table.query::<Employee>().partition("Sales");
    /// assert_eq!(sales().delete_all().dry_run().await?.progress().read, 3);
    ///
    /// let report = sales().delete_all().await?;
    /// assert_eq!(report.progress().written, 3);
    /// assert_eq!(sales().count().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BulkError`](super::BulkError) when the query fails, or when the run of deletes ends early.
    pub fn delete_all<'a>(self) -> DeleteAll<'a> {
        let table = self.table.clone();
        DeleteAll::new(table, move |table, with_etag| {
            let query = self.map_selection(|_| Keys { with_etag });
            QueryEntities { table, ..query }.stream()
        })
    }

    fn at_most(mut self, count: usize) -> Self {
        self.pages.take = Some(self.pages.take.map_or(count, |take| take.min(count)));
        self
    }

    fn presence(self) -> QueryEntities<E, Presence> {
        self.map_selection(|_| Presence)
    }

    /// Takes back a condition that follows from another.
    fn but_for(mut self, implied: &Tree) -> Self {
        self.filter = self.filter.map(|filter| without(&filter?, implied));
        self
    }

    fn and(mut self, more: Result<Tree, Error>) -> Self {
        self.filter = match (self.filter, more) {
            (Ok(Some(filter)), Ok(more)) => Ok(Some(filter.and(more))),
            (Ok(None), Ok(more)) => Ok(Some(more)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        self
    }
}

impl<E, S> QueryEntities<E, S> {
    fn map_selection<T>(self, map: impl FnOnce(S) -> T) -> QueryEntities<E, T> {
        QueryEntities {
            table: self.table,
            filter: self.filter,
            selection: map(self.selection),
            pages: self.pages,
            entity: self.entity,
        }
    }
}

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, Arc<S>> {
    /// The same query with one more condition.
    pub(super) fn with_condition(&self, condition: Result<Tree, Error>) -> Self {
        let filter = match &self.filter {
            Ok(filter) => condition.map(|condition| {
                Some(match filter.clone() {
                    Some(filter) => condition.and(filter),
                    None => condition,
                })
            }),
            // The error of the filter is reported before any part is read.
            Err(_) => Err(Error::input("the filter cannot be used")),
        };
        Self {
            table: self.table.clone(),
            filter,
            selection: Arc::clone(&self.selection),
            pages: self.pages,
            entity: self.entity,
        }
    }
}

/// The items of all pages. The operation ends with the last page, or later by another function.
fn items<E: TableEntity, S: Selection<E>>(
    query: &Arc<PagedQuery<S>>,
    pages: Pages,
    ends_operation: bool,
) -> EntityStream<S::Item> {
    let query = Arc::clone(query);
    EntityStream::follow(pages, move |top, continuation| {
        let query = Arc::clone(&query);
        async move {
            let page = query.page::<E>(top, continuation).await?;
            // Reported now: the caller may keep the stream for as long as it likes.
            if ends_operation && page.1.is_none() {
                query.end();
            }
            Ok(page)
        }
    })
}

call_options!(impl[E, S] QueryEntities<E, S>, table.pipeline);

impl<E, S> fmt::Debug for QueryEntities<E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("QueryEntities");
        shown.field("table", &self.table);
        match &self.filter {
            Ok(filter) => shown.field("filter", &filter.as_ref().map(ToString::to_string)),
            Err(error) => shown.field("filter", error),
        };
        shown.field("pages", &self.pages).finish_non_exhaustive()
    }
}

/// The causes of an error as one string.
fn causes(error: &Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.join(": ")
}

fn partition_is<E>(partition: impl Into<Partition<E>>) -> Result<Tree, Error> {
    let key = partition.into().into_partition_key();
    let key = key.map_err(Error::input)?;
    let (name, operator) = ("PartitionKey", ComparisonOperator::Equal);
    Ok(Tree::comparison(name, operator, key.into_string()))
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a page size of {count} is not from 1 to {PAGE_ITEMS_MAX}")]
struct PageSizeError {
    count: usize,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the query reads the whole table (a scan), which this client refuses: name the partition")]
struct ScanError;

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the service returned more items than were requested")]
struct TooManyError;

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than one entity satisfies the query")]
struct SeveralError;
