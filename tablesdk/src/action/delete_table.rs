//! `delete_table`: Delete Table.

use http::StatusCode;
use tablesdk_protocol::operation::delete_table::Request;

use super::write::ambiguous_write::resolve_without_entity;
use crate::error::Error;
use crate::pipeline::Table;

/// Deletes a table.
pub(crate) async fn delete_table(table: Table) -> Result<bool, Error> {
    let request = Request {
        name: table.checked_name(OPERATION)?,
    };
    let request = request.encode(table.endpoint());
    let resolve = |sent: Result<_, Error>| match sent {
        // It is gone, most likely by an attempt of ours.
        Err(error) if error.is_ambiguous() && error.is_missing() => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        sent => resolve_without_entity(OPERATION, sent, &[StatusCode::NO_CONTENT]).map(|()| true),
    };
    table.pipeline.write(OPERATION, &request, resolve).await
}

const OPERATION: &str = "delete table";
