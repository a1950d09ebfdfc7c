//! A property as a server keeps it: as a response with metadata contains it, behind a comma.
//!
//! Such as `,"Age":39` and `,"Count@odata.type":"Edm.Int64","Count":"5"`. The reader borrows from
//! the bytes, reads a value only when it is asked for it, and takes no other form. For arbitrary
//! bytes it returns `None` and does not panic.

use memchr::memchr2;

use super::stored_value::StoredValue;
use super::value::{write_plain, write_value};
use crate::types::{EdmType, Timestamp, ValueRef};

/// Writes a property in the form that a server keeps and copies into its responses. The caller sees
/// to it that the name is valid.
pub fn write_stored_property(out: &mut Vec<u8>, name: &str, value: &ValueRef<'_>) {
    let edm_type = value.edm_type();
    let is_annotated = match value {
        ValueRef::Double(value) => !value.is_finite(),
        _ => is_annotated(edm_type),
    };
    write_stored_name(out, name, is_annotated.then_some(edm_type));
    write_value(out, value);
}

/// Returns true if a server keeps the type beside each finite value of it.
pub(super) const fn is_annotated(edm_type: EdmType) -> bool {
    matches!(
        edm_type,
        EdmType::Binary | EdmType::DateTime | EdmType::Guid | EdmType::Int64
    )
}

/// Writes what stands in front of the value, with the type if it is annotated.
pub(super) fn write_stored_name(out: &mut Vec<u8>, name: &str, annotated: Option<EdmType>) {
    if let Some(edm_type) = annotated {
        for part in [
            START,
            name.as_bytes(),
            ANNOTATION,
            edm_type.as_str().as_bytes(),
            b"\"",
        ] {
            out.extend_from_slice(part);
        }
    }
    out.push(b',');
    // The name of a property needs no escape in JSON.
    write_plain(out, name);
    out.push(b':');
}

/// A property that [`write_stored_property`] wrote. Its value is not read yet.
#[derive(Clone, Copy, Debug)]
pub struct StoredProperty<'a> {
    json: &'a [u8],
    name: &'a [u8],
    /// The name of its type, where the JSON has it.
    annotation: Option<&'a [u8]>,
    value: &'a [u8],
}

impl<'a> StoredProperty<'a> {
    /// Finds name and value.
    #[inline]
    pub fn read(json: &'a [u8]) -> Option<Self> {
        let rest = json.strip_prefix(START)?;
        Self::of(json, rest.split_at_checked(memchr2(b'"', b'@', rest)?)?)
    }

    /// The same, if the property has that name.
    #[inline]
    pub fn read_named(json: &'a [u8], name: &str) -> Option<Self> {
        let [b',', b'"', rest @ ..] = json else {
            return None;
        };
        let split = rest.split_at_checked(name.len())?;
        let is_named = split.0 == name.as_bytes() && matches!(split.1, [b'"' | b'@', ..]);
        is_named.then(|| Self::of(json, split)).flatten()
    }

    #[inline]
    fn of(json: &'a [u8], (name, rest): (&'a [u8], &'a [u8])) -> Option<Self> {
        let property = |annotation, value| Self {
            json,
            name,
            annotation,
            value,
        };
        if let [b'"', b':', value @ ..] = rest {
            return Some(property(None, value));
        }
        let rest = rest.strip_prefix(ANNOTATION)?;
        let (annotation, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
        let rest = rest.strip_prefix(b"\"")?.strip_prefix(START)?;
        let value = rest.strip_prefix(name)?.strip_prefix(b"\":")?;
        Some(property(Some(annotation), value))
    }

    /// All of it.
    pub const fn json(&self) -> &'a [u8] {
        self.json
    }

    /// The name. It is that of a valid property, unless the bytes are damaged.
    pub const fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Everything before the value.
    pub fn head(&self) -> &'a [u8] {
        let length = self.json.len() - self.value.len();
        self.json.get(..length).unwrap_or_default()
    }

    /// The value, which is not read yet. `None` if its type is none.
    pub fn stored_value(&self) -> Option<StoredValue<'a>> {
        let annotation = match self.annotation {
            Some(name) => Some(std::str::from_utf8(name).ok()?.parse().ok()?),
            None => None,
        };
        Some(StoredValue::new(annotation, self.value))
    }

    /// Reads the value. A string without escapes is borrowed.
    pub fn value(&self) -> Option<ValueRef<'a>> {
        self.stored_value()?.read()
    }

    /// The value, if it is a date and time.
    pub(super) fn date_time(&self) -> Option<Timestamp> {
        match self.value() {
            Some(ValueRef::DateTime(time)) => Some(time),
            _ => None,
        }
    }

    /// The value as it is in JSON.
    pub(super) const fn value_json(&self) -> &'a [u8] {
        self.value
    }

    /// The members of a response for this property, separated by a comma.
    pub(super) fn members(&self, has_metadata: bool) -> &'a [u8] {
        let skipped = match self.annotation {
            Some(annotation) if !has_metadata => {
                START.len() + self.name.len() + ANNOTATION.len() + annotation.len() + 2
            }
            _ => 1,
        };
        self.json.get(skipped..).unwrap_or_default()
    }
}

