//! Reads entities from JSON in one pass over the input. Names and values without escapes are
//! borrowed from it.
//!
//! The module [`scan`](super::scan) reads the usual output of the service. The reader here defines
//! what is valid and what it means, and reports errors: it reads all that the scanner gives up on.
//!
//! Annotations are matched with their property whether they come before or after it. A number stays
//! the string that it is in the input. The number of members that are held is limited. Skipped
//! values may be nested to any depth: they take no stack.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::cursor::EntityCursor;
use super::entity::JsonEntity;
use super::error::JsonError;
use super::members::ScannedEntity;
use super::object::{MEMBERS_MAX, TYPE_SUFFIX};
use super::scan::{self, Scanner};
use super::value::Scalar;
use crate::types::ETag;

/// Reads a JSON object as an entity.
///
/// # Errors
///
/// When the input is not one JSON object, annotates a property twice, or has more than 4,096
/// members.
pub fn read_entity(body: &[u8]) -> Result<JsonEntity<'_>, JsonError> {
    let mut entity = JsonEntity::default();
    let text = std::str::from_utf8(body);
    if text.is_ok_and(|text| scan::entity(text, &mut entity).is_some()) {
        return Ok(entity);
    }
    read_any_entity(body)
}

/// Reads what the scanner gives up on, or reports why it cannot be read.
pub(super) fn read_any_entity(body: &[u8]) -> Result<JsonEntity<'_>, JsonError> {
    let mut entity = JsonEntity::default();
    let mut failure = None;
    let seed = EntitySeed {
        entity: &mut entity,
        failure: &mut failure,
    };
    let read = read_whole(body, seed);
    match (failure, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(())) => Ok(entity),
    }
}

/// Reads a response with many entities and passes them to a function one by one. The entity is
/// reused.
///
/// # Errors
///
/// When the input is not an object with an array `value` of objects, [`read_entity`] would refuse
/// one of them, or `visit` fails.
pub fn read_page<'de, E>(
    body: &'de [u8],
    mut visit: impl FnMut(&JsonEntity<'de>) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<JsonError>,
{
    let mut visited = 0;
    if let Ok(text) = std::str::from_utf8(body) {
        let mut entity = JsonEntity::default();
        let scanned = scan::page(text, |scanner| {
            scanner.entity(&mut entity)?;
            visited += 1;
            Some(visit(&entity))
        });
        if let Some(result) = scanned {
            return result;
        }
    }
    read_rest_of_page(body, visited, visit)
}

/// Reads a page after its first entities, which have been visited.
fn read_rest_of_page<'de, E>(
    body: &'de [u8],
    mut visited: usize,
    mut visit: impl FnMut(&JsonEntity<'de>) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<JsonError>,
{
    read_any_page(body, |entity| match visited.checked_sub(1) {
        Some(left) => {
            visited = left;
            Ok(())
        }
        None => visit(entity),
    })
}

/// Reads a JSON object as an entity, of which a function makes a value. If the scanner gives up,
/// the function is called again, and only its last value counts.
///
/// # Errors
///
/// The errors of [`read_entity`].
pub fn read_entity_by<'de, T>(
    body: &'de [u8],
    mut read: impl FnMut(EntityCursor<'_, 'de>) -> T,
) -> Result<T, JsonError> {
    if let Ok(text) = std::str::from_utf8(body) {
        let mut scanner = Scanner::new(text);
        let mut entity = ScannedEntity::single(text);
        scanner.space();
        if entity.begin(&scanner) {
            let value = read(EntityCursor::scanned(&mut entity));
            if entity.finish(&mut scanner) && scanner.end().is_some() {
                return Ok(value);
            }
        }
    }
    let entity = read_entity(body)?;
    Ok(read(EntityCursor::new(&entity)))
}

/// Reads a response with many entities. `read` makes a value of each, and `accept` gets the values
/// one by one. If the scanner gives up, `read` is called again for the same entity, and `accept`
/// gets only the last value. With `lists`, all entities are in lists, and `read` is called once for
/// each.
///
/// # Errors
///
/// The errors of [`read_page`].
pub fn read_page_by<'de, T, E>(
    body: &'de [u8],
    lists: bool,
    mut read: impl FnMut(EntityCursor<'_, 'de>) -> T,
    mut accept: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<JsonError>,
{
    let mut accepted = 0;
    if let Ok(text) = std::str::from_utf8(body) {
        let mut entity = ScannedEntity::of_page(text);
        let mut list = JsonEntity::default();
        let scanned = scan::page(text, |scanner| {
            let value = 'value: {
                if !lists && entity.begin(scanner) {
                    let value = read(EntityCursor::scanned(&mut entity));
                    if entity.finish(scanner) {
                        break 'value value;
                    }
                }
                scanner.entity(&mut list)?;
                read(EntityCursor::new(&list))
            };
            accepted += 1;
            Some(accept(value))
        });
        if let Some(result) = scanned {
            return result;
        }
    }
    read_rest_of_page(body, accepted, |entity| {
        accept(read(EntityCursor::new(entity)))
    })
}

