//! The outcome of a write that may have been carried out, although no response says so, or although
//! the response to its retry says otherwise: 409 to an insert, 404 to a delete, 412 to a
//! conditional write.
//!
//! Success is returned only where it is certain. That the entity equals what was sent proves
//! nothing: two programs may send the same.

use bytes::Bytes;
use http::{Response as HttpResponse, StatusCode};
use tablesdk_protocol::ETag;
use tablesdk_protocol::operation::get_entity::Response;

use super::change::EntityChange;
use super::response::check_status;
use crate::action::get_entity;
use crate::error::{CurrentEntity, CurrentState, Error, ErrorKind};
use crate::pipeline::{Effect, OperationRun};

/// Reads the current state of the entity after a write that failed and may have been carried out
/// all the same. An error of a write that was certainly not carried out is returned as it is.
pub(crate) async fn resolve(
    run: &mut OperationRun<'_>,
    change: &EntityChange,
    error: Error,
) -> Result<(CurrentState, Error), Error> {
    let error = error.with_key(&change.key);
    if !error.is_ambiguous() {
        return Err(error);
    }
    // A service that does not respond to the write gets no further request.
    let current = match error.kind() {
        ErrorKind::Response | ErrorKind::Service => read_current(run, change).await,
        _ => CurrentState::Unread,
    };
    Ok((current, run.annotate(error)))
}

/// Resolves the outcome of a write that has no entity to read back: only a well-formed response of
/// the service counts as success.
pub(crate) fn resolve_without_entity(
    operation: &'static str,
    sent: Result<HttpResponse<Bytes>, Error>,
    statuses: &[StatusCode],
) -> Result<(), Error> {
    let checked = sent.and_then(|response| {
        check_status(&response, statuses).map_err(|error| error.with_operation(operation))
    });
    checked.map_err(|error| {
        if error.is_ambiguous() {
            error.into_outcome_unknown(CurrentState::Unread)
        } else {
            error
        }
    })
}

/// The current state of the entity of a change.
pub(crate) async fn read_current(
    run: &mut OperationRun<'_>,
    change: &EntityChange,
) -> CurrentState {
    let table = change.table().clone();
    match get_entity::request(run, Effect::ReadNow, table, &change.key, None).await {
        Ok(Response { etag, content }) => compare(change, content, etag),
        Err(error) if error.is_missing() => CurrentState::Missing,
        Err(_) => CurrentState::Unread,
    }
}

/// The state of the entity of a change that was read: compared with the content that was sent, and
/// shown as the program wrote it.
pub(crate) fn compare(change: &EntityChange, content: Bytes, etag: Option<ETag>) -> CurrentState {
    match CurrentEntity::new(content, etag, change.body(), change.is_whole()) {
        Ok(Some(entity)) => entity
            .reveal(|content| change.riders.restore(&change.key, content))
            .map_or(CurrentState::Unread, CurrentState::Present),
        Ok(None) | Err(_) => CurrentState::Unread,
    }
}
