//! `query`: Query Entities.

use std::fmt;
use std::future::ready;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;

use super::extend::extension::{Extensions, LeftOut};
use super::query::conditions::{Condition, Conditions};
use super::query::paged::{PagedQuery, Skip};
use super::query::request::{OPERATION, QueryRequest};
use super::refusal::refused;
use super::{DeleteAll, ModifyAll};
use crate::entity::key::{PartitionOf, RowRange};
use crate::entity::standalone::{check_standalone, check_verified};
use crate::entity::{DynamicEntity, Schema, Stored, TableEntity, WritableEntity};
use crate::error::{ClosureError, Error};
use crate::filter::{AccessClass, FilterError};
use crate::pipeline::Table;
use crate::query::{
    Advice, EntityStream, Explanation, IntoFilter, Keys, Pages, Presence, Resolve, Selection,
    Values, Whole,
};

/// Reads many entities of type `E`. See [`TableClient::query`](crate::TableClient::query).
///
/// The markers that [`exactly_once`](crate::guide::errors_and_retries#exactly-once) stores for a
/// moment are not returned.
///
/// Conditions add up: each call of [`partition`](Self::partition), [`filter`](Self::filter) and
/// [`odata`](Self::odata) narrows the query further.
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
    pub(crate) table: Table,
    conditions: Conditions,
    selection: S,
    pub(crate) pages: Pages,
    pub(crate) skip: Option<Skip>,
    pub(crate) left_out: LeftOut,
    entity: PhantomData<fn() -> E>,
}

impl<E: TableEntity> QueryEntities<E> {
    pub(crate) fn new(table: Table) -> Self {
        let schema = const { &E::SCHEMA };
        let this = Self::of_schema(table, schema);
        // What is stored together with the variants of an enum is of no variant.
        match schema.rows_of_variants() {
            Some(own) if const { E::FACTS.has_riders } => this.and(Condition::Type, Ok(own)),
            _ => this,
        }
    }

    /// A query of the entities that the schema describes.
    pub(crate) fn of_schema(table: Table, schema: &Schema) -> Self {
        let this = Self {
            table,
            conditions: Conditions::new(),
            selection: Whole::new(),
            pages: Pages::default(),
            skip: None,
            left_out: LeftOut::NONE,
            entity: PhantomData,
        };
        // A query of a struct does not read the other entities of the table.
        let this = match schema.own_partitions() {
            Some(own) => this.and(Condition::Partitions, Ok(own)),
            None => this,
        };
        match schema.own_rows() {
            Some(own) => this.and(Condition::Type, Ok(own)),
            None => this,
        }
    }

    /// A query of the entities with that condition, whatever their type.
    pub(crate) fn of_conditions(table: Table, condition: Tree) -> Self {
        let mut conditions = Conditions::new();
        conditions.add(Condition::Partition, Ok(condition));
        Self {
            table,
            conditions,
            selection: Whole::new(),
            pages: Pages::default(),
            skip: None,
            left_out: LeftOut::NONE,
            entity: PhantomData,
        }
    }

    /// Reads only some columns: one, or a tuple of up to eight. The query then yields their values.
    #[doc(alias("project", "columns"))]
    pub fn select<S: Selection<E>>(
        self,
        columns: impl FnOnce(E::Columns) -> S,
    ) -> QueryEntities<E, S> {
        let selection = columns(E::columns());
        let condition = selection.condition().map_err(Error::input);
        let this = match condition.transpose() {
            Some(condition) => self.and(Condition::Selection, condition),
            None => self,
        };
        this.map_selection(|_| selection)
    }

