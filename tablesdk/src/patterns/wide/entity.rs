//! Entities with more properties, or more bytes, than the service stores in one. Knows nothing of
//! how they are divided.

use tablesdk_protocol::limits::PROPERTIES_MAX;
use tablesdk_protocol::{ETag, EntityKey};

use crate::entity::entity_type::refuse;
use crate::entity::{
    DynamicEntity, EntityError, Properties, PropertyReader, PropertyWriter, Schema, TableEntity,
    WritableEntity,
};

/// The property of the head, and of each sibling, that names the version of the entity.
pub(crate) const VERSION: &str = "TablesdkVersion";
/// The property of the head that has the first names of its siblings.
pub(crate) const PARTS: &str = "TablesdkParts";
/// The siblings of an entity: with them, a head and an intent, a transaction has all 100 changes.
pub(crate) const SIBLINGS_MAX: usize = 98;
/// The properties of a wide entity: a sibling has one property of its own, and the head two.
pub(crate) const WIDE_PROPERTIES_MAX: usize =
    PROPERTIES_MAX - 2 + SIBLINGS_MAX * (PROPERTIES_MAX - 1);

/// A struct or map that [`TableClient::wide`](crate::TableClient::wide) stores as several entities
/// of one partition. Derive [`TableEntity`](derive@crate::TableEntity#wide), and mark the struct
/// `#[table(wide)]`.
///
/// A wide struct is no [`TableEntity`](crate::TableEntity): the verbs of a table, which write one
/// entity, do not take it.
///
/// ```
/// use tablesdk::wide::WideEntity;
/// use tablesdk::{DynamicEntity, TableEntity};
///
/// #[derive(TableEntity)]
/// #[table(wide, partition_key = "{author}", row_key = "{title}")]
/// struct Report {
///     author: String,
///     title: String,
///     summary: String,
/// }
///
/// fn names<E: WideEntity>() -> usize {
///     E::SCHEMA.properties().len()
/// }
/// assert_eq!(names::<Report>(), 1);
/// assert_eq!(names::<DynamicEntity>(), 0, "a map has any properties");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a wide entity",
    label = "not a wide entity",
    note = "mark the struct `#[table(wide)]`, or use a `DynamicEntity`"
)]
pub trait WideEntity: Sized + Send + 'static {
    /// A struct with one [`Column`](crate::query::Column) for each field, which projections are
    /// written with.
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
    fn read(reader: &mut PropertyReader<'_, '_>) -> Result<Self, EntityError>;

    /// Notes in the value as which version it was written, where it has a field for that.
    #[doc(hidden)]
    fn written_as(&mut self, _etag: &ETag) {}

    /// The key under which this value is stored.
    ///
    /// # Errors
    ///
    /// When a key field holds a string that the service does not accept as a key.
    fn entity_key(&self) -> Result<EntityKey, EntityError>;

    /// Writes every property but the keys.
    ///
    /// # Errors
    ///
    /// When a value exceeds what the service stores.
    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError>;
}

impl WideEntity for DynamicEntity {
    type Columns = <Self as TableEntity>::Columns;

    const SCHEMA: Schema = <Self as TableEntity>::SCHEMA;

    fn columns() -> Self::Columns {
        <Self as TableEntity>::columns()
    }

    fn read(reader: &mut PropertyReader<'_, '_>) -> Result<Self, EntityError> {
        Self::read_with(reader, Properties::append)
    }

    fn written_as(&mut self, etag: &ETag) {
        <Self as TableEntity>::written_as(self, etag);
    }

    fn entity_key(&self) -> Result<EntityKey, EntityError> {
        <Self as WritableEntity>::entity_key(self)
    }

    fn write(&self, writer: &mut PropertyWriter<'_>) -> Result<(), EntityError> {
        <Self as WritableEntity>::write(self, writer)
    }
}

impl Schema {
    /// As `check`, of a wide entity.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check_wide(&self) {
        if self.encrypts() {
            refuse(&[
                "a wide struct has no encrypted properties: remove the `encrypt`, or the `wide`",
            ]);
        }
        self.check_names::<0x8000>(
            WIDE_PROPERTIES_MAX,
            "the entity has more than 24848 properties, including those of flattened structs and the slots of series: split it",
            &[],
        );
    }
}
