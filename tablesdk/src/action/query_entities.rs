//! `query`: Query Entities.

use std::error::Error as _;
use std::fmt;
use std::future::ready;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::Request as HttpRequest;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::get_entity;
use tablesdk_protocol::operation::query_entities::{Request, Response};
use tablesdk_protocol::wire::json::{JsonEntity, JsonError, MetadataLevel, read_entity, read_page};
use tablesdk_protocol::{EntityKey, KeyPartName};

use super::get_entity::fetch;
use super::query::parallel::ranges;
use super::write::exactly_once::is_marker;
use super::{DeleteAll, ParallelQuery, check_url};
use crate::entity::key::{IntoPartitionKey, Partition, RowRange};
use crate::entity::{DynamicEntity, Stored, TableEntity};
use crate::error::Error;
use crate::filter::{AccessClass, Filter, FilterError, point, without};
use crate::pipeline::{Effect, OperationRun, PagedOperation, Table};
use crate::query::{
    Continuations, EntityStream, Explanation, Keys, Page, PageToken, Pages, Presence, Resolve,
    ResolveError, Selection, SelectionError, Whole, fingerprint,
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
    take: Option<usize>,
    page_size: Option<usize>,
    prefetch: bool,
    entity: PhantomData<fn() -> E>,
}

impl<E: TableEntity> QueryEntities<E> {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            // Who asks for a struct does not ask for the rows beside it that are something else.
            filter: Ok(E::SCHEMA.own_rows()),
            selection: Whole::new(),
            take: None,
            page_size: None,
            prefetch: false,
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
        this.with_selection(selection)
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
    /// let names = table.query::<DynamicEntity>().partition("Sales").resolve(|row| {
    ///     let name = match row.properties().read::<String>("EntityType")?.as_str() {
    ///         "Department" => row.properties().read::<String>("title")?,
    ///         _ => row.properties().read::<String>("name")?,
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
    /// When the closure fails, reading ends with [`ErrorKind::Caller`](crate::ErrorKind::Caller), the key of the row, and the
    /// closure's error as the source.
    pub fn resolve<T, F>(self, resolve: F) -> QueryEntities<E, Resolve<F>>
    where
        T: Send + 'static,
        F: Fn(Stored<DynamicEntity>) -> Result<T, ResolveError> + Send + Sync + 'static,
    {
        self.with_selection(Resolve::new(resolve, E::SCHEMA.select()))
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
        self.take = Some(count);
        self
    }

    /// The number of entities to ask for in one request, from 1 to 1,000. It does not limit how many entities are read in total:
    /// use [`take`](Self::take) for that.
    pub fn page_size(mut self, count: usize) -> Self {
        if !(1..=PAGE_ITEMS_MAX).contains(&count) {
            return self.and(Err(Error::input(PageSizeError { count })));
        }
        self.page_size = Some(count);
        self
    }

    /// Fetches the next page while the items of one page are consumed. One more page is then held in memory, and it may be fetched
    /// without being used. Needs a tokio runtime. Has no effect on a single [`page`](Self::page).
    pub fn prefetch(mut self) -> Self {
        self.prefetch = true;
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
        let places = partitions.into_iter().map(partition_is).collect();
        self.at_places(places)
    }

    /// Reads the whole table as several ranges at a time: the partitions below the first boundary, from the first to the second,
    /// and so on. Boundaries must ascend, and need not be keys of entities.
    ///
    /// Each of these reads is a [scan](AccessClass::Scan).
    pub fn partition_ranges<B: Into<String>>(
        self,
        boundaries: impl IntoIterator<Item = B>,
    ) -> ParallelQuery<E, S> {
        self.at_places(ranges(KeyPartName::PartitionKey, boundaries))
    }

    /// Reads a partition as several ranges at a time: the entities with row keys below the first boundary, from the first to the
    /// second, and so on. Boundaries must ascend, and need not be keys of entities.
    pub fn row_ranges<B: Into<String>>(
        self,
        boundaries: impl IntoIterator<Item = B>,
    ) -> ParallelQuery<E, S> {
        self.at_places(ranges(KeyPartName::RowKey, boundaries))
    }

