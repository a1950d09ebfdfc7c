//! HTTP by `reqwest`: the only file that names it.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use tablesdk_protocol::{Transport, TransportError, TransportFuture};

use crate::Error;

/// Sends requests over HTTP with a [`reqwest::Client`].
///
/// Connecting may take 5 seconds. How long a whole request may take is up to [`Retry::try_timeout`](crate::Retry::try_timeout).
/// An answer may be 64 MiB large.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
}

impl ReqwestTransport {
    /// A transport with a connection pool of its own.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn new() -> Result<Self, Error> {
        let client = reqwest::Client::builder()
            // A redirect would leave with a signature that is made for another URL.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(Error::configuration)?;
        Ok(Self { client })
    }

    /// A transport over a client of your own. It must not follow redirects.
    pub const fn from_client(client: reqwest::Client) -> Self {
        Self { client }
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let request = reqwest::Request::try_from(request).map_err(not_sent)?;
        let mut answer = self.client.execute(request).await.map_err(failure)?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(maybe_sent)? {
            if body.len() + chunk.len() > RESPONSE_BODY_BYTES_MAX {
                let error = io::Error::other("the answer is larger than 64 MiB");
                return Err(TransportError::maybe_sent(error));
            }
            body.extend_from_slice(&chunk);
        }
        *response.body_mut() = body.freeze();
        Ok(response)
    }
}

impl Transport for ReqwestTransport {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(self.exchange(request))
    }
}

fn failure(error: reqwest::Error) -> TransportError {
    if error.is_connect() || error.is_builder() {
        not_sent(error)
    } else {
        maybe_sent(error)
    }
}

// The URL may hold a shared access signature, and is in the error of the operation anyway.
fn not_sent(error: reqwest::Error) -> TransportError {
    TransportError::not_sent(error.without_url())
}

fn maybe_sent(error: reqwest::Error) -> TransportError {
    TransportError::maybe_sent(error.without_url())
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
