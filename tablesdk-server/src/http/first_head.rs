//! The first head of a connection, in a buffer that grows with it.
//!
//! hyper has buffers of 16 KiB for a connection, in addition to its state. A client that has not sent a complete head yet should
//! use less memory: its bytes are collected here, and hyper starts when there is something to parse.
//! With its state, hyper takes 32 KiB per connection; an incomplete head that is collected here takes 5 KiB.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads until hyper can say something about what came: a whole head, what is none, or a long one. `None` where the client ended
/// the connection without a byte.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<Vec<u8>>> {
    // Until a byte comes, a connection costs no buffer.
    let mut part = [0; PART_BYTES];
    let mut head = Vec::new();
    while !is_complete(&head) {
        let read = stream.read(&mut part).await?;
        if read == 0 {
            // hyper knows what to make of half a head.
            break;
        }
        head.extend_from_slice(part.get(..read).unwrap_or_default());
    }
    Ok((!head.is_empty()).then_some(head))
}

/// Whether waiting for more would not help: the head is whole, longer than what is collected here, or not one of HTTP/1.
fn is_complete(head: &[u8]) -> bool {
    let Some(first) = head.first() else {
        return false;
    };
    let is_head = first.is_ascii_uppercase()
        && match head.split(|byte| *byte == b'\n').next() {
            Some(line) if line.len() < head.len() => {
                line.trim_ascii_end().ends_with(b" HTTP/1.1")
                    || line.trim_ascii_end().ends_with(b" HTTP/1.0")
            }
            _ => true,
        };
    let has_end = |end: &[u8]| head.windows(end.len()).any(|bytes| bytes == end);
    !is_head || head.len() >= BYTES_MAX || has_end(b"\r\n\r\n") || has_end(b"\n\n")
}

/// How much is read at a time.
const PART_BYTES: usize = 512;
/// How much is collected: one byte less than hyper's first buffer.
pub(super) const BYTES_MAX: usize = 8191;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_parsing_is_told_from_what_may_become_so() {
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(BYTES_MAX));
        for (text, expected) in [
            ("", false),
            ("G", false),
            ("GET / HTTP/1.1", false),
            ("GET / HTTP/1.1\r\nHost: h\r\n", false),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", true),
            ("PUT / HTTP/1.0\nHost: h\n\nbody", true),
            ("GET /\r\n", true),
            ("GET / HTTP/2.0\r\n", true),
            ("\u{16}\u{3}\u{1}", true),
            ("\r\n", true),
            (&long, true),
        ] {
            assert_eq!(is_complete(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_head_may_come_in_any_parts() {
        let head = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        for cut in 1..head.len() {
            let (first, rest) = head.split_at(cut);
            let mut stream = first.as_bytes().chain(rest.as_bytes());
            let read = read(&mut stream).await.unwrap();
            assert_eq!(read.unwrap(), head.as_bytes(), "{cut}");
        }
        assert!(read(&mut &b""[..]).await.unwrap().is_none());
        assert_eq!(read(&mut &b"GE"[..]).await.unwrap().unwrap(), b"GE");
    }
}
