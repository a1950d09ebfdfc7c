//! The rate of a bulk run: when the next batch starts. Knows nothing of what the batches are.
//!
//! A service that is busy refuses entities, which are then sent again. A lower rate costs less than
//! these retries, so each busy response lowers it, and time without one raises it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tablesdk_protocol::PartitionKey;
use tokio::time::Instant;

/// The largest rates of a run, in entities a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaxRate {
    pub(crate) of_run: Option<u32>,
    pub(crate) of_partition: Option<u32>,
}

impl MaxRate {
    /// The most entities of one batch: more would arrive at once than the rate allows in a second.
    pub(crate) fn entities_max(self) -> usize {
        let rates = [self.of_run, self.of_partition].into_iter().flatten();
        let lowest = rates.min().and_then(|rate| usize::try_from(rate).ok());
        lowest.unwrap_or(usize::MAX)
    }

    /// Returns true if there is no limit.
    pub(crate) const fn is_none(self) -> bool {
        self.of_run.is_none() && self.of_partition.is_none()
    }
}

/// The rates of a run. The requests of its batches report to it that the service is busy.
#[derive(Clone)]
pub(crate) struct Pace(Arc<Mutex<Rates>>);

struct Rates {
    max: MaxRate,
    of_run: Option<Rate>,
    of_partition: HashMap<PartitionKey, Rate>,
}

impl Pace {
    pub(crate) fn new(max: MaxRate) -> Self {
        let of_run = max.of_run.map(|max| Rate::new(max, Instant::now()));
        Self(Arc::new(Mutex::new(Rates {
            max,
            of_run,
            of_partition: HashMap::new(),
        })))
    }

    /// The earliest time at which a batch of that partition starts.
    pub(crate) fn turn(&self, partition: &PartitionKey) -> Instant {
        let now = Instant::now();
        self.with(|rates| {
            let of_run = rates.of_run.as_ref().map(|rate| rate.free_at);
            let of_partition = rates.of_partition.get(partition).map(|rate| rate.free_at);
            let turns = [of_run, of_partition].into_iter().flatten();
            turns.fold(now, Instant::max)
        })
    }

    /// A batch of that partition starts.
    pub(crate) fn start(&self, partition: &PartitionKey, entities: usize) {
        let now = Instant::now();
        self.each(partition, now, |rate| {
            rate.raise(now);
            rate.occupy(now, entities);
        });
    }

    /// The service was busy when it got a batch of that partition, which is sent again.
    pub(crate) fn busy(&self, partition: &PartitionKey, entities: usize) {
        let now = Instant::now();
        self.each(partition, now, |rate| {
            rate.lower(now);
            rate.occupy(now, entities);
        });
    }

