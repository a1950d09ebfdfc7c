//! The state of an entity that an error reports after an ambiguous outcome.

use tablesdk::Error;
use tablesdk::action::CurrentState;

/// The state of the entity that an error with an ambiguous outcome contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It equals what was sent.
    Equal,
    /// It does not.
    Different,
    /// There is no entity.
    Missing,
    /// It was not read, or there is none to read.
    Unread,
}

/// The state that the client found after an ambiguous outcome.
///
/// # Panics
///
/// If the outcome is not ambiguous.
pub fn found(error: &Error) -> Found {
    assert!(error.is_outcome_unknown(), "{error:?}");
    // A caller that checks for these must not take an ambiguous outcome for a definitive one.
    assert!(!error.is_conflict() && !error.is_precondition_failed());
    assert!(!error.is_not_found() && !error.is_table_not_found());
    match error.current() {
        Some(CurrentState::Present(entity)) if entity.equals_sent() => Found::Equal,
        Some(CurrentState::Present(_)) => Found::Different,
        Some(CurrentState::Missing) => Found::Missing,
        _ => Found::Unread,
    }
}
