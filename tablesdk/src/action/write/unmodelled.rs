//! The properties of an entity that its type does not have, which `modify` and `changed_only` keep.

use tablesdk_protocol::Value;
use tablesdk_protocol::wire::json::JsonEntity;

use crate::entity::{Stored, WritableEntity, values_of};
use crate::error::Error;

/// The properties that the type neither has nor keeps: they are written back as they are.
pub(crate) fn unmodelled<E: WritableEntity>(
    stored: &Stored<E>,
    entity: &JsonEntity<'_>,
) -> Result<Vec<(String, Value)>, Error> {
    let kept = values_of::<E>(stored, stored.key(), stored.step_of()).map_err(Error::input)?;
    let schema = stored.schema_of_value();
    let mut rest = Vec::new();
    for property in entity.properties() {
        let name = property.name();
        if schema.models(name) || kept.iter().any(|(kept, _)| kept == name) {
            continue;
        }
        if let Some(value) = property.to_value().map_err(Error::response)? {
            rest.push((name.to_owned(), value));
        }
    }
    Ok(rest)
}

/// The properties that a value neither has nor writes. A value that became another variant may have
/// properties that the one before did not have.
pub(crate) fn left_as_is<E: WritableEntity>(
    mut properties: Vec<(String, Value)>,
    value: &E,
    written: &[(String, Value)],
) -> Vec<(String, Value)> {
    let schema = value.schema_of_value();
    let is_written = |name: &String| written.iter().any(|(written, _)| written == name);
    properties.retain(|(name, _)| !schema.models(name) && !is_written(name));
    properties
}
