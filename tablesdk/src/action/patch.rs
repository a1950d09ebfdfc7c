//! `patch`: sets some properties of an entity that exists. If entities of several types or versions
//! may have its key, reads first whether it is of the type that has the properties.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::read_entity;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, KeyKind, Value};

use super::get_entity::{RawEntity, fetch};
use super::refusal::check_condition;
use super::write::change::{ChangeKind, EntityChange};
use super::write::encoded::EncodedEntity;
use super::write::keep_marker::KeepMarker;
use crate::entity::encrypted::encrypted;
use crate::entity::variants::ColumnOwner;
use crate::entity::{EntityError, TableEntity, ValueError, write_values};
use crate::error::{CurrentState, Error};
use crate::pipeline::{Effect, OperationRun, Table};
use crate::query::{Literal, SetColumn};

/// Sets some properties of an entity. See [`TableClient::patch`](crate::TableClient::patch).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// table.patch(Employee::key("Sales", "1")).set(|e| e.name, "Ada Lovelace").await?;
///
/// // It makes no entity.
/// let missing = table.patch(Employee::key("Sales", "2")).set(|e| e.name, "Grace");
/// assert!(missing.await.unwrap_err().is_not_found());
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct Patch<E> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    properties: PatchProperties<E>,
    if_match: Option<ETag>,
    exactly_once: Option<KeepMarker>,
}

impl<E: TableEntity> Patch<E> {
    pub(crate) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            properties: PatchProperties::new(),
            if_match: None,
            exactly_once: None,
        }
    }

    /// Sets a property to a value. If a property is set twice, the later value counts.
    pub fn set<C: SetColumn<E>>(
        mut self,
        column: impl FnOnce(E::Columns) -> C,
        value: impl Literal<C::Value>,
    ) -> Self {
        self.properties = self.properties.set(column, value);
        self
    }

    /// Sets the properties only if the stored version of the entity is the one with that ETag; with
    /// [`ETag::ANY`], whatever its version.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// let ada = table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let patch = || table.patch(Employee::key("Sales", "1")).set(|e| e.name, "Ada Lovelace");
    /// patch().if_match(ada.etag()).await?;
    ///
    /// let error = patch().if_match(ada.etag()).await.unwrap_err();
    /// assert!(error.is_precondition_failed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity has another ETag. A patch with an ETag does
    /// not start over.
    pub fn if_match(mut self, etag: impl Borrow<ETag>) -> Self {
        self.if_match = Some(etag.borrow().clone()).filter(|etag| *etag != ETag::ANY);
        self
    }

    async fn run(self) -> Result<ETag, Error> {
        let refused = |error: Error| error.with_operation(OPERATION);
        let key = self.key.map_err(|error| refused(Error::input(error)))?;
        let encoded = self.properties.encode(&key);
        let (entity, owner) = encoded.map_err(|error| refused(error).with_key(&key))?;
        if let Some(etag) = &self.if_match {
            let condition = check_condition(OPERATION, &IfMatch::ETag(etag.clone()));
            condition.map_err(|error| error.with_key(&key))?;
        }
        let table = self.table;
        let mut run = table.pipeline.begin(OPERATION);
        // Once for all rounds.
        let kind = ChangeKind::Update(Mode::Merge, Some(IfMatch::Any));
        let change = match EntityChange::new(OPERATION, &table, kind, entity).await {
            Ok(change) => change,
            Err(error) => {
                let error = run.annotate(error);
                return run.end(Err(error));
            }
        };
        let patch = Rounds {
            change,
            owner,
            given: self.if_match,
            exactly_once: self.exactly_once,
        };
        let patched = patch.run(&mut run, &table).await;
        run.end(patched)
    }
}

/// The rounds of a patch.
struct Rounds {
    change: EntityChange,
    owner: ColumnOwner,
    given: Option<ETag>,
    exactly_once: Option<KeepMarker>,
}

impl Rounds {
    /// Checks the type of the entity and writes to the version that was checked, until no other
    /// client wrote in between.
    async fn run(mut self, run: &mut OperationRun<'_>, table: &Table) -> Result<ETag, Error> {
        let mut round = 0;
        // The error of an earlier round that may have been carried out.
        let mut unknown: Option<Error> = None;
        loop {
            round += 1;
            let checked = match check(run, table, &self.change.key, self.owner).await {
                Ok(checked) => checked,
                Err(error) => {
                    return Err(match unknown {
                        Some(unknown) if error.is_not_found() => run
                            .annotate(unknown)
                            .into_outcome_unknown(CurrentState::Missing),
                        Some(unknown) => run.annotate(unknown),
                        None => error,
                    });
                }
            };
            let may_start_over = self.given.is_none() && checked.is_some();
            let if_match = self.given.clone().or(checked);
            let if_match = if_match.map_or(IfMatch::Any, IfMatch::ETag);
            self.change.set_condition(if_match);
            let error = match self.change.write_entity(run, self.exactly_once).await {
                Ok(etag) => return Ok(etag),
                Err(error) => error,
            };
            // A patch promises a state. So it can be carried out again if the service responds, and
            // the entity exists. With `exactly_once` it promises more.
            let is_unknown = error.is_outcome_unknown();
            let is_present = matches!(error.current(), Some(CurrentState::Present(_)));
            let may_repeat = is_unknown && is_present && self.exactly_once.is_none();
            let starts_over = may_start_over
                && (error.is_precondition_failed() || may_repeat)
                && round < ROUNDS
                && run.pause_before_round(round).await;
            if !starts_over {
                return Err(match unknown {
                    Some(unknown) if !is_unknown => run.annotate(unknown),
                    _ => error,
                });
            }
            if is_unknown {
                unknown = Some(error);
            }
        }
    }
}

