//! Properties from an answer: handed out one by one, straight from the JSON, each converted only if a field wants it.

use std::slice;

use tablesdk_protocol::wire::json::{JsonEntity, RawProperty};
use tablesdk_protocol::{KeyPartName, Value};

use super::key::read_key;
use super::{EntityError, EntityProblem, Field, KeyPart};

/// Hands out the properties of an entity that was read.
#[derive(Debug)]
pub struct PropertyReader<'a> {
    entity: &'a JsonEntity<'a>,
    rest: slice::Iter<'a, RawProperty<'a>>,
}

impl<'a> PropertyReader<'a> {
    pub(crate) fn new(entity: &'a JsonEntity<'a>) -> Self {
        Self {
            entity,
            rest: entity.members().iter(),
        }
    }

    /// The next property, keys and timestamp left out; `None` at the end.
    pub fn next_property(&mut self) -> Option<&'a RawProperty<'a>> {
        self.rest.find(|property| !property.is_system())
    }

    /// The partition key, read into the type of its field.
    ///
    /// # Errors
    ///
    /// When the answer has none, or not of that type.
    pub fn partition_key<P: KeyPart>(&self) -> Result<P, EntityError> {
        self.key(KeyPartName::PartitionKey)
    }

    /// The row key, read into the type of its field.
    ///
    /// # Errors
    ///
    /// When the answer has none, or not of that type.
    pub fn row_key<P: KeyPart>(&self) -> Result<P, EntityError> {
        self.key(KeyPartName::RowKey)
    }

    fn key<P: KeyPart>(&self, part: KeyPartName) -> Result<P, EntityError> {
        match self.entity.text(part.property())? {
            Some(text) => read_key(part, text),
            None => Err(EntityProblem::MissingProperty {
                property: part.property().to_owned(),
            }
            .into()),
        }
    }
}

/// Reads one property of an entity, wherever it stands.
pub(crate) fn read_column<F: Field>(name: &str, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
    let value = match entity.property(name) {
        Some(property) => property.to_value()?,
        None => None,
    };
    convert(name, value)
}

/// Collects the value of one field while the properties pass by.
#[derive(Debug)]
pub struct Slot<F> {
    name: &'static str,
    seen: bool,
    value: Option<F>,
}

impl<F: Field> Slot<F> {
    /// The slot of the field that is stored under that name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            seen: false,
            value: None,
        }
    }

    /// Takes the property that has the name of this slot.
    ///
    /// # Errors
    ///
    /// When its value is not of the field's type, or came before.
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
            self.value = Some(convert(self.name, Some(value))?);
        }
        Ok(())
    }

    /// The value of the field.
    ///
    /// # Errors
    ///
    /// When the property did not come, and the field is not an `Option`.
    pub fn finish(self) -> Result<F, EntityError> {
        match self.value {
            Some(value) => Ok(value),
            None => convert(self.name, None),
        }
    }
}

fn convert<F: Field>(name: &str, value: Option<Value>) -> Result<F, EntityError> {
    match F::from_value(value) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(EntityProblem::MissingProperty {
            property: name.to_owned(),
        }
        .into()),
        Err(error) => Err(EntityProblem::Value {
            property: name.to_owned(),
            error,
        }
        .into()),
    }
}
