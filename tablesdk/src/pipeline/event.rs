//! Events of `tracing` for a log without spans. Without the feature `tracing`, there are none.
//!
//! Each event has all its facts as fields of its own. No event contains the key of an entity, a
//! value, a URL or a header. The message of the service is left out, because it may quote the
//! request.
//!
//! `WARN` is for facts that no returned error states: a retry, since the operation may succeed in
//! the end; the end of the retries, with the limit that was reached; and an outcome that stays
//! unknown, since the program may drop its error. All other failures are the caller's to log. An
//! event belongs to the span of the program, because subscribers write the fields of all its spans
//! in front of it.

#[cfg(not(feature = "tracing"))]
pub(super) use disabled::{
    Timer, cancelled, ended, exhausted, outcome_unknown, retried, starts_over,
};
#[cfg(feature = "tracing")]
pub(crate) use enabled::TARGET;
#[cfg(feature = "tracing")]
pub(super) use enabled::{
    Timer, cancelled, ended, exhausted, outcome_unknown, retried, starts_over,
};

use tablesdk_protocol::Endpoint;

/// One request of an operation, as its events identify it.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "tracing"),
    expect(dead_code, reason = "no event shows it")
)]
pub(super) struct RequestName<'a> {
    pub(super) endpoint: &'a Endpoint,
    /// How often it was sent, this time included.
    pub(super) attempt: u32,
    pub(super) client_request_id: &'a str,
    /// The location to which it is sent, or sent next.
    pub(super) is_at_secondary: bool,
}

#[cfg(feature = "tracing")]
mod enabled {
    use std::time::Duration;

    use bytes::Bytes;
    use http::Response;
    use tablesdk_protocol::{Endpoint, ErrorCode, Guid, header};
    use tokio::time::Instant;
    use tracing::{debug, enabled, warn};

    use super::RequestName;
    use crate::error::{CurrentState, Error};
    use crate::pipeline::OperationReport;

    // The span of the operation is not the parent of its events: its fields would be written again
    // in front of each line.

    /// Measures a request, if an event shows how long it took.
    pub(in crate::pipeline) struct Timer(Option<Instant>);

    impl Timer {
        pub(in crate::pipeline) fn start() -> Self {
            let is_shown = enabled!(target: TARGET, tracing::Level::DEBUG);
            Self(is_shown.then(Instant::now))
        }
    }

    /// A request has a response, or is known to get none.
    pub(in crate::pipeline) fn ended(
        report: &OperationReport,
        request: RequestName<'_>,
        timer: &Timer,
        bytes_sent: usize,
        outcome: Result<&Response<Bytes>, &Error>,
    ) {
        let (response, error) = (outcome.ok(), outcome.err());
        debug!(
            target: TARGET,
            operation = report.operation,
            table = report.table.as_deref(),
            attempt = request.attempt,
            location = location(request),
            status = match outcome {
                Ok(response) => Some(response.status().as_u16()),
                Err(error) => status(error),
            },
            code = error.and_then(code),
            reason = error.and_then(Error::reason),
            elapsed = timer.0.map(|began| shown(began.elapsed())),
            bytes_sent,
            bytes_received = response.map(|response| response.body().len()),
            account = request.endpoint.account(),
            request_id = match outcome {
                Ok(response) => {
                    let id = response.headers().get(header::X_MS_REQUEST_ID);
                    id.and_then(|id| id.to_str().ok())
                }
                Err(error) => error.request_id(),
            },
            client_request_id = request.client_request_id,
            "request ended"
        );
    }

    /// Warns of a request that failed, with fields that say what follows.
    macro_rules! request_failed {
        ($report:ident, $request:ident, $error:ident, { $($field:tt)+ }, $message:literal) => {
            warn!(
                target: TARGET,
                operation = $report.operation,
                table = $report.table.as_deref(),
                attempt = $request.attempt,
                $($field)+
                status = status($error),
                code = code($error),
                reason = $error.reason(),
                account = $request.endpoint.account(),
                request_id = $error.request_id(),
                client_request_id = $request.client_request_id,
                $message
            )
        };
    }

