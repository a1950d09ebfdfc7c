//! An entity's timestamp and properties as packed bytes; see `storage/FORMAT.md`.
//!
//! Records are read in place: properties are returned one by one, borrowed from the record, without a collection. In addition to
//! the values, a record stores their serialized form, which responses copy; the protocol crate defines that form. This module knows
//! no keys. For arbitrary bytes, reading terminates and does not panic.

use std::borrow::Cow;

use tablesdk_protocol::wire::json::write_stored_properties;
use tablesdk_protocol::{ETag, Guid, Timestamp, ValueRef};

use crate::storage::StorageError;

/// The stored entity without its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    timestamp: Timestamp,
    properties: &'a [u8],
    json: &'a [u8],
}

impl<'a> Record<'a> {
    /// Writes a record.
    pub(crate) fn encode<'v>(
        timestamp: Timestamp,
        properties: impl Iterator<Item = (&'v str, ValueRef<'v>)> + Clone,
    ) -> Vec<u8> {
        let mut packed = Vec::with_capacity(256);
        for (name, value) in properties.clone() {
            push_property(&mut packed, name, &value);
        }
        let length = u32::try_from(packed.len()).expect("an entity has at most 1 MiB");
        let mut out = Vec::with_capacity(HEAD_BYTES + 4 * packed.len());
        out.push(VERSION);
        out.extend_from_slice(&timestamp.unix_ticks().to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&packed);
        write_stored_properties(&mut out, properties);
        out
    }

    /// Reads a record, and checks all of it.
    #[cfg(test)]
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, StorageError> {
        let record = Self::open(bytes)?;
        record.check()?;
        Ok(record)
    }

    /// Reads the timestamp and finds the rest, which is checked when it is read.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, StorageError> {
        let record = (|| {
            let mut reader = Reader { rest: bytes };
            if reader.array()? != [VERSION] {
                return None;
            }
            let timestamp = Timestamp::from_unix_ticks(i64::from_be_bytes(reader.array()?)).ok()?;
            let length = u32::from_be_bytes(reader.array()?);
            Some(Self {
                timestamp,
                properties: reader.take(usize::try_from(length).ok()?)?,
                json: reader.rest,
            })
        })();
        record.ok_or(DAMAGED)
    }

    /// Checks the properties.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        let mut reader = Reader {
            rest: self.properties,
        };
        while !reader.rest.is_empty() {
            reader.property().ok_or(DAMAGED)?;
        }
        Ok(())
    }

    /// When the entity was last written.
    pub(crate) const fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The entity's version.
    pub(crate) fn etag(&self) -> ETag {
        ETag::from_timestamp(self.timestamp)
    }

    /// The properties, in order, of a record that was checked.
    pub(crate) const fn properties(&self) -> Properties<'a> {
        Properties {
            reader: Reader {
                rest: self.properties,
            },
        }
    }

    /// The properties in the form of responses.
    pub(crate) const fn json(&self) -> &'a [u8] {
        self.json
    }

    /// The stored properties, in order. Their values are read on demand.
    pub(crate) fn stored_properties(
        &self,
    ) -> impl Iterator<Item = Result<StoredProperty<'a>, StorageError>> + use<'a> {
        let mut reader = Reader {
            rest: self.properties,
        };
        std::iter::from_fn(move || {
            if reader.rest.is_empty() {
                return None;
            }
            let property = reader.stored_property();
            if property.is_none() {
                // The rest cannot be read either.
                reader.rest = &[];
            }
            Some(property.ok_or(DAMAGED))
        })
    }

    /// The value of one property.
    #[cfg(test)]
    pub(crate) fn property(&self, name: &str) -> Option<ValueRef<'a>> {
        self.properties()
            .find(|(stored, _)| *stored == name)
            .map(|(_, value)| value)
    }
}

/// The properties of a record, borrowed.
#[derive(Clone, Debug)]
pub(crate) struct Properties<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Properties<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        // The whole record was checked, so `None` is its end.
        self.reader.property()
    }
}

