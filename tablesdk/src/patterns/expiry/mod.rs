//! Entities that expire one by one, for example login sessions.
//!
//! A field that is marked [`#[table(expires)]`](derive@crate::TableEntity#expires) holds the instant. Reads do not return expired entities
//! unless `including_expired()` asks for them, an insert replaces them, and [`TableClient::remove_expired`](crate::TableClient::remove_expired)
//! deletes them.

pub(crate) mod entry;
pub(crate) mod hides;
mod remove_expired;

pub use entry::Expires;
pub use remove_expired::{ExpiryReport, RemoveExpired};
