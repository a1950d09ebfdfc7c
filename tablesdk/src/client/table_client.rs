//! The client of one table. Each method makes an action, which runs when it is awaited.

use std::borrow::Borrow;
use std::fmt;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, IfMatch, Timestamp};

use crate::action::{
    Action, Batch, Bulk, CleanUpMarkers, CreateTable, DeleteEntity, GetEntity, GetMany,
    InsertEntity, Modify, Patch, QueryEntities, RunTransaction, Transaction, Write, delete_table,
    get_access_policy, set_access_policy, table_exists,
};
use crate::entity::key::{IntoEntityKey, IntoPartitionKey, KeyOf, check_standalone_key};
use crate::entity::standalone::{check_no_entry, check_standalone};
use crate::entity::{Standalone, Stored, TableEntity, WritableEntity};
use crate::error::{ClosureError, Error};
use crate::pipeline::{PipelineHandle, Table};
use crate::sas::{SasUrl, StoredAccessPolicy, TableSasBuilder};

/// A client of one table. Cloning it is cheap; clones share connections.
///
/// Every verb returns an action, which does nothing until it is awaited. Input that breaks a rule
/// of the service is reported when the action is awaited, before anything is sent.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// let hire = table.insert(&Employee::new("Sales", "1", "Ada")); // nothing happens yet
/// hire.await?;
///
/// let same = table.clone();
/// let found = tokio::spawn(async move { same.get(Employee::key("Sales", "1")).await });
/// assert_eq!(found.await??.expect("she works here").name, "Ada");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TableClient {
    pub(super) table: Table,
}

impl TableClient {
    pub(crate) fn new(pipeline: PipelineHandle, name: String) -> Self {
        Self::of(Table::new(pipeline, name))
    }

    pub(crate) const fn of(table: Table) -> Self {
        Self { table }
    }

    /// A client of the same table, which reads it at the primary only.
    pub(crate) fn at_primary(&self) -> Self {
        Self::of(self.table.clone().at_primary())
    }

