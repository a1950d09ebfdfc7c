//! The framing of a batch: parts between the lines of a boundary, in and out.
//!
//! Lines are written with CR LF, and read with that or with a bare LF, even mixed. A body is
//! searched once for its boundaries, and what is between two of them is not looked at: text that
//! resembles a boundary, or anything else, is content. Knows no operations. See
//! <https://www.rfc-editor.org/rfc/rfc2046#section-5.1>.

use http::{HeaderName, header};
use memchr::memmem::Finder;

use super::http_message::{HeaderLine, first_line, read_headers, without_line_end};
use crate::types::header::{CONTENT_TRANSFER_ENCODING, spelling, text};

/// A part: the headers that mean something, and what follows the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'t> {
    /// All up to the content.
    head: &'t [u8],
    content_type: Option<&'t [u8]>,
    transfer_encoding: Option<&'t [u8]>,
    /// The bytes up to the next boundary.
    pub content: &'t [u8],
}

impl<'t> Part<'t> {
    fn read(bytes: &'t [u8], headers: &mut Vec<HeaderLine<'t>>) -> Result<Self, MultipartError> {
        let content = read_headers(bytes, headers).map_err(|_| MultipartError::Malformed)?;
        // The first of several counts.
        let value = |name| {
            let mut lines = headers.iter();
            lines.find(|line| line.is(&name)).map(|line| line.value)
        };
        Ok(Self {
            head: bytes.get(..bytes.len() - content.len()).unwrap_or_default(),
            content_type: value(header::CONTENT_TYPE),
            transfer_encoding: value(CONTENT_TRANSFER_ENCODING),
            content,
        })
    }

    /// The part of these bytes if it has the head of this one, as most parts of a body have the
    /// same.
    fn with_same_head(&self, bytes: &'t [u8]) -> Option<Self> {
        // Without content, the headers may end with the part, and not with a blank line.
        let content = bytes.strip_prefix(self.head);
        let content = content.filter(|_| !self.content.is_empty())?;
        Some(Self { content, ..*self })
    }

    /// The value of `Content-Type`, if it is text.
    pub fn content_type(&self) -> Option<&'t str> {
        self.content_type.and_then(text)
    }

    /// Returns true if the headers allow the part to be an HTTP message. The part need not have
    /// any.
    pub fn may_be_http(&self) -> bool {
        let is = |value: Option<&[u8]>, expected: &str| {
            value.is_none_or(|value| {
                let value = text(value).unwrap_or_default();
                let value = value.split(';').next().unwrap_or_default();
                value.trim().eq_ignore_ascii_case(expected)
            })
        };
        is(self.content_type, APPLICATION_HTTP) && is(self.transfer_encoding, BINARY)
    }
}

/// The boundary in a `Content-Type` such as `multipart/mixed; boundary=batch_1`.
///
/// # Errors
///
/// When it is another type, or names no boundary.
pub fn boundary(content_type: &str) -> Result<String, MultipartError> {
    let (media_type, mut parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !media_type.trim().eq_ignore_ascii_case(MULTIPART_MIXED) {
        return Err(MultipartError::OtherType);
    }
    while !parameters.is_empty() {
        let (name, rest) = parameters
            .split_once('=')
            .ok_or(MultipartError::Malformed)?;
        let rest = rest.trim_start();
        // A value in quotes may contain a semicolon, but no escape.
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (value, rest) = quoted.split_once('"').ok_or(MultipartError::Malformed)?;
                (value, rest.split_once(';').map_or("", |(_, rest)| rest))
            }
            None => rest.split_once(';').unwrap_or((rest, "")),
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            let boundary = value.trim();
            return match boundary.len() {
                1..=BOUNDARY_BYTES_MAX => Ok(boundary.to_owned()),
                _ => Err(MultipartError::Malformed),
            };
        }
        parameters = rest;
    }
    Err(MultipartError::Malformed)
}

