//! An entity as it is in JSON: members in order, not converted yet.
//!
//! [`RawProperty::to_value`] converts a value, so that a typed reader pays only for the properties
//! it wants.

use std::borrow::Cow;

use super::SYSTEM_PROPERTIES;
use super::error::{PropertyError, PropertyProblem};
use super::value::{self, Scalar};
use crate::types::{ETag, EdmType, Guid, Timestamp, Value, ValueRef};

/// An entity as found in JSON: its members in order, not yet converted.
#[derive(Clone, Debug, Default)]
pub struct JsonEntity<'a> {
    pub(super) etag: Option<ETag>,
    /// The ETag is neither a string nor null.
    pub(super) is_etag_malformed: bool,
    pub(super) members: Vec<RawProperty<'a>>,
    /// The occurrences of each system property among the members.
    system: [Occurrence; SYSTEM_PROPERTIES.len()],
}

/// The members with the name of one system property.
#[derive(Clone, Copy, Debug, Default)]
enum Occurrence {
    #[default]
    None,
    /// The index of the only one.
    One(usize),
    /// The index of the first of several.
    Several(usize),
}

impl<'a> JsonEntity<'a> {
    /// The entity's ETag, if the JSON contains one.
    pub const fn etag(&self) -> Option<&ETag> {
        self.etag.as_ref()
    }

    /// Returns true if the ETag in the JSON is neither a string nor null. The entity then has no
    /// ETag.
    pub const fn is_etag_malformed(&self) -> bool {
        self.is_etag_malformed
    }

    /// The value of a property that must be a string, such as a key; `None` when it is absent or
    /// null.
    ///
    /// # Errors
    ///
    /// When it is not a string, or annotated with another type than `Edm.String`.
    pub fn text(&self, name: &str) -> Result<Option<&str>, PropertyError> {
        match self.property(name) {
            Some(member) => member.as_text(),
            None => Ok(None),
        }
    }

    /// The time of the entity's last write, if the JSON contains it.
    ///
    /// # Errors
    ///
    /// When it is not a date and time.
    pub fn timestamp(&self) -> Result<Option<Timestamp>, PropertyError> {
        let Some(member) = self.property("Timestamp") else {
            return Ok(None);
        };
        match member.as_text()? {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                member.error(PropertyProblem::Mismatch {
                    edm_type: EdmType::DateTime,
                })
            }),
        }
    }

    /// All properties, in order, system properties and nulls included.
    pub fn members(&self) -> &[RawProperty<'a>] {
        &self.members
    }

    /// The same, moved out.
    pub fn into_members(self) -> Vec<RawProperty<'a>> {
        self.members
    }

    /// The user's properties, in order, nulls included.
    pub fn properties(&self) -> impl Iterator<Item = &RawProperty<'a>> {
        self.members.iter().filter(|member| !member.is_system())
    }

    /// Adds the properties of another entity, without its system properties.
    pub fn extend(&mut self, other: Self) {
        let members = other.members.into_iter();
        self.members
            .extend(members.filter(|member| !member.is_system()));
    }

    /// The property of that name, system properties included.
    pub fn property(&self, name: &str) -> Option<&RawProperty<'a>> {
        match self.found(name) {
            Some(Occurrence::None) => None,
            Some(Occurrence::One(index) | Occurrence::Several(index)) => self.members.get(index),
            None => self.members.iter().find(|member| member.name == name),
        }
    }

    /// Returns true if several members have that name.
    pub fn has_several(&self, name: &str) -> bool {
        match self.found(name) {
            Some(found) => matches!(found, Occurrence::Several(_)),
            None => {
                let mut members = self.members.iter();
                let mut is_next = || members.any(|member| member.name == name);
                is_next() && is_next()
            }
        }
    }

    /// The members with the name of a system property; `None` for any other name.
    fn found(&self, name: &str) -> Option<Occurrence> {
        self.system.get(system_index(name)?).copied()
    }

    /// Adds a member.
    #[inline]
    pub(super) fn push(
        &mut self,
        name: Cow<'a, str>,
        scalar: Scalar<'a>,
        annotation: Option<Cow<'a, str>>,
    ) {
        let system = system_index(&name).and_then(|index| self.system.get_mut(index));
        let is_system = system.is_some();
        if let Some(found) = system {
            *found = match *found {
                Occurrence::None => Occurrence::One(self.members.len()),
                Occurrence::One(first) | Occurrence::Several(first) => Occurrence::Several(first),
            };
        }
        self.members.push(RawProperty {
            name,
            scalar,
            annotation,
            is_system,
        });
    }

    /// Returns true if two members have the same name.
    pub fn has_duplicates(&self) -> bool {
        has_repeated(&self.members, RawProperty::name)
    }

    /// Empties it for the next entity; the memory stays.
    pub(super) fn clear(&mut self) {
        self.etag = None;
        self.is_etag_malformed = false;
        self.members.clear();
        self.system = [Occurrence::None; SYSTEM_PROPERTIES.len()];
    }
}