    /// A client of the same table for entities of a pattern, which are stored as they are.
    pub(crate) fn for_pattern(&self) -> Self {
        let mut table = self.table.clone();
        table.pipeline.extra = None;
        Self::of(table)
    }

    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }

    /// The table that entities of the type are in.
    pub(crate) fn table_of<E: TableEntity>(&self) -> Table {
        self.table.of_schema(const { &E::SCHEMA })
    }

    /// A client of the table of a URL with a shared access signature, as [`sas`](Self::sas) and the
    /// Azure portal create it. For more options, use [`SasUrl`].
    ///
    /// ```
    /// use tablesdk::TableClient;
    ///
    /// let table = TableClient::from_sas_url(
    ///     "https://acct.table.core.windows.net/Employees?sv=2019-02-02&tn=Employees&sp=r&se=2030-01-01&sig=c2ln",
    /// )?;
    /// assert_eq!(table.name(), "Employees");
    /// # Ok::<(), tablesdk::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the string is not such a URL, or names no table. The error does not contain the string.
    pub fn from_sas_url(url: &str) -> Result<Self, Error> {
        let (url, table) = SasUrl::parse_table(url)?;
        Ok(url.builder().build()?.table(table))
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        self.table.name()
    }

    /// The time by the clock of the client: that of the system, unless the
    /// [builder](crate::TableServiceClientBuilder::clock) has set another one. A client of a server
    /// in the same process has that server's, which a test moves.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tablesdk::{DynamicEntity, TableServiceClient};
    /// use tablesdk_server::TableServer;
    ///
    /// let server = TableServer::in_process();
    /// server.clock().freeze();
    /// let table = TableServiceClient::in_process(&server).table("Orders");
    /// table.create_table().await?;
    /// let order = table.insert(&DynamicEntity::new("a", "1")).await?;
    ///
    /// let hour = Duration::from_secs(3600);
    /// server.clock().advance(hour * 2);
    /// let age = order.timestamp().and_then(|placed| table.now().duration_since(placed));
    /// assert!(age > Some(hour));
    ///
    /// let since = table.now().saturating_sub(hour * 3);
    /// let recent = table.query::<DynamicEntity>().filter(|e| e.property("Timestamp").ge(since));
    /// assert_eq!(recent.count().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn now(&self) -> Timestamp {
        self.table.pipeline.now()
    }

    /// Creates the table.
    ///
    /// Success means that the table exists. When a response was lost, another client may have
    /// created the table at the same time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// let table = service.table("Employees");
    /// table.create_table().await?;
    /// assert!(table.create_table().await.unwrap_err().is_conflict());
    /// let created = table.create_table().if_missing().await?;
    /// assert!(!created);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableAlreadyExists` unless [`if_missing`](CreateTable::if_missing) is set,
    /// `TableBeingDeleted` for some time after a deletion, `InvalidResourceName`.
    #[doc(alias("create_if_not_exists", "create_table_if_not_exists"))]
    pub fn create_table(&self) -> CreateTable {
        CreateTable::new(self.table.clone())
    }

    /// Deletes the table and everything in it. Returns `false` when the table does not exist.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # let table = service.table("Employees");
    /// # table.create_table().await?;
    /// assert!(table.delete_table().await?);
    /// assert!(!table.delete_table().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of the service, such as `AuthenticationFailed`;
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when no response shows the
    /// outcome. The name stays reserved for 40 seconds or more: until then, creating a table of
    /// that name fails with `TableBeingDeleted`, or [waits](CreateTable::wait).
    #[doc(alias = "drop_table")]
    pub fn delete_table(&self) -> Action<bool> {
        Action::of_table(&self.table, delete_table)
    }

    /// Returns true if the table exists. A table that is being deleted does not exist.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// let table = service.table("Employees");
    /// assert!(!table.table_exists().await?);
    /// table.create_table().await?;
    /// assert!(table.table_exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of the service, such as `AuthenticationFailed`. A shared access signature for
    /// entities alone cannot read whether a table exists.
    pub fn table_exists(&self) -> Action<bool> {
        Action::of_table(&self.table, table_exists)
    }

    /// Reads the stored access policies of the table, in the order in which they were set.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # let table = service.table("Employees");
    /// # table.create_table().await?;
    /// assert!(table.access_policy().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`. This operation needs a key of the account. A shared access signature is
    /// refused, and for a token the service responds `ResourceNotFound`.
    #[doc(alias("get_access_policy", "get_table_access_policy"))]
    pub fn access_policy(&self) -> Action<Vec<StoredAccessPolicy>> {
        Action::of_table(&self.table, get_access_policy)
    }

    /// Replaces the stored access policies of the table: at most five. Shared access signatures
    /// that name a policy which is not among them become invalid. The change takes effect within 30
    /// seconds.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # let table = service.table("Employees");
    /// # table.create_table().await?;
    /// use std::time::{Duration, SystemTime};
    /// use tablesdk::TableClient;
    /// use tablesdk::sas::{Permissions, StoredAccessPolicy};
    ///
    /// let readers = StoredAccessPolicy::new("readers")
    ///     .allow(Permissions::READ)
    ///     .expires_at(SystemTime::now() + Duration::from_secs(3600));
    /// table.set_access_policy([readers]).await?;
    ///
    /// let url = table.sas().with_policy("readers").sign()?;
    /// let guest = TableClient::from_sas_url(&url.expose())?;
    /// # type Row = tablesdk::DynamicEntity;
    /// assert_eq!(guest.query::<Row>().count().await?, 0);
    ///
    /// table.set_access_policy([]).await?;
    /// assert!(guest.query::<Row>().count().await.unwrap_err().is_denied());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, for more than five
    /// policies, for a duplicate id, or for a policy that expires before it starts;
    /// `TableNotFound`. This operation needs a key of the account, as
    /// [`access_policy`](Self::access_policy) does.
    #[doc(alias = "set_table_access_policy")]
    pub fn set_access_policy(
        &self,
        policies: impl IntoIterator<Item = StoredAccessPolicy>,
    ) -> Action<()> {
        let policies = policies.into_iter().collect();
        Action::of_table(&self.table, |table| set_access_policy(table, policies))
    }

    /// Starts a shared access signature for entities of the table. Signing needs the account's key;
    /// nothing is sent.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use std::time::Duration;
    /// use tablesdk::TableClient;
    /// use tablesdk::sas::Permissions;
    ///
    /// let url = table
    ///     .sas()
    ///     .allow(Permissions::READ | Permissions::ADD)
    ///     .partition("Sales")
    ///     .expires_in(Duration::from_secs(3600))
    ///     .sign()?;
    ///
    /// let guest = TableClient::from_sas_url(&url.expose())?;
    /// guest.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let error = guest.delete(Employee::key("Sales", "1")).await.unwrap_err();
    /// assert_eq!(error.code().unwrap().as_str(), "AuthorizationPermissionMismatch");
    /// let error = guest.insert(&Employee::new("Legal", "1", "Ada")).await.unwrap_err();
    /// assert_eq!(error.code().unwrap().as_str(), "AuthorizationFailure");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`sign`](TableSasBuilder::sign).
    #[doc(alias("generate_sas", "generate_table_sas", "generate_sas_url"))]
    pub fn sas(&self) -> TableSasBuilder {
        TableSasBuilder::new(self.table.clone())
    }

    /// Inserts an entity that must not exist yet. One that has
    /// [expired](derive@crate::TableEntity#expires) is replaced, under its ETag: two requests more.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let stored = table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// assert_eq!(stored.name, "Ada");
    /// println!("inserted as version {}", stored.etag());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `EntityAlreadyExists`, `TableNotFound`; [`ErrorKind::Input`](crate::ErrorKind::Input),
    /// before anything is sent, when the entity could be written but not read again;
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when it may have been
    /// inserted.
    #[doc(alias("add", "add_entity", "create_entity"))]
    pub fn insert<E: WritableEntity>(&self, entity: &E) -> InsertEntity<E> {
        InsertEntity::new(self.table.clone(), entity)
    }

    /// Reads one entity by its key. Returns `None` when it does not exist. The key is a typed one,
    /// or the two strings as they are stored.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
    /// assert_eq!(ada.name, "Ada");
    /// assert!(table.get::<Employee>(("Sales", "2")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`; and [`ErrorKind::Data`](crate::ErrorKind::Data) when the entity is not of
    /// this type.
    #[doc(alias("get_entity", "get_entity_if_exists", "retrieve"))]
    pub fn get<E: TableEntity>(&self, key: impl KeyOf<E>) -> GetEntity<E> {
        GetEntity::new(self.table_of::<E>(), key.into_entity_key())
    }

    /// Reads many entities. Without a partition or a filter it reads the whole table.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use futures::TryStreamExt;
    ///
    /// # for (id, name) in [("1", "Ada"), ("2", "Grace"), ("3", "Alan")] {
    /// #     table.insert(&Employee::new("Sales", id, name)).await?;
    /// # }
    /// let mut names = table
    ///     .query::<Employee>()
    ///     .partition("Sales")
    ///     .filter(|e| e.name.starts_with("A"))
    ///     .select(|e| (e.id, e.name))
    ///     .stream();
    /// while let Some((id, name)) = names.try_next().await? {
    ///     println!("{id}: {name}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`; [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, for
    /// a filter that cannot be sent or a [scan that is
    /// denied](crate::TableServiceClientBuilder::deny_scans); and
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) when an entity is not of this type.
    #[doc(alias("query_entities", "list_entities"))]
    pub fn query<E: TableEntity>(&self) -> QueryEntities<E> {
        QueryEntities::new(self.table_of::<E>())
    }

    /// Replaces an entity if its stored version is the one that was read. Returns the new ETag,
    /// which is put into `entity`, too.
    ///
    /// Properties that the struct does not have are removed.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
    /// let mut stale = ada.clone();
    /// ada.name = "Ada L.".to_owned();
    /// table.replace(&mut ada).await?;
    ///
    /// stale.name = "A. Lovelace".to_owned();
    /// let error = table.replace(&mut stale).await.unwrap_err();
    /// assert!(error.is_precondition_failed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity was written since the read, `ResourceNotFound`
    /// when it no longer exists, `TableNotFound`; and [`ErrorKind::Input`](crate::ErrorKind::Input)
    /// when a key field changed.
    #[doc(alias("update", "update_entity"))]
    #[rustfmt::skip] // A message about an entity that was not read shows the next line.
    pub fn replace<'e, E: WritableEntity>( // a plain entity was not read: write it by `replace_if` or `upsert_replace`
        &self,
        entity: &'e mut Stored<E>,
    ) -> Write<&'e mut Stored<E>> {
        Write::of_stored(self.table.clone(), Mode::Replace, entity)
    }

    /// Merges an entity if its stored version is the one that was read. Properties that the struct
    /// does not have stay, and so does the stored value of an `Option` that is `None`. Returns the
    /// new ETag, which is put into `entity`, too.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
    /// ada.name = "Ada Lovelace".to_owned();
    /// table.merge(&mut ada).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace).
    #[doc(alias("update", "update_entity"))]
    #[rustfmt::skip] // A message about an entity that was not read shows the next line.
    pub fn merge<'e, E: Standalone>( // a plain entity was not read: write it by `merge_if` or `upsert_merge`
        &self,
        entity: &'e mut Stored<E>,
    ) -> Write<&'e mut Stored<E>> {
        Write::of_stored(self.table.clone(), Mode::Merge, entity)
    }

    /// Replaces an entity if its stored version is the one with that ETag. Returns the new ETag.
    ///
    /// For an ETag that came from outside, such as the `If-Match` header of a request, with an
    /// entity that came with it. For an entity that this program read, [`replace`](Self::replace)
    /// has the ETag. Properties that the struct does not have are removed.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use tablesdk::{ETag, TableClient};
    ///
    /// /// The status of `PUT /employees/…`, and the new ETag.
    /// async fn put(
    ///     table: &TableClient,
    ///     employee: &Employee,
    ///     if_match: &str,
    /// ) -> Result<(u16, Option<ETag>), tablesdk::Error> {
    ///     let Ok(etag) = if_match.parse::<ETag>() else {
    ///         return Ok((400, None));
    ///     };
    ///     match table.replace_if(employee, etag).await {
    ///         Ok(etag) => Ok((204, Some(etag))),
    ///         Err(error) if error.is_precondition_failed() => Ok((412, None)),
    ///         Err(error) if error.is_not_found() => Ok((404, None)),
    ///         Err(error) => Err(error),
    ///     }
    /// }
    ///
    /// let mut ada = Employee::new("Sales", "1", "Ada");
    /// let read = table.insert(&ada).await?.etag().to_string(); // what a browser got
    /// ada.name.push_str(" Lovelace");
    /// assert_eq!(put(&table, &ada, &read).await?.0, 204);
    /// assert_eq!(put(&table, &ada, &read).await?.0, 412, "it was written since");
    /// assert_eq!(put(&table, &ada, "*").await?.0, 400);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// With [`ETag::ANY`], it replaces an entity that must exist, whatever its version: a
    /// concurrent change by another client is lost.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// use tablesdk::ETag;
    ///
    /// table.replace_if(&Employee::new("Sales", "1", "Grace"), ETag::ANY).await?;
    /// let missing = table.replace_if(&Employee::new("Sales", "2", "Alan"), ETag::ANY);
    /// assert!(missing.await.unwrap_err().is_not_found());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity has another ETag, `ResourceNotFound` when it
    /// does not exist, `InvalidInput` when the service cannot read the ETag, `TableNotFound`.
    pub fn replace_if<E: Standalone>(&self, entity: &E, etag: impl Borrow<ETag>) -> Write {
        self.write_if(Mode::Replace, entity, etag.borrow())
    }

    /// Merges into an entity if its stored version is the one with that ETag. Returns the new ETag.
    ///
    /// For an ETag that came from outside, or [`ETag::ANY`], as [`replace_if`](Self::replace_if).
    /// Properties that the struct does not have stay, and so does the stored value of an `Option`
    /// that is `None`.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let etag = table.insert(&Employee::new("Sales", "1", "Ada")).await?.etag().clone();
    /// let next = table.merge_if(&Employee::new("Sales", "1", "Ada Lovelace"), etag).await?;
    /// assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().etag(), &next);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`replace_if`](Self::replace_if).
    pub fn merge_if<E: Standalone>(&self, entity: &E, etag: impl Borrow<ETag>) -> Write {
        self.write_if(Mode::Merge, entity, etag.borrow())
    }

    fn write_if<E: Standalone>(&self, mode: Mode, entity: &E, etag: &ETag) -> Write {
        let if_match = IfMatch::from(etag);
        Write::of_value(self.table.clone(), mode, Some(if_match), entity)
    }

    /// Inserts an entity, or replaces the existing one, whatever its version. Returns the new ETag.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// table.upsert_replace(&Employee::new("Sales", "1", "Ada")).await?;
    /// table.upsert_replace(&Employee::new("Sales", "1", "Grace")).await?;
    /// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Grace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`.
    #[doc(alias("upsert", "upsert_entity", "insert_or_replace", "put"))]
    pub fn upsert_replace<E: Standalone>(&self, entity: &E) -> Write {
        Write::of_value(self.table.clone(), Mode::Replace, None, entity)
    }

    /// Inserts an entity, or merges it into the existing one, whatever its version. Returns the new
    /// ETag.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// table.upsert_merge(&Employee::new("Sales", "1", "Ada")).await?;
    /// table.upsert_merge(&Employee::new("Sales", "1", "Grace")).await?;
    /// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Grace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`.
    #[doc(alias("upsert", "upsert_entity", "insert_or_merge"))]
    pub fn upsert_merge<E: Standalone>(&self, entity: &E) -> Write {
        Write::of_value(self.table.clone(), Mode::Merge, None, entity)
    }

    /// Deletes an entity by its key, whatever its version. Returns `false` when it does not exist.
    ///
    /// After success the entity does not exist. `true` means that this call deleted it, with one
    /// exception: if a response was lost and the retry found no entity, this call deleted it, or
    /// another client did in the meantime, or it never existed.
    /// [`exactly_once`](DeleteEntity::exactly_once) distinguishes these cases.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// assert!(table.delete(Employee::key("Sales", "1")).await?);
    /// assert!(!table.delete(("Sales", "1")).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`.
    #[doc(alias("delete_entity", "remove"))]
    pub fn delete<K: IntoEntityKey>(&self, key: K) -> DeleteEntity {
        const { check_standalone_key::<K>() }
        DeleteEntity::new(self.table.clone(), key.into_entity_key())
    }

    /// Deletes an entity if its stored version is the one that was read. Returns `false` when it
    /// does not exist.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
    /// table.upsert_merge(&Employee::new("Sales", "1", "Grace")).await?; // another client
    /// assert!(table.delete_stored(&ada).await.unwrap_err().is_precondition_failed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity was written since the read, `TableNotFound`.
    pub fn delete_stored<E: TableEntity>(&self, entity: &Stored<E>) -> DeleteEntity {
        const { check_no_entry::<E>() }
        DeleteEntity::of_stored(self.table.clone(), entity)
    }

    /// Reads many entities by their keys, several at a time. The result has the order of the keys,
    /// with `None` for an entity that does not exist.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "2", "Grace")).await?;
    /// let keys = ["1", "2"].map(|id| Employee::key("Sales", id));
    /// let found = table.get_many(keys).concurrency(2).await?;
    /// assert!(found[0].is_none());
    /// assert_eq!(found[1].as_ref().unwrap().name, "Grace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). The first error ends the operation.
    pub fn get_many<E, K>(&self, keys: impl IntoIterator<Item = K>) -> GetMany<E>
    where
        E: TableEntity,
        K: KeyOf<E>,
    {
        let keys = keys.into_iter().map(IntoEntityKey::into_entity_key);
        GetMany::new(self.table_of::<E>(), keys.collect())
    }

    /// Reads an entity, changes it, and writes it if it has not changed since the read. If it has
    /// changed, the operation starts over with the current entity. Properties that the struct does
    /// not have stay as they are. Properties that became `None` are removed.
    ///
    /// The closure runs once per round, each time with the entity that was read in this round. It
    /// may borrow, and its value is returned: see [`Modified`](crate::action::Modified). It fails
    /// with any error, by `?` or by `into`; then nothing is written, and [`Error::downcast_ref`]
    /// returns its error.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// # #[derive(Debug)]
    /// # struct Renamed;
    /// # impl std::fmt::Display for Renamed {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("she has that name") }
    /// # }
    /// # impl std::error::Error for Renamed {}
    /// let name = String::from(" Lovelace");
    /// let marry = |e: &mut Employee| {
    ///     if e.name.ends_with(&name) {
    ///         return Err(Renamed);
    ///     }
    ///     e.name.push_str(&name);
    ///     Ok(())
    /// };
    ///
    /// let ada = table.modify(Employee::key("Sales", "1"), |e| Ok(marry(e)?)).await?;
    /// assert_eq!(ada.name, "Ada Lovelace");
    ///
    /// let error = table.modify(Employee::key("Sales", "1"), |e| Ok(marry(e)?)).await.unwrap_err();
    /// assert!(error.downcast_ref::<Renamed>().is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A key that is two strings does not name the type:
    /// `table.modify::<Employee, _>(("Sales", "1"), |e| …)`.
    ///
    /// # Errors
    ///
    /// `ResourceNotFound`, `TableNotFound`. `UpdateConditionNotSatisfied` when other clients wrote
    /// the entity in every [round](Modify::rounds), until the 16 rounds (the default) or the
    /// [deadline](crate::RetryPolicy::deadline) for all rounds were used up.
    /// [`ErrorKind::Aborted`](crate::ErrorKind::Aborted) when the closure fails;
    /// [`Error::downcast_ref`] returns its error.
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the change may have
    /// been written.
    #[doc(alias = "read_modify_write")]
    pub fn modify<'a, E, T>(
        &self,
        key: impl KeyOf<E>,
        change: impl FnMut(&mut E) -> Result<T, ClosureError> + Send + 'a,
    ) -> Modify<'a, E, T>
    where
        E: WritableEntity,
        T: Send + 'a,
    {
        Modify::new(self.table.clone(), key.into_entity_key(), change)
    }

    /// Sets some properties of an entity that must exist, whatever its ETag. Returns the new ETag.
    ///
    /// A patch writes only these properties, and not the entity type. An entity of an [older
    /// version](derive@crate::TableEntity#from) of the struct, or of another variant of an enum,
    /// would be read without what the patch sets. So the type of the entity is checked:
    ///
    /// * If `E` has no [entity type](derive@crate::TableEntity#entity_type), there is nothing to
    ///   check: one request.
    /// * If `E` has an entity type, or is an enum of such types, the patch first reads the type,
    ///   which is one more request. The write is conditional on the version that was read. If
    ///   another client wrote the entity in between, the patch starts over, up to 16 rounds within
    ///   one deadline, as [`modify`](Self::modify) does. An entity of another type, variant or
    ///   version is [`ErrorKind::Data`](crate::ErrorKind::Data), and nothing is written: use
    ///   `modify`, which converts an older version.
    /// * If `E` is an enum [by row key](derive@crate::TableEntity#by), or has a row key with a
    ///   prefix, the key shows the type: a patch with another row key is
    ///   [`ErrorKind::Input`](crate::ErrorKind::Input), without a request.
    ///
    /// With [`if_match`](Patch::if_match) the same is checked, and the write has the condition of
    /// that ETag.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// table
    ///     .patch(Employee::key("Sales", "1"))
    ///     .set(|e| e.name, "Ada Lovelace")
    ///     .await?;
    /// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Ada Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `ResourceNotFound`, `TableNotFound`; [`ErrorKind::Data`](crate::ErrorKind::Data) when the
    /// entity is of another type or version; and [`ErrorKind::Input`](crate::ErrorKind::Input) when
    /// no property is set, when a key or the timestamp is set, or when properties of two variants
    /// are set. `UpdateConditionNotSatisfied` when other clients wrote the entity in every round.
    pub fn patch<E: TableEntity>(&self, key: impl KeyOf<E>) -> Patch<E> {
        const { check_standalone::<E>() }
        Patch::new(self.table.clone(), key.into_entity_key())
    }

    /// Starts a batch: up to 100 changes in one partition, which are carried out together or not at
    /// all.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "3", "Alan")).await?;
    /// let mut ada = table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// ada.name = "Ada L.".to_owned();
    /// let grace = Employee::new("Sales", "2", "Grace");
    /// let alan = Employee::key("Sales", "3");
    ///
    /// table.batch("Sales").insert(&grace).replace(&mut ada).delete(alan).await?;
    /// // The new ETag is in `ada`: it can be written again.
    /// table.replace(&mut ada).await?;
    ///
    /// let again = table.batch("Sales").delete_stored(&ada).insert(&grace).await;
    /// let error = again.unwrap_err();
    /// assert_eq!((error.batch_index(), error.operation()), (Some(1), Some("insert entity")));
    /// assert!(error.is_conflict());
    /// assert!(table.get(Employee::key("Sales", "1")).await?.is_some(), "nothing happened");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of a [`Batch`].
    #[doc(alias(
        "submit_transaction",
        "execute_batch",
        "entity_group_transaction",
        "TableBatchOperation",
        "TableTransactionAction"
    ))]
    pub fn batch<'e>(&self, partition: impl IntoPartitionKey) -> Batch<'e> {
        Batch::new(self.table.clone(), partition.into_partition_key())
    }

    /// Reads entities of one partition, decides, and writes the changes together, if what was read
    /// has not changed since. If it has changed, the closure runs again. What
    /// [`modify`](Self::modify) is for one entity, this is for several, of any types.
    ///
    /// ```
    #[doc = include_str!("../docs/departments.md")]
    /// let employee = Employee::new("Sales", "7", "Ada");
    /// let id = table
    ///     .transaction(Employee::partition("Sales"), async |tx| {
    ///         let mut department = tx.get(Department::key("Sales")).await?.ok_or(NoDepartment)?;
    ///         department.headcount += 1;
    ///         tx.replace(department).insert(&employee);
    ///         Ok(employee.id.clone())
    ///     })
    ///     .await?;
    /// # assert_eq!(id, "7");
    /// # assert_eq!(table.get(Department::key("Sales")).await?.unwrap().headcount, 1);
    /// # assert!(table.get(Employee::key("Sales", "7")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # What is checked
    ///
    /// Nothing is locked. The entities that the closure reads with [`Transaction::get`] are checked
    /// when the changes are written:
    ///
    /// * A change of an entity that was read is carried out only if the entity is still the version
    ///   that was read.
    /// * An entity that was only read is checked by a merge without properties under its ETag,
    ///   because the service has no change that only compares. It counts as one of the 100 changes.
    ///   It keeps the properties and makes a new version, with a new ETag and timestamp. So
    ///   transactions that only read the same entity conflict with each other, and so does a
    ///   `replace` by another client. Read an entity with [`TableClient::get`](Self::get) if it
    ///   need not be checked.
    /// * An entity that was read as missing is checked if the transaction inserts it. Otherwise it
    ///   is not checked, because no change of the service does that: another client may insert it
    ///   at the same time. If that matters, let both transactions change an entity that exists,
    ///   such as the department.
    ///
    /// The changes are carried out together, so that their order means nothing to what is stored.
    /// The changes that depend on a read are sent first: if another client has written what was
    /// read, the closure runs again, whatever else the service would refuse. Only if that is
    /// unchanged, the error is that of another change, such as `EntityAlreadyExists`. Errors number
    /// the changes as the closure made them.
    ///
    /// A transaction without changes sends no batch: its reads are not checked, and may be of
    /// different times. Entities of a query in the closure are not checked either: read those that
    /// the decision depends on with `get`.
    ///
    /// # The closure
    ///
    /// It runs once in each [round](RunTransaction::rounds), so its other effects are repeated. It
    /// gets the transaction by value and borrows from the caller by shared reference: write
    /// `async |tx|`, without `move`, and return what the caller needs instead of changing a
    /// variable of the caller. A closure that has to own its values clones them in each round:
    ///
    /// ```
    #[doc = include_str!("../docs/departments.md")]
    /// let employee = Employee::new("Sales", "7", "Ada");
    /// let hire = move |tx: tablesdk::action::Transaction| {
    ///     let employee = employee.clone();
    ///     async move {
    ///         tx.insert(&employee);
    ///         Ok(())
    ///     }
    /// };
    /// table.transaction(Employee::partition("Sales"), hire).await?;
    /// # assert!(table.get(Employee::key("Sales", "7")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The result is the value of the closure. [`with_etags`](RunTransaction::with_etags) adds the
    /// entities that were written, with their new ETags.
    ///
    /// Its future is `Send`, so that web handlers and
    /// [`tokio::spawn`](https://docs.rs/tokio/latest/tokio/fn.spawn.html) can run it.
    ///
    /// An error of the closure ends the transaction, and nothing is written. A
    /// [`tablesdk::Error`](crate::Error) that `?` passes through is returned as it is. For any
    /// other error the kind is [`ErrorKind::Aborted`](crate::ErrorKind::Aborted), and
    /// [`Error::downcast_ref`](crate::Error::downcast_ref) returns it. The reads before an error
    /// are not checked, and may be of different times.
    ///
    /// # Errors
    ///
    /// The error of a change has its [`key`](crate::Error::key) and
    /// [`batch_index`](crate::Error::batch_index), such as `EntityAlreadyExists` for an inserted
    /// entity that was not read. `UpdateConditionNotSatisfied`, `EntityAlreadyExists` or
    /// `ResourceNotFound` for an entity that was read when other clients wrote it in every round.
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input), before the batch is sent, for an entity of
    /// another partition, for two changes of one entity, for a change that contradicts a read, such
    /// as the insert of an entity that was read, and when changes and checks are more than 100 (99
    /// with [`exactly_once`](RunTransaction::exactly_once)) or 4 MiB (2 MiB on Cosmos DB).
    ///
    /// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when a response was lost and
    /// either all changes or none may have been carried out. The closure does not run again then.
    pub fn transaction<'a, T, F, Fut>(
        &self,
        partition: impl IntoPartitionKey,
        decide: F,
    ) -> RunTransaction<'a, T>
    where
        T: Send + 'a,
        // A message about a closure that moves what it captures shows the next line.
        F: FnMut(Transaction) -> Fut + Send + 'a, // it runs again: borrow with `async |tx|`, or clone
        Fut: Future<Output = Result<T, ClosureError>> + Send + 'a,
    {
        let partition = partition.into_partition_key();
        RunTransaction::new(self.table.clone(), partition, decide)
    }

    /// Starts a bulk run, which writes or deletes any number of entities over any partitions, from
    /// a stream.
    ///
    /// It is not atomic. Entities are grouped into batches of one partition, of up to 100 changes
    /// and 4 MiB (2 MiB on Cosmos DB). Several batches are in flight at a time. Memory use is
    /// bounded, however long the input is. Changes of the same entity keep their order. When an
    /// entity is rejected, the other entities of its batch are still written.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use futures::stream;
    ///
    /// let employees = (0..250).map(|id| {
    ///     let department = ["Sales", "Marketing"][id % 2];
    ///     Employee::new(department, &id.to_string(), "Ada")
    /// });
    /// let report = table.bulk().upsert_replace(stream::iter(employees)).concurrency(4).await?;
    /// assert!(report.is_success());
    /// assert_eq!(report.progress().written, 250);
    /// assert_eq!(report.progress().requests, 4, "two full batches, and two of 25");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A [`BulkError`](crate::action::BulkError) when the run ends early. Errors of single entities
    /// are in the [report](crate::action::BulkReport).
    pub fn bulk<'a>(&self) -> Bulk<'a, false> {
        Bulk::new(self.table.clone())
    }
}

impl TableClient {
    /// Deletes the markers that operations with `exactly_once` left behind in a partition: markers
    /// of programs that ended in the middle of such an operation, and markers that had to stay
    /// because a response was lost. Returns how many markers were deleted.
    ///
    /// No query of this client shows markers. Programs in other languages see entities whose row
    /// key starts with `~tablesdk.once.`.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use std::time::Duration;
    ///
    /// let day = Duration::from_secs(24 * 60 * 60);
    /// let deleted = table.clean_up_markers("Sales").older_than(day).await?;
    /// # assert_eq!(deleted, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `TableNotFound`; and [`ErrorKind::Input`](crate::ErrorKind::Input) when the age includes
    /// markers that may still be needed.
    pub fn clean_up_markers(&self, partition: impl IntoPartitionKey) -> CleanUpMarkers {
        CleanUpMarkers::new(self.table.clone(), partition.into_partition_key())
    }
}

impl fmt::Debug for TableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableClient")
            .field("name", &self.name())
            .field("endpoint", &self.table.pipeline.endpoint)
            .finish_non_exhaustive()
    }
}
