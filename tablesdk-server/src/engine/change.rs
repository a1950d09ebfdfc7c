//! Decides a change of one entity, alone or in a batch.
//!
//! This module knows only the ids of tables. See <https://learn.microsoft.com/rest/api/storageservices/update-entity2>.

use tablesdk_protocol::limits::ENTITY_BYTES_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{EntityKey, IfMatch, Timestamp, ValueRef};

use super::entity_codec::Record;
use super::key_codec::{self, TableId};
use super::merge::merged;
use super::size::entity_bytes;
use super::view::{Entity, StoredEntity, View};
use super::{Action, Change, Failure, Rejection, borrowed};
use crate::storage::WriteBatch;

/// Adds the writes of a change.
pub(super) fn decide_change(
    view: &View,
    table: TableId,
    change: &Change<'_>,
    now: Timestamp,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let key = change.key;
    let row = view.entity(table, key)?;
    let stored = row.as_ref().map(StoredEntity::read).transpose()?;
    let record = match change.action {
        Action::Delete(if_match) => {
            require_match(stored.as_ref(), if_match)?;
            batch.delete(key_codec::entity_key(table, key));
            return Ok(());
        }
        Action::Insert(properties) => {
            if stored.is_some() {
                return Err(Rejection::EntityAlreadyExists.into());
            }
            record(key, now, borrowed(properties))?
        }
        Action::Update {
            mode,
            if_match,
            properties,
        } => {
            if let Some(if_match) = if_match {
                require_match(stored.as_ref(), if_match)?;
            }
            match (mode, stored) {
                (Mode::Merge, Some(stored)) => {
                    let properties = merged(stored.record(), properties)?;
                    record(key, now, properties.into_iter())?
                }
                (Mode::Replace, _) | (Mode::Merge, None) => record(key, now, borrowed(properties))?,
            }
        }
    };
    batch.put(key_codec::entity_key(table, key), record);
    Ok(())
}

/// Checks existence first: a missing entity is not found, whatever the ETag. ETags are compared byte for byte.
fn require_match(stored: Option<&Entity<'_>>, if_match: &IfMatch) -> Result<(), Rejection> {
    match (stored, if_match) {
        (None, _) => Err(Rejection::ResourceNotFound),
        (Some(stored), IfMatch::ETag(etag)) if stored.etag() != *etag => {
            Err(Rejection::UpdateConditionNotSatisfied)
        }
        _ => Ok(()),
    }
}

/// The record of an entity that is written now.
fn record<'v>(
    key: &EntityKey,
    now: Timestamp,
    properties: impl Iterator<Item = (&'v str, ValueRef<'v>)> + Clone,
) -> Result<Vec<u8>, Rejection> {
    if entity_bytes(key, properties.clone()) > ENTITY_BYTES_MAX {
        return Err(Rejection::EntityTooLarge);
    }
    Ok(Record::encode(now, properties))
}
