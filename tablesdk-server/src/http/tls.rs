//! The TLS handshake before the first request of an HTTPS connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Agrees with the other side on how to encrypt. `first` was read from the stream already.
pub(super) async fn accept<S>(
    tls: TlsAcceptor,
    stream: S,
    first: u8,
) -> io::Result<TlsStream<Prefixed<S>>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = Prefixed {
        first: Some(first),
        stream,
    };
    tls.accept(stream).await
}

/// A stream whose first byte was read before.
#[derive(Debug)]
pub(super) struct Prefixed<S> {
    first: Option<u8>,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
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

    use super::super::paced::{HEAD_WAIT_MAX, STALL_MAX};
    use super::super::{Edge, Handler, serve};
    use crate::http::tls_identity::TlsIdentity;
    use crate::request::connection::Encrypted;

    /// Sends a large response to requests over TLS.
    struct Large;

    impl Handler for Large {
        type Admitted = Parts;

        fn admit(&self, head: Parts) -> Result<Parts, Box<Response<Bytes>>> {
            Ok(head)
        }

        async fn answer(&self, head: Parts, _body: Bytes) -> Response<Bytes> {
            assert!(head.extensions.get::<Encrypted>().is_some());
            let length = if head.uri == "/buffered" {
                LARGE / 20
            } else {
                LARGE
            };
            Response::new(vec![b'x'; length].into())
        }

        fn refuse(&self, head: Parts, error: &ServiceError) -> Response<Bytes> {
            self.refuse_head(&head, error)
        }

        fn refuse_head(&self, _head: &Parts, error: &ServiceError) -> Response<Bytes> {
            panic!("{error}")
        }

        fn refuse_unread(&self, error: &ServiceError) -> Response<Bytes> {
            panic!("{error}")
        }
    }

    const LARGE: usize = 1024 * 1024;

    /// A connection, the task that serves it, what keeps that going, and the certificate that it shows.
    fn connection() -> (
        DuplexStream,
        JoinHandle<()>,
        watch::Sender<bool>,
        rcgen::Certificate,
    ) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let edge = Edge::new(Arc::new(Large), HeaderValue::from_static("default:1"));
        let (stream, server) = duplex(16 * 1024);
        let (stopping, receiver) = watch::channel(false);
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let edge = Arc::new(edge.encrypted(Some(identity)));
        let serving = tokio::spawn(serve(server, peer, edge, receiver));
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
    async fn answers_come_whole_and_connections_end_in_good_order() {
        let (stream, serving, stopping, certificate) = connection();
        let mut stream = encrypted(stream, &certificate).await;
        for _ in 0..3 {
            stream.write_all(REQUEST).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(stream.read_u8().await.unwrap());
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
    async fn whoever_does_not_take_what_is_encrypted_loses_the_connection() {
        // All of the shorter answer lies in buffers once it is encrypted.
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
}
