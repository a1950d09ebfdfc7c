//! Bells: how a commit of this client wakes the workers of this client for the same table.
//!
//! A bell hangs while a worker runs. A commit without a worker rings none, and pays a lock.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tablesdk_protocol::PartitionKey;
use tokio::sync::Notify;

use crate::pipeline::Table;

/// The bell of a worker, which hangs until it is dropped.
pub(super) struct Bell {
    rung: Arc<Rung>,
    /// Keeps the client alive, which the place names.
    _table: Table,
}

/// The partitions that have rung a bell.
struct Rung {
    place: Place,
    notify: Notify,
    partitions: Mutex<BTreeSet<PartitionKey>>,
}

/// A client, and the name of a table in lower case, as which it is the same table.
type Place = (usize, String);

static BELLS: Mutex<Vec<Arc<Rung>>> = Mutex::new(Vec::new());

impl Bell {
    pub(super) fn hang(table: &Table) -> Self {
        let rung = Arc::new(Rung {
            place: place_of(table),
            notify: Notify::new(),
            partitions: Mutex::default(),
        });
        lock(&BELLS).push(Arc::clone(&rung));
        let table = table.clone();
        Self {
            rung,
            _table: table,
        }
    }

    /// Waits until the bell has rung, and returns the partitions with new steps. Nothing is lost
    /// when the future is dropped.
    pub(super) async fn partitions(&self) -> BTreeSet<PartitionKey> {
        loop {
            let partitions = mem::take(&mut *lock(&self.rung.partitions));
            if !partitions.is_empty() {
                return partitions;
            }
            self.rung.notify.notified().await;
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        lock(&BELLS).retain(|it| !Arc::ptr_eq(it, &self.rung));
    }
}

/// Tells the workers of this client that the partition has new steps.
pub(super) fn ring(table: &Table, partition: &PartitionKey) {
    let bells = lock(&BELLS);
    if bells.is_empty() {
        return;
    }
    let place = place_of(table);
    for bell in bells.iter().filter(|bell| bell.place == place) {
        let mut partitions = lock(&bell.partitions);
        // A worker that is so far behind finds the others when it looks at all partitions.
        if partitions.len() < PARTITIONS_MAX {
            partitions.insert(partition.clone());
        }
        bell.notify.notify_one();
    }
}

fn place_of(table: &Table) -> Place {
    (
        table.pipeline.client_id(),
        table.name().to_ascii_lowercase(),
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many partitions a bell remembers.
const PARTITIONS_MAX: usize = 1_000;
