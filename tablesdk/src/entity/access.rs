//! What generated code does with a field, behind one function for each kind of field.
//!
//! All that a derive asks of a field's type it asks by way of [`field`] or [`key_part`]. A type that does not fit is then
//! refused in the same words at the same place each time, which the compiler reports once.

#![expect(clippy::missing_errors_doc, reason = "called by generated code alone")]

use tablesdk_protocol::wire::json::RawProperty;
use tablesdk_protocol::{EdmType, EntityKey, KeyPartName, Value, ValueRef};

use super::reader::convert;
use super::{
    EntityError, EntityProblem, Field, KeyPart, PropertyReader, PropertySchema, PropertyWriter,
    ValueError,
};

/// What can be done with a field that is a property.
#[derive(Clone, Copy, Debug)]
pub struct FieldAccess<F> {
    edm_type: EdmType,
    optional: bool,
    to_value: fn(&F) -> Result<Option<ValueRef<'_>>, ValueError>,
    from_value: fn(Option<Value>) -> Result<Option<F>, ValueError>,
}

/// Access to a field of type `F`.
pub const fn field<F: Field>() -> FieldAccess<F> {
    FieldAccess {
        edm_type: F::EDM_TYPE,
        optional: F::OPTIONAL,
        to_value: F::to_value,
        from_value: F::from_value,
    }
}

impl<F> FieldAccess<F> {
    /// The property in the schema.
    pub const fn schema(self, name: &'static str) -> PropertySchema {
        PropertySchema::new(name, self.edm_type, self.optional)
    }

    /// Writes the field.
    pub fn write(
        self,
        writer: &mut PropertyWriter<'_>,
        name: &'static str,
        field: &F,
    ) -> Result<(), EntityError> {
        match (self.to_value)(field) {
            Ok(Some(value)) => writer.value(name, &value),
            Ok(None) => Ok(()),
            Err(error) => Err(EntityProblem::Value {
                property: name.to_owned(),
                error,
            }
            .into()),
        }
    }

    /// An empty slot for the field.
    pub const fn slot(self, name: &'static str) -> Slot<F> {
        Slot {
            access: self,
            name,
            seen: false,
            value: None,
        }
    }
}

/// Collects the value of one field while the properties pass by.
#[derive(Debug)]
pub struct Slot<F> {
    access: FieldAccess<F>,
    name: &'static str,
    seen: bool,
    value: Option<F>,
}

impl<F> Slot<F> {
    /// Takes the property that has the name of this slot.
    pub fn fill(&mut self, property: &RawProperty<'_>) -> Result<(), EntityError> {
        if self.seen {
            return Err(EntityProblem::DuplicateProperty {
                property: self.name.to_owned(),
            }
            .into());
        }
        self.seen = true;
        // A null stands for an absent property, as the answer to a projection has it.
        if let Some(value) = property.to_value()? {
            self.value = Some(convert(self.name, (self.access.from_value)(Some(value)))?);
        }
        Ok(())
    }

    /// The value of the field; an error when the property did not come, and the field is not an `Option`.
    pub fn finish(self) -> Result<F, EntityError> {
        match self.value {
            Some(value) => Ok(value),
            None => convert(self.name, (self.access.from_value)(None)),
        }
    }
}

/// What can be done with a field that is a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyAccess<P> {
    to_key: fn(&P) -> String,
    from_key: fn(&str) -> Result<P, String>,
}

/// Access to a key field of type `P`.
pub const fn key_part<P: KeyPart>() -> KeyAccess<P> {
    KeyAccess {
        to_key: P::to_key,
        from_key: P::from_key,
    }
}

impl<P> KeyAccess<P> {
    /// The text of the key.
    pub fn text(self, field: &P) -> String {
        (self.to_key)(field)
    }

    /// Reads the partition key into its field.
    pub fn read_partition_key(self, reader: &PropertyReader<'_>) -> Result<P, EntityError> {
        self.read(KeyPartName::PartitionKey, reader)
    }

    /// Reads the row key into its field.
    pub fn read_row_key(self, reader: &PropertyReader<'_>) -> Result<P, EntityError> {
        self.read(KeyPartName::RowKey, reader)
    }

    fn read(self, part: KeyPartName, reader: &PropertyReader<'_>) -> Result<P, EntityError> {
        let text = reader.key(part)?;
        (self.from_key)(text).map_err(|reason| {
            EntityProblem::KeyUnreadable {
                part,
                text: text.to_owned(),
                reason,
            }
            .into()
        })
    }
}

/// The key of an entity with these texts.
pub fn entity_key(partition_key: String, row_key: String) -> Result<EntityKey, EntityError> {
    Ok(EntityKey::new(partition_key, row_key)?)
}