/// A property whose value is not read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredProperty<'a> {
    /// The name, which may not be valid UTF-8.
    pub(crate) name: &'a [u8],
    tag: u8,
    value: &'a [u8],
}

impl<'a> StoredProperty<'a> {
    /// Reads the value.
    pub(crate) fn value(&self) -> Result<ValueRef<'a>, StorageError> {
        self.read().ok_or(DAMAGED)
    }

    fn read(&self) -> Option<ValueRef<'a>> {
        let bytes = self.value;
        Some(match self.tag {
            BINARY => ValueRef::Binary(Cow::Borrowed(bytes)),
            BOOLEAN => match bytes {
                [0] => ValueRef::Boolean(false),
                [1] => ValueRef::Boolean(true),
                _ => return None,
            },
            DATE_TIME => {
                let ticks = i64::from_be_bytes(bytes.try_into().ok()?);
                ValueRef::DateTime(Timestamp::from_unix_ticks(ticks).ok()?)
            }
            DOUBLE => ValueRef::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
            GUID => ValueRef::Guid(Guid::from_bytes(bytes.try_into().ok()?)),
            INT32 => ValueRef::Int32(i32::from_be_bytes(bytes.try_into().ok()?)),
            INT64 => ValueRef::Int64(i64::from_be_bytes(bytes.try_into().ok()?)),
            STRING => ValueRef::String(Cow::Borrowed(std::str::from_utf8(bytes).ok()?)),
            _ => return None,
        })
    }
}

