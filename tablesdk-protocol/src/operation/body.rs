//! The body of a request that writes an entity.

use std::mem;

use bytes::Bytes;

use crate::types::limits::{BINARY_BYTES_MAX, PROPERTIES_MAX, STRING_UNITS_MAX};
use crate::types::{
    EntityKey, ErrorCode, PropertyNameProblem, ServiceError, Value, ValueRef, check_property_name,
};
use crate::wire::json::{JsonEntity, JsonError, PropertyError, PropertyProblem, read_entity};

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
    /// outside 1601 to 9999; `DuplicatePropertiesSpecified`; `TooManyProperties` when there are many times too many.
    pub fn read(&self) -> Result<EntityInput, ServiceError> {
        if self.0.is_empty() {
            return Ok(EntityInput::default());
        }
        let entity = read_entity(&self.0).map_err(|error| match error {
            JsonError::AnnotatedTwice => ErrorCode::DuplicatePropertiesSpecified,
            JsonError::TooManyMembers => ErrorCode::TooManyProperties,
            _ => ErrorCode::InvalidInput,
        })?;
        EntityInput::of(&entity)
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
    /// Converts every value of an entity, without a look at the rules of meaning.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when a value does not fit its type; `OutOfRangeInput` for a date outside 1601 to 9999;
    /// `DuplicatePropertiesSpecified`.
    pub fn of(entity: &JsonEntity<'_>) -> Result<Self, ServiceError> {
        if entity.has_duplicates() {
            return Err(ErrorCode::DuplicatePropertiesSpecified.into());
        }
        let mut properties = Vec::with_capacity(entity.members().len());
        for property in entity.properties() {
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
        Ok(Self {
            partition_key: key("PartitionKey"),
            row_key: key("RowKey"),
            properties,
        })
    }

    /// Takes the key in the body, as an insert needs it. A request that has the key in its URL does not look.
    ///
    /// # Errors
    ///
    /// `PropertiesNeedValue` when a part is missing, `InvalidInput` when one is not a string, and those of a key that breaks
    /// the rules.
    pub fn take_key(&mut self) -> Result<EntityKey, ServiceError> {
        let take = |key| mem::replace(key, Ok(None));
        match (take(&mut self.partition_key)?, take(&mut self.row_key)?) {
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

    fn with(member: &str) -> String {
        format!(r#"{{"PartitionKey":"p","RowKey":"r",{member}}}"#)
    }

    fn members(count: usize, value: &str) -> String {
        let members = (0..count).map(|index| format!("\"p{index}\":{value}"));
        members.collect::<Vec<_>>().join(",")
    }

    fn code(body: &str) -> ErrorCode {
        let mut input = match read(body) {
            Ok(input) => input,
            Err(error) => return error.code().clone(),
        };
        match input
            .take_key()
            .map(|_| ())
            .and_then(|()| input.into_properties())
        {
            Ok(properties) => panic!("{body} gave {properties:?}"),
            Err(error) => error.code().clone(),
        }
    }

    #[test]
    fn a_body_without_readable_keys_is_refused() {
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
        ] {
            assert_eq!(code(&body), expected, "{body:.80}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_refused() {
        for (body, expected) in [
            (with(r#""a":[]"#), ErrorCode::InvalidInput),
            (with(r#""a":{"b":1}"#), ErrorCode::InvalidInput),
            (with(r#""a":3000000000"#), ErrorCode::InvalidInput),
            (with(r#""a":-2147483649"#), ErrorCode::InvalidInput),
            (
                with(r#""a":123456789012345678901234567890"#),
                ErrorCode::InvalidInput,
            ),
            (with(r#""a":1e309"#), ErrorCode::InvalidInput),
            (
                with(r#""a":"9223372036854775808","a@odata.type":"Edm.Int64""#),
                ErrorCode::InvalidInput,
            ),
            (
                with(r#""a":"+5","a@odata.type":"Edm.Int64""#),
                ErrorCode::InvalidInput,
            ),
            (
                with(r#""a":"not a bool","a@odata.type":"Edm.Boolean""#),
                ErrorCode::InvalidInput,
            ),
            (
                with(r#""a":"x","a@odata.type":"Edm.Byte""#),
                ErrorCode::InvalidInput,
            ),
            (with(r#""a":"x","a@odata.type":5"#), ErrorCode::InvalidInput),
            (
                with(r#""a":"0001-01-01T00:00:00","a@odata.type":"Edm.DateTime""#),
                ErrorCode::OutOfRangeInput,
            ),
        ] {
            assert_eq!(code(&body), expected, "{body:.80}");
        }
    }

    #[test]
    fn repeated_properties_are_refused() {
        for (body, expected) in [
            (
                with(r#""a":1,"a":2"#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
            (
                with(r#""a":1,"b":2,"\u0061":null"#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
            (
                with(r#""PartitionKey":"p""#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
            (
                with(r#""RowKey":null"#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
            (
                with(r#""Timestamp":1,"Timestamp":2"#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
            (
                with(r#""a@odata.type":"Edm.Int32","a":1,"a@odata.type":"Edm.Int32""#),
                ErrorCode::DuplicatePropertiesSpecified,
            ),
        ] {
            assert_eq!(code(&body), expected, "{body:.80}");
        }
    }

    #[test]
    fn names_sizes_and_numbers_are_limited() {
        for (body, expected) in [
            (with(r#""123":1"#), ErrorCode::PropertyNameInvalid),
            (with(r#""a@b":1"#), ErrorCode::PropertyNameInvalid),
            (with(r#""a@odata.other":1"#), ErrorCode::PropertyNameInvalid),
            (
                with(r#""odata":1,"odatax.y":1"#),
                ErrorCode::PropertyNameInvalid,
            ),
            (with(r#""":1"#), ErrorCode::PropertyNameInvalid),
            (with(r#""a-b":1"#), ErrorCode::PropertyNameInvalid),
            (
                with(&format!("\"{}\":1", "a".repeat(256))),
                ErrorCode::PropertyNameTooLong,
            ),
            (
                with(&format!("\"a\":\"{}\"", "x".repeat(32_769))),
                ErrorCode::PropertyValueTooLarge,
            ),
            (
                with(&format!(
                    "\"a\":\"{}\",\"a@odata.type\":\"Edm.Binary\"",
                    // 65,538 bytes.
                    "AAAA".repeat(21_846)
                )),
                ErrorCode::PropertyValueTooLarge,
            ),
            (
                format!(r#"{{"PartitionKey":"{}","RowKey":"r"}}"#, "é".repeat(513)),
                ErrorCode::PropertyValueTooLarge,
            ),
            (with(&members(253, "1")), ErrorCode::TooManyProperties),
            (with(&members(100_000, "1")), ErrorCode::TooManyProperties),
            (
                with(&members(100_000, "null")),
                ErrorCode::TooManyProperties,
            ),
        ] {
            assert_eq!(code(&body), expected, "{body:.80}");
        }
    }

    #[test]
    fn nulls_and_system_properties_are_left_out() {
        let mut input = read(
            r#"{"odata.etag":"x","PartitionKey":"","RowKey":"","Timestamp":null,"ETag":null,"a":1}"#,
        )
        .unwrap();
        assert_eq!(input.take_key(), Ok(EntityKey::new("", "").unwrap()));
        assert_eq!(
            input.into_properties(),
            Ok(vec![("a".to_owned(), Value::Int32(1))])
        );
    }

    #[test]
    fn each_json_value_has_the_type_that_the_service_gives_it() {
        for (members, expected) in [
            (r#""a":"text""#, Value::from("text")),
            (r#""a":"""#, Value::from("")),
            (r#""a":" x ""#, Value::from(" x ")),
            (r#""a":12"#, Value::from(12)),
            (r#""a":-0"#, Value::from(0)),
            (r#""a":1.5"#, Value::from(1.5)),
            (r#""a":1.0"#, Value::from(1.0)),
            (r#""a":1e3"#, Value::from(1000.0)),
            (r#""a":true"#, Value::from(true)),
            (r#""a@odata.type":"Edm.String","a":"5""#, Value::from("5")),
            (
                r#""a@odata.type":"Edm.Binary","a":"""#,
                Value::from(Vec::new()),
            ),
            (
                r#""a@odata.type":"Edm.Boolean","a":"false""#,
                Value::from(false),
            ),
            (
                r#""a@odata.type":"Edm.Boolean","a":false"#,
                Value::from(false),
            ),
            (r#""a@odata.type":"Edm.Double","a":5"#, Value::from(5.0)),
            (r#""a@odata.type":"Edm.Double","a":"0""#, Value::from(0.0)),
            (
                r#""a@odata.type":"Edm.Double","a":"-Infinity""#,
                Value::from(f64::NEG_INFINITY),
            ),
            (r#""a@odata.type":"Edm.Int32","a":"23""#, Value::from(23)),
            (r#""a@odata.type":"Edm.Int32","a":23"#, Value::from(23)),
            (r#""a":"5","a@odata.type":"Edm.Int64""#, Value::from(5_i64)),
            (
                r#""a":9007199254740993,"a@odata.type":"Edm.Int64""#,
                Value::from(9_007_199_254_740_993_i64),
            ),
            (
                r#""a":"2008-07-10T00:00:00","a@odata.type":"Edm.DateTime""#,
                Value::DateTime("2008-07-10T00:00:00Z".parse().unwrap()),
            ),
        ] {
            let body = format!(
                r#"{{"PartitionKey@odata.type":"Edm.String","PartitionKey":"p",{members}}}"#
            );
            let properties = read(&body).unwrap().into_properties();
            assert_eq!(properties, Ok(vec![("a".to_owned(), expected)]), "{body}");
        }
    }

    #[test]
    fn members_that_are_not_properties_are_ignored() {
        for members in [
            r#""a":null"#,
            r#""a":null,"a@odata.type":"Edm.Byte""#,
            r#""a@odata.type":5,"a":null"#,
            r#""a@odata.type":"Edm.Byte""#,
            r#""Timestamp":"yesterday""#,
            r#""Timestamp":{"a":[]},"Timestamp@odata.type":"Edm.Byte""#,
            r#""odata.etag":5,"odata.etag":"x","odata.a b":{}"#,
        ] {
            let input = read(&format!("{{{members}}}")).unwrap();
            assert_eq!(input.into_properties(), Ok(vec![]), "{members}");
        }
        // Nulls do not count: they are as if absent.
        let nulls = members(300, "null").replace("\"p", "\"n");
        let input = read(&format!("{{{nulls},{}}}", members(252, "1"))).unwrap();
        assert_eq!(input.into_properties().map(|list| list.len()), Ok(252));
    }

    #[test]
    fn names_that_differ_in_case_or_script_are_different_names() {
        let input = read(r#"{"ETag":1,"etag":2,"Etag":3,"timestamp":4,"啊齄丂狛狜":5,"_":6}"#);
        let properties = input.unwrap().into_properties().unwrap();
        let names: Vec<_> = properties.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["ETag", "etag", "Etag", "timestamp", "啊齄丂狛狜", "_"];
        assert_eq!(names, expected);
    }

    #[test]
    fn an_update_does_not_look_at_the_keys_of_its_body() {
        for keys in [
            r#""PartitionKey":5"#,
            r#""PartitionKey":"5","PartitionKey@odata.type":"Edm.Int64""#,
            r#""RowKey":{}"#,
            r#""RowKey":"a/b""#,
        ] {
            let mut input = read(&format!("{{{keys},\"a\":1}}")).unwrap();
            assert!(input.take_key().is_err(), "{keys}");
            assert!(input.into_properties().is_ok(), "{keys}");
        }
    }

    #[test]
    fn the_largest_values_fit() {
        let text = "é".repeat(32_768);
        let bytes = "AAAA".repeat(21_845) + "AA==";
        let key = "é".repeat(512);
        let name = "é".repeat(255);
        let body = format!(
            r#"{{"PartitionKey":"{key}","RowKey":"{key}","{name}":"{text}","b":"{bytes}","b@odata.type":"Edm.Binary"}}"#
        );
        let mut input = read(&body).unwrap();
        assert!(input.take_key().is_ok());
        assert!(input.into_properties().is_ok());
    }
}
