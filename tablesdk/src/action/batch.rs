//! `batch`: an entity group transaction, checked before it is sent.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>.

use std::borrow::Borrow;
use std::fmt;

use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, PartitionKey, TableName};

use super::extend::count::RequestCount;
use super::extend::ride::{Commit, ETags, Riders};
use super::get_entity::RawEntity;
use super::patch::{self, PatchProperties};
use super::refusal::refused;
use super::write::ambiguous_write::resolve;
use super::write::change::{ChangeKind, EntityChange};
use super::write::commit::commit_changes;
use super::write::encoded::EncodedEntity;
use super::write::keep_marker::KeepMarker;
use super::write::row_keys::RowKeys;
use crate::entity::key::{IntoEntityKey, KeyOf, check_standalone_key};
use crate::entity::standalone::{check_no_entry, check_standalone};
use crate::entity::variants::ColumnOwner;
use crate::entity::{EntityError, Standalone, Stored, TableEntity, WritableEntity};
use crate::error::{CurrentState, Error};
use crate::filter::AccessClass;
use crate::pipeline::{OperationRun, Table};
use crate::query::Explanation;

/// Changes of entities in one partition that are carried out together or not at all. See
/// [`TableClient::batch`](crate::TableClient::batch).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// # table.insert(&Employee::new("Sales", "2", "Alan")).await?;
/// let mut ada = table.get(Employee::key("Sales", "1")).await?.expect("she works here");
/// let alan = table.get(Employee::key("Sales", "2")).await?.expect("he works here");
/// ada.name.push_str(" Lovelace");
///
/// let batch = table
///     .batch(Employee::partition("Sales"))
///     .merge(&mut ada)
///     .delete_stored(&alan)
///     .insert(&Employee::new("Sales", "3", "Grace"))
///     .upsert_replace(&Employee::new("Sales", "4", "Edsger"));
/// assert_eq!(batch.len(), 4);
/// let result = batch.await?;
///
/// // An ETag for each change, in their order; a delete has none.
/// assert_eq!(result.etags()[0].as_ref(), Some(ada.etag()));
/// assert_eq!(result.etags()[1], None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Awaiting it returns the error of the first change that cannot be carried out:
/// [`Error::batch_index`] returns its index, [`Error::operation`] its operation, and [`Error::key`]
/// its key.
///
/// [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, when the batch has
/// neither changes nor [steps](Self::step), or more than 100 of both (99 with
/// [`exactly_once`](Self::exactly_once)), when the request is larger than 4 MiB (2 MiB on Cosmos
/// DB), when a change is in another partition, or when two changes are about the same entity.
///
/// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when either all changes or none
/// may have been carried out. [`Error::current`] then describes the entity of the change that the
/// last response was about.
#[must_use = "a batch does nothing until awaited"]
pub struct Batch<'e> {
    table: Table,
    partition: Result<PartitionKey, Error>,
    items: Vec<Item<'e>>,
    /// Most keys are seen to be new without a comparison with each.
    row_keys: RowKeys,
    /// The number of changes, with those after the first error.
    added: usize,
    /// The first error of a change.
    refused_change: Option<Error>,
    /// The riders of the batch as a whole.
    riders: Riders,
    pub(crate) exactly_once: Option<KeepMarker>,
}

struct Item<'e> {
    operation: &'static str,
    kind: ChangeKind,
    entity: EncodedEntity,
    written: Option<Written<'e>>,
    /// The type that the entity of a patch must have; `None` for other changes.
    owner: Option<ColumnOwner>,
}

/// Puts the new ETag into an entity that was written.
type Written<'e> = Box<dyn FnOnce(ETag) + Send + 'e>;

impl<'e> Batch<'e> {
    /// As [`new`](Self::new), with what goes along with all changes.
    pub(crate) fn with_riders(
        table: Table,
        partition: PartitionKey,
        riders: Riders,
        exactly_once: Option<KeepMarker>,
    ) -> Self {
        Self {
            riders,
            exactly_once,
            ..Self::new(table, Ok(partition))
        }
    }

    pub(crate) fn new(table: Table, partition: Result<PartitionKey, EntityError>) -> Self {
        let partition = partition.map_err(|error| refused(OPERATION, error));
        Self {
            partition: table.checked_name(OPERATION).and(partition),
            table,
            items: Vec::new(),
            row_keys: RowKeys::default(),
            added: 0,
            refused_change: None,
            riders: Riders::NONE,
            exactly_once: None,
        }
    }