/// The parts of a body. Content before the first boundary and after the last one is ignored.
///
/// # Errors
///
/// `TooManyParts` for more than `parts_max`, however the body ends; `Malformed` when the last
/// boundary is missing or a part has malformed headers.
pub fn parts<'t>(
    body: &'t [u8],
    boundary: &str,
    parts_max: usize,
) -> Result<Vec<Part<'t>>, MultipartError> {
    let (mut parts, mut headers) = (Vec::new(), Vec::new());
    // Where the part began that the next boundary ends.
    let mut start = None;
    for line in BoundaryLines::of(body, &["\n--", boundary].concat()) {
        if let Some(start) = start {
            if parts.len() == parts_max {
                return Err(MultipartError::TooManyParts);
            }
            // The line end before a boundary belongs to the boundary.
            let part = without_line_end(body.get(start..line.start).unwrap_or_default());
            let last = parts
                .last()
                .and_then(|last: &Part<'_>| last.with_same_head(part));
            parts.push(match last {
                Some(part) => part,
                None => Part::read(part, &mut headers)?,
            });
        }
        if line.is_last {
            return Ok(parts);
        }
        start = Some(line.end);
    }
    // Some clients end the last boundary like the others. Nothing follows it, then.
    match start.and_then(|start| body.get(start..)) {
        Some(rest) if rest.trim_ascii().is_empty() => Ok(parts),
        _ => Err(MultipartError::Malformed),
    }
}

/// Begins a part that is itself `multipart/mixed` with that boundary.
pub fn start_multipart(out: &mut Vec<u8>, boundary: &str, inner_boundary: &str) {
    let content_type = content_type(inner_boundary);
    start(out, boundary, &[(header::CONTENT_TYPE, &content_type)]);
}

/// Begins a part that is an HTTP message.
pub fn start_http(out: &mut Vec<u8>, boundary: &str) {
    let headers = [
        (header::CONTENT_TYPE, APPLICATION_HTTP),
        (CONTENT_TRANSFER_ENCODING, BINARY),
    ];
    start(out, boundary, &headers);
}

/// Ends the last part. The content of each must have ended its last line.
pub fn end(out: &mut Vec<u8>, boundary: &str) {
    push(out, &["--", boundary, "--\r\n"]);
}

/// The `Content-Type` of parts between lines of that boundary.
pub fn content_type(boundary: &str) -> String {
    format!("{MULTIPART_MIXED}; boundary={boundary}")
}

fn start(out: &mut Vec<u8>, boundary: &str, headers: &[(HeaderName, &str)]) {
    push(out, &["--", boundary, "\r\n"]);
    for (name, value) in headers {
        push(out, &[spelling(name), ": ", value, "\r\n"]);
    }
    push(out, &["\r\n"]);
}

fn push(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// A line that separates parts, and where it is in the body.
struct BoundaryLine {
    start: usize,
    /// Behind its line end.
    end: usize,
    /// No part follows.
    is_last: bool,
}

/// The boundaries of a body, in order.
struct BoundaryLines<'t> {
    body: &'t [u8],
    /// The end of a line, and the start of a boundary.
    needle: &'t [u8],
    /// Finds the start of that, which is short enough to be searched for with vectors.
    finder: Finder<'t>,
    /// Where the search goes on: at the start of the body, or at the line end before a line.
    position: usize,
}

impl<'t> BoundaryLines<'t> {
    fn of(body: &'t [u8], boundary: &'t str) -> Self {
        let needle = boundary.as_bytes();
        Self {
            body,
            needle,
            finder: Finder::new(needle.get(..NEEDLE_BYTES).unwrap_or(needle)),
            position: 0,
        }
    }

    /// The start of the next line that begins as a boundary does, and what follows that beginning.
    fn next_start(&self) -> Option<(usize, &'t [u8])> {
        let rest = self.body.get(self.position..)?;
        let at_start = self
            .needle
            .strip_prefix(b"\n")
            .filter(|_| self.position == 0);
        if let Some(after) = at_start.and_then(|start| rest.strip_prefix(start)) {
            return Some((0, after));
        }
        // No two matches overlap: what is searched for has one line end, its first byte.
        for found in self.finder.find_iter(rest) {
            if let Some(after) = rest.get(found..)?.strip_prefix(self.needle) {
                return Some((self.position + found + 1, after));
            }
        }
        None
    }
}

impl Iterator for BoundaryLines<'_> {
    type Item = BoundaryLine;

    fn next(&mut self) -> Option<BoundaryLine> {
        loop {
            let (start, after) = self.next_start()?;
            let (line, rest) = first_line(after);
            let end = self.body.len() - rest.len();
            self.position = end.saturating_sub(1);
            // Blanks may follow.
            let is_last = match line.trim_ascii_end() {
                b"" => false,
                b"--" => true,
                // Another line, which begins in the same way.
                _ => continue,
            };
            return Some(BoundaryLine {
                start,
                end,
                is_last,
            });
        }
    }
}

/// Why a body could not be taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "each has an answer of its own")]
pub enum MultipartError {
    /// Not the framing of multipart.
    #[error("not the framing of multipart/mixed")]
    Malformed,
    /// The type is not multipart at all.
    #[error("not of type multipart/mixed")]
    OtherType,
    /// More parts than allowed.
    #[error("too many parts")]
    TooManyParts,
}

