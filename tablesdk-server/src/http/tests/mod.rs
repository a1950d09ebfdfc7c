//! Raw bytes on a connection, with a handler that echoes requests. `tests/wire` has the rules that
//! need no clock and no handler.

#[cfg(feature = "network")]
mod network;
#[cfg(feature = "tls")]
mod tls;

use http::Method;
use http::request::Parts;
use tablesdk_protocol::limits::REQUEST_BODY_BYTES_MAX;
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::timeout_stream::{HEAD_WAIT_MAX, LONG_HEAD_WAIT_MAX, STALL_BYTES_MIN, STALL_MAX};
use super::*;

/// Responds with the content of the request. `/panic` panics; `/none` has no content; `/large` has
/// a large body. Every client of `/secret` is refused with 403.
struct Echo;

fn refused(head: &Parts, error: &ServiceError) -> Response<Bytes> {
    let text = format!("[refused {} {}]", head.method, error.code());
    let response = Response::builder().status(error.status());
    response.body(text.into()).unwrap()
}

impl Handler for Echo {
    type Admitted = (Parts, Connection);

    async fn admit(
        &self,
        head: Parts,
        connection: &Connection,
    ) -> Result<(Parts, Connection), Box<Response<Bytes>>> {
        if head.uri == "/secret" {
            let response = Response::builder().status(403);
            return Err(Box::new(response.body("[unauthenticated]".into()).unwrap()));
        }
        Ok((head, connection.clone()))
    }

    async fn respond(
        &self,
        (head, connection): (Parts, Connection),
        body: Bytes,
    ) -> Response<Bytes> {
        let host = head.headers[header::HOST].to_str().unwrap();
        let memory = connection.memory.as_ref().unwrap();
        assert_eq!(connection.peer, Some(PEER));
        assert_ne!(head.uri, "/panic", "a handler that panics");
        if head.uri == "/none" {
            return Response::builder().status(204).body(Bytes::new()).unwrap();
        }
        if head.uri == "/large" {
            return match memory.reserve_response(LARGE).await {
                Ok(()) => Response::new(vec![b'x'; LARGE].into()),
                Err(error) => refused(&head, &error),
            };
        }
        let text = format!("[{} {} {host} {}]", head.method, head.uri, body.len());
        Response::new(text.into())
    }

    fn refuse(&self, (head, _): (Parts, Connection), error: &ServiceError) -> Response<Bytes> {
        refused(&head, error)
    }

    async fn refuse_head(
        &self,
        head: &Parts,
        _: &Connection,
        error: &ServiceError,
    ) -> Response<Bytes> {
        refused(head, error)
    }

    fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes> {
        let text = format!("[unread {}]", error.code());
        let response = Response::builder().status(error.status());
        response.header("x", "y").body(text.into()).unwrap()
    }
}

fn shared() -> ConnectionShared<Echo> {
    ConnectionShared::new(Arc::new(Echo), HeaderValue::from_static("default:1"))
}

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

const LARGE: usize = 4 * 1024 * 1024;

struct Peer {
    stream: DuplexStream,
    stopping: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Peer {
    fn new() -> Self {
        Self::of(&Arc::new(shared()))
    }

    fn of(shared: &Arc<ConnectionShared<Echo>>) -> Self {
        let (stream, server) = duplex(16 * 1024);
        let (stopping, receiver) = watch::channel(false);
        let serving = tokio::spawn(serve(server, PEER, Arc::clone(shared), receiver));
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

    /// A connection on which these bytes were sent.
    async fn after(bytes: impl AsRef<[u8]>) -> Self {
        let mut peer = Self::new();
        peer.send(bytes).await;
        peer
    }

    /// Reads to the end of the connection: a response with this status and this end.
    async fn is_refused(&mut self, status: u16, end: &str) {
        let response = self.read_to_end().await;
        let start = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&start), "{response}");
        assert!(response.ends_with(end), "{response}");
    }

