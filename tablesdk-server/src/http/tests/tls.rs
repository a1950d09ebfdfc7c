//! HTTPS: the handshake, responses and the end of a connection.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response};
use tablesdk_protocol::ServiceError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::{TlsConnector, client, rustls};

use crate::http::timeout_stream::{HEAD_WAIT_MAX, STALL_MAX};
use crate::http::tls_identity::TlsIdentity;
use crate::http::{ConnectionShared, serve};
use crate::request::connection::Connection;
use crate::request::handler::Handler;

/// Sends a large response to requests over TLS.
struct Large;

impl Handler for Large {
    type Admitted = Parts;

    async fn admit(
        &self,
        head: Parts,
        connection: &Connection,
    ) -> Result<Parts, Box<Response<Bytes>>> {
        assert!(connection.is_encrypted);
        Ok(head)
    }

    async fn respond(&self, head: Parts, _body: Bytes) -> Response<Bytes> {
        let length = if head.uri == "/buffered" {
            LARGE / 20
        } else {
            LARGE
        };
        Response::new(vec![b'x'; length].into())
    }

    fn refuse(&self, _head: Parts, error: &ServiceError) -> Response<Bytes> {
        panic!("{error}")
    }

    async fn refuse_head(
        &self,
        _: &Parts,
        _: &Connection,
        error: &ServiceError,
    ) -> Response<Bytes> {
        panic!("{error}")
    }

    fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes> {
        panic!("{error}")
    }
}

const LARGE: usize = 1024 * 1024;

/// A connection, the task that serves it, the sender that keeps it running, and its certificate.
fn connection() -> (
    DuplexStream,
    JoinHandle<()>,
    watch::Sender<bool>,
    rcgen::Certificate,
) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let shared = ConnectionShared::new(Arc::new(Large), HeaderValue::from_static("default:1"));
    let (stream, server) = duplex(16 * 1024);
    let (stopping, receiver) = watch::channel(false);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let shared = Arc::new(shared.encrypted(Some(identity)));
    let serving = tokio::spawn(serve(server, peer, shared, receiver));
    (stream, serving, stopping, made.cert)
}

async fn encrypted(
    stream: DuplexStream,
    certificate: &rcgen::Certificate,
) -> client::TlsStream<DuplexStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = "localhost".try_into().unwrap();
    connector.connect(name, stream).await.unwrap()
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[tokio::test]
async fn responses_are_complete_and_connections_end_with_close_notify() {
    let (stream, serving, stopping, certificate) = connection();
    let mut stream = encrypted(stream, &certificate).await;
    for _ in 0..3 {
        stream.write_all(REQUEST).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let mut body = vec![0; LARGE];
        stream.read_exact(&mut body).await.unwrap();
        assert!(body.iter().all(|byte| *byte == b'x'));
    }
    stopping.send_replace(true);
    // Fails if the connection is closed without a `close_notify`.
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    serving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_to_come_soon() {
    let (mut stream, serving, _stopping, _) = connection();
    let began = Instant::now();
    stream.write_all(&[22, 3, 1]).await.unwrap();
    serving.await.unwrap();
    assert_eq!(began.elapsed(), HEAD_WAIT_MAX);
}

#[tokio::test(start_paused = true)]
async fn an_encrypted_response_that_is_not_read_ends_the_connection() {
    // The shorter response is in buffers completely once it is encrypted.
    for path in ["/", "/buffered"] {
        let (stream, serving, _stopping, certificate) = connection();
        let mut stream = encrypted(stream, &certificate).await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let began = Instant::now();
        serving.await.unwrap();
        assert!(began.elapsed() <= 2 * STALL_MAX + Duration::from_secs(1));
    }
}