fn push_property(out: &mut Vec<u8>, name: &str, value: &ValueRef<'_>) {
    let tag = match value {
        ValueRef::Binary(_) => BINARY,
        ValueRef::Boolean(_) => BOOLEAN,
        ValueRef::DateTime(_) => DATE_TIME,
        ValueRef::Double(_) => DOUBLE,
        ValueRef::Guid(_) => GUID,
        ValueRef::Int32(_) => INT32,
        ValueRef::Int64(_) => INT64,
        ValueRef::String(_) => STRING,
    };
    out.push(tag);
    let length = u16::try_from(name.len()).expect("a name has at most 255 characters");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(name.as_bytes());
    match value {
        ValueRef::Binary(bytes) => push_bytes(out, bytes),
        ValueRef::Boolean(value) => out.push(u8::from(*value)),
        ValueRef::DateTime(value) => out.extend_from_slice(&value.unix_ticks().to_be_bytes()),
        ValueRef::Double(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Guid(value) => out.extend_from_slice(&value.to_bytes()),
        ValueRef::Int32(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::Int64(value) => out.extend_from_slice(&value.to_be_bytes()),
        ValueRef::String(text) => push_bytes(out, text.as_bytes()),
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a value has at most 64 KiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// What of a record is still unread.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads a property; `None` at the end, or if it is malformed.
    fn property(&mut self) -> Option<(&'a str, ValueRef<'a>)> {
        let property = self.stored_property()?;
        Some((std::str::from_utf8(property.name).ok()?, property.read()?))
    }

    /// Finds the next property; `None` at the end, or if it is malformed.
    fn stored_property(&mut self) -> Option<StoredProperty<'a>> {
        let [tag] = self.array()?;
        let length = u16::from_be_bytes(self.array()?);
        let name = self.take(length.into())?;
        let length = match tag {
            BOOLEAN => 1,
            INT32 => 4,
            DATE_TIME | DOUBLE | INT64 => 8,
            GUID => 16,
            BINARY | STRING => usize::try_from(u32::from_be_bytes(self.array()?)).ok()?,
            _ => return None,
        };
        let value = self.take(length)?;
        Some(StoredProperty { name, tag, value })
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*array)
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

const DAMAGED: StorageError = StorageError::corrupt("entity");

/// The version of this layout.
const VERSION: u8 = 2;

/// The bytes before the properties.
const HEAD_BYTES: usize = 1 + 8 + 4;

const BINARY: u8 = 1;
const BOOLEAN: u8 = 2;
const DATE_TIME: u8 = 3;
const DOUBLE: u8 = 4;
const GUID: u8 = 5;
const INT32: u8 = 6;
const INT64: u8 = 7;
const STRING: u8 = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tablesdk_protocol::Value;

    use super::*;

    fn timestamp() -> impl Strategy<Value = Timestamp> {
        (Timestamp::MIN.unix_ticks()..=Timestamp::MAX.unix_ticks())
            .prop_map(|ticks| Timestamp::from_unix_ticks(ticks).unwrap())
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<Vec<u8>>().prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            timestamp().prop_map(Value::DateTime),
            any::<f64>()
                .prop_filter("NaN equals nothing", |value| !value.is_nan())
                .prop_map(Value::Double),
            any::<[u8; 16]>().prop_map(|bytes| Value::Guid(Guid::from_bytes(bytes))),
            any::<i32>().prop_map(Value::Int32),
            any::<i64>().prop_map(Value::Int64),
            any::<String>().prop_map(Value::String),
        ]
    }

    fn encode(timestamp: Timestamp, properties: &[(String, Value)]) -> Vec<u8> {
        let properties = properties.iter();
        Record::encode(
            timestamp,
            properties.map(|(name, value)| (name.as_str(), value.as_ref())),
        )
    }

    proptest! {
        #[test]
        fn records_read_back(
            at in timestamp(),
            properties in prop::collection::vec(("\\PC{1,20}", value()), 0..12),
        ) {
            let bytes = encode(at, &properties);
            let record = Record::parse(&bytes).unwrap();
            prop_assert_eq!(record.timestamp(), at);
            let read: Vec<_> = record
                .properties()
                .map(|(name, value)| (name.to_owned(), value.into_value()))
                .collect();
            prop_assert_eq!(&read, &properties);
            if let Some((name, value)) = properties.first() {
                prop_assert_eq!(record.property(name), Some(value.as_ref()));
            }
            for (stored, (name, value)) in record.stored_properties().zip(&properties) {
                let stored = stored.unwrap();
                prop_assert_eq!(stored.name, name.as_bytes());
                prop_assert_eq!(stored.value().unwrap(), value.as_ref());
            }
            prop_assert_eq!(record.stored_properties().count(), properties.len());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok(record) = Record::parse(&bytes) {
                prop_assert!(record.properties().count() <= bytes.len());
            }
            if let Ok(record) = Record::open(&bytes) {
                prop_assert!(record.stored_properties().count() <= bytes.len());
                let mut values = record.stored_properties().map(|property| property?.value());
                // The name is left unread here.
                prop_assert!(values.all(|value| value.is_ok()) || record.check().is_err());
            }
        }

        #[test]
        fn damage_is_read_or_refused(
            properties in prop::collection::vec(("\\PC{1,20}", value()), 1..6),
            place: prop::sample::Index,
            byte: u8,
            end: prop::sample::Index,
        ) {
            let mut bytes = encode(Timestamp::UNIX_EPOCH, &properties);
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
            if let Ok(record) = Record::parse(&bytes) {
                prop_assert!(record.properties().count() <= bytes.len());
            }
        }
    }

    #[test]
    fn the_layout_is_as_documented() {
        let properties = [("age".to_owned(), Value::Int32(39))];
        let bytes = encode(Timestamp::from_unix_ticks(258).unwrap(), &properties);
        let packed = b"\x06\0\x03age\0\0\0\x27";
        let head = b"\x02\0\0\0\0\0\0\x01\x02\0\0\0\x0A";
        let json = br#","age":39"#;
        assert_eq!(bytes, [&head[..], packed, json].concat());
        assert_eq!(Record::parse(&bytes).unwrap().json(), json);
        let mut future = bytes.clone();
        future[0] = 3;
        let mut short = bytes.clone();
        short[12] -= 1;
        for damaged in [&bytes[..22], &bytes[..5], &[], &future, &short] {
            assert!(Record::parse(damaged).is_err(), "{damaged:?}");
        }
    }
}
