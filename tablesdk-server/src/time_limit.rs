//! An end for operations that go on for longer than they may.
//!
//! An operation is given up where it lets others have their turn, and nowhere else: no timer is needed, and so no runtime that
//! has one.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tablesdk_protocol::{ErrorCode, ServiceError};
use tokio::time::Instant;

/// Carries out an operation, but not for longer than that.
///
/// # Errors
///
/// Those of the operation, and `OperationTimedOut`: whether it has had an effect is then unknown.
pub(crate) async fn within<T>(
    limit: Duration,
    operation: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, ServiceError> {
    let started = Instant::now();
    let mut operation = pin!(operation);
    std::future::poll_fn(|context| match operation.as_mut().poll(context) {
        Poll::Pending if started.elapsed() >= limit => {
            Poll::Ready(Err(ErrorCode::OperationTimedOut.into()))
        }
        polled => polled,
    })
    .await
}

#[cfg(test)]
mod tests {
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
        let result: Result<(), _> = within(LIMIT, endless).await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.status().as_u16(), error.code().as_str()),
            (500, "OperationTimedOut")
        );
        assert_eq!(started.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_done_is_never_given_up() {
        let long = async {
            advance(LIMIT).await;
            Ok(1)
        };
        // `advance` waits for its turn once, and the time is not up then.
        assert_eq!(within(LIMIT + LIMIT, long).await, Ok(1));
        let late = async { Ok(1) };
        assert_eq!(within(Duration::ZERO, late).await, Ok(1));
    }
}
