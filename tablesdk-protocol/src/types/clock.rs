//! The seam through which time enters.

use std::fmt;
use std::sync::Arc;

use crate::types::Timestamp;

/// The current time: for the dates that the client signs, for timestamps and expiry on the server.
///
/// A test gives both sides the same clock, and moves it.
///
/// ```
/// # use tablesdk_protocol::{Clock, Timestamp};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// #[derive(Debug)]
/// struct Manual(Mutex<Timestamp>);
///
/// impl Clock for Manual {
///     fn now(&self) -> Timestamp {
///         *self.0.lock().unwrap()
///     }
/// }
///
/// // For the builders of the client and of the server.
/// let clock = Arc::new(Manual(Mutex::new("2024-03-15T10:00:00Z".parse()?)));
/// let later = clock.now().saturating_add(Duration::from_secs(3600));
/// *clock.0.lock().unwrap() = later;
/// assert_eq!(clock.now().to_string(), "2024-03-15T11:00:00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