    /// A request failed, and is sent again after a wait.
    pub(in crate::pipeline) fn retried(
        report: &OperationReport,
        request: RequestName<'_>,
        wait: Duration,
        error: &Error,
    ) {
        request_failed!(
            report, request, error,
            { wait = shown(wait), next_location = location(request), },
            "request failed, and is retried"
        );
    }

    /// A request failed that would be sent again, but for a limit.
    pub(in crate::pipeline) fn exhausted(
        report: &OperationReport,
        request: RequestName<'_>,
        limit: &'static str,
        error: &Error,
    ) {
        request_failed!(
            report, request, error,
            { limit, },
            "request failed, and is not retried any more"
        );
    }

    /// A read-modify-write loop lost a race, and reads again after a wait.
    pub(in crate::pipeline) fn starts_over(report: &OperationReport, round: u32, wait: Duration) {
        debug!(
            target: TARGET,
            operation = report.operation,
            table = report.table.as_deref(),
            round,
            wait = shown(wait),
            "another client changed the entity, and the operation starts over"
        );
    }

    /// A write ended, and may have been applied. `client_request_id` is that of the write.
    pub(in crate::pipeline) fn outcome_unknown(
        report: &OperationReport,
        endpoint: &Endpoint,
        client_request_id: Option<Guid>,
        error: &Error,
    ) {
        warn!(
            target: TARGET,
            operation = report.operation,
            table = report.table.as_deref(),
            attempts = error.attempts(),
            elapsed = shown(error.elapsed()),
            current = error.current().map(|current| match current {
                CurrentState::Present(_) => "present",
                CurrentState::Missing => "missing",
                CurrentState::Unread => "unread",
            }),
            status = status(error),
            code = code(error),
            reason = error.reason(),
            account = endpoint.account(),
            request_id = error.request_id(),
            client_request_id = client_request_id.map(|id| id.to_string()),
            "outcome unknown: the write may have been applied"
        );
    }

    /// The future or the stream of an operation was dropped while a request was in flight.
    pub(in crate::pipeline) fn cancelled(report: &OperationReport) {
        debug!(
            target: TARGET,
            operation = report.operation,
            table = report.table.as_deref(),
            attempts = report.attempts,
            elapsed = shown(report.duration),
            "operation cancelled"
        );
    }

    fn location(request: RequestName<'_>) -> Option<&'static str> {
        request.is_at_secondary.then_some("secondary")
    }

    fn status(error: &Error) -> Option<u16> {
        error.status().map(|status| status.as_u16())
    }

    fn code(error: &Error) -> Option<&str> {
        error.code().map(ErrorCode::as_str)
    }

    /// A duration as `Debug` shows it, such as `143.2ms`, without the digits that are noise.
    fn shown(duration: Duration) -> tracing::field::DebugValue<Duration> {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let unit = if micros < 100_000 { 10 } else { 1_000 };
        tracing::field::debug(Duration::from_micros(micros - micros % unit))
    }

    pub(crate) const TARGET: &str = "tablesdk";
}

#[cfg(not(feature = "tracing"))]
mod disabled {
    use std::time::Duration;

    use bytes::Bytes;
    use http::Response;
    use tablesdk_protocol::{Endpoint, Guid};

    use super::RequestName;
    use crate::error::Error;
    use crate::pipeline::OperationReport;

    pub(in crate::pipeline) struct Timer;

    impl Timer {
        pub(in crate::pipeline) const fn start() -> Self {
            Self
        }
    }

    pub(in crate::pipeline) const fn ended(
        _: &OperationReport,
        _: RequestName<'_>,
        _: &Timer,
        _: usize,
        _: Result<&Response<Bytes>, &Error>,
    ) {
    }

    pub(in crate::pipeline) const fn retried(
        _: &OperationReport,
        _: RequestName<'_>,
        _: Duration,
        _: &Error,
    ) {
    }

    pub(in crate::pipeline) const fn exhausted(
        _: &OperationReport,
        _: RequestName<'_>,
        _: &'static str,
        _: &Error,
    ) {
    }

    pub(in crate::pipeline) const fn starts_over(_: &OperationReport, _: u32, _: Duration) {}

    pub(in crate::pipeline) const fn outcome_unknown(
        _: &OperationReport,
        _: &Endpoint,
        _: Option<Guid>,
        _: &Error,
    ) {
    }

    pub(in crate::pipeline) const fn cancelled(_: &OperationReport) {}
}