/// `Content-Type` of a part that holds one operation.
pub const APPLICATION_HTTP: &str = "application/http";

/// `Content-Transfer-Encoding` of such a part.
const BINARY: &str = "binary";

const MULTIPART_MIXED: &str = "multipart/mixed";

/// As long as the text may be that is searched for with vectors.
const NEEDLE_BYTES: usize = 32;

/// The longest boundary. RFC 2046 has 70; clients use about 50.
const BOUNDARY_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contents(body: &str) -> Result<Vec<String>, MultipartError> {
        let parts = parts(body.as_bytes(), "b_1", 3)?;
        let text = |part: Part<'_>| String::from_utf8(part.content.to_vec()).unwrap();
        Ok(parts.into_iter().map(text).collect())
    }

    /// The same as `parts`, without a search.
    fn parts_by_lines<'t>(
        body: &'t [u8],
        boundary: &str,
        parts_max: usize,
    ) -> Result<Vec<Part<'t>>, MultipartError> {
        let (mut rest, mut parts, mut start) = (body, Vec::new(), None);
        while !rest.is_empty() {
            let line_start = body.len() - rest.len();
            let line;
            (line, rest) = first_line(rest);
            let boundary = ["--", boundary].concat();
            let end = line.strip_prefix(boundary.as_bytes());
            let end @ (b"" | b"--") = end.unwrap_or(b"x").trim_ascii_end() else {
                continue;
            };
            if let Some(start) = start {
                if parts.len() == parts_max {
                    return Err(MultipartError::TooManyParts);
                }
                let part = without_line_end(&body[start..line_start]);
                parts.push(Part::read(part, &mut Vec::new())?);
            }
            if end == b"--" {
                return Ok(parts);
            }
            start = Some(body.len() - rest.len());
        }
        match start {
            Some(start) if body[start..].trim_ascii().is_empty() => Ok(parts),
            _ => Err(MultipartError::Malformed),
        }
    }

    #[test]
    fn finds_the_boundary_in_every_spelling() {
        for content_type in [
            "multipart/mixed; boundary=batch_1",
            "multipart/mixed;boundary=\"batch_1\"",
            "Multipart/Mixed; charset=utf-8; BOUNDARY=batch_1",
            "multipart/mixed ; boundary = batch_1 ; charset=utf-8",
            "multipart/mixed; type=\"a; boundary=b\"; boundary=\" batch_1 \"",
        ] {
            assert_eq!(
                boundary(content_type),
                Ok("batch_1".to_owned()),
                "{content_type}"
            );
        }
        let long = format!("multipart/mixed; boundary={}", "x".repeat(201));
        for (content_type, error) in [
            ("", MultipartError::OtherType),
            ("application/json", MultipartError::OtherType),
            ("multipart/form-data; boundary=x", MultipartError::OtherType),
            ("multipart/mixed", MultipartError::Malformed),
            ("multipart/mixed;", MultipartError::Malformed),
            ("multipart/mixed; boundary", MultipartError::Malformed),
            ("multipart/mixed; boundary=", MultipartError::Malformed),
            ("multipart/mixed; boundary=\"x", MultipartError::Malformed),
            ("multipart/mixed; charset=utf-8", MultipartError::Malformed),
            (&long, MultipartError::Malformed),
        ] {
            assert_eq!(boundary(content_type), Err(error), "{content_type}");
        }
    }

    #[test]
    fn reads_every_line_end_and_every_last_boundary() {
        for body in [
            "--b_1\r\n\r\none\r\n--b_1\r\n\r\ntwo\r\n\r\n--b_1--\r\n",
            "--b_1\n\none\n--b_1\n\ntwo\r\n\r\n--b_1--",
            "--b_1  \r\n\none\n--b_1\t\n\r\ntwo\r\n\n--b_1-- \n",
            "--b_1\r\n\r\none\r\n--b_1\r\n\r\ntwo\r\n\r\n--b_1\r\n \r\n",
            "before\r\n\r\n --b_1\r\n--b_1\r\n\r\none\r\n--b_1\r\n\r\ntwo\r\n\r\n--b_1--\r\nafter\r\n--b_1\r\n",
        ] {
            let parts = contents(body).unwrap();
            assert_eq!(parts[0], "one", "{body}");
            assert_eq!(parts[1].trim_end(), "two", "{body}");
            assert_eq!(parts.len(), 2, "{body}");
        }
    }

    #[test]
    fn similar_lines_are_not_boundaries() {
        let content =
            "--b_\r\n--b_10\r\n---b_1\r\n --b_1\r\nx--b_1\r\n--b_1-\r\n--b_1--x\r\n--B_1\r\n%7D}{";
        let body = format!("--b_1\r\n\r\n{content}\r\n--b_1--\r\n");
        assert_eq!(contents(&body), Ok(vec![content.to_owned()]));
    }

    #[test]
    fn a_part_may_be_without_headers_or_content() {
        assert_eq!(contents("--b_1--"), Ok(vec![]));
        assert_eq!(contents("--b_1\n--b_1--"), Ok(vec![String::new()]));
        assert_eq!(contents("--b_1\n\n--b_1--"), Ok(vec![String::new()]));
        let body = b"--b_1\r\ncontent-TYPE:  a/b \r\n--b_1--";
        let parts = parts(body, "b_1", 1).unwrap();
        assert_eq!(parts[0].content_type(), Some("a/b"));
        assert!(parts[0].content.is_empty());
    }

    #[test]
    fn malformed_framing_is_refused() {
        for body in [
            "",
            "\r\n",
            "{}",
            "--b_1",
            "--b_2--",
            "--b_1\r\n\r\none",
            "--b_1\r\n\r\none\r\n--b_1\r\n\r\ntwo",
            "--b_1\r\nno header\r\n\r\none\r\n--b_1--",
        ] {
            let expected = if body == "--b_1" {
                // An end like the other boundaries, behind no parts.
                Ok(vec![])
            } else {
                Err(MultipartError::Malformed)
            };
            assert_eq!(contents(body), expected, "{body}");
        }
        let four = "--b_1\n\n1\n--b_1\n\n2\n--b_1\n\n3\n--b_1\n\n4\n--b_1--";
        assert_eq!(contents(four), Err(MultipartError::TooManyParts));
        assert_eq!(
            contents(&four.replace("--b_1\n\n4\n", "")).unwrap().len(),
            3
        );
    }

    #[test]
    fn a_body_of_boundaries_takes_linear_time() {
        // 512 KiB each. A reader that looks twice at what is behind a boundary would not come to an
        // end here.
        for text in [
            "\n",
            "--b_1",
            "--b_1\n\n",
            "--b_",
            "-",
            "--b_1 ",
            "a:b\r\n",
            "--b_1\na:b\n",
            "\n--b_",
            "\n--b_1x",
            "\n--b_1--x\n",
        ] {
            let body = text.repeat(512 * 1024 / text.len());
            let _ = parts(body.as_bytes(), "b_1", 100);
            let _ = parts(body.as_bytes(), "b_1", usize::MAX);
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_writes(
            // Without digits, so that no content has the line of the boundary by accident.
            contents in prop::collection::vec("(--b_|--b_11x|[ -/:-~]|\r?\n|[{}%ü]){0,30}x", 0..4),
        ) {
            let mut body = Vec::new();
            for content in &contents {
                start_http(&mut body, "b_1");
                body.extend_from_slice(content.as_bytes());
                body.extend_from_slice(b"\r\n");
            }
            end(&mut body, "b_1");
            let parts = parts(&body, "b_1", 4).unwrap();
            prop_assert_eq!(parts.len(), contents.len());
            for (part, content) in parts.iter().zip(&contents) {
                prop_assert_eq!(part.content, content.as_bytes());
                prop_assert!(part.may_be_http());
                prop_assert_eq!(part.content_type(), Some(APPLICATION_HTTP));
            }
        }

        #[test]
        fn parts_are_those_that_a_search_line_by_line_finds(text in "(--b|--b--|--bc|-|\r\n|\n|\n|\r|a:1|[ x]|\n--b\na:1\n(\n(x|b)?)?){0,60}", parts_max in 0..5_usize) {
            prop_assert_eq!(parts(text.as_bytes(), "b", parts_max), parts_by_lines(text.as_bytes(), "b", parts_max));
            // Longer than what is searched for.
            let (long, text) = ("b".repeat(40), text.replace('b', &"b".repeat(40)).replace('x', &"b".repeat(33)));
            prop_assert_eq!(parts(text.as_bytes(), &long, parts_max), parts_by_lines(text.as_bytes(), &long, parts_max));
        }

        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>, text in "(--b|--b--|\r\n|\n|\r|[a: -]){0,40}", value in "[ -~]{0,40}") {
            for body in [bytes, text.into_bytes()] {
                let _ = parts(&body, "b", 3);
            }
            let _ = boundary(&format!("multipart/mixed;{value}"));
        }
    }
}