/// Returns true if two items have the same name.
pub(super) fn has_repeated<T>(items: &[T], name: impl Fn(&T) -> &str) -> bool {
    if let [first, rest @ ..] = items
        && rest.len() < FEW
    {
        // Most names differ in length or in the first characters.
        let mut later = rest;
        let mut item = first;
        while let [next, rest @ ..] = later {
            if later.iter().any(|other| name(other) == name(item)) {
                return true;
            }
            (item, later) = (next, rest);
        }
        return false;
    }
    let mut names: Vec<_> = items.iter().map(name).collect();
    names.sort_unstable();
    !names.is_sorted_by(|a, b| a < b)
}

/// A property as found in JSON: name, value and annotation.
#[derive(Clone, Debug)]
pub struct RawProperty<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) scalar: Scalar<'a>,
    pub(super) annotation: Option<Cow<'a, str>>,
    is_system: bool,
}

/// The index of a name in [`SYSTEM_PROPERTIES`].
fn system_index(name: &str) -> Option<usize> {
    SYSTEM_PROPERTIES.iter().position(|system| *system == name)
}

impl<'a> RawProperty<'a> {
    /// A property that is null.
    pub(super) const fn of(name: &'a str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            scalar: Scalar::Null,
            annotation: None,
            is_system: false,
        }
    }

    /// Makes it another of the user's properties.
    #[inline]
    pub(super) fn set(&mut self, name: &'a str, scalar: Scalar<'a>, annotation: Option<&'a str>) {
        self.name = Cow::Borrowed(name);
        self.scalar = scalar;
        self.annotation = annotation.map(Cow::Borrowed);
    }

    /// The name and the [value](Self::to_value), both borrowed from the input where they have no
    /// escapes; `None` for null.
    ///
    /// # Errors
    ///
    /// The errors of [`to_value`](Self::to_value).
    pub fn into_named_value(self) -> Result<Option<(Cow<'a, str>, ValueRef<'a>)>, PropertyError> {
        if self.is_null() {
            return Ok(None);
        }
        let annotation = self.annotation()?;
        let value = match self.scalar {
            Scalar::Text(text) if matches!(annotation, None | Some(EdmType::String)) => {
                ValueRef::String(text)
            }
            // The copy is for an error, and copies no string but one with escapes.
            ref scalar => match scalar.clone().into_value_ref(annotation) {
                Ok(value) => value,
                Err(problem) => return Err(self.error(problem)),
            },
        };
        Ok(Some((self.name, value)))
    }

    /// The string of a property that must be one, borrowed from the input where it has no escapes;
    /// `None` for null.
    ///
    /// # Errors
    ///
    /// When it is not a string, or annotated with another type than `Edm.String`.
    pub fn into_text(self) -> Result<Option<Cow<'a, str>>, PropertyError> {
        self.as_text()?;
        Ok(match self.scalar {
            Scalar::Text(text) => Some(text),
            _ => None,
        })
    }
}

