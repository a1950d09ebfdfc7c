//! hyper on one side, `Request<Bytes>` on the other: one connection from its first byte to its last.
//!
//! This module enforces the limits on heads, bodies and waiting, and ensures that a response arrives before its connection closes.
//! It knows neither tables nor accounts: the [`Handler`] processes the requests. `server/mod.rs` accepts connections and limits
//! their number.

mod body;
mod first_head;
mod idle;
mod paced;
mod progress;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
pub(crate) mod tls_identity;

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tablesdk_protocol::{ErrorCode, ServiceError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) use body::exceeds_limit;

#[cfg(feature = "tls")]
use crate::http::tls_identity::TlsIdentity;
use crate::request::connection::{Encrypted, Peer};
use crate::request::log;
use crate::request::memory::{MemoryBudgets, RequestMemory, Reservation, SMALL_BYTES_MAX};
use crate::service::{Admitted, Service};
use body::{Received, Reply};
use idle::IdleList;
use paced::{HEAD_WAIT_MAX, Paced};
use progress::Progress;

/// What answers requests: [`Service`], or in the tests below something smaller that can be made to wait.
pub(crate) trait Handler: Send + Sync + 'static {
    /// What is kept of a head while its body comes.
    type Admitted: Send;

    /// Decides whether the body of a request is worth reading. The head's URI is in origin form, and it has a `Host`.
    fn admit(&self, head: Parts) -> Result<Self::Admitted, Box<Response<Bytes>>>;

    /// Answers a request. Dropped unfinished when the connection breaks.
    fn answer(
        &self,
        admitted: Self::Admitted,
        body: Bytes,
    ) -> impl Future<Output = Response<Bytes>> + Send;

    /// Answers a request whose body never became whole.
    fn refuse(&self, admitted: Self::Admitted, error: &ServiceError) -> Response<Bytes>;

    /// Answers a request whose head is no good.
    fn refuse_head(&self, head: &Parts, error: &ServiceError) -> Response<Bytes>;

    /// Answers what has no head that could be read.
    fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes>;
}

impl Handler for Service {
    type Admitted = Admitted;

    fn admit(&self, head: Parts) -> Result<Admitted, Box<Response<Bytes>>> {
        Self::admit(self, head)
    }

    fn answer(
        &self,
        admitted: Admitted,
        body: Bytes,
    ) -> impl Future<Output = Response<Bytes>> + Send {
        Self::respond(self, admitted, body)
    }

    fn refuse(&self, admitted: Admitted, error: &ServiceError) -> Response<Bytes> {
        Self::refuse(self, admitted, error)
    }

    fn refuse_head(&self, head: &Parts, error: &ServiceError) -> Response<Bytes> {
        Self::refuse_head(self, head, error)
    }

    fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes> {
        Self::refuse_unread(self, error)
    }
}

/// What the connections to one socket share.
#[derive(Debug)]
pub(crate) struct Edge<H> {
    handler: Arc<H>,
    /// Stands in for the `Host` that HTTP/1.0 does not require.
    host: HeaderValue,
    memory: Arc<MemoryBudgets>,
    idle: Arc<IdleList>,
    #[cfg(feature = "tls")]
    tls: Option<TlsIdentity>,
}

