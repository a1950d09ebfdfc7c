//! Facts of a connection that go with each of its requests, as extensions of the head.

use std::net::IpAddr;

/// The address that a request came from. A request without a socket has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The request came over TLS, or without a socket to an `https` URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encrypted;
