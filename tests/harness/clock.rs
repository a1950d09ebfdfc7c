//! A clock that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tablesdk::Timestamp;
use tablesdk::transport::Clock;

/// Stands still until it is moved. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct TestClock(Arc<AtomicI64>);

impl TestClock {
    /// A clock that stands at that time.
    pub fn at(time: &str) -> Self {
        let time: Timestamp = time.parse().expect("a test knows how to write a time");
        Self(Arc::new(AtomicI64::new(time.unix_ticks())))
    }

    /// Moves it.
    pub fn advance(&self, duration: Duration) {
        let time = self.now_after(duration);
        self.0.store(time.unix_ticks(), Ordering::SeqCst);
    }

    /// The time that it will be after that long.
    pub fn now_after(&self, duration: Duration) -> Timestamp {
        self.now().saturating_add(duration)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let ticks = self.0.load(Ordering::SeqCst);
        Timestamp::from_unix_ticks(ticks).expect("it was a time")
    }
}
