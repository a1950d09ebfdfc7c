//! One attempt: the credential, a permit among the requests in flight, one request, and what its
//! response means.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use tablesdk_protocol::header as name;
use tablesdk_protocol::operation::batch::Refusal;
use tablesdk_protocol::wire::error_body;
use tablesdk_protocol::{Delivery, ErrorCode, ServiceError, Timestamp, TransportError};

use super::Pipeline;
use super::deadline::Deadline;
use crate::error::Error;
use crate::transport::Backend;

/// Looks into a response of success for what makes it none.
pub(crate) type Inspect<'i> = &'i (dyn Fn(&Response<Bytes>) -> Option<NoSuccess> + Sync);

/// The failure that a response with a status of success contains.
#[derive(Debug)]
pub(crate) enum NoSuccess {
    /// An error of the service, such as that of a batch.
    Refused(Refusal),
    /// The response to a request for another entity.
    OfOtherEntity,
}

/// The effect of a request: it reads or writes, and one location or both may respond to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It reads, and the secondary may respond, where the client allows that.
    Read,
    /// It reads the current state at the primary.
    ReadNow,
    Write,
}

/// One request of an operation.
pub(super) struct Attempt<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) effect: Effect,
    pub(super) request: &'a Request<Bytes>,
    pub(super) inspect: Inspect<'a>,
    pub(super) client_request_id: &'a str,
    pub(super) is_at_secondary: bool,
    /// The deadline of the operation.
    pub(super) deadline: Deadline,
    pub(super) try_timeout: Duration,
}

impl Attempt<'_> {
    /// Sends the request once.
    pub(super) async fn send(self) -> Result<Response<Bytes>, AttemptFailure> {
        let (pipeline, deadline) = (self.pipeline, self.deadline);
        // Before it takes a permit: waiting for the same token needs none.
        let auth = deadline.limit(pipeline.authenticate()).await;
        let auth = auth.ok_or_else(|| AttemptFailure::without_token(deadline.elapsed()))?;
        let auth = auth.map_err(AttemptFailure::without_sending)?;
        let _permit = match &pipeline.in_flight {
            Some(permits) => match deadline.limit(permits.acquire()).await {
                Some(Ok(permit)) => Some(permit),
                _ => return Err(AttemptFailure::without_permit(deadline.elapsed())),
            },
            None => None,
        };
        let request = pipeline.prepare(self.request, self.client_request_id, &auth);
        let time = deadline.of_part(self.try_timeout);
        let response = time.limit(pipeline.transport.send(request)).await;
        let response = response.ok_or_else(|| AttemptFailure::timeout(time.elapsed()))?;
        let response = response.map_err(AttemptFailure::undelivered)?;
        // Before anything in it is believed: a gateway can mix up the responses of several
        // requests.
        if is_of_other_request(response.headers(), self.client_request_id) {
            return Err(AttemptFailure::misdirected(Misdirected::ClientRequestId));
        }
        if !response.status().is_success() {
            let mut failure = AttemptFailure::answered(&response, pipeline.now());
            if let Some(account) = auth.account() {
                failure.error = failure.error.with_account(account);
            }
            if pipeline.can_reauthenticate(&auth, &response) {
                failure.retry_class = RetryClass::Credential;
            }
            return Err(failure);
        }
        match (self.inspect)(&response) {
            Some(NoSuccess::Refused(Refusal { index, error })) => {
                let mut failure =
                    AttemptFailure::refused(error, response.headers(), pipeline.now());
                failure.error = failure.error.with_batch_index(index);
                return Err(failure);
            }
            Some(NoSuccess::OfOtherEntity) => {
                return Err(AttemptFailure::misdirected(Misdirected::Entity));
            }
            None => {}
        }
        let missing = missing_header(response.headers(), pipeline.backend);
        if missing.is_none() {
            let headers = response.headers();
            pipeline.service_time.note(headers, || pipeline.now());
        }
        match missing {
            // For a read, the content shows whose response it is.
            Some(header) if self.effect == Effect::Write => {
                Err(AttemptFailure::malformed_success(&response, header))
            }
            _ => Ok(response),
        }
    }
}

/// The change that may let the same request succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryClass {
    None,
    /// There is a better credential than the one that was refused.
    Credential,
    Time,
}

