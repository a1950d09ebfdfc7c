//! The interface between the client and the transport of its requests: an HTTP stack, a server in
//! the same process, or a test that loses responses.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

use crate::auth::SharedKey;
use crate::path::Endpoint;
use crate::types::Clock;

/// The future of [`Transport::send`]: a response of any status, or the reason why there is none.
pub type TransportFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, TransportError>> + Send + 'a>>;

/// Sends requests to the service and returns complete responses.
///
/// An implementation neither retries nor follows redirects, and does not change path, query or
/// headers: they are signed.
///
/// ```
/// # use tablesdk_protocol::{Transport, TransportFuture};
/// use bytes::Bytes;
/// use http::Request;
///
/// /// Says what is sent, and has another transport send it.
/// #[derive(Debug)]
/// struct Logged<T>(T);
///
/// impl<T: Transport> Transport for Logged<T> {
///     fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
///         // No more of the URL than its path: there may be a signature behind it.
///         eprintln!("{} {}", request.method(), request.uri().path());
///         self.0.send(request)
///     }
/// }
/// ```
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends one request. Any status is an `Ok`; an `Err` means that there is no response.
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_>;
}

/// A shared transport is one, too.
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        T::send(self, request)
    }
}

/// A server in this process, which a client reaches without a socket: what a client needs to know
/// of it.
///
/// The bundled server implements it. A test may implement it for a server of its own, for instance
/// one that wraps the transport of the bundled server.
pub trait InProcessServer {
    /// The URL of the account.
    fn endpoint(&self) -> Endpoint;

    /// Name and key of the account.
    fn credential(&self) -> SharedKey;

    /// A transport that calls the server directly.
    fn transport(&self) -> Arc<dyn Transport>;

    /// The clock of the server, by which its client dates and signs requests.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Returns true if the server behaves like Azure Cosmos DB for Table, which needs some requests
    /// in another form.
    fn is_cosmos_db(&self) -> bool {
        false
    }
}

/// The reason why a request has no response, and whether the service may have received it.
///
/// ```
/// # use tablesdk_protocol::{Delivery, TransportError};
/// let refused = TransportError::not_sent("connection refused");
/// assert_eq!(refused.delivery(), Delivery::NotSent);
/// // The service may have carried it out.
/// let lost = TransportError::maybe_sent("the connection was reset");
/// assert_eq!(lost.delivery(), Delivery::MaybeSent);
/// ```
#[derive(Debug)]
pub struct TransportError {
    delivery: Delivery,
    source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    /// The request did not leave: no connection could be made.
    pub fn not_sent(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            delivery: Delivery::NotSent,
            source: source.into(),
        }
    }

    /// The request left, at least in part: the service may have carried it out.
    pub fn maybe_sent(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            delivery: Delivery::MaybeSent,
            source: source.into(),
        }
    }

    /// The delivery of the request: certainly not sent, or possibly sent.
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.delivery {
            Delivery::NotSent => "the request could not be sent",
            Delivery::MaybeSent => "the request was sent, and no response arrived",
        })
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}

/// The delivery of a request without a response: certainly not sent, or possibly sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a request was possibly sent or it was not"
)]
pub enum Delivery {
    /// Nothing was sent: a retry is safe for every operation.
    NotSent,
    /// Something may have been sent: the operation may have been carried out.
    MaybeSent,
}
