//! Starting, stopping and reaching a server, with a handler that responds when the test permits it.

use std::num::NonZeroUsize;

use http::Response;
use http::request::Parts;
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_protocol::{Clock as _, Delivery, ServiceError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use super::*;

/// A handler that reports each request and responds when the test permits it.
struct Gate {
    asked: Semaphore,
    open: Semaphore,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            asked: Semaphore::new(0),
            open: Semaphore::new(0),
        })
    }
}

impl Handler for Gate {
    type Admitted = Parts;

    async fn admit(&self, head: Parts, _: &Connection) -> Result<Parts, Box<Response<Bytes>>> {
        Ok(head)
    }

    async fn respond(&self, head: Parts, _: Bytes) -> Response<Bytes> {
        assert_ne!(head.uri, "/panic", "a handler that panics");
        self.asked.add_permits(1);
        self.open.acquire().await.unwrap().forget();
        Response::new(Bytes::from_static(b"done"))
    }

    fn refuse(&self, _: Parts, _: &ServiceError) -> Response<Bytes> {
        Response::default()
    }

    async fn refuse_head(&self, _: &Parts, _: &Connection, _: &ServiceError) -> Response<Bytes> {
        Response::default()
    }

    fn refuse_unread(&self, _: &ServiceError) -> Response<Bytes> {
        Response::default()
    }
}

async fn listener_of(handler: Arc<Gate>) -> (Listener, watch::Sender<bool>) {
    listener_with(handler, 100).await
}

async fn listener_with(
    handler: Arc<Gate>,
    max_connections: usize,
) -> (Listener, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local_addr = listener.local_addr().unwrap();
    let stopping = watch::Sender::new(false);
    let sockets = Sockets {
        address: local_addr,
        max_connections: NonZeroUsize::new(max_connections).unwrap(),
        shutdown_grace: Duration::from_secs(7),
        admin_port: None,
        has_test_port: false,
        #[cfg(feature = "tls")]
        tls: None,
    };
    let shared = ConnectionShared::new(handler, HeaderValue::from_static("h"));
    let listener = Listener::new(listener, local_addr, sockets, shared, &stopping);
    (listener, stopping)
}

async fn ask(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A reset ends it, too.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8(text).unwrap()
}

fn get(uri: String) -> Request<Bytes> {
    Request::get(uri).body(Bytes::new()).unwrap()
}

fn sign(server: &TableServer, request: &mut Request<Bytes>) {
    let now = crate::time::clock::SystemClock.now().to_http_date();
    let now = HeaderValue::try_from(now).unwrap();
    request.headers_mut().insert("x-ms-date", now);
    let key = server.credential();
    let (method, uri) = (request.method(), request.uri());
    let scheme = Scheme::SharedKeyLite;
    let text = string_to_sign(scheme, key.account(), method, uri, request.headers());
    let credential = format!(
        "SharedKeyLite {}:{}",
        key.account(),
        key.sign(&text).expose()
    );
    let credential = HeaderValue::try_from(credential).unwrap();
    request.headers_mut().insert("authorization", credential);
}

#[tokio::test]
async fn shutdown_completes_requests_in_flight() {
    let gate = Gate::new();
    let (listener, stopping) = listener_of(Arc::clone(&gate)).await;
    let address = listener.local_addr;
    let asked = ask(address, "/").await;
    gate.asked.acquire().await.unwrap().forget();

    stopping.send_replace(true);
    let drained = tokio::spawn(listener.drained());
    // The port is free immediately, and the response comes later.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!drained.is_finished());
    gate.open.add_permits(1);
    let response = read_to_end(asked).await;
    assert!(response.ends_with("done"), "{response}");
    drained.await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_does_not_wait_for_connections_without_a_request() {
    let gate = Gate::new();
    gate.open.add_permits(1);
    let (listener, stopping) = listener_of(Arc::clone(&gate)).await;
    let silent = TcpStream::connect(listener.local_addr).await.unwrap();
    let mut half_open = TcpStream::connect(listener.local_addr).await.unwrap();
    half_open.write_all(b"GET / HT").await.unwrap();
    // Once this one is served, the two before it have been accepted.
    let mut idle = ask(listener.local_addr, "/").await;
    let mut response = Vec::new();
    while !response.ends_with(b"done") {
        response.push(idle.read_u8().await.unwrap());
    }
    stopping.send_replace(true);
    listener.drained().await.unwrap();
    for stream in [silent, half_open, idle] {
        assert_eq!(read_to_end(stream).await, "");
    }
}

#[tokio::test]
async fn shutdown_reports_requests_that_it_cut_off() {
    let gate = Gate::new();
    let (listener, stopping) = listener_of(Arc::clone(&gate)).await;
    let asked = ask(listener.local_addr, "/").await;
    gate.asked.acquire().await.unwrap().forget();
    tokio::time::pause();
    stopping.send_replace(true);
    let began = tokio::time::Instant::now();
    let error = listener.drained().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(began.elapsed().as_secs(), 7);
    assert_eq!(read_to_end(asked).await, "");
}

#[cfg(feature = "network")]
#[tokio::test]
async fn idle_connections_are_closed_for_new_ones() {
    let gate = Gate::new();
    let (listener, _stopping) = listener_with(Arc::clone(&gate), 4).await;
    let busy = ask(listener.local_addr, "/").await;
    gate.asked.acquire().await.unwrap().forget();
    // More connections than permits, most of them silent: each one gets a permit in its turn.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(listener.local_addr).await.unwrap());
    }
    let late = ask(listener.local_addr, "/").await;
    gate.asked.acquire().await.unwrap().forget();
    gate.open.add_permits(2);
    for (index, stream) in silent.into_iter().enumerate() {
        if index < 16 {
            assert_eq!(read_to_end(stream).await, "");
        }
    }
    for stream in [late, busy] {
        stream.readable().await.unwrap();
        let mut response = vec![0; 1024];
        let bytes = stream.try_read(&mut response).unwrap();
        assert!(response[..bytes].ends_with(b"done"));
    }
}

