//! The only loop: sends a request until there is an answer that is worth having, or no time left.
//!
//! Keeps account of what may have happened: a write that was sent and not answered may have been carried out, whatever is
//! answered to its repetition. What follows from that, the operation knows.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::{Instant, sleep};

use super::Pipeline;
use super::attempt::{Deadline, Effect, Inspect, RetryClass};
use super::operation_span::{OperationSpan, PagedOperation};
use crate::error::Error;
use crate::filter::AccessClass;

/// The requests of one operation: they share a deadline and a count.
#[derive(Debug)]
pub(crate) struct OperationRun<'p> {
    begun: Deadline<'p>,
    operation: &'static str,
    attempts: u32,
    observation: OperationSpan,
}

/// An answer of success.
#[derive(Debug)]
pub(crate) struct ServiceResponse {
    pub(crate) response: Response<Bytes>,
    /// An attempt before it was not answered: it may have been carried out, and may be even later.
    pub(crate) is_after_ambiguous: bool,
}

impl<'p> OperationRun<'p> {
    pub(super) fn new(
        pipeline: &'p Pipeline,
        operation: &'static str,
        table: Option<&str>,
    ) -> Self {
        Self {
            begun: Deadline::now(pipeline),
            operation,
            attempts: 0,
            observation: OperationSpan::new(pipeline, operation, table),
        }
    }

    /// The next requests of an operation, which have a deadline and a count of their own.
    pub(super) fn resume(
        pipeline: &'p Pipeline,
        operation: &'static str,
        table: Option<&str>,
        paged: &PagedOperation,
    ) -> Self {
        let begin = || OperationSpan::new(pipeline, operation, table);
        Self {
            begun: Deadline::now(pipeline),
            operation,
            attempts: 0,
            observation: paged.resume(begin),
        }
    }

    /// Records in the operation's report how many entities were read or written.
    pub(crate) const fn note_entities(&mut self, count: usize) {
        self.observation.entities(count);
    }

    /// Adds to the number of entities read in the operation's report.
    pub(crate) const fn note_more_entities(&mut self, count: usize) {
        self.observation.more_entities(count);
    }

    /// Records in the operation's report how the service finds what is read.
    pub(crate) const fn note_access(&mut self, access: AccessClass) {
        self.observation.access(access);
    }

    /// Records in the operation's report that a page was read.
    pub(crate) const fn note_page(&mut self) {
        self.observation.page();
    }

