//! Properties to the body of a request, checked against the limits of the service before anything
//! is sent.

use bytes::Bytes;
use tablesdk_protocol::limits::{
    BINARY_BYTES_MAX, ENTITY_BYTES_MAX, PROPERTIES_MAX, STRING_UNITS_MAX,
};
use tablesdk_protocol::wire::json::EntityWriter;
use tablesdk_protocol::{EntityKey, Value, ValueRef};

use super::encrypted::{encrypted, without_secrets};
use super::{EntityError, EntityProblem, Schema, ValueError, WritableEntity};

/// Takes the properties of an entity, one by one.
#[derive(Debug)]
pub struct PropertyWriter<'a> {
    sink: &'a mut Sink,
    /// The prefix of the names at the moment.
    prefix: String,
    count: usize,
    bytes: usize,
    step_of: StepOf<'a>,
    /// The type whose encrypted properties are encrypted after this.
    pub(super) encrypts: Option<&'static Schema>,
}

/// The property with the stamp of a step of an outbox, in an entity that the step has written: the
/// id of the outbox, and the number of the step.
pub(crate) const STEP_OF: &str = "TablesdkStepOf";

/// Whose stamp of a step may be written: that of the same entity, as it was read. Inserts, upserts
/// and moves write none. A worker takes an entity with the stamp of another one for one that came
/// back after a delete step.
#[derive(Clone, Copy, Debug)]
enum StepOf<'a> {
    /// That with which the entity was read; none of a new entity.
    Known(Option<&'a str>),
    Any,
}

impl<'a> StepOf<'a> {
    const fn of<E: WritableEntity>(known: Option<&'a str>) -> Self {
        if E::IS_VERBATIM {
            Self::Any
        } else {
            Self::Known(known)
        }
    }
}

impl<'a> PropertyWriter<'a> {
    /// Writes into an entity that has that many bytes already.
    const fn new(sink: &'a mut Sink, bytes: usize) -> Self {
        Self {
            sink,
            prefix: String::new(),
            count: 0,
            bytes,
            step_of: StepOf::Known(None),
            encrypts: None,
        }
    }

    /// Returns true if the stamp of a step is that of this entity. An entity that was read keeps
    /// its stamp. No other entity gets the stamp with the properties of an entity that was read.
    pub(super) fn is_stamped(&self, stamp: &Value) -> bool {
        match self.step_of {
            StepOf::Known(known) => {
                matches!(stamp, Value::String(stamp) if Some(stamp.as_str()) == known)
            }
            StepOf::Any => true,
        }
    }

    /// Writes a property.
    ///
    /// # Errors
    ///
    /// When it exceeds what the service stores.
    pub fn value(&mut self, name: &str, value: &ValueRef<'_>) -> Result<(), EntityError> {
        let bytes = property_bytes(name, value).map_err(|error| self.refused(name, error))?;
        self.count += 1;
        self.bytes += utf16_len(&self.prefix) * 2 + bytes;
        if self.prefix.is_empty() {
            self.sink.property(name, value);
        } else {
            let outer = self.prefix.len();
            self.prefix.push_str(name);
            self.sink.property(&self.prefix, value);
            self.prefix.truncate(outer);
        }
        Ok(())
    }

    /// Writes properties with a prefix in front of their names.
    ///
    /// # Errors
    ///
    /// As those properties have.
    pub fn group(
        &mut self,
        prefix: &str,
        write: impl FnOnce(&mut Self) -> Result<(), EntityError>,
    ) -> Result<(), EntityError> {
        let outer = self.prefix.len();
        self.prefix.push_str(prefix);
        let written = write(self);
        self.prefix.truncate(outer);
        written
    }

    /// The error of the value of a property.
    pub(crate) fn refused(&self, name: &str, error: ValueError) -> EntityError {
        EntityProblem::value(&format!("{}{name}", self.prefix), error).into()
    }
}

/// Where the properties of an entity are written to.
#[derive(Debug)]
enum Sink {
    Json(EntityWriter),
    Values(Vec<(String, Value)>),
}

impl Sink {
    fn property(&mut self, name: &str, value: &ValueRef<'_>) {
        match self {
            Self::Json(json) => json.property(name, value),
            Self::Values(values) => values.push((name.to_owned(), value.clone().into_value())),
        }
    }
}

/// The size of an entity without properties, as the service counts it.
pub(crate) fn entity_bytes(key: &EntityKey) -> usize {
    4 + (utf16_len(key.partition_key().as_str()) + utf16_len(key.row_key().as_str())) * 2
}

/// The size of a property, as the service counts it.
pub(crate) fn property_bytes(name: &str, value: &ValueRef<'_>) -> Result<usize, ValueError> {
    let size = match value {
        ValueRef::Binary(bytes) => {
            too_large(bytes.len() > BINARY_BYTES_MAX, BINARY_RULE)?;
            bytes.len() + 4
        }
        ValueRef::String(text) => {
            let units = utf16_len(text);
            too_large(units > STRING_UNITS_MAX, STRING_RULE)?;
            units * 2 + 4
        }
        ValueRef::Boolean(_) => 1,
        ValueRef::Int32(_) => 4,
        ValueRef::DateTime(_) | ValueRef::Double(_) | ValueRef::Int64(_) => 8,
        ValueRef::Guid(_) => 16,
    };
    Ok(8 + utf16_len(name) * 2 + size)
}

