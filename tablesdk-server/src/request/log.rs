//! The request log: one event for each request, when its response is complete or no response is
//! possible any more.
//!
//! Events go to the `tracing` subscribers; nothing is installed here. Events contain no
//! credentials: no header except the client's request id, and of the URL neither the signature nor
//! any part that could be one. URLs contain the keys of entities, unless the operator leaves them
//! out.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::net::IpAddr;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, Uri};
use percent_encoding::percent_decode_str;
use tablesdk_protocol::{Guid, ServiceError};
use tokio::time::Instant;
use tracing::{Level, Span};

use crate::request::auth;
use crate::request::context::Context;

/// Logs an event that says nothing but that a client sent a request. In a test, that is too much at
/// the level INFO.
macro_rules! log_request {
    ($is_info:expr, $($field:tt)+) => {
        // The level must be a constant.
        if $is_info {
            tracing::info!(target: TARGET, $($field)+)
        } else {
            tracing::debug!(target: TARGET, $($field)+)
        }
    };
}

/// The facts known about a request so far. They are logged when this is dropped, at the latest.
/// Nothing is printed before that, so that a request that is not logged costs no allocation.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    /// `None` if no subscriber reads the log.
    facts: Option<RequestFacts>,
    operation: &'static str,
    span: Span,
}

#[derive(Debug)]
struct RequestFacts {
    began: Instant,
    method: Method,
    uri: Uri,
    authentication: &'static str,
    logs_entity_keys: bool,
    is_info: bool,
    peer: Option<IpAddr>,
    request_id: Guid,
    client_request_id: Option<HeaderValue>,
    bytes_in: usize,
}

impl RequestRecord {
    /// The record of a new request.
    pub(crate) fn new(head: &Parts, context: &Context) -> Self {
        let facts = tracing::enabled!(target: TARGET, Level::ERROR).then(|| RequestFacts {
            began: Instant::now(),
            method: head.method.clone(),
            uri: head.uri.clone(),
            authentication: auth::kind(head),
            logs_entity_keys: context.logs_entity_keys,
            is_info: context.logs_requests_at_info,
            peer: context.peer,
            request_id: context.request_id,
            client_request_id: context.client_request_id().cloned(),
            bytes_in: 0,
        });
        Self {
            facts,
            operation: "",
            span: tracing::info_span!(target: TARGET, "request", id = %context.request_id),
        }
    }

    /// The span of the events of the request.
    pub(crate) const fn span(&self) -> &Span {
        &self.span
    }

    /// Notes the size of the body.
    pub(crate) fn received(&mut self, body: &Bytes) {
        if let Some(facts) = &mut self.facts {
            facts.bytes_in = body.len();
        }
    }

    /// Notes the operation of the request.
    pub(crate) fn names(&mut self, operation: &'static str) {
        self.operation = operation;
    }

    /// The operation of the request; empty while it is unknown.
    pub(crate) const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Logs the response of the request, and the error if it is one. A batch that failed has the
    /// error of the operation in it that failed.
    pub(crate) fn responded(&mut self, response: &Response<Bytes>, error: Option<&ServiceError>) {
        let Some(facts) = self.facts.take() else {
            return;
        };
        let refused: Option<&RefusedPart> = response.extensions().get();
        let error = error.or_else(|| refused.map(|part| &part.error));
        let status = response.status();
        // The level must be a constant.
        macro_rules! log_response {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    $level,
                    method = facts.method.as_str(),
                    path = facts.path(),
                    query = facts.query(),
                    operation = known(self.operation),
                    status = status.as_u16(),
                    code = error.map(|error| error.code().as_str()),
                    batch_index = refused.map(|part| part.index),
                    reason = error.and_then(|error| reason(error, facts.logs_entity_keys)),
                    duration_us = micros(facts.began),
                    bytes_in = facts.bytes_in,
                    bytes_out = response.body().len(),
                    authentication = facts.authentication,
                    peer = facts.peer.map(tracing::field::display),
                    request_id = %facts.request_id,
                    client_request_id = facts.client_request_id(),
                    "responded"
                )
            };
        }
        // A 501 shows a client that needs more than the server has. Clients cause all other
        // rejections at will, and would fill a log at the level WARN.
        if status == http::StatusCode::NOT_IMPLEMENTED {
            log_response!(Level::WARN);
        } else if status.is_server_error() {
            log_response!(Level::ERROR);
        } else if facts.is_info {
            log_response!(Level::INFO);
        } else {
            log_response!(Level::DEBUG);
        }
    }
}

