//! Properties from an answer: handed out one by one, straight from the JSON, each converted only if a field wants it.
//!
//! There is no map between JSON and struct: names and values are borrowed from the JSON, and a `match` over the names in the
//! derived code picks the fields.

use std::cell::Cell;
use std::fmt;
use std::slice;

use tablesdk_protocol::wire::json::{EntityMembers, JsonEntity, RawProperty, ScannedEntity};
use tablesdk_protocol::{ETag, EdmType, KeyKind, Timestamp, Value};

use super::{EntityError, EntityProblem, STEP_OF, Schema, ValueError};

/// Hands out the properties of an entity that was read.
#[derive(Debug)]
pub struct PropertyReader<'a> {
    source: Source<'a>,
    etag: Option<&'a ETag>,
    /// The property that says of which type the entity is, once that has been checked.
    hidden: Option<&'static str>,
    /// Whether the ETag or the time in it was asked for.
    has_given_etag: Cell<bool>,
    /// The type whose encrypted properties were decrypted.
    decrypted_by: Option<&'static Schema>,
    /// Whether an enum has found the type to be right, by a name that the struct itself does not know.
    accepted: bool,
    /// The stamp of a step that came among the properties.
    step_of: Option<Box<str>>,
}

/// Where the properties come from.
enum Source<'a> {
    Listed {
        entity: &'a JsonEntity<'a>,
        rest: slice::Iter<'a, RawProperty<'a>>,
    },
    Scanned {
        members: &'a mut (dyn Members + 'a),
        partition_key: Option<&'a str>,
        row_key: Option<&'a str>,
        timestamp: Option<Timestamp>,
        /// The property that says of which type the entity is, and its text.
        entity_type: Option<(&'static str, Option<&'a str>)>,
        /// Whether the hidden property came.
        has_hidden: bool,
    },
}

/// Members that are scanned when they are asked for, whatever the lifetime of the input.
trait Members {
    fn advance(&mut self) -> bool;
    fn member(&self) -> &RawProperty<'_>;
    fn give_up(&self);
    fn expected_properties(&self) -> usize;
}

impl Members for ScannedEntity<'_> {
    fn advance(&mut self) -> bool {
        self.advance()
    }

    fn member(&self) -> &RawProperty<'_> {
        self.member()
    }

    fn give_up(&self) {
        self.give_up();
    }

    fn expected_properties(&self) -> usize {
        self.expected_properties()
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed { entity, .. } => fmt::Debug::fmt(entity, f),
            Self::Scanned { members, .. } => fmt::Debug::fmt(members.member(), f),
        }
    }
}

impl<'a> PropertyReader<'a> {
    pub(crate) fn new(entity: &'a JsonEntity<'a>, etag: Option<&'a ETag>) -> Self {
        let rest = entity.members().iter();
        Self::of(Source::Listed { entity, rest }, etag)
    }

    /// Of an entity that is read as that schema says.
    pub(crate) fn of_members(
        entity: &'a mut EntityMembers<'_, '_>,
        schema: &'static Schema,
        etag: Option<&'a ETag>,
    ) -> Self {
        let decrypted_by = schema.encrypts().then_some(schema);
        let entity = match entity {
            EntityMembers::Listed(entity) => {
                return Self {
                    decrypted_by,
                    ..Self::new(entity, etag)
                };
            }
            EntityMembers::Scanned(entity) => entity,
        };
        let entity_type = schema.type_property();
        let source = Source::Scanned {
            partition_key: entity.partition_key(),
            row_key: entity.row_key(),
            timestamp: entity.timestamp(),
            entity_type: entity_type.map(|property| (property, entity.text_ahead(property))),
            has_hidden: false,
            members: &mut **entity,
        };
        Self {
            decrypted_by,
            ..Self::of(source, etag)
        }
    }

