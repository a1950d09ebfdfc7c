//! A change of one entity, as it is sent.

use std::fmt;

use bytes::Bytes;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{EntityKey, IfMatch, TableName};

use crate::action::extend::ride::Riders;
use crate::action::refusal::check_condition;
use crate::error::Error;

/// The kind of a change, with its condition.
#[derive(Clone, Debug)]
pub(crate) enum ChangeKind {
    Delete(IfMatch),
    Insert,
    /// Replaces or merges. Without a condition, it also inserts.
    Update(Mode, Option<IfMatch>),
}

impl ChangeKind {
    /// The operation that carries it out alone, by the name of the client's method.
    pub(crate) const fn operation(&self) -> &'static str {
        match self {
            Self::Delete(_) => "delete entity",
            Self::Insert => "insert entity",
            Self::Update(Mode::Merge, None) => "upsert_merge entity",
            Self::Update(Mode::Merge, Some(_)) => "merge entity",
            Self::Update(Mode::Replace, None) => "upsert_replace entity",
            Self::Update(Mode::Replace, Some(_)) => "replace entity",
        }
    }

    /// Returns true if the entity has no other content after the change.
    pub(crate) const fn is_whole(&self) -> bool {
        !matches!(self, Self::Update(Mode::Merge, _))
    }

    /// Refuses an ETag that cannot be sent.
    pub(crate) fn check(&self, operation: &'static str, key: &EntityKey) -> Result<(), Error> {
        match self {
            Self::Delete(if_match) | Self::Update(_, Some(if_match)) => {
                check_condition(operation, if_match).map_err(|error| error.with_key(key))
            }
            Self::Insert | Self::Update(_, None) => Ok(()),
        }
    }
}

/// A change of one entity.
#[derive(Clone)]
pub(crate) struct EntityChange {
    pub(crate) key: EntityKey,
    pub(crate) change: Change,
    /// The operation that carries it out alone.
    pub(crate) operation: &'static str,
    /// The riders of the change.
    pub(crate) riders: Riders,
}

impl EntityChange {
    /// The condition of a change that needs an existing entity.
    pub(crate) const fn condition(&self) -> Option<&IfMatch> {
        match &self.change {
            Change::Delete(request) => Some(&request.if_match),
            Change::Insert(_) => None,
            Change::Update(request) => request.if_match.as_ref(),
        }
    }

    /// Sets the condition of a change that needs an existing entity.
    pub(crate) fn set_condition(&mut self, if_match: IfMatch) {
        match &mut self.change {
            Change::Delete(request) => request.if_match = if_match,
            Change::Insert(_) => {}
            Change::Update(request) => request.if_match = Some(if_match),
        }
    }

    pub(crate) const fn table(&self) -> &TableName {
        self.change.table()
    }

    /// The content that is stored after the change, if the entity exists then.
    pub(crate) const fn body(&self) -> Option<&Bytes> {
        match &self.change {
            Change::Delete(_) => None,
            Change::Insert(request) => Some(request.entity.as_bytes()),
            Change::Update(request) => Some(request.entity.as_bytes()),
        }
    }

    /// Returns true if the entity has no other content after the change.
    pub(crate) const fn is_whole(&self) -> bool {
        !matches!(&self.change, Change::Update(request) if matches!(request.mode, Mode::Merge))
    }
}

/// Without the values, which are private.
impl fmt::Debug for EntityChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntityChange")
            .field("key", &self.key)
            .field("operation", &self.operation)
            .field("riders", &self.riders)
            .finish_non_exhaustive()
    }
}
