//! The body of a request that writes an entity.

use std::borrow::Cow;
use std::mem;

use bytes::Bytes;

use crate::types::limits::{BINARY_BYTES_MAX, PROPERTIES_MAX, STRING_UNITS_MAX};
use crate::types::{
    EntityKey, ErrorCode, PropertyNameProblem, ServiceError, ValueRef, check_property_characters,
    check_property_name,
};
use crate::wire::json::{
    EntityStyle, JsonEntity, JsonError, PropertyError, PropertyProblem, read_entity,
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
    /// `InvalidInput` when the body is not a JSON object or a value does not fit its type;
    /// `OutOfRangeInput` for a date outside 1601 to 9999; `DuplicatePropertiesSpecified`;
    /// `TooManyProperties` when there are many times too many.
    pub fn read(&self) -> Result<EntityInput<'_>, ServiceError> {
        self.read_as(EntityStyle::Storage)
    }

    /// As [`read`](Self::read), in the style of another server.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read).
    pub fn read_as(&self, style: EntityStyle) -> Result<EntityInput<'_>, ServiceError> {
        if self.0.is_empty() {
            return Ok(EntityInput::new(style));
        }
        let entity = read_entity(&self.0).map_err(|error| match error {
            JsonError::AnnotatedTwice => ErrorCode::DuplicatePropertiesSpecified,
            JsonError::TooManyMembers => ErrorCode::TooManyProperties,
            _ => ErrorCode::InvalidInput,
        })?;
        EntityInput::of(entity, style)
    }
}

/// The content of a request to write an entity: its keys and its properties, without nulls. Names
/// and strings without escapes are borrowed from the body. In the style of Cosmos DB, the keys are
/// properties, too, without their values.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityInput<'a> {
    style: EntityStyle,
    partition_key: Result<Option<Cow<'a, str>>, ServiceError>,
    row_key: Result<Option<Cow<'a, str>>, ServiceError>,
    properties: Vec<(Cow<'a, str>, ValueRef<'a>)>,
}

impl<'a> EntityInput<'a> {
    const fn new(style: EntityStyle) -> Self {
        Self {
            style,
            partition_key: Ok(None),
            row_key: Ok(None),
            properties: Vec::new(),
        }
    }

    /// Converts every value of an entity, without a look at the rules of meaning.
    fn of(entity: JsonEntity<'a>, style: EntityStyle) -> Result<Self, ServiceError> {
        if entity.has_duplicates() {
            return Err(ErrorCode::DuplicatePropertiesSpecified.into());
        }
        let mut input = Self {
            properties: Vec::with_capacity(entity.members().len()),
            ..Self::new(style)
        };
        let is_cosmos_db = style == EntityStyle::CosmosDb;
        for member in entity.into_members() {
            match member.name() {
                "PartitionKey" => {
                    input.partition_key = member.into_text().map_err(|_| unreadable());
                    input.keep_key("PartitionKey");
                }
                "RowKey" => {
                    input.row_key = member.into_text().map_err(|_| unreadable());
                    input.keep_key("RowKey");
                }
                // SERVICE: recorded; a property of that name in lower case is kept.
                "Etag" if is_cosmos_db => {}
                _ if member.is_system() => {}
                _ => {
                    let member = if style == EntityStyle::Azurite && member.is_other_guid() {
                        member.without_annotation()
                    } else {
                        member
                    };
                    let property = member.into_named_value();
                    input
                        .properties
                        .extend(property.map_err(|error| refusal(&error))?);
                }
            }
        }
        Ok(input)
    }

    /// Keeps the place of a key among the properties, where the style has it. Its value comes from
    /// the key of the entity, which an update has in its URL.
    fn keep_key(&mut self, name: &'static str) {
        if self.style == EntityStyle::CosmosDb {
            let place = ValueRef::String(Cow::Borrowed(""));
            self.properties.push((Cow::Borrowed(name), place));
        }
    }

    /// Takes the key in the body, as an insert needs it. A request that has the key in its URL does
    /// not look.
    ///
    /// # Errors
    ///
    /// `PropertiesNeedValue` when a part is missing, `InvalidInput` when one is not a string, and
    /// those of a key that breaks the rules.
    pub fn take_key(&mut self) -> Result<EntityKey, ServiceError> {
        let take = |key| mem::replace(key, Ok(None));
        match (take(&mut self.partition_key)?, take(&mut self.row_key)?) {
            (Some(partition_key), Some(row_key)) => Ok(EntityKey::new(
                partition_key.into_owned(),
                row_key.into_owned(),
            )?),
            _ => Err(ErrorCode::PropertiesNeedValue.into()),
        }
    }

    /// Refuses a key in the body that is not a string. A key may be missing.
    ///
    /// # Errors
    ///
    /// `InvalidInput`.
    pub fn require_readable_key(&self) -> Result<(), ServiceError> {
        let key = self.partition_key.as_ref().and(self.row_key.as_ref());
        key.map(|_| ()).map_err(Clone::clone)
    }

