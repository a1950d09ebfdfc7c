//! The body of a request that writes an entity.

use std::collections::HashSet;

use bytes::Bytes;

use crate::limits::{BINARY_BYTES_MAX, PROPERTIES_MAX, STRING_UNITS_MAX};
use crate::wire::json::{PropertyError, PropertyProblem, read_entity};
use crate::{
    EntityKey, ErrorCode, PropertyNameProblem, ServiceError, Value, ValueRef, check_property_name,
};

/// An entity as JSON, as a request carries it. The server reads it once it knows that it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityBody(Bytes);

impl EntityBody {
    /// Takes the bytes as they are.
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads the JSON and converts every value, without a look at the rules of meaning.
    ///
    /// An empty body is an entity without properties, as old clients send it with a merge.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when the body is not a JSON object or a value does not fit its type; `OutOfRangeInput` for a date
    /// outside 1601 to 9999; `DuplicatePropertiesSpecified`.
    pub fn read(&self) -> Result<EntityInput, ServiceError> {
        if self.0.is_empty() {
            return Ok(EntityInput::default());
        }
        let entity =
            read_entity(&self.0).map_err(|_| ServiceError::from(ErrorCode::InvalidInput))?;
        let mut names = HashSet::new();
        let mut properties = Vec::new();
        for property in entity.properties() {
            if !names.insert(property.name()) {
                return Err(ErrorCode::DuplicatePropertiesSpecified.into());
            }
            if property.is_unannotated_big_integer() {
                return Err(unreadable());
            }
            if let Some(value) = property.to_value().map_err(|error| refusal(&error))? {
                properties.push((property.name().to_owned(), value));
            }
        }
        let key = |name| {
            entity
                .text(name)
                .map(|text| text.map(str::to_owned))
                .map_err(|_| unreadable())
        };
        Ok(EntityInput {
            partition_key: key("PartitionKey"),
            row_key: key("RowKey"),
            properties,
        })
    }
}

/// What a request to write an entity says: its keys and its properties, nulls left out.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityInput {
    partition_key: Result<Option<String>, ServiceError>,
    row_key: Result<Option<String>, ServiceError>,
    properties: Vec<(String, Value)>,
}

impl Default for EntityInput {
    fn default() -> Self {
        Self {
            partition_key: Ok(None),
            row_key: Ok(None),
            properties: Vec::new(),
        }
    }
}

impl EntityInput {
    /// The key in the body, as an insert needs it. A request that has the key in its URL does not look.
    ///
    /// # Errors
    ///
    /// `PropertiesNeedValue` when a part is missing, `InvalidInput` when one is not a text, and those of a key that breaks
    /// the rules.
    pub fn key(&self) -> Result<EntityKey, ServiceError> {
        match (self.partition_key.clone()?, self.row_key.clone()?) {
            (Some(partition_key), Some(row_key)) => Ok(EntityKey::new(partition_key, row_key)?),
            _ => Err(ErrorCode::PropertiesNeedValue.into()),
        }
    }

    /// The properties, names and values checked against the limits that hold for each alone.
    ///
    /// # Errors
    ///
    /// `PropertyNameInvalid`, `PropertyNameTooLong`, `PropertyValueTooLarge` or `TooManyProperties`.
    pub fn into_properties(self) -> Result<Vec<(String, Value)>, ServiceError> {
        if self.properties.len() > PROPERTIES_MAX {
            return Err(ErrorCode::TooManyProperties.into());
        }
        for (name, value) in &self.properties {
            match check_property_name(name) {
                Ok(()) => {}
                Err(PropertyNameProblem::TooLong { .. }) => {
                    return Err(ErrorCode::PropertyNameTooLong.into());
                }
                Err(_) => return Err(ErrorCode::PropertyNameInvalid.into()),
            }
            if is_too_large(&value.as_ref()) {
                return Err(ErrorCode::PropertyValueTooLarge.into());
            }
        }
        Ok(self.properties)
    }
}

