//! HTTP/1.1 messages as bytes: as much of the grammar as it takes to pass whole ones on.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A request or a response, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Bytes,
    head_bytes: usize,
}

impl Message {
    fn head(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.head_bytes]).unwrap_or_default()
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
    }

    /// A word of the first line: method and target of a request, or version and status of a
    /// response.
    pub(crate) fn word(&self, index: usize) -> &str {
        let line = self.head().lines().next().unwrap_or_default();
        line.split(' ').nth(index).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> u16 {
        self.word(1).parse().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head(), name)
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .next()
}

/// Reads one message. What follows it stays in the buffer. `None` at the end of the connection.
pub(crate) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Message>> {
    let head_bytes = loop {
        let end = buffer.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
        if stream.read_buf(buffer).await? == 0 {
            let is_end = buffer.is_empty();
            return if is_end {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
    };
    let head = std::str::from_utf8(&buffer[..head_bytes]).map_err(io::Error::other)?;
    let has_body = !["HTTP/1.1 204", "HTTP/1.1 304"]
        .iter()
        .any(|line| head.starts_with(line));
    let is_chunked = has_body && header(head, "transfer-encoding").is_some();
    let length = header(head, "content-length").and_then(|length| length.parse::<usize>().ok());
    let length = length.filter(|_| has_body).unwrap_or_default();
    let end = loop {
        let body = &buffer[head_bytes..];
        let end = if is_chunked {
            end_of_chunks(body)
        } else {
            Some(length)
        };
        if let Some(end) = end.filter(|end| body.len() >= *end) {
            break head_bytes + end;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let rest = buffer.split_off(end);
    Ok(Some(Message {
        bytes: std::mem::replace(buffer, rest).into(),
        head_bytes,
    }))
}

/// Where a chunked body without trailers ends.
fn end_of_chunks(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = body[at..].windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&body[at..at + line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?, 16).ok()?;
        at += line + 2 + size + 2;
        if at > body.len() {
            return None;
        }
        if size == 0 {
            return Some(at);
        }
    }
}