    fn at_places(self, mut places: Vec<Result<Tree, Error>>) -> ParallelQuery<E, S> {
        let mut query = self;
        let filter = mem::replace(&mut query.filter, Ok(None));
        match filter {
            Ok(filter) => query.filter = Ok(filter),
            Err(error) => places = vec![Err(error)],
        }
        let selection = Arc::new(query.selection);
        let query = QueryEntities {
            table: query.table,
            filter: query.filter,
            selection,
            take: query.take,
            page_size: query.page_size,
            prefetch: query.prefetch,
            entity: query.entity,
        };
        ParallelQuery::new(query, places)
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
        let refused = |error: &Error| Error::input(causes(error)).with_operation(OPERATION);
        let filter = self.filter.as_ref().map_err(refused)?;
        let table = self.table.checked_name(OPERATION)?;
        let endpoint = &self.table.pipeline.endpoint;
        let request = match point(filter.as_ref()) {
            Some(key) => get_entity::Request {
                table,
                key,
                select: self.selection.names(),
                level: MetadataLevel::Minimal,
            }
            .encode(endpoint),
            None => {
                let top = match (self.take, self.page_size) {
                    (Some(take), Some(size)) => Some(take.min(size)),
                    (take, size) => take.or(size),
                };
                let request = Request {
                    table,
                    filter: filter.clone(),
                    select: self.selection.names().map(with_row_key),
                    top: top.map(|top| top.min(PAGE_ITEMS_MAX)),
                    continuation: None,
                    level: MetadataLevel::Minimal,
                };
                check_url(OPERATION, request.url_bytes(endpoint))?;
                request.encode(endpoint)
            }
        };
        Ok(Explanation {
            method: "GET",
            url: request.uri().to_string(),
            filter: filter.as_ref().map(ToString::to_string),
            access: AccessClass::of(filter.as_ref()),
        })
    }

    /// The items as a stream, in the order of their keys. Pages are fetched as items are consumed. The first error ends the stream;
    /// it is one of [`collect`](Self::collect).
    pub fn stream(self) -> EntityStream<S::Item> {
        let pages = self.pages();
        let query = match self.into_paged() {
            Ok(query) => Arc::new(query),
            Err(error) => return EntityStream::failed(error),
        };
        EntityStream::follow(pages, move |top, continuation| {
            let query = Arc::clone(&query);
            async move {
                let page = query.page::<E>(top, continuation).await?;
                // Told now: the stream may live on for as long as the program likes.
                if page.1.is_none() {
                    query.operation.end(None);
                }
                Ok(page)
            }
        })
    }

    /// What stays the same from page to page, if it may be sent.
    fn into_paged(self) -> Result<PagedQuery<S>, Error> {
        let filter = self
            .filter
            .map_err(|error| error.with_operation(OPERATION))?;
        let access = AccessClass::of(filter.as_ref());
        if access == AccessClass::Scan && self.table.pipeline.denies_scans {
            return Err(Error::input(ScanError).with_operation(OPERATION));
        }
        Ok(PagedQuery {
            table: self.table,
            point: point(filter.as_ref()),
            filter,
            selection: self.selection,
            operation: PagedOperation::default(),
            continuations: Continuations::new(),
        })
    }