/// Reads a page that the scanner gives up on, or reports why it cannot be read.
pub(super) fn read_any_page<'de, E>(
    body: &'de [u8],
    visit: impl FnMut(&JsonEntity<'de>) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<JsonError>,
{
    let mut failure = None;
    let seed = PageSeed {
        visit,
        failure: &mut failure,
    };
    let read = read_whole(body, seed);
    match (failure, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(E::from(error.into())),
        (None, Ok(())) => Ok(()),
    }
}

/// Reads the whole input.
fn read_whole<'de>(
    body: &'de [u8],
    seed: impl DeserializeSeed<'de, Value = ()>,
) -> serde_json::Result<()> {
    // Checked as a whole: otherwise the deserializer would check each name and each value.
    match std::str::from_utf8(body) {
        Ok(text) => read_with(serde_json::Deserializer::from_str(text), seed),
        // For the error, and its position.
        Err(_) => read_with(serde_json::Deserializer::from_slice(body), seed),
    }
}

fn read_with<'de, R: serde_json::de::Read<'de>>(
    mut deserializer: serde_json::Deserializer<R>,
    seed: impl DeserializeSeed<'de, Value = ()>,
) -> serde_json::Result<()> {
    seed.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct PageSeed<'f, F, E> {
    visit: F,
    failure: &'f mut Option<E>,
}

