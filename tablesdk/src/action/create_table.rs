//! `create`: Create Table.

use std::future::IntoFuture;

use http::StatusCode;
use tablesdk_protocol::ErrorCode;
use tablesdk_protocol::operation::Prefer;
use tablesdk_protocol::operation::create_table::Request;
use tablesdk_protocol::wire::json::MetadataLevel;

use super::ActionFuture;
use super::settle::check_status;
use crate::pipeline::Effect;
use crate::{Error, RowNow, TableClient};

/// Creates a table. See [`TableClient::create`].
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct CreateTable {
    table: TableClient,
}

impl CreateTable {
    pub(crate) const fn new(table: TableClient) -> Self {
        Self { table }
    }

    /// Takes a table that exists for success: awaiting tells whether it was created. When an answer was lost, `true` may be
    /// about the doing of somebody else at the same time.
    pub fn if_missing(self) -> CreateTableIfMissing {
        CreateTableIfMissing { create: self }
    }

    async fn run(self) -> Result<(), Error> {
        let request = Request {
            name: self.table.checked_name(OPERATION)?,
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        };
        let pipeline = &self.table.pipeline;
        let request = request.encode(&pipeline.endpoint);
        match self
            .table
            .begin(OPERATION)
            .send(Effect::Write, &request)
            .await
        {
            Ok(answer) => {
                let statuses = [StatusCode::CREATED, StatusCode::NO_CONTENT];
                check_status(&answer, &statuses).map_err(unknown)
            }
            // Somebody created it, most likely an attempt of ours: a table holds nothing that could tell.
            Err(error)
                if error.is_unsettled() && error.code() == Some(&ErrorCode::TableAlreadyExists) =>
            {
                Ok(())
            }
            Err(error) if error.is_unsettled() => Err(error.into_outcome_unknown(RowNow::Unread)),
            Err(error) => Err(error),
        }
    }
}

impl IntoFuture for CreateTable {
    type Output = Result<(), Error>;
    type IntoFuture = ActionFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Creates a table unless it exists. See [`CreateTable::if_missing`].
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct CreateTableIfMissing {
    create: CreateTable,
}

impl CreateTableIfMissing {
    async fn run(self) -> Result<bool, Error> {
        match self.create.run().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(&ErrorCode::TableAlreadyExists) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl IntoFuture for CreateTableIfMissing {
    type Output = Result<bool, Error>;
    type IntoFuture = ActionFuture<'static, bool>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// The error of an answer that is not the service's own.
fn unknown(error: Error) -> Error {
    let error = error.with_operation(OPERATION);
    error.into_outcome_unknown(RowNow::Unread)
}

const OPERATION: &str = "create table";
