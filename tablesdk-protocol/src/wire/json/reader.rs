//! JSON to entities: one pass over the text, names and values borrowed from it where they hold no escapes.
//!
//! Annotations are matched with their property whether they stand before or after it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::entity::{JsonEntity, RawProperty};
use super::error::JsonError;
use super::value::Scalar;

/// Reads a JSON object as an entity.
///
/// # Errors
///
/// When the text is not one JSON object.
pub fn read_entity(body: &[u8]) -> Result<JsonEntity<'_>, JsonError> {
    let mut entity = JsonEntity::default();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    EntitySeed {
        entity: &mut entity,
    }
    .deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(entity)
}

/// Reads an answer of many entities and hands them out one by one. The entity handed out is reused.
///
/// # Errors
///
/// When the text is not an object with an array `value` of objects, or when `visit` fails.
pub fn read_page<'de, E>(
    body: &'de [u8],
    visit: impl FnMut(&JsonEntity<'de>) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<JsonError>,
{
    let mut failure = None;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let seed = PageSeed {
        visit,
        failure: &mut failure,
    };
    let read = deserializer
        .deserialize_map(seed)
        .and_then(|()| deserializer.end());
    match (failure, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(E::from(error.into())),
        (None, Ok(())) => Ok(()),
    }
}

struct PageSeed<'f, F, E> {
    visit: F,
    failure: &'f mut Option<E>,
}

impl<'de, F, E> Visitor<'de> for PageSeed<'_, F, E>
where
    F: FnMut(&JsonEntity<'de>) -> Result<(), E>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an array named value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            if name == "value" && !found {
                found = true;
                let (visit, failure) = (&mut self.visit, &mut *self.failure);
                map.next_value_seed(ListSeed { visit, failure })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found {
            Ok(())
        } else {
            Err(A::Error::missing_field("value"))
        }
    }
}

struct ListSeed<'f, F, E> {
    visit: &'f mut F,
    failure: &'f mut Option<E>,
}

impl<'de, F, E> DeserializeSeed<'de> for ListSeed<'_, F, E>
where
    F: FnMut(&JsonEntity<'de>) -> Result<(), E>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F, E> Visitor<'de> for ListSeed<'_, F, E>
where
    F: FnMut(&JsonEntity<'de>) -> Result<(), E>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of entities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut entity = JsonEntity::default();
        loop {
            entity.clear();
            if list
                .next_element_seed(EntitySeed {
                    entity: &mut entity,
                })?
                .is_none()
            {
                return Ok(());
            }
            if let Err(error) = (self.visit)(&entity) {
                *self.failure = Some(error);
                return Err(A::Error::custom("the visitor failed"));
            }
        }
    }
}

struct EntitySeed<'e, 'a> {
    entity: &'e mut JsonEntity<'a>,
}

impl<'de> DeserializeSeed<'de> for EntitySeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EntitySeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of properties")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let entity = self.entity;
        // Annotations whose property has not come yet: nearly always none, or one for the member that comes next.
        let mut early: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::new();
        let mut late: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::new();
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            if let Some(property) = annotated_property(&name) {
                let Text(edm_type) = map.next_value_seed(TextSeed)?;
                match entity.members.last_mut() {
                    Some(last) if last.name == property => last.annotation = Some(edm_type),
                    _ => early.push((property, edm_type)),
                }
            } else if name == "odata.etag" {
                entity.etag = match map.next_value_seed(ScalarSeed)? {
                    Scalar::Text(etag) => Some(etag),
                    _ => None,
                };
            } else if name.starts_with("odata.") || name.contains('@') {
                map.next_value::<IgnoredAny>()?;
            } else {
                let scalar = map.next_value_seed(ScalarSeed)?;
                let annotation = match early.pop() {
                    Some((property, edm_type)) if property == name => Some(edm_type),
                    Some(other) => {
                        late.push(other);
                        None
                    }
                    None => None,
                };
                entity.members.push(RawProperty {
                    name,
                    scalar,
                    annotation,
                });
            }
        }
        late.append(&mut early);
        if !late.is_empty() {
            let mut late: HashMap<_, _> = late.into_iter().collect();
            for member in &mut entity.members {
                if member.annotation.is_none() {
                    member.annotation = late.remove(&member.name);
                }
            }
        }
        Ok(())
    }
}

/// The property that a member annotates with its type.
fn annotated_property<'a>(name: &Cow<'a, str>) -> Option<Cow<'a, str>> {
    match name {
        Cow::Borrowed(name) => name.strip_suffix(TYPE_SUFFIX).map(Cow::Borrowed),
        Cow::Owned(name) => name
            .strip_suffix(TYPE_SUFFIX)
            .map(|name| Cow::Owned(name.to_owned())),
    }
}

