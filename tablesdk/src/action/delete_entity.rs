//! `delete` and `delete_stored`: Delete Entity.

use std::borrow::Borrow;
use std::sync::Arc;

use tablesdk_protocol::{ETag, EntityKey, IfMatch};

use super::refusal::refused;
use super::write::change::{ChangeKind, EntityChange};
use super::write::encoded::EncodedEntity;
use super::write::keep_marker::KeepMarker;
use crate::entity::{EntityError, Stored, TableEntity};
use crate::error::Error;
use crate::pipeline::Table;

/// Deletes an entity. See [`TableClient::delete`](crate::TableClient::delete) and
/// [`TableClient::delete_stored`](crate::TableClient::delete_stored).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// // `true` means that this call deleted it, even if responses were lost.
/// assert!(table.delete(Employee::key("Sales", "1")).exactly_once().await?);
/// assert!(!table.delete(Employee::key("Sales", "1")).exactly_once().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct DeleteEntity {
    table: Table,
    entity: Result<EncodedEntity, Arc<Error>>,
    if_match: IfMatch,
    /// True if the caller gave an ETag, and it is not that of the entity that was read.
    is_of_other_version: bool,
    exactly_once: Option<KeepMarker>,
}

impl DeleteEntity {
    pub(crate) fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            entity: key
                .map(EncodedEntity::of_key)
                .map_err(|error| Arc::new(refused(OPERATION, error))),
            if_match: IfMatch::Any,
            is_of_other_version: false,
            exactly_once: None,
        }
    }

    /// The delete of what is encoded already.
    pub(crate) const fn encoded(table: Table, entity: EncodedEntity, if_match: IfMatch) -> Self {
        Self {
            table,
            entity: Ok(entity),
            if_match,
            is_of_other_version: false,
            exactly_once: None,
        }
    }

    pub(crate) fn of_stored<E: TableEntity>(table: Table, entity: &Stored<E>) -> Self {
        let if_match = IfMatch::ETag(entity.etag().clone());
        Self::encoded(table, EncodedEntity::deleted(entity), if_match)
    }

    /// Deletes the entity only if its stored version is the one with that ETag; with [`ETag::ANY`],
    /// whatever its version.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// use tablesdk::ETag;
    ///
    /// // From the `If-Match` header of a request, for instance.
    /// let etag: ETag = "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"".parse()?;
    /// let error = table.delete(Employee::key("Sales", "1")).if_match(etag).await.unwrap_err();
    /// assert!(error.is_precondition_failed());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `UpdateConditionNotSatisfied` when the entity has another ETag. An entity that does not
    /// exist is no error: the result is `false`.
    pub fn if_match(mut self, etag: impl Borrow<ETag>) -> Self {
        let if_match = IfMatch::from(etag.borrow());
        self.is_of_other_version = if_match != self.if_match;
        self.if_match = if_match;
        self
    }

    async fn run(self) -> Result<bool, Error> {
        let entity = self.entity.map_err(|error| error.for_another_caller())?;
        if self.is_of_other_version && entity.riders.has_layers() {
            return Err(refused(OPERATION, OtherVersion).with_key(&entity.key));
        }
        let kind = ChangeKind::Delete(self.if_match);
        let change = EntityChange::new(OPERATION, &self.table, kind, entity).await?;
        let mut run = self.table.pipeline.begin(OPERATION);
        let deleted = match change.write(&mut run, self.exactly_once).await {
            Ok(_) => Ok(true),
            // A missing table is an error, a missing entity is not.
            Err(error) if !error.is_ambiguous() && error.is_not_found() => {
                run.note_expected_error(&error);
                Ok(false)
            }
            Err(error) => Err(error),
        };
        run.end(deleted)
    }
}

action!(impl[] DeleteEntity, table.pipeline => bool);
exactly_once_options!(
    impl[] DeleteEntity;
    /// Determines the outcome even when responses are lost: `true` then means that this call
    /// deleted the entity. See [the guide](crate::guide::errors_and_retries#exactly-once) for what
    /// it costs.
);

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the ETag is not that of the entity that was read, whose entries in indexes and copies would be deleted"
)]
struct OtherVersion;

const OPERATION: &str = "delete entity";