    /// The number of changes in the batch, without its [steps](Self::step).
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if the batch has no changes and no steps.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.riders.are_committed_alone()
    }

    /// Inserts an entity that must not exist yet.
    pub fn insert<E: WritableEntity>(self, entity: &E) -> Self {
        self.write(ChangeKind::Insert, entity)
    }

    /// Inserts an entity, or replaces the existing one, whatever its version.
    pub fn upsert_replace<E: Standalone>(self, entity: &E) -> Self {
        self.write(ChangeKind::Update(Mode::Replace, None), entity)
    }

    /// Inserts an entity, or merges it into the existing one, whatever its version.
    pub fn upsert_merge<E: Standalone>(self, entity: &E) -> Self {
        self.write(ChangeKind::Update(Mode::Merge, None), entity)
    }

    /// Replaces an entity if its stored version is the one that was read. The new ETag is put into
    /// `entity` when the batch has succeeded.
    #[rustfmt::skip] // A message about an entity that was not read shows the next line.
    pub fn replace<E: WritableEntity>( // a plain entity was not read: write it by `replace_if` or `upsert_replace`
        self,
        entity: &'e mut Stored<E>,
    ) -> Self {
        self.write_stored(Mode::Replace, entity)
    }

    /// Merges an entity if its stored version is the one that was read. The new ETag is put into
    /// `entity` when the batch has succeeded.
    #[rustfmt::skip] // A message about an entity that was not read shows the next line.
    pub fn merge<E: Standalone>( // a plain entity was not read: write it by `merge_if` or `upsert_merge`
        self,
        entity: &'e mut Stored<E>,
    ) -> Self {
        self.write_stored(Mode::Merge, entity)
    }

    /// Replaces an entity if its stored version is the one with that ETag, which came from outside;
    /// with [`ETag::ANY`], whatever its version.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "2", "Alan")).await?;
    /// # let alan = table.get(Employee::key("Sales", "2")).await?.unwrap().etag().clone();
    /// let ada = table.insert(&Employee::new("Sales", "1", "Ada")).await?.etag().clone();
    /// let result = table
    ///     .batch("Sales")
    ///     .replace_if(&Employee::new("Sales", "1", "Ada Lovelace"), ada)
    ///     .delete_if(Employee::key("Sales", "2"), alan)
    ///     .await?;
    /// assert!(result.etags()[0].is_some(), "the new ETag");
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace_if<E: Standalone>(self, entity: &E, etag: impl Borrow<ETag>) -> Self {
        let if_match = IfMatch::from(etag.borrow());
        self.write(ChangeKind::Update(Mode::Replace, Some(if_match)), entity)
    }

    /// Merges into an entity if its stored version is the one with that ETag, which came from
    /// outside; with [`ETag::ANY`], whatever its version.
    pub fn merge_if<E: Standalone>(self, entity: &E, etag: impl Borrow<ETag>) -> Self {
        let if_match = IfMatch::from(etag.borrow());
        self.write(ChangeKind::Update(Mode::Merge, Some(if_match)), entity)
    }

    /// Sets some properties of an entity that must exist, whatever its version.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// table
    ///     .batch("Sales")
    ///     .patch(Employee::key("Sales", "1"), |patch| patch.set(|e| e.name, "Ada Lovelace"))
    ///     .insert(&Employee::new("Sales", "2", "Grace"))
    ///     .await?;
    /// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Ada Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Checks the type of the entity as [`TableClient::patch`](crate::TableClient::patch) does: if
    /// `E` has an entity type or is an enum of such types, the batch first reads the type of each
    /// patched entity, one request for each, and is then conditional on the versions that were
    /// read. It does not start over: if another client writes such an entity in between, the batch
    /// fails with `UpdateConditionNotSatisfied`.
    pub fn patch<E: TableEntity>(
        self,
        key: impl KeyOf<E>,
        set: impl FnOnce(PatchProperties<E>) -> PatchProperties<E>,
    ) -> Self {
        self.patch_when(IfMatch::Any, key, set)
    }

    /// Sets some properties of an entity if its stored version is the one with that ETag; with
    /// [`ETag::ANY`], as [`patch`](Self::patch). Checks its type as that.
    pub fn patch_if<E: TableEntity>(
        self,
        key: impl KeyOf<E>,
        etag: impl Borrow<ETag>,
        set: impl FnOnce(PatchProperties<E>) -> PatchProperties<E>,
    ) -> Self {
        self.patch_when(IfMatch::from(etag.borrow()), key, set)
    }

    fn patch_when<E: TableEntity>(
        mut self,
        if_match: IfMatch,
        key: impl KeyOf<E>,
        set: impl FnOnce(PatchProperties<E>) -> PatchProperties<E>,
    ) -> Self {
        const { check_standalone::<E>() }
        let kind = ChangeKind::Update(Mode::Merge, Some(if_match));
        let operation = patch::OPERATION;
        let key = key.into_entity_key();
        let encoded = key
            .map_err(|error| refused(operation, error))
            .and_then(|key| {
                let encoded = set(PatchProperties::new()).encode(&key);
                encoded.map_err(|error| error.with_operation(operation).with_key(&key))
            });
        let (entity, owner) = match encoded {
            Ok((entity, owner)) => (Ok(entity), Some(owner)),
            Err(error) => (Err(error), None),
        };
        let before = self.items.len();
        self = self.add(kind, entity, None);
        if let Some(item) = self.items.get_mut(before) {
            item.owner = owner;
            item.operation = operation;
        }
        self
    }

    /// Deletes an entity that must exist, whatever its version.
    pub fn delete<K: IntoEntityKey>(self, key: K) -> Self {
        const { check_standalone_key::<K>() }
        self.delete_when(IfMatch::Any, key)
    }

    /// Deletes an entity if its stored version is the one with that ETag, which came from outside;
    /// with [`ETag::ANY`], whatever its version.
    pub fn delete_if<K: IntoEntityKey>(self, key: K, etag: impl Borrow<ETag>) -> Self {
        const { check_standalone_key::<K>() }
        self.delete_when(IfMatch::from(etag.borrow()), key)
    }

    /// Deletes an entity if its stored version is the one that was read.
    pub fn delete_stored<E: TableEntity>(self, entity: &Stored<E>) -> Self {
        const { check_no_entry::<E>() }
        let kind = ChangeKind::Delete(IfMatch::ETag(entity.etag().clone()));
        self.add(kind, Ok(EncodedEntity::deleted(entity)), None)
    }

    fn delete_when(self, if_match: IfMatch, key: impl IntoEntityKey) -> Self {
        let kind = ChangeKind::Delete(if_match);
        let key = key.into_entity_key();
        let key = key.map_err(|error| refused(kind.operation(), error));
        self.add(kind, key.map(EncodedEntity::of_key), None)
    }

    /// Returns the number of requests and changes of the batch, with those of indexes, copies,
    /// steps and encryption, if it meets neither another client nor an error. Nothing is sent.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let (ada, grace) = (Employee::new("Sales", "1", "Ada"), Employee::new("Sales", "2", "Grace"));
    /// let batch = table.batch("Sales").insert(&ada).insert(&grace).exactly_once();
    /// let explanation = batch.explain()?;
    /// // The marker of `exactly_once` is a change, and is deleted by a request of its own.
    /// assert_eq!((explanation.requests(), explanation.changes()), (2, 3));
    /// batch.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) when the batch would be refused before
    /// anything is sent, because of the number or the keys of its own changes. Their size is not
    /// checked.
    pub fn explain(&self) -> Result<Explanation, Error> {
        let explained = self.explained();
        explained.map_err(|error| {
            let error = error.with_batch_size(self.added);
            self.table.pipeline.locate(error)
        })
    }

    fn explained(&self) -> Result<Explanation, Error> {
        let name = self.table.checked_name(OPERATION)?;
        let partition = self.partition.as_ref();
        let partition = partition.map_err(Error::for_another_caller)?;
        if let Some(refused) = &self.refused_change {
            return Err(refused.for_another_caller());
        }
        check_len(self.items.len(), &self.riders, self.exactly_once)?;
        let changes = self.own_changes(&name);
        let commit = Commit {
            table: &name,
            partition,
            changes: &changes,
            riders: &self.riders,
            exactly_once: self.exactly_once,
        };
        let count = RequestCount::of(&self.table, commit);
        let sent: Vec<_> = changes.iter().map(|it| it.change.clone()).collect();
        let request = self.table.pipeline.encode_batch(&sent);
        let owners = self.items.iter().filter_map(|item| item.owner);
        let checked = owners
            .filter(|owner| owner.type_property().is_some())
            .count();
        Ok(Explanation {
            method: "POST",
            url: request.uri().to_string(),
            filter: None,
            access: AccessClass::Point,
            advice: None,
            contradiction: None,
            is_ordered: true,
            requests: count.requests + checked,
            more: count.more,
            changes: Some(count.changes),
        })
    }

    /// The changes of the program, without what goes along with them.
    fn own_changes(&self, name: &TableName) -> Vec<EntityChange> {
        let changes = self.items.iter().map(|item| {
            let (kind, entity) = (item.kind.clone(), item.entity.clone());
            EntityChange::of(name.clone(), kind, entity)
        });
        changes.collect()
    }

    async fn run(self) -> Result<BatchResult, Error> {
        let size = self.added;
        let result = self.carried_out().await;
        result.map_err(|error| error.with_batch_size(size))
    }

    async fn carried_out(self) -> Result<BatchResult, Error> {
        let (table, exactly_once) = (self.table.clone(), self.exactly_once);
        let name = table.checked_name(OPERATION)?;
        let (partition, items, riders) = self.into_items()?;
        check_len(items.len(), &riders, exactly_once)?;
        let mut run = table.pipeline.begin(OPERATION);
        let owners = items.iter().enumerate();
        let owners = owners.filter_map(|(index, item)| Some((index, item.owner?)));
        let owners: Vec<_> = owners.collect();
        let (mut changes, writes) = match changes(&table, &name, items).await {
            Ok(changes) => changes,
            Err(error) => return run.end(Err(error)),
        };
        if let Err(error) = check_types(&mut run, &table, &mut changes, owners).await {
            return run.end(Err(error));
        }
        let commit = Commit {
            table: &name,
            partition: &partition,
            changes: &changes,
            riders: &riders,
            exactly_once,
        };
        let etags = send(&mut run, commit).await;
        let deadline = run.deadline();
        let etags = run.end(etags)?;
        for (written, etag) in writes.into_iter().zip(&etags) {
            if let (Some(written), Some(etag)) = (written, etag) {
                written(etag.clone());
            }
        }
        // Last: a caller that drops the future meanwhile has the new ETags.
        riders.follow_up(&table, &partition, deadline).await;
        Ok(BatchResult { etags, changes })
    }

    fn write<E: WritableEntity>(self, kind: ChangeKind, entity: &E) -> Self {
        let entity = EncodedEntity::inserted(kind.operation(), entity);
        self.add(kind, entity, None)
    }

    fn write_stored<E: WritableEntity>(self, mode: Mode, entity: &'e mut Stored<E>) -> Self {
        let if_match = IfMatch::ETag(entity.etag().clone());
        let kind = ChangeKind::Update(mode, Some(if_match));
        let encoded = EncodedEntity::replaced(kind.operation(), entity);
        self.add(kind, encoded, Some(Box::new(|etag| entity.written(etag))))
    }

    /// The changes and what goes along with them, unless the partition or one of them is refused.
    pub(crate) async fn into_changes(self) -> Result<(Vec<EntityChange>, Riders), Error> {
        let (size, table) = (self.added, self.table.clone());
        let changes = async {
            let (_, items, riders) = self.into_items()?;
            let name = table.checked_name(OPERATION)?;
            let (changes, _) = changes(&table, &name, items).await?;
            Ok((changes, riders))
        };
        changes
            .await
            .map_err(|error: Error| error.with_batch_size(size))
    }

    fn into_items(self) -> Result<(PartitionKey, Vec<Item<'e>>, Riders), Error> {
        let parts = (self.partition?, self.items, self.riders);
        self.refused_change.map_or(Ok(parts), Err)
    }

    /// Adds what goes along with all changes, unless one of them was refused.
    pub(crate) fn ride(&mut self, add: impl FnOnce(&Table, &mut Riders) -> Result<(), Error>) {
        if self.refused_change.is_none() {
            self.refused_change = add(&self.table, &mut self.riders).err();
        }
    }

    /// The size of the request with the changes so far.
    pub(crate) fn body_bytes(&self) -> usize {
        let name = self.table.checked_name(OPERATION);
        let changes = name.iter().flat_map(|name| self.own_changes(name));
        let changes: Vec<_> = changes.map(|change| change.change).collect();
        self.table.pipeline.encode_batch(&changes).body().len()
    }

    pub(crate) fn add(
        mut self,
        kind: ChangeKind,
        entity: Result<EncodedEntity, Error>,
        written: Option<Written<'e>>,
    ) -> Self {
        self.push(kind, entity, written);
        self
    }

    pub(crate) fn push(
        &mut self,
        kind: ChangeKind,
        entity: Result<EncodedEntity, Error>,
        written: Option<Written<'e>>,
    ) {
        self.added += 1;
        let (Ok(partition), None) = (&self.partition, &self.refused_change) else {
            return;
        };
        let operation = kind.operation();
        let item = entity.and_then(|entity| {
            let key = &entity.key;
            kind.check(operation, key)?;
            check_partition(operation, partition, key)?;
            // All keys have the same partition key.
            let is_new = self.row_keys.insert(key.row_key());
            if !is_new && self.items.iter().any(|item| item.entity.key == *key) {
                return Err(refused(operation, BatchProblem::Twice).with_key(key));
            }
            Ok(Item {
                operation,
                kind,
                entity,
                written,
                owner: None,
            })
        });
        match item {
            Ok(item) => self.items.push(item),
            Err(error) => self.refused_change = Some(error.with_batch_index(self.items.len())),
        }
    }
}

