//! The seam through which time enters.

use std::fmt;

use crate::Timestamp;

/// Tells the time: to the client for the dates it signs, to the server for timestamps and expiry.
///
/// A test gives both sides the same clock, and moves it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}
