//! Typed keys: what a verb takes for a key. A bad value is kept, and reported when awaited.

mod access;
mod argument;
mod desc;
mod escaped;
mod part;
mod reserved;
mod rows;
mod shard;
mod template;

pub use access::{KeyAccess, entity_key, key_desc, key_escaped, key_number, key_part};
pub use argument::IntoKeyPart;
pub use desc::Desc;
pub use escaped::Escaped;
pub(crate) use escaped::{escape, unescaped};
pub use part::{KeyNumber, KeyPart};
pub(crate) use reserved::is_reserved;
pub use rows::{Given, KeyRange, PartsBefore, RowRange, Rows};
pub use shard::Shard;
pub use tablesdk_protocol::{EntityKey, KeyError, KeyKind, KeyProblem, PartitionKey, RowKey};
pub use template::{KeyPiece, KeyReader, KeyTemplate, KeyWriter};

use std::fmt;
use std::marker::PhantomData;

use super::{EntityError, TableEntity};
use crate::sealed::Seal;

/// The key of an entity of type `E`, as `E::key(…)` makes it. A bad value is reported when the verb
/// that got the key is awaited.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// let key = Employee::key("Sales", "1");
/// assert!(table.get(key.clone()).await?.is_some(), "it says what it is the key of");
/// assert!(table.delete(key).await?);
///
/// // A bad one is reported where it is used.
/// let error = table.get(Employee::key("Sales/Asia", "1")).await.unwrap_err();
/// assert!(format!("{error:?}").contains('/'));
/// # Ok(())
/// # }
/// ```
pub struct Key<E> {
    key: Result<EntityKey, EntityError>,
    entity: PhantomData<fn() -> E>,
}

impl<E> Key<E> {
    #[doc(hidden)]
    pub const fn new(key: Result<EntityKey, EntityError>) -> Self {
        Self {
            key,
            entity: PhantomData,
        }
    }
}

impl<E> Key<E> {
    /// The same key as that of another type, such as an enum that `E` is a variant of. Whether what
    /// is stored under it is of that type shows when it is read.
    ///
    /// ```
    /// # use tablesdk::key::Key;
    /// # use tablesdk::{DynamicEntity, TableEntity};
    /// # #[derive(TableEntity)]
    /// # #[table(entity_type = "Employee")]
    /// # struct Employee { #[table(partition_key)] department: String, #[table(row_key)] id: String }
    /// #[derive(TableEntity)]
    /// enum CompanyRow {
    ///     Employee(Employee),
    ///     #[table(other)]
    ///     Other(DynamicEntity),
    /// }
    ///
    /// let key: Key<CompanyRow> = Employee::key("Sales", "1").of();
    /// ```
    pub fn of<R>(self) -> Key<R> {
        Key {
            key: self.key,
            entity: PhantomData,
        }
    }
}

impl<E> Key<E> {
    /// The key, or what is wrong with it.
    pub(crate) fn checked(self) -> Result<EntityKey, EntityError> {
        self.key
    }
}

/// The two strings as they are stored.
impl<E, P: Into<String>, R: Into<String>> From<(P, R)> for Key<E> {
    fn from((partition_key, row_key): (P, R)) -> Self {
        Self::new(EntityKey::new(partition_key, row_key).map_err(Into::into))
    }
}

impl<E> From<EntityKey> for Key<E> {
    fn from(key: EntityKey) -> Self {
        Self::new(Ok(key))
    }
}

impl<E> From<&EntityKey> for Key<E> {
    fn from(key: &EntityKey) -> Self {
        Self::new(Ok(key.clone()))
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
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// let sales = Employee::partition("Sales");
/// assert_eq!(table.query::<Employee>().partition(sales.clone()).count().await?, 1);
/// table.batch(sales).delete(("Sales", "1")).await?;
/// # Ok(())
/// # }
/// ```
pub struct Partition<E> {
    key: Result<PartitionKey, EntityError>,
    entity: PhantomData<fn() -> E>,
}

impl<E> Partition<E> {
    #[doc(hidden)]
    pub fn new(key: Result<String, EntityError>) -> Self {
        Self {
            key: key.and_then(|text| Ok(PartitionKey::new(text)?)),
            entity: PhantomData,
        }
    }
}

impl<E> Partition<E> {
    /// The same partition as that of another type, such as an enum that `E` is a variant of.
    pub fn of<R>(self) -> Partition<R> {
        Partition {
            key: self.key,
            entity: PhantomData,
        }
    }
}

/// A partition key as it is stored.
impl<E> From<&str> for Partition<E> {
    fn from(text: &str) -> Self {
        Self::new(Ok(text.into()))
    }
}

/// A partition key as it is stored.
impl<E> From<String> for Partition<E> {
    fn from(text: String) -> Self {
        Self::new(Ok(text))
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

/// The name of an entity: a typed [`Key`], an [`EntityKey`], or the strings of partition key and
/// row key as they are stored.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::TableClient;
/// use tablesdk::key::{EntityKey, IntoEntityKey};
///
/// async fn dismiss(table: &TableClient, who: impl IntoEntityKey) -> Result<bool, tablesdk::Error> {
///     table.delete(who).await
/// }
/// assert!(dismiss(&table, Employee::key("Sales", "1")).await?);
/// assert!(!dismiss(&table, ("Sales", "1")).await?);
/// assert!(!dismiss(&table, EntityKey::new("Sales", "1")?).await?);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name an entity",
    label = "not a key",
    note = "give a typed key such as `Employee::key(\"Sales\", \"1\")`, or two strings `(\"Sales\", \"1\")`"
)]
pub trait IntoEntityKey {
    #[doc(hidden)]
    const SEAL: Seal;

    /// See [`Facts`](crate::entity::attached::Facts).
    #[doc(hidden)]
    const IS_STANDALONE: bool = true;

    /// The key, or what is wrong with it.
    ///
    /// # Errors
    ///
    /// When a text breaks a rule of the service for keys.
    fn into_entity_key(self) -> Result<EntityKey, EntityError>;
}

macro_rules! entity_key {
    ($([$($param:tt)*] $type:ty, $self:ident => $key:expr;)+) => {
        $(impl<$($param)*> IntoEntityKey for $type {
            const SEAL: Seal = Seal;

            fn into_entity_key($self) -> Result<EntityKey, EntityError> {
                $key
            }
        })+
    };
}

impl<E: TableEntity> IntoEntityKey for Key<E> {
    const SEAL: Seal = Seal;
    const IS_STANDALONE: bool = E::FACTS.is_standalone();

    fn into_entity_key(self) -> Result<EntityKey, EntityError> {
        self.key
    }
}

/// Refuses at compile time to delete an entity with indexes by its key, and an entry of one.
///
/// The compiler shows the call of the function that evaluates it, so that has to be the one that
/// the caller's program calls.
pub(crate) const fn check_standalone_key<K: IntoEntityKey>() {
    assert!(
        K::IS_STANDALONE,
        "a key does not say which entries of indexes the entity has: get the entity, and use `delete_stored`"
    );
}

entity_key! {
    [] EntityKey, self => Ok(self);
    [] &EntityKey, self => Ok(self.clone());
    [P: Into<String>, R: Into<String>] (P, R), self => Ok(EntityKey::new(self.0, self.1)?);
}

/// The name of the partition of a batch: [`Partition`], or the partition key as it is stored.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// // The same partition, as a typed one and as a text.
/// table.batch(Employee::partition("Sales")).delete(("Sales", "1")).await?;
/// table.batch("Sales").insert(&Employee::new("Sales", "1", "Ada")).await?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a partition",
    label = "not a partition key",
    note = "give a typed partition such as `Employee::partition(\"Sales\")`, or a string `\"Sales\"`"
)]
pub trait IntoPartitionKey {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The partition key, or what is wrong with it.
    ///
    /// # Errors
    ///
    /// When the text breaks a rule of the service for keys.
    fn into_partition_key(self) -> Result<PartitionKey, EntityError>;
}

