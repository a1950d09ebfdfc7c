//! Facts of a connection, which are extensions of the head of each of its requests.

#[cfg(test)]
use std::net::IpAddr;

/// The address that a request came from, if it has no [`RequestMemory`](crate::request::memory::RequestMemory), which knows the
/// address as well.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The request came over TLS, or without a socket to an `https` URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encrypted;
