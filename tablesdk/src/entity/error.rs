//! Errors of the conversion between a struct and its entity: the property, the expected and the
//! found.

use std::fmt::{self, Display};

use tablesdk_protocol::limits::{ENTITY_BYTES_MAX, PROPERTIES_MAX};
use tablesdk_protocol::wire::json::PropertyError;
use tablesdk_protocol::{EdmType, KeyError, KeyKind};

use crate::value_error::{ValueError, shortened};

/// A struct that cannot be written as an entity, or an entity that cannot be read as the struct.
///
/// ```
/// # use tablesdk::{DynamicEntity, TableEntity};
/// # #[derive(Clone, Debug, TableEntity)]
/// # struct Person { #[table(partition_key)] country: String, #[table(row_key)] id: String, age: i32 }
/// use tablesdk::entity::EntityProblem;
///
/// let mut row = DynamicEntity::new("UK", "1");
/// row.properties_mut().set("age", "thirty");
/// let error = row.to_entity::<Person>().unwrap_err();
/// println!("{error}");
/// assert!(matches!(error.problem(), EntityProblem::Value { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct EntityError(Box<EntityProblem>);

impl EntityError {
    /// The reason of the error.
    pub const fn problem(&self) -> &EntityProblem {
        &self.0
    }
}

impl<P: Into<EntityProblem>> From<P> for EntityError {
    fn from(problem: P) -> Self {
        Self(Box::new(problem.into()))
    }
}

/// The reason why a struct cannot be written as an entity, or an entity cannot be read as the
/// struct.
///
/// ```
/// # use tablesdk::{DynamicEntity, TableEntity};
/// # #[derive(Clone, Debug, TableEntity)]
/// # struct Person { #[table(partition_key)] country: String, #[table(row_key)] id: String, age: i32 }
/// use tablesdk::EdmType;
/// use tablesdk::entity::EntityProblem;
///
/// let error = DynamicEntity::new("UK", "1").to_entity::<Person>().unwrap_err();
/// let EntityProblem::MissingProperty { property, expected } = error.problem() else {
///     panic!("it has no age");
/// };
/// assert_eq!((property.as_str(), *expected), ("age", EdmType::Int32));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntityProblem {
    /// The chunks of a value are not those of one write. See [`Chunked`](crate::chunked::Chunked).
    #[error("property {property:?}: its chunks cannot be joined: {problem}")]
    Chunks {
        /// The name of the property with the first chunk.
        property: String,
        /// The reason why the chunks cannot be joined.
        problem: String,
    },
    /// A copy is in another partition than its source.
    #[error(
        "it is in the partition {partition:?}, and one transaction writes one partition: see the guide `outbox`"
    )]
    CopyElsewhere {
        /// The partition key of the copy.
        partition: String,
    },
    /// A copy of the entity breaks a rule.
    #[error("its copy {copy}: {problem}")]
    CopyRefused {
        /// The name of the type of the copy.
        copy: &'static str,
        /// The rule that the copy breaks.
        problem: Box<Self>,
    },
    /// Properties by name, in which an encrypted property was decrypted: those of a
    /// [`DynamicEntity`](crate::DynamicEntity) that a closure of `resolve` got, or that is a
    /// variant, and of a field marked `rest`.
    #[error(
        "property {property:?} was encrypted where it was read, and would be stored in plain text: write it as its own type, or remove it"
    )]
    Decrypted {
        /// The name of the property.
        property: String,
    },
    /// Two properties of one name, which is what no service sends.
    #[error("property {property:?} came twice")]
    DuplicateProperty {
        /// The name of the property.
        property: String,
    },
    /// An encrypted property cannot be encrypted or decrypted. The reason contains no part of its
    /// value.
    #[error("property {property:?}: {reason}")]
    Encryption {
        /// The name of the property.
        property: String,
        /// Why not.
        reason: String,
    },
    /// The entry that the entity has in an index breaks a rule.
    #[error("its entry in the index {index}: {problem}")]
    Entry {
        /// The name of the type of the entries.
        index: &'static str,
        /// The rule that the entry breaks.
        problem: Box<Self>,
    },
    /// The entity exceeds 1 MiB as the service counts it.
    #[error(
        "the entity takes {bytes} bytes, more than the {ENTITY_BYTES_MAX} that the service stores; a struct marked `wide` takes more, and `Objects` puts large values into an object store"
    )]
    EntityTooLarge {
        /// The size in bytes, by the formula of the service.
        bytes: usize,
    },
    /// A key breaks a rule of the service.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key field changed since the entity was read: under the new key it would be another entity.
    #[error(
        "the {part} changed from {stored:?} to {value:?} since the entity was read; insert it under its new key and delete the old one"
    )]
    KeyChanged {
        /// Which part of the key.
        part: KeyKind,
        /// The key under which the entity was read.
        stored: String,
        /// The key that the value has now.
        value: String,
    },
    /// A key came back that the fields it is made of cannot hold.
    #[error("the {part} {text:?} cannot be read as {template:?}: {reason}")]
    KeyUnreadable {
        /// Which part of the key.
        part: KeyKind,
        /// The text that came back.
        text: String,
        /// How the key is made; a single field is `{field}`.
        template: &'static str,
        /// Why not.
        reason: String,
    },
    /// A key cannot be made of the fields.
    #[error("the {part} cannot be made as {template:?}: `{field}`: {error}")]
    KeyUnwritable {
        /// Which part of the key.
        part: KeyKind,
        /// How the key is made; a single field is `{field}`.
        template: &'static str,
        /// The field.
        field: &'static str,
        /// The error of the value.
        error: ValueError,
    },
    /// A sibling of a wide entity does not exist, though its head names it.
    #[error("part {part} of {parts} of the version {version} of the wide entity is missing")]
    MissingPart {
        /// The number of the part; the head is part 1.
        part: usize,
        /// How many parts the head names.
        parts: usize,
        /// The version.
        version: String,
    },
    /// The answer has no such property, and its field is not an `Option`.
    #[error(
        "property {property:?} is missing, expected {expected}; make its field an Option if it may be absent, or give it a default"
    )]
    MissingProperty {
        /// The name of the property.
        property: String,
        /// The type of its field.
        expected: EdmType,
    },
    /// The response contains no version of the entity.
    #[error("the answer has no ETag for the entity")]
    NoETag,
    /// The value in the answer cannot be read.
    #[error("{error}{}", Expected(*wanted))]
    Payload {
        /// The type of the field, where there is one.
        wanted: Option<EdmType>,
        /// The error of the value.
        error: PropertyError,
    },
    /// More than 252 properties.
    #[error(
        "{count} properties are more than the {PROPERTIES_MAX} that an entity may have; a struct marked `wide` may have more"
    )]
    TooManyProperties {
        /// How many.
        count: usize,
    },
    /// More properties, or more bytes, than a wide entity can have.
    #[error("the properties fill {parts} entities, more than the {max} of a wide entity")]
    TooWide {
        /// How many entities of the service.
        parts: usize,
        /// How many there may be.
        max: usize,
    },
    /// No variant of the enum has rows with such a key, and none takes all others.
    #[error(
        "the row key {row_key:?} begins like those of no variant: expected one that begins with {}",
        Alternatives(expected)
    )]
    UnknownRowKey {
        /// The row key.
        row_key: String,
        /// With what the row keys of the variants begin.
        expected: Vec<String>,
    },
    /// The entity is of an older version, of another variant, or of another type: it would be read
    /// without what a patch sets.
    #[error(
        "{}, and the patch is for {}: it would be lost; use `modify`, which writes the whole entity",
        FoundType { property, found: found.as_deref() },
        Alternatives(expected)
    )]
    PatchOfOtherType {
        /// The property that holds the entity type.
        property: String,
        /// The names of the type whose properties are set.
        expected: Vec<String>,
        /// The name that was found; `None` where the entity has no such property.
        found: Option<String>,
    },
    /// A part of an entity, which cannot be written.
    #[error("a projection is a part of an entity, and to write it would lose the rest")]
    Unwritable,
    /// The entity that was written could not be read back.
    #[error("the entity cannot be read back: {reason}")]
    Unreadable {
        /// Why not.
        reason: String,
    },
    /// The entity is of an older version, from which the struct cannot be made.
    #[error("the entity is of an older version, which cannot become `{entity}`: {reason}")]
    Upgrade {
        /// The name of the struct.
        entity: String,
        /// Why not, in the words of its `TryFrom`.
        reason: String,
    },
    /// The value cannot be stored, or cannot be read into its field.
    #[error("property {property:?}: {error}")]
    Value {
        /// The name of the property.
        property: String,
        /// The error of the value.
        error: ValueError,
    },
    /// The entity has another type, or none.
    #[error("{}, expected {}", FoundType { property, found: found.as_deref() }, Alternatives(expected))]
    WrongEntityType {
        /// The property that holds the entity type.
        property: String,
        /// The names that were wanted.
        expected: Vec<String>,
        /// The name that was found; `None` where the entity has no such property.
        found: Option<String>,
    },
}

