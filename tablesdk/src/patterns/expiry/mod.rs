//! Entities that expire one by one, for example login sessions.
//!
//! A field that is marked [`#[table(expires)]`](derive@crate::TableEntity#expires) holds the
//! instant. Reads do not return expired entities unless `including_expired()` asks for them, an
//! insert replaces them, and
//! [`TableClient::clean_up_expired`](crate::TableClient::clean_up_expired) deletes them.

mod clean_up_expired;
pub(crate) mod entry;
pub(crate) mod hides;

pub use clean_up_expired::{CleanUpExpired, ExpiryReport};
pub use entry::Expires;
