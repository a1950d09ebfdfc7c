//! Runs a query in slices of work, yields to other tasks between them, and ends it at the time
//! limit.
//!
//! This is the only code of a query that uses the runtime and its timer; it works without either.
//! The engine defines a slice.

use std::time::Duration;

#[cfg(feature = "durable")]
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

use crate::engine::{Command, Engine, Failure, Outcome, ScanBudget};
#[cfg(feature = "durable")]
use crate::storage::Commit;

/// Runs a slice of a query. If it may wait for a disk, it waits for its turn, and then the runtime
/// moves the other tasks of this thread to another one. `has_socket`: whether the request came from
/// a socket.
#[cfg(feature = "durable")]
pub(super) async fn run_blocking<T>(
    engine: &Engine,
    has_socket: bool,
    slice: impl FnOnce() -> T,
) -> T {
    if !can_block(has_socket) {
        return slice();
    }
    match engine.disk_permit().await {
        Some(_permit) => tokio::task::block_in_place(slice),
        None => slice(),
    }
}

/// Carries out a command for a request. A lone writer waits for the disk on its own thread, whose
/// other tasks the runtime moves to another one. `has_socket`: whether the request came from a
/// socket.
pub(super) async fn commit(
    engine: &Engine,
    has_socket: bool,
    account: &str,
    command: &Command<'_>,
) -> Result<Outcome, Failure> {
    #[cfg(not(feature = "durable"))]
    let (write, _) = (|_: &mut _| (), has_socket);
    #[cfg(feature = "durable")]
    let write = |commit: &mut Commit| {
        if can_block(has_socket)
            && let Some(lone) = commit.take_lone()
        {
            tokio::task::block_in_place(|| lone.write());
        }
    };
    engine.commit_with(account, command, write).await
}

/// Returns true if a request may leave its thread. A request from a socket runs in a task of the
/// runtime. Other requests run on the caller's thread, where `block_in_place` may panic.
#[cfg(feature = "durable")]
fn can_block(has_socket: bool) -> bool {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    has_socket && matches!(runtime, Ok(RuntimeFlavor::MultiThread))
}

/// The time of a query, and the work of its slices.
pub(super) struct QueryBudget {
    started: Instant,
    time_max: Duration,
}

impl QueryBudget {
    /// Starts now. With a zero time, a query examines one entity or table and ends.
    pub(super) fn new(time_max: Duration) -> Self {
        Self {
            started: Instant::now(),
            time_max,
        }
    }

    /// The budget of the next slice.
    pub(super) const fn slice(&self) -> ScanBudget {
        if self.time_max.is_zero() {
            ScanBudget::least()
        } else {
            ScanBudget::slice()
        }
    }

    /// Yields to other tasks and returns true, or returns false if the time is up.
    pub(super) async fn goes_on(&self) -> bool {
        if self.started.elapsed() >= self.time_max {
            return false;
        }
        tokio::task::yield_now().await;
        true
    }
}

#[cfg(test)]
#[cfg(feature = "durable")]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Poll;

    use super::*;
    use crate::engine::{Paging, disk_permits_max};
    use crate::storage::tests::StorageDouble;
    use crate::storage::{MemoryStorage, Storage};
    use crate::time::clock::SystemClock;

    struct Disk(MemoryStorage);

    impl StorageDouble for Disk {
        fn inner(&self) -> &dyn Storage {
            &self.0
        }

        fn is_persistent(&self) -> bool {
            true
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn scans_of_a_disk_take_turns() {
        let disk = Box::new(Disk(MemoryStorage::default()));
        let engine = Engine::new(disk, Arc::new(SystemClock), Paging::default()).unwrap();
        let scans = tokio::spawn(async move {
            let mut permits = Vec::new();
            for _ in 0..disk_permits_max() {
                permits.push(engine.disk_permit().await.unwrap());
            }
            let mut scan = pin!(run_blocking(&engine, true, || "read"));
            let first = poll_fn(|context| Poll::Ready(scan.as_mut().poll(context))).await;
            assert!(first.is_pending(), "all permits are in use");
            permits.pop();
            scan.await
        });
        assert_eq!(scans.await.unwrap(), "read");
    }
}
