//! A span of `tracing` for an operation or an attempt. Without the feature `tracing`, a span is
//! nothing.
//!
//! Records no URL, header or body.

#[cfg(not(feature = "tracing"))]
pub(super) use disabled::Span;
#[cfg(feature = "tracing")]
pub(super) use enabled::Span;

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
mod enabled {
    use tracing::Instrument as _;
    use tracing::field::Empty;

    use crate::pipeline::{OperationReport, Pipeline};
    use crate::transport::Backend;

    /// A span, by the names that OpenTelemetry has for databases and HTTP.
    pub(in crate::pipeline) struct Span(tracing::Span);

    impl Span {
        pub(in crate::pipeline) fn operation(
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
                // Of the names that are agreed on there is one for Cosmos DB, and none for Table
                // storage.
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

        pub(in crate::pipeline) fn attempt(&self, before: u32, client_request_id: &str) -> Self {
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

        pub(in crate::pipeline) async fn run<F: Future>(&self, future: F) -> F::Output {
            future.instrument(self.0.clone()).await
        }

        pub(in crate::pipeline) fn answered<'r>(
            &self,
            status: u16,
            request_id: impl FnOnce() -> Option<&'r str>,
        ) {
            if self.0.is_disabled() {
                return;
            }
            self.0.record("http.response.status_code", status);
            self.0.record("azure.service.request.id", request_id());
        }

        pub(in crate::pipeline) fn failed(&self, kind: &str, is_failure: bool) {
            self.0.record("error.type", kind);
            if is_failure {
                self.0.record("otel.status_code", "ERROR");
            }
        }

        pub(in crate::pipeline) fn ended(&self, report: &OperationReport, has_failed: bool) {
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
mod disabled {
    use crate::pipeline::{OperationReport, Pipeline};

    /// Nothing, in a build without `tracing`.
    pub(in crate::pipeline) struct Span;

    impl Span {
        pub(in crate::pipeline) const fn operation(
            _: &Pipeline,
            _: &'static str,
            _: Option<&str>,
        ) -> Self {
            Self
        }

        pub(in crate::pipeline) const fn attempt(&self, _: u32, _: &str) -> Self {
            Self
        }

        pub(in crate::pipeline) async fn run<F: Future>(&self, future: F) -> F::Output {
            future.await
        }

        pub(in crate::pipeline) fn answered<'r>(
            &self,
            _: u16,
            _: impl FnOnce() -> Option<&'r str>,
        ) {
        }

        pub(in crate::pipeline) const fn failed(&self, _: &str, _: bool) {}

        pub(in crate::pipeline) const fn ended(&self, _: &OperationReport, _: bool) {}
    }
}
