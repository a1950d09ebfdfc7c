//! How values are written and read by serde, in the JSON of a web service: strings where JSON has
//! no type of its own.
//!
//! This is not the format of the table service, which `wire::json` knows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::types::{ETag, EntityKey, Guid, PartitionKey, RowKey, Timestamp, Value};

/// The string that `Display` shows, and that the function reads.
macro_rules! as_string {
    ($($(#[doc = $doc:literal])+ $type:ty, $parse:expr;)+) => {
        $(
            $(#[doc = $doc])+
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = String::deserialize(deserializer)?;
                    $parse(text).map_err(D::Error::custom)
                }
            }
        )+
    };
}

as_string! {
    /// As a string, quotes included. `*` and lists of ETags are not read.
    ETag, |text: String| text.parse::<Self>();
    /// As a string of the form 8-4-4-4-12.
    Guid, |text: String| text.parse::<Self>();
    /// As a string.
    PartitionKey, Self::new;
    /// As a string.
    RowKey, Self::new;
    /// As a string of RFC 3339, in UTC, with up to seven fractional digits.
    Timestamp, |text: String| text.parse::<Self>();
}

/// As `{"PartitionKey":"Sales","RowKey":"1"}`.
impl Serialize for EntityKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_struct("EntityKey", 2)?;
        members.serialize_field("PartitionKey", self.partition_key())?;
        members.serialize_field("RowKey", self.row_key())?;
        members.end()
    }
}

impl<'de> Deserialize<'de> for EntityKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "EntityKey", rename_all = "PascalCase")]
        struct Parts {
            partition_key: PartitionKey,
            row_key: RowKey,
        }
        let Parts {
            partition_key,
            row_key,
        } = Parts::deserialize(deserializer)?;
        Ok(Self::from_parts(partition_key, row_key))
    }
}

/// As the plain value, without its type: numbers and booleans as such, everything else as a string.
/// Binary is Base64. A number that JSON does not have is one of the strings `NaN`, `Infinity` and
/// `-Infinity`.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Binary(bytes) => serializer.serialize_str(&STANDARD.encode(bytes)),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::DateTime(value) => value.serialize(serializer),
            Self::Double(value) if value.is_nan() => serializer.serialize_str("NaN"),
            Self::Double(f64::INFINITY) => serializer.serialize_str("Infinity"),
            Self::Double(f64::NEG_INFINITY) => serializer.serialize_str("-Infinity"),
            Self::Double(value) => serializer.serialize_f64(*value),
            Self::Guid(value) => value.serialize(serializer),
            Self::Int32(value) => serializer.serialize_i32(*value),
            Self::Int64(value) => serializer.serialize_i64(*value),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;

    fn assert_json<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &str) {
        assert_eq!(serde_json::to_string(value).unwrap(), json);
        assert_eq!(serde_json::from_str::<T>(json).unwrap(), *value);
    }

    fn timestamp() -> Timestamp {
        "2024-03-15T10:20:30.5Z".parse().unwrap()
    }

    #[test]
    fn values_that_are_read_back_are_strings() {
        assert_json(&timestamp(), r#""2024-03-15T10:20:30.5Z""#);
        assert_json(
            &Guid::default(),
            r#""00000000-0000-0000-0000-000000000000""#,
        );
        assert_json(
            &ETag::from_timestamp(timestamp()),
            r#""W/\"datetime'2024-03-15T10%3A20%3A30.5Z'\"""#,
        );
        assert_json(&PartitionKey::new("Sales").unwrap(), r#""Sales""#);
        assert_json(
            &EntityKey::new("Sales", "1").unwrap(),
            r#"{"PartitionKey":"Sales","RowKey":"1"}"#,
        );
    }

    #[test]
    fn what_breaks_a_rule_is_not_read() {
        assert!(serde_json::from_str::<RowKey>(r#""a/b""#).is_err());
        assert!(serde_json::from_str::<Guid>(r#""{}""#).is_err());
        assert!(serde_json::from_str::<Timestamp>(r#""yesterday""#).is_err());
        // With this one, a conditional write would overwrite anything.
        assert!(serde_json::from_str::<ETag>(r#""*""#).is_err());
    }

    #[test]
    fn plain_values_lose_no_digits() {
        for (value, json) in [
            (Value::Binary(b"binary".to_vec()), r#""YmluYXJ5""#),
            (Value::Boolean(true), "true"),
            (Value::DateTime(timestamp()), r#""2024-03-15T10:20:30.5Z""#),
            (Value::Double(0.1), "0.1"),
            (Value::Double(3.0), "3.0"),
            (Value::Double(f64::NAN), r#""NaN""#),
            (Value::Double(f64::INFINITY), r#""Infinity""#),
            (Value::Double(f64::NEG_INFINITY), r#""-Infinity""#),
            (Value::Int32(-5), "-5"),
            (Value::Int64(i64::MAX), "9223372036854775807"),
            (Value::String("ä\"".to_owned()), r#""ä\"""#),
        ] {
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
        }
    }
}
