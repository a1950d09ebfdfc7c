//! A change of one entity: how it is sent alone, and what its response and the current state of the entity show.

use bytes::Bytes;
use http::{Response, StatusCode};
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::operation::{
    EntityBody, MalformedResponse, Prefer, delete_entity, insert_entity, update_entity,
};
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, IfMatch, TableName};

use super::ambiguous_write::{check_status, malformed_success, resolve};
use super::exactly_once::KeepMarker;
use crate::action::encryption::{Encryption, UNSEALED};
use crate::action::index::changes::EntryChanges;
use crate::action::write::together::carry_out;
use crate::action::{EncodedEntity, check_condition};
use crate::error::{CurrentState, Error};
use crate::pipeline::{Effect, OperationRun, Table};

/// What a change does to its entity.
#[derive(Clone, Debug)]
pub(in crate::action) enum ChangeKind {
    Delete(IfMatch),
    Insert,
    /// Replaces or merges. Without a condition, it also inserts.
    Update(Mode, Option<IfMatch>),
}

impl ChangeKind {
    /// The operation that carries it out alone, by the name of the client's method.
    pub(in crate::action) const fn operation(&self) -> &'static str {
        match self {
            Self::Delete(_) => "delete entity",
            Self::Insert => "insert entity",
            Self::Update(Mode::Merge, None) => "upsert_merge entity",
            Self::Update(Mode::Merge, Some(IfMatch::Any)) => "merge_unconditional entity",
            Self::Update(Mode::Merge, Some(IfMatch::ETag(_))) => "merge entity",
            Self::Update(Mode::Replace, None) => "upsert_replace entity",
            Self::Update(Mode::Replace, Some(IfMatch::Any)) => "replace_unconditional entity",
            Self::Update(Mode::Replace, Some(IfMatch::ETag(_))) => "replace entity",
        }
    }
}

/// A change of one entity.
#[derive(Clone)]
pub(in crate::action) struct EntityChange {
    pub(in crate::action) key: EntityKey,
    pub(in crate::action) change: Change,
    /// The operation that carries it out alone.
    pub(in crate::action) operation: &'static str,
    /// What becomes of the entity's entries in indexes.
    pub(in crate::action) entries: EntryChanges,
    pub(in crate::action) encryption: Encryption,
    /// The body before its properties are encrypted. Meanwhile, the change has one that no service accepts.
    pub(in crate::action) unsealed: Option<Bytes>,
}

impl EntityChange {
    /// A change as a part of an operation. Refuses the name of a table or an ETag that cannot be sent.
    pub(in crate::action) fn new(
        operation: &'static str,
        table: &Table,
        kind: ChangeKind,
        entity: EncodedEntity,
    ) -> Result<Self, Error> {
        if let ChangeKind::Delete(if_match) | ChangeKind::Update(_, Some(if_match)) = &kind {
            check_condition(operation, if_match).map_err(|error| error.with_key(&entity.key))?;
        }
        Ok(Self::of(table.checked_name(operation)?, kind, entity))
    }

    /// A change that can be sent.
    pub(in crate::action) fn of(table: TableName, kind: ChangeKind, entity: EncodedEntity) -> Self {
        let EncodedEntity {
            key,
            body,
            entries,
            encryption,
        } = entity;
        let operation = kind.operation();
        let (body, unsealed) = match encryption {
            Encryption::Pending(_) => (UNSEALED, Some(body)),
            Encryption::None | Encryption::Done(_) => (body, None),
        };
        let change = match kind {
            ChangeKind::Delete(if_match) => Change::Delete(delete_entity::Request {
                table,
                key: key.clone(),
                if_match,
            }),
            ChangeKind::Insert => Change::Insert(insert_entity::Request {
                table,
                entity: EntityBody::from_bytes(body),
                prefer: Prefer::ReturnNoContent,
                level: MetadataLevel::Minimal,
            }),
            ChangeKind::Update(mode, if_match) => Change::Update(update_entity::Request {
                table,
                key: key.clone(),
                mode,
                if_match,
                entity: EntityBody::from_bytes(body),
            }),
        };
        Self {
            key,
            change,
            operation,
            entries,
            encryption,
            unsealed,
        }
    }

    pub(in crate::action) const fn table(&self) -> &TableName {
        self.change.table()
    }

