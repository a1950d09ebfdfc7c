//! [`Commit`]: a future that resolves when a batch is durable.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::StorageError;

/// Resolves once a batch is as durable as its storage makes anything. The batch is applied whether this is awaited or not.
#[must_use = "what was committed may not last yet"]
#[derive(Debug)]
pub(crate) struct Commit(Option<oneshot::Receiver<Result<(), StorageError>>>);

impl Commit {
    /// A batch that has arrived already.
    pub(crate) const DONE: Self = Self(None);

    /// A batch that arrives when the sender says so.
    #[cfg(feature = "durable")]
    pub(crate) const fn pending(done: oneshot::Receiver<Result<(), StorageError>>) -> Self {
        Self(Some(done))
    }
}

#[cfg(feature = "durable")]
impl Commit {
    /// Waits on this thread, which is none of a runtime.
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
