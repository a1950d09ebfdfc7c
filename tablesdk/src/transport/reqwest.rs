//! HTTP by `reqwest`: the only file that names it.

use std::cell::RefCell;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::iter;
use std::panic::resume_unwind;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use reqwest::Url;
use tablesdk_protocol::{Transport, TransportError, TransportFuture};
use tokio::task::JoinSet;

use super::io_thread::IoThread;
use crate::error::Error;

/// Sends requests over HTTP with a [`reqwest::Client`].
///
/// Connecting may take 5 seconds. How long a whole request may take is up to
/// [`RetryPolicy::try_timeout`](crate::RetryPolicy::try_timeout). A response may have 64 MiB.
///
/// ```
/// use std::time::Duration;
/// use tablesdk::TableServiceClient;
/// use tablesdk::transport::ReqwestTransport;
///
/// let http = reqwest::Client::builder()
///     .connect_timeout(Duration::from_secs(2))
///     .redirect(reqwest::redirect::Policy::none())
///     .build()?;
/// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
///     .transport(ReqwestTransport::from_client(http))
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    client: reqwest::Client,
    /// `None`: connections belong to the runtime that sends requests.
    io_thread: Option<IoThread>,
}

impl ReqwestTransport {
    /// A transport with a connection pool of its own. It trusts the authorities that the system
    /// trusts, and uses the proxies that the environment names in `HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY` and `NO_PROXY`.
    ///
    /// # Errors
    ///
    /// When TLS cannot be set up.
    pub fn new() -> Result<Self, Error> {
        Self::build(reqwest::Client::builder())
    }

    fn build(builder: reqwest::ClientBuilder) -> Result<Self, Error> {
        let client = builder
            // A redirected request would have the signature of another URL.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(Error::configuration)?;
        Ok(Self::from_client(client))
    }

    /// A transport over a client of your own, of `reqwest` 0.13: with other certificates, proxies,
    /// resolvers or limits of its pool. It must not follow redirects, since a signature is for one
    /// URL, nor retry requests, since only [`RetryPolicy`](crate::RetryPolicy) knows which requests
    /// may be retried, nor decompress responses without a limit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tablesdk::TableServiceClient;
    /// use tablesdk::transport::ReqwestTransport;
    ///
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// let client = reqwest::Client::builder()
    ///     .redirect(reqwest::redirect::Policy::none())
    ///     .connect_timeout(Duration::from_secs(2))
    ///     .pool_max_idle_per_host(4)
    ///     .no_proxy()
    ///     .build()?;
    /// let service = TableServiceClient::builder(server.endpoint())
    ///     .credential(server.credential())
    ///     .transport(ReqwestTransport::from_client(client))
    ///     .build()?;
    /// service.table("Employees").create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn from_client(client: reqwest::Client) -> Self {
        Self {
            client,
            io_thread: None,
        }
    }

    /// Moves all connections to a thread of this transport, which ends with the last clone of the
    /// transport.
    ///
    /// Use it if the peer is not trusted. By default, connections share the threads of the caller's
    /// runtime. A peer that sends data faster than the client reads it, such as endless
    /// informational responses, can keep a thread busy for up to 50 MB at a time. On a runtime of
    /// one thread, no timer fires meanwhile, and an operation ends later than its
    /// [deadline](crate::RetryPolicy::deadline). On a thread of their own, connections cannot delay
    /// a deadline. The price is that each request passes between two threads.
    ///
    /// Do not use it in tests with paused time: tokio advances the time without waiting for other
    /// threads.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// use tablesdk::TableServiceClient;
    /// use tablesdk::transport::ReqwestTransport;
    ///
    /// let service = TableServiceClient::builder(server.endpoint())
    ///     .credential(server.credential())
    ///     .transport(ReqwestTransport::new()?.on_own_thread()?)
    ///     .build()?;
    /// service.table("Employees").create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the system cannot start a thread.
    pub fn on_own_thread(self) -> Result<Self, Error> {
        let io_thread = Some(IoThread::start().map_err(Error::configuration)?);
        Ok(Self { io_thread, ..self })
    }

    /// A transport with a connection pool of its own, which goes through a proxy, such as
    /// `http://proxy.contoso.example:3128`. A user and a password may stand in front of the host.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tablesdk::transport::ReqwestTransport;
    /// # use tablesdk::TableServiceClient;
    /// # // The bundled server takes requests the way a proxy does.
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let (credential, proxy) = (server.credential(), format!("http://{}", server.local_addr().unwrap()));
    ///
    /// let service = TableServiceClient::builder("http://devstoreaccount1.table.contoso.example")
    ///     .credential(credential)
    ///     .transport(ReqwestTransport::through_proxy(&proxy)?)
    ///     .build()?;
    /// service.table("Employees").create_table().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the string is not the URL of a proxy, or TLS cannot be set up. The error does not
    /// contain the string.
    pub fn through_proxy(proxy: &str) -> Result<Self, Error> {
        // The cause may contain the string, and the string a password.
        let proxy = reqwest::Proxy::all(proxy).map_err(|_| {
            Error::configuration_message("the proxy is not a URL such as http://proxy:3128")
        })?;
        Self::build(reqwest::Client::builder().proxy(proxy))
    }

    async fn send_on(
        &self,
        io_thread: &IoThread,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, TransportError> {
        // Dropping it aborts the exchange.
        let mut task = JoinSet::new();
        let exchange = exchange(self.client.clone(), request);
        task.spawn_on(exchange, io_thread.handle());
        match task.join_next().await {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(error) => Err(TransportError::maybe_sent(error)),
            },
            None => Err(TransportError::not_sent("the I/O thread has ended")),
        }
    }
}

