//! What others see of an operation: a span of `tracing` with its attempts inside, and a report for the program's own hook.
//!
//! Never sees a URL, a header or a body: neither keys and signatures nor what is stored can get out here.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::header as name;
use tokio::time::Instant;

use super::Pipeline;
use super::attempt::Failure;
use crate::error::Error;
use crate::filter::AccessClass;

/// What an operation took. See [`TableServiceClientBuilder::on_operation`](crate::TableServiceClientBuilder::on_operation).
///
/// A query is one operation, however many pages it reads. It is reported when its last page was read, when it failed, or when its
/// stream ended or was dropped. Each part that [`partitions`](crate::action::QueryEntities::partitions) and similar methods read is
/// a query of its own, and each batch of a bulk run is an operation of its own.
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
    /// How often a request was sent. More than one when it was repeated, or the operation takes several, as a query of several
    /// pages does.
    pub attempts: u32,
    /// The bytes of the bodies that were sent.
    pub bytes_sent: u64,
    /// The bytes of the bodies that came with a success.
    pub bytes_received: u64,
    /// How long its requests took, including the waits before retries. The time that a program takes between the pages of a stream
    /// does not count.
    pub duration: Duration,
    /// The error of the operation as a whole, if there is one: the service's code, the status of a response that is not the
    /// service's, `timeout`, `transport`, `credential`, `response` for a response that cannot be read, `caller` for a closure that
    /// failed, or `cancelled` when its future or its stream was dropped while a request was in flight. A stream that is dropped
    /// between its pages has no error. Codes for something that does not exist, already exists or was changed are reported here as
    /// well.
    pub error: Option<String>,
}

/// What is called with the report of each operation.
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
// A query is one span, as the conventions of OpenTelemetry want, and its deadline is that of a page. A parallel query is several spans:
// they overlap, have filters of their own and may end early, so a sum of their times would say nothing, and access classes
// have no sum at all. A span ends with the last page and not with the stream, since a caller that holds the stream is no slow query.
// Where a response is judged as a whole, as in a query for one item, the span waits for that decision.
pub(super) struct OperationSpan {
    report: OperationReport,
    /// Since when it is under way. Not, while it waits for the program to ask for more.
    started: Option<Instant>,
    hook: Option<Hook>,
    end: End,
    span: Span,
}

/// How an operation ended.
enum End {
    /// It did not: its future was dropped.
    Open,
    /// With what programs expect: a success, or that something is missing, is there already or has changed.
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
            span: Span::operation(pipeline, operation, table),
        }
    }

    pub(super) const fn entities(&mut self, count: usize) {
        self.report.entities = count;
    }

    pub(super) const fn more_entities(&mut self, count: usize) {
        self.report.entities += count;
    }

    pub(super) const fn access(&mut self, access: AccessClass) {
        self.report.access = Some(access);
    }

    pub(super) const fn page(&mut self) {
        self.report.pages += 1;
    }

    /// Runs an attempt in a span of its own. The same request was sent so many times before it.
    pub(super) async fn attempt(
        &mut self,
        before: u32,
        bytes: usize,
        client_request_id: &str,
        attempt: impl Future<Output = Result<Response<Bytes>, Failure>>,
    ) -> Result<Response<Bytes>, Failure> {
        let span = self.span.attempt(before, client_request_id);
        self.report.attempts += 1;
        self.report.bytes_sent += u64::try_from(bytes).unwrap_or_default();
        let answer = span.run(attempt).await;
        match &answer {
            Ok(response) => {
                let bytes = response.body().len();
                self.report.bytes_received += u64::try_from(bytes).unwrap_or_default();
                let request_id = response.headers().get(name::X_MS_REQUEST_ID);
                let request_id = request_id.and_then(|id| id.to_str().ok());
                span.answered(response.status().as_u16(), request_id);
            }
            Err(failure) => {
                let error = &failure.error;
                if let Some(status) = error.status() {
                    span.answered(status.as_u16(), error.request_id());
                }
                span.failed(&error.type_name(), !is_expected(error));
            }
        }
        answer
    }

    /// Notes an error that is the answer to the operation, and no failure of it.
    pub(super) fn answer(&mut self, error: &Error) {
        self.report.error = Some(error.type_name());
    }

    /// Notes how the operation ended.
    pub(super) fn end(&mut self, error: Option<&Error>) {
        self.end = match error {
            Some(error) if !is_expected(error) => End::Failure,
            _ => End::Expected,
        };
        if let Some(error) = error {
            self.answer(error);
        }
    }

    /// Has nothing to do until it goes on: dropped meanwhile, it ended well.
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

/// An operation whose requests begin one at a time, when the program asks for the next, such as the requests for the pages of a
/// query.
///
/// It is reported when it ends, when one of its requests fails, or when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct PagedOperation {
    /// Set while none of its requests is in flight.
    paused: Mutex<Option<OperationSpan>>,
}

impl PagedOperation {
    /// Takes over what the requests before have left, if there were any.
    pub(super) fn resume(&self, begin: impl FnOnce() -> OperationSpan) -> OperationSpan {
        let paused = self.paused().take();
        match paused {
            Some(mut observation) => {
                observation.resume();
                observation
            }
            None => begin(),
        }
    }

