//! A connection for requests that may have no end.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::request::{Framing, Request};

pub(crate) struct Connection(BufReader<TcpStream>);

/// The response of the server.
pub(crate) struct Response {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stays_open: bool,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    /// Sends a request and reads its response, or all responses if the number of requests in it is
    /// unknown.
    pub(crate) async fn exchange(&mut self, request: &Request) -> Response {
        let bytes = &request.bytes;
        let exchange = async {
            let (reader, mut writer) = tokio::io::split(&mut self.0);
            let write = async {
                // The server may have closed its side by now.
                let written = writer.write_all(bytes).await;
                if request.framing == Framing::Unknown {
                    let _ = writer.shutdown().await;
                }
                written
            };
            let read = read(reader, request);
            let (_, response) = tokio::join!(write, read);
            response
        };
        let response = timeout(HANG, exchange).await;
        response.unwrap_or_else(|_| panic!("there is no response to {request}"))
    }
}

async fn read(mut reader: impl tokio::io::AsyncRead + Unpin, request: &Request) -> Response {
    let (mut bytes, mut stays_open) = (Vec::new(), false);
    if request.framing == Framing::Unknown {
        // A reset ends it, too.
        let _ = reader.read_to_end(&mut bytes).await;
        return Response { bytes, stays_open };
    }
    while !bytes.ends_with(b"\r\n\r\n") {
        let Ok(byte) = reader.read_u8().await else {
            return Response { bytes, stays_open };
        };
        bytes.push(byte);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length = value("content-length: ").map_or(0, |length| length.parse().unwrap());
    stays_open = value("connection: close").is_none();
    if request.framing != Framing::NoBody {
        let mut body = vec![0; length];
        stays_open &= reader.read_exact(&mut body).await.is_ok();
        bytes.extend(body);
    }
    Response { bytes, stays_open }
}

/// The server gives up sooner on everything that these requests do.
const HANG: Duration = Duration::from_secs(60);
