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
use crate::Error;

/// Whether a request changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
}

/// Finds the refusal in an answer of success.
pub(crate) type Inspect<'i> = &'i (dyn Fn(&Response<Bytes>) -> Option<Refusal> + Sync);

/// The attempts of one operation: they share a deadline and a count.
#[derive(Debug)]
pub(crate) struct Run<'p> {
    pipeline: &'p Pipeline,
    operation: &'static str,
    started: Instant,
    attempts: u32,
}

/// An answer of success.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<Bytes>,
}

impl<'p> Run<'p> {
    pub(super) fn new(pipeline: &'p Pipeline, operation: &'static str) -> Self {
        Self {
            pipeline,
            operation,
            started: Instant::now(),
            attempts: 0,
        }
    }

    pub(crate) const fn pipeline(&self) -> &'p Pipeline {
        self.pipeline
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

    /// As [`send`](Self::send), for answers of success that may hold a refusal all the same.
    pub(crate) async fn send_inspected(
        &mut self,
        effect: Effect,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
    ) -> Result<Answer, Error> {
        let policy = &self.pipeline.retry;
        let deadline = self.started.checked_add(policy.deadline);
        let client_request_id = super::random_guid().to_string();
        let mut attempts = 0;
        let mut maybe_done = false;
        loop {
            attempts += 1;
            self.attempts += 1;
            let failure = match self
                .attempt(request, inspect, &client_request_id, deadline)
                .await
            {
                Ok(response) => {
                    if attempts == 1 {
                        self.pipeline.budget.refill();
                    }
                    return Ok(Answer { response });
                }
                Err(failure) => failure,
            };
            maybe_done |= failure.maybe_done;
            let pause = policy.pause(attempts).max(failure.asked_pause);
            let goes_on = failure.is_passing
                && attempts < policy.attempts
                && deadline.is_none_or(|deadline| {
                    let next = Instant::now().checked_add(pause);
                    next.is_some_and(|next| next < deadline)
                })
                && self.pipeline.budget.take();
            if !goes_on {
                let unsettled = effect == Effect::Write && maybe_done && !failure.is_verdict;
                return Err(failure
                    .error
                    .with_operation(self.operation)
                    .with_attempts(self.attempts, self.started.elapsed())
                    .with_unsettled(unsettled));
            }
            sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        request: &Request<Bytes>,
        inspect: Inspect<'_>,
        client_request_id: &str,
        deadline: Option<Instant>,
    ) -> Result<Response<Bytes>, Failure> {
        let Ok(_place) = self.pipeline.place(deadline).await else {
            return Err(Failure::crowded(self.started.elapsed()));
        };
        let request = self.pipeline.prepare(request.clone(), client_request_id);
        let timeout = self.pipeline.retry.try_timeout;
        let begin = Instant::now();
        let limit = match (begin.checked_add(timeout), deadline) {
            (Some(limit), Some(deadline)) => Some(limit.min(deadline)),
            (limit, deadline) => limit.or(deadline),
        };
        let sent = self.pipeline.transport.send(request);
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
                    let now = self.pipeline.clock.now();
                    let mut failure = Failure::refused(error, response.headers(), now);
                    failure.error = failure.error.with_batch_index(index);
                    Err(failure)
                }
                None => Ok(response),
            },
            Ok(response) => Err(Failure::answered(&response, self.pipeline.clock.now())),
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

/// What went wrong with an attempt, and what may be done about it.
struct Failure {
    error: Error,
    /// Another attempt may fare better.
    is_passing: bool,
    /// The service may have carried the request out.
    maybe_done: bool,
    /// The answer is about the request itself, whose every attempt must have been refused in the same way.
    is_verdict: bool,
    /// How long the service wants to be left alone.
    asked_pause: Duration,
}

impl Failure {
    fn answered(response: &Response<Bytes>, now: Timestamp) -> Self {
        let headers = response.headers();
        let error = error_body::read(response.status(), headers, response.body());
        Self::refused(error, headers, now)
    }

    fn refused(error: ServiceError, headers: &HeaderMap, now: Timestamp) -> Self {
        let status = error.status();
        let is_passing = matches!(
            status,
            StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
                | StatusCode::INTERNAL_SERVER_ERROR
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        ) || error.code().as_str() == "AccountBeingCreated";
        // The service that is busy says so before it does anything. A proxy may say the same in other words, at any time.
        let is_refusal = status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
            || status == StatusCode::NOT_IMPLEMENTED
            || *error.code() == ErrorCode::ServerBusy;
        let is_verdict = matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::LENGTH_REQUIRED
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::URI_TOO_LONG
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
                | StatusCode::NOT_IMPLEMENTED
        );
        let request_id = headers.get(name::X_MS_REQUEST_ID);
        let request_id = request_id
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        Self {
            is_passing,
            maybe_done: !is_refusal,
            is_verdict,
            asked_pause: asked_pause(headers, now),
            error: Error::service(error).with_request_id(request_id),
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

    #[test]
    fn every_status_has_its_class() {
        let class = |status: u16, body: &'static str| {
            let mut response = Response::new(Bytes::from_static(body.as_bytes()));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let failure = Failure::answered(&response, Timestamp::UNIX_EPOCH);
            (failure.is_passing, failure.maybe_done)
        };
        let busy = r#"{"odata.error":{"code":"ServerBusy","message":{"lang":"","value":""}}}"#;
        assert_eq!(class(503, busy), (true, false));
        assert_eq!(class(503, "<html>"), (true, true));
        assert_eq!(class(429, ""), (true, false));
        for status in [408, 500, 502, 504] {
            assert_eq!(class(status, ""), (true, true), "{status}");
        }
        for status in [400, 401, 403, 404, 405, 409, 411, 412, 413, 415, 416, 501] {
            assert_eq!(class(status, ""), (false, false), "{status}");
        }
        for status in [301, 304, 505] {
            assert_eq!(class(status, ""), (false, true), "{status}");
        }
    }
}