    /// Converts each entity with a closure, which gets every property with its exact type: for
    /// entities of many types without a Rust type for each. For a projection, the properties are
    /// those of its fields.
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
    /// When the closure fails, the error of the entity has the kind
    /// [`ErrorKind::Aborted`](crate::ErrorKind::Aborted) and the key; [`Error::downcast_ref`]
    /// returns the closure's error. As other entities that cannot be read, it does not end a
    /// [`stream`](Self::stream).
    #[doc(alias = "EntityResolver")]
    pub fn resolve<T, F>(self, resolve: F) -> QueryEntities<E, Resolve<F>>
    where
        T: Send + 'static,
        F: Fn(Stored<DynamicEntity>) -> Result<T, ClosureError> + Send + Sync + 'static,
    {
        self.map_selection(|_| Resolve::of(const { &E::SCHEMA }, resolve))
    }
}

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// Yields plain entities, without key, ETag and timestamp: an `E` for each
    /// [`Stored<E>`](crate::Stored).
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let employees: Vec<Employee> = table.query().partition("Sales").values().collect().await?;
    /// assert_eq!(employees, [Employee::new("Sales", "1", "Ada")]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn values<T>(self) -> QueryEntities<E, Values<S>>
    where
        S: Selection<E, Item = Stored<T>>,
        T: Send + 'static,
    {
        self.map_selection(Values::new)
    }

    /// Reads one partition only.
    pub fn partition(mut self, partition: impl PartitionOf<E>) -> Self {
        self.conditions.remove(Condition::Partitions);
        self.and(Condition::Partition, partition_is(partition))
    }

    /// Reads only entities whose keys are in a range, given by leading parts of the key:
    /// `E::rows()` has a method for each part.
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
    pub fn rows(mut self, rows: impl Into<RowRange<E>>) -> Self {
        let rows = rows.into();
        // A query of a struct has the condition of its type, so that an entity of another type in
        // the same table does not end it. One of an enum has none, and skips nothing. A range of
        // rows implies the condition.
        if let Some(beginning) = E::SCHEMA.own_row_keys()
            && rows.begins_with(beginning)
        {
            self.conditions.remove(Condition::Type);
        }
        match rows.into_tree() {
            Ok(None) => self,
            Ok(Some(tree)) => self.and(Condition::Rows, Ok(tree)),
            Err(error) => self.and(Condition::Rows, Err(Error::input(error))),
        }
    }

    /// Reads only entities that match the filter.
    #[doc(alias("where", "query_filter"))]
    pub fn filter<F: IntoFilter<E>>(self, filter: impl FnOnce(E::Columns) -> F) -> Self {
        let tree = filter(E::columns()).into_filter().into_tree();
        self.and(Condition::Filter, tree.map_err(Error::input))
    }

    /// Reads only entities that match an OData filter, such as
    /// `Salary ge 50000.0 or Name eq 'O''Brien'`: for conditions that columns cannot express. Do
    /// not put untrusted input into it. What the service refuses is an error before anything is
    /// sent. An integer beyond 32 bits gets the suffix `L`, without which the service refuses it.
    #[doc(alias("CreateQueryFilter", "query_filter"))]
    pub fn odata(self, text: &str) -> Self {
        let tree = text.parse::<Tree>().map_err(|error| {
            Error::input(FilterError::OData {
                text: text.to_owned(),
                error,
            })
        });
        self.and(Condition::OData, tree)
    }

    /// Reads at most that many entities in total.
    #[doc(alias("limit", "top"))]
    pub fn take(mut self, count: usize) -> Self {
        self.pages.take = Some(count);
        self
    }

    /// The number of entities to ask for in one request, from 1 to 1,000. It does not limit how
    /// many entities are read in total: use [`take`](Self::take) for that.
    #[doc(alias("top", "max_per_page", "max_page_size", "results_per_page"))]
    pub fn page_size(mut self, count: usize) -> Self {
        if !(1..=PAGE_ITEMS_MAX).contains(&count) {
            return self.and(
                Condition::Filter,
                Err(Error::input(PageSizeError { count })),
            );
        }
        self.pages.page_size = Some(count);
        self
    }

    /// Fetches the next page while the items of one page are consumed. One more page is then held
    /// in memory, and it may be fetched without being used. Needs a tokio runtime. Has no effect on
    /// a single [`page`](Self::page).
    pub fn prefetch(mut self) -> Self {
        self.pages.prefetch = true;
        self
    }

    /// Ends a single [`page`](Self::page) with the first response of the service: the page may be
    /// empty, and still not be the last one. Without this option, it is read on until there is an
    /// item, which can take as many requests as the table has pages. Has no effect on what reads
    /// all items.
    pub fn one_response(mut self) -> Self {
        self.pages.one_response = true;
        self
    }

    /// Leaves out entities that cannot be read, and passes the error of each to the closure: of an
    /// entity that does not fit the type ([`ErrorKind::Data`](crate::ErrorKind::Data)), or for
    /// which the closure of [`resolve`](Self::resolve) failed. The error has the key of the entity.
    /// [`take`](Self::take) does not count what is left out.
    ///
    /// Without this option, a stream yields the error in place of the entity and continues, and
    /// what returns a single result fails. Other errors, such as those of the service, still end
    /// the query. What needs no more than keys, such as [`count`](Self::count) and
    /// [`delete_all`](Self::delete_all), includes entities that cannot be read.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use tablesdk::DynamicEntity;
    ///
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// table.insert(&DynamicEntity::new("Sales", "2")).await?; // it has no name
    /// # table.insert(&Employee::new("Sales", "3", "Grace")).await?;
    ///
    /// let sales = || table.query::<Employee>().partition("Sales");
    /// assert!(sales().collect().await.is_err());
    /// let readable = sales().skip_unreadable(|error| eprintln!("left out: {error}"));
    /// assert_eq!(readable.collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn skip_unreadable(mut self, report: impl Fn(Error) + Send + Sync + 'static) -> Self {
        self.skip = Some(Arc::new(report));
        self
    }

    /// Returns the first request that the query would send, the number of requests, how the service
    /// would find the entities, and which [index](Explanation::index) would answer the query
    /// instead. Nothing is sent.
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
    /// The errors that running the query reports before anything is sent. A
    /// [scan](AccessClass::Scan) is not an error here, even where the client denies scans.
    pub fn explain(&self) -> Result<Explanation, Error> {
        self.explain_parts(&[])
    }

    /// Explains the query in these parts, or as a whole if there are none.
    pub(crate) fn explain_parts(
        &self,
        parts: &[Result<Tree, Error>],
    ) -> Result<Explanation, Error> {
        let explained = self.explained(parts);
        explained.map_err(|error| self.table.pipeline.locate(error))
    }

    fn explained(&self, parts: &[Result<Tree, Error>]) -> Result<Explanation, Error> {
        let mut request = self.whole_request()?;
        for part in parts {
            part.as_ref()
                .map_err(|error| refused(OPERATION, error.why()))?;
        }
        if let Some(Ok(part)) = parts.first() {
            let own = request.filter.take();
            request.filter = Some(own.into_iter().fold(part.clone(), Tree::and));
        }
        let extensions = self.extensions();
        let (access, advice) = (
            request.access(),
            Extensions::all::<E>().advise(request.filter.as_ref()),
        );
        let contradiction = request.filter.as_ref().and_then(Tree::contradiction);
        let contradiction = contradiction.map(str::to_owned);
        let pipeline = &self.table.pipeline;
        let point = request.point().filter(|_| !extensions.can_hide());
        let request = request.shaped(&self.table, &extensions)?;
        let http = match &point {
            Some(key) => request.for_entity(key, &pipeline.endpoint),
            None => request.for_page(self.pages.top(self.pages.take), None, pipeline)?,
        };
        // At most one entity has a key.
        let more = (access != AccessClass::Point).then_some(MORE_PAGES);
        Ok(Explanation {
            method: "GET",
            requests: parts.len().max(1),
            more,
            changes: None,
            url: http.uri().to_string(),
            filter: request.filter(),
            access,
            advice,
            contradiction,
            is_ordered: pipeline.orders_partitions() || access != AccessClass::Scan,
        })
    }

    /// The items as a stream, in the order of their keys. Pages are fetched as items are consumed.
    ///
    /// An entity that cannot be read does not hide the others: the stream yields an error with its
    /// key in its place, and continues with the next entity. Any other error ends the stream. The
    /// errors are those of [`collect`](Self::collect).
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use futures::StreamExt;
    /// use tablesdk::{DynamicEntity, ErrorKind};
    ///
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// table.insert(&DynamicEntity::new("Sales", "2")).await?; // it has no name
    /// # table.insert(&Employee::new("Sales", "3", "Grace")).await?;
    ///
    /// let mut employees = table.query::<Employee>().partition("Sales").stream();
    /// let (mut read, mut bad) = (0, 0);
    /// while let Some(result) = employees.next().await {
    ///     match result {
    ///         Ok(_) => read += 1,
    ///         Err(error) if error.kind() == ErrorKind::Data => {
    ///             eprintln!("{error}");
    ///             bad += 1;
    ///         }
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// assert_eq!((read, bad), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("into_stream", "for_each"))]
    pub fn stream(self) -> EntityStream<S::Item> {
        match self.into_paged() {
            Ok((query, pages)) => items::<E, S>(&query, pages, true),
            Err(error) => EntityStream::failed(error),
        }
    }

    /// All that identify the query in page tokens, beginning with that of new ones.
    pub(crate) fn fingerprints(&self) -> Result<Vec<u64>, Error> {
        let request = self.whole_request()?;
        request.fingerprints(&self.table, &self.extensions())
    }

    /// Loads what the extensions of the type need of the filter.
    pub(crate) async fn load(&self) -> Result<(), Error> {
        let extensions = self.extensions();
        if extensions.is_empty() {
            return Ok(());
        }
        // What is wrong with the conditions is reported where they are taken.
        let filter = self.conditions.tree().ok().flatten();
        let loaded = Box::pin(extensions.load(&self.table, filter.as_ref())).await;
        loaded.map_err(|error| {
            let error = error.with_operation(OPERATION);
            self.table.pipeline.locate(error)
        })
    }

    fn extensions(&self) -> Extensions {
        Extensions::of::<E>(self.left_out)
    }

    fn whole_request(&self) -> Result<QueryRequest, Error> {
        self.request(self.conditions()?)
    }

    fn request(&self, filter: Option<Tree>) -> Result<QueryRequest, Error> {
        Ok(QueryRequest {
            table: self.table.checked_name(OPERATION)?,
            filter,
            select: self.selection.names(),
        })
    }

    /// The part of the query that is the same for each page, and its pages, if it may be sent.
    pub(crate) fn into_paged(self) -> Result<(Arc<PagedQuery<S>>, Pages), Error> {
        const { check_verified::<E>(S::IS_UNVERIFIED) }
        let pipeline = self.table.pipeline.clone();
        self.checked().map_err(|error| pipeline.locate(error))
    }

    fn checked(mut self) -> Result<(Arc<PagedQuery<S>>, Pages), Error> {
        let extensions = self.extensions();
        let filter = self.conditions.take();
        let request = self.request(filter.map_err(|error| error.with_operation(OPERATION))?)?;
        if request.access() == AccessClass::Scan && self.table.pipeline.denies_scans {
            let advice = Extensions::all::<E>().advise(request.filter.as_ref());
            return Err(refused(OPERATION, ScanError { advice }));
        }
        let query = PagedQuery::new(self.table, request, extensions, self.selection, self.skip);
        Ok((Arc::new(query), self.pages))
    }

    /// All items at once.
    ///
    /// # Errors
    ///
    /// `TableNotFound`; and [`ErrorKind::Data`](crate::ErrorKind::Data) when an entity is not of
    /// this type.
    #[doc(alias = "to_list")]
    pub async fn collect(self) -> Result<Vec<S::Item>, Error> {
        self.stream().collect_all().await
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
    /// As [`collect`](Self::collect); and [`ErrorKind::NotUnique`](crate::ErrorKind::NotUnique)
    /// when there are several.
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

    /// Returns true if there is any item.
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `TableNotFound`.
    pub async fn exists(self) -> Result<bool, Error> {
        const { check_verified::<E>(S::IS_UNVERIFIED) }
        let mut items = self.at_most(1).presence().stream();
        Ok(items.try_next().await?.is_some())
    }

    /// Counts the items. The query reads all of them, but of each only the row key.
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `TableNotFound`.
    pub async fn count(self) -> Result<usize, Error> {
        const { check_verified::<E>(S::IS_UNVERIFIED) }
        let items = self.presence().stream();
        items.try_fold(0, |count, ()| ready(Ok(count + 1))).await
    }

    /// Deletes the entities that the query finds, in batches, several at a time, even if they have
    /// changed since they were found. An entity that another client deletes meanwhile is not a
    /// failure.
    ///
    /// Without a partition and a filter, it empties the table. For a struct that is identified by
    /// its entity type or its row keys, it deletes only the entities of that struct,
    /// [expired](derive@crate::TableEntity#expires) ones included. For an enum, it also deletes
    /// entities of unknown types, unless a filter such as `is_employee()` excludes them: the
    /// entities are not decoded.
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
        const { check_standalone::<E>() }
        let table = self.table.clone();
        DeleteAll::new(table, move |table, with_etag| {
            let query = self.map_selection(|_| Keys { with_etag });
            let (table, left_out) = (table.at_primary(), LeftOut::HIDING);
            QueryEntities {
                table,
                left_out,
                ..query
            }
            .stream()
        })
    }

    /// All conditions of the query.
    pub(crate) fn conditions(&self) -> Result<Option<Tree>, Error> {
        let refuse = |error: &Error| refused(OPERATION, error.why());
        self.conditions.tree().map_err(refuse)
    }

    /// Changes the entities that the query finds with a closure, and writes them in batches,
    /// several at a time. Each is written under the ETag with which it was read. If another client
    /// has changed it since, it alone is read again, with the conditions of the query, and the
    /// closure is called anew on its new value.
    ///
    /// An entity that the closure leaves as it is is not written, and is counted as
    /// [skipped](super::BulkProgress::skipped). One that was changed so that the query no longer
    /// finds it is counted as [changed](super::BulkProgress::changed), one that was deleted as
    /// [missing](super::BulkProgress::missing). Properties that the type does not have are kept;
    /// entries of [indexes](derive@crate::TableEntity#index) and
    /// [copies](derive@crate::TableEntity#copy) are written with their entities. The closure must
    /// not change the key: [`move_keys`](Self::move_keys) does.
    ///
    /// The closure never gets the result of its own call. Where a response was lost, and where an
    /// entity that was refused is as this run would have written it, the outcome is unknown: the
    /// entity is a [failure](super::BulkReport::failures) whose
    /// [outcome is unknown](super::BulkFailure::is_outcome_unknown), and stays as it is.
    /// [`exactly_once`](ModifyAll::exactly_once) makes the outcome known.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # for id in ["1", "2", "3"] {
    /// #     table.insert(&Employee::new("Sales", id, "Ada")).await?;
    /// # }
    /// let rename = |e: &mut Employee| {
    ///     e.name = "Ada Lovelace".to_owned();
    ///     Ok(())
    /// };
    /// let sales = || table.query::<Employee>().partition("Sales");
    /// assert_eq!(sales().modify_all(rename).dry_run().await?.progress().read, 3);
    ///
    /// let report = sales().modify_all(rename).await?;
    /// // One page is read, and one batch is written.
    /// assert_eq!((report.progress().written, report.progress().requests), (3, 1));
    /// assert_eq!(sales().modify_all(rename).await?.progress().skipped, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`BulkError`](super::BulkError) when the query fails, or when the run ends early. An entity
    /// for which the closure returns an error, or which cannot be read or written, is a
    /// [failure](super::BulkReport::failures). So is one that other clients change 16 times while
    /// the run wants to write it, with `UpdateConditionNotSatisfied`.
    #[doc(alias("update_where", "update_all", "update_many", "bulk_update"))]
    pub fn modify_all<'a>(
        self,
        change: impl FnMut(&mut E) -> Result<(), ClosureError> + Send + 'a,
    ) -> ModifyAll<'a>
    where
        E: WritableEntity,
    {
        ModifyAll::new(self, change)
    }

    fn at_most(mut self, count: usize) -> Self {
        self.pages.take = Some(self.pages.take.map_or(count, |take| take.min(count)));
        self
    }

    pub(crate) fn presence(self) -> QueryEntities<E, Presence> {
        self.map_selection(|_| Presence)
    }

    pub(crate) fn and(mut self, made_by: Condition, condition: Result<Tree, Error>) -> Self {
        self.conditions.add(made_by, condition);
        self
    }
}

