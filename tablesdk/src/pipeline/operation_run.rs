//! The only loop: sends a request until there is a response that is worth returning, or no time
//! left.
//!
//! Records whether an attempt may have been applied: a write that was sent and got no response may
//! have been carried out, whatever the response to its retry is. The operation decides what follows
//! from that.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tablesdk_protocol::Guid;
use tokio::time::{Instant, sleep};

use super::attempt::{Attempt, Effect, Inspect, RetryClass};
use super::deadline::Deadline;
use super::event::{self, RequestName};
use super::operation_span::{OperationSpan, PagedOperation};
use super::{OperationReport, PipelineHandle};
use crate::error::Error;
use crate::random::random_guid;

/// The requests of one operation: they share a deadline and a count.
#[derive(Debug)]
pub(crate) struct OperationRun<'p> {
    pipeline: &'p PipelineHandle,
    deadline: Deadline,
    attempts: u32,
    /// The client request id of the last write.
    write_id: Option<Guid>,
    span: OperationSpan,
}

/// How a request is sent, other than by default.
pub(crate) struct SendOptions<'i> {
    /// The maximum number of attempts; by default that of the retry policy.
    pub(crate) attempts: Option<u32>,
    /// Looks into a response of success for what makes it none.
    pub(crate) inspect: Inspect<'i>,
}

impl Default for SendOptions<'_> {
    fn default() -> Self {
        Self {
            attempts: None,
            inspect: &|_| None,
        }
    }
}

/// A response of success.
#[derive(Debug)]
pub(crate) struct ServiceResponse {
    pub(crate) response: Response<Bytes>,
    /// An earlier attempt got no response: it may have been carried out, or may be carried out
    /// later.
    pub(crate) is_after_ambiguous: bool,
}

impl<'p> OperationRun<'p> {
    pub(super) fn new(pipeline: &'p PipelineHandle, span: OperationSpan) -> Self {
        Self {
            pipeline,
            deadline: Deadline::after(pipeline.time_limit()),
            attempts: 0,
            write_id: None,
            span,
        }
    }

    /// The report of the operation so far.
    pub(crate) const fn report(&mut self) -> &mut OperationReport {
        &mut self.span.report
    }

