//! The clock that a test can freeze and move.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tablesdk_protocol::{Clock, Timestamp};
use tokio::time::Instant;

/// The time of a server, which a test can freeze and move. Clones are the same clock.
///
/// [`TableServer::clock`](crate::TableServer::clock) is the clock of a server: of the timestamps of its entities, of the dates of
/// requests, and of the expiry of signatures and tokens. A client that was created with `TableServiceClient::in_process` uses it, too; one
/// over a socket gets it with `TableServiceClient::builder(…).clock(server.clock())`.
///
/// Unless [`TableServerBuilder::clock`](crate::TableServerBuilder::clock) sets another clock, the time passes as tokio's does. While tokio's
/// time is paused, one virtual time drives everything: `tokio::time::advance` and sleeps move timers and the clock together.
/// [`advance`](Self::advance) moves the clock alone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use tablesdk_server::{Clock as _, TableServer};
///
/// let server = TableServer::in_process();
/// let clock = server.clock();
/// let began = clock.now();
/// tokio::time::sleep(Duration::from_secs(3600)).await; // takes no time
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), began.saturating_add(Duration::from_secs(3660)));
/// # }
/// ```
#[derive(Clone)]
pub struct VirtualClock(Arc<State>);

struct State {
    source: Source,
    /// How far the clock was moved, in ticks.
    moved: AtomicI64,
    /// The time of a frozen clock in ticks, or [`RUNS`].
    frozen: AtomicI64,
}

enum Source {
    /// A time, and when it was. Time passes as tokio's does.
    Tokio(Timestamp, Instant),
    Clock(Arc<dyn Clock>),
}

impl VirtualClock {
    /// Runs with tokio's time from a time on.
    pub(crate) fn starting_at(time: Timestamp) -> Self {
        Self::of(Source::Tokio(time, Instant::now()))
    }

    /// Runs with another clock.
    pub(crate) fn over(clock: Arc<dyn Clock>) -> Self {
        Self::of(Source::Clock(clock))
    }

    fn of(source: Source) -> Self {
        Self(Arc::new(State {
            source,
            moved: AtomicI64::new(0),
            frozen: AtomicI64::new(RUNS),
        }))
    }

    /// Stops the clock at its time. [`advance`](Self::advance) and [`set`](Self::set) still move it.
    ///
    /// Timestamps of writes increase nevertheless, by 100 ns each, because two versions of an entity never have the same ETag.
    pub fn freeze(&self) {
        self.set(self.now());
    }

    /// Lets the clock run again, from the time where it stands.
    pub fn resume(&self) {
        let frozen = self.0.frozen.swap(RUNS, Ordering::SeqCst);
        if frozen != RUNS {
            let difference = frozen.saturating_sub(self.source_ticks());
            self.0.moved.store(difference, Ordering::SeqCst);
        }
    }

    /// Moves the clock forward, whether it is frozen or not.
    pub fn advance(&self, duration: Duration) {
        let later = self.now().saturating_add(duration);
        if self.is_frozen() {
            self.set(later);
        } else {
            let difference = later.unix_ticks().saturating_sub(self.source_ticks());
            self.0.moved.store(difference, Ordering::SeqCst);
        }
    }

    /// Freezes the clock at a time, which may be earlier.
    pub fn set(&self, time: Timestamp) {
        self.0.frozen.store(time.unix_ticks(), Ordering::SeqCst);
    }

    /// The clock as it was at first: it runs, and was not moved.
    pub(crate) fn reset(&self) {
        self.0.moved.store(0, Ordering::SeqCst);
        self.0.frozen.store(RUNS, Ordering::SeqCst);
    }

    /// Whether the clock is frozen.
    pub fn is_frozen(&self) -> bool {
        self.0.frozen.load(Ordering::SeqCst) != RUNS
    }

    fn source_ticks(&self) -> i64 {
        let now = match &self.0.source {
            Source::Tokio(start, at) => start.saturating_add(at.elapsed()),
            Source::Clock(clock) => clock.now(),
        };
        now.unix_ticks()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let ticks = match self.0.frozen.load(Ordering::Relaxed) {
            RUNS => self
                .source_ticks()
                .saturating_add(self.0.moved.load(Ordering::Relaxed)),
            frozen => frozen,
        };
        Timestamp::from_unix_ticks(ticks).unwrap_or(if ticks < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock")
            .field("now", &self.now())
            .field("is_frozen", &self.is_frozen())
            .finish_non_exhaustive()
    }
}

/// No time of a frozen clock: it is before the first timestamp.
const RUNS: i64 = i64::MIN;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_the_time_of_tokio() {
        let clock = VirtualClock::starting_at(at("2024-03-15T10:00:00Z"));
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now(), at("2024-03-15T10:01:30Z"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_clock_moves_only_by_hand() {
        let clock = VirtualClock::starting_at(at("2024-03-15T10:00:00Z"));
        clock.freeze();
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now(), at("2024-03-15T10:00:00Z"));
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), at("2024-03-15T10:00:01Z"));
        clock.resume();
        assert_eq!(clock.now(), at("2024-03-15T10:00:01Z"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), at("2024-03-15T10:00:02Z"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_clock_can_be_moved_more_than_once() {
        let clock = VirtualClock::starting_at(at("2024-03-15T10:00:00Z"));
        for _ in 0..2 {
            clock.advance(Duration::from_secs(3600));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(clock.now(), at("2024-03-15T12:00:02Z"));
        clock.set(at("2000-01-01T00:00:00Z"));
        clock.resume();
        assert_eq!(clock.now(), at("2000-01-01T00:00:00Z"));
    }

    #[test]
    fn a_clock_over_another_follows_it() {
        let source = VirtualClock::over(Arc::new(VirtualClock::starting_at(at(
            "2024-03-15T10:00:00Z",
        ))));
        source.set(at("9999-12-31T23:00:00Z"));
        let clock = VirtualClock::over(Arc::new(source));
        clock.advance(Duration::from_secs(24 * 3600));
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