/// The connection broke, or the server stopped, before the response.
impl Drop for RequestRecord {
    fn drop(&mut self) {
        if let Some(facts) = self.facts.take() {
            log_request!(
                facts.is_info,
                method = facts.method.as_str(),
                path = facts.path(),
                query = facts.query(),
                operation = known(self.operation),
                duration_us = micros(facts.began),
                bytes_in = facts.bytes_in,
                authentication = facts.authentication,
                peer = facts.peer.map(tracing::field::display),
                request_id = %facts.request_id,
                client_request_id = facts.client_request_id(),
                "abandoned"
            );
        }
    }
}

impl RequestFacts {
    fn path(&self) -> String {
        let path = self.uri.path();
        let path = if self.logs_entity_keys {
            Cow::Borrowed(path)
        } else {
            without_entity(path)
        };
        WithoutSignature::of_path(&path).to_string()
    }

    fn query(&self) -> Option<String> {
        let query = self.uri.query()?;
        let query = if self.logs_entity_keys {
            Cow::Borrowed(query)
        } else {
            without_values(query).into()
        };
        Some(WithoutSignature::of_text(&query).to_string())
    }

    fn client_request_id(&self) -> Option<String> {
        let id = self.client_request_id.as_ref()?.to_str().ok()?;
        Some(WithoutSignature::of_text(id).to_string())
    }
}

/// The path without everything from the first parenthesis or quote on, which may be the key of an
/// entity.
fn without_entity(path: &str) -> Cow<'_, str> {
    let marks = ["(", "'", "%28", "%27"];
    let ends = marks.into_iter().filter_map(|mark| path.find(mark));
    match ends.min().and_then(|end| path.get(..end)) {
        // The brackets of all entities.
        Some(table) if path.get(table.len()..) != Some("()") => {
            format!("{table}({LEFT_OUT})").into()
        }
        _ => path.into(),
    }
}

/// The query with the values of those parameters alone that are about no entity in particular.
fn without_values(query: &str) -> String {
    let mut pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if !PARAMETERS_WITHOUT_KEYS.contains(&&*decoded(name)) => {
            Cow::Owned(format!("{name}={LEFT_OUT}"))
        }
        Some(_) => Cow::Borrowed(pair),
        None => Cow::Borrowed(LEFT_OUT),
    });
    let first = pairs.next().unwrap_or_default().into_owned();
    pairs.fold(first, |query, pair| query + "&" + &pair)
}

/// The message of an error, which may quote a key.
fn reason(error: &ServiceError, logs_entity_keys: bool) -> Option<String> {
    logs_entity_keys.then(|| WithoutSignature::of_text(error.message()).to_string())
}

/// A field that is left out while it is empty.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The operation because of which a batch failed: an extension of its response.
#[derive(Clone, Debug)]
pub(crate) struct RefusedPart {
    /// Its index in the batch.
    pub(crate) index: usize,
    pub(crate) error: ServiceError,
}

/// Logs that a request without a readable head was refused or abandoned.
pub(crate) fn unreadable(peer: IpAddr, error: &dyn Error) {
    tracing::info!(target: TARGET, %peer, reason = with_causes(error), "unreadable");
}

/// Logs the response to a request without a readable head, in addition to the event of
/// [`unreadable`].
pub(crate) fn unread(request_id: Guid, error: &ServiceError) {
    tracing::info!(
        target: TARGET,
        %request_id,
        status = error.status().as_u16(),
        code = error.code().as_str(),
        "a head that cannot be read was refused"
    );
}

