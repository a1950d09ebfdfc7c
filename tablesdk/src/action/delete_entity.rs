//! `delete` and `delete_stored`: Delete Entity.

use http::StatusCode;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::delete_entity::Request;
use tablesdk_protocol::{EntityKey, ErrorCode, IfMatch};

use super::ambiguous_write::{WriteAttempt, check_status, resolve};
use super::check_condition;
use super::exactly_once::{self, KeepMarker};
use crate::entity::EntityError;
use crate::error::{CurrentState, Error};
use crate::pipeline::{Effect, OperationRun, Table};

/// Deletes an entity. See [`TableClient::delete`](crate::TableClient::delete) and [`TableClient::delete_stored`](crate::TableClient::delete_stored).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// // `true` means that this call did it, whatever answers are lost.
/// assert!(table.delete(Employee::key("Sales", "1")).exactly_once().await?);
/// assert!(!table.delete(Employee::key("Sales", "1")).exactly_once().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct DeleteEntity {
    table: Table,
    key: Result<EntityKey, EntityError>,
    if_match: IfMatch,
    exactly_once: Option<KeepMarker>,
}

impl DeleteEntity {
    pub(crate) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            if_match: IfMatch::Any,
            exactly_once: None,
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
        let mut run = self.table.begin(OPERATION);
        let deleted = delete(&mut run, &request, self.exactly_once).await;
        run.end(deleted)
    }
}

async fn delete(
    run: &mut OperationRun<'_>,
    request: &Request,
    once: Option<KeepMarker>,
) -> Result<bool, Error> {
    let sent = if let Some(keep) = once {
        let changes = vec![Change::Delete(request.clone())];
        let keys = std::slice::from_ref(&request.key);
        let done = exactly_once::commit(run, &request.table, keys, changes, keep).await;
        done.map(drop).map_err(Error::without_batch_index)
    } else {
        let encoded = request.encode(&run.pipeline().endpoint);
        let answer = run.send(Effect::Write, &encoded).await;
        answer.and_then(|answer| check_status(&answer, &[StatusCode::NO_CONTENT]))
    };
    match sent {
        Ok(()) => {
            run.note_entities(1);
            Ok(true)
        }
        // A missing table is an error, a missing entity an answer.
        Err(error) if !error.is_ambiguous() && error.is_no_such_resource() => {
            run.note_expected_error(&error);
            Ok(false)
        }
        Err(error) => {
            let is_without_table = error.code() == Some(&ErrorCode::TableNotFound);
            let sent = WriteAttempt {
                table: &request.table,
                key: &request.key,
                body: None,
                whole: true,
            };
            match resolve(run, sent, error).await? {
                // Without a version to fulfil, the delete promises that nothing is there.
                (CurrentState::Missing, _)
                    if request.if_match == IfMatch::Any && once.is_none() && !is_without_table =>
                {
                    run.note_entities(1);
                    Ok(true)
                }
                (row, error) => Err(error.into_outcome_unknown(row)),
            }
        }
    }
}

awaitable!(impl[] DeleteEntity => bool);
exactly_once_options!(
    impl[] DeleteEntity;
    /// Determines the outcome even when responses are lost: `true` then means that this call deleted the entity. See [the
    /// guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
);

const OPERATION: &str = "delete entity";
