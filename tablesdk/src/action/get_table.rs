//! `exists`: Query Tables with a name.

use http::StatusCode;
use tablesdk_protocol::header::X_MS_REQUEST_ID;
use tablesdk_protocol::operation::get_table::Request;
use tablesdk_protocol::wire::json::MetadataLevel;

use crate::error::Error;
use crate::pipeline::Effect;
use crate::pipeline::Table;

/// Checks whether a table exists. See [`TableClient::table_exists`](crate::TableClient::table_exists).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct TableExists {
    table: Table,
}

impl TableExists {
    pub(crate) const fn new(table: Table) -> Self {
        Self { table }
    }

    async fn run(self) -> Result<bool, Error> {
        let request = Request {
            name: self.table.checked_name(OPERATION)?,
            level: MetadataLevel::Minimal,
        };
        let pipeline = &self.table.pipeline;
        let request = request.encode(&pipeline.endpoint);
        match self.table.send(OPERATION, Effect::Read, &request).await {
            // The status is the answer, since emulators put something else than the table into the body. Any proxy can give the
            // status, so that the header tells whose it is.
            Ok(answer) => {
                let (status, headers) = (answer.response.status(), answer.response.headers());
                let problem = if status != StatusCode::OK {
                    format!("the service does not answer with {status}")
                } else if !headers.contains_key(X_MS_REQUEST_ID) {
                    format!("{status} without the header {X_MS_REQUEST_ID} is not the service's")
                } else {
                    return Ok(true);
                };
                Err(Error::response(problem).with_operation(OPERATION))
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

awaitable!(impl[] TableExists => bool);

const OPERATION: &str = "get table";
