//! Several changes as one transaction: with the entries of indexes, and with a marker. This module knows neither what an index is nor how
//! an ambiguous outcome is resolved.

use tablesdk_protocol::ETag;

use super::batch_request::BatchRequest;
use super::change::EntityChange;
use super::exactly_once::{self, KeepMarker};
use crate::error::Error;
use crate::pipeline::OperationRun;

/// Sends changes as one request, with the entries of indexes, and with a marker if the outcome must be certain. The index in an error is
/// that of the change. An [ambiguous](Error::is_ambiguous) error is not resolved yet.
pub(in crate::action) async fn carry_out(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    exactly_once: Option<KeepMarker>,
) -> Result<Vec<Option<ETag>>, Error> {
    let with_entries = changes.iter().find_map(|change| change.entries.carry_out());
    if let Some(with_entries) = with_entries {
        return with_entries(run, changes, exactly_once).await;
    }
    send_together(run, changes, exactly_once).await
}

/// As [`carry_out`], without the entries of indexes.
pub(in crate::action) async fn send_together(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    exactly_once: Option<KeepMarker>,
) -> Result<Vec<Option<ETag>>, Error> {
    if let Some(keep) = exactly_once {
        return exactly_once::commit(run, changes, keep).await;
    }
    let request = BatchRequest::new(run, changes.iter().map(|change| &change.change))?;
    request.send(run).await.map(|done| done.etags)
}
