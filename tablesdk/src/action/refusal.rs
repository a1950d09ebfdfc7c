//! Errors of input, which is refused before anything is sent, and of responses that cannot be read.

use std::error::Error as StdError;

use http::HeaderValue;
use tablesdk_protocol::IfMatch;
use tablesdk_protocol::limits::URL_BYTES_MAX;

use crate::error::Error;

/// An error of the input of an operation.
pub(crate) fn refused(
    operation: &'static str,
    error: impl Into<Box<dyn StdError + Send + Sync>>,
) -> Error {
    Error::input(error).with_operation(operation)
}

/// An error of the response to the request of an operation.
pub(crate) fn malformed(
    operation: &'static str,
    error: impl Into<Box<dyn StdError + Send + Sync>>,
) -> Error {
    Error::response(error).with_operation(operation)
}

/// Refuses the URL of a query that is longer than the service reads.
pub(crate) fn check_url(operation: &'static str, bytes: usize) -> Result<(), Error> {
    if bytes > URL_BYTES_MAX {
        return Err(refused(operation, UrlTooLong { bytes }));
    }
    Ok(())
}

/// Refuses an ETag that cannot be sent: it need not come from the service.
pub(crate) fn check_condition(operation: &'static str, if_match: &IfMatch) -> Result<(), Error> {
    match HeaderValue::from_str(if_match.as_str()) {
        Ok(_) => Ok(()),
        Err(_) => Err(refused(operation, UnsendableETag)),
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the URL would have {bytes} bytes, and the service reads {URL_BYTES_MAX}: the filter is too long"
)]
struct UrlTooLong {
    bytes: usize,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the ETag holds characters that no header can")]
struct UnsendableETag;