action!(impl['e] Batch<'e>, table.pipeline => 'e, BatchResult);
exactly_once_options!(
    impl[] Batch<'_>;
    /// Determines the outcome even when responses are lost. The marker for this is one of the
    /// changes, so the batch can have at most 99 others. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let (ada, grace) = (Employee::new("Sales", "1", "Ada"), Employee::new("Sales", "2", "Grace"));
    /// table.batch("Sales").insert(&ada).insert(&grace).exactly_once().await?;
    /// assert_eq!(table.query::<Employee>().count().await?, 2);
    /// # Ok(())
    /// # }
    /// ```
);

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = self.items.iter();
        let changes = changes.map(|item| (item.operation, &item.entity.key));
        f.debug_struct("Batch")
            .field("table", &self.table)
            .field("partition", &self.partition)
            .field("changes", &changes.collect::<Vec<_>>())
            .field("riders", &self.riders)
            .field("refused", &self.refused_change)
            .finish()
    }
}

/// The result of a batch whose changes were all carried out.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// let (ada, grace) = (Employee::new("Sales", "1", "Ada"), Employee::new("Sales", "2", "Grace"));
/// let result = table.batch("Sales").insert(&ada).insert(&grace).await?;
/// for (employee, etag) in [ada, grace].iter().zip(result.etags()) {
///     println!("{} is stored as {etag:?}", employee.name);
/// }
/// # assert!(result.etags().iter().all(Option::is_some));
/// # Ok(())
/// # }
/// ```
///
/// Two results are equal if their ETags are.
#[derive(Clone, Debug, Default)]
pub struct BatchResult {
    etags: ETags,
    /// The changes, in the same order.
    changes: Vec<EntityChange>,
}

