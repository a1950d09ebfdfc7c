//! The body of a request that writes an entity.

use std::borrow::Cow;
use std::mem;

use bytes::Bytes;

use crate::types::limits::PROPERTIES_MAX;
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
            if value.is_too_large() {
                return Err(ErrorCode::PropertyValueTooLarge.into());
            }
        }
        Ok(self.properties)
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
    use proptest::prelude::*;

    use super::*;
    use crate::types::Value;
    use crate::wire::json::{StoredReader, write_stored_property};

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

    /// The keys and the stored properties of a body, as they are read one by one; `None` if it is
    /// refused.
    fn by_values(body: &EntityBody, style: EntityStyle) -> Option<(StoredText, Vec<Vec<u8>>)> {
        let input = body.read_as(style).ok()?;
        let text = |key: &Result<Option<Cow<'_, str>>, ServiceError>| {
            let key = key.clone().ok().flatten();
            key.map(Cow::into_owned)
        };
        let keys = (text(&input.partition_key), text(&input.row_key));
        let properties = input.into_properties().ok()?;
        let properties = properties.iter().map(|(name, value)| {
            let mut out = Vec::new();
            write_stored_property(&mut out, name, value);
            out
        });
        Some((keys, properties.collect()))
    }

    /// The same, as they are read in one pass.
    fn in_one_pass<'b>(
        reader: &mut StoredReader<'b>,
        body: &'b EntityBody,
    ) -> Option<(StoredText, Vec<Vec<u8>>)> {
        let (mut out, mut lengths) = (Vec::new(), Vec::new());
        let keys = reader.read(body.as_bytes(), &mut out, |_, length| lengths.push(length))?;
        let keys = (
            keys.partition_key.map(str::to_owned),
            keys.row_key.map(str::to_owned),
        );
        let mut rest = out.as_slice();
        let properties = lengths.iter().map(|length| {
            let (property, after) = rest.split_at(*length);
            rest = after;
            property.to_vec()
        });
        let properties = properties.collect();
        assert_eq!(rest, b"");
        Some((keys, properties))
    }

    type StoredText = (Option<String>, Option<String>);

    /// Reads bodies in both ways, one after another. Returns how many are read in one pass.
    fn assert_read_alike(bodies: &[EntityBody]) -> usize {
        let mut reader = StoredReader::default();
        let mut count = 0;
        for body in bodies {
            if let Some(read) = in_one_pass(&mut reader, body) {
                for style in [EntityStyle::Storage, EntityStyle::Azurite] {
                    assert_eq!(by_values(body, style).as_ref(), Some(&read), "{body:?}");
                }
                count += 1;
            }
        }
        count
    }

    /// A body of members that clients write, mostly.
    fn usual_body() -> impl Strategy<Value = String> {
        let member = prop_oneof![
            8 => prop::sample::select(&[
                r#""a":"x""#, r#""b":12"#, r#""c":true"#, r#""d":1.5"#, r#""e":null"#, r#""Timestamp":"x""#,
                r#""f@odata.type":"Edm.Int64","f":"5""#, r#""g@odata.type":"Edm.DateTime","g":"2024-03-15T10:20:30Z""#,
                r#""h@odata.type":"Edm.Guid","h":"c9da6455-213d-42c9-9a79-3e9149a57833""#, r#""i@odata.type":"Edm.Double","i":5"#,
                r#""j@odata.type":"Edm.Binary","j":"YQ==""#, r#""PartitionKey":"p""#, r#""RowKey":"r""#, r#""odata.etag":"x""#,
            ][..]).prop_map(str::to_owned),
            4 => (
                prop::sample::select(&["a", "b", "f", "g", "h", "i", "é", "RowKey", "odata.x", "1", ""][..]),
                prop::sample::select(&[
                    "", "Edm.Int64", "Edm.Int32", "Edm.DateTime", "Edm.Guid", "Edm.Double", "Edm.Binary", "Edm.Boolean", "Edm.String", "x",
                ][..]),
                prop_oneof![
                    3 => prop::sample::select(&[
                        "\"\"", "\"x\\n\"", "null", "-0", "0", "2147483648", "1e3", "1.50", "0.00001", "-0.0", "1.0", "\"007\"", "\"NaN\"", "[]",
                        "\"2024-03-15T10:20:30.10Z\"", "\"2024-03-15T10:20Z\"", "\"C9DA6455-213D-42C9-9A79-3E9149A57833\"", "\"true\"",
                    ][..]).prop_map(str::to_owned),
                    1 => any::<f64>().prop_filter("JSON has it", |value| value.is_finite()).prop_map(|value| value.to_string()),
                    1 => any::<i64>().prop_map(|value| format!("\"{value}\"")),
                    1 => any::<i32>().prop_map(|value| value.to_string()),
                    1 => ".{0,9}".prop_map(|text| format!("\"{text}\"")),
                ],
                prop::sample::select(&["", "", " ", "\n"][..]),
            ).prop_map(|(name, edm_type, value, space)| match edm_type {
                "" => format!("{space}\"{name}\":{space}{value}"),
                _ => format!("{space}\"{name}@odata.type\":\"{edm_type}\",{space}\"{name}\"{space}:{value}{space}"),
            }),
        ];
        let members = prop::collection::vec(member, 0..9);
        members.prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    proptest! {
        #[test]
        fn an_entity_read_in_one_pass_is_the_one_of_its_values(
            mut bodies in prop::collection::vec(usual_body(), 1..5),
            repeated: prop::sample::Index,
            damage: Option<(prop::sample::Index, prop::sample::Index, u8)>,
        ) {
            let again = bodies[repeated.index(bodies.len())].clone();
            bodies.push(again.clone());
            bodies.push(again);
            let mut bodies: Vec<_> = bodies.into_iter().map(String::into_bytes).collect();
            if let Some((body, at, byte)) = damage {
                let body = body.index(bodies.len());
                let body = &mut bodies[body];
                let at = at.index(body.len());
                body[at] = byte;
            }
            let bodies: Vec<_> = bodies.into_iter().map(|body| EntityBody::from_bytes(body.into())).collect();
            assert_read_alike(&bodies);
        }

        #[test]
        fn any_body_is_read_alike(bytes: Vec<u8>, text in r#"[{}\[\]:,"\\ a1.@e-]{0,20}"#) {
            assert_read_alike(&[EntityBody::from_bytes(bytes.into()), body(&text), body(&format!("{{\"a\":{text}}}"))]);
        }
    }

    #[test]
    fn what_clients_write_is_read_in_one_pass() {
        let ours = with(
            r#""a":"x","b":-1,"c@odata.type":"Edm.Int64","c":"5","d@odata.type":"Edm.Double","d":101.25,"e":true,"f@odata.type":"Edm.DateTime","f":"2024-03-15T10:20:30.5Z","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","h":"\n","i@odata.type":"Edm.Binary","i":"YQ==""#,
        );
        let spaced = r#"{"PartitionKey": "p", "RowKey": "r", "n@odata.type": "Edm.Int64", "n": "5", "t": "x", "e": null}"#;
        let fewer = r#"{"PartitionKey": "p", "RowKey": "r", "t": "x", "new": 1.0}"#;
        let bodies = [
            &ours,
            &ours,
            spaced,
            spaced,
            fewer,
            "{}",
            " { } ",
            &with(&members(250, "1")),
        ];
        assert_eq!(assert_read_alike(&bodies.map(body)), bodies.len());
        for other in [
            "",
            r#"{"PartitionKey":"\n"}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":"5","a@odata.type":"Edm.Int64"}"#,
            &with(&members(253, "1")),
            &with(&members(600, "null")),
            &with(&format!("\"a\":\"{}\"", "x".repeat(32_769))),
        ] {
            assert_eq!(assert_read_alike(&[body(other)]), 0, "{other:.80}");
        }
    }
}
