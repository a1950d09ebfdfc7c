//! hyper on one side, `Request<Bytes>` on the other: one connection from its first byte to its last.
//!
//! Here are the limits on heads, bodies and waiting, and the care that an answer arrives before its connection closes. Knows
//! neither tables nor accounts: what a request means is the [`Handler`]'s business. Where connections come from, and how many
//! there may be, is that of `server.rs`.

use std::convert::Infallible;
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
/// the `Host` that HTTP/1.0 does not require.
pub(crate) async fn serve<S, H>(
    stream: S,
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
        async move { Ok::<_, Infallible>(exchange.answer(&*handler, &host, request).await) }
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
        host: &HeaderValue,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        let _answering = Answering::new(&self.answering);
        let (mut head, body) = request.into_parts();
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
mod tests {
    use http::Method;
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    /// Answers with what it got. `/panic` panics; `/none` has no content; `/large` has much.
    struct Echo;

    impl Handler for Echo {
        async fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
            let (head, body) = request.into_parts();
            let host = head.headers[header::HOST].to_str().unwrap();
            assert_ne!(head.uri, "/panic", "a handler that panics");
            if head.uri == "/none" {
                return Response::builder().status(204).body(Bytes::new()).unwrap();
            }
            if head.uri == "/large" {
                return Response::new(vec![b'x'; LARGE].into());
            }
            let text = format!("[{} {} {host} {}]", head.method, head.uri, body.len());
            Response::new(text.into())
        }

        fn refuse(&self, head: &Parts, code: ErrorCode) -> Response<Bytes> {
            let text = format!("[refused {} {code}]", head.method);
            let response = Response::builder().status(code.status());
            response.body(text.into()).unwrap()
        }
    }

    const LARGE: usize = 4 * 1024 * 1024;

    struct Peer {
        stream: DuplexStream,
        stopping: watch::Sender<bool>,
        serving: JoinHandle<()>,
    }

    impl Peer {
        fn new() -> Self {
            let (stream, server) = duplex(16 * 1024);
            let (stopping, receiver) = watch::channel(false);
            let host = HeaderValue::from_static("default:1");
            let serving = tokio::spawn(serve(server, host, Arc::new(Echo), receiver));
            Self {
                stream,
                stopping,
                serving,
            }
        }

        async fn send(&mut self, bytes: impl AsRef<[u8]>) {
            self.stream.write_all(bytes.as_ref()).await.unwrap();
        }

        /// Reads up to and including that text, which must come.
        async fn read_until(&mut self, end: &str) -> String {
            let mut text = Vec::new();
            while !text.ends_with(end.as_bytes()) {
                match self.stream.read_u8().await {
                    Ok(byte) => text.push(byte),
                    Err(error) => {
                        let text = String::from_utf8_lossy(&text);
                        panic!("{end:?} is not in {text:?}: {error}")
                    }
                }
            }
            String::from_utf8(text).unwrap()
        }

        async fn read_to_end(&mut self) -> String {
            let mut text = String::new();
            self.stream.read_to_string(&mut text).await.unwrap();
            text
        }
    }

    #[tokio::test]
    async fn a_connection_serves_one_request_after_the_other() {
        let mut peer = Peer::new();
        for _ in 0..3 {
            peer.send("GET /a?b=%20c HTTP/1.1\r\nHost: h:1\r\n\r\n")
                .await;
            let answer = peer.read_until("[GET /a?b=%20c h:1 0]").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.contains("content-length: 21\r\n"), "{answer}");
            assert!(answer.contains("\r\ndate: "), "{answer}");
        }
    }

    #[tokio::test]
    async fn answers_pipelined_requests_in_their_order() {
        let mut peer = Peer::new();
        peer.send(
            "MERGE /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
             GET /2 HTTP/1.1\r\nHost: h\r\n\r\n\
             DELETE /3 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        )
        .await;
        peer.read_until("[MERGE /1 h 3]").await;
        peer.read_until("[GET /2 h 0]").await;
        peer.read_until("[DELETE /3 h 0]").await;
    }

    #[tokio::test]
    async fn reads_a_body_in_chunks() {
        let mut peer = Peer::new();
        peer.send("POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            .await;
        peer.send("2\r\nde\r\n0\r\n\r\n").await;
        peer.read_until("[POST /1 h 5]").await;
    }

    #[tokio::test]
    async fn asks_for_a_body_that_waits_to_be_asked_for() {
        let mut peer = Peer::new();
        peer.send(
            "PUT /1 HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        )
        .await;
        assert_eq!(
            peer.read_until("\r\n\r\n").await,
            "HTTP/1.1 100 Continue\r\n\r\n"
        );
        peer.send("abc").await;
        peer.read_until("[PUT /1 h 3]").await;
    }

    #[tokio::test]
    async fn an_answer_to_head_and_one_without_content_have_no_body() {
        let mut peer = Peer::new();
        peer.send("HEAD /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /none HTTP/1.1\r\nHost: h\r\n\r\n")
            .await;
        peer.read_until("\r\n\r\n").await;
        let answer = peer.read_until("\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
        assert!(!answer.contains("content-length"), "{answer}");
        peer.send("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert!(
            peer.read_until("[GET /2 h 0]")
                .await
                .starts_with("HTTP/1.1 200 ")
        );
    }

    #[tokio::test]
    async fn a_body_that_says_it_is_too_long_is_not_asked_for() {
        let mut peer = Peer::new();
        let length = REQUEST_BODY_BYTES_MAX + 1;
        peer.send(format!(
            "PUT /1 HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        ))
        .await;
        let answer = peer.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(
            answer.ends_with("[refused PUT RequestBodyTooLarge]"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn a_client_that_sends_too_much_still_gets_its_answer() {
        let mut peer = Peer::new();
        let length = REQUEST_BODY_BYTES_MAX + 1;
        peer.send(format!(
            "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
        ))
        .await;
        // All of it fits through, since it is taken in after the answer.
        peer.send(vec![b'x'; length]).await;
        let answer = peer.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        drop(peer.stream);
        peer.serving.await.unwrap();
    }

    #[tokio::test]
    async fn chunks_are_counted_while_they_come() {
        let mut peer = Peer::new();
        peer.send("PUT /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            .await;
        let mut chunk = b"100000\r\n".to_vec();
        chunk.resize(chunk.len() + (1 << 20), b'x');
        chunk.extend(b"\r\n");
        for _ in 0..4 {
            peer.send(&chunk).await;
        }
        peer.send("1\r\nx\r\n").await;
        let answer = peer.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_passes() {
        let mut peer = Peer::new();
        peer.send(format!(
            "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: {REQUEST_BODY_BYTES_MAX}\r\n\r\n"
        ))
        .await;
        peer.send(vec![b'x'; REQUEST_BODY_BYTES_MAX]).await;
        peer.read_until("[PUT /1 h 4194304]").await;
    }

    #[tokio::test]
    async fn a_body_that_is_cut_or_malformed_is_refused() {
        let mut peer = Peer::new();
        peer.send("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        peer.stream.shutdown().await.unwrap();
        let answer = peer.read_to_end().await;
        assert!(!answer.contains("200 OK"), "{answer}");

        let mut peer = Peer::new();
        peer.send("PUT /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
            .await;
        let answer = peer.read_to_end().await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }

    #[tokio::test]
    async fn a_client_may_close_its_side_once_it_has_asked() {
        let mut peer = Peer::new();
        peer.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
        peer.stream.shutdown().await.unwrap();
        assert!(peer.read_to_end().await.len() > LARGE);
        peer.serving.await.unwrap();
    }

    #[tokio::test]
    async fn an_offer_to_upgrade_is_passed_over() {
        let mut peer = Peer::new();
        for connection in ["upgrade", "upgrade, close"] {
            peer.send(format!(
                "GET /large HTTP/1.1\r\nHost: h\r\nConnection: {connection}\r\nUpgrade: h2c\r\n\r\n"
            ))
            .await;
            let answer = peer.read_until("\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            let mut body = vec![0; LARGE];
            peer.stream.read_exact(&mut body).await.unwrap();
        }
        assert_eq!(peer.read_to_end().await, "");
    }

    #[tokio::test]
    async fn http_1_0_needs_no_host_and_gets_no_keep_alive() {
        let mut peer = Peer::new();
        peer.send("GET /1 HTTP/1.0\r\n\r\n").await;
        assert!(peer.read_to_end().await.ends_with("[GET /1 default:1 0]"));
    }

    #[tokio::test]
    async fn refuses_heads_that_name_no_host_or_no_resource() {
        for (head, code) in [
            ("GET / HTTP/1.1\r\n", "HostInformationNotPresent"),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
                "InvalidHeaderValue",
            ),
            ("OPTIONS * HTTP/1.1\r\nHost: h\r\n", "InvalidUri"),
            ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n", "InvalidUri"),
        ] {
            let mut peer = Peer::new();
            peer.send(format!("{head}\r\n")).await;
            let answer = peer.read_to_end().await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{head}: {answer}");
            let end = format!(" {code}]");
            assert!(answer.ends_with(&end), "{head}: {answer}");
        }
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused() {
        let mut peer = Peer::new();
        let padding = "x".repeat(HEAD_BYTES_MAX);
        peer.send(format!("GET / HTTP/1.1\r\nHost: h\r\nX: {padding}\r\n"))
            .await;
        assert!(peer.read_to_end().await.starts_with("HTTP/1.1 431 "));
    }

    #[tokio::test]
    async fn a_handler_that_panics_loses_its_connection() {
        let mut peer = Peer::new();
        peer.send("GET /panic HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_eq!(peer.read_to_end().await, "");
        assert!(peer.serving.await.unwrap_err().is_panic());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_may_idle_for_minutes_but_not_forever() {
        let mut peer = Peer::new();
        for _ in 0..2 {
            peer.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
            peer.read_until("[GET /1 h 0]").await;
            tokio::time::sleep(Duration::from_secs(9 * 60)).await;
        }
        assert_eq!(peer.read_to_end().await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_body_is_not_awaited_forever() {
        let mut peer = Peer::new();
        peer.send("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        let answer = peer.read_to_end().await;
        assert!(
            answer.ends_with("[refused PUT OperationTimedOut]"),
            "{answer}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_closes_idle_connections_and_finishes_the_others() {
        let mut untouched = Peer::new();
        let mut idle = Peer::new();
        idle.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
        idle.read_until("[GET /1 h 0]").await;
        let mut half_a_head = Peer::new();
        half_a_head.send("GET /1 HTTP/1.1\r\nHo").await;
        let mut half_a_body = Peer::new();
        half_a_body
            .send("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na")
            .await;
        let mut half_an_answer = Peer::new();
        half_an_answer
            .send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            .await;
        half_an_answer.read_until("\r\n\r\n").await;

        for peer in [
            &untouched,
            &idle,
            &half_a_head,
            &half_a_body,
            &half_an_answer,
        ] {
            peer.stopping.send_replace(true);
        }
        assert_eq!(untouched.read_to_end().await, "");
        assert_eq!(idle.read_to_end().await, "");
        assert_eq!(half_an_answer.read_to_end().await.len(), LARGE);
        assert_eq!(half_a_head.read_to_end().await, "");
        half_a_body.send("bc").await;
        assert!(half_a_body.read_to_end().await.ends_with("[PUT /1 h 3]"));
        for peer in [untouched, idle, half_a_head, half_a_body, half_an_answer] {
            peer.serving.await.unwrap();
        }
    }

    #[test]
    fn gives_a_request_the_form_of_the_wire() {
        let form = |uri: &str, default| {
            let request = Request::builder().method(Method::GET).uri(uri);
            let (mut head, ()) = request.body(()).unwrap().into_parts();
            to_origin_form(&mut head, default)?;
            let host = head.headers[header::HOST].to_str().unwrap().to_owned();
            Ok::<_, ErrorCode>((head.uri.to_string(), host))
        };
        let pair = |uri: &str, host: &str| Ok((uri.to_owned(), host.to_owned()));
        let default = HeaderValue::from_static("d");
        assert_eq!(form("http://h:1/a%27?b", None), pair("/a%27?b", "h:1"));
        assert_eq!(form("http://h", Some(&default)), pair("/", "h"));
        assert_eq!(form("/a", Some(&default)), pair("/a", "d"));
        assert!(form("/a", None).is_err());
        assert_eq!(form("*", Some(&default)), Err(ErrorCode::InvalidUri));
    }
}