impl EntityProblem {
    /// Returns true if the error is about the key or the version, which every entity of the service
    /// has, whatever its type.
    pub(crate) fn is_of_response(&self) -> bool {
        let property = match self {
            Self::NoETag => return true,
            Self::DuplicateProperty { property } | Self::MissingProperty { property, .. } => {
                property.as_str()
            }
            Self::Payload { error, .. } => error.name(),
            _ => return false,
        };
        ["PartitionKey", "RowKey", "Timestamp"].contains(&property)
    }

    /// The error of the entry that an entity has in an index.
    pub(crate) fn of_entry(index: &'static str, error: EntityError) -> Self {
        Self::Entry {
            index,
            problem: error.0,
        }
    }

    /// The error of a copy of an entity.
    pub(crate) fn of_copy(copy: &'static str, error: EntityError) -> Self {
        Self::CopyRefused {
            copy,
            problem: error.0,
        }
    }

    pub(crate) fn duplicate(property: &str) -> Self {
        Self::DuplicateProperty {
            property: property.to_owned(),
        }
    }

    pub(crate) fn missing(property: &str, expected: EdmType) -> Self {
        Self::MissingProperty {
            property: property.to_owned(),
            expected,
        }
    }

    pub(crate) fn value(property: &str, error: ValueError) -> Self {
        Self::Value {
            property: property.to_owned(),
            error,
        }
    }
}

impl From<PropertyError> for EntityProblem {
    fn from(error: PropertyError) -> Self {
        Self::Payload {
            wanted: None,
            error,
        }
    }
}

/// Begins a message with the type of the entity.
struct FoundType<'a> {
    property: &'a str,
    found: Option<&'a str>,
}

impl Display for FoundType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let property = self.property;
        match self.found {
            Some(found) => write!(
                f,
                "the entity is a {:?} by its property {property:?}",
                shortened(found)
            ),
            None => write!(
                f,
                "the entity tells no type, as it has no property {property:?}"
            ),
        }
    }
}

/// Texts in quotes, any of which would do.
struct Alternatives<'a>(&'a [String]);

impl Display for Alternatives<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, text) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            write!(f, "{text:?}")?;
        }
        Ok(())
    }
}

/// Ends a message with the type of the field.
struct Expected(Option<EdmType>);

impl Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(edm_type) => write!(f, "; expected {edm_type}"),
            None => Ok(()),
        }
    }
}
