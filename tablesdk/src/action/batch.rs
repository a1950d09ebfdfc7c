//! `batch`: an entity group transaction, checked before it is sent.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>.

use std::fmt;

use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::batch::{Change, Request};
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::operation::{
    EntityBody, Prefer, delete_entity, insert_entity, update_entity,
};
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, PartitionKey, TableName};

use super::ambiguous_write::{WriteAttempt, resolve};
use super::exactly_once::{self, KeepMarker};
use super::transaction::{Transaction, content};
use super::update_entity::{encode_stored, operation};
use super::{EncodedEntity, check_condition};
use crate::entity::key::IntoEntityKey;
use crate::entity::{EntityError, Stored, WritableEntity};
use crate::error::{CurrentState, Error};
use crate::pipeline::{OperationRun, Table, random_guid};

/// Changes of entities in one partition that are carried out together or not at all. See [`TableClient::batch`](crate::TableClient::batch).
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
/// Awaiting it returns the error of the first change that cannot be carried out: [`Error::batch_index`] returns its index,
/// [`Error::operation`] its operation, and [`Error::key`] its key.
///
/// [`ErrorKind::Input`](crate::ErrorKind::Input), before anything is sent, when the batch has no changes or more than 100 (99
/// with [`exactly_once`](Self::exactly_once)), when the request is larger than 4 MiB, when a change is in another partition, or
/// when two changes are about the same entity.
///
/// [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when either all changes or none may have been carried out.
/// [`Error::current`] then describes the entity of the change that the last response was about.
#[must_use = "a batch does nothing until awaited"]
pub struct Batch<'e> {
    table: Table,
    target: Result<(TableName, PartitionKey), Error>,
    items: Vec<Item<'e>>,
    /// The first error of a change.
    refused: Option<Error>,
    exactly_once: Option<KeepMarker>,
}

struct Item<'e> {
    operation: &'static str,
    key: EntityKey,
    change: Change,
    written: Option<Written<'e>>,
}

impl<'e> Batch<'e> {
    pub(crate) fn new(table: Table, partition: Result<PartitionKey, EntityError>) -> Self {
        let partition = partition.map_err(|error| Error::input(error).with_operation(OPERATION));
        let target = table
            .checked_name(OPERATION)
            .and_then(|name| Ok((name, partition?)));
        Self {
            table,
            target,
            items: Vec::new(),
            refused: None,
            exactly_once: None,
        }
    }

    /// The number of changes in the batch.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the batch has no changes.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Inserts an entity that must not exist yet.
    pub fn insert<E: WritableEntity>(self, entity: &E) -> Self {
        self.insert_encoded(EncodedEntity::new(INSERT, entity))
    }

    pub(super) fn insert_encoded(self, encoded: Result<EncodedEntity, Error>) -> Self {
        self.add(INSERT, encoded, |table, EncodedEntity { key, body }| {
            let change = Change::Insert(insert_entity::Request {
                table,
                entity: EntityBody::from_bytes(body),
                prefer: Prefer::ReturnNoContent,
                level: MetadataLevel::Minimal,
            });
            (key, change, None)
        })
    }

    /// Inserts an entity, or replaces the existing one, whatever its version.
    pub fn upsert_replace<E: WritableEntity>(self, entity: &E) -> Self {
        self.write(Mode::Replace, None, entity)
    }

    /// Inserts an entity, or merges it into the existing one, whatever its version.
    pub fn upsert_merge<E: WritableEntity>(self, entity: &E) -> Self {
        self.write(Mode::Merge, None, entity)
    }

    /// Replaces an entity that must exist, whatever its version.
    pub fn replace_unconditional<E: WritableEntity>(self, entity: &E) -> Self {
        self.write(Mode::Replace, Some(IfMatch::Any), entity)
    }

    /// Merges into an entity that must exist, whatever its version.
    pub fn merge_unconditional<E: WritableEntity>(self, entity: &E) -> Self {
        self.write(Mode::Merge, Some(IfMatch::Any), entity)
    }

    /// Replaces an entity if its stored version is the one that was read. The new ETag is put into `entity` when the batch has
    /// succeeded.
    pub fn replace<E: WritableEntity>(self, entity: &'e mut Stored<E>) -> Self {
        self.write_stored(Mode::Replace, entity)
    }

