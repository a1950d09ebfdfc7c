//! The request log: one event for each request, once it has its answer or can get none.
//!
//! Events go to whoever subscribes to `tracing`; nothing is installed here. What is written down lets nobody sign anything: no
//! header but the client's request id, and of the URL no signature, nor what may be one.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, Uri};
use percent_encoding::percent_decode_str;
use tablesdk_protocol::ServiceError;
use tokio::time::Instant;
use tracing::{Level, Span};

use crate::access;
use crate::context::Context;

/// What is known of a request so far. It is written down when this is dropped, at the latest.
#[derive(Debug)]
pub(crate) struct Entry {
    /// `None` where nobody reads the log.
    facts: Option<Box<Facts>>,
    span: Span,
}

#[derive(Debug)]
struct Facts {
    began: Instant,
    method: Method,
    uri: Uri,
    authentication: &'static str,
    request_id: String,
    client_request_id: String,
    operation: &'static str,
    bytes_in: usize,
}

impl Entry {
    /// For a request that has come.
    pub(crate) fn new(head: &Parts, context: &Context) -> Self {
        let facts = tracing::enabled!(target: TARGET, Level::ERROR).then(|| {
            Box::new(Facts {
                began: Instant::now(),
                method: head.method.clone(),
                uri: head.uri.clone(),
                authentication: access::kind(head),
                request_id: context.request_id().to_string(),
                client_request_id: context.client_request_id().unwrap_or_default().to_owned(),
                operation: "",
                bytes_in: 0,
            })
        });
        Self {
            facts,
            span: span(context),
        }
    }

    /// What happens while the request is answered belongs to this span.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// The body has come.
    pub(crate) fn received(&mut self, body: &Bytes) {
        if let Some(facts) = &mut self.facts {
            facts.bytes_in = body.len();
        }
    }

    /// It is known what the request asks for.
    pub(crate) fn names(&mut self, operation: &'static str) {
        if let Some(facts) = &mut self.facts {
            facts.operation = operation;
        }
    }

    /// The request has its answer: an error's, if there is one.
    pub(crate) fn answered(mut self, response: &Response<Bytes>, error: Option<&ServiceError>) {
        let Some(facts) = self.facts.take() else {
            return;
        };
        let status = response.status();
        let code = error.map(|error| error.code().as_str()).unwrap_or_default();
        let message = error.map(ServiceError::message).unwrap_or_default();
        // The level must be a constant of its place.
        macro_rules! write_down {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    $level,
                    method = %facts.method,
                    path = %WithoutSignature(facts.uri.path()),
                    query = %WithoutSignature(facts.uri.query().unwrap_or_default()),
                    operation = facts.operation,
                    status = status.as_u16(),
                    code,
                    reason = %WithoutSignature(message),
                    request_id = facts.request_id,
                    client_request_id = facts.client_request_id,
                    authentication = facts.authentication,
                    duration_us = micros(facts.began),
                    bytes_in = facts.bytes_in,
                    bytes_out = response.body().len(),
                    "answered"
                )
            };
        }
        if status == http::StatusCode::NOT_IMPLEMENTED {
            write_down!(Level::WARN);
        } else if status.is_server_error() {
            write_down!(Level::ERROR);
        } else {
            write_down!(Level::INFO);
        }
    }
}

/// What happens because of a request belongs to its span.
pub(crate) fn span(context: &Context) -> Span {
    tracing::error_span!(target: TARGET, "request", id = %context.request_id())
}

/// The connection broke, or the server stopped, before there was an answer.
impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(facts) = self.facts.take() {
            tracing::info!(
                target: TARGET,
                method = %facts.method,
                path = %WithoutSignature(facts.uri.path()),
                query = %WithoutSignature(facts.uri.query().unwrap_or_default()),
                operation = facts.operation,
                request_id = facts.request_id,
                client_request_id = facts.client_request_id,
                authentication = facts.authentication,
                duration_us = micros(facts.began),
                bytes_in = facts.bytes_in,
                "abandoned"
            );
        }
    }
}

/// Writes down that a request was refused, or given up, before there was a head to speak of.
pub(crate) fn unreadable(peer: IpAddr, error: &dyn Error) {
    tracing::info!(target: TARGET, %peer, reason = with_causes(error), "unreadable");
}

/// Writes down why an operation of a batch was refused, to be read together with the event of the whole request.
pub(crate) fn part_refused(error: &ServiceError) {
    tracing::info!(
        target: TARGET,
        status = error.status().as_u16(),
        code = error.code().as_str(),
        reason = %WithoutSignature(error.message()),
        "an operation of the batch was refused"
    );
}

