//! The records of an operation: a span of `tracing` with its attempts inside, an event for each
//! request, and a report for the hook of the caller.
//!
//! Records no URL, header or body, so that no key, signature or stored value gets into a log.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::header as name;
use tokio::time::Instant;

use super::Pipeline;
use super::attempt::{Attempt, AttemptFailure};
use super::event::{self, RequestName};
use super::span::Span;
use crate::error::Error;
use crate::filter::AccessClass;

/// The report of an operation: its requests, bytes, time and error. See
/// [`TableServiceClientBuilder::on_operation`](crate::TableServiceClientBuilder::on_operation).
///
/// A query is one operation, however many pages it reads. It is reported when its last page was
/// read, when it failed, or when its stream ended or was dropped. Each part that
/// [`partitions`](crate::action::QueryEntities::partitions) and similar methods read is a query of
/// its own, and each batch of a bulk run is an operation of its own.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// use tablesdk::TableServiceClient;
/// use tablesdk::action::OperationReport;
///
/// fn log(report: &OperationReport) {
///     eprintln!(
///         "{} of {:?}: {} attempts, {} bytes, {:?}",
///         report.operation, report.table, report.attempts, report.bytes_received, report.duration,
///     );
/// }
/// let service = TableServiceClient::builder(server.endpoint())
///     .credential(server.credential())
///     .on_operation(log)
///     .build()?;
/// service.table("Employees").create_table().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationReport {
    /// Such as `insert entity`.
    pub operation: &'static str,
    /// The table, where it is about one.
    pub table: Option<String>,
    /// How the service finds what is read; `None` for what writes.
    pub access: Option<AccessClass>,
    /// How many entities were read or written.
    pub entities: usize,
    /// How many pages of a query were read, those without entities included.
    pub pages: usize,
    /// The number of requests that were sent: more than one after a retry, and for an operation of
    /// several requests, such as a query of several pages.
    pub attempts: u32,
    /// The bytes of the bodies that were sent.
    pub bytes_sent: u64,
    /// The bytes of the bodies that came with a success.
    pub bytes_received: u64,
    /// How long its requests took, including the waits before retries. The time of the caller
    /// between the pages of a stream does not count.
    pub duration: Duration,
    /// The error of the operation as a whole, if there is one: the service's code, the status of a
    /// response that is not the service's, `timeout`, `transport`, `credential`, `response` for a
    /// response that cannot be read, `data` for an entity that does not fit the type, `not_unique`,
    /// `aborted` for a closure that failed, or `cancelled` when its future or its stream was
    /// dropped while a request was in flight. A stream that is dropped between its pages has no
    /// error. A query that yielded the error of an entity, and continued, has that error, unless a
    /// later one ended it. Codes for something that does not exist, already exists or was changed
    /// are reported here as well.
    pub error: Option<String>,
}