/// Logs that the storage failed during a request, with all causes.
pub(crate) fn storage_failed(request_id: Guid, error: &dyn Error) {
    // The span has the id, too, but it is disabled where only errors are logged.
    tracing::error!(target: TARGET, error = with_causes(error), %request_id, "the storage failed");
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

fn micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Part of a URL without everything that may be a signature, in one line of limited length.
///
/// A parameter named `sig` is omitted, also if its name is encoded. So is, anywhere, every run with
/// the length and the alphabet of a signature, because a URL that was built wrongly has it in the
/// wrong place.
struct WithoutSignature<'t> {
    text: &'t str,
    /// True if slashes separate parts. A signature in a path has encoded ones.
    is_path: bool,
}

impl<'t> WithoutSignature<'t> {
    const fn of_path(text: &'t str) -> Self {
        let is_path = true;
        Self { text, is_path }
    }

    const fn of_text(text: &'t str) -> Self {
        let is_path = false;
        Self { text, is_path }
    }

    fn write_to(&self, out: &mut String) -> fmt::Result {
        for (index, pair) in self.text.split('&').enumerate() {
            if index > 0 {
                out.push('&');
            }
            match pair.split_once('=').map(|(name, _)| name) {
                Some(name) if decoded(name).trim().eq_ignore_ascii_case("sig") => {
                    write!(out, "{name}={LEFT_OUT}")?;
                }
                // A signature in it could not be recognized.
                _ if is_encoded_twice(pair) => out.push_str(LEFT_OUT),
                _ => write_without_runs(out, pair, self.is_path),
            }
        }
        Ok(())
    }
}

impl fmt::Display for WithoutSignature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_to(&mut text)?;
        // Truncated last, because half a signature could not be recognized.
        if let Some((end, _)) = text.char_indices().nth(TEXT_LENGTH_MAX) {
            text.truncate(end);
            text.push_str(LEFT_OUT);
        }
        f.write_str(&text)
    }
}

