//! The timestamps of writes: from the clock, and strictly increasing even if the clock is not.
//!
//! Two writes within one tick, or after the clock was set back, still get different timestamps, so
//! that no two versions of an entity have the same ETag. This module never reads the system clock;
//! it uses [`Clock`].

use std::sync::Arc;

use tablesdk_protocol::{Clock, Timestamp};

/// Returns strictly increasing timestamps. The writer owns it.
#[derive(Debug)]
pub(crate) struct MonotonicClock {
    clock: Arc<dyn Clock>,
    last: Timestamp,
}

impl MonotonicClock {
    /// Returns timestamps of a clock that are later than `last`.
    pub(crate) const fn new(clock: Arc<dyn Clock>, last: Timestamp) -> Self {
        Self { clock, last }
    }

    /// The time now, or 100 ns after the last timestamp, whichever is later.
    pub(crate) fn next(&mut self) -> Timestamp {
        self.last = self.clock.now().max(self.last.next());
        self.last
    }

    /// Forgets the last timestamp, so the next one may be earlier. Only for a storage that is
    /// empty.
    pub(crate) const fn restart(&mut self) {
        self.last = Timestamp::MIN;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A clock that stands still until it is set.
    #[derive(Debug)]
    pub(crate) struct ManualClock(Mutex<Timestamp>);

    impl ManualClock {
        pub(crate) fn new(now: &str) -> Arc<Self> {
            Arc::new(Self(Mutex::new(now.parse().unwrap())))
        }

        pub(crate) fn set(&self, now: Timestamp) {
            *self.0.lock().unwrap() = now;
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn timestamps_increase_when_the_clock_does_not() {
        let clock = ManualClock::new("2024-03-15T10:20:30Z");
        let mut monotonic =
            MonotonicClock::new(Arc::clone(&clock) as Arc<dyn Clock>, Timestamp::MIN);
        let text = |timestamp: Timestamp| timestamp.to_string();
        assert_eq!(text(monotonic.next()), "2024-03-15T10:20:30Z");
        assert_eq!(text(monotonic.next()), "2024-03-15T10:20:30.0000001Z");
        clock.set("2024-03-15T09:00:00Z".parse().unwrap());
        assert_eq!(text(monotonic.next()), "2024-03-15T10:20:30.0000002Z");
        clock.set("2024-03-15T10:20:31Z".parse().unwrap());
        assert_eq!(text(monotonic.next()), "2024-03-15T10:20:31Z");
    }
}
