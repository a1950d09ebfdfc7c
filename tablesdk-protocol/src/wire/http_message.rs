//! An HTTP message as text, as a part of a batch contains it: its first line, its headers, its
//! body.
//!
//! Lines are written with CR LF. They are read with CR LF or with a bare LF. What is read is
//! borrowed from the text, and a line is looked at once. [`multipart`](super::multipart) determines
//! where a body ends; the operations interpret the message.

use std::io::Write as _;
use std::{fmt, str};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use crate::types::header::spelling;

/// A request as text. Its target may not be a URL: clients write keys in it unencoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestText<'t> {
    /// All up to the body; `None` if there is no body.
    pub head: Option<&'t [u8]>,
    /// The method.
    pub method: Method,
    /// The request target, between method and version: a URL, or a path with a query.
    pub target: &'t str,
    /// The body, without line ends after it.
    pub body: &'t [u8],
}

/// A response as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseText<'t> {
    /// The status.
    pub status: StatusCode,
    /// The body, without line ends after it.
    pub body: &'t [u8],
}

/// A header as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderLine<'t> {
    /// The line with its end.
    line: &'t [u8],
    /// The name, in any case.
    name: &'t [u8],
    /// The value, without the blanks around it.
    pub value: &'t [u8],
}

impl<'t> HeaderLine<'t> {
    /// Reads a line; `text` is without its end.
    fn read(line: &'t [u8], text: &'t [u8]) -> Result<Self, MalformedMessage> {
        let colon = memchr::memchr(b':', text).ok_or(MalformedMessage)?;
        let (name, value) = text.split_at_checked(colon).ok_or(MalformedMessage)?;
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if is_name(name) && is_value(value) {
            Ok(Self { line, name, value })
        } else {
            Err(MalformedMessage)
        }
    }

    /// Takes the first line of a text instead, if it has the same name. Returns what follows.
    ///
    /// The values of lines that follow each other in a batch often begin the same, such as URLs.
    /// Only the rest of a value is looked at.
    fn take_next(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        if !self.line.ends_with(b"\n") {
            return None;
        }
        if let Some(rest) = text.strip_prefix(self.line) {
            return Some(rest);
        }
        // Blanks and a line end that were behind the value may now be in it.
        let known = without_line_end(self.line);
        let same = common_bytes(known, text);
        let name_bytes = self.name.len();
        if same <= name_bytes || known.last().is_none_or(u8::is_ascii_whitespace) {
            return None;
        }
        let newline = memchr::memchr(b'\n', text.get(same..)?)?;
        let (line, rest) = text.split_at_checked(same + newline + 1)?;
        let text = without_line_end(line);
        if !is_value(text.get(same..)?) {
            return None;
        }
        *self = Self {
            line,
            name: text.get(..name_bytes)?,
            value: text.get(name_bytes + 1..)?.trim_ascii(),
        };
        Some(rest)
    }

    /// Returns true if the header has that name.
    pub fn is(&self, name: &HeaderName) -> bool {
        self.name.eq_ignore_ascii_case(name.as_str().as_bytes())
    }
}

/// Reads a request. `headers` then holds its headers, in their order, and nothing else.
///
/// # Errors
///
/// When the first line or a header is malformed.
pub fn read_request<'t>(
    text: &'t [u8],
    headers: &mut Vec<HeaderLine<'t>>,
) -> Result<RequestText<'t>, MalformedMessage> {
    let (line, rest) = first_line(without_first_line_ends(text));
    let line = str::from_utf8(line)
        .map_err(|_| MalformedMessage)?
        .trim_end();
    let rest = read_headers(rest, headers)?;
    // The target is all between the first space and the last: some clients leave the spaces of keys
    // as they are.
    let (method, target) = line.split_once(' ').ok_or(MalformedMessage)?;
    let (target, version) = target.rsplit_once(' ').ok_or(MalformedMessage)?;
    if !version.starts_with("HTTP/") {
        return Err(MalformedMessage);
    }
    // Without a body, the headers may end with the text, and not with a blank line.
    let head = text.get(..text.len() - rest.len());
    Ok(RequestText {
        head: head.filter(|_| !rest.is_empty()),
        method: method.parse().map_err(|_| MalformedMessage)?,
        target: target.trim(),
        body: without_line_ends(rest),
    })
}