    pub(crate) const fn pipeline(&self) -> &'p Pipeline {
        self.begun.pipeline
    }

    pub(crate) const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Notes in an error what the whole operation took until now.
    pub(crate) fn annotate(&self, error: Error) -> Error {
        error
            .with_operation(self.operation)
            .with_attempts(self.attempts, self.begun.elapsed())
    }

    /// Records in the operation's report an error that is its result, such as that an entity does not exist.
    pub(crate) fn note_expected_error(&mut self, error: &Error) {
        self.observation.answer(error);
    }

    /// Ends the operation and reports its outcome. An operation that is dropped without this call is reported as cancelled.
    pub(crate) fn end<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.observation.end(result.as_ref().err());
        result
    }

    /// Leaves an operation to go on later, or ends it with a failure.
    pub(crate) fn pause<T>(
        self,
        paged: &PagedOperation,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        match result {
            Ok(value) => {
                paged.pause(self.observation);
                Ok(value)
            }
            Err(error) => self.end(Err(error)),
        }
    }

    /// Waits a random time before an operation starts over, for the that-many-th time. `false`, at once, when it would end
    /// after the deadline.
    pub(crate) async fn pause_before_round(&self, round: u32) -> bool {
        let policy = &self.begun.pipeline.retry;
        let pause = policy.pause_before_round(round);
        let in_time = self.begun.is_before_deadline(pause);
        if in_time {
            sleep(pause).await;
        }
        in_time
    }

    /// Sends a request, again if need be. A success of a write is the service's: a response without the headers of the
    /// service is an error.
    ///
    /// The error of a write is [ambiguous](Error::is_ambiguous) when an attempt may have been carried out all the same.
    pub(crate) async fn send(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<ServiceResponse, Error> {
        self.send_inspected(effect, request, &|_| None).await
    }

    /// Sends a request once, whatever comes of it.
    pub(crate) async fn send_once(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<ServiceResponse, Error> {
        self.send_up_to(1, effect, request, &|_| None).await
    }

    /// As [`send`](Self::send), for answers of success that may hold a refusal all the same.
    pub(crate) async fn send_inspected(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
    ) -> Result<ServiceResponse, Error> {
        let attempts = self.begun.pipeline.retry.attempts;
        self.send_up_to(attempts, effect, request, inspect).await
    }

    async fn send_up_to(
        &mut self,
        attempts_max: u32,
        effect: Effect,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
    ) -> Result<ServiceResponse, Error> {
        let policy = &self.begun.pipeline.retry;
        let client_request_id = super::random_guid().to_string();
        let secondary = match effect {
            Effect::Read => self.begun.pipeline.at_secondary(request),
            Effect::ReadNow | Effect::Write => None,
        };
        let mut attempts = 0;
        let mut sent_before = 0;
        let mut can_reauthenticate = true;
        let mut maybe_applied = false;
        let mut location = Location::Primary;
        // What the primary said last, and until when it wants to be left alone.
        let mut primary: Option<(Error, Option<Instant>)> = None;
        loop {
            attempts += 1;
            self.attempts += 1;
            let sent = match (location, &secondary) {
                (Location::Secondary, Some(request)) => request,
                _ => request,
            };
            let attempt = self
                .begun
                .attempt(effect, sent, inspect, &client_request_id);
            let bytes = sent.body().len();
            let id = client_request_id.as_str();
            let observed = self.observation.attempt(sent_before, bytes, id, attempt);
            sent_before += 1;
            let failure = match observed.await {
                Ok(response) => {
                    if attempts == 1 {
                        self.begun.pipeline.budget.refill();
                    }
                    return Ok(ServiceResponse {
                        response,
                        is_after_ambiguous: maybe_applied,
                    });
                }
                // Once for each attempt that counts, so that credentials that change for ever do not keep an operation going.
                Err(failure)
                    if failure.retry_class == RetryClass::Credential && can_reauthenticate =>
                {
                    can_reauthenticate = false;
                    attempts -= 1;
                    continue;
                }
                Err(failure) => failure,
            };
            can_reauthenticate = true;
            maybe_applied |= failure.maybe_applied;
            let ambiguous = effect == Effect::Write && maybe_applied && !failure.is_definitive;
            let (error, not_before, is_passing) = match (location, primary.take()) {
                // The secondary lags behind: that something is missing there says nothing.
                (Location::Secondary, Some((error, not_before))) => (error, not_before, true),
                _ => {
                    let not_before = Instant::now().checked_add(failure.asked_pause);
                    (
                        failure.error,
                        not_before,
                        failure.retry_class == RetryClass::Time,
                    )
                }
            };
            let next = match (location, &secondary) {
                (Location::Primary, Some(_)) => Location::Secondary,
                _ => Location::Primary,
            };
            let mut pause = policy.pause(attempts);
            if next == Location::Primary {
                let asked = not_before.map_or(Duration::MAX, |time| {
                    time.saturating_duration_since(Instant::now())
                });
                pause = pause.max(asked);
            }
            let goes_on = is_passing
                && attempts < attempts_max
                && self.begun.is_before_deadline(pause)
                && self.begun.pipeline.budget.take();
            if !goes_on {
                return Err(self.annotate(error).with_ambiguous(ambiguous));
            }
            primary = Some((error, not_before));
            location = next;
            sleep(pause).await;
        }
    }
}

/// Which of the account's endpoints a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Primary,
    Secondary,
}