impl PartialEq for BatchResult {
    fn eq(&self, other: &Self) -> bool {
        self.etags == other.etags
    }
}

impl Eq for BatchResult {}

impl FromIterator<(EntityChange, Option<ETag>)> for BatchResult {
    fn from_iter<I: IntoIterator<Item = (EntityChange, Option<ETag>)>>(written: I) -> Self {
        let (changes, etags) = written.into_iter().unzip();
        Self { etags, changes }
    }
}

impl BatchResult {
    /// The new ETags of the entities, in the order of the changes; `None` for a delete.
    pub fn etags(&self) -> &[Option<ETag>] {
        &self.etags
    }

    /// An entity as the batch has written it, with its new ETag, so that it can be written again
    /// without a read. `None` if the batch has neither inserted nor replaced an entity with that
    /// key: after a merge or a patch, other properties may be stored than were sent.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let batch = table.batch("Sales").insert(&Employee::new("Sales", "1", "Ada"));
    /// let result = batch.await?;
    /// let mut ada = result.stored(Employee::key("Sales", "1"))?.expect("it was inserted");
    /// ada.name.push_str(" Lovelace");
    /// table.replace(&mut ada).await?;
    /// assert!(result.stored(Employee::key("Sales", "2"))?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Sends nothing: it is decoded from what was sent. If another client has written the entity
    /// since, its next conditional write fails, as that of an entity that was read. A field for the
    /// [timestamp](derive@crate::TableEntity#etag-and-timestamp) is `None` where the ETags of the
    /// backend contain no time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a key that no entity can have, and
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the entity is not of that type.
    pub fn stored<E: WritableEntity>(
        &self,
        key: impl KeyOf<E>,
    ) -> Result<Option<Stored<E>>, Error> {
        let key = key.into_entity_key();
        let key = key.map_err(|error| refused(OPERATION, error))?;
        let mut written = self.changes.iter().zip(&self.etags);
        let written = written.find(|(change, _)| change.key == key);
        let Some((change, Some(etag))) = written.filter(|(change, _)| change.is_whole()) else {
            return Ok(None);
        };
        let Some(body) = change.body() else {
            return Ok(None);
        };
        let decoded = change.riders.restore(&key, body).and_then(|restored| {
            let content = restored.unwrap_or_else(|| body.clone());
            let etag = etag.clone();
            RawEntity { content, etag }.decode()
        });
        let decoded = decoded.map_err(|error| error.with_operation(OPERATION).with_key(&key));
        decoded.map(Some)
    }
}

