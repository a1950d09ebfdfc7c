//! How a client retries requests, as a value. This module knows nothing of requests.

use std::time::Duration;

/// How often and how long a client retries.
///
/// A request is retried when the service throttles it (429 and 503), fails (408, 500, 502 and 504),
/// or does not respond. The pause between two attempts is random, between the half and the whole of
/// a limit that doubles each time. If the service says how long to wait, the pause is at least that
/// long. Other responses are not retried, with one exception: a request whose credential was
/// refused is sent once more, at once, if the credential has been
/// [replaced](crate::TableServiceClient::update_credential) in the meantime, or if the service asks
/// for another token.
///
/// ```
/// use std::time::Duration;
/// use tablesdk::{RetryPolicy, TableServiceClient};
///
/// let service = TableServiceClient::builder("https://acct.table.core.windows.net")
///     .retry(RetryPolicy::exponential().attempts(8).deadline(Duration::from_secs(90)))
///     .build()?;
/// # Ok::<(), tablesdk::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a policy does nothing until it is given to a builder or a call"]
pub struct RetryPolicy {
    pub(super) attempts: u32,
    pub(super) delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) try_timeout: Duration,
    pub(super) deadline: Duration,
    pub(super) budget: u32,
}

impl RetryPolicy {
    /// The default of a client: seven attempts in one minute, of at most 30 seconds each. The
    /// limits of the pauses are 0.2, 0.4, 0.8, 1.6, 3.2 and 6.4 seconds, so the last attempt begins
    /// 6.3 seconds after the first one has failed, or later: callers do not notice that a server
    /// needs five seconds to start again.
    pub const fn exponential() -> Self {
        Self {
            attempts: 7,
            delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(10),
            try_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            budget: 100,
        }
    }

    /// One attempt, of 30 seconds at most.
    pub const fn none() -> Self {
        Self {
            attempts: 1,
            deadline: Duration::from_secs(30),
            ..Self::exponential()
        }
    }

    /// The maximum number of attempts for a request. Must not be 0.
    #[doc(alias = "max_retries")]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The limit of the pause between the first attempt and the second. It doubles with each
    /// further attempt.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The maximum that the limit of the pause between two attempts grows to. The service may ask
    /// for a longer pause.
    pub const fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The time limit of one attempt. The service itself takes up to 30 seconds for a write: with a
    /// shorter limit, more outcomes stay unknown. Must not be 0.
    pub const fn try_timeout(mut self, timeout: Duration) -> Self {
        self.try_timeout = timeout;
        self
    }

    /// The time limit of a whole operation, waits included. For an operation of several requests,
    /// such as [`modify`](crate::TableClient::modify), it covers all of them. A wait that would end
    /// later is not begun. Must not be 0. Each action has a
    /// [`deadline`](crate::action#options-of-a-single-call) of its own for a single call.
    ///
    /// It is a timer of tokio, which fires late while the threads of the runtime are busy.
    /// `ReqwestTransport::on_own_thread` keeps connections that flood the client off these threads.
    #[doc(alias("timeout", "MaximumExecutionTime"))]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The number of retries in the budget that all operations of a client share. Ten operations
    /// that succeed at the first attempt give one retry back. When the budget is used up, errors
    /// are reported at once: a service in trouble gets fewer requests, not more. A retry after a
    /// failure to connect costs nothing, since no request has reached the service.
    pub const fn budget(mut self, retries: u32) -> Self {
        self.budget = retries;
        self
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.attempts == 0 || self.try_timeout.is_zero() || self.deadline.is_zero() {
            return Err("a retry policy needs at least one attempt, and time for it");
        }
        Ok(())
    }

    /// Random pause before the n-th new round of an operation whose write conflicted with another
    /// client's write. That write has just ended, so the first pauses are as short as one write
    /// takes.
    pub(super) fn pause_before_round(&self, round: u32) -> Duration {
        let factor = 2_u32.saturating_pow(round.saturating_sub(1));
        let bound = (self.delay / 8)
            .saturating_mul(factor)
            .min(self.max_delay / 10);
        bound.mul_f64(fastrand::f64())
    }

    /// Random pause after that many attempts: at least half of its bound, so that the attempts
    /// cover some time.
    pub(super) fn pause(&self, attempts: u32) -> Duration {
        let factor = 2_u32.saturating_pow(attempts.saturating_sub(1));
        random_pause(self.delay.saturating_mul(factor).min(self.max_delay))
    }
}

/// Random pause between the half and the whole of a bound.
pub(crate) fn random_pause(bound: Duration) -> Duration {
    let half = bound / 2;
    half + half.mul_f64(fastrand::f64())
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::exponential()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_maximum() {
        let policy = RetryPolicy::exponential();
        for attempts in [1, 2, 3, 6, 7, 50, u32::MAX] {
            let bound = Duration::from_millis(200) * 2_u32.pow((attempts - 1).min(6));
            let bound = bound.min(Duration::from_secs(10));
            let pauses: Vec<_> = (0..100).map(|_| policy.pause(attempts)).collect();
            let between = |from, to| pauses.iter().any(|pause| (from..=to).contains(pause));
            let range = bound / 2..=bound;
            assert!(
                pauses.iter().all(|pause| range.contains(pause)),
                "{attempts}"
            );
            assert!(between(bound / 2, bound * 3 / 4), "{attempts}");
            assert!(between(bound * 3 / 4, bound), "{attempts}");
        }
        let policy = policy.delay(Duration::MAX).max_delay(Duration::ZERO);
        assert_eq!(policy.pause(3), Duration::ZERO);
    }

    #[test]
    fn a_policy_that_never_tries_is_refused() {
        for policy in [
            RetryPolicy::none().attempts(0),
            RetryPolicy::none().try_timeout(Duration::ZERO),
            RetryPolicy::none().deadline(Duration::ZERO),
        ] {
            assert!(policy.check().is_err(), "{policy:?}");
        }
        assert!(RetryPolicy::default().check().is_ok());
    }
}
