//! Errors that a program makes itself: for a fake of its own trait, in its tests.
//!
//! They are not behind a feature: one that only the development dependencies name is on for the
//! whole build.

use tablesdk_protocol::{ErrorCode, ServiceError, TransportError};

use super::{CurrentState, Error};

impl Error {
    /// The error that a response of the service with this code is: with the status and the message
    /// that the service sends.
    ///
    /// It is for fakes: a program that reads its table through a trait of its own can test how it
    /// handles errors without a table. The [guide to
    /// testing](crate::guide::testing#without-a-table) shows a fake.
    ///
    /// ```
    /// use tablesdk::{Error, ErrorCode};
    ///
    /// let error = Error::service(ErrorCode::ServerBusy);
    /// assert!(error.is_throttled());
    /// assert!(error.to_string().contains("503 ServerBusy"));
    /// ```
    pub fn service(code: ErrorCode) -> Self {
        Self::service_response(ServiceError::from(code))
    }

    /// The error of a write whose response was lost, with the state in which the entity was found:
    /// for fakes, as [`service`](Self::service).
    ///
    /// ```
    /// use tablesdk::action::CurrentState;
    /// use tablesdk::{Error, ErrorKind};
    ///
    /// let error = Error::outcome_unknown(CurrentState::Missing);
    /// assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    /// assert!(matches!(error.current(), Some(CurrentState::Missing)));
    /// ```
    pub fn outcome_unknown(current: CurrentState) -> Self {
        let lost = TransportError::maybe_sent(NO_RESPONSE);
        Self::transport(lost).into_outcome_unknown(current)
    }

    /// The error of a read whose response was lost, or of a write that was not carried out: for
    /// fakes, as [`service`](Self::service).
    ///
    /// ```
    /// use tablesdk::{Error, ErrorKind};
    ///
    /// assert_eq!(Error::no_response().kind(), ErrorKind::Transport);
    /// ```
    pub fn no_response() -> Self {
        Self::transport(TransportError::not_sent(NO_RESPONSE))
    }
}

const NO_RESPONSE: &str = "a fake does not respond";
