//! A server in front of another one that injects faults below HTTP: it resets connections,
//! truncates and slows down responses, or responds with something that is not HTTP. Every
//! connection carries one request.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, header};
use tablesdk::transport::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A fault of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tear {
    /// Nothing.
    Pass,
    /// It is reset before anything is read.
    ResetBefore,
    /// It is reset after some bytes of the request.
    ResetDuring,
    /// It is closed after some bytes of the request.
    CloseDuring,
    /// It is closed once the request was carried out.
    CloseAfter,
    /// The request is carried out, and the answer ends in the middle of its head.
    CutHead,
    /// The request is carried out, and the answer is in chunks, the last of which never comes.
    CutChunks,
    /// The request is carried out, and the answer stops in the middle, with the connection open.
    StallBody,
    /// The request is carried out, and the answer comes byte by byte.
    Trickle,
    /// The request is read but not forwarded, and this is the response.
    Text(&'static str),
    /// The request is forwarded, and this is the response.
    CarryOutAndText(&'static str),
}

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct TornServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    plan: Vec<Tear>,
    connections: usize,
}

impl TornServer {
    /// A server on a port of its own, which passes requests on to `inner`.
    pub async fn start(inner: impl Transport + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::<Mutex<State>>::default();
        let inner = Arc::new(inner);
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tear = {
                    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    state.connections += 1;
                    if state.plan.is_empty() {
                        Tear::Pass
                    } else {
                        state.plan.remove(0)
                    }
                };
                let inner = Arc::clone(&inner);
                // Failed connections are expected.
                tokio::spawn(async move { serve(stream, tear, &*inner).await.ok() });
            }
        });
        Ok(Self {
            address,
            state,
            accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Plans what happens to the next connections, one after another.
    pub fn plan(&self, tears: impl IntoIterator<Item = Tear>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.plan = tears.into_iter().collect();
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.connections
    }
}

impl Drop for TornServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, tear: Tear, inner: &impl Transport) -> io::Result<()> {
    match tear {
        Tear::ResetBefore => return reset(&stream),
        Tear::ResetDuring | Tear::CloseDuring => {
            stream.read_exact(&mut [0; 10]).await?;
            if tear == Tear::ResetDuring {
                return reset(&stream);
            }
            return stream.shutdown().await;
        }
        _ => {}
    }
    let request = read(&mut stream).await?;
    if let Tear::Text(text) = tear {
        stream.write_all(text.as_bytes()).await?;
        return stream.shutdown().await;
    }
    let answer = inner.send(request).await.map_err(io::Error::other)?;
    let bytes = print(&answer, tear == Tear::CutChunks);
    match tear {
        Tear::CloseAfter => {}
        Tear::CutHead => {
            stream
                .write_all(bytes.get(..20).unwrap_or_default())
                .await?;
        }
        Tear::CutChunks => {
            stream
                .write_all(bytes.get(..bytes.len() - 5).unwrap_or_default())
                .await?;
        }
        Tear::StallBody => {
            stream
                .write_all(bytes.get(..bytes.len() - 1).unwrap_or_default())
                .await?;
            // Until the client has had enough.
            stream.read_to_end(&mut Vec::new()).await?;
        }
        Tear::Trickle => {
            for byte in &bytes {
                stream.write_all(std::slice::from_ref(byte)).await?;
                stream.flush().await?;
                tokio::task::yield_now().await;
            }
        }
        Tear::CarryOutAndText(text) => stream.write_all(text.as_bytes()).await?,
        _ => stream.write_all(&bytes).await?,
    }
    stream.shutdown().await
}

/// Makes the socket reset the connection when it is dropped, instead of closing it.
fn reset(stream: &TcpStream) -> io::Result<()> {
    stream.set_zero_linger()
}

async fn read(stream: &mut TcpStream) -> io::Result<Request<Bytes>> {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let body = bytes.split_off(head);
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let mut request = Request::builder()
        .method(words.next().unwrap_or_default())
        .uri(words.next().unwrap_or_default());
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        request = request.header(name, value.trim());
    }
    let mut body = body;
    let request = request.body(Bytes::new()).map_err(io::Error::other)?;
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .unwrap_or(0);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(request.map(|_| body.into()))
}

/// The response as bytes, with its length or as one chunk.
fn print(answer: &Response<Bytes>, chunked: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {}\r\nConnection: close\r\n", answer.status());
    for (name, value) in answer.headers() {
        if name != header::CONTENT_LENGTH && name != header::TRANSFER_ENCODING {
            head += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
    }
    let body = answer.body();
    let mut bytes = head.into_bytes();
    if chunked {
        bytes.extend_from_slice(
            format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len()).as_bytes(),
        );
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(b"\r\n0\r\n\r\n");
    } else {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
    }
    bytes
}
