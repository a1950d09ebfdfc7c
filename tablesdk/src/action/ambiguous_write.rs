//! What becomes of a write that may have been carried out, although no answer says so, or the answer to its repetition says
//! otherwise: 409 to an insert, 404 to a delete, 412 to a conditional write.
//!
//! Success is claimed only where it is sure. That the entity equals what was sent is no proof: two programs may send the same.

use std::error::Error as StdError;

use bytes::Bytes;
use http::StatusCode;
use tablesdk_protocol::operation::get_entity::{Request, Response};
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{EntityKey, TableName};

use crate::error::{CurrentEntity, CurrentState, Error, ErrorKind};
use crate::pipeline::{Effect, OperationRun, ServiceResponse};

/// A write, as far as its outcome can be seen in the entity.
pub(super) struct WriteAttempt<'a> {
    pub(super) table: &'a TableName,
    pub(super) key: &'a EntityKey,
    /// What should be there; nothing, after a delete.
    pub(super) body: Option<&'a Bytes>,
    /// Nothing but the body should be there.
    pub(super) whole: bool,
}

/// Looks at what there is after a write that failed and may have been carried out all the same. The error comes back as it
/// is when the write was surely not carried out.
pub(super) async fn resolve(
    run: &mut OperationRun<'_>,
    sent: WriteAttempt<'_>,
    error: Error,
) -> Result<(CurrentState, Error), Error> {
    let error = error.with_key(sent.key);
    if !error.is_ambiguous() {
        return Err(error);
    }
    // A service that gives no answer to the write is not asked for more.
    let row = match error.kind() {
        ErrorKind::Response | ErrorKind::Service => read_current(run, &sent).await,
        _ => CurrentState::Unread,
    };
    Ok((row, run.annotate(error)))
}

/// The error of a write with a success response that is not a well-formed response of the service. Any component in between can
/// respond 200; whether the write was carried out is then unknown.
pub(super) fn malformed_success(problem: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::response(problem).with_ambiguous(true)
}

/// Whether a success has a status that the service gives it.
pub(super) fn check_status(answer: &ServiceResponse, statuses: &[StatusCode]) -> Result<(), Error> {
    let status = answer.response.status();
    if statuses.contains(&status) {
        return Ok(());
    }
    Err(malformed_success(format!(
        "the service does not answer with {status}"
    )))
}

/// Resolves the outcome of a write that has no entity to read back: only a well-formed response of the service counts as success.
pub(super) fn resolve_without_entity(
    operation: &'static str,
    sent: Result<ServiceResponse, Error>,
    statuses: &[StatusCode],
) -> Result<(), Error> {
    let told = sent.and_then(|answer| {
        check_status(&answer, statuses).map_err(|error| error.with_operation(operation))
    });
    told.map_err(|error| {
        if error.is_ambiguous() {
            error.into_outcome_unknown(CurrentState::Unread)
        } else {
            error
        }
    })
}

/// What is there now.
pub(super) async fn read_current(
    run: &mut OperationRun<'_>,
    sent: &WriteAttempt<'_>,
) -> CurrentState {
    let request = Request {
        table: sent.table.clone(),
        key: sent.key.clone(),
        select: None,
        level: MetadataLevel::Minimal,
    };
    let request = request.encode(&run.pipeline().endpoint);
    match run.send(Effect::ReadNow, &request).await {
        Ok(answer) => {
            let Response { etag, content } = Response::decode(answer.response);
            match CurrentEntity::new(content, etag, sent.body, sent.whole) {
                Ok(Some(row)) => CurrentState::Present(row),
                Ok(None) | Err(_) => CurrentState::Unread,
            }
        }
        Err(error) if error.is_not_found() => CurrentState::Missing,
        Err(_) => CurrentState::Unread,
    }
}
