//! Properties from an answer: handed out one by one, straight from the JSON, each converted only if a field wants it.
//!
//! There is no map between JSON and struct: names and values are borrowed from the JSON, and a `match` over the names in the
//! derived code picks the fields.

use std::cell::Cell;
use std::slice;

use tablesdk_protocol::wire::json::{JsonEntity, RawProperty};
use tablesdk_protocol::{ETag, EdmType, KeyKind, Timestamp, Value};

use super::{EntityError, EntityProblem, ValueError};

/// Hands out the properties of an entity that was read.
#[derive(Debug)]
pub struct PropertyReader<'a> {
    entity: &'a JsonEntity<'a>,
    etag: Option<&'a ETag>,
    rest: slice::Iter<'a, RawProperty<'a>>,
    /// The property that says of which type the entity is, once that has been checked.
    hidden: Option<&'static str>,
    /// Whether the ETag or the time in it was asked for.
    has_given_etag: Cell<bool>,
    /// Whether an enum has found the type to be right, by a name that the struct itself does not know.
    accepted: bool,
}

impl<'a> PropertyReader<'a> {
    pub(crate) fn new(entity: &'a JsonEntity<'a>, etag: Option<&'a ETag>) -> Self {
        Self {
            entity,
            etag,
            rest: entity.members().iter(),
            hidden: None,
            has_given_etag: Cell::new(false),
            accepted: false,
        }
    }

    /// The next property, keys and timestamp left out; `None` at the end.
    #[doc(hidden)]
    pub fn next_property(&mut self) -> Option<&'a RawProperty<'a>> {
        let hidden = self.hidden;
        self.rest.find(|property| {
            !property.is_system() && hidden.is_none_or(|name| property.name() != name)
        })
    }

    /// How many properties are left at most.
    pub(super) fn max_left(&self) -> usize {
        let left = self.rest.as_slice().iter();
        left.filter(|property| !property.is_system()).count()
    }

    /// Whether the value that was read may depend on the ETag.
    pub(crate) const fn has_given_etag(&self) -> bool {
        self.has_given_etag.get()
    }

    pub(super) const fn hide(&mut self, name: &'static str) {
        self.hidden = Some(name);
    }

    pub(super) const fn accept(&mut self) {
        self.accepted = true;
    }

    pub(super) const fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// The text of the property that says of which type the entity is.
    pub(super) fn type_text(&self, property: &str) -> Result<Option<&'a str>, EntityError> {
        if self.entity.has_several(property) {
            return Err(EntityProblem::duplicate(property).into());
        }
        self.entity.text(property).map_err(|error| {
            EntityProblem::Payload {
                wanted: Some(EdmType::String),
                error,
            }
            .into()
        })
    }

    /// The text of a key.
    ///
    /// # Errors
    ///
    /// When the answer has none, or two.
    pub fn key(&self, part: KeyKind) -> Result<&'a str, EntityError> {
        key_text(self.entity, part)
    }

    /// The version that is read, where the response contains it.
    pub fn etag(&self) -> Option<ETag> {
        self.has_given_etag.set(true);
        self.etag.cloned()
    }

    /// When the version that is read was written, where the response or its ETag contains the time.
    ///
    /// # Errors
    ///
    /// When it is not a date and time.
    pub fn timestamp(&self) -> Result<Option<Timestamp>, EntityError> {
        self.has_given_etag.set(true);
        let timestamp = self.entity.timestamp()?;
        Ok(timestamp.or_else(|| self.etag.and_then(ETag::timestamp)))
    }
}

/// The text of a key in an entity of an answer.
pub(super) fn key_text<'e>(
    entity: &'e JsonEntity<'_>,
    part: KeyKind,
) -> Result<&'e str, EntityError> {
    let name = part.property();
    if entity.has_several(name) {
        return Err(EntityProblem::duplicate(name).into());
    }
    match entity.text(name)? {
        Some(text) => Ok(text),
        None => Err(EntityProblem::missing(name, EdmType::String).into()),
    }
}

/// The value of a property of an answer.
pub(super) fn value_of(
    property: &RawProperty<'_>,
    wanted: EdmType,
) -> Result<Option<Value>, EntityError> {
    property.to_value().map_err(|error| {
        EntityProblem::Payload {
            wanted: Some(wanted),
            error,
        }
        .into()
    })
}

/// A value that is absent but may not be is an error, too.
pub(super) fn convert<F>(
    name: &str,
    wanted: EdmType,
    converted: Result<Option<F>, ValueError>,
) -> Result<F, EntityError> {
    match converted {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(EntityProblem::missing(name, wanted).into()),
        Err(error) => Err(EntityProblem::Value {
            property: name.to_owned(),
            error,
        }
        .into()),
    }
}
