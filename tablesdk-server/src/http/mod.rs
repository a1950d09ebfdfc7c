//! hyper on one side, `Request<Bytes>` on the other: one connection from its first byte to its last.
//!
//! Here are the limits on heads, bodies and waiting, and the care that an answer arrives before its connection closes. Knows
//! neither tables nor accounts: what a request means is the [`Handler`]'s business. Where connections come from, and how many
//! there may be, is that of `server.rs`.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, Version, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tablesdk_protocol::ErrorCode;
use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::context::Peer;
use crate::service::Service;

/// What answers requests: [`Service`], or in the tests below something smaller that can be made to wait.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Answers a request whose URI is in origin form and which has a `Host`. Dropped unfinished when the connection breaks.
    fn call(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>> + Send;

    /// Answers a request that never became whole.
    fn refuse(&self, head: &Parts, code: ErrorCode) -> Response<Bytes>;
}

impl Handler for Service {
    fn call(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>> + Send {
        Self::call(self, request)
    }

    fn refuse(&self, head: &Parts, code: ErrorCode) -> Response<Bytes> {
        Self::refuse(self, head, code)
    }
}

/// Serves one connection until either side ends it.
///
/// Once `stopping` is true, a request that has begun is still answered, and then the connection closes. `host` stands in for
/// the `Host` that HTTP/1.0 does not require; `peer` goes with every request.
pub(crate) async fn serve<S, H>(
    stream: S,
    peer: IpAddr,
    host: HeaderValue,
    handler: Arc<H>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    H: Handler,
{
    let exchange = Arc::new(Exchange::new());
    let service = service_fn(|request| {
        let (exchange, handler, host) = (Arc::clone(&exchange), Arc::clone(&handler), host.clone());
        async move { Ok::<_, Infallible>(exchange.answer(&*handler, peer, &host, request).await) }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        // A client may close its side once it has asked. And one that gives up does not cut a handler off halfway.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);

    let mut result = tokio::select! {
        result = &mut connection => Some(result),
        () = stopped(&mut stopping) => None,
    };
    if result.is_none() {
        // This closes a connection that waits for a request. What is left is a request under way, an answer on its way out,
        // or the first half of a head, whose other half may never come.
        Pin::new(&mut connection).graceful_shutdown();
        result = tokio::select! {
            result = &mut connection => Some(result),
            () = exchange.quiet() => None,
        };
    }
    let refused = match result {
        Some(Ok(())) => exchange.left_unread.load(Ordering::Relaxed),
        // hyper answers a head that it cannot read itself.
        Some(Err(error)) => error.is_parse(),
        None => false,
    };
    if !refused {
        return;
    }
    // The answer is out and our side is closed, but the client may still be sending. Closing a socket with unread bytes resets
    // the connection, and a reset may overtake the answer: so take the bytes in for a while.
    let mut stream = connection.into_parts().io.into_inner();
    // hyper leaves this to us after a CONNECT; otherwise it is done.
    let _ = stream.shutdown().await;
    tokio::select! {
        () = discard(&mut stream) => {}
        () = stopped(&mut stopping) => {}
    }
}

/// Resolves when the server stops, or is gone.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Gives a request the form that it has on the wire: path and query as its URI, the authority as its `Host`.
///
/// An authority in the URI wins over a `Host` beside it. `default_host` is for a request that has neither.
pub(crate) fn to_origin_form(
    head: &mut Parts,
    default_host: Option<&HeaderValue>,
) -> Result<(), ErrorCode> {
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
        return Err(ErrorCode::InvalidUri);
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
        (0, None) => Err(ErrorCode::Other("HostInformationNotPresent".to_owned())),
        _ => Err(ErrorCode::InvalidHeaderValue),
    }
}

/// What the requests of one connection tell its end.
struct Exchange {
    /// Whether a request is under way.
    answering: watch::Sender<bool>,
    /// Whether a request was refused with part of its body unread. It is the connection's last.
    left_unread: AtomicBool,
}

impl Exchange {
    fn new() -> Self {
        Self {
            answering: watch::Sender::new(false),
            left_unread: AtomicBool::new(false),
        }
    }

    async fn answer<H: Handler>(
        &self,
        handler: &H,
        peer: IpAddr,
        host: &HeaderValue,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        let _answering = Answering::new(&self.answering);
        let (mut head, body) = request.into_parts();
        head.extensions.insert(Peer(peer));
        let default_host = (head.version < Version::HTTP_11).then_some(host);
        let body = match to_origin_form(&mut head, default_host) {
            Ok(()) => read(body).await,
            Err(code) => Err(code),
        };
        let response = match body {
            Ok(body) => handler.call(Request::from_parts(head, body)).await,
            Err(code) => {
                self.left_unread.store(true, Ordering::Relaxed);
                let mut response = handler.refuse(&head, code);
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
                response
            }
        };
        response.map(Full::new)
    }

    /// Resolves when no request has been under way for as long as an answer may take to get out.
    async fn quiet(&self) {
        let mut answering = self.answering.subscribe();
        loop {
            // Neither wait fails: the sender is borrowed.
            let _ = answering.wait_for(|answering| !answering).await;
            let next = timeout(FLUSH_MAX, answering.wait_for(|answering| *answering)).await;
            if next.is_err() {
                return;
            }
        }
    }
}

/// A request is under way for as long as this lives, also when its handler panics.
struct Answering<'a>(&'a watch::Sender<bool>);

impl<'a> Answering<'a> {
    fn new(answering: &'a watch::Sender<bool>) -> Self {
        answering.send_replace(true);
        Self(answering)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

/// The whole body, or why there is none. Nothing is read of a body that says it is too long.
async fn read(body: Incoming) -> Result<Bytes, ErrorCode> {
    if exceeds_limit(body.size_hint().lower()) {
        return Err(ErrorCode::RequestBodyTooLarge);
    }
    let body = Limited::new(body, REQUEST_BODY_BYTES_MAX).collect();
    match timeout(BODY_WAIT_MAX, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ErrorCode::RequestBodyTooLarge),
        // Cut off, or in chunks that are none.
        Ok(Err(_)) => Err(ErrorCode::InvalidInput),
        Err(_) => Err(ErrorCode::OperationTimedOut),
    }
}

/// Whether a body of that many bytes is more than a request may have.
pub(crate) fn exceeds_limit(bytes: impl TryInto<usize>) -> bool {
    bytes
        .try_into()
        .map_or(true, |bytes| bytes > REQUEST_BODY_BYTES_MAX)
}

/// Reads until the other side closes, but not forever.
async fn discard<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut buffer = vec![0; 16 * 1024];
    let _ = timeout(LINGER_MAX, async {
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    })
    .await;
}

/// The longest request line and headers together.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The longest wait for a whole head, which includes the idle time before it. Clients keep connections for minutes, and one that
/// finds them closed fails: idling must be cheap for us, not short. A slow head holds no more than an idle connection does, so
/// that it needs no shorter limit of its own.
const IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// The longest wait for a whole body.
const BODY_WAIT_MAX: Duration = Duration::from_secs(2 * 60);
/// How long bytes of a refused request are taken in after its answer.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// How long an answer may take to get out, and half a head to become whole, once the server stops.
const FLUSH_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
