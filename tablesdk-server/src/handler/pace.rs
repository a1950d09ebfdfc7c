//! The pace of a query: slices of work, others' turns between them, and an end.
//!
//! The one place where a query meets the runtime and its time; it works without either. What a slice is, the engine knows.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::Work;

/// How long a query may go on, and in which steps.
pub(super) struct Pace {
    started: Instant,
    time_max: Duration,
}

impl Pace {
    /// Starts now. Without any time, a query looks at one thing and ends.
    pub(super) fn new(time_max: Duration) -> Self {
        Self {
            started: Instant::now(),
            time_max,
        }
    }

    /// The work of the next slice.
    pub(super) const fn slice(&self) -> Work {
        if self.time_max.is_zero() {
            Work::least()
        } else {
            Work::slice()
        }
    }

    /// Lets others have their turn, unless the time is up: then nothing happens, and it returns false.
    pub(super) async fn goes_on(&self) -> bool {
        if self.started.elapsed() >= self.time_max {
            return false;
        }
        tokio::task::yield_now().await;
        true
    }
}
