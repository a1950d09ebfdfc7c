//! Reads the first head of a connection into a buffer that grows with it.
//!
//! hyper and its buffers take 32 KiB for a connection. A client that has not sent a complete head
//! yet must not occupy them: its bytes are collected here, and hyper starts when there is a head to
//! parse. Of the attacks in `tests/hostile/attack`, `halfheads` and `silent` show the need: 5,000
//! connections with half a head leave 33 MiB behind, and 163 MiB without this module.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::timeout_stream::HEAD_READ_BYTES_MAX;

/// Reads until hyper can parse the bytes or reject them. `None` if the client closed the connection
/// without a byte.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<Vec<u8>>> {
    let mut part = [0; PART_BYTES];
    let mut head = Vec::new();
    while !is_complete(&head) {
        let read = stream.read(&mut part).await?;
        if read == 0 {
            // hyper rejects an incomplete head.
            break;
        }
        head.extend_from_slice(part.get(..read).unwrap_or_default());
    }
    Ok((!head.is_empty()).then_some(head))
}

/// Returns true if there is no reason to wait for more: the head is complete, too long to be
/// collected here, or not of HTTP/1.
fn is_complete(head: &[u8]) -> bool {
    let Some(first) = head.first() else {
        return false;
    };
    let is_http = first.is_ascii_uppercase()
        && match head.split(|byte| *byte == b'\n').next() {
            Some(line) if line.len() < head.len() => {
                let line = line.trim_ascii_end();
                line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0")
            }
            _ => true,
        };
    let has_end = |end: &[u8]| head.windows(end.len()).any(|bytes| bytes == end);
    !is_http || head.len() >= HEAD_READ_BYTES_MAX || has_end(b"\r\n\r\n") || has_end(b"\n\n")
}

/// The number of bytes that are read at a time.
const PART_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_complete_when_hyper_can_parse_or_reject_it() {
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_READ_BYTES_MAX));
        for (head, expected) in [
            ("", false),
            ("G", false),
            ("GET / HTTP/1.1", false),
            ("GET / HTTP/1.1\r\n", false),
            ("GET / HTTP/1.1\r\nA: b\r\n", false),
            ("GET / HTTP/1.1\r\nA: b\r\n\r\n", true),
            ("GET / HTTP/1.0\nA: b\n\n", true),
            ("GET / HTTP/1.1\r\n\r\nbody", true),
            ("\u{16}\u{3}\u{1}", true),
            ("get", true),
            ("GET /\r\n", true),
            (&long, true),
        ] {
            assert_eq!(is_complete(head.as_bytes()), expected, "{head:.40?}");
        }
    }

    #[tokio::test]
    async fn the_head_that_was_read_is_returned_when_the_client_closes() {
        for (sent, expected) in [("", None), ("GET /", Some("GET /"))] {
            let head = read(&mut sent.as_bytes()).await.unwrap();
            assert_eq!(head.as_deref(), expected.map(str::as_bytes));
        }
    }
}
