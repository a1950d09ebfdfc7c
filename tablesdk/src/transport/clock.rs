//! The clock that a client uses unless it is given another: the only file that names the system's.

use std::time::SystemTime;

use tablesdk_protocol::{Clock, Timestamp};

/// The system's clock.
///
/// ```
/// use tablesdk::Timestamp;
/// use tablesdk::transport::{Clock, SystemClock};
///
/// assert!(SystemClock.now() > "2024-01-01".parse::<Timestamp>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    /// The time now; 1970 where the system's clock is beyond the years 1601 to 9999.
    fn now(&self) -> Timestamp {
        Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
