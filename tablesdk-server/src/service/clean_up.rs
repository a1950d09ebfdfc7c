//! Runs the clean-up of deleted tables in the background.
//!
//! With a runtime, the clean-up runs on a separate task, so that no request waits for it. Without a
//! runtime, it runs in the request that deletes the table. At most one clean-up runs at a time.
//! With a timer, it pauses after each step in proportion to the duration of the step, so that the
//! clean-up of a large table leaves the processor and the disk to the requests. The engine
//! implements the steps.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::engine::{CleanUpCursor, Engine, SharedCleanUp};
use crate::storage::StorageError;
use crate::time::time_limit::Timer;

/// Continues the clean-up of an earlier process. Without a runtime, the next deletion of a table
/// does.
pub(crate) fn resume(engine: &Arc<Engine>, timer: Timer) {
    if engine.is_shared() {
        start_shared(engine);
    } else if engine.has_deleted_tables()
        && let Ok(runtime) = Handle::try_current()
    {
        runtime.spawn(run(Arc::downgrade(engine), timer));
    }
}

/// Cleans up after the deletion of a table.
pub(crate) async fn start(engine: &Arc<Engine>, timer: Timer) {
    if engine.is_shared() {
        start_shared(engine);
        return;
    }
    let run = run(Arc::downgrade(engine), timer);
    match Handle::try_current() {
        Ok(runtime) => {
            runtime.spawn(run);
        }
        Err(_) => run.await,
    }
}

/// Cleans up a storage that other servers share, unless that runs already. Without a runtime, other
/// servers do.
fn start_shared(engine: &Arc<Engine>) {
    if let (Ok(runtime), Some(permit)) = (Handle::try_current(), engine.try_begin_clean_up()) {
        runtime.spawn(run_shared(Arc::downgrade(engine), permit));
    }
}

/// Cleans up until the engine is dropped. Servers that have nothing to do, or cannot reach the
/// storage, look again after a while.
async fn run_shared(engine: Weak<Engine>, permit: OwnedMutexGuard<CleanUpCursor>) {
    let mut clean_up = SharedCleanUp::new();
    let mut has_failed = false;
    while let Some(engine) = engine.upgrade() {
        let began = Instant::now();
        let step = engine.shared_clean_up_step(&mut clean_up).await;
        drop(engine);
        if let Err(error) = &step
            && !has_failed
        {
            tracing::warn!(%error, "deleted tables cannot be cleaned up for now");
        }
        has_failed = step.is_err();
        sleep(match step {
            Ok(true) => pause_after(began.elapsed()),
            _ => SHARED_PAUSE,
        })
        .await;
    }
    drop(permit);
}

/// Cleans up until nothing is left, or the engine is dropped. Returns at once while another
/// clean-up runs, which then removes this table, too.
async fn run(engine: Weak<Engine>, timer: Timer) {
    loop {
        let permit = engine
            .upgrade()
            .and_then(|engine| engine.try_begin_clean_up());
        let Some(mut permit) = permit else { return };
        // A clean-up that fails or is cancelled leaves a new cursor to the next one.
        let mut cursor = mem::take(&mut *permit);
        // After a failure, the marks still exist, so the next clean-up retries.
        match run_steps(&engine, &mut cursor, timer).await {
            Ok(()) => {}
            Err(error) if error.is_temporary() && timer == Timer::Runs => {
                drop(permit);
                sleep(PAUSE_MAX).await;
                continue;
            }
            Err(_) => return,
        }
        *permit = cursor;
        drop(permit);
        // A table that was deleted after the last step, and before the permit was returned, belongs
        // to this clean-up.
        if !engine
            .upgrade()
            .is_some_and(|engine| engine.has_deleted_tables())
        {
            return;
        }
    }
}

async fn run_steps(
    engine: &Weak<Engine>,
    cursor: &mut CleanUpCursor,
    timer: Timer,
) -> Result<(), StorageError> {
    while let Some(engine) = engine.upgrade() {
        let began = Instant::now();
        let Some(commit) = engine.clean_up_step(cursor)? else {
            break;
        };
        // Released before the wait, so that the engine can be closed in the meantime.
        drop(engine);
        commit.await?;
        match timer {
            Timer::Runs => sleep(pause_after(began.elapsed())).await,
            Timer::Unknown => yield_now().await,
        }
    }
    Ok(())
}

/// A clean-up takes at most a fifth of a core and of the disk's time.
fn pause_after(step: Duration) -> Duration {
    (4 * step).min(PAUSE_MAX)
}

/// How long a server waits before it looks again for deleted tables, which may be those of other
/// servers.
const SHARED_PAUSE: Duration = Duration::from_secs(10);

