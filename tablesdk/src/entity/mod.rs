//! Between structs and properties. Knows nothing of HTTP or of credentials.

mod access;
mod dispatch;
mod dynamic;
mod entity_type;
mod error;
mod field;
mod group;
mod json;
mod key;
mod prefix;
mod properties;
mod property;
mod reader;
mod schema;
mod stored;
mod variant;
mod writer;

pub use access::{
    DefaultField, ETagAccess, ETagField, FieldAccess, RestAccess, Slot, default_of, etag_field,
    field, rest_field, string, text_ref, with_field, with_from_value, with_to_value,
};
pub use dispatch::{By, VariantRows, VariantSchema};
pub use dynamic::{DynamicColumn, DynamicColumns, DynamicEntity, DynamicSelection};
pub use entity_type::{EntityType, upgrade};
pub use error::{EntityError, EntityProblem, ValueError};
pub use field::Field;
pub use group::TableProperties;
pub use json::{JsonField, json_field};
pub use key::{
    Desc, Escaped, IntoEntityKey, IntoKeyPart, Key, KeyAccess, KeyNumber, KeyOf, KeyPart, KeyPiece,
    KeyRange, KeyReader, KeyTemplate, KeyWriter, Ordinal, Partition, RowRange, Rows, Shard,
    entity_key, key_number, key_part,
};
pub use prefix::Prefix;
pub use properties::{Properties, PropertiesIntoIter, RestField};
pub use property::{Ordered, PropertyValue, Text};
pub use reader::PropertyReader;
pub use schema::{PropertySchema, Schema, SchemaPart};
pub use stored::Stored;
pub use variant::{
    EntityVariant, OtherVariant, VariantAccess, check_other, projected_variant, schema_of, variant,
};
pub use writer::PropertyWriter;

pub(crate) use key::end_of_prefix;
pub(crate) use stored::read_key;
pub(crate) use writer::{write_entity, write_entity_with, write_record, write_values};

use tablesdk_protocol::{ETag, EntityKey};

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
    note = "add `#[derive(TableEntity)]` to the struct"
)]
pub trait TableEntity: Sized + Send + 'static {
    /// A struct with one [`Column`](crate::query::Column) for each field, which filters and projections are written with.
    type Columns: Copy;

    /// The names and types of the properties.
    const SCHEMA: Schema;

    /// The columns of this entity.
    fn columns() -> Self::Columns;

    /// Builds a value from the properties that were read.
    ///
    /// # Errors
    ///
    /// When a property is missing, or is of another type than its field.
    fn read(reader: &mut PropertyReader<'_>) -> Result<Self, EntityError>;

    /// Notes in the value as which version it was written, where it has a field for that.
    #[doc(hidden)]
    fn written_as(&mut self, _etag: &ETag) {}

    /// The schema of what this very value is: of an enum that of its variant.
    #[doc(hidden)]
    fn schema_of_value(&self) -> &'static Schema {
        const { &Self::SCHEMA }
    }
}

/// A struct that is stored as an entity as a whole, so that it can be written. What derives [`TableEntity`] is one, but for a
/// projection.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use tablesdk::{TableClient, WritableEntity};
///
/// async fn store<E: WritableEntity + Sync>(table: &TableClient, entity: &E) -> Result<(), tablesdk::Error> {
///     table.upsert_replace(entity).await.map(drop)
/// }
/// store(&table, &Employee::new("Sales", "1", "Ada")).await?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written",
    label = "not an entity as a whole",
    note = "a struct marked `#[table(projection)]` is a part of an entity, and to write it would lose the rest: write the whole struct",
    note = "a struct that is no entity yet becomes one with `#[derive(TableEntity)]`"
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
