//! How entities are written and read by serde: as the plain JSON of a web service, and in an exact
//! form from which nothing is lost.
//!
//! Plain JSON is not read back into properties, since it does not show their types: a date, a GUID
//! and binary are strings there.
//!
//! Knows nothing of the requests of the table service, whose JSON is the protocol's.

use std::borrow::Borrow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{self, Serialize, SerializeMap, Serializer};
use tablesdk_protocol::wire::json::{SYSTEM_PROPERTIES, read_entity};
use tablesdk_protocol::{ETag, EdmType, Value};

use super::{DynamicEntity, Properties, PropertyReader, Stored, TableEntity};
use crate::entity::key::{Desc, Escaped, Shard};

/// As the value alone, which is what a web handler returns. Key, ETag and timestamp are not part of
/// it: send the ETag in a header.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// #[derive(serde::Serialize, tablesdk::TableEntity)]
/// struct Person {
///     #[table(partition_key)]
///     department: String,
///     #[table(row_key)]
///     id: String,
///     #[table(rename = "Name")]
///     name: String,
/// }
///
/// let ada = table.get(Person::key("Sales", "1")).await?.expect("she works here");
/// assert_eq!(serde_json::to_string(&ada)?, r#"{"department":"Sales","id":"1","name":"Ada"}"#);
/// # Ok(())
/// # }
/// ```
impl<E: Serialize> Serialize for Stored<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        E::serialize(self, serializer)
    }
}

/// As an object of plain values, in order. See [`Value`].
impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.check_values().map_err(ser::Error::custom)?;
        serializer.collect_map(self.iter())
    }
}

/// As plain JSON: both keys, the timestamp if there is one, and the properties as plain
/// [values](Value). The types of the properties are lost; [`DynamicEntity::exact`] keeps them.
impl Serialize for DynamicEntity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.properties()
            .check_values()
            .map_err(ser::Error::custom)?;
        let mut members = serializer.serialize_map(None)?;
        write_head(self, &mut members)?;
        for (name, value) in self.properties().iter() {
            check_name(name)?;
            members.serialize_entry(name, value)?;
        }
        members.end()
    }
}

/// An entity without a struct, in a form of JSON from which nothing is lost.
///
/// It is the form that the table service uses: a value whose type JSON does not show has a member
/// with its type before it, and an Int64 is a string, since JavaScript rounds numbers beyond 2^53.
/// The ETag is the member `odata.etag`.
///
/// A [`DynamicEntity`] itself is written as plain JSON, without types and without its ETag. It is
/// not read from JSON, since the types would be guessed.
///
/// ```
/// use tablesdk::entity::Exact;
/// use tablesdk::{DynamicEntity, Properties};
///
/// let properties: Properties = [("Badge", 7_i64)].into_iter().collect();
/// let ada = DynamicEntity::new("Sales", "1").with_properties(properties);
/// assert_eq!(serde_json::to_string(&ada)?, r#"{"PartitionKey":"Sales","RowKey":"1","Badge":7}"#);
///
/// let text = serde_json::to_string(&ada.exact())?;
/// assert_eq!(
///     text,
///     r#"{"PartitionKey":"Sales","RowKey":"1","Badge@odata.type":"Edm.Int64","Badge":"7"}"#
/// );
/// let Exact(read) = serde_json::from_str(&text)?;
/// assert_eq!(read, ada);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a newtype that is made by hand")]
pub struct Exact<E = DynamicEntity>(pub E);

impl DynamicEntity {
    /// The same entity, to be written by serde with the exact types of its properties and with its
    /// ETag. [`Exact`] reads it.
    pub const fn exact(&self) -> Exact<&Self> {
        Exact(self)
    }
}

impl<E: Borrow<DynamicEntity>> Serialize for Exact<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entity = self.0.borrow();
        entity
            .properties()
            .check_values()
            .map_err(ser::Error::custom)?;
        let mut members = serializer.serialize_map(None)?;
        if let Some(etag) = entity.etag() {
            members.serialize_entry(ETAG, etag)?;
        }
        write_head(entity, &mut members)?;
        for (name, value) in entity.properties().iter() {
            check_name(name)?;
            let edm_type = value.edm_type();
            match edm_type {
                EdmType::Boolean | EdmType::Int32 | EdmType::String => {}
                _ => members.serialize_entry(&format!("{name}@odata.type"), edm_type.as_str())?,
            }
            match value {
                Value::Int64(number) => members.serialize_entry(name, &number.to_string())?,
                _ => members.serialize_entry(name, value)?,
            }
        }
        members.end()
    }
}

/// Without the type of a property, a string is a string, a number with a point or an exponent a
/// Double, and any other number an Int32 or, if it is too large, an Int64. A null is an absent
/// property.
impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ExactVisitor)
    }
}

struct ExactVisitor;

impl<'de> Visitor<'de> for ExactVisitor {
    type Value = Exact;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entity with both keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Exact, A::Error> {
        // The reader of the protocol knows what annotations and values mean.
        let mut json = Vec::from(*b"{");
        while let Some((name, value)) = members.next_entry::<String, serde_json::Value>()? {
            if json.len() > 1 {
                json.push(b',');
            }
            serde_json::to_writer(&mut json, &name).map_err(A::Error::custom)?;
            json.push(b':');
            serde_json::to_writer(&mut json, &value).map_err(A::Error::custom)?;
        }
        json.push(b'}');
        let entity = read_entity(&json).map_err(A::Error::custom)?;
        if entity.has_duplicates() {
            return Err(A::Error::custom("a member of the entity came twice"));
        }
        let etag = entity.etag().map(|etag| etag.as_str().parse::<ETag>());
        let etag = etag.transpose().map_err(A::Error::custom)?;
        DynamicEntity::read(&mut PropertyReader::new(&entity, etag.as_ref()))
            .map(Exact)
            .map_err(A::Error::custom)
    }
}

fn write_head<M: SerializeMap>(entity: &DynamicEntity, members: &mut M) -> Result<(), M::Error> {
    members.serialize_entry("PartitionKey", entity.partition_key())?;
    members.serialize_entry("RowKey", entity.row_key())?;
    match entity.timestamp() {
        Some(timestamp) => members.serialize_entry("Timestamp", &timestamp),
        None => Ok(()),
    }
}

/// A property of this name would be read as something else. Other names are not checked: backends
/// differ in what they accept.
fn check_name<E: ser::Error>(name: &str) -> Result<(), E> {
    let is_annotation = name.starts_with("odata.") || name.ends_with("@odata.type");
    if is_annotation || SYSTEM_PROPERTIES.contains(&name) {
        return Err(E::custom(format_args!(
            "{name:?} is not a name of a property"
        )));
    }
    Ok(())
}

macro_rules! as_what_it_holds {
    ($($type:ident)+) => {
        $(
            /// As what it holds.
            impl<T: Serialize> Serialize for $type<T> {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    self.0.serialize(serializer)
                }
            }

            impl<'de, T: Deserialize<'de>> Deserialize<'de> for $type<T> {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    T::deserialize(deserializer).map(Self)
                }
            }
        )+
    };
}

as_what_it_holds! { Desc Escaped }

/// As its number.
impl<const N: u32> Serialize for Shard<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number().serialize(serializer)
    }
}

impl<'de, const N: u32> Deserialize<'de> for Shard<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        let outside = || D::Error::custom(format_args!("{number} is no shard of {N}"));
        Self::new(number).ok_or_else(outside)
    }
}

const ETAG: &str = "odata.etag";
