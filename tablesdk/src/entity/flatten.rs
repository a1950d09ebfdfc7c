//! Structs that are flattened into entities: a group of properties without a key.

use tablesdk_protocol::wire::json::RawProperty;

use super::column_scope::ColumnScope;
use super::{EntityError, PropertyWriter, Schema};

/// A struct that is stored as some properties of an entity. Derive it:
/// `#[derive(TableProperties)]`.
///
/// Its fields take the attributes of those of an entity, but for keys and for what is about the
/// entity as a whole. An `Option` of it is `None` when none of its properties is there.
///
/// ```
/// use tablesdk::{TableEntity, TableProperties};
///
/// #[derive(Debug, Clone, PartialEq, TableProperties)]
/// pub struct Address {
///     pub city: String,
///     pub street: Option<String>,
/// }
///
/// #[derive(Debug, Clone, PartialEq, TableEntity)]
/// pub struct Person {
///     #[table(partition_key)]
///     pub country: String,
///     #[table(row_key)]
///     pub id: String,
///     #[table(flatten, prefix = "home_")]
///     pub home: Address,
///     #[table(flatten, prefix = "work_")]
///     pub work: Option<Address>,
/// }
///
/// let names: Vec<_> = Person::SCHEMA.properties().iter().map(|p| p.name()).collect();
/// assert_eq!(names, ["home_city", "home_street", "work_city", "work_street"]);
/// assert_eq!(Person::columns().work.city.eq("Oslo").to_string(), "work_city eq 'Oslo'");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be flattened into an entity",
    label = "not a group of properties",
    note = "add `#[derive(tablesdk::TableProperties)]` to the struct"
)]
pub trait TableProperties: Sized + Send + 'static {
    /// A struct with one [`Column`](crate::query::Column) of the entity `E` for each field.
    type Columns<E>: Copy;

    /// The slots that collect the values while the properties are read.
    #[doc(hidden)]
    // A property that no field has is offered to each flattened struct, without the prefix, and is
    // collected in slots of that struct. So a flattened field is read in the one pass over the JSON
    // too. Names with a prefix are built only for columns and in the writer, which keeps one buffer
    // for them.
    type Slots;

    /// The names and types of the properties, without a prefix.
    const SCHEMA: Schema;

    /// The columns of an entity that has this struct under that prefix.
    #[doc(hidden)]
    fn columns<E>(scope: ColumnScope) -> Self::Columns<E>;

    /// Writes every property.
    ///
    /// # Errors
    ///
    /// When a value exceeds what the service stores.
    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError>;

    #[doc(hidden)]
    fn slots() -> Self::Slots;

    /// Takes the property, if it has one of that name, which is that of the property without the
    /// prefix.
    #[doc(hidden)]
    fn fill(
        slots: &mut Self::Slots,
        name: &str,
        property: &RawProperty<'_>,
    ) -> Result<bool, EntityError>;

    #[doc(hidden)]
    fn finish(slots: Self::Slots, scope: ColumnScope) -> Result<Self, EntityError>;
}

impl<T: TableProperties> TableProperties for Option<T> {
    type Columns<E> = T::Columns<E>;
    /// True if any property was there, and the slots of `T`.
    type Slots = (bool, T::Slots);

    const SCHEMA: Schema = T::SCHEMA;

    fn columns<E>(scope: ColumnScope) -> Self::Columns<E> {
        T::columns(scope)
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        match self {
            Some(group) => group.write(writer),
            None => Ok(()),
        }
    }

    fn slots() -> Self::Slots {
        (false, T::slots())
    }

    fn fill(
        (any, slots): &mut Self::Slots,
        name: &str,
        property: &RawProperty<'_>,
    ) -> Result<bool, EntityError> {
        let known = T::fill(slots, name, property)?;
        *any |= known && !property.is_null();
        Ok(known)
    }

    fn finish((any, slots): Self::Slots, scope: ColumnScope) -> Result<Self, EntityError> {
        any.then(|| T::finish(slots, scope)).transpose()
    }
}
