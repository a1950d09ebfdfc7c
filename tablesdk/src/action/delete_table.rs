//! `delete_table`: Delete Table.

use std::future::IntoFuture;

use tablesdk_protocol::operation::delete_table::Request;

use super::ActionFuture;
use crate::{Error, TableClient};

/// Deletes a table. See [`TableClient::delete_table`].
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct DeleteTable {
    table: TableClient,
}

impl DeleteTable {
    pub(crate) const fn new(table: TableClient) -> Self {
        Self { table }
    }

    async fn run(self) -> Result<bool, Error> {
        let request = Request {
            name: self.table.checked_name(OPERATION)?,
        };
        let pipeline = &self.table.pipeline;
        match pipeline
            .send(OPERATION, request.encode(&pipeline.endpoint))
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl IntoFuture for DeleteTable {
    type Output = Result<bool, Error>;
    type IntoFuture = ActionFuture<'static, bool>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

const OPERATION: &str = "delete table";