/// The lines in front of the body of a response. Responses of one batch have most of them in
/// common.
#[derive(Clone, Debug, Default)]
pub struct ResponseLines<'t> {
    /// The first line with its end, and the status in it.
    first: Option<(&'t [u8], StatusCode)>,
    /// The headers, in their order.
    pub headers: Vec<HeaderLine<'t>>,
}

/// Reads a response. `lines` then holds its lines, and nothing else.
///
/// # Errors
///
/// When the first line or a header is malformed.
pub fn read_response<'t>(
    text: &'t [u8],
    lines: &mut ResponseLines<'t>,
) -> Result<ResponseText<'t>, MalformedMessage> {
    let text = without_first_line_ends(text);
    let known = lines
        .first
        .and_then(|(line, status)| Some((status, text.strip_prefix(line)?)));
    let (status, rest) = match known {
        Some(known) => known,
        None => {
            let (line, rest) = first_line(text);
            let status = status_of(line).ok_or(MalformedMessage)?;
            let line = text.get(..text.len() - rest.len()).unwrap_or_default();
            lines.first = line.ends_with(b"\n").then_some((line, status));
            (status, rest)
        }
    };
    let rest = read_headers(rest, &mut lines.headers)?;
    Ok(ResponseText {
        status,
        body: without_line_ends(rest),
    })
}

fn status_of(line: &[u8]) -> Option<StatusCode> {
    let line = str::from_utf8(line).ok()?.trim_end();
    let mut words = line.split(' ');
    let (version, status) = (words.next()?, words.next()?);
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
    version.starts_with("HTTP/").then_some(status)
}

impl ResponseText<'_> {
    /// The response with these headers, with bytes of its own.
    pub fn to_response(self, headers: &[HeaderLine<'_>]) -> Response<Bytes> {
        let mut response = Response::new(Bytes::copy_from_slice(self.body));
        *response.status_mut() = self.status;
        for header in headers {
            let name = HeaderName::from_bytes(header.name);
            // Those that were read are valid.
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(header.value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// Appends a request. Headers in `order` come first, in that order.
pub fn write_request(out: &mut Vec<u8>, request: &Request<Bytes>, order: &[HeaderName]) {
    let (method, uri) = (request.method(), request.uri());
    let (headers, body) = (request.headers(), request.body());
    write(
        out,
        format_args!("{method} {uri} HTTP/1.1"),
        headers,
        order,
        body,
    );
}

/// Appends a response. Headers in `order` come first, in that order.
pub fn write_response(out: &mut Vec<u8>, response: &Response<Bytes>, order: &[HeaderName]) {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let status = status.as_u16();
    let (headers, body) = (response.headers(), response.body());
    write(
        out,
        format_args!("HTTP/1.1 {status} {reason}"),
        headers,
        order,
        body,
    );
}

/// The body of a message with that [head](RequestText::head).
pub fn body_behind<'t>(head: &[u8], text: &'t [u8]) -> Option<&'t [u8]> {
    text.strip_prefix(head).map(without_line_ends)
}

/// Reads headers up to the blank line after them, or to the end. Returns what follows.
///
/// `headers` then holds them, and nothing else. What it held before is used: messages of one batch
/// have most lines in common, and a line that is the same is not read again.
///
/// # Errors
///
/// When a line is not a header, or there are more headers than any client sends.
pub(super) fn read_headers<'t>(
    text: &'t [u8],
    headers: &mut Vec<HeaderLine<'t>>,
) -> Result<&'t [u8], MalformedMessage> {
    let mut rest = text;
    for count in 0..=HEADERS_MAX {
        let known = headers.get_mut(count);
        if let Some(after) = known.and_then(|header| header.take_next(rest)) {
            rest = after;
            continue;
        }
        let (text, after) = first_line(rest);
        if text.is_empty() {
            headers.truncate(count);
            return Ok(after);
        }
        let line = rest.get(..rest.len() - after.len()).unwrap_or_default();
        let header = HeaderLine::read(line, text)?;
        match headers.get_mut(count) {
            Some(known) => *known = header,
            None => headers.push(header),
        }
        rest = after;
    }
    Err(MalformedMessage)
}