/// The failure of an attempt, and what may be done about it.
pub(super) struct AttemptFailure {
    pub(super) error: Error,
    pub(super) retry_class: RetryClass,
    /// The service may have carried the request out.
    pub(super) maybe_applied: bool,
    /// The response proves that no earlier attempt of the same request was carried out.
    pub(super) is_definitive: bool,
    /// The service has not received the request. To send it again is no load for it.
    pub(super) is_unsent: bool,
    /// The minimum time before the next attempt that the service asks for.
    pub(super) asked_pause: Option<Duration>,
}

impl AttemptFailure {
    /// Nothing was sent, and another attempt does not help: the time is over, or the credential has
    /// retried enough.
    const fn without_sending(error: Error) -> Self {
        Self {
            error,
            retry_class: RetryClass::None,
            maybe_applied: false,
            is_definitive: false,
            is_unsent: false,
            asked_pause: None,
        }
    }

    fn without_token(after: Duration) -> Self {
        let message = format!("the credential gave no token within {after:?}");
        Self::without_sending(Error::timeout(message))
    }

    fn without_permit(after: Duration) -> Self {
        Self::without_sending(Error::timeout(format!(
            "the requests in flight were too many for another one, for {after:?}"
        )))
    }

    fn undelivered(error: TransportError) -> Self {
        let is_unsent = error.delivery() == Delivery::NotSent;
        Self {
            retry_class: RetryClass::Time,
            maybe_applied: !is_unsent,
            is_unsent,
            ..Self::without_sending(Error::transport(error))
        }
    }

    fn timeout(after: Duration) -> Self {
        Self {
            retry_class: RetryClass::Time,
            maybe_applied: true,
            ..Self::without_sending(Error::timeout(format!("no response within {after:?}")))
        }
    }

    /// The response to this request went elsewhere, and that to another one came here: it shows
    /// nothing. Without the id of the service, which is that of the other request.
    fn misdirected(evidence: Misdirected) -> Self {
        Self::undelivered(TransportError::maybe_sent(evidence))
    }

    fn answered(response: &Response<Bytes>, now: Timestamp) -> Self {
        let (status, headers) = (response.status(), response.headers());
        if let Some(error) = error_body::recognise(status, headers, response.body()) {
            return Self::refused(error, headers, now);
        }
        let error = Error::foreign(status).with_request_id(request_id(headers));
        let asked_pause = asked_pause(headers, now);
        Self {
            retry_class: retry_class(&error),
            // A proxy that responds in the service's place may have forwarded the request before.
            // 429 is sent before the request is processed.
            maybe_applied: status != StatusCode::TOO_MANY_REQUESTS,
            asked_pause,
            ..Self::without_sending(error.with_retry_after(asked_pause))
        }
    }

    /// An error of the service.
    fn refused(error: ServiceError, headers: &HeaderMap, now: Timestamp) -> Self {
        let status = error.status();
        // A busy service says so before it processes the request. A proxy may send the same status
        // at any time.
        let is_refusal = status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
            || status == StatusCode::NOT_IMPLEMENTED
            || *error.code() == ErrorCode::ServerBusy;
        let is_definitive = is_definitive(&error);
        let error = Error::service_response(error).with_request_id(request_id(headers));
        let asked_pause = asked_pause(headers, now);
        Self {
            retry_class: retry_class(&error),
            maybe_applied: !is_refusal,
            is_definitive,
            asked_pause,
            ..Self::without_sending(error.with_retry_after(asked_pause))
        }
    }

    /// A success that is not the service's: a proxy may send it, and may have forwarded the
    /// request.
    fn malformed_success(response: &Response<Bytes>, header: HeaderName) -> Self {
        let status = response.status();
        let error = Error::response(NotTheService { status, header });
        Self {
            maybe_applied: true,
            ..Self::without_sending(error.with_request_id(request_id(response.headers())))
        }
    }
}

/// Returns true if a response returns the client request id of another request.
///
/// SERVICE: Table storage and emulators return the id as it was sent. Cosmos DB returns none.
fn is_of_other_request(headers: &HeaderMap, client_request_id: &str) -> bool {
    let returned = headers.get(name::X_MS_CLIENT_REQUEST_ID);
    returned.is_some_and(|id| {
        let id = id.as_bytes();
        !id.eq_ignore_ascii_case(client_request_id.as_bytes())
    })
}

/// The evidence that a response belongs to another request.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Misdirected {
    #[error(
        "the response that came is that to another request, with another x-ms-client-request-id"
    )]
    ClientRequestId,
    #[error("the response that came is that to another request, with an entity of another key")]
    Entity,
}