/// Reads whether the entity is of the type whose properties are set, and returns the ETag of the
/// version that is. `None` if the key shows it, without a request.
pub(crate) async fn check(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    owner: ColumnOwner,
) -> Result<Option<ETag>, Error> {
    let Some(property) = owner.type_property() else {
        return Ok(None);
    };
    let names = ["PartitionKey", "RowKey", "Timestamp", property];
    let names = names.map(str::to_owned).to_vec();
    let RawEntity { content, etag } = fetch(run, Effect::ReadNow, table, key, Some(names)).await?;
    let checked = read_entity(&content)
        .map_err(Error::response)
        .and_then(|entity| {
            let checked = owner.check_type(&entity);
            checked.map_err(Error::entity)
        });
    checked.map_err(|error| run.annotate(error).with_key(key))?;
    Ok(Some(etag))
}

action!(impl[E: TableEntity] Patch<E>, table.pipeline => ETag);
exactly_once_options!(
    impl[E] Patch<E>;
    /// Determines the outcome even when responses are lost. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
);

impl<E> fmt::Debug for Patch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patch")
            .field("table", &self.table)
            .field("key", &self.key)
            .field("properties", &self.properties)
            .field("if_match", &self.if_match)
            .finish_non_exhaustive()
    }
}

/// The properties that a patch sets, in a batch: see [`Batch::patch`](super::Batch::patch).
pub struct PatchProperties<E> {
    values: Result<Vec<(String, Value)>, PatchProblem>,
    /// Whose properties they are.
    owner: Option<ColumnOwner>,
    marker: PhantomData<fn() -> E>,
}

impl<E> PatchProperties<E> {
    pub(crate) const fn new() -> Self {
        Self {
            values: Ok(Vec::new()),
            owner: None,
            marker: PhantomData,
        }
    }
}

impl<E: TableEntity> PatchProperties<E> {
    /// Sets a property to a value. If a property is set twice, the later value counts.
    #[must_use]
    pub fn set<C: SetColumn<E>>(
        mut self,
        column: impl FnOnce(E::Columns) -> C,
        value: impl Literal<C::Value>,
    ) -> Self {
        let column = column(E::columns()).into_column();
        let name = column.name().into_owned();
        let is_key = column.is_of_key()
            || [KeyKind::PartitionKey, KeyKind::RowKey]
                .iter()
                .any(|part| part.property() == name);
        let owner = ColumnOwner::new::<E>(column.rows());
        let is_of_another = self.owner.is_some_and(|known| known != owner);
        let value = match column.missing_slot() {
            Some(slot) => Err(ValueError::unwritable(slot)),
            None => value.into_value(),
        };
        let value = match value {
            Ok(_) if is_key => Err(PatchProblem::Key { name: name.clone() }),
            Ok(_) if name == "Timestamp" => Err(PatchProblem::Timestamp),
            Ok(_) if is_of_another => Err(PatchProblem::Variants { name: name.clone() }),
            Ok(value) => Ok(value),
            Err(error) => Err(PatchProblem::Value {
                error: match encrypted::<E>() {
                    Some(schema) if schema.encrypts_as(&name) => error.without_value(),
                    _ => error,
                },
                name: name.clone(),
            }),
        };
        self.owner.get_or_insert(owner);
        self.values = match (self.values, value) {
            (Ok(mut values), Ok(value)) => {
                values.retain(|(known, _)| *known != name);
                values.push((name, value));
                Ok(values)
            }
            (Err(problem), _) | (_, Err(problem)) => Err(problem),
        };
        self
    }

    /// The entity that is sent, and the type to which its properties belong.
    pub(crate) fn encode(self, key: &EntityKey) -> Result<(EncodedEntity, ColumnOwner), Error> {
        let values = self.values.map_err(Error::input)?;
        let owner = self
            .owner
            .ok_or_else(|| Error::input(PatchProblem::Nothing))?;
        let row_key = key.row_key().as_str();
        owner.check_row_key(row_key).map_err(Error::input)?;
        let body = write_values(key, &values).map_err(Error::input)?;
        let key = key.clone();
        Ok((EncodedEntity::of_properties::<E>(key, body), owner))
    }
}

impl<E> fmt::Debug for PatchProperties<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            // Without the values, which are private.
            Ok(values) => f
                .debug_list()
                .entries(values.iter().map(|(name, _)| name))
                .finish(),
            Err(problem) => fmt::Debug::fmt(problem, f),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
enum PatchProblem {
    #[error("`{name}` is part of the key, which cannot change")]
    Key { name: String },
    #[error("a patch sets at least one property")]
    Nothing,
    #[error("`Timestamp` is set by the service alone")]
    Timestamp,
    #[error("property {name:?}: {error}")]
    Value { name: String, error: ValueError },
    #[error("no entity has the properties of two variants, and `{name}` is of another one")]
    Variants { name: String },
}

pub(crate) const OPERATION: &str = "patch entity";
const ROUNDS: u32 = 16;