impl<E, S> QueryEntities<E, S> {
    pub(crate) fn map_selection<T>(self, map: impl FnOnce(S) -> T) -> QueryEntities<E, T> {
        QueryEntities {
            table: self.table,
            conditions: self.conditions,
            selection: map(self.selection),
            pages: self.pages,
            skip: self.skip,
            left_out: self.left_out,
            entity: self.entity,
        }
    }
}

impl<E, S> QueryEntities<E, S> {
    /// As many queries as there are parts: each with the condition of its part in addition to its
    /// own.
    pub(crate) fn divided(
        mut self,
        parts: Vec<Result<Tree, Error>>,
    ) -> impl Iterator<Item = QueryEntities<E, Arc<S>>> + Send + 'static
    where
        E: 'static,
        S: Send + Sync + 'static,
    {
        let (own, parts) = match self.conditions.take() {
            Ok(own) => (own, parts),
            // Reported before any part is read.
            Err(error) => (None, vec![Err(error)]),
        };
        let query = self.map_selection(Arc::new);
        parts.into_iter().map(move |part| {
            let mut conditions = Conditions::new();
            conditions.add(Condition::Partition, part);
            if let Some(own) = &own {
                conditions.add(Condition::Filter, Ok(own.clone()));
            }
            QueryEntities {
                table: query.table.clone(),
                conditions,
                selection: Arc::clone(&query.selection),
                pages: query.pages,
                skip: query.skip.clone(),
                left_out: query.left_out,
                entity: query.entity,
            }
        })
    }
}

