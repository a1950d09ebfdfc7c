//! The responses to requests that a database on the network did not carry out, or perhaps did.
//!
//! A write whose commit got no response may be applied or not. No status says so to every client: official clients retry an insert
//! after 500 and then report that the entity exists already, although they may have inserted it themselves. A connection that is
//! closed without a response is what every client takes for an unknown outcome.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use tablesdk_protocol::operation::Operation;
use tablesdk_protocol::{ErrorCode, ServiceError};

use super::handler::is_read;
use crate::request::connection::Broken;

/// Completes the response to a request that failed.
pub(super) fn finish(
    response: &mut Response<Bytes>,
    error: &ServiceError,
    operation: Option<&Operation>,
) {
    match error.code() {
        ErrorCode::ServerBusy => {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        ErrorCode::OperationTimedOut if operation.is_some_and(|operation| !is_read(operation)) => {
            response.extensions_mut().insert(Broken::Reset);
        }
        _ => {}
    }
}

/// A database that is started again, or whose replica takes over, needs some seconds.
const RETRY_AFTER: &str = "1";