/// The properties that a function writes, whatever their number and size together.
pub(crate) fn whole_values(
    write: impl FnOnce(&mut PropertyWriter<'_>) -> Result<(), EntityError>,
) -> Result<Vec<(String, Value)>, EntityError> {
    let mut sink = Sink::Values(Vec::new());
    write(&mut PropertyWriter::new(&mut sink, 0))?;
    Ok(match sink {
        Sink::Values(values) => values,
        Sink::Json(_) => Vec::new(),
    })
}

/// An entity as JSON, whatever the number and size of its properties.
pub(crate) fn write_whole<'v>(
    key: &EntityKey,
    values: impl IntoIterator<Item = (&'v str, ValueRef<'v>)>,
) -> Bytes {
    let mut json = with_key(key);
    for (name, value) in values {
        json.property(name, &value);
    }
    json.finish()
}

/// The properties that an entity is written as, which was read with that stamp of a step.
pub(crate) fn values_of<E: WritableEntity>(
    entity: &E,
    key: &EntityKey,
    step_of: Option<&str>,
) -> Result<Vec<(String, Value)>, EntityError> {
    let mut sink = Sink::Values(Vec::new());
    let filled = fill(&mut sink, key, StepOf::of::<E>(step_of), |writer| {
        writer.encrypts = encrypted::<E>();
        entity.write(writer)
    });
    filled.map_err(without_secrets::<E>)?;
    Ok(match sink {
        Sink::Values(values) => values,
        Sink::Json(_) => Vec::new(),
    })
}

/// Writes an entity with its keys, as it is: also with the stamp of any step.
pub(crate) fn write_entity<E: WritableEntity>(
    entity: &E,
    key: &EntityKey,
) -> Result<Bytes, EntityError> {
    write_as(entity, key, StepOf::Any)
}

/// Writes an entity with its keys that was read with that stamp of a step. A new one has none.
pub(crate) fn write_stamped<E: WritableEntity>(
    entity: &E,
    key: &EntityKey,
    step_of: Option<&str>,
) -> Result<Bytes, EntityError> {
    write_as(entity, key, StepOf::of::<E>(step_of))
}

fn write_as<E: WritableEntity>(
    entity: &E,
    key: &EntityKey,
    step_of: StepOf<'_>,
) -> Result<Bytes, EntityError> {
    let json = write_with(key, step_of, |writer| {
        writer.encrypts = encrypted::<E>();
        entity.write(writer)
    });
    json.map_err(without_secrets::<E>)
}

/// Writes properties with the keys of the entity that they belong to.
pub(crate) fn write_values(
    key: &EntityKey,
    values: &[(String, Value)],
) -> Result<Bytes, EntityError> {
    write(key, |writer| {
        let mut values = values.iter();
        values.try_for_each(|(name, value)| writer.value(name, &value.as_ref()))
    })
}

pub(crate) fn write(
    key: &EntityKey,
    properties: impl FnOnce(&mut PropertyWriter<'_>) -> Result<(), EntityError>,
) -> Result<Bytes, EntityError> {
    write_with(key, StepOf::Known(None), properties)
}

fn write_with(
    key: &EntityKey,
    step_of: StepOf<'_>,
    properties: impl FnOnce(&mut PropertyWriter<'_>) -> Result<(), EntityError>,
) -> Result<Bytes, EntityError> {
    let mut sink = Sink::Json(with_key(key));
    fill(&mut sink, key, step_of, properties)?;
    Ok(match sink {
        Sink::Json(json) => json.finish(),
        Sink::Values(_) => Bytes::new(),
    })
}

/// The JSON of an entity without properties yet.
fn with_key(key: &EntityKey) -> EntityWriter {
    let (partition_key, row_key) = (key.partition_key().as_str(), key.row_key().as_str());
    let mut json = EntityWriter::new();
    json.property("PartitionKey", &ValueRef::String(partition_key.into()));
    json.property("RowKey", &ValueRef::String(row_key.into()));
    json
}

/// Writes properties, and checks the limits of the entity that they make.
fn fill<'a>(
    sink: &'a mut Sink,
    key: &EntityKey,
    step_of: StepOf<'a>,
    properties: impl FnOnce(&mut PropertyWriter<'_>) -> Result<(), EntityError>,
) -> Result<(), EntityError> {
    let mut writer = PropertyWriter::new(sink, entity_bytes(key));
    writer.step_of = step_of;
    properties(&mut writer)?;
    if writer.count > PROPERTIES_MAX {
        return Err(EntityProblem::TooManyProperties {
            count: writer.count,
        }
        .into());
    }
    if writer.bytes > ENTITY_BYTES_MAX {
        return Err(EntityProblem::EntityTooLarge {
            bytes: writer.bytes,
        }
        .into());
    }
    Ok(())
}

fn too_large(is_too_large: bool, rule: &'static str) -> Result<(), ValueError> {
    if is_too_large {
        Err(ValueError::TooLarge { rule })
    } else {
        Ok(())
    }
}

fn utf16_len(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}

const BINARY_RULE: &str = "a property holds at most 65536 bytes";
const STRING_RULE: &str = "a property holds at most 32768 UTF-16 units of text";
