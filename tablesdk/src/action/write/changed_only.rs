//! `changed_only`: what differs between an entity and the properties that were read with `tracked`.
//! Sends nothing.

use bytes::Bytes;
use tablesdk_protocol::Value;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::{EntityCursor, read_entity};

use super::encoded::EncodedEntity;
use super::unmodelled::{left_as_is, unmodelled};
use crate::entity::{Stored, WritableEntity, values_of, write_values};
use crate::error::Error;

/// How the differences are sent, the differences, and the content of the entity after that.
type Differences = (Mode, EncodedEntity, Bytes);

/// The differences to the properties that were read; `None` if there are none.
pub(crate) fn changes<E: WritableEntity>(
    mode: Mode,
    entity: &Stored<E>,
) -> Result<Option<Differences>, Error> {
    if mode == Mode::Replace {
        return Err(Error::input(ChangedOnlyProblem::Replace));
    }
    let key = entity.unchanged_key().map_err(Error::input)?.clone();
    let fetched = entity.tracked();
    let fetched = fetched.ok_or_else(|| Error::input(ChangedOnlyProblem::Untracked))?;
    let fetched = read_entity(fetched).map_err(Error::input)?;
    // The response is kept and not the value, because the value has no place for properties that
    // the struct does not model, and a replace must write those back. It is compared as it would be
    // written: a difference that the type does not keep is no change.
    let before = Stored::<E>::read(&mut EntityCursor::new(&fetched), Some(entity.etag()));
    let before = before.map_err(Error::input)?;
    let unmodelled = unmodelled(&before, &fetched)?;
    let before = values_of::<E>(&before, &key, before.step_of()).map_err(Error::input)?;
    let now = values_of::<E>(entity, &key, entity.step_of()).map_err(Error::input)?;
    let rest = left_as_is::<E>(unmodelled.clone(), entity, &now);
    // A property was lost if the value no longer has it, or became a variant that models it.
    let after: Vec<_> = now.iter().chain(&rest).cloned().collect();
    let is_kept = |(name, _): &(String, Value)| after.iter().any(|(after, _)| after == name);
    let has_lost = !before.iter().chain(&unmodelled).all(is_kept);
    // An entity that is stored as another type, such as an older version, has properties that are
    // no longer read.
    let type_of_now = |name: &str| {
        now.iter().find_map(|property| match property {
            (known, Value::String(text)) if known == name => Some(text.as_str()),
            _ => None,
        })
    };
    let type_property = entity.schema_of_value().type_property();
    let has_another_type =
        type_property.is_some_and(|name| fetched.text(name).ok() != Some(type_of_now(name)));
    let changed: Vec<_> = now
        .iter()
        .filter(|it| !before.contains(it))
        .cloned()
        .collect();
    if changed.is_empty() && !has_lost {
        return Ok(None);
    }
    let after = write_values(&key, &after).map_err(Error::input)?;
    // A merge removes nothing.
    let (mode, body) = if has_lost || has_another_type {
        (Mode::Replace, after.clone())
    } else {
        let body = write_values(&key, &changed).map_err(Error::input)?;
        (Mode::Merge, body)
    };
    let encoded = EncodedEntity::of_properties::<E>(key, body);
    Ok(Some((mode, encoded, after)))
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
enum ChangedOnlyProblem {
    #[error("a replace writes everything: `changed_only` is for a merge")]
    Replace,
    #[error(
        "what was read is not known: read the entity with `get(…).tracked()`, and write it with `changed_only` alone"
    )]
    Untracked,
}
