//! hyper on one side, `Request<Bytes>` on the other: one connection from its first byte to its
//! last.
//!
//! hyper alone, without a web framework: paths are OData with keys in quotes, and not segments that
//! a router could match.
//!
//! This module enforces the limits on heads, bodies and waiting, and ensures that a response
//! arrives before its connection closes. It knows neither tables nor accounts: the [`Handler`]
//! processes the requests. `server/mod.rs` accepts connections and limits their number.

mod body;
mod connection_state;
#[cfg_attr(not(feature = "network"), path = "first_head_unlimited.rs")]
mod first_head;
#[cfg_attr(not(feature = "network"), path = "idle_unlimited.rs")]
mod idle;
mod origin_form;
mod reset;
mod timeout_stream;
#[cfg(feature = "tls")]
pub(crate) mod tls_identity;

use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tablesdk_protocol::{ErrorCode, ServiceError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) use body::exceeds_limit;
pub(crate) use origin_form::to_origin_form;

#[cfg(feature = "tls")]
use crate::http::tls_identity::TlsIdentity;
use crate::request::connection::{Broken, Connection};
use crate::request::context::Reason;
use crate::request::handler::Handler;
use crate::request::log;
use crate::request::memory::{MemoryBudgets, RequestMemory, Reservation, SMALL_BYTES_MAX};
use body::{Received, ResponseBody};
use connection_state::ConnectionState;
use idle::IdleList;
use reset::Reset;
use timeout_stream::{HEAD_WAIT_MAX, TimeoutStream};

/// The state that the connections to one socket share.
#[derive(Debug)]
pub(crate) struct ConnectionShared<H> {
    handler: Arc<H>,
    /// Replaces the `Host` that HTTP/1.0 does not require.
    host: HeaderValue,
    memory: Arc<MemoryBudgets>,
    idle: Arc<IdleList>,
    #[cfg(feature = "tls")]
    tls: Option<TlsIdentity>,
}

impl<H: Handler> ConnectionShared<H> {
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

    /// The same for connections that begin with a TLS handshake.
    #[cfg(feature = "tls")]
    pub(crate) fn encrypted(self, tls: Option<TlsIdentity>) -> Self {
        Self { tls, ..self }
    }

    /// Closes the connection that comes first in the order of eviction; waits for one that can be
    /// closed.
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
/// Once `stopping` is true, the response to a request in flight is completed, and then the
/// connection closes. `peer` is an extension of every request.
pub(crate) async fn serve<S, H>(
    stream: S,
    peer: IpAddr,
    shared: Arc<ConnectionShared<H>>,
    #[cfg_attr(
        not(feature = "tls"),
        expect(unused_mut, reason = "only a handshake waits here")
    )]
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Reset + Unpin + Send,
    H: Handler,
{
    let state = Arc::new(ConnectionState::new(Arc::clone(&shared.idle)));
    let memory = RequestMemory::new(&shared.memory, peer);
    let connection = Connection {
        #[cfg(feature = "tls")]
        is_encrypted: shared.tls.is_some(),
        #[cfg(not(feature = "tls"))]
        is_encrypted: false,
        memory: Some(Arc::clone(&memory)),
        peer: Some(peer),
    };
    let exchange = Exchange {
        shared,
        peer,
        connection,
        memory,
        state,
        left_unread: AtomicBool::new(false),
    };
    #[cfg(feature = "tls")]
    if let Some(tls) = exchange.shared.tls.as_ref().map(TlsIdentity::acceptor) {
        let accepted = Box::pin(tls.accept(stream));
        if let Some(stream) = before_requests(accepted, &exchange, &mut stopping).await {
            serve_requests(stream, exchange, stopping).await;
        }
        return;
    }
    serve_requests(stream, exchange, stopping).await;
}

/// Waits for a step before the first request; `None` if it fails, takes too long, or the connection
/// has to end.
async fn before_requests<T: Send, H: Handler>(
    step: impl Future<Output = io::Result<T>> + Send,
    exchange: &Exchange<H>,
    stopping: &mut watch::Receiver<bool>,
) -> Option<T> {
    let ended = tokio::select! {
        ended = timeout(HEAD_WAIT_MAX, step) => ended,
        () = exchange.state.evicted() => return None,
        () = stopped(stopping) => return None,
    };
    match ended {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => log::unreadable(exchange.peer, &error),
        Err(late) => log::unreadable(exchange.peer, &late),
    }
    None
}

