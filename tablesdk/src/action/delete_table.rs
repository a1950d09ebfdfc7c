//! `delete_table`: Delete Table.

use http::StatusCode;
use tablesdk_protocol::operation::delete_table::Request;

use super::write::ambiguous_write::resolve_without_entity;
use crate::error::Error;
use crate::pipeline::{Effect, Table};

/// Deletes a table. See [`TableClient::delete_table`](crate::TableClient::delete_table).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct DeleteTable {
    pub(crate) table: Table,
}

impl DeleteTable {
    async fn run(self) -> Result<bool, Error> {
        let request = Request {
            name: self.table.checked_name(OPERATION)?,
        };
        let request = request.encode(self.table.endpoint());
        match self.table.send(OPERATION, Effect::Write, &request).await {
            // It is gone, most likely by an attempt of ours.
            Err(error) if error.is_ambiguous() && error.is_not_found() => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            sent => {
                resolve_without_entity(OPERATION, sent, &[StatusCode::NO_CONTENT]).map(|()| true)
            }
        }
    }
}

action!(impl[] DeleteTable, table.pipeline => bool);

const OPERATION: &str = "delete table";
