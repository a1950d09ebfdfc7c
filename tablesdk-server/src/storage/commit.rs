//! [`Commit`]: a future that resolves when a batch is durable.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::StorageError;

/// Resolves when a batch is durable. The batch is applied whether this is awaited or not.
#[must_use = "the batch may not be durable yet"]
#[derive(Debug)]
pub(crate) struct Commit(Option<oneshot::Receiver<Result<(), StorageError>>>);

impl Commit {
    /// A batch that is durable already.
    pub(crate) const DONE: Self = Self(None);

    /// A batch that is durable when the sender reports it.
    #[cfg(feature = "durable")]
    pub(crate) const fn pending(done: oneshot::Receiver<Result<(), StorageError>>) -> Self {
        Self(Some(done))
    }
}

#[cfg(feature = "durable")]
impl Commit {
    /// Waits on this thread, which must not belong to a runtime.
    pub(crate) fn wait(self) -> Result<(), StorageError> {
        match self.0 {
            None => Ok(()),
            Some(done) => {
                let result = done.blocking_recv();
                result.unwrap_or(Err(StorageError::Closed))
            }
        }
    }
}

impl Future for Commit {
    type Output = Result<(), StorageError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(done) = &mut self.0 else {
            return Poll::Ready(Ok(()));
        };
        let result = std::task::ready!(Pin::new(done).poll(context));
        // The sender was dropped without a result.
        Poll::Ready(result.unwrap_or(Err(StorageError::Closed)))
    }
}
