//! The response to a write that a database on the network carried out or not.
//!
//! No status says so to every client: official clients retry an insert after 500 and then report
//! that the entity exists already, although they may have inserted it themselves. A connection that
//! is closed without a response is what every client takes for an unknown outcome.

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::operation::Operation;
use tablesdk_protocol::{ErrorCode, ServiceError};

use super::handler::is_read;
use crate::request::connection::Broken;

/// Replaces the response by a closed connection if the outcome is unknown.
pub(super) fn finish(
    response: &mut Response<Bytes>,
    error: &ServiceError,
    operation: Option<&Operation>,
) {
    let is_write = operation.is_some_and(|operation| !is_read(operation));
    if is_write && *error.code() == ErrorCode::OperationTimedOut {
        response.extensions_mut().insert(Broken::Reset);
    }
}