#[cfg(feature = "object-store")]
impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// A function that reads all entities of the query, expired ones included, from the start each
    /// time.
    pub(crate) fn repeated(
        mut self,
    ) -> Result<impl Fn() -> EntityStream<S::Item> + Send + Sync + 'static, Error> {
        let pipeline = self.table.pipeline.clone();
        let refused = |error: Error| pipeline.locate(error.with_operation(OPERATION));
        if self.pages.take.is_some() || self.skip.is_some() {
            return Err(refused(Error::input(Partial)));
        }
        let own = self.conditions.take().map_err(refused)?;
        let query = self.map_selection(Arc::new);
        Ok(move || {
            let mut conditions = Conditions::new();
            if let Some(own) = &own {
                conditions.add(Condition::Filter, Ok(own.clone()));
            }
            let again = QueryEntities {
                table: query.table.clone().at_primary(),
                conditions,
                selection: Arc::clone(&query.selection),
                pages: query.pages,
                skip: None,
                // What is hidden is stored.
                left_out: LeftOut::HIDING,
                entity: query.entity,
            };
            again.stream()
        })
    }
}

#[cfg(feature = "object-store")]
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("all entities must be read: `take` and `skip_unreadable` leave some out")]
struct Partial;

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
        match self.conditions.tree() {
            Ok(filter) => shown.field("filter", &filter.map(|filter| filter.to_string())),
            Err(error) => shown.field("filter", error),
        };
        shown.field("pages", &self.pages).finish_non_exhaustive()
    }
}

pub(crate) fn partition_is<E>(partition: impl PartitionOf<E>) -> Result<Tree, Error> {
    let key = partition.into_partition_key();
    let key = key.map_err(Error::input)?;
    let (name, operator) = ("PartitionKey", ComparisonOperator::Equal);
    Ok(Tree::comparison(name, operator, key.into_string()))
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a page size of {count} is not from 1 to {PAGE_ITEMS_MAX}")]
struct PageSizeError {
    count: usize,
}

#[derive(Clone, Debug)]
struct ScanError {
    advice: Option<Advice>,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the query reads the whole table (a scan), which this client refuses: ")?;
        match &self.advice {
            Some(advice) => write!(f, "the {} {advice}", advice.noun),
            None => f.write_str("name the partition"),
        }
    }
}

impl std::error::Error for ScanError {}

/// The rule for the requests of a query after the first.
const MORE_PAGES: &str = "one for each further page";

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than one entity satisfies the query")]
struct SeveralError;
