//! An HTTP message as text, as a part of a batch contains it: its first line, its headers, its body.
//!
//! Lines are written with CR LF. They are read with CR LF or with a bare LF. [`multipart`](super::multipart) determines where a
//! body ends; the operations interpret the message.

use std::fmt;
use std::io::Write as _;

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use crate::types::header::spelling;

/// A request as text. Its target may not be a URL: clients write keys in it unencoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestText {
    /// The method.
    pub method: Method,
    /// What stands between method and version: a URL, or a path with a query.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, without line ends after it.
    pub body: Bytes,
}

/// Reads a request.
///
/// # Errors
///
/// When the first line or a header is malformed.
pub fn read_request(text: &Bytes) -> Result<RequestText, MalformedMessage> {
    let (line, headers, body) = read(text)?;
    // The target is all between the first space and the last: some clients leave the spaces of keys as they are.
    let (method, rest) = line.split_once(' ').ok_or(MalformedMessage)?;
    let (target, version) = rest.rsplit_once(' ').ok_or(MalformedMessage)?;
    if !version.starts_with("HTTP/") {
        return Err(MalformedMessage);
    }
    Ok(RequestText {
        method: method.parse().map_err(|_| MalformedMessage)?,
        target: target.trim().to_owned(),
        headers,
        body,
    })
}

/// Reads a response.
///
/// # Errors
///
/// When the first line or a header is malformed.
pub fn read_response(text: &Bytes) -> Result<Response<Bytes>, MalformedMessage> {
    let (line, headers, body) = read(text)?;
    let mut words = line.split(' ');
    let (version, status) = (words.next(), words.next());
    if !version.unwrap_or_default().starts_with("HTTP/") {
        return Err(MalformedMessage);
    }
    let status = StatusCode::from_bytes(status.unwrap_or_default().as_bytes());
    let mut response = Response::new(body);
    *response.status_mut() = status.map_err(|_| MalformedMessage)?;
    *response.headers_mut() = headers;
    Ok(response)
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

/// Reads headers up to the blank line after them, or to the end. Returns what follows.
///
/// # Errors
///
/// When a line is not a header, or there are more headers than any client sends.
pub(super) fn read_headers(text: &Bytes) -> Result<(HeaderMap, Bytes), MalformedMessage> {
    let mut headers = HeaderMap::new();
    let mut rest = text.clone();
    for _ in 0..=HEADERS_MAX {
        if rest.is_empty() {
            return Ok((headers, rest));
        }
        let (line, length) = first_line(&rest);
        if line.is_empty() {
            rest.advance(length);
            return Ok((headers, rest));
        }
        let mut fields = line.splitn(2, |byte| *byte == b':');
        let name = HeaderName::from_bytes(fields.next().unwrap_or_default());
        let value = fields.next().ok_or(MalformedMessage)?.trim_ascii();
        // The values share the memory of the message.
        let value = HeaderValue::from_maybe_shared(rest.slice_ref(value));
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(MalformedMessage);
        };
        headers.append(name, value);
        rest.advance(length);
    }
    Err(MalformedMessage)
}

/// The first line without its end, and its length with it.
pub(super) fn first_line(text: &[u8]) -> (&[u8], usize) {
    let newline = memchr::memchr(b'\n', text);
    let (line, _) = newline
        .and_then(|newline| text.split_at_checked(newline + 1))
        .unwrap_or((text, &[]));
    (without_line_end(line), line.len())
}

/// The bytes without one line end after them.
pub(super) fn without_line_end(bytes: &[u8]) -> &[u8] {
    match bytes.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => bytes,
    }
}

fn read(text: &Bytes) -> Result<(&str, HeaderMap, Bytes), MalformedMessage> {
    let start = text.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let start = start.unwrap_or(text.len());
    let (line, length) = first_line(text.get(start..).unwrap_or_default());
    let line = std::str::from_utf8(line).map_err(|_| MalformedMessage)?;
    let (headers, mut body) = read_headers(&text.slice(start + length..))?;
    // Some clients send another line end after a body, or instead of one, which JSON permits.
    let end = body.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    body.truncate(end.map_or(0, |end| end + 1));
    Ok((line.trim_end(), headers, body))
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

#[cfg(test)]
mod tests {
    use http::header;
    use proptest::prelude::*;

    use super::*;

    fn request(text: &str) -> Result<RequestText, MalformedMessage> {
        read_request(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn reads_requests_with_every_line_end_and_case() {
        for text in [
            "PUT http://host/acct/people HTTP/1.1\r\nIf-Match: *\r\nACCEPT:a/b\r\n\r\n{\"a\": 1}\r\n\r\n",
            "PUT http://host/acct/people HTTP/1.1\nif-match:   *  \naccept: a/b\n\n{\"a\": 1}",
            "\r\n\nPUT http://host/acct/people HTTP/1.1  \r\nif-match: *\naccept: a/b\n\r\n{\"a\": 1}\n",
        ] {
            let request = request(text).unwrap();
            assert_eq!(request.method, Method::PUT);
            assert_eq!(request.target, "http://host/acct/people");
            assert_eq!(request.headers.len(), 2);
            assert_eq!(request.headers["if-match"], "*");
            assert_eq!(request.headers["accept"], "a/b");
            assert_eq!(request.body, "{\"a\": 1}");
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
            let request = request(text).unwrap();
            assert_eq!((&*request.target, request.body.len()), ("/people", 0));
        }
    }

    #[test]
    fn a_target_may_hold_spaces() {
        let request = request("GET /people(PartitionKey='a b', RowKey='ü HTTP/1.1') HTTP/1.1");
        assert_eq!(
            request.unwrap().target,
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
            assert!(read_response(&Bytes::from(text)).is_err(), "{text}");
        }
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
            let read = read_request(&Bytes::from(text)).unwrap();
            prop_assert_eq!((read.method, read.target), (request.method().clone(), path));
            prop_assert_eq!((&read.headers, read.body), (request.headers(), Bytes::from(body)));
        }

        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>, line in "(HTTP/1.1 [0-9]{0,4}|GET) [ -~\r\n]{0,60}") {
            for text in [Bytes::from(bytes), Bytes::from(line)] {
                let _ = (read_request(&text), read_response(&text));
            }
        }
    }
}
