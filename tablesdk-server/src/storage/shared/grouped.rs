//! Concurrent reads of single records share round trips.
//!
//! A round trip costs the database and the server about the same for one record as for many. So
//! only a few run at once: a read that comes while they do waits for the first of them to end, and
//! is then sent together with all others that wait. The farther away the database is, the more
//! round trips there are, so that a read does not wait much longer than without others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::FetchedRecord;
use crate::storage::StorageError;

/// A reader of the records of a group in one round trip.
pub(crate) trait ReadRecords: Send + Sync + 'static {
    fn records(&self, keys: Vec<Vec<u8>>) -> impl Future<Output = Records> + Send;
}

pub(crate) type Records = Result<Vec<FetchedRecord>, StorageError>;

/// The reads of one storage.
pub(crate) struct GroupedReads<S> {
    source: Arc<S>,
    round_trips_max: usize,
    state: Mutex<GroupState>,
}

struct GroupState {
    waiting: Vec<Waiting>,
    /// The workers, and when the round trip of each began.
    workers: Vec<(u64, Instant)>,
    fastest: Fastest,
    last_id: u64,
}

impl GroupState {
    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns true if there are enough workers beside this one. A worker whose round trip hangs
    /// does not count.
    fn has_enough_beside(&self, worker: u64, now: Instant) -> bool {
        let others = self.workers.iter().filter(|(id, _)| *id != worker);
        let active = others.filter(|(_, began)| now - *began <= HUNG);
        active.count() >= self.fastest.round_trips()
    }
}

/// A read that is in no round trip yet.
struct Waiting {
    id: u64,
    keys: Vec<Vec<u8>>,
    /// Closed if nothing waits any more.
    respond: oneshot::Sender<Records>,
}

impl<S: ReadRecords> GroupedReads<S> {
    /// With at most so many round trips at once.
    pub(crate) fn new(source: Arc<S>, round_trips_max: usize) -> Arc<Self> {
        Arc::new(Self {
            source,
            round_trips_max,
            state: Mutex::new(GroupState {
                waiting: Vec::new(),
                workers: Vec::new(),
                fastest: Fastest::new(Instant::now()),
                last_id: 0,
            }),
        })
    }

    /// Reads records, at a moment after the call. Returns nothing if there is no response before
    /// the deadline.
    pub(crate) async fn read(
        self: &Arc<Self>,
        keys: Vec<Vec<u8>>,
        deadline: Instant,
    ) -> Option<Records> {
        loop {
            let (respond, mut response) = oneshot::channel();
            let id = self.add(keys.clone(), respond);
            loop {
                let patience = (Instant::now() + PATIENCE).min(deadline);
                match timeout_at(patience, &mut response).await {
                    Ok(Ok(records)) => return Some(records),
                    // The worker has ended early.
                    Ok(Err(_)) => break,
                    Err(_) if Instant::now() >= deadline => return None,
                    // Its round trip may be on a connection that was lost without notice: it is
                    // sent again.
                    Err(_) if !self.is_waiting(id) => break,
                    Err(_) => self.start_worker(self.state()),
                }
            }
        }
    }

    /// How many reads are in no round trip yet.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn add(self: &Arc<Self>, keys: Vec<Vec<u8>>, respond: oneshot::Sender<Records>) -> u64 {
        let mut state = self.state();
        let id = state.new_id();
        state.waiting.push(Waiting { id, keys, respond });
        self.start_worker(state);
        id
    }

    fn is_waiting(&self, id: u64) -> bool {
        self.state().waiting.iter().any(|read| read.id == id)
    }

    /// Starts a worker for what waits, unless there are enough.
    fn start_worker(self: &Arc<Self>, mut state: MutexGuard<'_, GroupState>) {
        let now = Instant::now();
        let worker = state.new_id();
        if state.waiting.is_empty()
            || state.workers.len() >= self.round_trips_max
            || state.has_enough_beside(worker, now)
        {
            return;
        }
        state.workers.push((worker, now));
        drop(state);
        let end = EndOfWorker {
            reads: Arc::clone(self),
            worker,
        };
        tokio::spawn(async move { end.reads.work(worker).await });
    }

    /// Reads group by group, until nothing waits or there are enough others.
    async fn work(&self, worker: u64) {
        let mut has_read = None;
        while let Some(group) = self.next_group(worker, has_read) {
            let began = Instant::now();
            let is_read = match <[Waiting; 1]>::try_from(group) {
                Ok([only]) => {
                    let records = self.source.records(only.keys).await;
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
                    let records = self.source.records(keys).await;
                    respond(group, &records);
                    records.is_ok()
                }
            };
            // The time of a failure says nothing of the database.
            has_read = is_read.then(|| began.elapsed());
        }
    }

    /// The reads of the next round trip of a worker, oldest first, after one that took so long;
    /// `None` ends the worker.
    fn next_group(&self, worker: u64, has_read: Option<Duration>) -> Option<Vec<Waiting>> {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(time) = has_read {
            state.fastest.observe(time, now);
        }
        state.waiting.retain(|read| !read.respond.is_closed());
        if state.waiting.is_empty() || state.has_enough_beside(worker, now) {
            // In the same moment, so that a read that comes now starts another one.
            state.workers.retain(|(id, _)| *id != worker);
            return None;
        }
        for (id, began) in &mut state.workers {
            if *id == worker {
                *began = now;
            }
        }
        let mut keys = 0;
        let fitting = state.waiting.iter().take_while(|read| {
            keys += read.keys.len();
            keys <= KEYS_MAX
        });
        // One that is too large alone is read alone.
        let count = fitting.count().max(1);
        Some(state.waiting.drain(..count).collect())
    }
}

