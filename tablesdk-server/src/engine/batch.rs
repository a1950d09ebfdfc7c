//! Entity group transaction: each change decided as if it stood alone, and all of them carried out or none.
//!
//! No entity occurs twice, so that no change has to see what another one does. Knows which change failed, but not what is
//! written where. See <https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions>.

use std::collections::HashSet;

use tablesdk_protocol::{TableName, Timestamp};

use super::decide::decide_change;
use super::view::View;
use super::{Change, Failure, Rejection};
use crate::storage::WriteBatch;

/// What has to be written to carry out all changes, in order. A failure names the first that cannot be.
pub(super) fn decide_batch(
    view: &View,
    account: &str,
    changes: &[(&TableName, Change<'_>)],
    now: Timestamp,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let Some(&(group_table, first)) = changes.first() else {
        return Ok(());
    };
    let table = view.require_table(account, group_table);
    let table = table.map_err(|failure| failure.of_change(0))?;
    let mut keys = HashSet::new();
    for (index, &(name, change)) in changes.iter().enumerate() {
        let key = change.key;
        let decided = if name != group_table || key.partition_key() != first.key.partition_key() {
            Err(Rejection::DifferentPartitions.into())
        } else if !keys.insert(key) {
            Err(Rejection::DuplicateRow.into())
        } else {
            decide_change(view, table.id, &change, now, batch)
        };
        decided.map_err(|failure| failure.of_change(index))?;
    }
    Ok(())
}
