//! The time limit of operations.
//!
//! An operation that computes is cancelled where it yields to other tasks. An operation that waits,
//! such as a write that waits for the disk, is cancelled by a timer, but only if there is one: a
//! server without a socket needs no runtime.
//!
//! A query can be cancelled between two slices of its work. A write is never cancelled between its
//! decision and its commit, but for one whose database does not respond: its outcome is unknown
//! then.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tablesdk_protocol::ErrorCode;
use tokio::time::{Instant, Sleep, sleep_until};

/// The timer of the runtime, if it is known to have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// It is unknown whether there is a timer.
    Unknown,
    /// The runtime has a timer.
    Runs,
}

/// Runs an operation within a time limit, which began before.
///
/// # Errors
///
/// The errors of the operation, and `OperationTimedOut`: then it is unknown whether the operation
/// had an effect.
pub(crate) async fn within<T, E: From<ErrorCode>>(
    limit: Duration,
    timer: Timer,
    started: Instant,
    mut operation: Pin<&mut impl Future<Output = Result<T, E>>>,
) -> Result<T, E> {
    // Created only for an operation that waits.
    let mut end: Option<Pin<Box<Sleep>>> = None;
    std::future::poll_fn(|context| {
        if let Poll::Ready(result) = operation.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        let is_over = started.elapsed() >= limit
            || timer == Timer::Runs && {
                let end = end.get_or_insert_with(|| Box::pin(sleep_until(started + limit)));
                end.as_mut().poll(context).is_ready()
            };
        if is_over {
            return Poll::Ready(Err(ErrorCode::OperationTimedOut.into()));
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tablesdk_protocol::ServiceError;
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn an_operation_ends_at_its_limit() {
        let endless = async {
            loop {
                advance(Duration::from_secs(1)).await;
                yield_now().await;
            }
        };
        let started = Instant::now();
        let result: Result<(), ServiceError> =
            within(LIMIT, Timer::Unknown, started, pin!(endless)).await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.status().as_u16(), error.code().as_str()),
            (500, "OperationTimedOut")
        );
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_operation_ends_at_its_limit() {
        let started = Instant::now();
        let waiting = pin!(std::future::pending::<Result<(), ServiceError>>());
        let error = within(LIMIT, Timer::Runs, started, waiting).await;
        let error = error.unwrap_err();
        assert_eq!(error.code().as_str(), "OperationTimedOut");
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_completed_operation_never_times_out() {
        let long = async {
            advance(LIMIT).await;
            Ok::<_, ServiceError>(1)
        };
        // `advance` waits for its turn once, and the time is not up then.
        let started = Instant::now();
        let long = pin!(long);
        let result = within(LIMIT + LIMIT, Timer::Unknown, started, long).await;
        assert_eq!(result, Ok(1));
        let late = pin!(async { Ok::<_, ServiceError>(1) });
        let result = within(Duration::ZERO, Timer::Runs, started, late).await;
        assert_eq!(result, Ok(1));
    }
}