impl<S> GroupedReads<S> {
    fn state(&self) -> MutexGuard<'_, GroupState> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a worker, also when its runtime ends.
struct EndOfWorker<S> {
    reads: Arc<GroupedReads<S>>,
    worker: u64,
}

impl<S> Drop for EndOfWorker<S> {
    fn drop(&mut self) {
        let worker = self.worker;
        self.reads.state().workers.retain(|(id, _)| *id != worker);
    }
}

/// The time of the fastest round trip of the last seconds: what the network and the database take
/// when nothing is in the way.
struct Fastest {
    /// The fastest times of this period, and of the one before it.
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

    fn observe(&mut self, time: Duration, now: Instant) {
        if now - self.period_started > PERIOD {
            self.times = [Duration::MAX, self.times[0]];
            self.period_started = now;
        }
        self.times[0] = self.times[0].min(time);
    }

    /// How many round trips at once let no read wait for others for long.
    fn round_trips(&self) -> usize {
        let time = self.times[0].min(self.times[1]);
        let count = time.as_micros() / WAIT_FOR_OTHERS.as_micros() + 1;
        usize::try_from(count).unwrap_or(usize::MAX)
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

const PERIOD: Duration = Duration::from_secs(5);

/// A round trip that takes longer does not keep others from beginning.
const HUNG: Duration = Duration::from_millis(100);

/// How long a read waits for the response of its round trip before it is sent again.
const PATIENCE: Duration = Duration::from_millis(500);

/// A round trip reads at most so many keys: it ends soon, and the records of its reads are in
/// memory together.
const KEYS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use bytes::Bytes;
    use tokio::sync::Semaphore;
    use tokio::task::{JoinHandle, yield_now};
    use tokio::time::sleep;

    use super::*;

    /// A database that responds when the test says so.
    struct Database {
        responses: Semaphore,
        round_trips: AtomicUsize,
        /// True if the next round trip never ends.
        hangs: AtomicBool,
    }

    impl ReadRecords for Database {
        async fn records(&self, keys: Vec<Vec<u8>>) -> Records {
            self.round_trips.fetch_add(1, Ordering::Relaxed);
            if self.hangs.swap(false, Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            self.responses.acquire().await.unwrap().forget();
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
        database: Arc<Database>,
        reads: Arc<GroupedReads<Database>>,
    }

    type Read = JoinHandle<Option<Records>>;

    impl Bench {
        fn new(round_trips_max: usize) -> Self {
            let database = Arc::new(Database {
                responses: Semaphore::new(0),
                round_trips: AtomicUsize::new(0),
                hangs: AtomicBool::new(false),
            });
            let reads = GroupedReads::new(Arc::clone(&database), round_trips_max);
            Self { database, reads }
        }

        /// Starts a read, up to where it waits.
        async fn start(&self, keys: &[&str]) -> Read {
            let reads = Arc::clone(&self.reads);
            let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
            let read = async move { reads.read(keys, Instant::now() + WAIT_MAX).await };
            let read = tokio::spawn(read);
            settle().await;
            read
        }

        fn respond(&self, count: usize) {
            self.database.responses.add_permits(count);
        }

        /// A database nearby, one read in a round trip that never ends, and one that waits for it.
        async fn hung() -> (Self, Read, Read) {
            let bench = Self::new(2);
            let time = Duration::from_micros(100);
            bench.reads.state().fastest.observe(time, Instant::now());
            bench.database.hangs.store(true, Ordering::Relaxed);
            let hung = bench.start(&["a"]).await;
            let waiting = bench.start(&["b"]).await;
            assert_eq!(bench.round_trips(), 1);
            (bench, hung, waiting)
        }

        fn round_trips(&self) -> usize {
            self.database.round_trips.load(Ordering::Relaxed)
        }
    }

    /// Lets all tasks go on as far as they can.
    async fn settle() {
        for _ in 0..10 {
            yield_now().await;
        }
    }

    const WAIT_MAX: Duration = Duration::from_secs(5);

    async fn names(read: Read) -> Vec<String> {
        let records = read.await.unwrap().unwrap().unwrap().into_iter();
        let names = records.map(|record| String::from_utf8(record.key).unwrap());
        names.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_wait_share_a_round_trip_and_get_their_own_records() {
        let bench = Bench::new(1);
        let first = bench.start(&["a", "t"]).await;
        let second = bench.start(&["b", "t"]).await;
        let third = bench.start(&["t", "c"]).await;
        assert_eq!((bench.round_trips(), bench.reads.waiting()), (1, 2));
        bench.respond(2);
        assert_eq!(names(first).await, ["a", "t"]);
        assert_eq!(names(second).await, ["b", "t"]);
        assert_eq!(names(third).await, ["t", "c"]);
        assert_eq!((bench.round_trips(), bench.reads.waiting()), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn all_reads_of_a_round_trip_that_failed_fail() {
        let bench = Bench::new(1);
        let first = bench.start(&["a"]).await;
        let second = bench.start(&["b"]).await;
        let third = bench.start(&["lost"]).await;
        bench.respond(2);
        assert_eq!(names(first).await, ["a"]);
        for read in [second, third] {
            let failed = read.await.unwrap().unwrap();
            assert_eq!(failed.unwrap_err(), StorageError::Closed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_ended_is_not_sent_and_disturbs_no_other() {
        let bench = Bench::new(1);
        let first = bench.start(&["a"]).await;
        let ended = bench.start(&["lost"]).await;
        let last = bench.start(&["b"]).await;
        for read in [first, ended] {
            read.abort();
            assert!(read.await.is_err());
        }
        bench.respond(2);
        assert_eq!(names(last).await, ["b"]);
        assert_eq!(bench.round_trips(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hung_round_trip_holds_up_no_read() {
        let (bench, hung, waiting) = Bench::hung().await;
        bench.respond(3);
        sleep(HUNG * 2).await;
        // One that comes then is sent at once, with those that wait.
        let began = Instant::now();
        let later = bench.start(&["c"]).await;
        assert_eq!(names(later).await, ["c"]);
        assert_eq!(names(waiting).await, ["b"]);
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(bench.round_trips(), 2);
        // And what hangs is sent again.
        assert_eq!(names(hung).await, ["a"]);
        assert!(began.elapsed() <= PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_waits_alone_for_a_hung_round_trip_is_sent_by_itself() {
        let (bench, _hung, waiting) = Bench::hung().await;
        bench.respond(2);
        let began = Instant::now();
        assert_eq!(names(waiting).await, ["b"]);
        assert!(began.elapsed() <= PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_does_not_wait_longer_than_its_deadline() {
        let bench = Bench::new(1);
        let began = Instant::now();
        let first = bench.start(&["a"]).await;
        let second = bench.start(&["b"]).await;
        assert!(first.await.unwrap().is_none());
        assert!(second.await.unwrap().is_none());
        assert!((WAIT_MAX..WAIT_MAX + HUNG).contains(&began.elapsed()));
    }

    #[test]
    fn the_time_of_a_round_trip_is_the_fastest_of_the_last_periods() {
        let start = Instant::now();
        let mut fastest = Fastest::new(start);
        assert_eq!(fastest.round_trips(), usize::MAX);
        let micros = Duration::from_micros;
        for (time, after, expected) in [
            (2_300, Duration::ZERO, 10),
            (100, Duration::ZERO, 1),
            (900, PERIOD, 1),
            (600, PERIOD * 11 / 10, 1),
            (900, PERIOD * 22 / 10, 3),
        ] {
            fastest.observe(micros(time), start + after);
            assert_eq!(fastest.round_trips(), expected, "{time} µs, {after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_far_away_has_more_round_trips_at_once() {
        for (millis, expected) in [(0, 1), (1, 5), (20, 8)] {
            let bench = Bench::new(8);
            let read = bench.start(&["a"]).await;
            sleep(Duration::from_millis(millis)).await;
            bench.respond(1);
            assert_eq!(names(read).await, ["a"]);
            let mut reads = Vec::new();
            for _ in 0..20 {
                reads.push(bench.start(&["b"]).await);
            }
            assert_eq!(bench.round_trips(), 1 + expected, "{millis} ms");
            bench.respond(20);
            for read in reads {
                assert_eq!(names(read).await, ["b"]);
            }
            settle().await;
            assert_eq!(bench.reads.state().workers.len(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reads_beyond_a_group_are_in_the_next_ones() {
        let bench = Bench::new(1);
        let first = bench.start(&["a"]).await;
        let many: Vec<_> = (0..=KEYS_MAX).map(|number| number.to_string()).collect();
        let large: Vec<_> = many.iter().map(String::as_str).collect();
        let half = &large[..=KEYS_MAX / 2];
        let reads = [
            bench.start(half).await,
            bench.start(half).await,
            bench.start(&large).await,
        ];
        bench.respond(4);
        assert_eq!(names(first).await, ["a"]);
        for (read, count) in reads.into_iter().zip([half.len(), half.len(), large.len()]) {
            assert_eq!(names(read).await.len(), count);
        }
        assert_eq!(bench.round_trips(), 4);
    }
}