#[cfg(feature = "network")]
#[tokio::test]
async fn new_connections_wait_for_busy_ones() {
    let gate = Gate::new();
    let (listener, _stopping) = listener_with(Arc::clone(&gate), 2).await;
    let first = ask(listener.local_addr, "/").await;
    let second = ask(listener.local_addr, "/").await;
    gate.asked.acquire_many(2).await.unwrap().forget();
    let third = ask(listener.local_addr, "/").await;
    gate.open.add_permits(3);
    gate.asked.acquire().await.unwrap().forget();
    for stream in [first, second, third] {
        stream.readable().await.unwrap();
    }
}

#[cfg(feature = "network")]
#[tokio::test]
async fn absent_bodies_give_way_to_new_connections() {
    let gate = Gate::new();
    gate.open.add_permits(1);
    let (listener, _stopping) = listener_with(Arc::clone(&gate), 2).await;
    let mut stalled = Vec::new();
    for length in ["9", "4194304"] {
        let mut stream = TcpStream::connect(listener.local_addr).await.unwrap();
        let head = format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    let stream = ask(listener.local_addr, "/").await;
    gate.asked.acquire().await.unwrap().forget();
    stream.readable().await.unwrap();
}

#[tokio::test]
async fn panics_cost_one_connection() {
    let gate = Gate::new();
    gate.open.add_permits(1);
    let (listener, _stopping) = listener_of(Arc::clone(&gate)).await;
    let lost = ask(listener.local_addr, "/panic").await;
    assert_eq!(read_to_end(lost).await, "");
    let mut stream = TcpStream::connect(listener.local_addr).await.unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    assert!(read_to_end(stream).await.ends_with("done"));
}

#[tokio::test]
async fn dropping_a_server_frees_its_port() {
    let gate = Gate::new();
    let (listener, _stopping) = listener_of(Arc::clone(&gate)).await;
    let address = listener.local_addr;
    let asked = ask(address, "/").await;
    gate.asked.acquire().await.unwrap().forget();
    drop(listener);
    // At once: the task that accepted has not run since.
    let listener = std::net::TcpListener::bind(address).unwrap();
    assert_eq!(read_to_end(asked).await, "");
    drop(listener);

    let server = TableServer::start().await.unwrap();
    let address = server.local_addr().unwrap();
    drop(server);
    std::net::TcpListener::bind(address).unwrap();
}

#[tokio::test]
async fn two_servers_share_nothing() {
    let (one, two) = (
        TableServer::start().await.unwrap(),
        TableServer::start().await.unwrap(),
    );
    assert_ne!(one.local_addr(), two.local_addr());
    assert_ne!(one.connection_string(), two.connection_string());
    for server in [one, two] {
        let stream = ask(server.local_addr().unwrap(), "/devstoreaccount1/Tables").await;
        stream.readable().await.unwrap();
        server.shutdown().await.unwrap();
        assert!(read_to_end(stream).await.starts_with("HTTP/1.1 4"));
    }
}

#[cfg(feature = "durable")]
#[test]
fn the_flavor_cosmos_db_has_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let builder = TableServer::builder().flavor(crate::testing::Flavor::CosmosDb);
    let builder = builder.data(directory.path(), crate::Durability::Sync);
    let error = builder.in_process().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("CosmosDb"), "{error}");
}

#[cfg(feature = "durable")]
#[tokio::test]
async fn a_directory_is_free_when_shutdown_returns() {
    let directory = tempfile::tempdir().unwrap();
    let builder = || TableServer::builder().data(directory.path(), crate::Durability::Sync);
    for _ in 0..5 {
        let server = builder().start().await.unwrap();
        let stream = ask(server.local_addr().unwrap(), "/devstoreaccount1/Tables").await;
        server.shutdown().await.unwrap();
        drop(stream);
        // At once.
        drop(builder().in_process().unwrap());
    }
}

