//! Checks that a success response is a response of the service.

use std::error::Error as StdError;

use bytes::Bytes;
use http::{Response as HttpResponse, StatusCode};

use crate::error::Error;

/// The error of a write with a success response that is not a well-formed response of the service.
/// Any component in between can respond 200; whether the write was carried out is then unknown.
pub(crate) fn malformed_success(problem: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::response(problem).with_ambiguous(true)
}

/// Checks that a success has a status that the service sends for it.
pub(crate) fn check_status(
    response: &HttpResponse<Bytes>,
    statuses: &[StatusCode],
) -> Result<(), Error> {
    let status = response.status();
    if statuses.contains(&status) {
        return Ok(());
    }
    Err(malformed_success(format!(
        "the service does not respond with {status}"
    )))
}
