//! `changed_only`: what differs between an entity and the properties that were read with `tracked`. Sends nothing.

use tablesdk_protocol::Value;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};

use crate::action::EncodedEntity;
use crate::action::modify::{left_as_is, unmodelled};
use crate::action::update_entity::Update;
use crate::entity::{Stored, WritableEntity, write_entity, write_entity_with, write_values};
use crate::error::Error;

/// What differs from what was read; `None` when nothing does.
pub(in crate::action) fn changes<E: WritableEntity>(
    mode: Mode,
    entity: &Stored<E>,
) -> Result<Option<Update>, Error> {
    if mode == Mode::Replace {
        return Err(Error::input(Problem::Replace));
    }
    let key = entity.unchanged_key().map_err(Error::input)?.clone();
    let fetched = entity.tracked();
    let fetched = fetched.ok_or_else(|| Error::input(Problem::Untracked))?;
    let fetched = read_entity(fetched).map_err(Error::input)?;
    // The response is kept and not the value, because the value has no place for properties that the struct does not model, and a
    // replace must write those back.
    // What was read, as it would be written: what the type does not keep apart is no change.
    let before = Stored::<E>::read(&fetched, Some(entity.etag().clone()));
    let before = before.map_err(Error::input)?;
    let unmodelled = unmodelled(&before, &fetched)?;
    let before = write_entity::<E>(&before, &key).map_err(Error::input)?;
    let now = write_entity::<E>(entity, &key).map_err(Error::input)?;
    let (before, now) = (read_entity(&before), read_entity(&now));
    let (before, now) = (before.map_err(Error::input)?, now.map_err(Error::input)?);
    let rest = left_as_is::<E>(unmodelled.clone(), entity, &now);
    // Of what is stored, the value says that it is not there: it said so before, or has become a variant that knows it.
    let is_gone = |(name, _): &(String, Value)| now.property(name).is_none();
    let is_left = |(name, _): &(String, Value)| rest.iter().any(|(known, _)| known == name);
    let unmodelled_is_gone = |property| is_gone(property) && !is_left(property);
    // What is stored as another type, such as an older version, has properties that are not read any more.
    let type_property = entity.schema_of_value().type_property();
    let has_another_type =
        type_property.is_some_and(|name| fetched.text(name).ok() != now.text(name).ok());
    let before = properties(&before)?;
    let has_lost = before.iter().any(is_gone) || unmodelled.iter().any(unmodelled_is_gone);
    let now = properties(&now)?.into_iter();
    let changed: Vec<_> = now.filter(|property| !before.contains(property)).collect();
    if changed.is_empty() && !has_lost {
        return Ok(None);
    }
    let after = write_entity_with::<E>(entity, &key, &rest).map_err(Error::input)?;
    // A merge can take nothing away.
    let (mode, body) = if has_lost || has_another_type {
        (Mode::Replace, after.clone())
    } else {
        let body = write_values(&key, &changed).map_err(Error::input)?;
        (Mode::Merge, body)
    };
    let encoded = EncodedEntity { key, body };
    Ok(Some(Update {
        mode,
        encoded,
        after: Some(after),
    }))
}

fn properties(entity: &JsonEntity<'_>) -> Result<Vec<(String, Value)>, Error> {
    let mut properties = Vec::new();
    for property in entity.properties() {
        if let Some(value) = property.to_value().map_err(Error::input)? {
            properties.push((property.name().to_owned(), value));
        }
    }
    Ok(properties)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Problem {
    #[error("a replace writes everything: `changed_only` is for a merge")]
    Replace,
    #[error(
        "what was read is not known: read the entity with `get(…).tracked()`, and write it with `changed_only` alone"
    )]
    Untracked,
}
