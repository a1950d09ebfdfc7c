//! A part of an entity that is computed from another entity of the partition: it is merged into the
//! entity, which must exist.
//!
//! A merge does not remove a property. Where the part has no value for a property that the entity
//! has, the entity is replaced without it.

use std::error::Error as StdError;

use bytes::Bytes;
use tablesdk_protocol::Value;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};

use super::entry::Entry;
use crate::entity::write_values;
use crate::error::Error;

/// The content of the entity with the part, if it has properties that the part does not have;
/// `None` where a merge is enough.
pub(super) fn replaced(entity: &Bytes, part: &Entry) -> Result<Option<Bytes>, Error> {
    let mut values = values_in(entity).map_err(Error::response)?;
    let count = values.len();
    values.retain(|(name, _)| !part.absent.contains(name));
    if values.len() == count {
        return Ok(None);
    }
    let of_part = values_in(&part.body).map_err(Error::input)?;
    values.retain(|(name, _)| of_part.iter().all(|(known, _)| known != name));
    values.extend(of_part);
    let body = write_values(&part.key, &values).map_err(Error::input)?;
    Ok(Some(body))
}

/// Two parts of one entity as one; `None` where they have different values of one property.
pub(super) fn joined(first: &Entry, second: &Entry) -> Result<Option<Entry>, Cause> {
    let mut values = values_in(&first.body)?;
    let mut absent = first.absent.clone();
    for (name, value) in values_in(&second.body)? {
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known == value => {}
            None if !absent.contains(&name) => values.push((name, value)),
            _ => return Ok(None),
        }
    }
    for name in &second.absent {
        if values.iter().any(|(known, _)| known == name) {
            return Ok(None);
        }
        absent.push(name.clone());
    }
    let body = write_values(&first.key, &values)?;
    let key = first.key.clone();
    Ok(Some(Entry { key, body, absent }))
}

type Cause = Box<dyn StdError + Send + Sync>;

/// The properties of an entity that have values.
pub(super) fn values_in(entity: &Bytes) -> Result<Vec<(String, Value)>, Cause> {
    let entity = read_entity(entity)?;
    let mut values = Vec::new();
    for property in entity.properties() {
        if let Some(value) = property.to_value()? {
            values.push((property.name().to_owned(), value));
        }
    }
    Ok(values)
}

/// Returns true if an entity has the properties of the part, and none of those that the part does
/// not have.
pub(super) fn is_merged(entity: &Bytes, part: &Entry) -> bool {
    let (Ok(entity), Ok(part_of)) = (read_entity(entity), read_entity(&part.body)) else {
        return false;
    };
    let value = |entity: &JsonEntity<'_>, name: &str| {
        let property = entity.property(name)?;
        property.to_value().ok().flatten()
    };
    let mut properties = part_of.properties();
    let mut absent = part.absent.iter();
    properties.all(|property| value(&entity, property.name()) == value(&part_of, property.name()))
        && absent.all(|name| value(&entity, name).is_none())
}

/// The entity that a part goes into does not exist.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the copy {copy} has no entity ({partition_key:?}, {row_key:?}) to go into")]
pub(crate) struct NoEntityError {
    pub(super) copy: &'static str,
    partition_key: String,
    row_key: String,
}

impl NoEntityError {
    pub(crate) fn new(copy: &'static str, part: &Entry) -> Self {
        Self {
            copy,
            partition_key: part.key.partition_key().as_str().to_owned(),
            row_key: part.key.row_key().as_str().to_owned(),
        }
    }
}