    /// All items at once.
    ///
    /// # Errors
    ///
    /// `TableNotFound`; and [`ErrorKind::Response`](crate::ErrorKind::Response) when an entity is not of this type.
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
        let refused = |error: Error| error.with_operation(OPERATION);
        let (take, page_size) = (self.take, self.page_size);
        let query = self.into_paged()?;
        let name = query.table.checked_name(OPERATION)?;
        let fingerprint = {
            // Names of tables are compared without regard to case.
            let name = name.as_str().to_ascii_lowercase();
            let filter = query.filter.as_ref().map(ToString::to_string);
            let columns = query.selection.names().unwrap_or_default();
            let columns = columns.iter().map(String::as_str);
            let texts = [name.as_str(), filter.as_deref().unwrap_or_default()];
            fingerprint(texts.into_iter().chain(columns))
        };
        let mut continuation = token
            .map(|token| token.into_continuation(fingerprint))
            .transpose()
            .map_err(|error| refused(Error::input(error)))?;
        if take == Some(0) {
            return Err(refused(Error::input("a page of no items leads nowhere")));
        }
        let mut items = Vec::new();
        loop {
            let left = take.map(|take| take - items.len());
            let top = match (left, page_size) {
                (Some(left), Some(size)) => Some(left.min(size)),
                (left, size) => left.or(size),
            };
            let page = Box::pin(query.page::<E>(top, continuation));
            let (more, next) = page.await?;
            if left.is_some_and(|left| more.len() > left) {
                // The token would be after items that the caller does not get.
                return Err(query.fail(TooManyError));
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
    /// As [`collect`](Self::collect); and [`ErrorKind::Response`](crate::ErrorKind::Response) when there are several.
    pub async fn one(self) -> Result<Option<S::Item>, Error> {
        let two = self.at_most(2);
        let pages = two.pages();
        let query = Arc::new(two.into_paged()?);
        let read = Arc::clone(&query);
        let mut items = EntityStream::follow(pages, move |top, continuation| {
            let query = Arc::clone(&read);
            async move { query.page::<E>(top, continuation).await }
        });
        let item = items.try_next().await?;
        match items.try_next().await? {
            Some(_) => Err(query.fail(SeveralError)),
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
        DeleteAll::new(table, move |with_etag| {
            self.with_selection(Keys { with_etag }).stream()
        })
    }

    fn at_most(mut self, count: usize) -> Self {
        self.take = Some(self.take.map_or(count, |take| take.min(count)));
        self
    }

    fn presence(self) -> QueryEntities<E, Presence> {
        self.with_selection(Presence)
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
    fn with_selection<T>(self, selection: T) -> QueryEntities<E, T> {
        QueryEntities {
            table: self.table,
            filter: self.filter,
            selection,
            take: self.take,
            page_size: self.page_size,
            prefetch: self.prefetch,
            entity: self.entity,
        }
    }

    /// How many items are read in all, at most.
    pub(super) const fn taken(&self) -> Option<usize> {
        self.take
    }

    fn pages(&self) -> Pages {
        Pages {
            take: self.take,
            page_size: self.page_size,
            prefetch: self.prefetch,
        }
    }
}

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, Arc<S>> {
    /// The same query with a condition more.
    pub(super) fn at(&self, place: Result<Tree, Error>) -> Self {
        let filter = match (&self.filter, place) {
            (Ok(filter), place) => place.map(|place| {
                let filter = filter.clone();
                Some(match filter {
                    Some(filter) => place.and(filter),
                    None => place,
                })
            }),
            // What is wrong is told before it comes to this.
            (Err(_), _) => Err(Error::input("the filter cannot be used")),
        };
        Self {
            table: self.table.clone(),
            filter,
            selection: Arc::clone(&self.selection),
            take: self.take,
            page_size: self.page_size,
            prefetch: self.prefetch,
            entity: self.entity,
        }
    }
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
        shown
            .field("take", &self.take)
            .field("page_size", &self.page_size)
            .finish_non_exhaustive()
    }
}

/// Why an error is one, as a text.
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

/// The items of a page, and where the next one starts.
type Fetched<T> = (Vec<T>, Option<EntityContinuation>);

/// What stays the same from page to page.
struct PagedQuery<S> {
    table: Table,
    /// The entity, where the query asks for nothing but one.
    point: Option<EntityKey>,
    filter: Option<Tree>,
    selection: S,
    /// The operation that all pages belong to, for its report and its span.
    operation: PagedOperation,
    continuations: Continuations<EntityContinuation>,
}

impl<S> PagedQuery<S> {
    /// What is wrong with the answers as a whole, when each page of them was read.
    fn fail(&self, problem: impl std::error::Error + Send + Sync + 'static) -> Error {
        let error = Error::response(problem).with_operation(OPERATION);
        self.operation.end(Some(&error));
        error
    }

    async fn page<E: TableEntity>(
        &self,
        top: Option<usize>,
        continuation: Option<EntityContinuation>,
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        if let (Some(key), None) = (&self.point, &continuation) {
            return Ok((self.entity::<E>(key).await?, None));
        }
        let sent = continuation.clone();
        let request = Request {
            table: self.table.checked_name(OPERATION)?,
            filter: self.filter.clone(),
            select: self.selection.names().map(with_row_key),
            top: top.map(|top| top.min(PAGE_ITEMS_MAX)),
            continuation,
            level: MetadataLevel::Minimal,
        };
        let pipeline = &self.table.pipeline;
        check_url(OPERATION, request.url_bytes(&pipeline.endpoint))?;
        let request = request.encode(&pipeline.endpoint);
        let mut run = self.table.resume(OPERATION, &self.operation);
        let page = self.read_page::<E>(&mut run, &request).await;
        let page = page.and_then(|(items, next)| {
            let advanced = self.continuations.advance(sent.as_ref(), next.as_ref());
            advanced.map_err(|error| run.annotate(Error::response(error)))?;
            Ok((items, next))
        });
        run.pause(&self.operation, page)
    }

    async fn read_page<E: TableEntity>(
        &self,
        run: &mut OperationRun<'_>,
        request: &HttpRequest<Bytes>,
    ) -> Result<Fetched<S::Item>, Error>
    where
        S: Selection<E>,
    {
        run.report().access = Some(AccessClass::of(self.filter.as_ref()));
        let response = run.send(Effect::Read, request).await?;
        let Response {
            content,
            continuation,
        } = Response::decode(response);
        let mut items = Vec::new();
        let read = read_page(&content, |entity| {
            // Markers are skipped in the client. A filter against them would cost every query something, and a type that cannot be
            // read from a marker would fail for as long as the marker exists.
            if entity
                .text("RowKey")
                .is_ok_and(|key| key.is_some_and(is_marker))
            {
                return Ok(());
            }
            let item = self
                .selection
                .read(entity)
                .map_err(|error| Unreadable::Entity {
                    error,
                    key: entity_key(entity),
                })?;
            items.push(item);
            Ok(())
        });
        match read {
            Ok(()) => {
                run.report().pages += 1;
                run.report().entities += items.len();
                Ok((items, continuation))
            }
            Err(Unreadable::Page(error)) => Err(run.annotate(Error::response(error))),
            Err(Unreadable::Entity { error, key }) => {
                let error = run.annotate(unselected(error));
                Err(match key {
                    Some(key) => error.with_key(&key),
                    None => error,
                })
            }
        }
    }
}

/// The row key distinguishes the markers of other operations from entities.
// That costs some bytes per entity.
fn with_row_key(mut names: Vec<String>) -> Vec<String> {
    if !names.iter().any(|name| name == "RowKey") {
        names.push("RowKey".to_owned());
    }
    names
}

impl<S> PagedQuery<S> {
    /// The one entity that the query asks for: a read by key is the fastest there is.
    async fn entity<E: TableEntity>(&self, key: &EntityKey) -> Result<Vec<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let mut run = self.table.resume(OPERATION, &self.operation);
        let items = self.read_entity::<E>(&mut run, key).await;
        run.pause(&self.operation, items)
    }

    async fn read_entity<E: TableEntity>(
        &self,
        run: &mut OperationRun<'_>,
        key: &EntityKey,
    ) -> Result<Vec<S::Item>, Error>
    where
        S: Selection<E>,
    {
        let select = self.selection.names();
        let fetched = fetch(run, Effect::Read, &self.table, key, select).await;
        let content = match fetched {
            Ok((content, _)) => content,
            // A missing table is an error, a missing entity an answer.
            Err(error) if error.is_no_such_resource() => {
                run.note_expected_error(&error);
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let unreadable = |error: Error| run.annotate(error).with_key(key);
        let entity = read_entity(&content).map_err(|error| unreadable(Error::response(error)))?;
        let item = self.selection.read(&entity);
        let item = item.map_err(|error| unreadable(unselected(error)))?;
        run.report().pages += 1;
        Ok(vec![item])
    }
}

/// Why no item was made of an entity: the closure of the program failed, or the answer is at fault.
fn unselected(error: SelectionError) -> Error {
    match error {
        SelectionError::Caller(error) => Error::caller(error),
        error => Error::response(error),
    }
}

/// The key of an entity that could not be read, where the answer has it.
fn entity_key(entity: &JsonEntity<'_>) -> Option<EntityKey> {
    let text = |name| entity.text(name).ok().flatten();
    EntityKey::new(text("PartitionKey")?, text("RowKey")?).ok()
}

enum Unreadable {
    Entity {
        error: SelectionError,
        key: Option<EntityKey>,
    },
    Page(JsonError),
}

impl From<JsonError> for Unreadable {
    fn from(error: JsonError) -> Self {
        Self::Page(error)
    }
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
#[error("the service gave more items than it was asked for")]
struct TooManyError;

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than one entity satisfies the query")]
struct SeveralError;

const OPERATION: &str = "query entities";
