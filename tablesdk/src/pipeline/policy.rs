//! How a client repeats requests, as a value. Knows nothing of requests.

use std::time::Duration;

use crate::Error;

/// How often, how long and how patiently a client tries.
///
/// A request is repeated when the service asks for patience (429 and 503), fails (408, 500, 502 and 504), or does not answer.
/// Between two attempts passes a random time, up to a bound that doubles each time; where the service says how long to wait, at
/// least that. No other answer is repeated, but for one: where a credential was refused that has been
/// [replaced](crate::TableServiceClient::update_credential) in the meantime, or a token in the place of which the service wants
/// another, the request is sent once more with the better one, at once.
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
#[must_use = "a policy does nothing until it is given to a builder"]
pub struct RetryPolicy {
    pub(super) attempts: u32,
    pub(super) delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) try_timeout: Duration,
    pub(super) deadline: Duration,
    pub(super) budget: u32,
}

impl RetryPolicy {
    /// Five attempts in a minute, of 30 seconds at most each, with 0.2 to 10 seconds between them: what a client does unless
    /// told otherwise.
    pub const fn exponential() -> Self {
        Self {
            attempts: 5,
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

    /// How often a request is sent, at most. Not 0.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The bound of the time between the first attempt and the second. It doubles from there on.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// What the time between two attempts grows to, at most. The service may ask for more.
    pub const fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// How long an attempt may take. The service itself takes up to 30 seconds for a write: with less, more outcomes stay
    /// unknown. Not 0.
    pub const fn try_timeout(mut self, timeout: Duration) -> Self {
        self.try_timeout = timeout;
        self
    }

    /// How long everything together may take, waiting included: of an operation that sends several requests, such as
    /// [`modify`](crate::TableClient::modify), all of them. No wait is begun that would end later. Not 0.
    ///
    /// It is a timer of tokio, which fires late while the runtime's threads are busy. `ReqwestTransport::on_own_thread` keeps
    /// them free of connections that flood the client.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How many repetitions all operations of a client together have in store. Ten operations that succeed at once put one
    /// back. When the store is empty, errors are reported at once: a service in trouble is not asked more, but less.
    pub const fn budget(mut self, repetitions: u32) -> Self {
        self.budget = repetitions;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.attempts == 0 || self.try_timeout.is_zero() || self.deadline.is_zero() {
            return Err(Error::configuration_message(
                "a retry policy needs at least one attempt, and time for it",
            ));
        }
        Ok(())
    }

    /// A random time to wait before an operation that others got in the way of starts over, for the that-many-th time. What
    /// is in the way is a write that just ended: the waits are short at first, as long as one takes.
    pub(super) fn pause_before_round(&self, round: u32) -> Duration {
        let factor = 2_u32.saturating_pow(round.saturating_sub(1));
        let bound = (self.delay / 8)
            .saturating_mul(factor)
            .min(self.max_delay / 10);
        bound.mul_f64(fastrand::f64())
    }

    /// A random time to wait after that many attempts.
    pub(super) fn pause(&self, attempts: u32) -> Duration {
        let factor = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let bound = self.delay.saturating_mul(factor).min(self.max_delay);
        bound.mul_f64(fastrand::f64())
    }
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
            assert!(pauses.iter().all(|pause| *pause <= bound), "{attempts}");
            assert!(pauses.iter().any(|pause| *pause > bound / 2), "{attempts}");
            assert!(pauses.iter().any(|pause| *pause < bound / 2), "{attempts}");
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
