//! [`OperationError`]: the error of an operation, for the client and for the log.

use tablesdk_protocol::{ErrorCode, ServiceError};

use crate::engine::Failure;
use crate::request::context::Context;
use crate::request::log;
use crate::storage::StorageError;

/// Why an operation failed.
#[derive(Debug)]
pub(super) struct OperationError {
    response: ServiceError,
    /// The error of the storage, which the operator finds in the log. The response contains nothing
    /// of it.
    cause: Option<StorageError>,
}

impl OperationError {
    /// Returns true if the server failed, and not the request.
    pub(super) fn is_server_error(&self) -> bool {
        self.response.status().is_server_error()
    }

    /// Logs the error of the storage, if there is one, and returns the error for the response to
    /// the request.
    pub(super) fn report(self, context: &Context) -> ServiceError {
        context.flavor.error(self.unmapped(context))
    }

    /// Logs the error of the storage, if there is one, and returns the error with the code that
    /// Azure Table storage has.
    pub(super) fn unmapped(self, context: &Context) -> ServiceError {
        if let Some(cause) = self.cause {
            log::storage_failed(context.request_id, &cause);
        }
        self.response
    }
}

impl<E: Into<ServiceError>> From<E> for OperationError {
    fn from(error: E) -> Self {
        Self {
            response: error.into(),
            cause: None,
        }
    }
}

impl From<StorageError> for OperationError {
    fn from(error: StorageError) -> Self {
        if error.is_temporary() {
            // The storage has logged it, once.
            return ErrorCode::ServerBusy.into();
        }
        let code = match error {
            StorageError::UnknownOutcome { .. } => ErrorCode::OperationTimedOut,
            _ => ErrorCode::InternalError,
        };
        Self {
            response: code.into(),
            cause: Some(error),
        }
    }
}

impl From<Failure> for OperationError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Rejected(rejection) | Failure::RejectedChange(_, rejection) => {
                rejection.into()
            }
            Failure::Storage(error) => error.into(),
        }
    }
}
