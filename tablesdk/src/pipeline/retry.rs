//! The only loop: sends a request until there is an answer that is worth having, or no time left.
//!
//! Keeps account of what may have happened: a write that was sent and not answered may have been carried out, whatever is
//! answered to its repetition. What follows from that, the operation knows.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use tablesdk_protocol::operation::batch::Refusal;
use tablesdk_protocol::wire::{error_body, header as name};
use tablesdk_protocol::{Delivery, ErrorCode, ServiceError, Timestamp};
use tokio::time::{Instant, sleep, timeout_at};

use super::Pipeline;
use super::observe::Observation;
use crate::Error;
use crate::query::AccessClass;

/// Whether a request changes anything, and what it may be answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It reads, and may be answered by the secondary, where the client allows that.
    Read,
    /// It reads what the primary has now.
    ReadNow,
    Write,
}

/// Finds the refusal in an answer of success.
pub(crate) type Inspect<'i> = &'i (dyn Fn(&Response<Bytes>) -> Option<Refusal> + Sync);

/// The requests of one operation: they share a deadline and a count.
#[derive(Debug)]
pub(crate) struct Run<'p> {
    pipeline: &'p Pipeline,
    operation: &'static str,
    started: Instant,
    attempts: u32,
    observation: Observation,
}

/// An answer of success.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<Bytes>,
    /// An attempt before it was not answered: it may have been carried out, and may be even later.
    pub(crate) is_after_doubt: bool,
}

impl<'p> Run<'p> {
    pub(super) fn new(
        pipeline: &'p Pipeline,
        operation: &'static str,
        table: Option<&str>,
    ) -> Self {
        Self {
            pipeline,
            operation,
            started: Instant::now(),
            attempts: 0,
            observation: Observation::new(pipeline, operation, table),
        }
    }

    /// Notes for whoever observes the operation that so many entities were read or written.
    pub(crate) const fn note_entities(&mut self, count: usize) {
        self.observation.entities(count);
    }

    /// Notes for whoever observes the operation how the service finds what is read.
    pub(crate) const fn note_access(&mut self, access: AccessClass) {
        self.observation.access(access);
    }

    /// Notes for whoever observes the operation that a page was read.
    pub(crate) const fn note_page(&mut self) {
        self.observation.page();
    }