    fn each(&self, partition: &PartitionKey, now: Instant, change: impl Fn(&mut Rate)) {
        self.with(|rates| {
            if let Some(rate) = rates.of_partition(partition, now) {
                change(rate);
            }
            if let Some(rate) = &mut rates.of_run {
                change(rate);
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Rates) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Rates {
    fn of_partition(&mut self, partition: &PartitionKey, now: Instant) -> Option<&mut Rate> {
        let max = self.max.of_partition?;
        if self.of_partition.len() >= PARTITIONS_MAX && !self.of_partition.contains_key(partition) {
            // Of the others, nothing is known that a new one would not have.
            self.of_partition.retain(|_, rate| rate.is_used(now));
        }
        let rate = self.of_partition.entry(partition.clone());
        Some(rate.or_insert_with(|| Rate::new(max, now)))
    }
}

/// Entities a second.
struct Rate {
    max: f64,
    now: f64,
    /// When the entities so far are sent at this rate.
    free_at: Instant,
    lowered_at: Option<Instant>,
    /// The time up to which the rate was raised.
    raised_at: Instant,
}

impl Rate {
    fn new(max: u32, now: Instant) -> Self {
        let max = f64::from(max);
        Self {
            max,
            now: max,
            free_at: now,
            lowered_at: None,
            raised_at: now,
        }
    }

    /// The next batch starts when these entities are sent at the rate.
    fn occupy(&mut self, now: Instant, entities: usize) {
        let entities = u32::try_from(entities).unwrap_or(u32::MAX);
        let time = Duration::from_secs_f64(f64::from(entities) / self.now);
        let from = self.free_at.max(now);
        self.free_at = from.checked_add(time).unwrap_or(from);
    }

    /// Several batches are in flight when the service becomes busy, and say the same.
    fn lower(&mut self, now: Instant) {
        self.raise(now);
        let is_known = |lowered: Instant| now.saturating_duration_since(lowered) < STEP;
        if !self.lowered_at.is_some_and(is_known) {
            self.now = (self.now / 2.0).max(self.max / LOWEST);
            self.lowered_at = Some(now);
        }
        self.raised_at = now;
    }

    fn raise(&mut self, now: Instant) {
        let steps = now.saturating_duration_since(self.raised_at).as_secs();
        if steps > 0 {
            let raise = self.max / STEPS * f64::from(u32::try_from(steps).unwrap_or(u32::MAX));
            self.now = (self.now + raise).min(self.max);
            self.raised_at += Duration::from_secs(steps);
        }
    }

    /// Returns true if the rate is not that of a partition without batches.
    fn is_used(&mut self, now: Instant) -> bool {
        self.raise(now);
        self.free_at > now || self.now < self.max
    }
}

/// The rate is lowered at most once in this time.
const STEP: Duration = Duration::from_secs(1);
/// In so many seconds without a busy response, the rate rises from nothing to its maximum.
const STEPS: f64 = 20.0;
/// The lowest rate is this part of the maximum.
const LOWEST: f64 = 64.0;
/// That many partitions are remembered before those without batches are forgotten.
const PARTITIONS_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep_until};

    use super::*;

    fn partition(key: &str) -> PartitionKey {
        PartitionKey::new(key).unwrap()
    }

    fn pace(of_run: Option<u32>, of_partition: Option<u32>) -> Pace {
        Pace::new(MaxRate {
            of_run,
            of_partition,
        })
    }

    /// The starts of batches of 50 entities, in milliseconds from the first.
    async fn starts(pace: &Pace, partitions: &[&str]) -> Vec<u128> {
        let (mut starts, mut first) = (Vec::new(), None);
        for key in partitions {
            sleep_until(pace.turn(&partition(key))).await;
            let first = *first.get_or_insert_with(Instant::now);
            starts.push(first.elapsed().as_millis());
            pace.start(&partition(key), 50);
        }
        starts
    }

    #[tokio::test(start_paused = true)]
    async fn batches_start_at_the_rate_of_the_run_and_at_that_of_their_partition() {
        for (of_run, of_partition, partitions, expected) in [
            (
                Some(100),
                None,
                ["a", "b", "a", "b"],
                [0, 500, 1_000, 1_500],
            ),
            (None, Some(100), ["a", "b", "a", "b"], [0, 0, 500, 500]),
            // The run is faster than a partition, and slower than two.
            (
                Some(100),
                Some(50),
                ["a", "a", "b", "b"],
                [0, 1_000, 1_500, 2_500],
            ),
        ] {
            let pace = pace(of_run, of_partition);
            assert_eq!(starts(&pace, &partitions).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_service_halves_the_rate_once_a_second_and_time_raises_it_again() {
        let pace = pace(Some(100), None);
        for _ in 0..5 {
            pace.busy(&partition("a"), 0);
        }
        let halved = starts(&pace, &["a", "a"]).await;
        assert_eq!(halved, [0, 1_000], "whatever many say so");
        advance(Duration::from_secs(60)).await;
        assert_eq!(starts(&pace, &["a", "a"]).await, [0, 500], "the maximum");
        for _ in 0..100 {
            pace.busy(&partition("a"), 0);
            advance(Duration::from_secs(1)).await;
        }
        let lowest = starts(&pace, &["a", "a"]).await[1];
        assert!((3_000..=32_000).contains(&lowest), "{lowest} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_again_takes_time_of_others() {
        let pace = pace(Some(100), None);
        pace.busy(&partition("a"), 100);
        let wait = pace.turn(&partition("a")) - Instant::now();
        assert_eq!(wait, Duration::from_secs(2), "at half the rate");
    }

    #[tokio::test(start_paused = true)]
    async fn partitions_without_batches_are_forgotten() {
        let pace = pace(None, Some(1_000));
        pace.busy(&partition("busy"), 1);
        for key in 0..2_000 {
            pace.start(&partition(&key.to_string()), 1);
            advance(Duration::from_millis(2)).await;
        }
        pace.with(|rates| {
            assert!(rates.of_partition.len() <= PARTITIONS_MAX);
            assert!(rates.of_partition.contains_key(&partition("busy")));
        });
    }
}