/// A step is short, unless the disk or the machine stands still for a while.
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    #[cfg(feature = "durable")]
    use std::sync::Mutex;
    #[cfg(feature = "durable")]
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tablesdk_protocol::{Clock, EntityKey, TableName};
    #[cfg(feature = "durable")]
    use tokio::sync::oneshot;

    use super::*;
    use crate::engine::{Action, Change, Command, Paging, Properties};
    #[cfg(feature = "durable")]
    use crate::storage::{Commit, WriteBatch, tests::StorageDouble};
    use crate::storage::{MemoryStorage, Storage};
    use crate::time::monotonic_clock::tests::ManualClock;

    /// With a table that was deleted.
    async fn engine() -> Arc<Engine> {
        filled(Box::new(MemoryStorage::default())).await
    }

    async fn filled(storage: Box<dyn Storage>) -> Arc<Engine> {
        let clock = ManualClock::new("2024-03-15T10:20:30Z") as Arc<dyn Clock>;
        let engine = Engine::new(storage, clock, Paging::default()).unwrap();
        let table: TableName = "people".parse().unwrap();
        let create = Command::CreateTable(&table);
        engine.commit("acct", &create).await.unwrap();
        for number in 0..1000 {
            let key = &EntityKey::new("p", number.to_string()).unwrap();
            let action = Action::Insert(&Properties::NONE);
            let insert = Command::Change(&table, Change { key, action });
            engine.commit("acct", &insert).await.unwrap();
        }
        let delete = Command::DeleteTable(&table, Duration::ZERO);
        engine.commit("acct", &delete).await.unwrap();
        assert!(engine.has_deleted_tables());
        Arc::new(engine)
    }

    #[tokio::test]
    async fn cleans_up_on_a_task() {
        for start in [true, false] {
            let engine = engine().await;
            if start {
                super::start(&engine, Timer::Unknown).await;
            } else {
                resume(&engine, Timer::Unknown);
            }
            assert!(
                engine.has_deleted_tables(),
                "no request waits for the clean-up"
            );
            while engine.has_deleted_tables() {
                yield_now().await;
            }
        }
    }

    #[test]
    fn cleans_up_at_once_without_a_runtime() {
        let mut engine = std::pin::pin!(async {
            let engine = engine().await;
            start(&engine, Timer::Unknown).await;
            engine
        });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let engine = loop {
            if let std::task::Poll::Ready(engine) = engine.as_mut().poll(&mut context) {
                break engine;
            }
        };
        assert!(!engine.has_deleted_tables());
    }

    /// A storage whose commits take that long, and which notes when each begins.
    #[cfg(feature = "durable")]
    struct SlowCommits {
        records: MemoryStorage,
        began: Arc<Mutex<Vec<Instant>>>,
        takes: Duration,
        /// How many commits are refused first, for a while.
        refuses: AtomicUsize,
    }

    #[cfg(feature = "durable")]
    impl StorageDouble for Arc<SlowCommits> {
        fn inner(&self) -> &dyn Storage {
            &self.records
        }

        fn commit(&self, batch: WriteBatch) -> Result<Commit, StorageError> {
            self.began.lock().unwrap().push(Instant::now());
            let count_down = |refuses: usize| refuses.checked_sub(1);
            let refused = self.refuses.fetch_update(Relaxed, Relaxed, count_down);
            if refused.is_ok() {
                return Err(StorageError::Exhausted { what: "write" });
            }
            let result = self.records.commit(batch).map(drop);
            let (done, commit) = oneshot::channel();
            let takes = self.takes;
            tokio::spawn(async move {
                sleep(takes).await;
                let _ = done.send(result);
            });
            Ok(Commit::pending(commit))
        }
    }

    #[cfg(feature = "durable")]
    #[tokio::test(start_paused = true)]
    async fn a_clean_up_pauses_four_times_as_long_as_a_step() {
        let takes = Duration::from_millis(10);
        let began = Arc::default();
        let engine = filled(Box::new(Arc::new(SlowCommits {
            records: MemoryStorage::default(),
            began: Arc::clone(&began),
            takes,
            refuses: AtomicUsize::new(0),
        })));
        let engine = engine.await;
        began.lock().unwrap().clear();
        // They share the pauses: only one of them runs.
        for _ in 0..3 {
            start(&engine, Timer::Runs).await;
        }
        while engine.has_deleted_tables() {
            sleep(takes).await;
        }
        let began = began.lock().unwrap();
        assert_eq!(began.len(), 4, "256 of 1,000 entities at a time");
        for pair in began.windows(2) {
            assert_eq!(pair[1] - pair[0], 5 * takes);
        }
    }

    #[cfg(feature = "durable")]
    #[tokio::test(start_paused = true)]
    async fn a_clean_up_continues_when_writes_are_possible() {
        let storage = Arc::new(SlowCommits {
            records: MemoryStorage::default(),
            began: Arc::default(),
            takes: Duration::from_millis(10),
            refuses: AtomicUsize::new(0),
        });
        let engine = filled(Box::new(Arc::clone(&storage))).await;
        storage.refuses.store(3, Relaxed);
        start(&engine, Timer::Runs).await;
        while engine.has_deleted_tables() {
            sleep(PAUSE_MAX).await;
        }
        assert_eq!(storage.refuses.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn a_cancelled_clean_up_is_continued_by_the_next() {
        let engine = engine().await;
        let cancelled = tokio::spawn(run(Arc::downgrade(&engine), Timer::Unknown));
        yield_now().await;
        cancelled.abort();
        assert!(cancelled.await.unwrap_err().is_cancelled());
        assert!(engine.has_deleted_tables());
        run(Arc::downgrade(&engine), Timer::Unknown).await;
        assert!(!engine.has_deleted_tables());
    }
}
