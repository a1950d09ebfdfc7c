//! The system clock, which is the default [`Clock`] of a server.
//!
//! This is the only code in this crate that reads the system time. It does not ensure that
//! timestamps strictly increase; `monotonic_clock.rs` does.

use std::time::SystemTime;

use tablesdk_protocol::{Clock, Timestamp};

/// The time of the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where the system's time enters"
        )]
        let now = SystemTime::now();
        // Only a clock set to a year past 9999 has no timestamp: the last one is the nearest.
        Timestamp::try_from(now).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_returns_a_plausible_time() {
        let written: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        assert!(SystemClock.now() > written);
        assert!(SystemClock.now() < Timestamp::MAX);
    }
}