/// The function that is called with the report of each operation.
#[derive(Clone)]
pub(crate) struct Hook(Arc<dyn Fn(&OperationReport) + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn(&OperationReport) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// Collects the report of an operation, and passes it to the hook when dropped.
// A query is one span, as the conventions of OpenTelemetry want, and its deadline is that of a
// page. A parallel query is several spans: they overlap, have filters of their own and may end
// early, so a sum of their times would say nothing, and access classes have no sum at all. A span
// ends with the last page and not with the stream, since a caller that holds the stream is no slow
// query. Where a response is judged as a whole, as in a query for one item, the span waits for that
// decision.
pub(super) struct OperationSpan {
    pub(super) report: OperationReport,
    /// When it was started or resumed; `None` while it waits for the caller to ask for more.
    started: Option<Instant>,
    hook: Option<Hook>,
    end: End,
    /// A part of it has failed, whatever its end is.
    has_failed: bool,
    span: Span,
}

fn bytes_of(body: &Bytes) -> u64 {
    u64::try_from(body.len()).unwrap_or_default()
}

/// How an operation ended.
enum End {
    /// It did not end: its future was dropped.
    Open,
    /// With a result that callers expect: a success, or an error that something is missing, exists
    /// already or has changed.
    Expected,
    Failure,
}

impl OperationSpan {
    pub(super) fn new(pipeline: &Pipeline, operation: &'static str, table: Option<&str>) -> Self {
        Self {
            report: OperationReport {
                operation,
                table: table.map(str::to_owned),
                access: None,
                entities: 0,
                pages: 0,
                attempts: 0,
                bytes_sent: 0,
                bytes_received: 0,
                duration: Duration::ZERO,
                error: None,
            },
            started: Some(Instant::now()),
            hook: pipeline.hook.clone(),
            end: End::Open,
            has_failed: false,
            span: Span::operation(pipeline, operation, table),
        }
    }

    /// Runs an attempt in a span of its own. The same request was sent so many times before it.
    pub(super) async fn attempt(
        &mut self,
        before: u32,
        attempt: Attempt<'_>,
    ) -> Result<Response<Bytes>, AttemptFailure> {
        let span = self.span.attempt(before, attempt.client_request_id);
        self.report.attempts += 1;
        self.report.bytes_sent += bytes_of(attempt.request.body());
        let request = RequestName {
            endpoint: &attempt.pipeline.endpoint,
            attempt: before + 1,
            client_request_id: attempt.client_request_id,
            is_at_secondary: attempt.is_at_secondary,
        };
        let bytes_sent = attempt.request.body().len();
        let timer = event::Timer::start();
        let response = span.run(attempt.send()).await;
        let outcome = response.as_ref().map_err(|failure| &failure.error);
        event::ended(&self.report, request, &timer, bytes_sent, outcome);
        match &response {
            Ok(response) => {
                self.report.bytes_received += bytes_of(response.body());
                span.answered(response.status().as_u16(), || {
                    let request_id = response.headers().get(name::X_MS_REQUEST_ID);
                    request_id.and_then(|id| id.to_str().ok())
                });
            }
            Err(failure) => {
                let error = &failure.error;
                if let Some(status) = error.status() {
                    span.answered(status.as_u16(), || error.request_id());
                }
                span.failed(&error.type_name(), !is_expected(error));
            }
        }
        response
    }

    /// Records an error that is the result of the operation, and not a failure of it.
    pub(super) fn note_error(&mut self, error: &Error) {
        self.report.error = Some(error.type_name());
    }

    /// Records the failure of a part of the operation. The first one is its error, if no other
    /// error ends it.
    pub(super) fn note_failure(&mut self, error: &Error) {
        self.has_failed = true;
        self.report.error.get_or_insert_with(|| error.type_name());
    }

    /// Records how the operation ended.
    pub(super) fn end(&mut self, error: Option<&Error>) {
        self.end = match error {
            Some(error) if !is_expected(error) => End::Failure,
            _ => End::Expected,
        };
        if let Some(error) = error {
            self.note_error(error);
        }
    }

    /// Waits until it is resumed. If it is dropped meanwhile, it ended well.
    fn pause(&mut self) {
        self.end(None);
        if let Some(started) = self.started.take() {
            self.report.duration += started.elapsed();
        }
    }

    fn resume(&mut self) {
        self.end = End::Open;
        self.started = Some(Instant::now());
    }
}

/// An operation whose requests begin one at a time, when the caller asks for the next, such as the
/// requests for the pages of a query.
///
/// It is reported when it ends, when one of its requests fails, or when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct PagedOperation {
    /// Set while none of its requests is in flight.
    paused: Mutex<Option<OperationSpan>>,
}

impl PagedOperation {
    /// The span of the earlier requests, or a new one.
    pub(super) fn resume(&self, begin: impl FnOnce() -> OperationSpan) -> OperationSpan {
        let paused = self.paused().take();
        match paused {
            Some(mut span) => {
                span.resume();
                span
            }
            None => begin(),
        }
    }

    /// Adds to an error the attempts and the time of all requests so far.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        match &*self.paused() {
            Some(span) => error.with_attempts(span.report.attempts, span.report.duration),
            None => error,
        }
    }

    pub(super) fn pause(&self, mut span: OperationSpan) {
        span.pause();
        *self.paused() = Some(span);
    }

    /// Ends the operation and reports its outcome. An operation that has already ended is not
    /// changed.
    pub(crate) fn end(&self, error: Option<&Error>) {
        // Reported while no lock is held: the hook may call the client.
        let paused = self.paused().take();
        if let Some(mut span) = paused {
            span.end(error);
        }
    }

    fn paused(&self) -> MutexGuard<'_, Option<OperationSpan>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OperationSpan {
    fn drop(&mut self) {
        if self.report.attempts == 0 {
            return;
        }
        if let Some(started) = self.started {
            self.report.duration += started.elapsed();
        }
        let has_failed = match self.end {
            End::Open => {
                self.report.error = Some("cancelled".to_owned());
                event::cancelled(&self.report);
                true
            }
            End::Expected => self.has_failed,
            End::Failure => true,
        };
        self.span.ended(&self.report, has_failed);
        if let Some(hook) = &self.hook {
            (hook.0)(&self.report);
        }
    }
}

impl fmt::Debug for OperationSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.report, f)
    }
}

/// Errors that something is missing, exists already or has changed are results that callers ask
/// for.
fn is_expected(error: &Error) -> bool {
    error.is_missing() || error.is_conflict() || error.is_precondition_failed()
}