    pub(crate) const fn pipeline(&self) -> &'p PipelineHandle {
        self.pipeline
    }

    pub(crate) const fn deadline(&self) -> Deadline {
        self.deadline
    }

    pub(crate) const fn operation(&self) -> &'static str {
        self.span.report.operation
    }

    /// The table that the operation is about.
    pub(crate) fn table_name(&self) -> Option<&str> {
        self.span.report.table.as_deref()
    }

    /// Adds to an error the operation, its endpoint and table, and the attempts and the time until
    /// now.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        self.pipeline
            .locate(error)
            .with_operation(self.operation())
            .with_attempts(self.attempts, self.deadline.elapsed())
    }

    /// Records in the operation's report an error that is its result, such as that an entity does
    /// not exist.
    pub(crate) fn note_expected_error(&mut self, error: &Error) {
        self.span.note_error(error);
    }

    /// Records in the operation's report a failure after which it continues, such as that of one
    /// entity of a page.
    pub(crate) fn note_failure(&mut self, error: &Error) {
        self.span.note_failure(error);
    }

    /// Ends the operation and reports its outcome. An operation that is dropped without this call
    /// is reported as cancelled.
    pub(crate) fn end<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        let error = result.as_ref().err();
        if let Some(error) = error.filter(|error| error.is_outcome_unknown()) {
            let endpoint = &self.pipeline.endpoint;
            event::outcome_unknown(&self.span.report, endpoint, self.write_id, error);
        }
        self.span.end(error);
        result
    }

    /// Leaves an operation to be resumed later, or ends it with a failure.
    pub(crate) fn pause<T>(
        self,
        paged: &PagedOperation,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        match result {
            Ok(value) => {
                paged.pause(self.span);
                Ok(value)
            }
            Err(error) => self.end(Err(error)),
        }
    }

    /// Waits a random time before the n-th new round of a read-modify-write loop. `false`, at once,
    /// if the wait would end after the deadline.
    pub(crate) async fn pause_before_round(&self, round: u32) -> bool {
        let pause = self.pipeline.policy().pause_before_round(round);
        let in_time = self.deadline.allows(pause);
        if in_time {
            event::starts_over(&self.span.report, round, pause);
            sleep(pause).await;
        }
        in_time
    }

    /// Sends a request, and retries it as the policy allows. A success of a write is the service's:
    /// a response without the headers of the service is an error.
    ///
    /// The error of a write is [ambiguous](Error::is_ambiguous) when an attempt may have been
    /// carried out all the same.
    pub(crate) async fn send(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<Response<Bytes>, Error> {
        let sent = self.send_with(effect, request, SendOptions::default());
        Ok(sent.await?.response)
    }

    /// As [`send`](Self::send), with options.
    pub(crate) async fn send_with(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
        options: SendOptions<'_>,
    ) -> Result<ServiceResponse, Error> {
        let (pipeline, policy) = (self.pipeline, self.pipeline.policy());
        pipeline.check().map_err(|error| self.annotate(error))?;
        let max_attempts = options.attempts.unwrap_or(policy.attempts);
        let client_request_id = random_guid();
        if effect == Effect::Write {
            self.write_id = Some(client_request_id);
        }
        let client_request_id = printed(client_request_id);
        let secondary = pipeline.at_secondary(effect, request);
        let secondary = secondary.filter(|_| !pipeline.reads_now);
        let mut attempts = 0;
        let mut sent_before = 0;
        let mut may_reauthenticate = true;
        let mut maybe_applied = false;
        let mut location = Location::Primary;
        // The last error of the primary, and the earliest time at which it accepts another attempt.
        let mut primary: Option<(Error, Option<Instant>)> = None;
        loop {
            attempts += 1;
            self.attempts += 1;
            let at_secondary = secondary.as_ref();
            let at_secondary = at_secondary.filter(|_| location == Location::Secondary);
            let attempt = Attempt {
                pipeline,
                effect,
                request: at_secondary.unwrap_or(request),
                inspect: options.inspect,
                client_request_id: &client_request_id,
                is_at_secondary: location == Location::Secondary,
                deadline: self.deadline,
                try_timeout: policy.try_timeout,
            };
            let attempt = self.span.attempt(sent_before, attempt).await;
            sent_before += 1;
            let request_name = |next| RequestName {
                endpoint: &pipeline.endpoint,
                attempt: sent_before,
                client_request_id: &client_request_id,
                is_at_secondary: next == Location::Secondary,
            };
            let failure = match attempt {
                Ok(response) => {
                    if attempts == 1 {
                        pipeline.budget.refill();
                    }
                    return Ok(ServiceResponse {
                        response,
                        is_after_ambiguous: maybe_applied,
                    });
                }
                // Once for each attempt that counts: credentials that keep changing must not keep
                // an operation going.
                Err(failure)
                    if failure.retry_class == RetryClass::Credential && may_reauthenticate =>
                {
                    may_reauthenticate = false;
                    attempts -= 1;
                    let request = request_name(location);
                    event::retried(&self.span.report, request, Duration::ZERO, &failure.error);
                    continue;
                }
                Err(failure) => pipeline.noted(failure),
            };
            may_reauthenticate = true;
            maybe_applied |= failure.maybe_applied;
            let ambiguous = effect == Effect::Write && maybe_applied && !failure.is_definitive;
            let is_passing = failure.retry_class == RetryClass::Time;
            let not_before = Instant::now().checked_add(failure.asked_pause.unwrap_or_default());
            let mut of_secondary = None;
            let (error, not_before, is_passing) = match (location, primary.take()) {
                // The secondary lags behind: its response that something is missing proves nothing.
                (Location::Secondary, Some((error, not_before))) => {
                    of_secondary = Some(failure.error);
                    (error, not_before, true)
                }
                _ => (failure.error, not_before, is_passing),
            };
            let latest = of_secondary.as_ref().unwrap_or(&error);
            let next = match (location, &secondary) {
                (Location::Primary, Some(_)) => Location::Secondary,
                _ => Location::Primary,
            };
            let mut pause = policy.pause(attempts);
            if next == Location::Primary {
                pause = pause.max(time_until(not_before));
            }
            let limit = is_passing.then(|| {
                let is_last = attempts >= max_attempts;
                self.limit_of_retry(is_last, pause, failure.is_unsent)
            });
            let limit = limit.flatten();
            // Where only one attempt is allowed, no retry was expected.
            if let Some(limit) = limit.filter(|_| max_attempts > 1) {
                event::exhausted(&self.span.report, request_name(location), limit, latest);
            }
            if !is_passing || limit.is_some() {
                return Err(self.annotate(error).with_ambiguous(ambiguous));
            }
            event::retried(&self.span.report, request_name(next), pause, latest);
            primary = Some((error, not_before));
            location = next;
            sleep(pause).await;
        }
    }

    /// The limit that does not allow a retry after this pause. A retry that is allowed is taken
    /// from the budget, unless the request did not reach the service: then it was no load for it.
    fn limit_of_retry(
        &self,
        is_last: bool,
        pause: Duration,
        is_unsent: bool,
    ) -> Option<&'static str> {
        if is_last {
            Some("attempts")
        } else if !self.deadline.allows(pause) {
            Some("deadline")
        } else if !is_unsent && !self.pipeline.budget.take() {
            Some("budget")
        } else {
            None
        }
    }
}

/// The id as it is sent. A formatter would take several times as long.
fn printed(id: Guid) -> String {
    String::from_utf8(id.to_ascii().to_vec()).expect("hex digits are ASCII")
}

/// The time until then; `None` is later than any time.
fn time_until(time: Option<Instant>) -> Duration {
    time.map_or(Duration::MAX, |time| {
        time.saturating_duration_since(Instant::now())
    })
}

/// Which of the account's endpoints a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Primary,
    Secondary,
}