    /// The content that is stored after the change, if the entity exists then.
    pub(in crate::action) const fn body(&self) -> Option<&Bytes> {
        match &self.change {
            Change::Delete(_) => None,
            Change::Insert(request) => Some(request.entity.as_bytes()),
            Change::Update(request) => Some(request.entity.as_bytes()),
        }
    }

    /// Whether the entity has no other content after the change.
    pub(in crate::action) const fn is_whole(&self) -> bool {
        !matches!(&self.change, Change::Update(request) if matches!(request.mode, Mode::Merge))
    }

    /// Carries out the change, together with a marker and the entries of indexes where it has them, and returns the new ETag; `None` for a delete.
    pub(in crate::action) async fn write(
        &self,
        run: &mut OperationRun<'_>,
        exactly_once: Option<KeepMarker>,
    ) -> Result<Option<ETag>, Error> {
        let sent = match exactly_once {
            // In boxes of their own, so that the future of the usual write is small.
            None if self.entries.is_empty() => self.send_alone(run).await,
            exactly_once => Box::pin(self.send_with_others(run, exactly_once)).await,
        };
        let etag = match sent {
            Ok(etag) => etag,
            Err(error) => {
                let (current, error) = Box::pin(resolve(run, self, error)).await?;
                if exactly_once.is_some() || !self.is_fulfilled_by(&current, &error) {
                    return Err(error.into_outcome_unknown(current));
                }
                match current {
                    CurrentState::Present(entity) => Some(entity.etag().clone()),
                    _ => None,
                }
            }
        };
        run.report().entities = 1;
        Ok(etag)
    }

    /// As [`write`](Self::write), where the entity exists afterwards.
    pub(in crate::action) async fn write_entity(
        &self,
        run: &mut OperationRun<'_>,
        exactly_once: Option<KeepMarker>,
    ) -> Result<ETag, Error> {
        let etag = self.write(run, exactly_once).await?;
        etag.ok_or_else(|| run.annotate(malformed_success("the response has no ETag")))
    }

    /// Without an ETag to compare, an update promises the state of the entity, and not which client wrote it. A delete promises
    /// that the entity does not exist.
    fn is_fulfilled_by(&self, current: &CurrentState, error: &Error) -> bool {
        match (&self.change, current) {
            (Change::Update(request), CurrentState::Present(entity)) => {
                !matches!(request.if_match, Some(IfMatch::ETag(_))) && entity.equals_sent()
            }
            (Change::Delete(request), CurrentState::Missing) => {
                request.if_match == IfMatch::Any && error.code() != Some(&ErrorCode::TableNotFound)
            }
            _ => false,
        }
    }

    /// Sends it together with a marker, with the entries of indexes, or with both.
    async fn send_with_others(
        &self,
        run: &mut OperationRun<'_>,
        exactly_once: Option<KeepMarker>,
    ) -> Result<Option<ETag>, Error> {
        let changes = std::slice::from_ref(self);
        let etags = carry_out(run, changes, exactly_once).await;
        let etag = etags.map_err(Error::without_batch_index)?.pop().flatten();
        if etag.is_none() && self.body().is_some() {
            return Err(malformed_success("the response has no ETag of the entity"));
        }
        Ok(etag)
    }

    /// Carries it out. An [ambiguous](Error::is_ambiguous) error is not resolved.
    pub(in crate::action) async fn send_alone(
        &self,
        run: &mut OperationRun<'_>,
    ) -> Result<Option<ETag>, Error> {
        let request = self.change.encode(&run.pipeline().endpoint);
        let response = run.send(Effect::Write, &request).await?;
        let statuses: &[_] = match self.change {
            Change::Insert(_) => &[StatusCode::CREATED, StatusCode::NO_CONTENT],
            Change::Delete(_) | Change::Update(_) => &[StatusCode::NO_CONTENT],
        };
        check_status(&response, statuses)?;
        etag_of(&self.change, response).map_err(malformed_success)
    }
}

/// The new ETag in the response to a change; `None` for a delete.
pub(in crate::action) fn etag_of(
    change: &Change,
    response: Response<Bytes>,
) -> Result<Option<ETag>, MalformedResponse> {
    match change {
        Change::Delete(_) => Ok(None),
        Change::Insert(_) => insert_entity::Response::decode(response).map(|it| Some(it.etag)),
        Change::Update(_) => update_entity::Response::decode(&response).map(|it| Some(it.etag)),
    }
}