/// Refuses a batch of too few or too many changes.
fn check_len(count: usize, riders: &Riders, exactly_once: Option<KeepMarker>) -> Result<(), Error> {
    let problem = match count {
        0 if riders.are_committed_alone() => return Ok(()),
        BATCH_CHANGES_MAX if exactly_once.is_some() => BatchProblem::MarkerExceeds,
        1..=BATCH_CHANGES_MAX => return Ok(()),
        _ => BatchProblem::Count { count },
    };
    Err(refused(OPERATION, problem))
}

/// Reads the types of the entities that are patched, and makes each patch conditional on the
/// version that was read.
async fn check_types(
    run: &mut OperationRun<'_>,
    table: &Table,
    changes: &mut [EntityChange],
    owners: Vec<(usize, ColumnOwner)>,
) -> Result<(), Error> {
    for (index, owner) in owners {
        let Some(change) = changes.get_mut(index) else {
            continue;
        };
        let checked = patch::check(run, table, &change.key, owner).await;
        let checked =
            checked.map_err(|error| error.for_change(change.operation).with_batch_index(index))?;
        if let (Some(etag), Some(IfMatch::Any)) = (checked, change.condition()) {
            change.set_condition(IfMatch::ETag(etag));
        }
    }
    Ok(())
}

/// The changes as they are sent, and what puts the new ETags into the entities.
async fn changes<'e>(
    table: &Table,
    name: &TableName,
    items: Vec<Item<'e>>,
) -> Result<(Vec<EntityChange>, Vec<Option<Written<'e>>>), Error> {
    let mut changes = Vec::with_capacity(items.len());
    let mut writes = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let operation = item.operation;
        // The rest was checked when it was added.
        let entity = item.entity.transformed(table, item.kind.is_whole()).await;
        let failed = |error: Error| error.for_change(operation).with_batch_index(index);
        let entity = entity.map_err(failed)?;
        changes.push(EntityChange {
            operation,
            ..EntityChange::of(name.clone(), item.kind, entity)
        });
        writes.push(item.written);
    }
    Ok((changes, writes))
}

