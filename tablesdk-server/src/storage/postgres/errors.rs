//! The meaning of an error of the database: nothing was written, something may have been, or a
//! statement is wrong.

use std::error::Error as _;
use std::sync::Arc;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::storage::StorageError;

/// A connection that is of no use any more.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) cause: Arc<str>,
    /// True if the statement certainly had no effect.
    pub(super) had_no_effect: bool,
    is_late: bool,
}

impl Lost {
    /// Returns true if another connection may respond at once.
    pub(super) const fn may_be_retried(&self) -> bool {
        !self.is_late
    }
}

/// The loss that an error reports.
///
/// # Errors
///
/// An error that another attempt would return, too.
pub(super) fn lost(error: &Error) -> Result<Lost, StorageError> {
    let Some(response) = error.as_db_error() else {
        // The connection ended before the response.
        return Ok(Lost {
            cause: describe(error),
            had_no_effect: false,
            is_late: false,
        });
    };
    if is_temporary(response) {
        let is_unknown = is_fatal(response) || is_unknown(response.code());
        return Ok(Lost {
            cause: describe(error),
            had_no_effect: !is_unknown,
            is_late: response.code() == &SqlState::QUERY_CANCELED,
        });
    }
    Err(StorageError::Failed {
        what: "use the database",
        cause: describe(error),
    })
}

/// Returns true if the database refuses for now what it may do later.
fn is_temporary(response: &DbError) -> bool {
    // Connections, resources, interventions of an operator; and what a new primary says while it is
    // none yet.
    let classes = ["08", "53", "57", "58"];
    is_fatal(response)
        || is_unknown(response.code())
        || classes
            .iter()
            .any(|class| response.code().code().starts_with(class))
        || response.code() == &SqlState::READ_ONLY_SQL_TRANSACTION
}

/// Returns true if the database ends the connection with this response. Then a commit may wait for
/// a replica, and be applied.
fn is_fatal(response: &DbError) -> bool {
    match response.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        // A database that does not send the severity in one language for all.
        None => response.severity() != "ERROR",
    }
}

/// Returns true if the database itself does not know the outcome of a statement.
fn is_unknown(code: &SqlState) -> bool {
    code.code().starts_with("08") || code == &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

/// Returns true if a commit was undone because a record has changed, or was written by another
/// transaction at the same time.
pub(super) fn is_conflict(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::DIVISION_BY_ZERO,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
    })
}

/// The error and its causes. It names hosts and users, but no password.
pub(super) fn describe(error: &Error) -> Arc<str> {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text.into()
}