    pub(crate) const fn pipeline(&self) -> &'p Pipeline {
        self.pipeline
    }

    pub(crate) const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Notes in an error what the whole operation took until now.
    pub(crate) fn tally(&self, error: Error) -> Error {
        error
            .with_operation(self.operation)
            .with_attempts(self.attempts, self.started.elapsed())
    }

    /// Waits a random time before an operation starts over, for the that-many-th time. `false`, at once, when it would end
    /// after the deadline.
    pub(crate) async fn pause_before_round(&self, round: u32) -> bool {
        let policy = &self.pipeline.retry;
        let pause = policy.pause_before_round(round);
        let in_time = self.is_before_deadline(pause);
        if in_time {
            sleep(pause).await;
        }
        in_time
    }

    /// Sends a request, again if need be.
    ///
    /// The error of a write is [unsettled](Error::is_unsettled) when an attempt may have been carried out all the same.
    pub(crate) async fn send(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<Answer, Error> {
        self.send_inspected(effect, request, &|_| None).await
    }

    /// Sends a request once, whatever comes of it.
    pub(crate) async fn send_once(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<Answer, Error> {
        self.send_up_to(1, effect, request, &|_| None).await
    }

    /// As [`send`](Self::send), for answers of success that may hold a refusal all the same.
    pub(crate) async fn send_inspected(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
    ) -> Result<Answer, Error> {
        let attempts = self.pipeline.retry.attempts;
        self.send_up_to(attempts, effect, request, inspect).await
    }

    async fn send_up_to(
        &mut self,
        attempts_max: u32,
        effect: Effect,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
    ) -> Result<Answer, Error> {
        let policy = &self.pipeline.retry;
        let client_request_id = super::random_guid().to_string();
        let secondary = match effect {
            Effect::Read => self.pipeline.at_secondary(request),
            Effect::ReadNow | Effect::Write => None,
        };
        let mut attempts = 0;
        let mut maybe_done = false;
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
            let attempt = Self::attempt(
                self.pipeline,
                self.started,
                sent,
                inspect,
                &client_request_id,
            );
            let bytes = sent.body().len();
            let observed = self.observation.attempt(bytes, &client_request_id, attempt);
            let failure = match observed.await {
                Ok(response) => {
                    if attempts > 1 {
                        self.observation.recovered();
                    }
                    if attempts == 1 {
                        self.pipeline.budget.refill();
                    }
                    return Ok(Answer {
                        response,
                        is_after_doubt: maybe_done,
                    });
                }
                Err(failure) => failure,
            };
            maybe_done |= failure.maybe_done;
            let unsettled = effect == Effect::Write && maybe_done && !failure.is_verdict;
            let (error, not_before, is_passing) = match (location, primary.take()) {
                // The secondary lags behind: that something is missing there says nothing.
                (Location::Secondary, Some((error, not_before))) => (error, not_before, true),
                _ => {
                    let not_before = Instant::now().checked_add(failure.asked_pause);
                    (failure.error, not_before, failure.is_passing)
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
                && self.is_before_deadline(pause)
                && self.pipeline.budget.take();
            if !goes_on {
                return Err(self.tally(error).with_unsettled(unsettled));
            }
            primary = Some((error, not_before));
            location = next;
            sleep(pause).await;
        }
    }

    /// Whether a pause that begins now ends before the deadline.
    fn is_before_deadline(&self, pause: Duration) -> bool {
        self.deadline().is_none_or(|deadline| {
            let next = Instant::now().checked_add(pause);
            next.is_some_and(|next| next < deadline)
        })
    }

    /// `None`, where it is beyond all time.
    fn deadline(&self) -> Option<Instant> {
        self.started.checked_add(self.pipeline.retry.deadline)
    }

    async fn attempt(
        pipeline: &Pipeline,
        started: Instant,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
        client_request_id: &str,
    ) -> Result<Response<Bytes>, Failure> {
        let deadline = started.checked_add(pipeline.retry.deadline);
        let Ok(_place) = pipeline.place(deadline).await else {
            return Err(Failure::crowded(started.elapsed()));
        };
        let request = pipeline.prepare(request.clone(), client_request_id);
        let timeout = pipeline.retry.try_timeout;
        let begin = Instant::now();
        let limit = match (begin.checked_add(timeout), deadline) {
            (Some(limit), Some(deadline)) => Some(limit.min(deadline)),
            (limit, deadline) => limit.or(deadline),
        };
        let sent = pipeline.transport.send(request);
        let answer = match limit {
            Some(limit) => match timeout_at(limit, sent).await {
                Ok(answer) => answer,
                Err(_) => return Err(Failure::timeout(begin.elapsed())),
            },
            None => sent.await,
        };
        match answer {
            Ok(response) if response.status().is_success() => match inspect(&response) {
                Some(Refusal { index, error }) => {
                    let now = pipeline.clock.now();
                    let mut failure = Failure::refused(error, response.headers(), now);
                    failure.error = failure.error.with_batch_index(index);
                    Err(failure)
                }
                None => Ok(response),
            },
            Ok(response) => Err(Failure::answered(&response, pipeline.clock.now())),
            Err(error) => Err(Failure {
                is_passing: true,
                maybe_done: error.delivery() == Delivery::MaybeSent,
                is_verdict: false,
                asked_pause: Duration::ZERO,
                error: Error::transport(error),
            }),
        }
    }
}

/// Which of the account's endpoints a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Primary,
    Secondary,
}

/// What went wrong with an attempt, and what may be done about it.
pub(super) struct Failure {
    pub(super) error: Error,
    /// Another attempt may fare better.
    is_passing: bool,
    /// The service may have carried the request out.
    maybe_done: bool,
    /// The answer proves that no earlier attempt of the same request was carried out.
    is_verdict: bool,
    /// How long the service wants to be left alone.
    asked_pause: Duration,
}

impl Failure {
    fn answered(response: &Response<Bytes>, now: Timestamp) -> Self {
        let (status, headers) = (response.status(), response.headers());
        match error_body::recognise(status, headers, response.body()) {
            Some(error) => Self::refused(error, headers, now),
            None => Self {
                is_passing: is_passing(status),
                // Whoever answers in the service's place may have passed the request on before. Too many requests are turned
                // away at the door.
                maybe_done: status != StatusCode::TOO_MANY_REQUESTS,
                is_verdict: false,
                asked_pause: asked_pause(headers, now),
                error: Error::foreign(status).with_request_id(request_id(headers)),
            },
        }
    }

    /// What the service says.
    fn refused(error: ServiceError, headers: &HeaderMap, now: Timestamp) -> Self {
        let status = error.status();
        // The service that is busy says so before it does anything. A proxy may say the same in other words, at any time.
        let is_refusal = status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
            || status == StatusCode::NOT_IMPLEMENTED
            || *error.code() == ErrorCode::ServerBusy;
        Self {
            is_passing: is_passing(status) || error.code().as_str() == "AccountBeingCreated",
            maybe_done: !is_refusal,
            is_verdict: is_verdict(&error),
            asked_pause: asked_pause(headers, now),
            error: Error::service(error).with_request_id(request_id(headers)),
        }
    }

    fn timeout(after: Duration) -> Self {
        Self {
            error: Error::timeout(format!("no answer came within {after:?}")),
            is_passing: true,
            maybe_done: true,
            is_verdict: false,
            asked_pause: Duration::ZERO,
        }
    }

    fn crowded(after: Duration) -> Self {
        Self {
            error: Error::timeout(format!(
                "the requests in flight were too many for another one, for {after:?}"
            )),
            is_passing: false,
            maybe_done: false,
            is_verdict: false,
            asked_pause: Duration::ZERO,
        }
    }
}

/// Whether another attempt may fare better, as far as the status tells.
fn is_passing(status: StatusCode) -> bool {
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

/// Whether the service finds fault with what every attempt had in common, so that none was ever carried out.
///
/// `TooManyProperties` and `EntityTooLarge` are none: of a merge they speak of what is stored as well, which may have grown
/// since an earlier attempt. Nor is anything about headers and checksums, which a bad connection may have damaged once.
fn is_verdict(error: &ServiceError) -> bool {
    let code = error.code();
    // A code with a status that is not its own is nobody's word.
    error.status() == code.status()
        && matches!(
            code,
            ErrorCode::CommandsInBatchActOnDifferentPartitions
                | ErrorCode::DuplicatePropertiesSpecified
                | ErrorCode::InvalidDuplicateRow
                | ErrorCode::InvalidInput
                | ErrorCode::InvalidResourceName
                | ErrorCode::InvalidUri
                | ErrorCode::MethodNotAllowed
                | ErrorCode::NotImplemented
                | ErrorCode::OutOfRangeInput
                | ErrorCode::PropertiesNeedValue
                | ErrorCode::PropertyNameInvalid
                | ErrorCode::PropertyNameTooLong
                | ErrorCode::PropertyValueTooLarge
                | ErrorCode::RequestBodyTooLarge
        )
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(name::X_MS_REQUEST_ID)?;
    id.to_str().ok().map(str::to_owned)
}

/// How long the service asks to wait: in milliseconds, in seconds, or until a date.
fn asked_pause(headers: &HeaderMap, now: Timestamp) -> Duration {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let milliseconds = [name::X_MS_RETRY_AFTER_MS, name::RETRY_AFTER_MS]
        .into_iter()
        .filter_map(text)
        .find_map(|text| text.trim().parse().ok())
        .map(Duration::from_millis);
    let in_seconds = || {
        let text = text(header::RETRY_AFTER)?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = Timestamp::parse_http_date(text).ok()?;
        (date > now).then(|| date.abs_diff(now))
    };
    milliseconds.or_else(in_seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_that_the_service_asks_for_is_understood() {
        let now = Timestamp::parse_http_date("Fri, 15 Mar 2024 10:20:30 GMT").unwrap();
        for (pairs, seconds) in [
            (&[][..], 0.0),
            (&[("retry-after", "3")], 3.0),
            (&[("retry-after", "Fri, 15 Mar 2024 10:21:00 GMT")], 30.0),
            (&[("retry-after", "Fri, 15 Mar 2024 10:20:00 GMT")], 0.0),
            (&[("retry-after", "soon")], 0.0),
            (&[("retry-after", "-1")], 0.0),
            (&[("retry-after-ms", "250")], 0.25),
            (
                &[("x-ms-retry-after-ms", "1500"), ("retry-after", "9")],
                1.5,
            ),
            (&[("x-ms-retry-after-ms", "?"), ("retry-after", "9")], 9.0),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            let expected = Duration::from_secs_f64(seconds);
            assert_eq!(asked_pause(&headers, now), expected, "{pairs:?}");
        }
    }

    fn failure(status: u16, body: &str) -> Failure {
        let mut response = Response::new(Bytes::copy_from_slice(body.as_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Failure::answered(&response, Timestamp::UNIX_EPOCH)
    }

    fn coded(code: &str) -> String {
        format!(r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"","value":""}}}}}}"#)
    }

    #[test]
    fn every_status_has_its_class() {
        let class = |status, body: &str| {
            let failure = failure(status, body);
            (failure.is_passing, failure.maybe_done)
        };
        assert_eq!(class(503, &coded("ServerBusy")), (true, false));
        assert_eq!(class(503, "<html>"), (true, true));
        assert_eq!(class(429, ""), (true, false));
        assert_eq!(class(408, &coded("Made")), (true, true));
        for status in [408, 500, 502, 504] {
            assert_eq!(class(status, ""), (true, true), "{status}");
        }
        for status in [
            400, 401, 403, 404, 405, 409, 411, 412, 413, 415, 416, 501, 505,
        ] {
            // What the service says is a refusal; what anybody else says leaves it open.
            let is_refusal = status != 505;
            assert_eq!(
                class(status, &coded("Made")),
                (false, !is_refusal),
                "{status}"
            );
            assert_eq!(class(status, "<html>"), (false, true), "{status}");
        }
        for status in [301, 304] {
            assert_eq!(class(status, ""), (false, true), "{status}");
        }
    }

    #[test]
    fn only_codes_about_the_request_alone_are_verdicts() {
        for (status, code, expected) in [
            (400, "InvalidInput", true),
            (400, "PropertyValueTooLarge", true),
            (413, "RequestBodyTooLarge", true),
            (501, "NotImplemented", true),
            // A merge may have met a smaller entity before.
            (400, "TooManyProperties", false),
            (400, "EntityTooLarge", false),
            // Circumstances, not the request.
            (400, "Md5Mismatch", false),
            (403, "AuthenticationFailed", false),
            (404, "TableNotFound", false),
            (409, "EntityAlreadyExists", false),
            (412, "UpdateConditionNotSatisfied", false),
            // Nobody's word.
            (400, "FromTheFuture", false),
            (500, "InvalidInput", false),
        ] {
            assert_eq!(failure(status, &coded(code)).is_verdict, expected, "{code}");
        }
        for status in [400, 405, 411, 413, 414, 415, 501] {
            assert!(!failure(status, "<html>").is_verdict, "{status}");
        }
    }
}