impl<H: Handler> Edge<H> {
    pub(crate) fn new(handler: Arc<H>, host: HeaderValue) -> Self {
        Self {
            handler,
            host,
            memory: Arc::default(),
            idle: Arc::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The same for connections that begin with a handshake.
    #[cfg(feature = "tls")]
    pub(crate) fn encrypted(self, tls: Option<TlsIdentity>) -> Self {
        Self { tls, ..self }
    }

    /// Closes the connection whose place can best be spared; waits for one that can.
    pub(crate) async fn evict(&self) {
        self.idle.evict().await;
    }

    /// Closes connections whose clients have stalled in the middle of a request or a response.
    pub(crate) fn cut_stalled(&self) {
        self.memory.cut_stalled();
    }
}

/// Serves one connection until either side ends it.
///
/// Once `stopping` is true, a request that has begun is still answered, and then the connection closes. `peer` goes with every
/// request.
pub(crate) async fn serve<S, H>(
    mut stream: S,
    peer: IpAddr,
    edge: Arc<Edge<H>>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    H: Handler,
{
    let progress = Arc::new(Progress::new(Arc::clone(&edge.idle)));
    let exchange = Exchange {
        #[cfg(feature = "tls")]
        is_encrypted: edge.tls.is_some(),
        #[cfg(not(feature = "tls"))]
        is_encrypted: false,
        edge,
        peer,
        progress: Arc::clone(&progress),
        left_unread: AtomicBool::new(false),
    };
    #[cfg(feature = "tls")]
    if let Some(tls) = exchange.edge.tls.as_ref().map(TlsIdentity::acceptor) {
        let first = before_requests(first_byte(&mut stream), &exchange, &mut stopping);
        let Some(Some(first)) = first.await else {
            return;
        };
        let accepted = Box::pin(tls::accept(tls, stream, first));
        let accepted = before_requests(accepted, &exchange, &mut stopping).await;
        let Some(mut stream) = accepted else { return };
        let head = first_head::read(&mut stream);
        if let Some(Some(head)) = before_requests(head, &exchange, &mut stopping).await {
            let stream = Paced::new(stream, head, progress);
            Box::pin(serve_requests(stream, exchange, stopping)).await;
        }
        return;
    }
    let head = first_head::read(&mut stream);
    if let Some(Some(head)) = before_requests(head, &exchange, &mut stopping).await {
        let stream = Paced::new(stream, head, progress);
        Box::pin(serve_requests(stream, exchange, stopping)).await;
    }
}

/// Waits for what comes before the first request; `None` where it does not come soon, or is not waited for.
async fn before_requests<T: Send, H: Handler>(
    read: impl Future<Output = io::Result<T>> + Send,
    exchange: &Exchange<H>,
    stopping: &mut watch::Receiver<bool>,
) -> Option<T> {
    let read = tokio::select! {
        read = timeout(HEAD_WAIT_MAX, read) => read,
        () = exchange.progress.is_evicted() => return None,
        () = stopped(stopping) => return None,
    };
    match read {
        Ok(Ok(read)) => return Some(read),
        Ok(Err(error)) => log::unreadable(exchange.peer, &error),
        Err(late) => log::unreadable(exchange.peer, &late),
    }
    None
}

/// Waits for the first byte of a handshake: until then, a connection costs no buffer. `None` where the client ended the connection.
#[cfg(feature = "tls")]
async fn first_byte<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<u8>> {
    let mut first = [0];
    let read = stream.read(&mut first).await?;
    let [first] = first;
    Ok((read > 0).then_some(first))
}

async fn serve_requests<S, H>(
    stream: Paced<S>,
    exchange: Exchange<H>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    H: Handler,
{
    let peer = exchange.peer;
    let progress = Arc::clone(&exchange.progress);
    let exchange = Arc::new(exchange);
    let service = service_fn(|request| {
        let exchange = Arc::clone(&exchange);
        async move { Ok::<_, Infallible>(exchange.answer(request).await) }
    });
    let mut connection = http1::Builder::new()
        // The stream has its own limits.
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        // A client may close its side once it has asked. And one that gives up does not cut a handler off halfway.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);

    let mut result = tokio::select! {
        result = &mut connection => Some(result),
        // What is authenticated is so before anything else has its turn: no request of an acceptable credential is in progress.
        () = progress.is_evicted() => if progress.is_known() { None } else { return },
        () = progress.is_cut() => return,
        () = stopped(&mut stopping) => None,
    };
    if result.is_none() {
        // This closes a connection that waits for a request. It does not close one with a request in flight, a response that is
        // being sent, or an incomplete head, whose rest may never arrive.
        Pin::new(&mut connection).graceful_shutdown();
        result = tokio::select! {
            biased;
            result = &mut connection => Some(result),
            () = progress.is_quiet() => None,
            () = progress.is_cut() => return,
        };
    }
    if let Some(Err(error)) = &result {
        log::unreadable(peer, error);
    }
    let refusal = match &result {
        Some(Err(error)) if error.is_parse() => {
            Some(exchange.edge.handler.refuse_unread(&unread(error)))
        }
        Some(Ok(())) if exchange.left_unread.load(Ordering::Relaxed) => None,
        _ => return,
    };
    // The answer is out and our side is closed, but the client may still be sending. Closing a socket with unread bytes resets
    // the connection, and a reset may overtake the answer: so take the bytes in for a while.
    progress.lingers();
    let (mut stream, lacks_answer) = connection.into_parts().io.into_inner().into_parts();
    let refusal = refusal.filter(|_| lacks_answer);
    let ending = async {
        if let Some(refusal) = refusal {
            // A client that does not read even this small response, or has disconnected, gets none.
            let _ = timeout(LINGER_MAX, stream.write_all(&closing(&refusal))).await;
        }
        discard(&mut stream).await;
    };
    tokio::select! {
        () = ending => {}
        () = progress.is_evicted() => {}
        () = stopped(&mut stopping) => {}
    }
}

/// What is wrong with a head that hyper cannot read.
fn unread(error: &hyper::Error) -> ServiceError {
    if error.is_parse_too_large() {
        let message =
            "The head of the request is longer than 64 KiB, or has more than 100 headers.";
        let error = ServiceError::new(ErrorCode::InvalidHeaderValue, message);
        return error.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let message = "The head of the request is not one of HTTP/1.1.";
    ServiceError::new(ErrorCode::InvalidInput, message)
}

/// An answer as bytes, the last ones of its connection.
fn closing(response: &Response<Bytes>) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let length = response.body().len();
    let line = format!(
        "HTTP/1.1 {} {reason}\r\nconnection: close\r\ncontent-length: {length}\r\n",
        status.as_str()
    );
    let mut bytes = line.into_bytes();
    for (name, value) in response.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(response.body());
    bytes
}

/// Resolves when the server stops, or is gone.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Gives a request the form that it has on the wire, where its head has no more than it may have: path and query as its URI,
/// the authority as its `Host`.
///
/// An authority in the URI wins over a `Host` beside it. `default_host` is for a request that has neither.
pub(crate) fn to_origin_form(
    head: &mut Parts,
    default_host: Option<&HeaderValue>,
) -> Result<(), ServiceError> {
    check_size(head)?;
    // CONNECT has an authority, too, but no scheme: it names no resource.
    if head.uri.scheme().is_some()
        && let Some(authority) = head.uri.authority()
    {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| ErrorCode::InvalidUri)?;
        head.headers.insert(header::HOST, host);
        let root = || PathAndQuery::from_static("/");
        let path_and_query = head.uri.path_and_query().cloned().unwrap_or_else(root);
        head.uri = Uri::from(path_and_query);
    }
    if !head.uri.path().starts_with('/') {
        // A CONNECT, or the `*` of OPTIONS.
        return Err(ErrorCode::InvalidUri.into());
    }
    match (
        head.headers.get_all(header::HOST).iter().count(),
        default_host,
    ) {
        (1, _) => Ok(()),
        (0, Some(host)) => {
            head.headers.insert(header::HOST, host.clone());
            Ok(())
        }
        (0, None) => Err(ErrorCode::Other("HostInformationNotPresent".to_owned()).into()),
        _ => Err(ErrorCode::InvalidHeaderValue.into()),
    }
}

/// Whether URL and headers are within their limits. They lie below those of hyper, which knows no codes.
// SERVICE: its front end has such limits, but they are not documented, and neither is what it answers.
fn check_size(head: &Parts) -> Result<(), ServiceError> {
    let url_bytes = head
        .uri
        .path_and_query()
        .map_or(0, |url| url.as_str().len());
    if url_bytes > URL_BYTES_MAX {
        let message = "The request URL is longer than 32 KiB.";
        let error = ServiceError::new(ErrorCode::InvalidUri, message);
        return Err(error.with_status(StatusCode::URI_TOO_LONG));
    }
    let host = head.headers.get(header::HOST).map_or(0, HeaderValue::len);
    let authority = head.uri.authority().map_or(0, |it| it.as_str().len());
    if host.max(authority) > HOST_BYTES_MAX {
        let message = "The host of the request is longer than a host name and a port.";
        return Err(ServiceError::new(ErrorCode::InvalidHeaderValue, message));
    }
    if header_bytes(&head.headers) > HEADER_BYTES_MAX {
        let message = "The headers of the request are longer than 32 KiB.";
        let error = ServiceError::new(ErrorCode::InvalidHeaderValue, message);
        return Err(error.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    if head.headers.len() > HEADERS_MAX {
        let message = "The request has more than 100 headers.";
        let error = ServiceError::new(ErrorCode::InvalidHeaderValue, message);
        return Err(error.with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
    }
    Ok(())
}

/// The length of the headers as lines.
fn header_bytes(headers: &HeaderMap) -> usize {
    let lines = headers.iter();
    let lengths = lines.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    lengths.sum()
}

/// What the requests of one connection have in common.
struct Exchange<H> {
    edge: Arc<Edge<H>>,
    peer: IpAddr,
    is_encrypted: bool,
    progress: Arc<Progress>,
    /// Whether a request was refused with part of its body unread. It is the connection's last.
    left_unread: AtomicBool,
}

impl<H: Handler> Exchange<H> {
    async fn answer(&self, request: Request<Incoming>) -> Response<Reply> {
        self.progress.began();
        let memory = RequestMemory::new(&self.edge.memory, self.peer);
        let (mut response, body_memory) = self.respond(request, &memory).await;
        // SERVICE: it says so, although RFC 9110 has no use for it.
        if response.status() == StatusCode::NO_CONTENT {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            *response.body_mut() = Bytes::new();
        }
        let bytes = response.body().len();
        // A write's response is covered by the memory of its body: it was done, so it must not fail for want of more.
        let reserved = memory.take_response(bytes).or(body_memory);
        let reserved = reserved.filter(|_| bytes > SMALL_BYTES_MAX);
        response.map(|bytes| Reply::new(bytes, reserved, Arc::clone(&self.progress)))
    }

    /// Looks at the body only once the head has passed. Returns the memory of the body, too.
    async fn respond(
        &self,
        request: Request<Incoming>,
        memory: &Arc<RequestMemory>,
    ) -> (Response<Bytes>, Option<Reservation>) {
        let handler = &*self.edge.handler;
        let (mut head, body) = request.into_parts();
        head.extensions.insert(Peer(self.peer));
        head.extensions.insert(Arc::clone(memory));
        if self.is_encrypted {
            head.extensions.insert(Encrypted);
        }
        let default_host = (head.version < Version::HTTP_11).then_some(&self.edge.host);
        if let Err(error) = to_origin_form(&mut head, default_host) {
            return (self.last(handler.refuse_head(&head, &error)), None);
        }
        let admitted = match handler.admit(head) {
            Ok(admitted) => admitted,
            Err(response) if body.is_end_stream() => return (*response, None),
            Err(response) => return (self.last(*response), None),
        };
        self.progress.became_known();
        match body::read(body, memory).await {
            Ok(Received { bytes, memory }) => (handler.answer(admitted, bytes).await, memory),
            Err(error) => (self.last(handler.refuse(admitted, &error)), None),
        }
    }

    /// An answer after which the connection closes, since part of the request may be unread.
    fn last(&self, mut response: Response<Bytes>) -> Response<Bytes> {
        self.left_unread.store(true, Ordering::Relaxed);
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        response
    }
}

/// Closes our side and reads until the other side closes, too, but not forever.
async fn discard<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    let mut buffer = vec![0; 16 * 1024];
    let _ = timeout(LINGER_MAX, async {
        // hyper leaves this to us after a CONNECT; otherwise it is done.
        let _ = stream.shutdown().await;
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    })
    .await;
}

/// The longest request line and headers together: hyper reads no more.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The longest path and query.
const URL_BYTES_MAX: usize = 32 * 1024;
/// The longest host: a name of 253 bytes and a port. Responses repeat it for each entity.
const HOST_BYTES_MAX: usize = 253 + ":65535".len();
/// The longest headers.
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// The most headers: hyper reads no more.
const HEADERS_MAX: usize = 100;
/// How long bytes of a refused request are taken in after its answer.
const LINGER_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
