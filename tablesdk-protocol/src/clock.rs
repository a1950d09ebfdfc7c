//! The seam through which time enters.

use std::fmt;
use std::sync::Arc;

use crate::Timestamp;

/// Tells the time: to the client for the dates it signs, to the server for timestamps and expiry.
///
/// A test gives both sides the same clock, and moves it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// A shared clock is one, too.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        C::now(self)
    }
}
