//! [`Commit`]: a future that resolves when a batch is durable.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::StorageError;
#[cfg(feature = "durable")]
use super::durable::LoneCommit;

/// Resolves when a batch is durable. The batch is applied whether this is awaited or not.
#[must_use = "the batch may not be durable yet"]
#[derive(Debug)]
pub(crate) struct Commit {
    /// `None` if the batch is durable.
    done: Option<oneshot::Receiver<Result<(), StorageError>>>,
    /// The batch, if its writer may write it itself.
    #[cfg(feature = "durable")]
    lone: Option<LoneCommit>,
}

impl Commit {
    /// A batch that is durable already.
    pub(crate) const DONE: Self = Self {
        done: None,
        #[cfg(feature = "durable")]
        lone: None,
    };

    /// A batch that is durable when the sender reports it.
    #[cfg(feature = "durable")]
    pub(crate) const fn pending(done: oneshot::Receiver<Result<(), StorageError>>) -> Self {
        Self {
            done: Some(done),
            lone: None,
        }
    }
}

#[cfg(feature = "durable")]
impl Commit {
    /// A batch that its writer may write itself.
    pub(super) const fn lone(
        lone: LoneCommit,
        done: oneshot::Receiver<Result<(), StorageError>>,
    ) -> Self {
        Self {
            done: Some(done),
            lone: Some(lone),
        }
    }

    /// Takes the batch, if it is one that the caller may write itself.
    pub(crate) const fn take_lone(&mut self) -> Option<LoneCommit> {
        self.lone.take()
    }

    /// Waits on this thread, which must not belong to a runtime.
    pub(crate) fn wait(mut self) -> Result<(), StorageError> {
        drop(self.lone.take());
        match self.done {
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
        // The writing thread writes what the caller did not take.
        #[cfg(feature = "durable")]
        drop(self.lone.take());
        let Some(done) = &mut self.done else {
            return Poll::Ready(Ok(()));
        };
        let result = std::task::ready!(Pin::new(done).poll(context));
        // The sender was dropped without a result.
        Poll::Ready(result.unwrap_or(Err(StorageError::Closed)))
    }
}
