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

/// Does a slice of work. Where that may wait for a disk, the thread's other tasks go on with another thread meanwhile.
#[cfg(feature = "durable")]
pub(super) fn run_blocking<T>(engine: &Engine, context: &Context, slice: impl FnOnce() -> T) -> T {
    // What came by a socket is answered in a task of the runtime's own. Elsewhere the caller decides, who may be where a thread
    // cannot be left to others, and leaving it would panic.
    let can_leave = || {
        let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        context.peer().is_some() && matches!(runtime, Ok(RuntimeFlavor::MultiThread))
    };
    match engine.disk_permit() {
        Some(_place) if can_leave() => tokio::task::block_in_place(slice),
        _ => slice(),
    }
}

/// How long a query may go on, and in which steps.
pub(super) struct QueryBudget {
    started: Instant,
    time_max: Duration,
}

impl QueryBudget {
    /// Starts now. Without any time, a query looks at one thing and ends.
    pub(super) fn new(time_max: Duration) -> Self {
        Self {
            started: Instant::now(),
            time_max,
        }
    }

    /// The work of the next slice.
    pub(super) const fn slice(&self) -> ScanBudget {
        if self.time_max.is_zero() {
            ScanBudget::least()
        } else {
            ScanBudget::slice()
        }
    }

    /// Lets others have their turn, unless the time is up: then nothing happens, and it returns false.
    pub(super) async fn goes_on(&self) -> bool {
        if self.started.elapsed() >= self.time_max {
            return false;
        }
        tokio::task::yield_now().await;
        true
    }
}