/// Returns true if a percent-encoded percent sign precedes a code.
fn is_encoded_twice(text: &str) -> bool {
    let code = |rest: &str| {
        let mut digits = rest.bytes().map(hex);
        matches!(
            (digits.next(), digits.next()),
            (Some(Some(_)), Some(Some(_)))
        )
    };
    text.split("%25").skip(1).any(code)
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Writes a string without long runs of base64, in which each character may be percent-encoded.
fn write_without_runs(out: &mut String, text: &str, is_path: bool) {
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let (run, count) = run_of_base64(rest, is_path);
        // The code of a character that is not base64 does not start a run.
        let other = rest
            .get(..3)
            .filter(|code| is_code_of_other(code.as_bytes()));
        let length = if let Some(code) = other {
            out.push_str(code);
            code.len()
        } else if run.is_empty() {
            // A message may contain input of a client, which must not start a line, be invisible,
            // or reverse the rest of the line.
            if is_shown(next) {
                out.push(next);
            } else {
                out.extend(next.escape_debug());
            }
            next.len_utf8()
        } else {
            let is_signature = count >= SIGNATURE_LENGTH_MIN && !is_hexadecimal(run);
            out.push_str(if is_signature { LEFT_OUT } else { run });
            run.len()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// Returns true if a character is printable in a terminal: not a control, format or separator
/// character except the space.
fn is_shown(character: char) -> bool {
    // The format of the log escapes quotes if necessary.
    matches!(character, '"' | '\'' | '\\') || character.escape_debug().len() == 1
}

/// The longest prefix of a string that is base64, and the number of its characters after decoding.
///
/// Equals signs, and slashes in a path, count only if they are encoded, because otherwise they are
/// separators.
fn run_of_base64(text: &str, is_path: bool) -> (&str, usize) {
    let (mut length, mut count) = (0, 0);
    let mut rest = text.as_bytes();
    loop {
        let width = match rest {
            [b'%', high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) if is_base64(high << 4 | low) => 3,
                _ => break,
            },
            [b'=', ..] => break,
            [b'/', ..] if is_path => break,
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

/// Returns true if this is percent-encoded and not base64.
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

/// Returns true for a character of either base64 alphabet.
const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The `tracing` target of the events.
pub(crate) const TARGET: &str = "tablesdk_server::request";
const LEFT_OUT: &str = "…";
/// The parameters that the service knows and that contain no keys.
const PARAMETERS_WITHOUT_KEYS: [&str; 18] = [
    "$format",
    "$select",
    "$top",
    "NextTableName",
    "comp",
    "restype",
    "se",
    "si",
    "sig",
    "sip",
    "sp",
    "spr",
    "srt",
    "ss",
    "st",
    "sv",
    "timeout",
    "tn",
];
/// The maximum length of a logged path, query or reason, in characters.
const TEXT_LENGTH_MAX: usize = 2048;
/// A SHA-256 in base64 has 44 characters, or 43 without padding. A few more may be missing from a
/// damaged one.
const SIGNATURE_LENGTH_MIN: usize = 40;

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    use super::*;

    const SIGNATURE: &str = "K8Yd2uQvVd0s1Jx1YVbA+7vLr1V/9yXo8n0g5oQm3lE=";
    const ENCODED: &str = "K8Yd2uQvVd0s1Jx1YVbA%2B7vLr1V%2F9yXo8n0g5oQm3lE%3D";

    fn shown(text: &str) -> String {
        WithoutSignature::of_text(text).to_string()
    }

    #[test]
    fn twice_encoded_signatures_are_not_logged() {
        let mut text = format!("sv=2019-02-02&sig={SIGNATURE}&se=2030-01-01");
        for _ in 0..4 {
            let line = shown(&text);
            for piece in SIGNATURE
                .split(['+', '/', '='])
                .filter(|piece| piece.len() > 4)
            {
                assert!(!line.contains(piece), "{line}");
            }
            text = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
        }
    }

    #[test]
    fn queries_are_logged_without_signatures() {
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
    fn logged_strings_are_one_line_of_bounded_length() {
        assert_eq!(shown("a\r\nb\u{1b}c"), "a\\r\\nb\\u{1b}c");
        for hidden in [
            '\u{85}', '\u{200b}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}', '\u{feff}',
        ] {
            let expected = format!("a\\u{{{:x}}}b", u32::from(hidden));
            assert_eq!(shown(&format!("a{hidden}b")), expected);
        }
        assert_eq!(shown("ä 日本 🦀 \"it's\" \\"), "ä 日本 🦀 \"it's\" \\");
        let long = "a b ".repeat(10_000);
        assert_eq!(shown(&long).chars().count(), TEXT_LENGTH_MAX + 1);
        let before = "a ".repeat(TEXT_LENGTH_MAX / 2 - 10);
        let cut = shown(&format!("{before}{SIGNATURE}"));
        assert!(cut.ends_with("a …="), "{cut}");
    }

    #[test]
    fn paths_are_logged_without_signatures() {
        let shown = |text: &str| WithoutSignature::of_path(text).to_string();
        let garbled = format!("/people%28%29%3Fsig%3D{ENCODED}");
        assert_eq!(shown(&garbled), "/people%28%29%3F…");
        let path = "/devstoreaccount1/ATableWithAName/AndAnotherPart/OfThePath";
        assert_eq!(shown(path), path);
    }

    #[test]
    fn everything_else_is_logged_unchanged() {
        for text in [
            "",
            "&&=",
            "$filter=PartitionKey%20eq%20%27signal%27&$top=5&$select=",
            "/a(PartitionKey='18a7f7ee-6d6b-4f0a-a1d5-55c1b1c0d2aa',RowKey='ä%E4%%zz')",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