impl RawProperty<'_> {
    /// The name of the property.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true for the partition key, the row key and the timestamp.
    #[inline]
    pub const fn is_system(&self) -> bool {
        self.is_system
    }

    /// Returns true if the value is null, which means that the property is absent.
    pub fn is_null(&self) -> bool {
        self.scalar == Scalar::Null
    }

    /// The value as a text, whatever its type is: of a string its content, of a number all its
    /// digits. `None` for null, an array and an object.
    pub fn untyped_text(&self) -> Option<&str> {
        match &self.scalar {
            Scalar::Boolean(true) => Some("true"),
            Scalar::Boolean(false) => Some("false"),
            Scalar::Number(number) => Some(number),
            Scalar::Text(text) => Some(text),
            Scalar::Null | Scalar::Nested => None,
        }
    }

    /// Returns true if the property is annotated as a GUID, and its string is not a GUID.
    pub fn is_other_guid(&self) -> bool {
        match (&self.scalar, self.annotation.as_deref()) {
            (Scalar::Text(text), Some("Edm.Guid")) => text.parse::<Guid>().is_err(),
            _ => false,
        }
    }

    /// The same without its annotation.
    #[must_use]
    pub fn without_annotation(mut self) -> Self {
        self.annotation = None;
        self
    }

    /// The digits of an integer beyond Int32 without an annotation. The value is a Double, as for
    /// the service, but a reader who knows that it was an integer loses none of them.
    pub fn unannotated_big_integer(&self) -> Option<&str> {
        match self.annotation {
            None => self.scalar.big_integer(),
            Some(_) => None,
        }
    }

    /// Refuses such an integer, in a file: there, it is more likely an Int64 that has lost its
    /// annotation than a Double.
    ///
    /// # Errors
    ///
    /// For an integer beyond Int32 without an annotation.
    pub fn require_annotated(&self) -> Result<(), PropertyError> {
        match self.unannotated_big_integer() {
            None => Ok(()),
            Some(_) => Err(self.error(PropertyProblem::UnannotatedInteger)),
        }
    }

    /// The typed value; `None` for null. A number without an annotation is an Int32 if it is an
    /// integer that fits, else a Double.
    ///
    /// # Errors
    ///
    /// When the value does not fit its annotation, or is an array or object. Nothing is wrong with
    /// a null.
    pub fn to_value(&self) -> Result<Option<Value>, PropertyError> {
        if let Some(value) = self.usual_value() {
            return Ok(Some(value));
        }
        let value = self.to_value_ref()?;
        Ok(value.map(ValueRef::into_value))
    }

    /// The same value; a string is borrowed.
    ///
    /// # Errors
    ///
    /// The errors of [`to_value`](Self::to_value).
    #[inline]
    pub fn to_value_ref(&self) -> Result<Option<ValueRef<'_>>, PropertyError> {
        if self.is_null() {
            return Ok(None);
        }
        self.scalar
            .to_value_ref(self.annotation()?)
            .map(Some)
            .map_err(|problem| self.error(problem))
    }

    /// The value, if it is in the form in which the service writes its type.
    #[inline]
    fn usual_value(&self) -> Option<Value> {
        Some(match (&self.scalar, self.annotation.as_deref()) {
            (Scalar::Text(text), None) => Value::String(text.clone().into_owned()),
            (Scalar::Boolean(value), None) => Value::Boolean(*value),
            (Scalar::Number(number), None) if !value::is_integer(number) => {
                Value::Double(value::parse_json_double(number)?)
            }
            (Scalar::Number(number), None) => Value::Int32(number.parse().ok()?),
            (Scalar::Text(text), Some("Edm.DateTime")) => Value::DateTime(text.parse().ok()?),
            (Scalar::Text(text), Some("Edm.Guid")) => Value::Guid(text.parse().ok()?),
            (Scalar::Text(text), Some("Edm.Int64")) => Value::Int64(value::parse_integer(text)?),
            _ => return None,
        })
    }

    /// The value, if it is a boolean without an annotation.
    #[inline]
    pub const fn boolean(&self) -> Option<bool> {
        match (&self.scalar, &self.annotation) {
            (Scalar::Boolean(value), None) => Some(*value),
            _ => None,
        }
    }

    /// The value, if it is an Int32 without an annotation.
    pub fn int32(&self) -> Option<i32> {
        let number = self.plain_number()?;
        value::is_integer(number)
            .then(|| number.parse().ok())
            .flatten()
    }

    /// The value, if it is an annotated string of an Int64.
    pub fn int64(&self) -> Option<i64> {
        value::parse_integer(self.text_of(EdmType::Int64)?)
    }

    /// The value, if it is a Double without an annotation.
    pub fn double(&self) -> Option<f64> {
        let number = self.plain_number()?;
        (!value::is_integer(number))
            .then(|| value::parse_json_double(number))
            .flatten()
    }

    /// The value, if it is a string without an annotation.
    #[inline]
    pub fn string(&self) -> Option<&str> {
        match (&self.scalar, &self.annotation) {
            (Scalar::Text(text), None) => Some(text),
            _ => None,
        }
    }

    /// The string that is annotated with that type.
    #[inline]
    pub fn text_of(&self, edm_type: EdmType) -> Option<&str> {
        match (&self.scalar, &self.annotation) {
            (Scalar::Text(text), Some(name)) if name == edm_type.as_str() => Some(text),
            _ => None,
        }
    }

    fn plain_number(&self) -> Option<&str> {
        match (&self.scalar, &self.annotation) {
            (Scalar::Number(number), None) => Some(number),
            _ => None,
        }
    }

    fn as_text(&self) -> Result<Option<&str>, PropertyError> {
        if self.is_null() {
            return Ok(None);
        }
        match (&self.scalar, self.annotation()?) {
            (Scalar::Text(text), None | Some(EdmType::String)) => Ok(Some(text)),
            // The service writes the type of `Timestamp` with full metadata.
            (Scalar::Text(text), Some(EdmType::DateTime)) if self.name == "Timestamp" => {
                Ok(Some(text))
            }
            _ => Err(self.error(PropertyProblem::Mismatch {
                edm_type: EdmType::String,
            })),
        }
    }

    fn annotation(&self) -> Result<Option<EdmType>, PropertyError> {
        match &self.annotation {
            None => Ok(None),
            Some(name) => match name.parse() {
                Ok(edm_type) => Ok(Some(edm_type)),
                Err(_) => Err(self.error(PropertyProblem::UnknownType)),
            },
        }
    }

    fn error(&self, problem: PropertyProblem) -> PropertyError {
        let annotation = self.annotation.as_deref().unwrap_or_default();
        let found = match (problem, &self.scalar) {
            (PropertyProblem::Nested, _) => String::new(),
            (PropertyProblem::UnknownType, _) => shown(annotation),
            (_, scalar) => match scalar {
                Scalar::Null => "null".to_owned(),
                Scalar::Boolean(value) => value.to_string(),
                Scalar::Number(number) => cut(number),
                Scalar::Text(text) => shown(text),
                Scalar::Nested => "an array or object".to_owned(),
            },
        };
        PropertyError {
            name: self.name.clone().into_owned(),
            problem,
            found,
        }
    }
}