    /// Merges an entity if its stored version is the one that was read. The new ETag is put into `entity` when the batch has
    /// succeeded.
    pub fn merge<E: WritableEntity>(self, entity: &'e mut Stored<E>) -> Self {
        self.write_stored(Mode::Merge, entity)
    }

    /// Deletes an entity that must exist, whatever its version.
    pub fn delete(self, key: impl IntoEntityKey) -> Self {
        let key = key.into_entity_key();
        let key = key.map_err(|error| Error::input(error).with_operation(DELETE));
        self.delete_if(key, IfMatch::Any)
    }

    /// Deletes an entity if its stored version is the one that was read.
    pub fn delete_stored<E>(self, entity: &Stored<E>) -> Self {
        let if_match = IfMatch::ETag(entity.etag().clone());
        self.delete_if(Ok(entity.key().clone()), if_match)
    }

    async fn run(self) -> Result<BatchResult, Error> {
        let Self {
            table,
            target,
            items,
            refused,
            exactly_once,
        } = self;
        let (name, _) = target?;
        if let Some(error) = refused {
            return Err(error);
        }
        let count = items.len();
        let problem = match count {
            1..BATCH_CHANGES_MAX => None,
            BATCH_CHANGES_MAX if exactly_once.is_some() => Some(BatchProblem::MarkerExceeds),
            BATCH_CHANGES_MAX => None,
            _ => Some(BatchProblem::Count { count }),
        };
        if let Some(problem) = problem {
            return Err(Error::input(problem).with_operation(OPERATION));
        }
        let (mut operations, mut keys) = (Vec::new(), Vec::new());
        let (mut changes, mut writes) = (Vec::new(), Vec::new());
        for item in items {
            operations.push(item.operation);
            keys.push(item.key);
            changes.push(item.change);
            writes.push(item.written);
        }
        let checked = Checked {
            table: &name,
            operations: &operations,
            keys: &keys,
            changes,
        };
        let mut run = table.begin(OPERATION);
        let etags = checked.send(&mut run, exactly_once).await;
        let etags = run.end(etags)?;
        for (written, etag) in writes.into_iter().zip(&etags) {
            if let (Some(written), Some(etag)) = (written, etag) {
                written(etag.clone());
            }
        }
        Ok(BatchResult { etags })
    }

    fn write<E: WritableEntity>(self, mode: Mode, if_match: Option<IfMatch>, entity: &E) -> Self {
        let encoded = EncodedEntity::new(operation(mode, if_match.as_ref()), entity);
        self.write_encoded(mode, if_match, encoded)
    }

    pub(super) fn write_encoded(
        self,
        mode: Mode,
        if_match: Option<IfMatch>,
        encoded: Result<EncodedEntity, Error>,
    ) -> Self {
        let operation = operation(mode, if_match.as_ref());
        self.add(operation, encoded, |table, entity| {
            let (key, change) = update(table, mode, if_match, entity);
            (key, change, None)
        })
    }

    fn write_stored<E: WritableEntity>(self, mode: Mode, entity: &'e mut Stored<E>) -> Self {
        let if_match = IfMatch::ETag(entity.etag().clone());
        let operation = operation(mode, Some(&if_match));
        let encoded = encode_stored(operation, entity).and_then(|encoded| {
            check_condition(operation, &if_match).map_err(|error| error.with_key(&encoded.key))?;
            Ok(encoded)
        });
        self.add(operation, encoded, |table, encoded| {
            let (key, change) = update(table, mode, Some(if_match), encoded);
            let written: Written<'e> = Box::new(move |etag| entity.written(etag));
            (key, change, Some(written))
        })
    }

    pub(super) fn delete_if(self, key: Result<EntityKey, Error>, if_match: IfMatch) -> Self {
        let key = key.and_then(|key| {
            check_condition(DELETE, &if_match).map_err(|error| error.with_key(&key))?;
            Ok(key)
        });
        self.add(DELETE, key, |table, key| {
            let request = delete_entity::Request {
                table,
                key: key.clone(),
                if_match,
            };
            (key, Change::Delete(request), None)
        })
    }

    /// The size of the request with the changes so far.
    pub(super) fn body_bytes(&self) -> usize {
        let changes = self.items.iter().map(|item| item.change.clone());
        let pipeline = &self.table.pipeline;
        let adapt = |change: &mut _| pipeline.adapt(change);
        let request = Request::Changes(changes.collect());
        let request = request.encode_with(&pipeline.endpoint, random_guid(), adapt);
        request.body().len()
    }

