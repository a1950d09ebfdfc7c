//! Runs a query in slices of work, yields to other tasks between them, and ends it at the time limit.
//!
//! This is the only code of a query that uses the runtime and its timer; it works without either. The engine defines a slice.

use std::time::Duration;

#[cfg(feature = "durable")]
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;

#[cfg(feature = "durable")]
use crate::engine::Engine;
use crate::engine::ScanBudget;
#[cfg(feature = "durable")]
use crate::request::context::Context;

/// Runs a slice of a query. If it may wait for a disk, the runtime moves the other tasks of this thread to another one.
#[cfg(feature = "durable")]
pub(super) fn run_blocking<T>(engine: &Engine, context: &Context, slice: impl FnOnce() -> T) -> T {
    // A request from a socket runs in a task of the runtime. Other requests run on the caller's thread, where `block_in_place` may
    // panic.
    let can_leave = || {
        let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        context.peer.is_some() && matches!(runtime, Ok(RuntimeFlavor::MultiThread))
    };
    match engine.disk_permit() {
        Some(_place) if can_leave() => tokio::task::block_in_place(slice),
        _ => slice(),
    }
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
