//! The column that a part of a key has instead of one: its value is in the key alone.

use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::wire::json::JsonEntity;

use super::opaque_column::incomparable;
use crate::entity::key::{KeyAccess, KeyTemplate};
use crate::entity::{ColumnScope, EntityError, VariantRows};

/// A part of the key of entity `E`, which no property holds: it can be selected, but not compared
/// with.
///
/// Ranges of rows are given by their keys: `.rows(Employee::rows().id(100..=199))`. To have a part
/// as a property, too, mark its field `#[table(store)]`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Rows");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{department}", row_key = "{employee:06}_{year:04}")]
/// struct Review {
///     department: String,
///     employee: u32,
///     year: u16,
///     rating: i32,
/// }
///
/// table.insert(&Review { department: "Sales".into(), employee: 223, year: 2024, rating: 4 }).await?;
/// let ratings = table.query::<Review>().partition("Sales").select(|r| (r.year, r.rating));
/// assert_eq!(ratings.collect().await?, [(2024, 4)]);
/// # Ok(())
/// # }
/// ```
pub struct KeyPartColumn<E, F> {
    scope: ColumnScope,
    template: KeyTemplate,
    field: &'static str,
    access: KeyAccess<F>,
    entity: PhantomData<fn() -> E>,
}

impl<E, F> KeyPartColumn<E, F> {
    #[doc(hidden)]
    pub const fn new(template: KeyTemplate, field: &'static str, access: KeyAccess<F>) -> Self {
        Self {
            scope: ColumnScope::ROOT,
            template,
            field,
            access,
            entity: PhantomData,
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn scope(mut self, scope: ColumnScope) -> Self {
        self.scope = scope;
        self
    }

    pub(super) const fn rows(&self) -> Option<&VariantRows> {
        self.scope.rows()
    }

    pub(super) fn names(self) -> Vec<String> {
        vec![self.template.part().property().to_owned()]
    }

    pub(super) fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        self.template.read_part(entity, self.field, self.access)
    }
}

/// Never implemented. The comparison methods exist so that the compiler can explain why a part of a
/// key cannot be compared.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a part of a key has no column to compare with",
    label = "its value is in the key alone",
    note = "give a range of rows, such as `.rows(Employee::rows().id(100..=199))`, or a partition; or mark the field `#[table(store)]`, which stores it as a property, too"
)]
#[expect(unnameable_types, reason = "only this crate implements it")]
pub trait ComparablePart {}

incomparable!(KeyPartColumn: ComparablePart);

impl<E, F> Clone for KeyPartColumn<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, F> Copy for KeyPartColumn<E, F> {}

impl<E, F> fmt::Debug for KeyPartColumn<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyPartColumn").field(&self.field).finish()
    }
}