async fn exchange(
    client: reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, TransportError> {
    let request = as_reqwest(request)?;
    let mut answer = client.execute(request).await.map_err(failure)?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    let expected = answer.content_length().unwrap_or_default();
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    // Copied, because a chunk keeps the whole buffer of its connection.
    let mut body = BytesMut::with_capacity(expected.min(RESERVED_BYTES_MAX));
    while let Some(chunk) = answer.chunk().await.map_err(maybe_sent)? {
        if body.len() + chunk.len() > RESPONSE_BODY_BYTES_MAX {
            let error = io::Error::other("the response is larger than 64 MiB");
            return Err(TransportError::maybe_sent(error));
        }
        body.extend_from_slice(&chunk);
    }
    *response.body_mut() = body.freeze();
    Ok(response)
}

/// The same request. `reqwest` can convert one, too, but then reads the whole URL from text.
fn as_reqwest(request: Request<Bytes>) -> Result<reqwest::Request, TransportError> {
    let (parts, body) = request.into_parts();
    let url = url_of(&parts.uri).map_err(TransportError::not_sent)?;
    let mut request = reqwest::Request::new(parts.method, url);
    *request.headers_mut() = parts.headers;
    *request.version_mut() = parts.version;
    *request.body_mut() = Some(body.into());
    Ok(request)
}

/// The same URL. Reading the host is the most work, so that of the last URL is kept.
fn url_of(uri: &Uri) -> Result<Url, impl StdError + Send + Sync + use<>> {
    thread_local! {
        static LAST: RefCell<Option<(Scheme, Authority, Url)>> = const { RefCell::new(None) };
    }
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
        return Url::parse(&uri.to_string());
    };
    let known = LAST.with_borrow(|last| match last {
        Some((of, at, url)) if of == scheme && at.as_str() == authority.as_str() => {
            Some(url.clone())
        }
        _ => None,
    });
    let mut url = match known {
        Some(url) => url,
        None => {
            let url = Url::parse(&format!("{scheme}://{authority}"))?;
            LAST.set(Some((scheme.clone(), authority.clone(), url.clone())));
            url
        }
    };
    url.set_path(uri.path());
    url.set_query(uri.query());
    Ok(url)
}

impl Transport for ReqwestTransport {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        match &self.io_thread {
            Some(io_thread) => Box::pin(self.send_on(io_thread, request)),
            None => Box::pin(exchange(self.client.clone(), request)),
        }
    }
}

fn failure(error: reqwest::Error) -> TransportError {
    if error.is_connect() || error.is_builder() {
        not_sent(error)
    } else {
        maybe_sent(error)
    }
}

// The URL may hold a shared access signature, and the endpoint is in the error of the operation
// anyway.
fn not_sent(error: reqwest::Error) -> TransportError {
    TransportError::not_sent(Reason(error.without_url()))
}

fn maybe_sent(error: reqwest::Error) -> TransportError {
    TransportError::maybe_sent(Reason(error.without_url()))
}

/// The reason of a failure. The outer levels of reqwest and of its HTTP client only say in which
/// phase of a request it occurred.
#[derive(Debug)]
struct Reason(reqwest::Error);

impl Reason {
    fn get(&self) -> &(dyn StdError + 'static) {
        let outermost: &(dyn StdError + 'static) = &self.0;
        let causes = iter::successors(Some(outermost), |error| (*error).source());
        causes.take(PHASES + 1).last().unwrap_or(outermost)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.get(), f)
    }
}

impl StdError for Reason {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.get().source()
    }
}

/// The errors of reqwest and of its HTTP client around the reason.
const PHASES: usize = 2;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most memory that is reserved before the bytes have come. Most pages are smaller.
const RESERVED_BYTES_MAX: usize = 4 * 1024 * 1024;
const RESPONSE_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_url_is_the_one_that_is_read_as_a_whole(
            urls in prop::collection::vec(
                "https?://(127\\.0\\.0\\.1(:10002)?|\\[::1\\]:80|Acct\\.table\\.example(:443)?|a%62c)(/[!-\"$->@-\\[\\]-~]{0,9}){0,3}(\\?[!-\"$-~]{0,12})?",
                1..6,
            ),
        ) {
            for url in urls {
                let Ok(uri) = url.parse::<Uri>() else {
                    continue;
                };
                let (read, expected) = (url_of(&uri).ok(), Url::parse(&uri.to_string()).ok());
                prop_assert_eq!(read, expected, "{}", uri);
            }
        }
    }

    #[test]
    fn a_request_keeps_its_parts() {
        let request = Request::builder()
            .method("MERGE")
            .uri("http://127.0.0.1/people(PartitionKey='caf%C3%A9',RowKey='')?a=b%20c")
            .header("x-ms-date", "today")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        let sent = as_reqwest(request.clone()).unwrap();
        assert_eq!(sent.url().as_str(), request.uri().to_string());
        assert_eq!(sent.method(), request.method());
        assert_eq!(sent.headers(), request.headers());
        assert_eq!(sent.version(), request.version());
        let body = sent.body().and_then(reqwest::Body::as_bytes);
        assert_eq!(body, Some(&b"{}"[..]));
        let relative = Request::builder().uri("/people").body(Bytes::new());
        let refused = as_reqwest(relative.unwrap()).unwrap_err();
        assert_eq!(refused.delivery(), tablesdk_protocol::Delivery::NotSent);
    }
}
