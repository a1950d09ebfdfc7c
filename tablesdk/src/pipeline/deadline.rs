//! The time limit of an operation or an attempt.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// When something began, and when it must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    began: Instant,
    /// `None` if it is later than any time.
    end: Option<Instant>,
}

impl Deadline {
    /// The deadline of something that begins now.
    pub(super) fn after(limit: Duration) -> Self {
        let began = Instant::now();
        Self {
            began,
            end: began.checked_add(limit),
        }
    }

    /// The deadline of a part that begins now, and has this limit of its own.
    pub(super) fn of_part(self, limit: Duration) -> Self {
        let part = Self::after(limit);
        Self {
            end: match (part.end, self.end) {
                (Some(part), Some(whole)) => Some(part.min(whole)),
                (part, whole) => part.or(whole),
            },
            ..part
        }
    }

    /// The time until the deadline, if there is one.
    pub(crate) fn remaining(self) -> Option<Duration> {
        let now = Instant::now();
        self.end.map(|end| end.saturating_duration_since(now))
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.began.elapsed()
    }

    /// Returns true if a pause that begins now ends before the deadline.
    pub(super) fn allows(self, pause: Duration) -> bool {
        self.end.is_none_or(|end| {
            let next = Instant::now().checked_add(pause);
            next.is_some_and(|next| next < end)
        })
    }

    /// Awaits a future until the deadline; `None` if it takes longer.
    pub(crate) async fn limit<F: Future>(self, future: F) -> Option<F::Output> {
        match self.end {
            Some(end) => timeout_at(end, future).await.ok(),
            None => Some(future.await),
        }
    }
}