async fn send(run: &mut OperationRun<'_>, commit: Commit<'_>) -> Result<ETags, Error> {
    let sent = commit_changes(run, commit).await;
    resolved(run, commit.changes, sent).await
}

/// Resolves an ambiguous outcome.
async fn resolved(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    sent: Result<ETags, Error>,
) -> Result<ETags, Error> {
    let error = match sent {
        Ok(etags) => {
            run.report().entities = changes.len();
            return Ok(etags);
        }
        Err(error) => error,
    };
    let Some(change) = error.batch_index().and_then(|index| changes.get(index)) else {
        return Err(as_a_whole(error));
    };
    let error = error.for_change(change.operation);
    let (current, error) = resolve(run, change, error).await?;
    Err(error.into_outcome_unknown(current))
}

/// Refuses an entity of another partition.
pub(crate) fn check_partition(
    operation: &'static str,
    partition: &PartitionKey,
    key: &EntityKey,
) -> Result<(), Error> {
    if key.partition_key() == partition {
        return Ok(());
    }
    let partition = partition.as_str().to_owned();
    Err(refused(operation, BatchProblem::Partition { partition }).with_key(key))
}

/// An error that is about no change in particular.
pub(crate) fn as_a_whole(error: Error) -> Error {
    if error.is_ambiguous() {
        error.into_outcome_unknown(CurrentState::Unread)
    } else {
        error
    }
}

#[derive(Clone, Debug, thiserror::Error)]
enum BatchProblem {
    #[error("a batch has 1 to {BATCH_CHANGES_MAX} changes, not {count}")]
    Count { count: usize },
    #[error(
        "a batch has at most {BATCH_CHANGES_MAX} changes, and the marker of `exactly_once` is one of them: 99 are left"
    )]
    MarkerExceeds,
    #[error("the entity is not in the partition {partition:?}")]
    Partition { partition: String },
    #[error("a batch changes an entity only once")]
    Twice,
}

const OPERATION: &str = "batch";
