//! Properties from an answer: handed out one by one, straight from the JSON, each converted only if
//! a field wants it.
//!
//! There is no map between JSON and struct: names and values are borrowed from the JSON, and a
//! `match` over the names in the derived code picks the fields.

use std::cell::Cell;

use tablesdk_protocol::wire::json::{EntityCursor, JsonEntity, RawProperty};
use tablesdk_protocol::{ETag, EdmType, KeyKind, Timestamp, Value};

use super::{EntityError, EntityProblem, STEP_OF, Schema, ValueError};

/// Hands out the properties of an entity that was read.
#[derive(Debug)]
pub struct PropertyReader<'e, 'a> {
    entity: EntityCursor<'e, 'a>,
    etag: Option<&'e ETag>,
    /// True if the ETag, or the time in it, was read.
    has_given_etag: Cell<bool>,
    /// The type whose encrypted properties were decrypted.
    decrypted_by: Option<&'static Schema>,
    /// The property that says of which type the entity is, and its text, once it was asked for.
    entity_type: Option<(&'static str, Option<&'e str>)>,
    /// True if an enum has accepted the entity type, by a name that the struct itself does not
    /// know.
    accepted: bool,
    /// The stamp of a step that came among the properties.
    step_of: Option<Box<str>>,
}

impl<'e, 'a> PropertyReader<'e, 'a> {
    pub(crate) fn new(entity: &'e JsonEntity<'a>, etag: Option<&'e ETag>) -> Self {
        Self::of(EntityCursor::new(entity), etag)
    }

    /// A reader for an entity that is read by that schema.
    pub(crate) fn with_schema(
        entity: EntityCursor<'e, 'a>,
        schema: &'static Schema,
        etag: Option<&'e ETag>,
    ) -> Self {
        Self {
            decrypted_by: schema.encrypts().then_some(schema),
            ..Self::of(entity, etag)
        }
    }

    const fn of(entity: EntityCursor<'e, 'a>, etag: Option<&'e ETag>) -> Self {
        Self {
            entity,
            etag,
            has_given_etag: Cell::new(false),
            decrypted_by: None,
            entity_type: None,
            accepted: false,
            step_of: None,
        }
    }

    /// The type whose encrypted properties were decrypted before they are read here.
    pub(super) const fn decrypted_by(&self) -> Option<&'static Schema> {
        self.decrypted_by
    }

    /// The stamp of the step that has written the entity.
    pub(super) fn step_of(self) -> Option<Box<str>> {
        self.step_of
    }

    /// The next property, keys and timestamp left out; `None` at the end.
    #[doc(hidden)]
    pub fn next_property(&mut self) -> Option<&RawProperty<'a>> {
        let property = self.entity.next_property()?;
        if property.name() == STEP_OF
            && let Ok(Some(Value::String(stamp))) = property.to_value()
        {
            self.step_of = Some(stamp.into());
        }
        Some(property)
    }

    /// How many properties are left, as far as that is known.
    pub(super) fn expected_properties(&self) -> usize {
        self.entity.expected_properties()
    }

    /// Returns true if the value that was read may depend on the ETag.
    pub(crate) const fn has_given_etag(&self) -> bool {
        self.has_given_etag.get()
    }

    pub(super) const fn hide(&mut self, name: &'static str) {
        self.entity.hide(name);
    }

    pub(super) const fn accept(&mut self) {
        self.accepted = true;
    }

    pub(super) const fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// The text of the property that says of which type the entity is.
    pub(super) fn type_text(
        &mut self,
        property: &'static str,
    ) -> Result<Option<&'e str>, EntityError> {
        match self.entity_type {
            Some((known, text)) if known == property => Ok(text),
            _ => {
                let text = text(&self.entity, property, Some(EdmType::String))?;
                self.entity_type = Some((property, text));
                Ok(text)
            }
        }
    }

    /// The text of a key.
    ///
    /// # Errors
    ///
    /// When the answer has none, or two.
    pub fn key(&self, part: KeyKind) -> Result<&'e str, EntityError> {
        key_text(&self.entity, part)
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

/// The text of a key in an entity that is read.
pub(crate) fn key_text<'e>(
    entity: &EntityCursor<'e, '_>,
    part: KeyKind,
) -> Result<&'e str, EntityError> {
    let name = part.property();
    let key = text(entity, name, None)?;
    key.ok_or_else(|| EntityProblem::missing(name, EdmType::String).into())
}

/// The text of a string that comes once.
fn text<'e>(
    entity: &EntityCursor<'e, '_>,
    name: &str,
    wanted: Option<EdmType>,
) -> Result<Option<&'e str>, EntityError> {
    if entity.has_several(name) {
        return Err(EntityProblem::duplicate(name).into());
    }
    let text = entity.find(name);
    text.map_err(|error| EntityProblem::Payload { wanted, error }.into())
}

/// The value of a property of an answer. A field of Int64s keeps every digit of an integer without
/// an annotation, which is a Double for the service.
pub(crate) fn value_of(
    property: &RawProperty<'_>,
    wanted: EdmType,
) -> Result<Option<Value>, EntityError> {
    if wanted == EdmType::Int64
        && let Some(Ok(integer)) = property.unannotated_big_integer().map(str::parse)
    {
        return Ok(Some(Value::Int64(integer)));
    }
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