    fn add<T>(
        mut self,
        operation: &'static str,
        input: Result<T, Error>,
        change: impl FnOnce(TableName, T) -> (EntityKey, Change, Option<Written<'e>>),
    ) -> Self {
        let index = self.items.len();
        let (Ok((table, partition)), None) = (&self.target, &self.refused) else {
            return self;
        };
        let refused = match input {
            Ok(input) => {
                let (key, change, written) = change(table.clone(), input);
                let problem = if key.partition_key() != partition {
                    Some(BatchProblem::Partition {
                        partition: partition.as_str().to_owned(),
                    })
                } else if self.items.iter().any(|item| item.key == key) {
                    Some(BatchProblem::Twice)
                } else {
                    None
                };
                match problem {
                    Some(problem) => Error::input(problem)
                        .with_operation(operation)
                        .with_key(&key),
                    None => {
                        self.items.push(Item {
                            operation,
                            key,
                            change,
                            written,
                        });
                        return self;
                    }
                }
            }
            Err(error) => error,
        };
        self.refused = Some(refused.with_batch_index(index));
        self
    }
}

awaitable!(impl['e] Batch<'e> => 'e, BatchResult);
exactly_once_options!(
    impl[] Batch<'_>;
    /// Determines the outcome even when responses are lost. The marker for this is one of the changes, so the batch can have at
    /// most 99 others. See [the guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
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
        let changes = self.items.iter().map(|item| (item.operation, &item.key));
        f.debug_struct("Batch")
            .field("table", &self.table)
            .field("target", &self.target)
            .field("changes", &changes.collect::<Vec<_>>())
            .field("refused", &self.refused)
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
/// # assert!(committed.etags().iter().all(Option::is_some));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchResult {
    etags: Vec<Option<ETag>>,
}

impl BatchResult {
    /// The new ETags of the entities, in the order of the changes; `None` for a delete.
    pub fn etags(&self) -> &[Option<ETag>] {
        &self.etags
    }
}

/// The changes of a batch, checked.
struct Checked<'b> {
    table: &'b TableName,
    operations: &'b [&'static str],
    keys: &'b [EntityKey],
    changes: Vec<Change>,
}

impl Checked<'_> {
    async fn send(
        self,
        run: &mut OperationRun<'_>,
        once: Option<KeepMarker>,
    ) -> Result<Vec<Option<ETag>>, Error> {
        let Self {
            table,
            operations,
            keys,
            changes,
        } = self;
        let done = if let Some(keep) = once {
            exactly_once::commit(run, table, keys, changes.clone(), keep).await
        } else {
            let done = Transaction::new(run, changes.clone())?.send(run).await;
            done.map(|done| done.etags)
        };
        let error = match done {
            Ok(etags) => {
                run.note_entities(changes.len());
                return Ok(etags);
            }
            Err(error) => error,
        };
        let index = error.batch_index().unwrap_or(changes.len());
        let (Some(operation), Some(key), Some(change)) =
            (operations.get(index), keys.get(index), changes.get(index))
        else {
            return Err(as_a_whole(error));
        };
        let error = error.for_change(operation);
        let (body, whole) = content(change);
        let sent = WriteAttempt {
            table,
            key,
            body,
            whole,
        };
        let (row, error) = resolve(run, sent, error).await?;
        Err(error.into_outcome_unknown(row))
    }
}

type Written<'e> = Box<dyn FnOnce(ETag) + Send + 'e>;

fn update(
    table: TableName,
    mode: Mode,
    if_match: Option<IfMatch>,
    entity: EncodedEntity,
) -> (EntityKey, Change) {
    let EncodedEntity { key, body } = entity;
    let request = update_entity::Request {
        table,
        key: key.clone(),
        mode,
        if_match,
        entity: EntityBody::from_bytes(body),
    };
    (key, Change::Update(request))
}

/// An error that is about no change in particular.
fn as_a_whole(error: Error) -> Error {
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
    #[error("the entity is not in the batch's partition {partition:?}")]
    Partition { partition: String },
    #[error("a batch changes an entity only once")]
    Twice,
}

const OPERATION: &str = "batch";
const DELETE: &str = "delete entity";
const INSERT: &str = "insert entity";
