//! Typed keys: what a key field may be, and what a verb takes for a key. A bad value is kept, and reported when awaited.

use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::{EntityKey, KeyError, PartitionKey, RowKey};

/// The type of a key field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a type of key",
    note = "a key is a `String`, or derives `tablesdk::PropertyValue`: a newtype of one, or an enum that keeps every text"
)]
pub trait KeyPart: Sized {
    /// The text of the key.
    fn to_key(&self) -> String;

    /// Reads the text of a key back.
    ///
    /// # Errors
    ///
    /// Why the text is no key of this type.
    fn from_key(text: &str) -> Result<Self, String>;
}

impl KeyPart for String {
    fn to_key(&self) -> String {
        self.clone()
    }

    fn from_key(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

/// The key of an entity of type `E`, as `E::key(…)` makes it. A bad value is reported when the verb that got the key is
/// awaited.
pub struct Key<E> {
    key: Result<EntityKey, KeyError>,
    entity: PhantomData<fn() -> E>,
}

impl<E> Key<E> {
    #[doc(hidden)]
    pub fn from_texts(partition_key: String, row_key: String) -> Self {
        Self {
            key: EntityKey::new(partition_key, row_key),
            entity: PhantomData,
        }
    }
}

impl<E> Clone for Key<E> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            entity: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Key<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Ok(key) => fmt::Debug::fmt(key, f),
            Err(error) => fmt::Debug::fmt(error, f),
        }
    }
}

/// The partition of entities of type `E`, as `E::partition(…)` makes it.
pub struct Partition<E> {
    key: Result<PartitionKey, KeyError>,
    entity: PhantomData<fn() -> E>,
}

impl<E> Partition<E> {
    pub(crate) fn into_partition_key(self) -> Result<PartitionKey, KeyError> {
        self.key
    }
}

/// A partition key as it is stored.
impl<E> From<&str> for Partition<E> {
    fn from(text: &str) -> Self {
        Self {
            key: PartitionKey::new(text),
            entity: PhantomData,
        }
    }
}

/// A partition key as it is stored.
impl<E> From<String> for Partition<E> {
    fn from(text: String) -> Self {
        Self {
            key: PartitionKey::new(text),
            entity: PhantomData,
        }
    }
}

impl<E> Clone for Partition<E> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            entity: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Partition<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Ok(key) => fmt::Debug::fmt(key, f),
            Err(error) => fmt::Debug::fmt(error, f),
        }
    }
}

/// What names an entity: a typed [`Key`], an [`EntityKey`], or the texts of partition key and row key as they are stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name an entity",
    label = "not a key",
    note = "give a typed key such as `Employee::key(\"Sales\", \"1\")`, or the two texts `(\"Sales\", \"1\")`"
)]
pub trait IntoEntityKey {
    /// The key, or what is wrong with it.
    ///
    /// # Errors
    ///
    /// When a text breaks a rule of the service for keys.
    fn into_entity_key(self) -> Result<EntityKey, KeyError>;
}

impl<E> IntoEntityKey for Key<E> {
    fn into_entity_key(self) -> Result<EntityKey, KeyError> {
        self.key
    }
}

impl IntoEntityKey for EntityKey {
    fn into_entity_key(self) -> Result<EntityKey, KeyError> {
        Ok(self)
    }
}

impl IntoEntityKey for &EntityKey {
    fn into_entity_key(self) -> Result<EntityKey, KeyError> {
        Ok(self.clone())
    }
}

impl<P: Into<String>, R: Into<String>> IntoEntityKey for (P, R) {
    fn into_entity_key(self) -> Result<EntityKey, KeyError> {
        let (partition_key, row_key) = self;
        Ok(EntityKey::from_parts(
            PartitionKey::new(partition_key)?,
            RowKey::new(row_key)?,
        ))
    }
}

/// A key that may name an entity of type `E`: an untyped one any, a typed one only its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of `{E}`",
    label = "not a key of that entity"
)]
pub trait KeyOf<E>: IntoEntityKey {}

impl<E> KeyOf<E> for Key<E> {}
impl<E> KeyOf<E> for EntityKey {}
impl<E> KeyOf<E> for &EntityKey {}
impl<E, P: Into<String>, R: Into<String>> KeyOf<E> for (P, R) {}