/// Returns true if a header can have this name.
fn is_name(name: &[u8]) -> bool {
    // Without an early end, so that many bytes are looked at together.
    let is_token = name.iter().fold(true, |is, byte| is & is_token(*byte));
    is_token && (1..=HEADER_NAME_BYTES_MAX).contains(&name.len())
}

/// Returns true if a token can have this byte. See
/// <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2>.
const fn is_token(byte: u8) -> bool {
    let is_delimiter = matches!(
        byte,
        b'"' | b'(' | b')' | b',' | b'/' | b':'..=b'@' | b'['..=b']' | b'{' | b'}'
    );
    byte.is_ascii_graphic() && !is_delimiter
}

/// Returns true if a header can have this value.
pub(crate) fn is_value(value: &[u8]) -> bool {
    let is_allowed = |byte: u8| (byte >= b' ' && byte != 0x7F) || byte == b'\t';
    // Without an early end, so that many bytes are looked at together.
    value.iter().fold(true, |is, byte| is & is_allowed(*byte))
}

/// The first line without its end, and what follows it.
pub(super) fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    let newline = memchr::memchr(b'\n', text);
    let (line, rest) = newline
        .and_then(|newline| text.split_at_checked(newline + 1))
        .unwrap_or((text, &[]));
    (without_line_end(line), rest)
}

/// The bytes without one line end after them.
pub(super) fn without_line_end(bytes: &[u8]) -> &[u8] {
    match bytes.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => bytes,
    }
}

/// The bytes without the line ends before them.
fn without_first_line_ends(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_line_end(*byte));
    let text = start.and_then(|start| text.get(start..));
    text.unwrap_or_default()
}

/// How many bytes two texts have in common at their start. Compares eight at once.
fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    let (mut rest, mut rest_of_other) = (one, other);
    while let (Some((word, after)), Some((other, after_other))) =
        (rest.split_first_chunk(), rest_of_other.split_first_chunk())
    {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return one.len() - rest.len() + differing.trailing_zeros() as usize / 8;
        }
        (rest, rest_of_other) = (after, after_other);
    }
    let same = rest.iter().zip(rest_of_other);
    one.len() - rest.len() + same.take_while(|(one, other)| one == other).count()
}

/// The bytes without the line ends after them. Some clients send another one after a body, or
/// instead of one, which JSON permits.
fn without_line_ends(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !is_line_end(*byte));
    end.and_then(|end| bytes.get(..=end)).unwrap_or_default()
}

