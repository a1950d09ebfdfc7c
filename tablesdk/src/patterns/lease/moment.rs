//! The time that has passed for the holder of a lease. This module does not know what a lease is.

use std::time::Duration;

use tablesdk_protocol::Timestamp;
use tokio::time::Instant;

use crate::client::TableClient;

/// A point in time on two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    monotonic: Instant,
    /// By the clock of the client.
    system: Timestamp,
}

impl Moment {
    pub(super) fn now(table: &TableClient) -> Self {
        Self {
            monotonic: Instant::now(),
            system: table.table().pipeline.now(),
        }
    }

    /// The time since then: the longer one of the two clocks. The monotonic clock of some systems
    /// stands still while the computer is suspended, and the system's clock may be set back.
    pub(super) fn elapsed(self, table: &TableClient) -> Duration {
        let now = Self::now(table);
        let by_system = if now.system > self.system {
            now.system.abs_diff(self.system)
        } else {
            Duration::ZERO
        };
        by_system.max(now.monotonic.saturating_duration_since(self.monotonic))
    }
}
