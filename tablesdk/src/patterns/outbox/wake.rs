//! Wakes the workers of this process when a transaction of the same client has left steps.
//!
//! A worker that runs is listed here, by its client and its table. Transactions of other processes
//! and of other clients are found by the worker's own searches.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tablesdk_protocol::PartitionKey;
use tokio::sync::Notify;

use crate::pipeline::Table;

/// The workers that run in this process.
static RUNNING: Mutex<Vec<Arc<Running>>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Running {
    table: Table,
    /// The partitions with steps since the worker has looked.
    partitions: Mutex<BTreeSet<PartitionKey>>,
    notify: Notify,
}

/// A worker as long as it runs.
#[derive(Debug)]
pub(super) struct Wakeable(Arc<Running>);

impl Wakeable {
    pub(super) fn new(table: &Table) -> Self {
        let running = Arc::new(Running {
            table: table.clone(),
            partitions: Mutex::default(),
            notify: Notify::new(),
        });
        lock(&RUNNING).push(Arc::clone(&running));
        Self(running)
    }

    /// Waits for partitions with steps, and takes them.
    pub(super) async fn woken(&self) -> BTreeSet<PartitionKey> {
        loop {
            let partitions = take(&mut *lock(&self.0.partitions));
            if !partitions.is_empty() {
                return partitions;
            }
            self.0.notify.notified().await;
        }
    }
}

impl Drop for Wakeable {
    fn drop(&mut self) {
        lock(&RUNNING).retain(|running| !Arc::ptr_eq(running, &self.0));
    }
}

/// Wakes the workers of a table: a transaction has left steps in that partition.
pub(super) fn wake(table: &Table, partition: &PartitionKey) {
    let running = lock(&RUNNING).clone();
    for worker in running.iter().filter(|it| it.table.is_same(table)) {
        let mut partitions = lock(&worker.partitions);
        // A worker that is so far behind finds the others when it looks at all partitions.
        if partitions.len() < PARTITIONS_MAX {
            partitions.insert(partition.clone());
        }
        drop(partitions);
        worker.notify.notify_one();
    }
}

/// A panic while it was locked leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const PARTITIONS_MAX: usize = 1_000;
