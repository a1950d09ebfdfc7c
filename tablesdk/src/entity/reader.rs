//! Properties from an answer: handed out one by one, straight from the JSON, each converted only if a field wants it.

use std::slice;

use tablesdk_protocol::KeyPartName;
use tablesdk_protocol::wire::json::{JsonEntity, RawProperty};

use super::{EntityError, EntityProblem, Field, ValueError};

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

    /// The text of a key.
    ///
    /// # Errors
    ///
    /// When the answer has none.
    pub fn key(&self, part: KeyPartName) -> Result<&'a str, EntityError> {
        match self.entity.text(part.property())? {
            Some(text) => Ok(text),
            None => {
                let property = part.property().to_owned();
                Err(EntityProblem::MissingProperty { property }.into())
            }
        }
    }
}

/// Reads one property of an entity, wherever it stands.
pub(crate) fn read_column<F: Field>(name: &str, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
    let value = match entity.property(name) {
        Some(property) => property.to_value()?,
        None => None,
    };
    convert(name, F::from_value(value))
}

/// A value that is absent but may not be is an error, too.
pub(super) fn convert<F>(
    name: &str,
    converted: Result<Option<F>, ValueError>,
) -> Result<F, EntityError> {
    match converted {
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
