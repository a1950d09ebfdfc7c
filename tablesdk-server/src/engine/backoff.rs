//! The pauses between attempts to commit to a shared storage.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::storage::StorageError;

/// The attempts of one command.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Waits before the next attempt, for a random time that grows with their number.
    ///
    /// # Errors
    ///
    /// [`StorageError::Contended`] after too many attempts.
    pub(super) async fn wait(&mut self) -> Result<(), StorageError> {
        self.attempts += 1;
        if self.attempts >= ATTEMPTS_MAX {
            return Err(StorageError::Contended);
        }
        if Handle::try_current().is_err() {
            yield_now().await;
            return Ok(());
        }
        let longest = (PAUSE_MIN * (1 << self.attempts.min(6))).min(PAUSE_MAX);
        sleep(longest.mul_f64(random())).await;
        Ok(())
    }
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let mut bytes = [0; 4];
    // Without it, the pause is the longest one.
    if getrandom::fill(&mut bytes).is_err() {
        return 1.0;
    }
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

/// With 64 writers of one record, the unluckiest one needs fewer.
const ATTEMPTS_MAX: u32 = 64;
/// A round trip takes about as long.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);
