//! `exists`: Query Tables with a name.

use http::StatusCode;
use tablesdk_protocol::header::X_MS_REQUEST_ID;
use tablesdk_protocol::operation::get_table::Request;
use tablesdk_protocol::wire::json::MetadataLevel;

use crate::action::refusal::malformed;
use crate::error::Error;
use crate::pipeline::{Effect, Table};

/// Checks whether a table exists.
pub(crate) async fn table_exists(table: Table) -> Result<bool, Error> {
    let request = Request {
        name: table.checked_name(OPERATION)?,
        level: MetadataLevel::Minimal,
    };
    let request = request.encode(table.endpoint());
    match table.pipeline.send(OPERATION, Effect::Read, &request).await {
        // Only the status counts, since the body of some emulators is not the table. A proxy can
        // send the same status, so the header shows whose response it is.
        Ok(response) => {
            let (status, headers) = (response.status(), response.headers());
            let problem = if status != StatusCode::OK {
                format!("the service does not respond with {status}")
            } else if !headers.contains_key(X_MS_REQUEST_ID) {
                format!("{status} without the header {X_MS_REQUEST_ID} is not the service's")
            } else {
                return Ok(true);
            };
            Err(malformed(OPERATION, problem))
        }
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

const OPERATION: &str = "table_exists";
