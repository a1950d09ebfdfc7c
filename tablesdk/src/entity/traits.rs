//! The two traits of entities: to read them, and to write them.

use tablesdk_protocol::{ETag, EntityKey};

use super::attached::{Attach, Extensions, Facts, Memory, Remembered};
use super::{EntityError, PropertyReader, PropertyWriter, Schema};

/// A struct that is stored as an entity. Derive it: `#[derive(TableEntity)]`.
///
/// ```
/// use tablesdk::TableEntity;
///
/// #[derive(Debug, Clone, PartialEq, TableEntity)]
/// #[table(rename_all = "PascalCase")]
/// pub struct Employee {
///     #[table(partition_key)]
///     pub department: String,
///     #[table(row_key)]
///     pub id: String,
///     pub first_name: String,
///     pub age: i32,
///     pub email: Option<String>,
/// }
///
/// assert_eq!(Employee::SCHEMA.properties()[0].name(), "FirstName");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    label = "not an entity",
    note = "add `#[derive(TableEntity)]` to the struct",
    note = "a struct marked `#[table(wide)]` is written and read by the verbs of `table.wide()`"
)]
pub trait TableEntity: Sized + Send + 'static {
    /// A struct with one [`Column`](crate::query::Column) for each field, which filters and
    /// projections are written with.
    type Columns: Copy;

    /// The names and types of the properties.
    const SCHEMA: Schema;

    /// The facts about the type that are known at compile time.
    #[doc(hidden)]
    const FACTS: Facts = Facts::PLAIN;

    /// True if a value is any entity, exactly as it is stored, for exports and copies of whole
    /// tables. Queries then also return entities that the client stores for its own purposes, and a
    /// write keeps the step of an outbox that has written the entity.
    #[doc(hidden)]
    const IS_VERBATIM: bool = false;

    /// The columns of this entity.
    fn columns() -> Self::Columns;

    /// Builds a value from the properties that were read.
    ///
    /// # Errors
    ///
    /// When a property is missing, or is of another type than its field.
    fn read(reader: &mut PropertyReader<'_, '_>) -> Result<Self, EntityError>;

    /// Notes in the value as which version it was written, where it has a field for that.
    #[doc(hidden)]
    fn written_as(&mut self, _etag: &ETag) {}

    /// Adds what goes along with a write of this value.
    #[doc(hidden)]
    fn attach(&self, _attach: &mut Attach<'_>) -> Result<(), EntityError> {
        Ok(())
    }

    /// Notes what has to be known of the stored value when it is written again.
    #[doc(hidden)]
    fn remember(&self, _memory: &mut Memory, _how: Remembered) {}

    /// Adds the patterns that take part in all reads and writes of the type.
    #[doc(hidden)]
    fn extensions(_extensions: &mut Extensions<'_>) {}

    /// The schema of what this very value is: of an enum that of its variant.
    #[doc(hidden)]
    fn schema_of_value(&self) -> &'static Schema {
        const { &Self::SCHEMA }
    }
}

/// A struct that is stored as an entity as a whole, so that it can be written. What derives
/// [`TableEntity`] is one, but for a projection.
///
/// A write that does not know what was stored, such as an upsert, needs a
/// [`Standalone`](crate::entity::Standalone) entity: one without
/// [indexes](derive@crate::TableEntity#index).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use tablesdk::{TableClient, WritableEntity};
///
/// async fn store<E: WritableEntity + Sync>(table: &TableClient, entity: &E) -> Result<(), tablesdk::Error> {
///     table.insert(entity).await.map(drop)
/// }
/// store(&table, &Employee::new("Sales", "1", "Ada")).await?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written",
    label = "not an entity as a whole",
    note = "a struct marked `#[table(projection)]` is a part of an entity, and to write it would lose the rest: write the whole struct",
    note = "an entry of an index is written together with its entity: get the entity with `.follow()`, and write it",
    note = "a struct that is no entity yet becomes one with `#[derive(TableEntity)]`",
    note = "a struct marked `#[table(wide)]` is written and read by the verbs of `table.wide()`"
)]
pub trait WritableEntity: TableEntity {
    /// The key under which this value is stored.
    ///
    /// # Errors
    ///
    /// When a key field holds a text that the service takes for no key.
    fn entity_key(&self) -> Result<EntityKey, EntityError>;

    /// Writes every property but the keys.
    ///
    /// # Errors
    ///
    /// When a value exceeds what the service stores.
    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError>;
}
