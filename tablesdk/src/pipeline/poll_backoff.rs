//! Waiting for something that the service is doing. Knows neither what it is nor how it is asked
//! for.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Pauses of one second, two, and so on to five, as long as there is time.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    /// `None` for a time that never comes.
    until: Option<Instant>,
    seconds: u64,
}

impl PollBackoff {
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            until: Instant::now().checked_add(time),
            seconds: 0,
        }
    }

    /// Pauses; `false` at once where the pause would end too late.
    pub(crate) async fn pause(&mut self) -> bool {
        self.seconds = (self.seconds + 1).min(SECONDS_MAX);
        let pause = Duration::from_secs(self.seconds);
        let has_time = self
            .until
            .is_none_or(|until| Instant::now() + pause <= until);
        if has_time {
            sleep(pause).await;
        }
        has_time
    }
}

const SECONDS_MAX: u64 = 5;