#[cfg(feature = "durable")]
#[tokio::test]
async fn shutdown_reports_a_held_directory() {
    let directory = tempfile::tempdir().unwrap();
    let builder = || TableServer::builder().data(directory.path(), crate::Durability::Sync);
    let server = builder().start().await.unwrap();
    // As a request in this process whose caller does not poll it.
    let held = Arc::clone(&server.service);
    tokio::time::pause();
    let error = server.shutdown().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("still holds"), "{error}");
    drop(held);
    drop(builder().in_process().unwrap());
}

#[cfg(feature = "durable")]
#[tokio::test]
async fn shutdown_reports_all_of_its_failures() {
    let directory = tempfile::tempdir().unwrap();
    let builder = TableServer::builder().data(directory.path(), crate::Durability::Sync);
    let mut server = builder.in_process().unwrap();
    let gate = Gate::new();
    let (listener, stopping) = listener_of(Arc::clone(&gate)).await;
    let _stream = ask(listener.local_addr, "/").await;
    gate.asked.acquire().await.unwrap().forget();
    stopping.send_replace(true);
    server.listener = Some(listener);
    let _held = Arc::clone(&server.service);
    tokio::time::pause();
    let error = server.shutdown().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    for part in ["cut off unanswered", "still holds the data directory"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn errors_name_the_taken_port() {
    let server = TableServer::start().await.unwrap();
    let address = server.local_addr().unwrap();
    let builder = TableServer::builder().port(address.port());
    let error = builder.start().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn transports_keep_tables_in_memory() {
    for server in [
        TableServer::in_process(),
        TableServer::start().await.unwrap(),
    ] {
        let transport = server.transport();
        let uri = format!("{}/Tables", server.endpoint());
        drop(server);
        let response = transport.send(get(uri)).await.unwrap();
        assert!(response.status().is_client_error(), "it is not signed");
    }
}

#[tokio::test]
async fn the_last_transport_ends_a_server_in_memory() {
    let server = TableServer::in_process();
    let service = Arc::downgrade(&server.service);
    let transports = [server.transport(), server.transport()];
    drop(server);
    assert_ne!(service.strong_count(), 0);
    drop(transports);
    assert_eq!(service.strong_count(), 0);
}

#[cfg(feature = "durable")]
#[tokio::test]
async fn transports_do_not_keep_a_data_directory() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let builder = TableServer::builder().data(directory.path(), crate::Durability::Relaxed);
        builder.in_process()
    };
    let server = open().unwrap();
    let transport = server.transport();
    let uri = format!("{}/Tables", server.endpoint());
    assert!(transport.send(get(uri.clone())).await.is_ok());
    drop(server);
    let error = transport.send(get(uri)).await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::NotSent);
    drop(open().unwrap());
}

#[tokio::test]
async fn transports_end_with_the_shutdown() {
    for server in [
        TableServer::in_process(),
        TableServer::start().await.unwrap(),
    ] {
        let transport = server.transport();
        let uri = format!("{}/Tables", server.endpoint());
        assert!(transport.send(get(uri.clone())).await.is_ok());
        server.shutdown().await.unwrap();
        let error = transport.send(get(uri)).await.unwrap_err();
        assert_eq!(error.delivery(), Delivery::NotSent);
    }
}

#[tokio::test]
async fn transports_have_the_limits_of_the_wire() {
    let server = TableServer::in_process();
    let mut request = get(server.endpoint().to_owned());
    *request.body_mut() = vec![0; 4 * 1024 * 1024 + 1].into();
    let mut signed = get(server.endpoint().to_owned());
    *signed.body_mut() = request.body().clone();
    sign(&server, &mut signed);
    for (request, status) in [(request, 403), (signed, 413)] {
        let response = server.transport().send(request).await.unwrap();
        assert_eq!(response.status(), status);
    }
    let long = format!("{}/{}", server.endpoint(), "x".repeat(40_000));
    let response = server.transport().send(get(long)).await.unwrap();
    assert_eq!(response.status(), StatusCode::URI_TOO_LONG);
}

#[test]
fn debug_output_has_no_key() {
    let key = SharedKey::new("acct", "c2VjcmV0").unwrap();
    let server = TableServer::builder().account(key).in_process().unwrap();
    assert_eq!(server.endpoint(), "http://in-process.invalid/acct");
    assert_eq!(
        server.connection_string(),
        "DefaultEndpointsProtocol=http;AccountName=acct;AccountKey=c2VjcmV0;\
         TableEndpoint=http://in-process.invalid/acct;"
    );
    assert_eq!(server.credential().account(), "acct");
    assert_eq!(server.local_addr(), None);
    let text = format!("{server:?} {:?}", server.transport());
    assert!(!text.contains("c2VjcmV0"), "{text}");
}

#[test]
fn endpoints_are_reachable_addresses() {
    for (bound, reached) in [
        ("0.0.0.0:1", "127.0.0.1:1"),
        ("[::]:1", "[::1]:1"),
        ("10.0.0.1:1", "10.0.0.1:1"),
    ] {
        assert_eq!(reachable(bound.parse().unwrap()).to_string(), reached);
    }
}
