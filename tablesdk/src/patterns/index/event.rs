//! Events of indexes for a log. Without the feature `tracing`, there are none.

use crate::error::Error;
use crate::pipeline::OperationRun;

/// An operation has succeeded or failed, and leaves an entry of an index that is not right.
pub(super) fn entry_left(run: &OperationRun<'_>, index: &'static str, error: &Error) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: crate::pipeline::event::TARGET,
        operation = run.operation(),
        table = run.table_name(),
        index,
        status = error.status().map(|status| status.as_u16()),
        code = error.code().map(tablesdk_protocol::ErrorCode::as_str),
        reason = error.reason(),
        request_id = error.request_id(),
        "an entry of an index is out of date: `repair` mends it"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (run, index, error);
}

/// An entity keeps an entry that it does not have.
pub(super) fn entry_of_other(run: &OperationRun<'_>, index: &'static str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: crate::pipeline::event::TARGET,
        operation = run.operation(),
        table = run.table_name(),
        index,
        "the entry of an index, or the copy, was not written: another entity has its key, which `repair` reports"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (run, index);
}
