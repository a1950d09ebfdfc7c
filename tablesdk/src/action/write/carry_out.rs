//! Carries out the change of one entity: how it is sent alone, and what its response and the
//! current state of the entity show.

use bytes::Bytes;
use http::{Response, StatusCode};
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::{MalformedResponse, insert_entity, update_entity};
use tablesdk_protocol::{ETag, ErrorCode, IfMatch};

use super::ambiguous_write::resolve;
use super::change::EntityChange;
use super::commit::commit_changes;
use super::keep_marker::KeepMarker;
use super::response::{check_status, malformed_success};
use crate::action::extend::ride::Commit;
use crate::error::{CurrentState, Error};
use crate::pipeline::{Effect, OperationRun};

impl EntityChange {
    /// Carries out the change, together with a marker and what goes along with it, and returns the
    /// new ETag; `None` for a delete.
    pub(crate) async fn write(
        &self,
        run: &mut OperationRun<'_>,
        exactly_once: Option<KeepMarker>,
    ) -> Result<Option<ETag>, Error> {
        let sent = match exactly_once {
            // In boxes of their own, so that the future of the usual write is small.
            None if !self.riders.has_layers() => self.send_alone(run).await,
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
    pub(crate) async fn write_entity(
        &self,
        run: &mut OperationRun<'_>,
        exactly_once: Option<KeepMarker>,
    ) -> Result<ETag, Error> {
        let etag = self.write(run, exactly_once).await?;
        etag.ok_or_else(|| run.annotate(malformed_success("the response has no ETag")))
    }

    /// Without an ETag to compare, an update promises the state of the entity, and not which client
    /// wrote it. A delete promises that the entity does not exist.
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

    /// Sends it together with a marker, with what goes along with it, or with both.
    async fn send_with_others(
        &self,
        run: &mut OperationRun<'_>,
        exactly_once: Option<KeepMarker>,
    ) -> Result<Option<ETag>, Error> {
        let etags = commit_changes(run, Commit::one(self, exactly_once)).await;
        let etag = etags.map_err(Error::without_batch_index)?.pop().flatten();
        if etag.is_none() && self.body().is_some() {
            return Err(malformed_success("the response has no ETag of the entity"));
        }
        Ok(etag)
    }

    /// Carries it out. An [ambiguous](Error::is_ambiguous) error is not resolved.
    pub(crate) async fn send_alone(
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
fn etag_of(change: &Change, response: Response<Bytes>) -> Result<Option<ETag>, MalformedResponse> {
    match change {
        Change::Delete(_) => Ok(None),
        Change::Insert(_) => insert_entity::Response::decode(response).map(|it| Some(it.etag)),
        Change::Update(_) => update_entity::Response::decode(&response).map(|it| Some(it.etag)),
    }
}