    /// The properties, unchecked.
    pub fn properties(&self) -> &[(Cow<'a, str>, ValueRef<'a>)] {
        &self.properties
    }

    /// The properties, names and values checked against the limits that hold for each alone.
    ///
    /// # Errors
    ///
    /// `PropertyNameInvalid`, `PropertyNameTooLong`, `PropertyValueTooLarge` or
    /// `TooManyProperties`.
    pub fn into_properties(self) -> Result<Vec<(Cow<'a, str>, ValueRef<'a>)>, ServiceError> {
        let has_limits = self.style != EntityStyle::CosmosDb;
        if has_limits && self.properties.len() > PROPERTIES_MAX {
            return Err(ErrorCode::TooManyProperties.into());
        }
        for (name, value) in &self.properties {
            let checked = if has_limits {
                check_property_name(name)
            } else {
                check_property_characters(name)
            };
            match checked {
                Ok(()) => {}
                Err(PropertyNameProblem::TooLong { .. }) => {
                    return Err(ErrorCode::PropertyNameTooLong.into());
                }
                Err(_) => return Err(ErrorCode::PropertyNameInvalid.into()),
            }
            if is_too_large(value) {
                return Err(ErrorCode::PropertyValueTooLarge.into());
            }
        }
        Ok(self.properties)
    }
}

/// Returns true if a value exceeds the 64 KiB that one property may hold.
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
    use crate::types::Value;

    fn body(text: &str) -> EntityBody {
        EntityBody::from_bytes(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn properties(text: &str) -> Vec<(String, Value)> {
        let body = body(text);
        let properties = body.read().and_then(EntityInput::into_properties);
        let properties = properties.unwrap().into_iter();
        properties
            .map(|(name, value)| (name.into_owned(), value.into_value()))
            .collect()
    }

    fn with(member: &str) -> String {
        format!(r#"{{"PartitionKey":"p","RowKey":"r",{member}}}"#)
    }

    fn members(count: usize, value: &str) -> String {
        let members = (0..count).map(|index| format!("\"p{index}\":{value}"));
        members.collect::<Vec<_>>().join(",")
    }

    fn code(body: &str) -> ErrorCode {
        let body = self::body(body);
        let mut input = match body.read() {
            Ok(input) => input,
            Err(error) => return error.code().clone(),
        };
        match input
            .take_key()
            .map(|_| ())
            .and_then(|()| input.into_properties())
        {
            Ok(properties) => panic!("{body:?} gave {properties:?}"),
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
            (with(r#""a":1e309"#), ErrorCode::InvalidInput),
            (
                with(&format!("\"a\":1{}", "0".repeat(309))),
                ErrorCode::InvalidInput,
            ),
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
        let body = body(
            r#"{"odata.etag":"x","PartitionKey":"","RowKey":"","Timestamp":null,"ETag":null,"a":1}"#,
        );
        let mut input = body.read().unwrap();
        assert_eq!(input.take_key(), Ok(EntityKey::new("", "").unwrap()));
        assert_eq!(
            input.into_properties(),
            Ok(vec![("a".into(), ValueRef::Int32(1))])
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
            assert_eq!(properties(&body), [("a".to_owned(), expected)], "{body}");
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
            assert_eq!(properties(&format!("{{{members}}}")), [], "{members}");
        }
        // Nulls do not count: they are as if absent.
        let nulls = members(300, "null").replace("\"p", "\"n");
        let body = format!("{{{nulls},{}}}", members(252, "1"));
        assert_eq!(properties(&body).len(), 252);
    }

    #[test]
    fn names_that_differ_in_case_or_script_are_different_names() {
        let properties =
            properties(r#"{"ETag":1,"etag":2,"Etag":3,"timestamp":4,"啊齄丂狛狜":5,"_":6}"#);
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
            let body = body(&format!("{{{keys},\"a\":1}}"));
            let mut input = body.read().unwrap();
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
        let body = self::body(&body);
        let mut input = body.read().unwrap();
        assert!(input.take_key().is_ok());
        assert!(input.into_properties().is_ok());
    }

    #[test]
    fn names_and_strings_without_escapes_are_borrowed() {
        let body = body(r#"{"a":"x","b":"x\n","\u0063":"y","d@odata.type":"Edm.String","d":"z"}"#);
        let input = body.read().unwrap();
        let is_borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        let borrowed: Vec<_> = input
            .into_properties()
            .unwrap()
            .iter()
            .map(|(name, value)| match value {
                ValueRef::String(text) => (is_borrowed(name), is_borrowed(text)),
                _ => panic!("{value:?}"),
            })
            .collect();
        let expected = [(true, true), (true, false), (false, true), (true, true)];
        assert_eq!(borrowed, expected);
    }
}
