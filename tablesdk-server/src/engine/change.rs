//! Decides a change of one entity, alone or in a batch.
//!
//! This module knows only the ids of tables. See
//! <https://learn.microsoft.com/rest/api/storageservices/update-entity2>.

use tablesdk_protocol::limits::KEY_UNITS_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{EntityKey, IfMatch, Timestamp};

use super::entity_codec::{Properties, Record};
use super::key_codec::{self, TableId};
use super::merge::merged;
use super::size::entity_bytes;
use super::view::View;
use super::{Action, Change, Failure, Rejection};
use crate::flavor::Flavor;
use crate::storage::WriteBatch;

/// Begins the write of a change with the key of its entity.
pub(super) fn begin_change(table: TableId, change: &Change<'_>, batch: &mut WriteBatch) {
    batch.begin(|key| key_codec::push_entity_key(key, table, change.key));
}

/// Adds the write of a change that is begun.
pub(super) fn decide_change(
    view: &View,
    flavor: Flavor,
    change: &Change<'_>,
    now: Timestamp,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let key = change.key;
    let stored = view.record(batch.begun_key())?;
    let stored = stored.as_deref().map(Record::open).transpose()?;
    match change.action {
        Action::Delete(if_match) => {
            require_match(flavor, stored.as_ref(), if_match)?;
            batch.delete_begun();
            Ok(())
        }
        Action::Insert(properties) => {
            if stored.is_some() {
                return Err(Rejection::EntityAlreadyExists.into());
            }
            put(flavor, key, now, properties, batch)
        }
        Action::Update {
            mode,
            if_match,
            properties,
        } => {
            if let Some(if_match) = if_match {
                require_match(flavor, stored.as_ref(), if_match)?;
            }
            match (mode, stored) {
                (Mode::Merge, Some(stored)) => {
                    let merged = merged(flavor, &stored, properties)?;
                    put(flavor, key, now, &merged, batch)
                }
                (Mode::Replace, _) | (Mode::Merge, None) => {
                    put(flavor, key, now, properties, batch)
                }
            }
        }
    }
}

/// Checks existence first: a missing entity is not found, whatever the ETag.
///
/// An ETag is an instant: older clients make it of a timestamp, with all seven digits of its
/// fraction, or without zeros at its end.
fn require_match(
    flavor: Flavor,
    stored: Option<&Record<'_>>,
    if_match: &IfMatch,
) -> Result<(), Rejection> {
    let Some(stored) = stored else {
        return Err(Rejection::ResourceNotFound);
    };
    let IfMatch::ETag(etag) = if_match else {
        return Ok(());
    };
    if stored.etag() == *etag {
        return Ok(());
    }
    match etag.timestamp() {
        Some(_) if flavor.compares_etags_as_strings() => {
            Err(Rejection::UpdateConditionNotSatisfied)
        }
        instant @ Some(_) if instant == Some(stored.timestamp()) => Ok(()),
        None if flavor.has_condition_not_met() => Err(Rejection::ConditionNotMet),
        _ => Err(Rejection::UpdateConditionNotSatisfied),
    }
}

/// Puts the record of an entity that is written now under the key that is begun.
fn put(
    flavor: Flavor,
    key: &EntityKey,
    now: Timestamp,
    properties: &Properties,
    batch: &mut WriteBatch,
) -> Result<(), Failure> {
    let entity = properties.at(now);
    let values = entity.values().filter(|value| {
        let name = value.as_ref().map(|(name, _)| *name);
        !name.is_ok_and(|name| flavor.stores_key(name))
    });
    // Counted only where it may be too large, which is seldom.
    let bytes_max = KEYS_BYTES_MAX + BYTES_PER_JSON_BYTE_MAX * entity.json().len();
    let allowed = flavor.entity_bytes_max();
    if bytes_max > allowed && entity_bytes(key, values)? > allowed {
        return Err(Rejection::EntityTooLarge.into());
    }
    batch.put_begun(|record| properties.write_record(now, record));
    Ok(())
}

/// The most that the service counts for an entity without properties.
const KEYS_BYTES_MAX: usize = 4 + 2 * 2 * KEY_UNITS_MAX;

/// The most that the service counts for a property, per byte of its JSON.
const BYTES_PER_JSON_BYTE_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tablesdk_protocol::{Guid, Value, ValueRef};

    use super::*;

    proptest! {
        #[test]
        fn the_service_counts_few_bytes_for_one_of_the_json(
            name in "[a-zé啊]{1,3}",
            text in "[a\"é啊😀\u{1}]{0,4}",
            number: i32,
            bytes in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let key = EntityKey::new("", "").unwrap();
            let counted = |properties: &Properties| {
                let entity = properties.at(Timestamp::UNIX_EPOCH);
                entity_bytes(&key, entity.values()).unwrap()
            };
            let none = counted(&Properties::NONE);
            for value in [
                Value::Binary(bytes),
                Value::Boolean(true),
                Value::DateTime(Timestamp::UNIX_EPOCH),
                Value::Double(0.0),
                Value::Double(f64::from(number)),
                Value::Guid(Guid::default()),
                Value::Int32(number),
                Value::Int32(0),
                Value::Int64(0),
                Value::String(text),
            ] {
                let properties: Properties = [(&*name, value.as_ref())].into_iter().collect();
                let json = properties.at(Timestamp::UNIX_EPOCH).json().len();
                prop_assert!(counted(&properties) - none <= BYTES_PER_JSON_BYTE_MAX * json, "{value:?}");
            }
        }
    }

    #[test]
    fn the_largest_keys_cost_no_more_than_assumed() {
        let key = "é".repeat(KEY_UNITS_MAX);
        let key = EntityKey::new(key.clone(), key).unwrap();
        let none = std::iter::empty::<Result<(&str, ValueRef<'_>), ()>>();
        assert_eq!(entity_bytes(&key, none), Ok(KEYS_BYTES_MAX));
    }
}
