//! How many requests a part of the program sends.

use std::sync::atomic::{AtomicU32, Ordering};

use tablesdk::action::OperationReport;
use tokio::task_local;

/// Counts the requests of an operation, for the call of [`counted`] that it is a part of.
pub(crate) fn count(operation: &OperationReport) {
    // An operation outside of such a call is not counted.
    let _ = REQUESTS.try_with(|requests| requests.fetch_add(operation.attempts, Ordering::Relaxed));
}

/// Runs a future, and returns how many requests its operations have sent.
pub(crate) async fn counted<T>(run: impl Future<Output = T>) -> (T, u32) {
    let run = async {
        let done = run.await;
        (done, REQUESTS.with(|it| it.load(Ordering::Relaxed)))
    };
    REQUESTS.scope(AtomicU32::new(0), run).await
}

task_local! {
    static REQUESTS: AtomicU32;
}
