//! The same types as in `idle.rs`, without the feature `network`: a new connection waits until
//! another one ends.

#![expect(clippy::unused_self, reason = "the methods of the other type")]

use std::sync::Arc;

/// The idle connections of a server, of which none is closed for a new one.
#[derive(Debug, Default)]
pub(crate) struct IdleList;

impl IdleList {
    pub(super) const fn enter(&self, _: &Arc<IdleConnection>, _is_authenticated: bool) {}

    pub(super) const fn remove(&self, _: &IdleConnection) {}

    pub(crate) fn evict(&self) -> std::future::Pending<()> {
        std::future::pending()
    }
}

/// A connection in an [`IdleList`].
#[derive(Debug, Default)]
pub(super) struct IdleConnection;

impl IdleConnection {
    pub(super) const fn leave(&self) {}

    pub(super) fn evicted(&self) -> std::future::Pending<()> {
        std::future::pending()
    }
}