fn shown(text: &str) -> String {
    format!("{:?}", cut(text))
}

/// A value may be 64 KiB long, or longer if it is invalid; this length is enough to recognize it.
fn cut(text: &str) -> String {
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_MAX).chain(['…']).collect()
}

const SHOWN_MAX: usize = 40;

/// So many names are compared faster in pairs than sorted.
const FEW: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::reader::read_entity;
    use super::*;

    proptest! {
        #[test]
        fn usual_forms_are_read_as_any(
            text in prop_oneof![
                4 => select(vec![
                    "5", "-0", "2147483648", "-2147483648", "99999999999999999999", "1.5", "1e400", "-0.0", "true", "null", "[]", "\"\"",
                    "\"5\"", "\"+5\"", "\"-9223372036854775808\"", "\"9223372036854775808\"", "\"True\"", "\"NaN\"", "\"YQ==\"",
                    "\"2024-03-15T10:20:30Z\"", "\"0001-01-01T00:00:00Z\"", "\"c9da6455-213d-42c9-9a79-3e9149a57833\"",
                ]).prop_map(str::to_owned),
                1 => any::<i64>().prop_map(|value| value.to_string()),
                1 => any::<i32>().prop_map(|value| format!("\"{value}\"")),
                1 => ".{0,9}".prop_map(|text| format!("{:?}", serde_json::Value::from(text).to_string())),
            ],
            annotation in select(vec![
                "", "Binary", "Boolean", "DateTime", "Double", "Guid", "Int32", "Int64", "String", "Other",
            ]),
        ) {
            let json = match annotation {
                "" => format!("{{\"a\":{text}}}"),
                edm_type => format!("{{\"a@odata.type\":\"Edm.{edm_type}\",\"a\":{text}}}"),
            };
            let Ok(entity) = read_entity(json.as_bytes()) else {
                return Ok(());
            };
            let property = &entity.members[0];
            let any = property.to_value_ref().ok().flatten().map(ValueRef::into_value);
            let agrees = |usual: Option<Value>| usual.is_none() || usual == any;
            prop_assert!(agrees(property.usual_value()), "{json}");
            prop_assert!(agrees(property.boolean().map(Value::Boolean)), "{json}");
            prop_assert!(agrees(property.int32().map(Value::Int32)), "{json}");
            prop_assert!(agrees(property.int64().map(Value::Int64)), "{json}");
            prop_assert!(agrees(property.double().map(Value::Double)), "{json}");
            prop_assert!(agrees(property.string().map(Value::from)), "{json}");
        }
    }

    #[test]
    fn usual_forms_are_noticed() {
        let json = r#"{"t":"x","b":true,"i":5,"d":1.5,"l@odata.type":"Edm.Int64","l":"5","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833"}"#;
        let entity = read_entity(json.as_bytes()).unwrap();
        let member = |name| entity.property(name).unwrap();
        assert_eq!(member("t").string(), Some("x"));
        assert_eq!(member("b").boolean(), Some(true));
        assert_eq!(member("i").int32(), Some(5));
        assert_eq!(member("d").double(), Some(1.5));
        assert_eq!(member("l").int64(), Some(5));
        assert!(member("g").text_of(EdmType::Guid).is_some());
        assert!(
            entity
                .members()
                .iter()
                .all(|member| member.usual_value().is_some())
        );
    }

    #[test]
    fn system_properties_are_found_wherever_they_stand() {
        let json = r#"{"a":1,"RowKey":"r","a":2,"PartitionKey":"p","RowKey":"s","b":3}"#;
        let entity = read_entity(json.as_bytes()).unwrap();
        assert_eq!(entity.text("RowKey"), Ok(Some("r")));
        assert_eq!(entity.text("PartitionKey"), Ok(Some("p")));
        assert_eq!(entity.timestamp(), Ok(None));
        for (name, several) in [
            ("a", true),
            ("RowKey", true),
            ("PartitionKey", false),
            ("b", false),
            ("Timestamp", false),
            ("c", false),
        ] {
            assert_eq!(entity.has_several(name), several, "{name}");
        }
        let users: Vec<_> = entity.properties().map(RawProperty::name).collect();
        assert_eq!(users, ["a", "a", "b"]);
    }
}
