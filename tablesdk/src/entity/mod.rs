//! Between structs and properties. Knows nothing of HTTP or of credentials.

mod access;
mod error;
mod field;
mod key;
mod property;
mod reader;
mod schema;
mod stored;
mod writer;

pub use access::{FieldAccess, KeyAccess, Slot, entity_key, field, key_part};
pub use error::{EntityError, EntityProblem, ValueError};
pub use field::Field;
pub use key::{IntoEntityKey, Key, KeyOf, KeyPart, Partition};
pub use property::PropertyValue;
pub use reader::PropertyReader;
pub use schema::{PropertySchema, Schema};
pub use stored::Stored;
pub use writer::PropertyWriter;

pub(crate) use reader::read_column;
pub(crate) use writer::write_entity;

use tablesdk_protocol::EntityKey;

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

    /// Builds a value from the properties that were read.
    ///
    /// # Errors
    ///
    /// When a property is missing, or is of another type than its field.
    fn read(reader: &mut PropertyReader<'_>) -> Result<Self, EntityError>;
}