    async fn read_to_end(&mut self) -> String {
        let mut text = String::new();
        self.stream.read_to_string(&mut text).await.unwrap();
        text
    }
}

#[tokio::test]
async fn a_client_that_sends_too_much_gets_a_response() {
    let mut peer = Peer::new();
    let length = REQUEST_BODY_BYTES_MAX + 1;
    peer.send(format!(
        "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
    ))
    .await;
    // All of it fits through, since it is taken in after the response.
    peer.send(vec![b'x'; length]).await;
    peer.is_refused(413, "").await;
    drop(peer.stream);
    peer.serving.await.unwrap();
}

#[tokio::test]
async fn bodies_of_the_limit_are_read() {
    let mut peer = Peer::after(format!(
        "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: {REQUEST_BODY_BYTES_MAX}\r\n\r\n"
    ))
    .await;
    peer.send(vec![b'x'; REQUEST_BODY_BYTES_MAX]).await;
    peer.read_until("[PUT /1 h 4194304]").await;
}

#[tokio::test]
async fn incomplete_bodies_are_refused() {
    let mut peer = Peer::after("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc").await;
    peer.stream.shutdown().await.unwrap();
    let response = peer.read_to_end().await;
    assert!(!response.contains("200 OK"), "{response}");

    let mut peer =
        Peer::after("PUT /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    let response = peer.read_to_end().await;
    assert!(!response.contains("200 OK"), "{response}");
}

#[tokio::test]
async fn a_client_may_close_its_side_after_its_request() {
    let mut peer = Peer::after("GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.stream.shutdown().await.unwrap();
    assert!(peer.read_to_end().await.len() > LARGE);
    peer.serving.await.unwrap();
}

#[tokio::test]
async fn an_offer_to_upgrade_is_ignored() {
    let mut peer = Peer::new();
    for connection in ["upgrade", "upgrade, close"] {
        peer.send(format!(
            "GET /large HTTP/1.1\r\nHost: h\r\nConnection: {connection}\r\nUpgrade: h2c\r\n\r\n"
        ))
        .await;
        let response = peer.read_until("\r\n\r\n").await;
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
        let mut body = vec![0; LARGE];
        peer.stream.read_exact(&mut body).await.unwrap();
    }
    assert_eq!(peer.read_to_end().await, "");
}

#[tokio::test]
async fn http_1_0_needs_no_host() {
    let mut peer = Peer::after("GET /1 HTTP/1.0\r\n\r\n").await;
    assert!(peer.read_to_end().await.ends_with("[GET /1 default:1 0]"));
}

#[tokio::test]
async fn heads_without_host_or_resource_are_refused() {
    // Responses repeat it.
    let long_host = format!("GET / HTTP/1.1\r\nHost: {}\r\n", "h".repeat(260));
    for (head, code) in [
        ("GET / HTTP/1.1\r\n", "HostInformationNotPresent"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
            "InvalidHeaderValue",
        ),
        (&long_host, "InvalidHeaderValue"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n", "InvalidUri"),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n", "InvalidUri"),
    ] {
        let mut peer = Peer::after(format!("{head}\r\n")).await;
        let response = peer.read_to_end().await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{head}: {response}");
        let end = format!(" {code}]");
        assert!(response.ends_with(&end), "{head}: {response}");
    }
}

#[tokio::test]
async fn heads_beyond_the_limit_are_refused() {
    let mut peer = Peer::new();
    let padding = "x".repeat(HEAD_BYTES_MAX);
    peer.send(format!("GET / HTTP/1.1\r\nHost: h\r\nX: {padding}\r\n"))
        .await;
    assert_eq!(
        peer.read_to_end().await,
        "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 27\r\nx: y\r\n\r\n\
         [unread InvalidHeaderValue]"
    );
}

#[tokio::test]
async fn malformed_heads_are_refused_in_order() {
    for begun in ["", "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"] {
        let mut peer = Peer::after(begun).await;
        if !begun.is_empty() {
            peer.read_until("[GET /1 h 0]").await;
        }
        peer.send("GET /2\r\nno head\r\n\r\n").await;
        peer.is_refused(400, "\r\n\r\n[unread InvalidInput]").await;
    }
    // Sent together, each has at most one response, and the first one is complete.
    let mut peer = Peer::after("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2\r\nno head\r\n\r\n").await;
    peer.read_until("[GET /1 h 0]").await;
    let rest = peer.read_to_end().await;
    assert_eq!(rest.matches("HTTP/1.1 400 ").count(), 1, "{rest}");
}

#[tokio::test(start_paused = true)]
async fn long_heads_have_less_time() {
    for (bytes, wait) in [(1000, HEAD_WAIT_MAX), (9000, LONG_HEAD_WAIT_MAX)] {
        let mut peer = Peer::new();
        let padding = "x".repeat(bytes);
        let started = tokio::time::Instant::now();
        peer.send(format!("GET / HTTP/1.1\r\nHost: h\r\nX: {padding}"))
            .await;
        assert_eq!(peer.read_to_end().await, "");
        let waited = started.elapsed();
        assert!(
            waited >= wait && waited < wait + Duration::from_secs(1),
            "{waited:?}"
        );
        // A head that arrives in time is served.
        let mut peer = Peer::after(format!("GET / HTTP/1.1\r\nHost: h\r\nX: {padding}")).await;
        tokio::time::sleep(wait.saturating_sub(Duration::from_secs(1))).await;
        peer.send("\r\n\r\n").await;
        peer.read_until("[GET / h 0]").await;
    }
}

#[tokio::test]
async fn panics_close_their_connection() {
    let mut peer = Peer::after("GET /panic HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(peer.read_to_end().await, "");
    assert!(peer.serving.await.unwrap_err().is_panic());
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_after_minutes() {
    let mut peer = Peer::new();
    for _ in 0..2 {
        peer.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
        peer.read_until("[GET /1 h 0]").await;
        tokio::time::sleep(Duration::from_secs(9 * 60)).await;
    }
    assert_eq!(peer.read_to_end().await, "");
}

#[tokio::test(start_paused = true)]
async fn stalled_bodies_time_out() {
    let mut peer = Peer::after("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc").await;
    peer.is_refused(408, "[refused PUT OperationTimedOut]")
        .await;
}

#[tokio::test(start_paused = true)]
async fn trickling_bodies_time_out() {
    let mut peer =
        Peer::after("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4194304\r\n\r\n").await;
    let began = tokio::time::Instant::now();
    while !peer.serving.is_finished() && began.elapsed() < Duration::from_secs(3600) {
        let _ = peer.stream.write_all(b"x").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(40));
    peer.is_refused(408, "").await;
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_are_read() {
    let mut peer = Peer::new();
    let length = 2 * 1024 * 1024;
    peer.send(format!(
        "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
    ))
    .await;
    let part = vec![b'x'; 32 * 1024];
    for _ in 0..length / part.len() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        peer.send(&part).await;
    }
    peer.read_until("[PUT /1 h 2097152]").await;
}

#[tokio::test(start_paused = true)]
async fn line_ends_after_a_body_are_ignored() {
    let mut peer = Peer::after("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc").await;
    peer.read_until("[PUT /1 h 3]").await;
    peer.send("\r\n").await;
    tokio::time::sleep(2 * HEAD_WAIT_MAX).await;
    peer.send("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.read_until("[GET /2 h 0]").await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_requests_in_flight() {
    let mut untouched = Peer::new();
    let mut idle = Peer::after("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    idle.read_until("[GET /1 h 0]").await;
    let mut half_a_head = Peer::after("GET /1 HTTP/1.1\r\nHo").await;
    let mut half_a_body =
        Peer::after("PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na").await;
    let mut half_a_response = Peer::after("GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
    half_a_response.read_until("\r\n\r\n").await;

    for peer in [
        &untouched,
        &idle,
        &half_a_head,
        &half_a_body,
        &half_a_response,
    ] {
        peer.stopping.send_replace(true);
    }
    assert_eq!(untouched.read_to_end().await, "");
    assert_eq!(idle.read_to_end().await, "");
    assert_eq!(half_a_response.read_to_end().await.len(), LARGE);
    assert_eq!(half_a_head.read_to_end().await, "");
    half_a_body.send("bc").await;
    assert!(half_a_body.read_to_end().await.ends_with("[PUT /1 h 3]"));
    for peer in [untouched, idle, half_a_head, half_a_body, half_a_response] {
        peer.serving.await.unwrap();
    }
}

#[test]
fn requests_get_origin_form() {
    let form = |uri: &str, default| {
        let request = Request::builder().method(Method::GET).uri(uri);
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        to_origin_form(&mut head, default)?;
        let host = head.headers[header::HOST].to_str().unwrap().to_owned();
        Ok::<_, ServiceError>((head.uri.to_string(), host))
    };
    let pair = |uri: &str, host: &str| Ok((uri.to_owned(), host.to_owned()));
    let default = HeaderValue::from_static("d");
    assert_eq!(form("http://h:1/a%27?b", None), pair("/a%27?b", "h:1"));
    assert_eq!(form("http://h", Some(&default)), pair("/", "h"));
    assert_eq!(form("/a", Some(&default)), pair("/a", "d"));
    assert!(form("/a", None).is_err());
    let refusal = form("*", Some(&default)).unwrap_err();
    assert_eq!(*refusal.code(), ErrorCode::InvalidUri);
}

#[tokio::test]
async fn a_refused_request_without_a_body_keeps_the_connection() {
    let mut peer = Peer::after("GET /secret HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.read_until("[unauthenticated]").await;
    peer.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.read_until("[GET /1 h 0]").await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_read_ends_the_connection() {
    let mut peer = Peer::after("GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let began = tokio::time::Instant::now();
    (&mut peer.serving).await.unwrap();
    assert_eq!(began.elapsed(), STALL_MAX);
    assert!(peer.read_to_end().await.len() < LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_read_slowly_arrives_completely() {
    let mut peer = Peer::after("GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.read_until("\r\n\r\n").await;
    let mut part = vec![0; STALL_BYTES_MIN];
    for _ in 0..LARGE / STALL_BYTES_MIN {
        tokio::time::sleep(STALL_MAX.mul_f32(0.9)).await;
        peer.stream.read_exact(&mut part).await.unwrap();
    }
    // The connection remains usable.
    peer.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.read_until("[GET /1 h 0]").await;
}

#[tokio::test(start_paused = true)]
async fn heads_have_a_time_limit() {
    for first in ["", "G", "GET / HTTP/1.1\r\nHo"] {
        let mut peer = Peer::after(first).await;
        let began = tokio::time::Instant::now();
        assert_eq!(peer.read_to_end().await, "");
        assert_eq!(began.elapsed(), HEAD_WAIT_MAX, "{first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn single_bytes_do_not_extend_the_time_of_a_head() {
    let mut peer = Peer::new();
    for _ in 0..2 {
        peer.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
        peer.read_until("[GET /1 h 0]").await;
        tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    }
    let began = tokio::time::Instant::now();
    for byte in b"GET /1 HTTP/1.1\r\nHost: h\r\nX: " {
        peer.send([*byte]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if peer.serving.is_finished() {
            break;
        }
    }
    assert_eq!(peer.read_to_end().await, "");
    assert!(began.elapsed() <= HEAD_WAIT_MAX + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn unauthenticated_clients_may_not_idle_for_minutes() {
    let mut peer = Peer::after("GET /secret HTTP/1.1\r\nHost: h\r\n\r\n").await;
    peer.read_until("[unauthenticated]").await;
    let began = tokio::time::Instant::now();
    assert_eq!(peer.read_to_end().await, "");
    assert_eq!(began.elapsed(), HEAD_WAIT_MAX);
}