impl<'de, F, E> DeserializeSeed<'de> for PageSeed<'_, F, E>
where
    F: FnMut(&JsonEntity<'de>) -> Result<(), E>,
    E: From<JsonError>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F, E> Visitor<'de> for PageSeed<'_, F, E>
where
    F: FnMut(&JsonEntity<'de>) -> Result<(), E>,
    E: From<JsonError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an array named value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            if name == "value" {
                if found {
                    return Err(A::Error::duplicate_field("value"));
                }
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
    E: From<JsonError>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F, E> Visitor<'de> for ListSeed<'_, F, E>
where
    F: FnMut(&JsonEntity<'de>) -> Result<(), E>,
    E: From<JsonError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of entities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut entity = JsonEntity::default();
        loop {
            entity.clear();
            let mut failure = None;
            let next = list.next_element_seed(EntitySeed {
                entity: &mut entity,
                failure: &mut failure,
            });
            if let Some(error) = failure {
                *self.failure = Some(error.into());
            }
            if next?.is_none() {
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
    /// Why the entity cannot be read, where it is not for the JSON.
    failure: &'e mut Option<JsonError>,
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
        let mut refuse = |error: JsonError| {
            let message = A::Error::custom(&error);
            *self.failure = Some(error);
            message
        };
        let entity = self.entity;
        // Annotations whose property has not come yet: nearly always none, or one for the member
        // that comes next.
        let mut early: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::new();
        let mut late: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::new();
        let mut count = 0;
        while let Some(Text(name)) = map.next_key_seed(TextSeed)? {
            // Held only where it means something.
            if name.starts_with("odata.") && name != "odata.etag" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            count += 1;
            if count > MEMBERS_MAX {
                return Err(refuse(JsonError::TooManyMembers));
            }
            let scalar = read_scalar(map.next_value()?)?;
            if let Some(property) = annotated_property(&name) {
                let edm_type = match scalar {
                    Scalar::Text(edm_type) => edm_type,
                    // No name of a type; what is wrong is said if the property has a value.
                    _ => Cow::Borrowed(""),
                };
                match entity.members.last_mut() {
                    Some(last) if last.name == property => {
                        if last.annotation.replace(edm_type).is_some() {
                            return Err(refuse(JsonError::AnnotatedTwice));
                        }
                    }
                    _ => early.push((property, edm_type)),
                }
            } else if name == "odata.etag" {
                entity.is_etag_malformed |= !matches!(scalar, Scalar::Text(_) | Scalar::Null);
                entity.etag = match scalar {
                    Scalar::Text(etag) => Some(ETag::from_opaque(etag)),
                    _ => None,
                };
            } else {
                let annotation = match early.pop() {
                    Some((property, edm_type)) if property == name => Some(edm_type),
                    Some(other) => {
                        late.push(other);
                        None
                    }
                    None => None,
                };
                entity.push(name, scalar, annotation);
            }
        }
        late.append(&mut early);
        if !late.is_empty() {
            let mut annotations = HashMap::with_capacity(late.len());
            for (property, edm_type) in late {
                if annotations.insert(property, edm_type).is_some() {
                    return Err(refuse(JsonError::AnnotatedTwice));
                }
            }
            for member in &mut entity.members {
                if let Some(edm_type) = annotations.remove(&member.name)
                    && member.annotation.replace(edm_type).is_some()
                {
                    return Err(refuse(JsonError::AnnotatedTwice));
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

/// A string, borrowed from the input if it has no escapes.
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

/// The kind of a value, by its first character. The input is known to be valid JSON.
fn read_scalar<E: serde::de::Error>(value: &RawValue) -> Result<Scalar<'_>, E> {
    let text = value.get();
    Ok(match text.as_bytes().first() {
        Some(b'n') => Scalar::Null,
        Some(b't') => Scalar::Boolean(true),
        Some(b'f') => Scalar::Boolean(false),
        Some(b'[' | b'{') => Scalar::Nested,
        Some(b'"') => match plain(text) {
            Some(content) => Scalar::Text(Cow::Borrowed(content)),
            None => Scalar::Text(Cow::Owned(serde_json::from_str(text).map_err(E::custom)?)),
        },
        _ => Scalar::Number(text),
    })
}

/// The content of a string in quotes that has no escapes.
fn plain(text: &str) -> Option<&str> {
    let content = text.strip_prefix('"')?.strip_suffix('"')?;
    (!content.contains('\\')).then_some(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{EdmType, Value};
    use crate::wire::json::{EntityWriter, PropertyProblem, RawProperty};

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
                ("l".to_owned(), Some(Value::Double(3_000_000_000.0))),
                ("d".to_owned(), Some(Value::Double(5.0))),
                ("e".to_owned(), Some(Value::Double(1000.0))),
                ("s".to_owned(), Some(Value::from("x"))),
                ("t".to_owned(), Some(Value::Boolean(true))),
                ("n".to_owned(), None),
            ]
        );
    }

    #[test]
    fn annotated_strings_and_numbers_are_converted() {
        for (edm_type, json, value) in [
            ("Binary", r#""YmluYXJ5""#, Value::Binary(b"binary".to_vec())),
            ("Binary", r#""""#, Value::Binary(Vec::new())),
            ("Boolean", r#""true""#, Value::Boolean(true)),
            ("Boolean", r#""False""#, Value::Boolean(false)),
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
            (r#""p":1e309"#, PropertyProblem::DoubleOutOfRange),
        ] {
            let text = format!("{{{member}}}");
            let entity = read_entity(text.as_bytes()).unwrap();
            let error = entity.properties().next().unwrap().to_value().unwrap_err();
            assert_eq!((error.name(), error.problem()), ("p", problem), "{text}");
        }
    }

    #[test]
    fn metadata_is_not_a_property() {
        let text = r#"{"odata.metadata":"x","odata.etag":"W/\"1\"","odata.nested":{"a":[1]},"PartitionKey@odata.type":"Edm.String","PartitionKey":"p","RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"2020-01-01T00:00:00Z","timestamp":"mine"}"#;
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
    fn only_types_are_annotations() {
        let text = r#"{"a@b":1,"x@odata.other":[1],"x":2,"@odata.type":"Edm.Int64","":"3"}"#;
        let entity = read_entity(text.as_bytes()).unwrap();
        let names: Vec<_> = entity.members().iter().map(RawProperty::name).collect();
        assert_eq!(names, ["a@b", "x@odata.other", "x", ""]);
        let last = entity.members().last().unwrap().to_value();
        assert_eq!(last, Ok(Some(Value::Int64(3))));
    }

    #[test]
    fn a_property_has_one_annotation() {
        for text in [
            r#"{"a@odata.type":"Edm.Int64","a@odata.type":"Edm.Int64","a":"5"}"#,
            r#"{"a@odata.type":"Edm.Int64","a":"5","a@odata.type":"Edm.Int64"}"#,
            r#"{"a":"5","a@odata.type":"Edm.Int64","a@odata.type":"Edm.Int64"}"#,
            r#"{"a@odata.type":"Edm.Int64","b":1,"a":"5","a@odata.type":"Edm.Int64"}"#,
            r#"{"a":"5","b":1,"a@odata.type":"Edm.Int64","a@odata.type":"Edm.Int64"}"#,
            r#"{"a@odata.type":"Edm.Int64","a":"5","b":1,"\u0061@odata.type":"Edm.Int64"}"#,
            r#"{"absent@odata.type":"Edm.Int64","absent@odata.type":"Edm.Int64"}"#,
        ] {
            let refused = read_entity(text.as_bytes());
            assert!(matches!(refused, Err(JsonError::AnnotatedTwice)), "{text}");
            let page = format!("{{\"value\":[{{}},{text}]}}");
            let refused = read_page::<JsonError>(page.as_bytes(), |_| Ok(()));
            assert!(matches!(refused, Err(JsonError::AnnotatedTwice)), "{text}");
        }
    }

    #[test]
    fn annotations_of_nulls_are_ignored() {
        for annotation in [r#""Edm.Byte""#, "5", "null", r#"{"a":[]}"#] {
            for value in ["null", "5"] {
                let text = format!(
                    r#"{{"Timestamp@odata.type":{annotation},"Timestamp":5,"p":{value},"p@odata.type":{annotation}}}"#
                );
                let entity = read_entity(text.as_bytes()).unwrap();
                let read = entity.properties().next().unwrap().to_value();
                if value == "null" {
                    assert_eq!(read, Ok(None), "{text}");
                } else {
                    let problem = read.unwrap_err().problem();
                    assert_eq!(problem, PropertyProblem::UnknownType, "{text}");
                }
            }
        }
    }

    #[test]
    fn numbers_keep_every_digit() {
        for (number, annotation, expected) in [
            ("-0", "", Some(Value::Int32(0))),
            ("2147483647", "", Some(Value::Int32(i32::MAX))),
            ("-2147483648", "", Some(Value::Int32(i32::MIN))),
            ("2147483648", "", Some(Value::Double(2_147_483_648.0))),
            ("-2147483649", "", Some(Value::Double(-2_147_483_649.0))),
            (
                "1498179600055",
                "",
                Some(Value::Double(1_498_179_600_055.0)),
            ),
            (
                "-9223372036854775808",
                "",
                Some(Value::Double(-9_223_372_036_854_775_808.0)),
            ),
            (
                "9223372036854775808000",
                "",
                Some(Value::Double(9.223_372_036_854_776e21)),
            ),
            ("-0", "Edm.Int64", Some(Value::Int64(0))),
            (
                "9007199254740993",
                "Edm.Int64",
                Some(Value::Int64(9_007_199_254_740_993)),
            ),
            (
                "9223372036854775807",
                "Edm.Int64",
                Some(Value::Int64(i64::MAX)),
            ),
            (
                "-9223372036854775808",
                "Edm.Int64",
                Some(Value::Int64(i64::MIN)),
            ),
            ("9223372036854775808", "Edm.Int64", None),
            ("1.0", "Edm.Int64", None),
            ("1e3", "Edm.Int32", None),
            ("2147483648", "Edm.Int32", None),
            ("5", "Edm.Double", Some(Value::Double(5.0))),
            (
                "123456789012345678901234567890",
                "Edm.Double",
                Some(Value::Double(1.234_567_890_123_456_8e29)),
            ),
            ("1.7976931348623157e308", "", Some(Value::Double(f64::MAX))),
            ("1.797693134862316e308", "", None),
            ("1.797693134862316e308", "Edm.Double", None),
            ("1e-400", "", Some(Value::Double(0.0))),
            ("5", "Edm.String", None),
            ("5", "Edm.Boolean", None),
            ("5", "Edm.DateTime", None),
            ("5", "Edm.Guid", None),
            ("5", "Edm.Binary", None),
        ] {
            let text = if annotation.is_empty() {
                format!("{{\"p\":{number}}}")
            } else {
                format!("{{\"p@odata.type\":\"{annotation}\",\"p\": {number} }}")
            };
            let entity = read_entity(text.as_bytes()).unwrap();
            let value = entity.properties().next().unwrap().to_value();
            assert_eq!(value.ok().flatten(), expected, "{text}");
        }
        // The sign of a zero is a double's alone.
        for (number, bits) in [
            ("-0.0", (-0.0_f64).to_bits()),
            ("-0e1", (-0.0_f64).to_bits()),
        ] {
            let text = format!("{{\"p\":{number}}}");
            let Some(Value::Double(zero)) = values(&text)[0].1 else {
                panic!("{text} is no double");
            };
            assert_eq!(zero.to_bits(), bits, "{text}");
        }
        for number in [
            "+1", "01", ".5", "1.", "1e", "-", "0x1", "1_000", "NaN", "Infinity", "--1",
        ] {
            let text = format!("{{\"p\":{number}}}");
            assert!(read_entity(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn malformed_json_is_refused() {
        for text in [
            &b"{"[..],
            b"{\"a\"}",
            b"{\"a\":}",
            b"{\"a\":1,}",
            b"{\"a\":1 \"b\":2}",
            b"{a:1}",
            b"{'a':1}",
            b"{\"a\":t}",
            b"{\"a\":nul",
            b"{\"a\":True}",
            b"{\"a\":\"\n\"}",
            b"{\"a\":\"\\x\"}",
            b"{\"a\":\"\\u12\"}",
            b"{\"a\":\"\\ud800\"}",
            b"{\"a\":\"\\udc00\\ud800\"}",
            b"{\"a\":\"\xFF\"}",
            b"{\"a\xFF\":1}",
            b"{\"a\":1}x",
            b"\xEF\xBB\xBF{}",
        ] {
            assert!(read_entity(text).is_err(), "{}", text.escape_ascii());
        }
        let text = b" \t{ \"a\" : \"\\ud83d\\ude00\\/\\\\\" }\r\n";
        let entity = read_entity(text).unwrap();
        let value = entity.properties().next().unwrap().to_value();
        assert_eq!(value, Ok(Some(Value::from("\u{1F600}/\\"))));
    }

    #[test]
    fn nested_values_need_no_stack() {
        let test = || {
            for (opening, closing) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
                let depth = 100_000;
                let nested = format!("{}1{}", opening.repeat(depth), closing.repeat(depth));
                let text = format!(r#"{{"odata.a":{nested},"p":{nested},"Timestamp":{nested}}}"#);
                let entity = read_entity(text.as_bytes()).unwrap();
                let error = entity.properties().next().unwrap().to_value().unwrap_err();
                assert_eq!(error.problem(), PropertyProblem::Nested);
                let page = format!(r#"{{"a":{nested},"value":[{{"a":{nested}}}]}}"#);
                read_page::<JsonError>(page.as_bytes(), |_| Ok(())).unwrap();
                let unfinished = format!("{{\"a\":{}", opening.repeat(depth));
                assert!(read_entity(unfinished.as_bytes()).is_err());
            }
        };
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        thread.spawn(test).unwrap().join().unwrap();
    }

    #[test]
    fn no_more_members_are_held_than_any_entity_has() {
        let object = |members: &mut dyn Iterator<Item = String>| {
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        };
        let nulls = |count| object(&mut (0..count).map(|index| format!("\"n{index}\":null")));
        assert!(read_entity(nulls(MEMBERS_MAX).as_bytes()).is_ok());
        let annotations = |index| format!("\"a{index}@odata.type\":\"Edm.Int64\"");
        for text in [
            nulls(MEMBERS_MAX + 1),
            object(&mut (0..100_000).map(|index| format!("\"a{index}\":1"))),
            object(&mut (0..100_000).map(annotations)),
        ] {
            let refused = read_entity(text.as_bytes());
            assert!(matches!(refused, Err(JsonError::TooManyMembers)));
        }
        // What is passed over is not held.
        let ignored = object(&mut (0..100_000).map(|index| format!("\"odata.a{index}\":1")));
        assert!(
            read_entity(ignored.as_bytes())
                .unwrap()
                .members()
                .is_empty()
        );
        let members = (0..MEMBERS_MAX / 2).map(|index| format!("\"a{index}\":\"1\""));
        let far_apart = object(&mut (0..MEMBERS_MAX / 2).map(annotations).chain(members));
        let entity = read_entity(far_apart.as_bytes()).unwrap();
        for property in entity.properties() {
            assert_eq!(property.to_value(), Ok(Some(Value::Int64(1))));
        }
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