    /// The type whose encrypted properties were decrypted before they are read here.
    pub(super) const fn decrypted_by(&self) -> Option<&'static Schema> {
        self.decrypted_by
    }

    const fn of(source: Source<'a>, etag: Option<&'a ETag>) -> Self {
        Self {
            source,
            etag,
            hidden: None,
            has_given_etag: Cell::new(false),
            decrypted_by: None,
            accepted: false,
            step_of: None,
        }
    }

    /// The stamp of the step that has written the entity.
    pub(super) fn step_of(self) -> Option<Box<str>> {
        self.step_of
    }

    /// The next property, keys and timestamp left out; `None` at the end.
    #[doc(hidden)]
    pub fn next_property(&mut self) -> Option<&RawProperty<'_>> {
        let property = Self::next_of(&mut self.source, self.hidden)?;
        if property.name() == STEP_OF
            && let Ok(Some(Value::String(stamp))) = property.to_value()
        {
            self.step_of = Some(stamp.into());
        }
        Some(property)
    }

    fn next_of<'s>(
        source: &'s mut Source<'_>,
        hidden: Option<&'static str>,
    ) -> Option<&'s RawProperty<'s>> {
        match source {
            Source::Listed { rest, .. } => rest.find(|property| {
                !property.is_system() && hidden.is_none_or(|name| property.name() != name)
            }),
            Source::Scanned {
                members,
                has_hidden,
                ..
            } => {
                while members.advance() {
                    let Some(hidden) = hidden else {
                        return Some(members.member());
                    };
                    if members.member().name() != hidden {
                        return Some(members.member());
                    }
                    // The list finds out that there are two.
                    if std::mem::replace(has_hidden, true) {
                        members.give_up();
                    }
                }
                None
            }
        }
    }

    /// How many properties are left, as far as that is known.
    pub(super) fn expected_properties(&self) -> usize {
        match &self.source {
            Source::Listed { rest, .. } => {
                let left = rest.as_slice().iter();
                left.filter(|property| !property.is_system()).count()
            }
            Source::Scanned { members, .. } => members.expected_properties(),
        }
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
        let entity = match &self.source {
            Source::Listed { entity, .. } => entity,
            Source::Scanned {
                members,
                entity_type,
                ..
            } => match entity_type {
                Some((known, text)) if *known == property => return Ok(*text),
                _ => {
                    members.give_up();
                    return Ok(None);
                }
            },
        };
        if entity.has_several(property) {
            return Err(EntityProblem::duplicate(property).into());
        }
        entity.text(property).map_err(|error| {
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
        let key = match (&self.source, part) {
            (Source::Listed { entity, .. }, _) => return key_text(entity, part),
            (Source::Scanned { partition_key, .. }, KeyKind::PartitionKey) => partition_key,
            (Source::Scanned { row_key, .. }, KeyKind::RowKey) => row_key,
        };
        key.ok_or_else(|| missing(part))
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
        let timestamp = match &self.source {
            Source::Listed { entity, .. } => entity.timestamp()?,
            Source::Scanned { timestamp, .. } => *timestamp,
        };
        Ok(timestamp.or_else(|| self.etag.and_then(ETag::timestamp)))
    }
}

/// The text of a key in an entity that is read.
pub(crate) fn key_of_members<'e>(
    entity: &'e EntityMembers<'_, '_>,
    part: KeyKind,
) -> Result<&'e str, EntityError> {
    let key = match (entity, part) {
        (EntityMembers::Listed(entity), _) => return key_text(entity, part),
        (EntityMembers::Scanned(entity), KeyKind::PartitionKey) => entity.partition_key(),
        (EntityMembers::Scanned(entity), KeyKind::RowKey) => entity.row_key(),
    };
    key.ok_or_else(|| missing(part))
}

fn missing(part: KeyKind) -> EntityError {
    EntityProblem::missing(part.property(), EdmType::String).into()
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
        None => Err(missing(part)),
    }
}

/// The value of a property of an answer. A field of Int64s keeps every digit of an integer without an annotation, which is a Double for
/// the service.
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