/// Whether a value exceeds the 64 KiB that one property may hold.
pub(crate) fn is_too_large(value: &ValueRef<'_>) -> bool {
    match value {
        ValueRef::Binary(bytes) => bytes.len() > BINARY_BYTES_MAX,
        // A text has no more UTF-16 units than bytes.
        ValueRef::String(text) => {
            text.len() > STRING_UNITS_MAX && text.encode_utf16().count() > STRING_UNITS_MAX
        }
        _ => false,
    }
}

fn refusal(error: &PropertyError) -> ServiceError {
    match error.problem() {
        PropertyProblem::DateOutOfRange => ErrorCode::OutOfRangeInput.into(),
        _ => unreadable(),
    }
}

fn unreadable() -> ServiceError {
    ServiceError::new(
        ErrorCode::InvalidInput,
        "An error occurred while processing this request.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<EntityInput, ServiceError> {
        EntityBody::from_bytes(Bytes::copy_from_slice(body.as_bytes())).read()
    }

    fn code(body: &str) -> ErrorCode {
        let input = match read(body) {
            Ok(input) => input,
            Err(error) => return error.code().clone(),
        };
        match input
            .key()
            .map(|_| ())
            .and_then(|()| input.into_properties())
        {
            Ok(properties) => panic!("{body} gave {properties:?}"),
            Err(error) => error.code().clone(),
        }
    }

    #[test]
    fn each_broken_rule_has_its_code() {
        let with = |member: &str| format!(r#"{{"PartitionKey":"p","RowKey":"r",{member}}}"#);
        let many: Vec<_> = (0..253).map(|index| format!("\"p{index}\":1")).collect();
        for (body, expected) in [
            ("{".to_owned(), ErrorCode::InvalidInput),
            ("[]".to_owned(), ErrorCode::InvalidInput),
            ("\"text\"".to_owned(), ErrorCode::InvalidInput),
            (
                r#"{"PartitionKey":"p"}"#.to_owned(),
                ErrorCode::PropertiesNeedValue,
            ),
            (
                r#"{"PartitionKey":"p","RowKey":null}"#.to_owned(),
                ErrorCode::PropertiesNeedValue,
            ),
            (
                r#"{"PartitionKey":"p","RowKey":5}"#.to_owned(),
                ErrorCode::InvalidInput,
            ),
            (
                r#"{"PartitionKey":"p","RowKey":"a/b"}"#.to_owned(),
                ErrorCode::OutOfRangeInput,
            ),
            (with(r#""a":[]"#), ErrorCode::InvalidInput),
            (with(r#""a":3000000000"#), ErrorCode::InvalidInput),
            (
                with(r#""a":1,"a":2"#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
            (
                with(r#""a":"0001-01-01T00:00:00","a@odata.type":"Edm.DateTime""#),
                ErrorCode::OutOfRangeInput,
            ),
            (with(r#""123":1"#), ErrorCode::PropertyNameInvalid),
            (with(r#""a-b":1"#), ErrorCode::PropertyNameInvalid),
            (
                with(&format!("\"{}\":1", "a".repeat(256))),
                ErrorCode::PropertyNameTooLong,
            ),
            (
                with(&format!("\"a\":\"{}\"", "x".repeat(32_769))),
                ErrorCode::PropertyValueTooLarge,
            ),
            (with(&many.join(",")), ErrorCode::TooManyProperties),
        ] {
            assert_eq!(code(&body), expected, "{body:.80}");
        }
    }

    #[test]
    fn nulls_and_what_a_clone_carries_are_left_out() {
        let input = read(
            r#"{"odata.etag":"x","PartitionKey":"","RowKey":"","Timestamp":null,"ETag":null,"a":1}"#,
        )
        .unwrap();
        assert_eq!(input.key(), Ok(EntityKey::new("", "").unwrap()));
        assert_eq!(
            input.into_properties(),
            Ok(vec![("a".to_owned(), Value::Int32(1))])
        );
    }

    #[test]
    fn the_largest_values_fit() {
        let text = "é".repeat(32_768);
        let body = format!(r#"{{"PartitionKey":"p","RowKey":"r","a":"{text}"}}"#);
        assert!(read(&body).unwrap().into_properties().is_ok());
    }
}