/// Before the name.
const START: &[u8] = b",\"";
/// Between the name and the type.
const ANNOTATION: &[u8] = b"@odata.type\":\"";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Guid, Value};

    fn value() -> impl Strategy<Value = Value> {
        let ticks = Timestamp::MIN.unix_ticks()..=Timestamp::MAX.unix_ticks();
        let timestamp = ticks.prop_map(|ticks| Timestamp::from_unix_ticks(ticks).unwrap());
        prop_oneof![
            any::<Vec<u8>>().prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            timestamp.prop_map(Value::DateTime),
            any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
            any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid::from_bytes(bytes))),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<String>().prop_map(Value::String),
            "[\"\\\\a\u{0}-\u{20}😀]{0,8}".prop_map(Value::String),
        ]
    }

    fn stored(name: &str, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        write_stored_property(&mut out, name, &value.as_ref());
        out
    }

    /// As `Debug`, which distinguishes -0.0 from 0.0, and in which NaN equals NaN.
    fn shown(value: Option<&ValueRef<'_>>) -> String {
        format!("{value:?}")
    }

    fn reads_back(name: &str, value: &Value) {
        let json = stored(name, value);
        let property = StoredProperty::read(&json).unwrap();
        assert_eq!(property.name(), name.as_bytes());
        let expected = shown(Some(&value.as_ref()));
        assert_eq!(shown(property.value().as_ref()), expected);
        let named = StoredProperty::read_named(&json, name).unwrap();
        assert_eq!(shown(named.value().as_ref()), expected);
        for other in ["", "a", &format!("{name}x"), name.trim_end_matches('a')] {
            assert!(other == name || StoredProperty::read_named(&json, other).is_none());
        }
    }

    proptest! {
        #[test]
        fn a_property_reads_back(name in "[\\p{L}_][\\p{L}0-9_]{0,8}a", value in value()) {
            reads_back(&name, &value);
            let json = stored(&name, &value);
            let property = StoredProperty::read(&json).unwrap();
            prop_assert_eq!(property.members(true), &json[1..]);
            let plain = property.members(false);
            let start = format!("\"{name}\":");
            prop_assert!(plain.starts_with(start.as_bytes()) && json.ends_with(plain));
        }

        #[test]
        fn any_bytes_are_read_or_refused(json: Vec<u8>) {
            if let Some(property) = StoredProperty::read(&json) {
                let _ = property.value();
            }
        }

        #[test]
        fn damage_is_read_or_refused(
            value in value(),
            place: prop::sample::Index,
            byte: u8,
            end: prop::sample::Index,
        ) {
            let mut json = stored("name", &value);
            let place = place.index(json.len());
            json[place] = byte;
            json.truncate(end.index(json.len()) + 1);
            if let Some(property) = StoredProperty::read(&json) {
                let _ = (property.value(), property.members(false), property.members(true));
            }
        }
    }

    #[test]
    fn extreme_values_read_back() {
        for value in [
            Value::Binary(Vec::new()),
            Value::DateTime(Timestamp::MIN),
            Value::DateTime(Timestamp::MAX),
            Value::Double(f64::NAN),
            Value::Double(f64::INFINITY),
            Value::Double(f64::NEG_INFINITY),
            Value::Double(-0.0),
            Value::Double(f64::MAX),
            Value::Double(f64::MIN_POSITIVE),
            Value::Int32(i32::MIN),
            Value::Int32(i32::MAX),
            Value::Int32(0),
            Value::Int32(-1),
            Value::Int32(999_999_999),
            Value::Int32(1_000_000_000),
            Value::Int64(i64::MIN),
            Value::from(""),
            Value::from("\\"),
            Value::from("\"\u{0}\u{1F}\u{7F}\u{2028}😀\u{FFFF}"),
        ] {
            reads_back("name", &value);
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for json in [
            "",
            ",",
            "\"a\":1",
            " ,\"a\":1",
            ",\"a",
            ",\"a\"",
            ",\"a\"1",
            ",\"a@odata.type\":\"Edm.Int64\"",
            ",\"a@odata.type\":\"Edm.Int64\",\"b\":\"5\"",
            ",\"a@odata.type\":\"Edm.Int64\",\"a\" :\"5\"",
            ",\"a@odata.kind\":\"Edm.Int64\",\"a\":\"5\"",
        ] {
            assert!(StoredProperty::read(json.as_bytes()).is_none(), "{json}");
        }
        for json in [
            ",\"a\":",
            ",\"a\":null",
            ",\"a\":[]",
            ",\"a\": 1",
            ",\"a\":+1",
            ",\"a\":1 ",
            ",\"a\":2147483648",
            ",\"a\":1e999",
            ",\"a\":\"",
            ",\"a\":\"x",
            ",\"a\":\"x\"y\"",
            ",\"a\":\"x\\\"",
            ",\"a\":\"\\x\"",
            ",\"a\":\"\\ud800\"",
            ",\"a\":True",
            ",\"a@odata.type\":\"Edm.Int64\",\"a\":5",
            ",\"a@odata.type\":\"Edm.Int32\",\"a\":\"5\"",
            ",\"a@odata.type\":\"Edm.String\",\"a\":\"5\"",
            ",\"a@odata.type\":\"Edm.Boolean\",\"a\":\"true\"",
            ",\"a@odata.type\":\"Edm.Byte\",\"a\":\"5\"",
            ",\"a@odata.type\":\"Edm.Guid\",\"a\":\"5\"",
            ",\"a@odata.type\":\"Edm.Binary\",\"a\":\"YQ\"",
            ",\"a@odata.type\":\"Edm.DateTime\",\"a\":\"0001-01-01T00:00:00Z\"",
        ] {
            let property = StoredProperty::read(json.as_bytes()).unwrap();
            assert_eq!(property.value(), None, "{json}");
        }
    }
}