/// The header that a response lacks although every response of the service has it.
///
/// SERVICE: Cosmos DB sends no version.
fn missing_header(headers: &HeaderMap, backend: Backend) -> Option<HeaderName> {
    let required: &[_] = match backend {
        Backend::Cosmos => &[name::X_MS_REQUEST_ID],
        Backend::Storage => &[name::X_MS_REQUEST_ID, name::X_MS_VERSION],
    };
    let mut required = required.iter();
    required.find(|name| !headers.contains_key(*name)).cloned()
}

#[derive(Debug, thiserror::Error)]
#[error(
    "{status} without the header {header}, which every response of {} has",
    if *header == name::X_MS_VERSION {
        "Table storage (for Cosmos DB, which has none, set `TableServiceClientBuilder::backend`)"
    } else {
        "the table service"
    }
)]
struct NotTheService {
    status: StatusCode,
    header: HeaderName,
}

/// The retry class of an error of the service, by its response.
fn retry_class(error: &Error) -> RetryClass {
    if error.is_unavailable() {
        RetryClass::Time
    } else {
        RetryClass::None
    }
}

/// Returns true if the error is about the content that all attempts share, so that none of them was
/// carried out.
///
/// `TooManyProperties` and `EntityTooLarge` do not count: for a merge they depend on the stored
/// entity, which may have grown since an earlier attempt. Errors about headers and checksums do not
/// count either: one attempt may have been damaged in transit.
fn is_definitive(error: &ServiceError) -> bool {
    let code = error.code();
    // A code with a status that is not its own is not a response of the service.
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

/// How long the service asks to wait, if it does: in milliseconds, in seconds, or until a date.
fn asked_pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
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
    milliseconds.or_else(in_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_that_the_service_asks_for_is_understood() {
        let now = Timestamp::parse_http_date("Fri, 15 Mar 2024 10:20:30 GMT").unwrap();
        for (pairs, seconds) in [
            (&[][..], None),
            (&[("retry-after", "0")], Some(0.0)),
            (&[("retry-after", "3")], Some(3.0)),
            (
                &[("retry-after", "Fri, 15 Mar 2024 10:21:00 GMT")],
                Some(30.0),
            ),
            (&[("retry-after", "Fri, 15 Mar 2024 10:20:00 GMT")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after-ms", "250")], Some(0.25)),
            (
                &[("x-ms-retry-after-ms", "1500"), ("retry-after", "9")],
                Some(1.5),
            ),
            (
                &[("x-ms-retry-after-ms", "?"), ("retry-after", "9")],
                Some(9.0),
            ),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            let expected = seconds.map(Duration::from_secs_f64);
            assert_eq!(asked_pause(&headers, now), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_response_to_another_request_is_recognized() {
        let mut headers = HeaderMap::new();
        assert!(!is_of_other_request(&headers, "0b9f6a52-6f0d"));
        for (returned, expected) in [
            ("0b9f6a52-6f0d", false),
            ("0B9F6A52-6F0D", false),
            ("0b9f6a52-6f0e", true),
            ("", true),
        ] {
            headers.insert(name::X_MS_CLIENT_REQUEST_ID, returned.parse().unwrap());
            let actual = is_of_other_request(&headers, "0b9f6a52-6f0d");
            assert_eq!(actual, expected, "{returned:?}");
        }
    }

    fn failure(status: u16, body: &str) -> AttemptFailure {
        let mut response = Response::new(Bytes::copy_from_slice(body.as_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        AttemptFailure::answered(&response, Timestamp::UNIX_EPOCH)
    }

    fn coded(code: &str) -> String {
        format!(r#"{{"odata.error":{{"code":"{code}","message":{{"lang":"","value":""}}}}}}"#)
    }

    #[test]
    fn every_status_has_its_class() {
        let class = |status, body: &str| {
            let failure = failure(status, body);
            (
                failure.retry_class == RetryClass::Time,
                failure.maybe_applied,
            )
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
            // An error of the service is a refusal; a response of a proxy leaves it open.
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
            // Not responses of the service.
            (400, "FromTheFuture", false),
            (500, "InvalidInput", false),
        ] {
            assert_eq!(
                failure(status, &coded(code)).is_definitive,
                expected,
                "{code}"
            );
        }
        for status in [400, 405, 411, 413, 414, 415, 501] {
            assert!(!failure(status, "<html>").is_definitive, "{status}");
        }
    }
}