macro_rules! partition_key {
    ($([$($param:ident)?] $type:ty, $self:ident => $key:expr;)+) => {
        $(impl$(<$param>)? IntoPartitionKey for $type {
            const SEAL: Seal = Seal;

            fn into_partition_key($self) -> Result<PartitionKey, EntityError> {
                $key
            }
        })+
    };
}

partition_key! {
    [E] Partition<E>, self => self.key;
    [] PartitionKey, self => Ok(self);
    [] &str, self => Ok(PartitionKey::new(self)?);
    [] String, self => Ok(PartitionKey::new(self)?);
    [] &String, self => Ok(PartitionKey::new(self)?);
}

/// A partition that may contain entities of type `E`: a typed one only of its own type, a string or
/// an untyped one of any.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::TableClient;
/// use tablesdk::key::PartitionOf;
///
/// async fn count(table: &TableClient, department: impl PartitionOf<Employee>) -> Result<usize, tablesdk::Error> {
///     table.query::<Employee>().partition(department).count().await
/// }
/// assert_eq!(count(&table, "Sales").await?, 1);
/// assert_eq!(count(&table, Employee::partition("Sales")).await?, 1);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a partition of `{E}`",
    label = "not a partition of that entity",
    note = "the partition of a variant becomes a partition of its enum with `of`, as in `Employee::partition(\"Sales\").of()`",
    note = "a string is a partition key as it is stored"
)]
pub trait PartitionOf<E>: IntoPartitionKey {
    #[doc(hidden)]
    const SEAL_OF_ENTITY: Seal;
}

impl<E> PartitionOf<E> for Partition<E> {
    const SEAL_OF_ENTITY: Seal = Seal;
}

macro_rules! partition_of {
    ($($type:ty),+) => {
        $(impl<E> PartitionOf<E> for $type {
            const SEAL_OF_ENTITY: Seal = Seal;
        })+
    };
}

partition_of!(PartitionKey, &str, String, &String);

/// A key that may name an entity of type `E`: an untyped one any, a typed one only its own.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::key::KeyOf;
/// use tablesdk::{Stored, TableClient};
///
/// async fn find(
///     table: &TableClient,
///     key: impl KeyOf<Employee>,
/// ) -> Result<Option<Stored<Employee>>, tablesdk::Error> {
///     table.get(key).await
/// }
/// let ada = find(&table, Employee::key("Sales", "1")).await?.expect("she works here");
/// let again = find(&table, ada.key()).await?.expect("she works here");
/// assert_eq!(again, find(&table, ("Sales", "1")).await?.expect("she works here"));
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of `{E}`",
    label = "not a key of that entity",
    note = "the key of a variant becomes a key of its enum with `of`, as in `Employee::key(\"Sales\", \"1\").of()`"
)]
pub trait KeyOf<E>: IntoEntityKey {
    #[doc(hidden)]
    const SEAL_OF_ENTITY: Seal;
}

impl<E: TableEntity> KeyOf<E> for Key<E> {
    const SEAL_OF_ENTITY: Seal = Seal;
}

impl<E> KeyOf<E> for EntityKey {
    const SEAL_OF_ENTITY: Seal = Seal;
}

impl<E> KeyOf<E> for &EntityKey {
    const SEAL_OF_ENTITY: Seal = Seal;
}

impl<E, P: Into<String>, R: Into<String>> KeyOf<E> for (P, R) {
    const SEAL_OF_ENTITY: Seal = Seal;
}
