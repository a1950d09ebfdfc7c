//! A keep-alive connection that sends bytes and reads one answer to them. Knows as much of HTTP/1.1
//! as that takes.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// The bytes of the answer that were received.
    buffer: Vec<u8>,
}

/// Where the parts of an answer are in the bytes that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// The status.
    pub(crate) status: u16,
    /// The lines of the head.
    pub(crate) head: &'a [u8],
    /// The body as it travelled: in chunks, where the head says so.
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (status, head_bytes, framing) = loop {
            self.read().await?;
            if let Some(head) = parse_head(&self.buffer)? {
                break head;
            }
        };
        match framing {
            Framing::Length(length) => {
                while self.buffer.len() < head_bytes + length {
                    self.read().await?;
                }
            }
            Framing::Chunks => {
                let mut place = head_bytes;
                loop {
                    match after_chunk(&self.buffer, place)? {
                        Chunk::Last => break,
                        Chunk::Until(end) => place = end,
                        Chunk::Unfinished => self.read().await?,
                    }
                }
            }
        }
        let (head, body) = self.buffer.split_at(head_bytes);
        Ok(Answer { status, head, body })
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// How an answer says where its body ends.
#[derive(Clone, Copy)]
enum Framing {
    Chunks,
    Length(usize),
}

/// Status, length and framing; `None` while the head is not whole.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(u16, usize, Framing)>> {
    let Some(end) = find(bytes, b"\r\n\r\n", 0) else {
        return Ok(None);
    };
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP");
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| malformed())?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status: u16 = status
        .and_then(|status| status.parse().ok())
        .ok_or_else(malformed)?;
    let mut framing = (status == 204).then_some(Framing::Length(0));
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            framing = Some(Framing::Length(
                value.trim().parse().map_err(|_| malformed())?,
            ));
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Some(Framing::Chunks);
        }
    }
    Ok(Some((status, end + 4, framing.ok_or_else(malformed)?)))
}

enum Chunk {
    Last,
    Unfinished,
    Until(usize),
}

/// Where the chunk ends that starts at `place`.
fn after_chunk(bytes: &[u8], place: usize) -> io::Result<Chunk> {
    let Some(end) = find(bytes, b"\r\n", place) else {
        return Ok(Chunk::Unfinished);
    };
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the chunks are none");
    let length = std::str::from_utf8(&bytes[place..end]).map_err(|_| malformed())?;
    let length = usize::from_str_radix(length.trim(), 16).map_err(|_| malformed())?;
    let end = end + 2 + length + 2;
    Ok(match (bytes.len() >= end, length) {
        (false, _) => Chunk::Unfinished,
        (true, 0) => Chunk::Last,
        (true, _) => Chunk::Until(end),
    })
}

fn find(bytes: &[u8], text: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let place = rest.windows(text.len()).position(|window| window == text);
    place.map(|place| from + place)
}