const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn write(
    out: &mut Vec<u8>,
    line: fmt::Arguments<'_>,
    headers: &HeaderMap,
    order: &[HeaderName],
    body: &Bytes,
) {
    write!(out, "{line}\r\n").expect("writing to memory cannot fail");
    let mut write_line = |parts: &[&[u8]]| {
        for part in parts {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(b"\r\n");
    };
    let ordered = order.iter().flat_map(|name| {
        let values = headers.get_all(name).iter();
        values.map(move |value| (name, value))
    });
    let others = headers.iter().filter(|(name, _)| !order.contains(name));
    for (name, value) in ordered.chain(others) {
        write_line(&[spelling(name).as_bytes(), b": ", value.as_bytes()]);
    }
    write_line(&[]);
    write_line(&[body]);
}

/// Bytes that are no HTTP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an HTTP message")]
pub struct MalformedMessage;

/// The most headers of one message. Clients send about ten.
const HEADERS_MAX: usize = 100;

/// The longest name of a header that HTTP stacks take.
const HEADER_NAME_BYTES_MAX: usize = u16::MAX as usize;

#[cfg(test)]
mod tests {
    use http::header;
    use proptest::prelude::*;

    use super::*;

    fn request(text: &str) -> Result<(RequestText<'_>, Vec<HeaderLine<'_>>), MalformedMessage> {
        let mut headers = Vec::new();
        let request = read_request(text.as_bytes(), &mut headers)?;
        Ok((request, headers))
    }

    #[test]
    fn reads_requests_with_every_line_end_and_case() {
        for text in [
            "PUT http://host/acct/people HTTP/1.1\r\nIf-Match: *\r\nACCEPT:a/b\r\n\r\n{\"a\": 1}\r\n\r\n",
            "PUT http://host/acct/people HTTP/1.1\nif-match:   *  \naccept: a/b\n\n{\"a\": 1}",
            "\r\n\nPUT http://host/acct/people HTTP/1.1  \r\nif-match: *\naccept: a/b\n\r\n{\"a\": 1}\n",
        ] {
            let (request, headers) = request(text).unwrap();
            assert_eq!(request.method, Method::PUT);
            assert_eq!(request.target, "http://host/acct/people");
            let [if_match, accept] = headers[..] else {
                panic!("{headers:?}");
            };
            assert!(if_match.is(&header::IF_MATCH) && accept.is(&header::ACCEPT));
            assert!(!if_match.is(&header::IF_NONE_MATCH));
            assert_eq!((if_match.value, accept.value), (&b"*"[..], &b"a/b"[..]));
            assert_eq!(request.body, b"{\"a\": 1}");
        }
    }

    #[test]
    fn the_end_of_the_input_ends_the_headers() {
        for text in [
            "DELETE /people HTTP/1.1",
            "DELETE /people HTTP/1.1\r\n",
            "DELETE /people HTTP/1.1\n\n\n\n",
            "DELETE /people HTTP/1.1\r\nif-match: *",
        ] {
            let (request, _) = request(text).unwrap();
            assert_eq!((request.target, request.body.len()), ("/people", 0));
        }
    }

    #[test]
    fn a_target_may_hold_spaces() {
        let request = request("GET /people(PartitionKey='a b', RowKey='ü HTTP/1.1') HTTP/1.1");
        assert_eq!(
            request.unwrap().0.target,
            "/people(PartitionKey='a b', RowKey='ü HTTP/1.1')"
        );
    }

    #[test]
    fn malformed_messages_are_refused() {
        let many = "a: b\r\n".repeat(101);
        for text in [
            "",
            "\r\n\r\n",
            "GET",
            "GET /people",
            "GET /people HTTP/1.1\r\nno colon\r\n\r\n",
            "GET /people HTTP/1.1\r\n: no name\r\n\r\n",
            "GET /people HTTP/1.1\r\n folded: line\r\n\r\n",
            "G(T /people HTTP/1.1",
            &format!("GET /people HTTP/1.1\r\n{many}\r\n"),
        ] {
            assert_eq!(request(text), Err(MalformedMessage), "{text:.60}");
        }
        for text in ["", "HTTP/1.1", "HTTP/1.1 99 x", "204 No Content"] {
            let read = read_response(text.as_bytes(), &mut ResponseLines::default());
            assert!(read.is_err(), "{text}");
        }
    }

    #[test]
    fn a_header_is_valid_where_it_is_one_of_http() {
        for byte in 0..=u8::MAX {
            let bytes = [b'a', byte, b'z'];
            let name = HeaderName::from_bytes(&bytes).is_ok();
            assert_eq!(is_name(&bytes), name, "{byte}");
            let value = HeaderValue::from_bytes(&bytes).is_ok();
            assert_eq!(is_value(&bytes), value, "{byte}");
        }
        for (length, expected) in [(0, false), (1, true), (65_535, true), (65_536, false)] {
            let name = vec![b'a'; length];
            assert_eq!(is_name(&name), expected, "{length}");
            assert_eq!(HeaderName::from_bytes(&name).is_ok(), expected, "{length}");
        }
        assert!(is_value(b""));
    }

    #[test]
    fn writes_headers_in_order_and_with_the_spelling_of_the_service() {
        let mut response = Response::new(Bytes::from_static(b"{}"));
        *response.status_mut() = StatusCode::CREATED;
        let headers = response.headers_mut();
        headers.insert(header::ETAG, HeaderValue::from_static("W/\"1\""));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("a/b"));
        let mut out = Vec::new();
        write_response(&mut out, &response, &[header::CONTENT_TYPE]);
        let text = "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nETag: W/\"1\"\r\n\r\n{}\r\n";
        assert_eq!(String::from_utf8(out), Ok(text.to_owned()));
    }

    /// Messages with lines that begin as others do.
    const MESSAGE: &str = "(GET / HTTP/1.1 ?(\r\n|\n))?(a: b(\r\n|\n)|a: bc\r\n|c:d\n|x(:|\n)|a:( |\x0c)?(http://127.0.0.1)?[bc]{0,2}[ \x0c\r]{0,2}b?(\r\n|\n)){0,4}((\n|\r\n)(\\{\\})?)?";

    proptest! {
        #[test]
        fn reads_back_what_it_writes(
            method in "GET|PUT|MERGE",
            path in "/[a-z]{1,9}",
            value in "[!-~]([ -~]{0,20}[!-~])?",
            body in "([ -~]|\r\n|\n){0,60}[!-~]",
        ) {
            let mut request = Request::new(Bytes::from(body.clone()));
            *request.method_mut() = method.parse().unwrap();
            *request.uri_mut() = path.parse().unwrap();
            request.headers_mut().insert(header::IF_MATCH, value.parse().unwrap());
            let mut text = Vec::new();
            write_request(&mut text, &request, &[]);
            let mut headers = Vec::new();
            let read = read_request(&text, &mut headers).unwrap();
            prop_assert_eq!((&read.method, read.target), (request.method(), path.as_str()));
            prop_assert_eq!(read.body, body.as_bytes());
            let read = ResponseText { status: StatusCode::OK, body: read.body };
            let read = read.to_response(&headers);
            prop_assert_eq!(read.headers(), request.headers());
        }

        #[test]
        fn a_message_is_read_the_same_after_any_other(
            texts in prop::collection::vec(MESSAGE, 1..6),
        ) {
            let mut headers = Vec::new();
            let mut last: Option<RequestText<'_>> = None;
            for text in &texts {
                let mut fresh = Vec::new();
                let expected = read_request(text.as_bytes(), &mut fresh);
                if let Some(body) = last.as_ref().and_then(|last| body_behind(last.head?, text.as_bytes())) {
                    prop_assert_eq!(Ok(body), expected.as_ref().map(|expected| expected.body));
                }
                let read = read_request(text.as_bytes(), &mut headers);
                prop_assert_eq!(&read, &expected);
                if let Ok(read) = read {
                    prop_assert_eq!(&headers, &fresh);
                    last = Some(read);
                }
            }
        }

        #[test]
        fn a_response_is_read_the_same_after_any_other(
            texts in prop::collection::vec(MESSAGE, 1..6),
        ) {
            let mut lines = ResponseLines::default();
            for text in &texts {
                let text = text.replace("GET / HTTP/1.1", "HTTP/1.1 204 x");
                // The lines are those of the texts before.
                let text: &'static str = Box::leak(text.into_boxed_str());
                let mut fresh = ResponseLines::default();
                let expected = read_response(text.as_bytes(), &mut fresh);
                let read = read_response(text.as_bytes(), &mut lines);
                prop_assert_eq!(read, expected);
                if read.is_ok() {
                    prop_assert_eq!(&lines.headers, &fresh.headers);
                }
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>, line in "(HTTP/1.1 [0-9]{0,4}|GET) [ -~\r\n]{0,60}") {
            for text in [bytes, line.into_bytes()] {
                let mut headers = Vec::new();
                let _ = read_request(&text, &mut headers);
                let _ = read_response(&text, &mut ResponseLines::default());
            }
        }
    }
}
