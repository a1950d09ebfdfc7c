//! Tasks: work that goes on while the caller does not poll it.

use std::panic::resume_unwind;

use futures_core::Stream;
use futures_util::StreamExt as _;
use tablesdk_protocol::TransportError;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::in_current_span;
use crate::error::Error;

/// Reads a stream in a task of its own, up to that many items ahead of the consumer.
pub(crate) fn read_ahead<T: Send + 'static>(
    mut stream: impl Stream<Item = Result<T, Error>> + Send + Unpin + 'static,
    items: usize,
) -> impl Stream<Item = Result<T, Error>> + Send {
    let (sender, mut receiver) = mpsc::channel(items);
    // Dropping the set aborts the task.
    let mut task = JoinSet::new();
    task.spawn(in_current_span(async move {
        while let Some(item) = stream.next().await {
            if sender.send(item).await.is_err() {
                break;
            }
        }
    }));
    async_stream::stream! {
        while let Some(item) = receiver.recv().await {
            yield item;
        }
        // The channel also closes when the task fails.
        if let Some(Err(error)) = task.join_next().await.map(joined_of) {
            yield Err(error);
        }
    }
}

/// The result of a task. A panic of the task is raised in the caller.
pub(crate) fn joined_of<T>(joined: Result<T, JoinError>) -> Result<T, Error> {
    joined.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => gone(),
    })
}

fn gone() -> Error {
    Error::transport(TransportError::not_sent("the runtime is shutting down"))
}
