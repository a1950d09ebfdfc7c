//! The clock that a test can freeze and move.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tablesdk_protocol::{Clock, Timestamp};
use tokio::time::Instant;

/// The time of a server, which a test can freeze and move. Clones are the same clock.
///
/// [`TableServer::clock`](crate::TableServer::clock) is the clock of a server: of the timestamps of
/// its entities, of the dates of requests and responses, and of the expiry of signatures and
/// tokens. A client that was created with `TableServiceClient::in_process` uses it, too; one over a
/// socket gets it with `TableServiceClient::builder(…).clock(server.clock())`.
///
/// Unless [`TableServerBuilder::clock`](crate::TableServerBuilder::clock) sets another clock, the
/// time passes as tokio's does. While tokio's time is paused, one virtual time drives everything:
/// `tokio::time::advance` and sleeps move timers and the clock together. [`advance`](Self::advance)
/// moves the clock alone.
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
pub struct VirtualClock(Arc<ClockState>);

struct ClockState {
    source: Source,
    /// True if the clock was ever frozen or moved. Without that, reading it locks nothing.
    was_moved: AtomicBool,
    position: Mutex<Position>,
}

/// Where the clock stands, in ticks.
#[derive(Clone, Copy, Default)]
struct Position {
    /// How far it is from its source, while it runs.
    moved: i64,
    /// Its time, while it is frozen.
    frozen: Option<i64>,
}

impl Position {
    fn ticks(self, source: i64) -> i64 {
        self.frozen
            .unwrap_or_else(|| source.saturating_add(self.moved))
    }
}

enum Source {
    /// A time, and when it was. Time passes as tokio's does.
    Tokio(Timestamp, Instant),
    Clock(Arc<dyn Clock>),
}

/// Where a clock stood.
#[derive(Clone, Copy)]
pub(crate) struct ClockMark {
    time: Timestamp,
    is_frozen: bool,
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
        Self(Arc::new(ClockState {
            source,
            was_moved: AtomicBool::new(false),
            position: Mutex::default(),
        }))
    }

    /// Stops the clock at its time. [`advance`](Self::advance) and [`set`](Self::set) still move
    /// it.
    ///
    /// Timestamps of writes increase nevertheless, by 100 ns each, because two versions of an
    /// entity never have the same ETag.
    pub fn freeze(&self) {
        self.change(|position, source| position.frozen = Some(position.ticks(source)));
    }

    /// Lets the clock run again, from the time where it stands.
    pub fn resume(&self) {
        self.change(|position, source| {
            if let Some(frozen) = position.frozen.take() {
                position.moved = frozen.saturating_sub(source);
            }
        });
    }

    /// Moves the clock forward, whether it is frozen or not.
    pub fn advance(&self, duration: Duration) {
        self.change(|position, source| {
            let now = timestamp(position.ticks(source));
            let later = now.saturating_add(duration).unix_ticks();
            match &mut position.frozen {
                Some(frozen) => *frozen = later,
                None => position.moved = later.saturating_sub(source),
            }
        });
    }

    /// Freezes the clock at a time, which may be earlier. Until [`resume`](Self::resume), only
    /// `set` and [`advance`](Self::advance) move it: sleeps do not, and a
    /// [`Throttle`](super::Throttle) that is used up remains so.
    ///
    /// Timestamps of writes never decrease: an earlier time is that of writes only if it is set
    /// before the first write, or before [`TableServer::reset`](crate::TableServer::reset).
    pub fn set(&self, time: Timestamp) {
        self.change(|position, _| position.frozen = Some(time.unix_ticks()));
    }

    /// The clock as it was at first: it runs, and was not moved.
    pub(crate) fn reset(&self) {
        self.change(|position, _| *position = Position::default());
    }

    /// The time, for [`set_back`](Self::set_back).
    pub(crate) fn mark(&self) -> ClockMark {
        ClockMark {
            time: self.now(),
            is_frozen: self.is_frozen(),
        }
    }

    /// Sets the clock to the time of the mark, from which it runs if it did so then.
    pub(crate) fn set_back(&self, mark: ClockMark) {
        self.set(mark.time);
        if !mark.is_frozen {
            self.resume();
        }
    }

    /// Returns true if the clock is frozen.
    pub fn is_frozen(&self) -> bool {
        self.lock().frozen.is_some()
    }

    /// Changes where the clock stands. The function gets the time of the source.
    fn change(&self, change: impl FnOnce(&mut Position, i64)) {
        let mut position = self.lock();
        // Before the source is read: see `now`.
        self.0.was_moved.store(true, Ordering::SeqCst);
        change(&mut position, self.source_ticks());
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        // If the source panics while it is locked, nothing was changed.
        self.0
            .position
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
        let source = self.source_ticks();
        // The source was read first: if the clock is frozen meanwhile, then at this time or later.
        if !self.0.was_moved.load(Ordering::SeqCst) {
            return timestamp(source);
        }
        let position = self.lock();
        timestamp(position.ticks(self.source_ticks()))
    }
}

fn timestamp(ticks: i64) -> Timestamp {
    Timestamp::from_unix_ticks(ticks).unwrap_or(if ticks < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock")
            .field("now", &self.now())
            .field("is_frozen", &self.is_frozen())
            .finish_non_exhaustive()
    }
}

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
    fn simultaneous_advances_are_all_counted() {
        const STEPS: u32 = 500_000;
        let barrier = std::sync::Barrier::new(2);
        let clock = VirtualClock::starting_at(at("2024-03-15T10:00:00Z"));
        clock.freeze();
        let before = clock.now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    barrier.wait();
                    (0..STEPS).for_each(|_| clock.advance(Duration::from_secs(1)));
                });
            }
        });
        let moved = clock.now().abs_diff(before);
        assert_eq!(moved, Duration::from_secs(2 * u64::from(STEPS)));
    }

    #[test]
    fn a_clock_that_is_moved_forward_never_goes_back() {
        let clock = VirtualClock::starting_at(at("2024-03-15T10:00:00Z"));
        std::thread::scope(|scope| {
            let moves = scope.spawn(|| {
                for _ in 0..300_000 {
                    clock.freeze();
                    clock.advance(Duration::from_secs(3600));
                    clock.resume();
                }
            });
            let mut last = clock.now();
            while !moves.is_finished() {
                let now = clock.now();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
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
