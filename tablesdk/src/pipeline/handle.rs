//! A pipeline as one call sees it.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::sleep;

use super::attempt::{AttemptFailure, Effect};
use super::operation_run::OperationRun;
use super::operation_span::{OperationSpan, PagedOperation};
use super::{Pipeline, RetryPolicy};
use crate::error::Error;

/// The pipeline of a client, with the options of a single call. Each action has a clone, so that
/// the options of a call reach every request of it without an argument in each function between.
#[derive(Clone)]
pub(crate) struct PipelineHandle {
    pipeline: Arc<Pipeline>,
    /// The table that the call is about.
    table: Option<Arc<str>>,
    /// The data of a pattern for its calls, such as a keyring.
    pub(crate) extra: Option<Arc<dyn Any + Send + Sync>>,
    /// Instead of the policy of the client.
    pub(crate) retry: Option<RetryPolicy>,
    /// Instead of the deadline of either policy.
    pub(crate) deadline: Option<Duration>,
    /// Called for each response that says that the service is busy.
    pub(crate) on_busy: Option<Arc<dyn Fn() + Send + Sync>>,
    /// True if all reads belong to a write, or must show earlier writes.
    pub(super) reads_now: bool,
}

impl PipelineHandle {
    pub(crate) fn new(pipeline: Pipeline) -> Self {
        Self {
            pipeline: Arc::new(pipeline),
            table: None,
            extra: None,
            retry: None,
            deadline: None,
            on_busy: None,
            reads_now: false,
        }
    }

    /// The handle of the calls about a table.
    pub(crate) fn of_table(mut self, name: &Arc<str>) -> Self {
        self.table = Some(Arc::clone(name));
        self
    }

    pub(crate) fn is_same_client(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pipeline, &other.pipeline)
    }

    /// Adds the endpoint and the table to an error.
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.with_place(&self.endpoint, self.table.as_ref())
    }

    /// Runs an action. Its error says where, even if the action sent nothing.
    pub(crate) async fn located<T>(
        self,
        action: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        action.await.map_err(|error| self.locate(error))
    }

    pub(super) fn policy(&self) -> &RetryPolicy {
        self.retry.as_ref().unwrap_or(&self.pipeline.retry)
    }

    pub(crate) fn time_limit(&self) -> Duration {
        self.deadline.unwrap_or_else(|| self.policy().deadline)
    }

    /// Checks that the options of the call allow a request.
    pub(super) fn check(&self) -> Result<(), Error> {
        let policy = self.policy().clone().deadline(self.time_limit());
        policy.check().map_err(Error::input)
    }

    /// Starts an operation: its deadline begins here.
    pub(crate) fn begin(&self, operation: &'static str) -> OperationRun<'_> {
        OperationRun::new(self, self.span(operation))
    }

    /// Starts the next requests of an operation whose requests begin one by one. They have a
    /// deadline and a number of attempts of their own.
    pub(crate) fn resume(
        &self,
        operation: &'static str,
        paged: &PagedOperation,
    ) -> OperationRun<'_> {
        OperationRun::new(self, paged.resume(|| self.span(operation)))
    }

    /// Reports a failure that says that the service is busy.
    pub(super) fn noted(&self, failure: AttemptFailure) -> AttemptFailure {
        if let Some(on_busy) = self.on_busy.as_ref().filter(|_| failure.error.is_busy()) {
            on_busy();
        }
        failure
    }

    /// Waits a random time before the n-th new round of a read-modify-write loop whose rounds are
    /// operations of their own.
    pub(crate) async fn pause_before_round(&self, round: u32) {
        sleep(self.policy().pause_before_round(round)).await;
    }

    fn span(&self, operation: &'static str) -> OperationSpan {
        OperationSpan::new(self, operation, self.table.as_deref())
    }

    /// Sends the only request of an operation, and returns the response of success.
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<Response<Bytes>, Error> {
        let mut run = self.begin(operation);
        let response = run.send(effect, request).await;
        run.end(response)
    }

    /// Sends the only request of a write. `resolve` makes the result of the operation from its
    /// outcome.
    pub(crate) async fn write<T>(
        &self,
        operation: &'static str,
        request: &Request<Bytes>,
        resolve: impl FnOnce(Result<Response<Bytes>, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut run = self.begin(operation);
        let sent = run.send(Effect::Write, request).await;
        if let Err(error) = &sent {
            run.note_expected_error(error);
        }
        run.end(resolve(sent))
    }
}

impl Deref for PipelineHandle {
    type Target = Pipeline;

    fn deref(&self) -> &Pipeline {
        &self.pipeline
    }
}

impl fmt::Debug for PipelineHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineHandle")
            .field("endpoint", &self.endpoint)
            .field("retry", &self.retry)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
