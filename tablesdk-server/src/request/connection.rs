//! [`Connection`]: the facts of the connection that a request came from.

use std::net::IpAddr;
use std::sync::Arc;

use crate::request::memory::RequestMemory;

/// The facts of a connection; by default, those of a request without a socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    /// Whether requests come over TLS, or without a socket to an `https` URL.
    pub(crate) is_encrypted: bool,
    /// The memory of the current request; `None` without a socket.
    pub(crate) memory: Option<Arc<RequestMemory>>,
    /// The address of the client; `None` without a socket.
    pub(crate) peer: Option<IpAddr>,
}
