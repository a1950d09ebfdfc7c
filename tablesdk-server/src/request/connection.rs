//! The facts of the connection that a request came from, and what a response makes it do.

use std::net::IpAddr;
use std::sync::Arc;

use crate::request::memory::RequestMemory;

/// The facts of a connection; by default, those of a request without a socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    /// True if requests come over TLS, or without a socket to an `https` URL.
    pub(crate) is_encrypted: bool,
    /// The memory of the current request; `None` without a socket.
    pub(crate) memory: Option<Arc<RequestMemory>>,
    /// The address of the client; `None` without a socket.
    pub(crate) peer: Option<IpAddr>,
}

/// An injected fault of a response that its connection carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// The connection is reset, and nothing is sent.
    #[error("the connection was reset")]
    Reset,
    /// The connection is closed after the head and this many bytes of the body.
    #[error("the connection was closed before the end of the response")]
    Truncated(usize),
}
