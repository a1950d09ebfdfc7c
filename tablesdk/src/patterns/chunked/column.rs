//! The column of a value that is stored in several properties.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::wire::json::JsonEntity;

use crate::entity::flatten::TableProperties;
use crate::entity::{ColumnScope, EntityError, VariantRows};
use crate::query::select::sealed;
use crate::query::{column, incomparable};

/// A column of entity `E` whose value is [in chunks](crate::chunked::Chunked). It can be selected,
/// but not compared with, since no property has all of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Rows");
/// # table.create_table().await?;
/// use tablesdk::TableEntity;
/// use tablesdk::chunked::Chunked;
///
/// #[derive(TableEntity)]
/// struct Post {
///     #[table(partition_key)]
///     blog: String,
///     #[table(row_key)]
///     id: String,
///     #[table(flatten, prefix = "body")]
///     body: Option<Chunked<String>>,
/// }
///
/// table.insert(&Post { blog: "rust".into(), id: "1".into(), body: None }).await?;
/// let bodies = table.query::<Post>().partition("rust").select(|p| p.body.optional()).collect().await?;
/// assert_eq!(bodies, [None]);
/// # Ok(())
/// # }
/// ```
pub struct ChunkedColumn<E, F> {
    scope: ColumnScope,
    entity: PhantomData<fn() -> (E, F)>,
}

impl<E, F> ChunkedColumn<E, F> {
    pub(crate) const fn new(scope: ColumnScope) -> Self {
        Self {
            scope,
            entity: PhantomData,
        }
    }

    /// The name of the first property.
    pub fn name(self) -> Cow<'static, str> {
        self.scope.name("")
    }

    /// The column of a field that is an `Option`: it yields `None` where the value is absent, which
    /// is an error without this method.
    pub const fn optional(self) -> ChunkedColumn<E, Option<F>> {
        ChunkedColumn::new(self.scope)
    }

    pub(crate) const fn rows(&self) -> Option<&VariantRows> {
        self.scope.rows()
    }
}

impl<E, F: TableProperties> ChunkedColumn<E, F> {
    pub(crate) fn names(self) -> Vec<String> {
        let prefix = self.name();
        let properties = F::SCHEMA.properties().into_iter();
        properties
            .map(|property| format!("{prefix}{}", property.name()))
            .collect()
    }

    pub(crate) fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        let prefix = self.name();
        let mut slots = F::slots();
        for property in entity.properties() {
            if let Some(name) = property.name().strip_prefix(&*prefix) {
                F::fill(&mut slots, name, property)?;
            }
        }
        F::finish(slots, self.scope)
    }
}

column!(ChunkedColumn, TableProperties);

impl<E, F> sealed::Sealed for ChunkedColumn<E, F> {}

impl<E, F> Clone for ChunkedColumn<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, F> Copy for ChunkedColumn<E, F> {}

impl<E, F> fmt::Debug for ChunkedColumn<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChunkedColumn").field(&self.name()).finish()
    }
}

/// Never implemented. The comparison methods exist so that the compiler can explain why a column in
/// chunks cannot be compared.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a value in chunks cannot be compared",
    label = "stored in several properties",
    note = "no property has all of it: filter by another property, or store the value for the filter in one"
)]
#[expect(unnameable_types, reason = "only this crate implements it")]
pub trait ComparableChunks {}

incomparable!(ChunkedColumn: ComparableChunks);
