//! An entity of a record, from its JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tablesdk::{DynamicEntity, ETag, Guid, Value};
use tablesdk_protocol::wire::json::{JsonEntity, PropertyError, PropertyProblem, RawProperty};

use crate::lines::LineError;

/// How the JSON of an entity is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A value that its type does not allow is a string.
    as_string: bool,
    /// The text of a GUID is in Base64.
    encoded_guids: bool,
}

impl Rules {
    /// As the service writes entities.
    pub(crate) const fn of_service(as_string: bool) -> Self {
        Self {
            as_string,
            encoded_guids: false,
        }
    }

    /// As Azurite stores entities.
    pub(super) const fn of_azurite(as_string: bool) -> Self {
        Self {
            as_string,
            encoded_guids: true,
        }
    }
}

/// Reads an entity. A timestamp is not part of it.
pub(crate) fn entity_of(json: &JsonEntity<'_>, rules: Rules) -> Result<DynamicEntity, LineError> {
    if json.has_duplicates() {
        return Err(LineError::Duplicate);
    }
    let key = |name| match json.text(name) {
        Ok(Some(key)) => Ok(key),
        Ok(None) => Err(LineError::NoKey(name)),
        Err(error) => Err(LineError::Property(error)),
    };
    let mut entity = DynamicEntity::new(key("PartitionKey")?, key("RowKey")?);
    for property in json.properties() {
        let value = value_of(property, rules).map_err(LineError::Property)?;
        if let Some(value) = value {
            entity.properties_mut().set(property.name(), value);
        }
    }
    Ok(entity)
}

/// The version of an entity, if its JSON has one. A malformed one must not make a write
/// unconditional.
pub(crate) fn etag_of(json: &JsonEntity<'_>) -> Result<Option<ETag>, LineError> {
    if json.is_etag_malformed() {
        return Err(LineError::ETag);
    }
    Ok(json.etag().cloned())
}

fn value_of(property: &RawProperty<'_>, rules: Rules) -> Result<Option<Value>, PropertyError> {
    property.require_annotated()?;
    if rules.encoded_guids
        && property.is_other_guid()
        && let Some(guid) = encoded_guid(property)
    {
        return Ok(Some(guid));
    }
    match property.to_value() {
        Err(error) if rules.as_string && error.problem() != PropertyProblem::Nested => {
            let text = property.untyped_text().ok_or(error)?;
            Ok(Some(Value::String(text.to_owned())))
        }
        value => value,
    }
}

fn encoded_guid(property: &RawProperty<'_>) -> Option<Value> {
    let text = property.clone().without_annotation();
    let text = STANDARD.decode(text.string()?).ok()?;
    let guid: Guid = str::from_utf8(&text).ok()?.parse().ok()?;
    Some(Value::Guid(guid))
}
