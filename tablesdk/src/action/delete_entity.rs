//! `delete` and `delete_stored`: Delete Entity.

use std::future::IntoFuture;

use http::StatusCode;
use tablesdk_protocol::operation::delete_entity::Request;
use tablesdk_protocol::{EntityKey, ErrorCode, IfMatch};

use super::settle::{Sent, settle};
use super::{ActionFuture, check_condition, check_status};
use crate::entity::EntityError;
use crate::pipeline::Effect;
use crate::{Error, RowNow, TableClient};

/// Deletes an entity. See [`TableClient::delete`] and [`TableClient::delete_stored`].
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct DeleteEntity {
    table: TableClient,
    key: Result<EntityKey, EntityError>,
    if_match: IfMatch,
}

impl DeleteEntity {
    pub(crate) const fn new(table: TableClient, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            if_match: IfMatch::Any,
        }
    }

    pub(crate) fn if_match(mut self, if_match: IfMatch) -> Self {
        self.if_match = if_match;
        self
    }

    async fn run(self) -> Result<bool, Error> {
        let key = self
            .key
            .map_err(|error| Error::input(error).with_operation(OPERATION))?;
        check_condition(OPERATION, &self.if_match).map_err(|error| error.with_key(&key))?;
        let request = Request {
            table: self.table.checked_name(OPERATION)?,
            key,
            if_match: self.if_match,
        };
        let mut run = self.table.pipeline.begin(OPERATION);
        let encoded = request.encode(&run.pipeline().endpoint);
        match run.send(Effect::Write, &encoded).await {
            Ok(answer) => {
                check_status(&answer, OPERATION, &[StatusCode::NO_CONTENT])
                    .map_err(|error| error.with_key(&request.key))?;
                Ok(true)
            }
            // It may be gone since, or never have been there.
            Err(error) if error.code() == Some(&ErrorCode::TableNotFound) => {
                Err(error.with_key(&request.key))
            }
            // A missing table is an error, a missing entity an answer.
            Err(error)
                if !error.is_unsettled()
                    && error.is_not_found()
                    && error.code() != Some(&ErrorCode::TableNotFound) =>
            {
                Ok(false)
            }
            Err(error) => {
                let sent = Sent {
                    table: &request.table,
                    key: &request.key,
                    body: None,
                    whole: true,
                };
                match settle(&mut run, sent, error).await? {
                    // Without a version to fulfil, the delete promises that nothing is there.
                    (RowNow::Missing, _) if request.if_match == IfMatch::Any => Ok(true),
                    (row, error) => Err(error.into_outcome_unknown(row)),
                }
            }
        }
    }
}

impl IntoFuture for DeleteEntity {
    type Output = Result<bool, Error>;
    type IntoFuture = ActionFuture<'static, bool>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

const OPERATION: &str = "delete entity";
