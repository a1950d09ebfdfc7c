//! Facts of a connection, which are extensions of the head of each of its requests.

use std::net::IpAddr;

/// The address that a request came from. A request without a socket has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The request came over TLS, or without a socket to an `https` URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encrypted;
