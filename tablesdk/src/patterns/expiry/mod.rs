//! Entities that expire one by one, for example login sessions: they are hidden from reads, and removed.
//!
//! A field that is marked [`#[table(expires)]`](derive@crate::TableEntity#expires) holds the instant.

pub(crate) mod entry;
pub(crate) mod hides;
mod remove_expired;

pub use entry::Expires;
pub use remove_expired::{ExpiryReport, RemoveExpired};
