//! Concurrent reads of single records share round trips.
//!
//! A round trip costs the database and the server about the same for one record as for many. So only a few run at once: a read that
//! comes while they do waits for the first of them to end, and is then sent together with all others that wait. The farther away the
//! database is, the more round trips there are, so that a read does not wait much longer than without others.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::{Instant, sleep};

use super::FetchedRecord;
use crate::storage::StorageError;

/// The reads of one storage.
pub(crate) struct GroupedReads {
    /// One for each round trip at once.
    permits: Semaphore,
    round_trips_max: usize,
    wait_max: Duration,
    state: Mutex<State>,
}

struct State {
    waiting: Vec<Waiting>,
    /// How many permits there are.
    permits: usize,
    /// How many of them were added because reads waited for long.
    extra: usize,
    fastest: Fastest,
}

type Records = Result<Vec<FetchedRecord>, StorageError>;

/// A read that is in no round trip yet.
struct Waiting {
    keys: Vec<Vec<u8>>,
    /// Closed if nothing waits any more.
    respond: oneshot::Sender<Records>,
}

impl GroupedReads {
    /// With so many round trips at once, for which a read waits up to so long.
    pub(crate) fn new(round_trips_max: usize, wait_max: Duration) -> Self {
        Self {
            permits: Semaphore::new(round_trips_max),
            round_trips_max,
            wait_max,
            state: Mutex::new(State {
                waiting: Vec::new(),
                permits: round_trips_max,
                extra: 0,
                fastest: Fastest::new(Instant::now()),
            }),
        }
    }

    /// Reads records, at a moment after the call.
    pub(crate) async fn read<F: Future<Output = Records> + Send>(
        &self,
        keys: Vec<Vec<u8>>,
        fetch: impl Fn(Vec<Vec<u8>>) -> F + Sync,
    ) -> Records {
        let mut pauses = self.wait_max.as_millis() / PAUSE.as_millis();
        // Its timer is not set before it is polled.
        let mut pause = pin!(sleep(PAUSE));
        loop {
            let (respond, mut response) = oneshot::channel();
            self.state().waiting.push(Waiting {
                keys: keys.clone(),
                respond,
            });
            // Reads that did not fit into a group stay in the queue, so there may be several turns.
            let response = loop {
                tokio::select! {
                    biased;
                    response = &mut response => break response,
                    permit = self.permits.acquire() => {
                        let permit = permit.map_err(|_| StorageError::Closed)?;
                        self.read_group(permit, &fetch).await;
                    }
                    () = &mut pause => {
                        let Some(left) = pauses.checked_sub(1) else {
                            let cause = "the reads before it have not ended in time".into();
                            return Err(StorageError::Unavailable { cause });
                        };
                        pauses = left;
                        pause.as_mut().reset(Instant::now() + PAUSE);
                        self.permit_one_more();
                    }
                }
            };
            // Without a response, the request that read for this one has ended early.
            if let Ok(records) = response {
                return records;
            }
        }
    }

    /// Reads what waits, oldest first.
    async fn read_group<F: Future<Output = Records> + Send>(
        &self,
        permit: SemaphorePermit<'_>,
        fetch: &(impl Fn(Vec<Vec<u8>>) -> F + Sync),
    ) {
        let group = self.take_group();
        if group.is_empty() {
            return;
        }
        let started = Instant::now();
        let is_read = match <[Waiting; 1]>::try_from(group) {
            Ok([only]) => {
                let records = fetch(only.keys).await;
                let is_read = records.is_ok();
                // It may have ended meanwhile.
                let _ = only.respond.send(records);
                is_read
            }
            Err(group) => {
                let keys = group.iter().flat_map(|read| read.keys.iter().cloned());
                let mut keys: Vec<_> = keys.collect();
                keys.sort_unstable();
                keys.dedup();
                let records = fetch(keys).await;
                respond(group, &records);
                records.is_ok()
            }
        };
        // The time of a failure says nothing of the database.
        if is_read {
            self.adapt(permit, started);
        }
    }

    /// Ends a round trip, and permits as many as one that takes so long needs.
    fn adapt(&self, permit: SemaphorePermit<'_>, started: Instant) {
        let now = Instant::now();
        let mut state = self.state();
        if state.fastest.starts_period(now) {
            state.extra = 0;
        }
        let fastest = state.fastest.observe(now - started);
        let wanted = fastest.as_micros() / WAIT_FOR_OTHERS.as_micros() + 1;
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let wanted = wanted.saturating_add(state.extra);
        let wanted = wanted.min(self.round_trips_max);
        if wanted < state.permits {
            permit.forget();
            state.permits -= 1;
        } else {
            self.permits.add_permits(wanted - state.permits);
            state.permits = wanted;
        }
    }

    /// Lets a read that has waited for long go on: a connection that is lost without notice must not hold up all reads.
    fn permit_one_more(&self) {
        let mut state = self.state();
        if state.permits < self.round_trips_max {
            self.permits.add_permits(1);
            state.permits += 1;
            state.extra += 1;
        }
    }