async fn serve_requests<S, H>(
    mut stream: S,
    exchange: Exchange<H>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Reset + Unpin + Send,
    H: Handler,
{
    let first = first_head::read(&mut stream);
    let Some(Some(first)) = before_requests(first, &exchange, &mut stopping).await else {
        return;
    };
    let stream = TimeoutStream::new(stream, first, Arc::clone(&exchange.state));
    // The state of hyper is in memory only from here on.
    Box::pin(serve_http(stream, exchange, stopping)).await;
}

async fn serve_http<S, H>(
    stream: TimeoutStream<S>,
    exchange: Exchange<H>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Reset + Unpin + Send,
    H: Handler,
{
    let peer = exchange.peer;
    let state = Arc::clone(&exchange.state);
    let exchange = Arc::new(exchange);
    let service = service_fn(|request| {
        let exchange = Arc::clone(&exchange);
        async move { exchange.handle(request).await }
    });
    let mut connection = http1::Builder::new()
        // The stream has its own limits.
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        // A client may close its side after its request, and one that gives up does not abort a
        // handler.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);

    let mut result = tokio::select! {
        result = &mut connection => Some(result),
        // An unauthenticated connection has no request in flight whose credential was accepted.
        () = state.evicted() => if state.is_authenticated() { None } else { return },
        () = state.cut_off() => return,
        () = stopped(&mut stopping) => None,
    };
    if result.is_none() {
        // This closes a connection that waits for a request. It does not close one with a request
        // in flight, a response that is being sent, or an incomplete head, whose rest may never
        // arrive.
        Pin::new(&mut connection).graceful_shutdown();
        result = tokio::select! {
            biased;
            result = &mut connection => Some(result),
            () = state.quiet() => None,
            () = state.cut_off() => return,
        };
    }
    if let Some(Err(error)) = &result {
        let cause = error
            .source()
            .and_then(|cause| cause.downcast_ref::<Broken>());
        if let Some(broken) = cause {
            if *broken == Broken::Reset {
                connection.into_parts().io.into_inner().reset();
            }
            return;
        }
        log::unreadable(peer, error);
    }
    let refusal = match &result {
        Some(Err(error)) if error.is_parse() => {
            Some(exchange.shared.handler.refuse_unread(&unread(error)))
        }
        Some(Ok(())) if exchange.left_unread.load(Ordering::Relaxed) => None,
        _ => return,
    };
    // The response is sent and our side is closed, but the client may still be sending. Closing a
    // socket with unread bytes resets the connection, and a reset may overtake the response: so the
    // bytes are read for a while.
    state.linger();
    let (mut stream, lacks_response) = connection.into_parts().io.into_inner().into_parts();
    let refusal = refusal.filter(|_| lacks_response);
    let ending = async {
        if let Some(refusal) = refusal {
            // A client that does not read even this small response, or has disconnected, gets none.
            let _ = timeout(LINGER_MAX, stream.write_all(&closing(&refusal))).await;
        }
        discard(&mut stream).await;
    };
    tokio::select! {
        () = ending => {}
        () = state.evicted() => {}
        () = stopped(&mut stopping) => {}
    }
}

/// The error in a head that hyper cannot parse.
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

/// The bytes of the last response of a connection.
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

/// Resolves when the server stops, or has ended.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server has ended.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// The state that the requests of one connection share.
struct Exchange<H> {
    shared: Arc<ConnectionShared<H>>,
    peer: IpAddr,
    connection: Connection,
    /// That of the connection.
    memory: Arc<RequestMemory>,
    state: Arc<ConnectionState>,
    /// True if a request was refused with part of its body unread. It is the connection's last.
    left_unread: AtomicBool,
}

impl<H: Handler> Exchange<H> {
    /// An error resets the connection instead of a response.
    async fn handle(&self, request: Request<Incoming>) -> Result<Response<ResponseBody>, Broken> {
        self.state.begin_request();
        let (mut response, body_memory) = self.respond(request).await;
        if let Some(Reason(reason)) = response.extensions_mut().remove()
            && let Ok(reason) = ReasonPhrase::try_from(reason.into_owned())
        {
            response.extensions_mut().insert(reason);
        }
        // SERVICE: it sends this length, although RFC 9110 has no use for it.
        if response.status() == StatusCode::NO_CONTENT {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            *response.body_mut() = Bytes::new();
        }
        let broken = response.extensions_mut().remove::<Broken>();
        if broken == Some(Broken::Reset) {
            return Err(Broken::Reset);
        }
        let bytes = response.body().len();
        // The response to a write uses the memory of its body: the write was applied, so its
        // response must not fail.
        let reserved = self.memory.take_response(bytes).or(body_memory);
        let reserved = reserved.filter(|_| bytes > SMALL_BYTES_MAX);
        Ok(response.map(|bytes| {
            let body = ResponseBody::new(bytes, reserved, Arc::clone(&self.state));
            body.broken(broken)
        }))
    }

    /// Reads the body only after the head was admitted. Returns the memory of the body, too.
    async fn respond(&self, request: Request<Incoming>) -> (Response<Bytes>, Option<Reservation>) {
        let handler = &*self.shared.handler;
        let (mut head, body) = request.into_parts();
        let default_host = (head.version < Version::HTTP_11).then_some(&self.shared.host);
        if let Err(error) = to_origin_form(&mut head, default_host) {
            let refused = handler.refuse_head(&head, &self.connection, &error);
            return (self.last(refused.await), None);
        }
        let admitted = match handler.admit(head, &self.connection).await {
            Ok(admitted) => admitted,
            Err(response) if body.is_end_stream() => return (*response, None),
            Err(response) => return (self.last(*response), None),
        };
        self.state.set_authenticated();
        match body::read(body, &self.memory).await {
            Ok(Received { bytes, memory }) => (handler.respond(admitted, bytes).await, memory),
            Err(error) => (self.last(handler.refuse(admitted, &error)), None),
        }
    }

    /// The last response of the connection, since part of the request may be unread.
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
        // After a CONNECT, hyper does not do this.
        let _ = stream.shutdown().await;
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    })
    .await;
}

/// The longest request line and headers together; hyper reads no more.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the bytes of a refused request are read after its response.
const LINGER_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