/// Writes down that something below the service failed, with all its causes.
pub(crate) fn failed(error: &dyn Error) {
    tracing::error!(target: TARGET, error = with_causes(error), "the storage failed");
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a text does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

fn micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Part of a URL as it came, but for what is or may be a signature.
///
/// A parameter named `sig` is left out however it is spelled, and so is, anywhere, what has the length and the alphabet of a
/// signature: a URL that was put together wrongly has it in the wrong place.
struct WithoutSignature<'t>(&'t str);

impl fmt::Display for WithoutSignature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pair) in self.0.split('&').enumerate() {
            if index > 0 {
                f.write_char('&')?;
            }
            let name = pair.split_once('=').map(|(name, _)| name);
            match name {
                Some(name) if decoded(name).trim().eq_ignore_ascii_case("sig") => {
                    write!(f, "{name}={LEFT_OUT}")?;
                }
                _ => write_without_runs(f, pair)?,
            }
        }
        Ok(())
    }
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Writes a text without runs of base64, in which each character may be percent-encoded.
fn write_without_runs(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        // Another character's code is no start of a run.
        if let Some(code) = rest
            .get(..3)
            .filter(|code| is_code_of_other(code.as_bytes()))
        {
            f.write_str(code)?;
            rest = rest.get(code.len()..).unwrap_or_default();
            continue;
        }
        let (run, count) = run_of_base64(rest);
        if count >= SIGNATURE_LENGTH_MIN && !is_hexadecimal(run) {
            f.write_str(LEFT_OUT)?;
        } else if run.is_empty() {
            f.write_char(next)?;
        } else {
            f.write_str(run)?;
        }
        let length = if run.is_empty() {
            next.len_utf8()
        } else {
            run.len()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// The longest start of a text that is base64, and the number of its characters once decoded.
///
/// Slashes and equals signs count only where they are encoded, as they are by those who sign URLs: as they are, they stand
/// between the parts of every URL.
fn run_of_base64(text: &str) -> (&str, usize) {
    let (mut length, mut count) = (0, 0);
    let mut rest = text.as_bytes();
    loop {
        let width = match rest {
            [b'%', high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) if is_base64(high << 4 | low) => 3,
                _ => break,
            },
            [b'/' | b'=', ..] => break,
            [character, ..] if is_base64(*character) => 1,
            _ => break,
        };
        length += width;
        count += 1;
        rest = rest.get(width..).unwrap_or_default();
    }
    // All of it is ASCII.
    (text.get(..length).unwrap_or_default(), count)
}

/// Whether this is percent-encoded and not base64.
fn is_code_of_other(code: &[u8]) -> bool {
    match code {
        [b'%', high, low] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => !is_base64(high << 4 | low),
            _ => false,
        },
        _ => false,
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Of either alphabet.
const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// What events are told by.
pub(crate) const TARGET: &str = "tablesdk_server::request";
const LEFT_OUT: &str = "…";
/// A SHA-256 in base64 has 44 characters, or 43 without its padding; a few more may be missing from what was garbled.
const SIGNATURE_LENGTH_MIN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "K8Yd2uQvVd0s1Jx1YVbA+7vLr1V/9yXo8n0g5oQm3lE=";
    const ENCODED: &str = "K8Yd2uQvVd0s1Jx1YVbA%2B7vLr1V%2F9yXo8n0g5oQm3lE%3D";

    fn shown(text: &str) -> String {
        WithoutSignature(text).to_string()
    }

    #[test]
    fn a_query_is_shown_without_its_signature() {
        for (query, expected) in [
            (
                format!("sv=2019-02-02&tn=people&sig={ENCODED}&se=2030-01-01"),
                "sv=2019-02-02&tn=people&sig=…&se=2030-01-01",
            ),
            (format!("sig={SIGNATURE}"), "sig=…"),
            ("sig=short".to_owned(), "sig=…"),
            (format!("%73Ig={ENCODED}&sig=x"), "%73Ig=…&sig=…"),
            // Garbled, it is somewhere else.
            (format!("tig={ENCODED}"), "tig=…"),
            (format!("sigX{ENCODED}"), "…"),
            (
                format!("se=2030-01-01Xsig={ENCODED}"),
                "se=2030-01-01Xsig=…",
            ),
            (
                format!("/people%28%29%3Fsig%3D{ENCODED}"),
                "/people%28%29%3F…",
            ),
        ] {
            assert_eq!(shown(&query), expected);
        }
    }

    #[test]
    fn everything_else_is_shown_as_it_came() {
        for text in [
            "",
            "&&=",
            "$filter=PartitionKey%20eq%20%27signal%27&$top=5&$select=",
            "/devstoreaccount1/ATableWithAName/AndAnotherPart/OfThePath",
            "/a(PartitionKey='18a7f7ee-6d6b-4f0a-a1d5-55c1b1c0d2aa',RowKey='ä%E4%%zz')",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
