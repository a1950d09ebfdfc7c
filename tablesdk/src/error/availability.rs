//! Failures that pass: the service cannot be reached, is busy, or fails. This module does not know
//! how requests are retried.

use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::ErrorCode;

use super::{Error, ErrorKind, Source};

impl Error {
    /// The service cannot be reached, or cannot carry out the request now: the same call may
    /// succeed later. The client has already retried the request, as its
    /// [policy](crate::RetryPolicy) says.
    ///
    /// It is true when
    ///
    /// * the kind is [`Transport`](ErrorKind::Transport): no connection, no response in time, or
    ///   none to this request;
    /// * the kind is [`Service`](ErrorKind::Service), and the status is 408, 429, 500, 502, 503 or
    ///   504, of the service or of a component in front of it; or the account is being created.
    ///
    /// A write that may have been carried out is [`is_outcome_unknown`](Self::is_outcome_unknown),
    /// and not this. So a web service responds with 503 where this is true: its clients may send
    /// any request again. [`retry_after`](Self::retry_after) may say when.
    ///
    /// ```
    /// use tablesdk::{Error, ErrorCode};
    ///
    /// assert!(Error::no_response().is_unavailable());
    /// assert!(Error::service(ErrorCode::ServerBusy).is_unavailable());
    /// assert!(Error::service(ErrorCode::OperationTimedOut).is_unavailable());
    /// assert!(!Error::service(ErrorCode::EntityAlreadyExists).is_unavailable());
    /// ```
    pub fn is_unavailable(&self) -> bool {
        match (self.kind(), self.status()) {
            (ErrorKind::Transport, _) => true,
            (ErrorKind::Service, Some(status)) => {
                let code = self.code().map(ErrorCode::as_str);
                may_pass(status) || code == Some("AccountBeingCreated")
            }
            _ => false,
        }
    }

    /// How long the service asked to wait before another attempt, counted from its last response:
    /// the header `Retry-After`, or `x-ms-retry-after-ms` of Cosmos DB. `None` if it asked for
    /// nothing.
    ///
    /// The client waits that long before it retries a request. The error remains if the wait would
    /// end after the deadline, or if the last attempt was refused, too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tablesdk::{ErrorCode, TableServiceClient};
    /// use tablesdk_server::TableServer;
    /// use tablesdk_server::testing::{Fault, Op};
    ///
    /// let server = TableServer::in_process();
    /// let wait = Duration::from_secs(90);
    /// let busy = Fault::error(ErrorCode::ServerBusy).retry_after(wait);
    /// server.faults().on(Op::QueryTables).inject(busy);
    ///
    /// let service = TableServiceClient::in_process(&server);
    /// let error = service.tables().collect().await.unwrap_err();
    /// assert!(error.is_unavailable());
    /// assert_eq!(error.retry_after(), Some(wait));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    pub(crate) fn with_retry_after(mut self, pause: Option<Duration>) -> Self {
        self.0.retry_after = pause;
        self
    }

    /// The service throttles the client: 503 `ServerBusy`, or 429 on Cosmos DB.
    pub fn is_throttled(&self) -> bool {
        self.has_status(StatusCode::SERVICE_UNAVAILABLE)
            || self.has_status(StatusCode::TOO_MANY_REQUESTS)
    }

    /// The service has more to do than it can: it throttles the client, or did not finish in time.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_throttled() || self.code() == Some(&ErrorCode::OperationTimedOut)
    }

    /// The time limit was reached before the service responded.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.source, Source::Timeout(_))
    }
}

/// Returns true if the next response to the same request may be different.
fn may_pass(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}
