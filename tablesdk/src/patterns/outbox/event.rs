//! Events of the outbox for a log. Without the feature `tracing`, there are none.

use crate::error::Error;
use crate::pipeline::Table;

/// A step failed, or the steps of a transaction were stored and could not be looked at.
pub(super) fn step_left(table: &Table, step: Option<u64>, error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: crate::pipeline::event::TARGET,
        operation = error.operation(),
        table = table.name(),
        step,
        status = error.status().map(|status| status.as_u16()),
        code = error.code().map(tablesdk_protocol::ErrorCode::as_str),
        reason = error.reason(),
        request_id = error.request_id(),
        "a step of the outbox was not applied, and waits for a worker"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (table, step, error);
}

/// A worker has no client of the account whose entity a step changes.
pub(super) fn no_account(operation: &'static str, table: &Table, account: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: crate::pipeline::event::TARGET,
        operation,
        table = table.name(),
        account,
        "a step of the outbox is for an account that this worker does not know"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (operation, table, account);
}

/// A worker could not look at the outbox, and waits.
pub(super) fn worker_waits(table: &Table, error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: crate::pipeline::event::TARGET,
        operation = error.operation(),
        table = table.name(),
        status = error.status().map(|status| status.as_u16()),
        code = error.code().map(tablesdk_protocol::ErrorCode::as_str),
        reason = error.reason(),
        request_id = error.request_id(),
        "a worker could not look at the outbox, and tries again"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (table, error);
}

/// A worker has no function for a message.
pub(super) fn no_handler(operation: &'static str, table: &Table, message: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: crate::pipeline::event::TARGET,
        operation,
        table = table.name(),
        message_name = message,
        "a message of the outbox has no handler in this worker"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (operation, table, message);
}