    /// The reads of the next round trip.
    fn take_group(&self) -> Vec<Waiting> {
        let waiting = &mut self.state().waiting;
        waiting.retain(|read| !read.respond.is_closed());
        let mut keys = 0;
        let fitting = waiting.iter().take_while(|read| {
            keys += read.keys.len();
            keys <= KEYS_MAX
        });
        // One that is too large alone is read alone.
        let count = fitting.count().max(1).min(waiting.len());
        waiting.drain(..count).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of the fastest round trip of the last seconds: what the network and the database take when nothing is in the way.
struct Fastest {
    /// Of this period, and of the one before it.
    times: [Duration; 2],
    period_started: Instant,
}

impl Fastest {
    const fn new(now: Instant) -> Self {
        Self {
            times: [Duration::MAX; 2],
            period_started: now,
        }
    }

    /// Whether a period ends now.
    fn starts_period(&mut self, now: Instant) -> bool {
        let is_over = now - self.period_started > PERIOD;
        if is_over {
            self.times = [Duration::MAX, self.times[0]];
            self.period_started = now;
        }
        is_over
    }

    /// Returns the fastest time, with this one.
    fn observe(&mut self, time: Duration) -> Duration {
        self.times[0] = self.times[0].min(time);
        self.times[0].min(self.times[1])
    }
}

/// Gives each read of a group its records.
fn respond(group: Vec<Waiting>, records: &Records) {
    let records = records.as_deref().map(|records| {
        let pairs = records.iter().map(|record| (record.key.as_slice(), record));
        pairs.collect::<HashMap<_, _>>()
    });
    for read in group {
        let own = records.as_ref().map_err(|error| (*error).clone());
        let own = own.map(|records| {
            let own = read
                .keys
                .iter()
                .filter_map(|key| records.get(key.as_slice()));
            own.map(|record| (*record).clone()).collect()
        });
        // It may have ended meanwhile.
        let _ = read.respond.send(own);
    }
}

/// How long a read waits for others, if the database is as fast as it was lately.
const WAIT_FOR_OTHERS: Duration = Duration::from_micros(250);

/// How long a read waits before there is another round trip for it.
const PAUSE: Duration = Duration::from_millis(100);

const PERIOD: Duration = Duration::from_secs(5);

/// A round trip reads at most so many keys, so that a read does not wait long for the others. A large read has more.
const KEYS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use tokio::sync::Notify;

    use super::*;

    /// A database that responds when the test says so.
    #[derive(Default)]
    struct Database {
        proceed: Notify,
        round_trips: AtomicUsize,
    }

    impl Database {
        async fn fetch(&self, keys: Vec<Vec<u8>>) -> Records {
            self.round_trips.fetch_add(1, Ordering::Relaxed);
            self.proceed.notified().await;
            if keys.contains(&b"lost".to_vec()) {
                return Err(StorageError::Closed);
            }
            let records = keys.into_iter().map(|key| FetchedRecord {
                record: Some(Bytes::copy_from_slice(&key)),
                key,
                version: 1,
            });
            Ok(records.collect())
        }
    }

    struct Bench {
        reads: GroupedReads,
        database: Database,
    }

    impl Bench {
        fn new() -> Arc<Self> {
            Self::with_round_trips(1)
        }

        fn with_round_trips(max: usize) -> Arc<Self> {
            Arc::new(Self {
                reads: GroupedReads::new(max, WAIT_MAX),
                database: Database::default(),
            })
        }

        /// Starts a read, up to where it waits.
        async fn start(self: &Arc<Self>, keys: &[&str]) -> tokio::task::JoinHandle<Records> {
            let bench = Arc::clone(self);
            let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
            let read = tokio::spawn(async move {
                let fetch = |keys| bench.database.fetch(keys);
                bench.reads.read(keys, fetch).await
            });
            tokio::task::yield_now().await;
            read
        }

        fn round_trips(&self) -> usize {
            self.database.round_trips.load(Ordering::Relaxed)
        }
    }

    const WAIT_MAX: Duration = Duration::from_secs(5);

    fn names(records: Records) -> Vec<String> {
        let records = records.unwrap().into_iter();
        let names = records.map(|record| String::from_utf8(record.key).unwrap());
        names.collect()
    }

    #[tokio::test]
    async fn reads_that_wait_share_a_round_trip_and_get_their_own_records() {
        let bench = Bench::new();
        let first = bench.start(&["a", "t"]).await;
        let second = bench.start(&["b", "t"]).await;
        let third = bench.start(&["t", "c"]).await;
        assert_eq!(bench.round_trips(), 1);
        bench.database.proceed.notify_one();
        assert_eq!(names(first.await.unwrap()), ["a", "t"]);
        bench.database.proceed.notify_one();
        assert_eq!(names(second.await.unwrap()), ["b", "t"]);
        assert_eq!(names(third.await.unwrap()), ["t", "c"]);
        assert_eq!(bench.round_trips(), 2);
    }

    #[tokio::test]
    async fn all_reads_of_a_round_trip_that_failed_fail() {
        let bench = Bench::new();
        let first = bench.start(&["a"]).await;
        let second = bench.start(&["b"]).await;
        let third = bench.start(&["lost"]).await;
        bench.database.proceed.notify_one();
        assert_eq!(names(first.await.unwrap()), ["a"]);
        bench.database.proceed.notify_one();
        assert_eq!(second.await.unwrap().unwrap_err(), StorageError::Closed);
        assert_eq!(third.await.unwrap().unwrap_err(), StorageError::Closed);
    }

    #[tokio::test]
    async fn a_read_goes_on_when_the_one_that_read_for_it_ends_early() {
        let bench = Bench::new();
        let first = bench.start(&["a"]).await;
        let leader = bench.start(&["b"]).await;
        let other = bench.start(&["c"]).await;
        bench.database.proceed.notify_one();
        assert_eq!(names(first.await.unwrap()), ["a"]);
        tokio::task::yield_now().await;
        assert_eq!(bench.round_trips(), 2);
        leader.abort();
        assert!(leader.await.is_err());
        bench.database.proceed.notify_one();
        assert_eq!(names(other.await.unwrap()), ["c"]);
        assert_eq!(bench.round_trips(), 3);
    }

    #[tokio::test]
    async fn a_read_that_ended_is_not_sent() {
        let bench = Bench::new();
        let first = bench.start(&["a"]).await;
        let ended = bench.start(&["lost"]).await;
        let last = bench.start(&["b"]).await;
        ended.abort();
        assert!(ended.await.is_err());
        bench.database.proceed.notify_one();
        assert_eq!(names(first.await.unwrap()), ["a"]);
        bench.database.proceed.notify_one();
        assert_eq!(names(last.await.unwrap()), ["b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hung_round_trip_does_not_hold_up_other_reads() {
        let bench = Bench::with_round_trips(2);
        // As on a database nearby.
        bench.reads.permits.forget_permits(1);
        bench.reads.state().permits = 1;
        let hung = bench.start(&["a"]).await;
        let other = bench.start(&["b"]).await;
        assert_eq!(bench.round_trips(), 1);
        sleep(PAUSE * 3 / 2).await;
        assert_eq!(bench.round_trips(), 2);
        hung.abort();
        assert!(hung.await.is_err());
        bench.database.proceed.notify_one();
        assert_eq!(names(other.await.unwrap()), ["b"]);
        assert_eq!(
            bench.reads.permits.available_permits(),
            bench.reads.state().permits
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_does_not_wait_for_ever() {
        let bench = Bench::new();
        let _hung = bench.start(&["a"]).await;
        let started = Instant::now();
        let late = bench.start(&["b"]).await.await.unwrap();
        assert!(matches!(late, Err(StorageError::Unavailable { .. })));
        assert!((WAIT_MAX..WAIT_MAX + PAUSE * 2).contains(&started.elapsed()));
    }

    #[test]
    fn the_time_of_a_round_trip_is_the_fastest_of_the_last_periods() {
        let start = Instant::now();
        let mut fastest = Fastest::new(start);
        let millis = Duration::from_millis;
        assert_eq!(fastest.observe(millis(9)), millis(9));
        assert_eq!(fastest.observe(millis(2)), millis(2));
        assert!(!fastest.starts_period(start + PERIOD));
        assert_eq!(fastest.observe(millis(9)), millis(2));
        let second = start + PERIOD * 11 / 10;
        assert!(fastest.starts_period(second));
        assert_eq!(fastest.observe(millis(8)), millis(2));
        assert!(fastest.starts_period(second + PERIOD * 11 / 10));
        assert_eq!(fastest.observe(millis(9)), millis(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_far_away_has_more_round_trips_at_once() {
        for (millis, expected) in [(0, 1), (1, 5), (20, 8)] {
            let reads = GroupedReads::new(8, WAIT_MAX);
            for _ in 0..10 {
                let fetch = async |_| {
                    sleep(Duration::from_millis(millis)).await;
                    Ok(Vec::new())
                };
                reads.read(vec![b"a".to_vec()], fetch).await.unwrap();
            }
            let permits = reads.permits.available_permits();
            assert_eq!(permits, expected, "{millis} ms");
            assert_eq!(permits, reads.state().permits);
        }
    }

    #[tokio::test]
    async fn reads_beyond_a_group_are_in_the_next_ones() {
        let bench = Bench::new();
        let first = bench.start(&["a"]).await;
        let many: Vec<_> = (0..=KEYS_MAX).map(|number| number.to_string()).collect();
        let large: Vec<_> = many.iter().map(String::as_str).collect();
        let half = &large[..=KEYS_MAX / 2];
        let reads = [
            bench.start(half).await,
            bench.start(half).await,
            bench.start(&large).await,
        ];
        bench.database.proceed.notify_one();
        assert_eq!(names(first.await.unwrap()), ["a"]);
        for (read, count) in reads.into_iter().zip([half.len(), half.len(), large.len()]) {
            bench.database.proceed.notify_one();
            assert_eq!(read.await.unwrap().unwrap().len(), count);
        }
        assert_eq!(bench.round_trips(), 4);
    }
}