    pub(super) fn pause(&self, mut observation: OperationSpan) {
        observation.pause();
        *self.paused() = Some(observation);
    }

    /// Ends the operation and reports its outcome. An operation that has already ended is not changed.
    pub(crate) fn end(&self, error: Option<&Error>) {
        // Told when no lock is held: the program may do anything then.
        let paused = self.paused().take();
        if let Some(mut observation) = paused {
            observation.end(error);
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
                true
            }
            End::Expected => false,
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

/// That something is missing, is there already or has changed is an answer: programs ask for it.
fn is_expected(error: &Error) -> bool {
    error.is_not_found() || error.is_conflict() || error.is_precondition_failed()
}

/// A future for a task of its own, whose operations stay in the span that is current here.
#[cfg(feature = "tracing")]
pub(crate) fn in_current_span<F: Future>(future: F) -> impl Future<Output = F::Output> {
    tracing::Instrument::in_current_span(future)
}

#[cfg(not(feature = "tracing"))]
pub(crate) const fn in_current_span<F: Future>(future: F) -> F {
    future
}

#[cfg(feature = "tracing")]
mod spans {
    use tracing::Instrument as _;
    use tracing::field::Empty;

    use super::{OperationReport, Pipeline};
    use crate::transport::Backend;

    /// A span, by the names that OpenTelemetry has for databases and HTTP.
    pub(super) struct Span(tracing::Span);

    impl Span {
        pub(super) fn operation(
            pipeline: &Pipeline,
            operation: &'static str,
            table: Option<&str>,
        ) -> Self {
            let span = tracing::info_span!(
                target: "tablesdk",
                "operation",
                otel.name = Empty,
                otel.kind = "client",
                otel.status_code = Empty,
                db.system.name = Empty,
                db.operation.name = operation,
                db.collection.name = table,
                db.operation.batch.size = Empty,
                db.response.returned_rows = Empty,
                db.response.status_code = Empty,
                server.address = Empty,
                server.port = Empty,
                error.r#type = Empty,
                tablesdk.access = Empty,
                tablesdk.attempts = Empty,
                tablesdk.pages = Empty,
            );
            if !span.is_disabled() {
                match table {
                    Some(table) => span.record("otel.name", format!("{operation} {table}")),
                    None => span.record("otel.name", operation),
                };
                // Of the names that are agreed on there is one for Cosmos DB, and none for Table storage.
                let system = match pipeline.backend {
                    Backend::Cosmos => "azure.cosmosdb",
                    Backend::Storage => "azure.table_storage",
                };
                span.record("db.system.name", system);
                let endpoint = pipeline.endpoint.to_string();
                if let Ok(url) = endpoint.parse::<http::Uri>() {
                    span.record("server.address", url.host());
                    span.record("server.port", url.port_u16());
                }
            }
            Self(span)
        }

        pub(super) fn attempt(&self, before: u32, client_request_id: &str) -> Self {
            Self(tracing::debug_span!(
                target: "tablesdk",
                parent: &self.0,
                "attempt",
                otel.kind = "client",
                otel.status_code = Empty,
                http.request.resend_count = (before > 0).then_some(before),
                http.response.status_code = Empty,
                error.r#type = Empty,
                azure.service.request.id = Empty,
                tablesdk.client_request_id = client_request_id,
            ))
        }

        pub(super) async fn run<F: Future>(&self, future: F) -> F::Output {
            future.instrument(self.0.clone()).await
        }

        pub(super) fn answered(&self, status: u16, request_id: Option<&str>) {
            self.0.record("http.response.status_code", status);
            self.0.record("azure.service.request.id", request_id);
        }

        pub(super) fn failed(&self, kind: &str, is_failure: bool) {
            self.0.record("error.type", kind);
            if is_failure {
                self.0.record("otel.status_code", "ERROR");
            }
        }

        pub(super) fn ended(&self, report: &OperationReport, has_failed: bool) {
            if let Some(kind) = &report.error {
                self.0.record("db.response.status_code", kind.as_str());
                self.failed(kind, has_failed);
            }
            if let Some(access) = report.access {
                self.0.record("tablesdk.access", access.as_str());
                self.0.record("db.response.returned_rows", report.entities);
            } else if report.entities > 1 {
                self.0.record("db.operation.batch.size", report.entities);
            }
            self.0.record("tablesdk.attempts", report.attempts);
            if report.pages > 0 {
                self.0.record("tablesdk.pages", report.pages);
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod spans {
    use super::{OperationReport, Pipeline};

    /// Nothing, in a build without `tracing`.
    pub(super) struct Span;

    impl Span {
        pub(super) const fn operation(_: &Pipeline, _: &'static str, _: Option<&str>) -> Self {
            Self
        }

        pub(super) const fn attempt(&self, _: u32, _: &str) -> Self {
            Self
        }

        pub(super) async fn run<F: Future>(&self, future: F) -> F::Output {
            future.await
        }

        pub(super) const fn answered(&self, _: u16, _: Option<&str>) {}

        pub(super) const fn failed(&self, _: &str, _: bool) {}

        pub(super) const fn ended(&self, _: &OperationReport, _: bool) {}
    }
}

use spans::Span;
