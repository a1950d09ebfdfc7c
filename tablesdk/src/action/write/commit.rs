//! Commits changes: one request with all of them, wrapped by the layers of what goes along with
//! them.

use super::batch_request::BatchRequest;
use super::change::EntityChange;
use super::exactly_once;
use super::keep_marker::KeepMarker;
use crate::action::extend::ride::{Commit, ETags, Next};
use crate::error::Error;
use crate::pipeline::OperationRun;

/// Commits changes as one request, with what goes along with them, and with a marker if the outcome
/// must be certain. The index in an error is that of the change. An
/// [ambiguous](Error::is_ambiguous) error is not resolved yet.
pub(crate) async fn commit_changes(
    run: &mut OperationRun<'_>,
    commit: Commit<'_>,
) -> Result<ETags, Error> {
    let layers = commit.layers();
    if layers.is_empty() {
        return send_together(run, commit.changes, commit.exactly_once).await;
    }
    let next = Next {
        layers: &layers,
        send: |run, commit| Box::pin(send_together(run, commit.changes, commit.exactly_once)),
    };
    next.commit(run, commit).await
}

/// As [`carry_out`], without what goes along with the changes.
pub(crate) async fn send_together(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    exactly_once: Option<KeepMarker>,
) -> Result<ETags, Error> {
    if let Some(keep) = exactly_once {
        return exactly_once::commit(run, changes, keep).await;
    }
    let request = BatchRequest::new(run, changes.iter().map(|change| &change.change))?;
    request.send(run).await.map(|done| done.etags)
}