/// A text, borrowed from the input where it holds no escapes.
struct Text<'a>(Cow<'a, str>);

struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text<'de>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar<'de>, E> {
        Ok(i64::try_from(value).map_or(Scalar::BigInteger(value), Scalar::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nested)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nested)
    }
}

const TYPE_SUFFIX: &str = "@odata.type";

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::wire::json::{EntityWriter, PropertyProblem};
    use crate::{EdmType, Value};

    fn values(text: &str) -> Vec<(String, Option<Value>)> {
        let entity = read_entity(text.as_bytes()).unwrap();
        let values = entity
            .properties()
            .map(|p| (p.name().to_owned(), p.to_value().unwrap()));
        values.collect()
    }

    #[test]
    fn annotations_may_stand_before_or_after_or_far_away() {
        let expected = Some(Value::Int64(5));
        for text in [
            r#"{"a@odata.type":"Edm.Int64","a":"5","b":true}"#,
            r#"{"a":"5","a@odata.type":"Edm.Int64","b":true}"#,
            r#"{"a":"5","b":true,"a@odata.type":"Edm.Int64"}"#,
            r#"{"a@odata.type":"Edm.Int64","b@odata.type":"Edm.Boolean","b":true,"a":"5"}"#,
            r#"{"\u0061@odata.type":"Edm.Int64","b":true,"\u0061":"5"}"#,
        ] {
            let values = values(text);
            assert_eq!(
                values.iter().find(|(name, _)| name == "a").unwrap().1,
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn types_are_inferred_as_the_service_infers_them() {
        assert_eq!(
            values(r#"{"i":5,"l":3000000000,"d":5.0,"e":1e3,"s":"x","t":true,"n":null}"#),
            [
                ("i".to_owned(), Some(Value::Int32(5))),
                ("l".to_owned(), Some(Value::Int64(3_000_000_000))),
                ("d".to_owned(), Some(Value::Double(5.0))),
                ("e".to_owned(), Some(Value::Double(1000.0))),
                ("s".to_owned(), Some(Value::from("x"))),
                ("t".to_owned(), Some(Value::Boolean(true))),
                ("n".to_owned(), None),
            ]
        );
    }

    #[test]
    fn annotated_texts_and_numbers_are_converted() {
        for (edm_type, json, value) in [
            ("Binary", r#""YmluYXJ5""#, Value::Binary(b"binary".to_vec())),
            ("Binary", r#""""#, Value::Binary(Vec::new())),
            ("Boolean", r#""true""#, Value::Boolean(true)),
            (
                "DateTime",
                r#""2020-01-01T01:02:00.0000000Z""#,
                Value::DateTime("2020-01-01T01:02:00Z".parse().unwrap()),
            ),
            ("Double", "5", Value::Double(5.0)),
            ("Double", r#""1.5""#, Value::Double(1.5)),
            ("Double", r#""-Infinity""#, Value::Double(f64::NEG_INFINITY)),
            (
                "Double",
                "18446744073709551615",
                Value::Double(18_446_744_073_709_551_615.0),
            ),
            (
                "Guid",
                r#""C9DA6455-213D-42C9-9A79-3E9149A57833""#,
                Value::Guid("c9da6455-213d-42c9-9a79-3e9149a57833".parse().unwrap()),
            ),
            ("Int32", r#""23""#, Value::Int32(23)),
            ("Int64", "23", Value::Int64(23)),
            ("Int64", r#""-9223372036854775808""#, Value::Int64(i64::MIN)),
        ] {
            let text = format!(r#"{{"p@odata.type":"Edm.{edm_type}","p":{json}}}"#);
            assert_eq!(values(&text), [("p".to_owned(), Some(value))], "{text}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let mismatch = |edm_type| PropertyProblem::Mismatch { edm_type };
        for (member, problem) in [
            (
                r#""p@odata.type":"Edm.Boolean","p":"not a bool""#,
                mismatch(EdmType::Boolean),
            ),
            (
                r#""p@odata.type":"Edm.Int32","p":3000000000"#,
                mismatch(EdmType::Int32),
            ),
            (
                r#""p@odata.type":"Edm.Int32","p":true"#,
                mismatch(EdmType::Int32),
            ),
            (
                r#""p@odata.type":"Edm.Int64","p":"1.5""#,
                mismatch(EdmType::Int64),
            ),
            (
                r#""p@odata.type":"Edm.Guid","p":"x""#,
                mismatch(EdmType::Guid),
            ),
            (
                r#""p@odata.type":"Edm.Binary","p":"YQ""#,
                mismatch(EdmType::Binary),
            ),
            (
                r#""p@odata.type":"Edm.String","p":5"#,
                mismatch(EdmType::String),
            ),
            (
                r#""p@odata.type":"Edm.DateTime","p":"0001-01-01T00:00:00Z""#,
                PropertyProblem::DateOutOfRange,
            ),
            (
                r#""p@odata.type":"Edm.Byte","p":"5""#,
                PropertyProblem::UnknownType,
            ),
            (r#""p":[1,[2]]"#, PropertyProblem::Nested),
            (r#""p":{"q":{}}"#, PropertyProblem::Nested),
            (
                r#""p":18446744073709551615"#,
                PropertyProblem::IntegerOutOfRange,
            ),
        ] {
            let text = format!("{{{member}}}");
            let entity = read_entity(text.as_bytes()).unwrap();
            let error = entity.properties().next().unwrap().to_value().unwrap_err();
            assert_eq!((error.name(), error.problem()), ("p", problem), "{text}");
        }
    }

    #[test]
    fn metadata_and_system_properties_are_no_user_properties() {
        let text = r#"{"odata.metadata":"x","odata.etag":"W/\"1\"","odata.nested":{"a":[1]},"PartitionKey@odata.type":"Edm.String","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2020-01-01T00:00:00Z","timestamp":"mine","x@odata.other":[1]}"#;
        let entity = read_entity(text.as_bytes()).unwrap();
        assert_eq!(entity.etag().unwrap().as_str(), "W/\"1\"");
        assert_eq!(entity.text("PartitionKey"), Ok(Some("p")));
        assert_eq!(entity.text("RowKey"), Ok(Some("r")));
        assert_eq!(
            entity.timestamp().unwrap().unwrap().to_string(),
            "2020-01-01T00:00:00Z"
        );
        assert_eq!(
            entity
                .properties()
                .map(RawProperty::name)
                .collect::<Vec<_>>(),
            ["timestamp"]
        );
    }

    #[test]
    fn a_page_is_read_wherever_its_list_stands() {
        for text in [
            r#"{"odata.metadata":"m","value":[{"a":1},{"a":2}]}"#,
            r#"{"value":[{"a":1},{"a":2}],"odata.metadata":"m"}"#,
        ] {
            let mut read = Vec::new();
            read_page::<JsonError>(text.as_bytes(), |entity| {
                read.extend(entity.properties().map(|p| p.to_value().unwrap().unwrap()));
                Ok(())
            })
            .unwrap();
            assert_eq!(read, [Value::Int32(1), Value::Int32(2)]);
        }
        for text in [
            "",
            "[]",
            "{}",
            r#"{"value":1}"#,
            r#"{"value":[1]}"#,
            r#"{"value":[]} x"#,
        ] {
            assert!(
                read_page::<JsonError>(text.as_bytes(), |_| Ok(())).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        let text = format!("{{\"a\":{}", "[".repeat(1_000_000));
        assert!(read_entity(text.as_bytes()).is_err());
    }

    #[test]
    fn many_stray_annotations_take_no_longer_than_many_members() {
        let mut text = "{".to_owned();
        for index in 0..50_000 {
            write!(text, "\"a{index}@odata.type\":\"Edm.Int64\",").unwrap();
        }
        for index in 0..50_000 {
            write!(text, "\"a{index}\":\"1\",").unwrap();
        }
        text.push_str("\"z\":1}");
        let entity = read_entity(text.as_bytes()).unwrap();
        let first = entity.properties().next().unwrap();
        assert_eq!(first.to_value(), Ok(Some(Value::Int64(1))));
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>) {
            let _ = read_entity(&bytes);
        }

        #[test]
        fn reads_back_what_a_request_writes(text: String, bytes: Vec<u8>, bits: u64, int: i64) {
            let double = f64::from_bits(bits);
            prop_assume!(!double.is_nan());
            let expected = [Value::from(text), Value::from(bytes), Value::from(double), Value::from(int)];
            let names = ["t", "b", "d", "i"];
            let mut writer = EntityWriter::new();
            for (name, value) in names.iter().zip(&expected) {
                writer.property(name, &value.as_ref());
            }
            let body = writer.finish();
            let entity = read_entity(&body).unwrap();
            let read: Vec<_> = entity.properties().map(|p| p.to_value().unwrap().unwrap()).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
