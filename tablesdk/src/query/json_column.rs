//! The column of a field that is stored as JSON.

use std::borrow::Cow;
use std::fmt;

use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::JsonEntity;

use super::Column;
use crate::entity::json::json_field;
use crate::entity::{ColumnScope, EntityError, JsonField, VariantRows};
use crate::filter::Filter;

/// A column of entity `E` whose field is stored as JSON. It can be selected, but not compared with, since the service only sees a
/// string.
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
/// struct Post {
///     #[table(partition_key)]
///     blog: String,
///     #[table(row_key)]
///     id: String,
///     #[table(json)]
///     tags: Vec<String>,
/// }
///
/// table.insert(&Post { blog: "rust".into(), id: "1".into(), tags: vec!["azure".into()] }).await?;
/// let tags = table.query::<Post>().partition("rust").select(|p| p.tags).collect().await?;
/// assert_eq!(tags, [["azure"]]);
/// # Ok(())
/// # }
/// ```
pub struct JsonColumn<E, F>(Column<E, F>);

impl<E, F> JsonColumn<E, F> {
    #[doc(hidden)]
    pub const fn new(name: &'static str) -> Self {
        Self(Column::new(name))
    }

    /// The name under which the column is stored.
    pub fn name(self) -> Cow<'static, str> {
        self.0.name()
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn scope(self, scope: ColumnScope) -> Self {
        Self(self.0.scope(scope))
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self(self.0.aliases(aliases))
    }

    pub(super) const fn rows(&self) -> Option<&VariantRows> {
        self.0.rows()
    }

    pub(super) fn names(self) -> Vec<String> {
        self.0.names()
    }
}

impl<E, F: JsonField> JsonColumn<E, F> {
    pub(super) fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        self.0.read_property(json_field::<F>(), entity)
    }
}

impl<E, F> Clone for JsonColumn<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, F> Copy for JsonColumn<E, F> {}

impl<E, F> fmt::Debug for JsonColumn<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JsonColumn").field(&self.name()).finish()
    }
}

/// What a column would need to be compared with. None that is stored as JSON has it; the methods are there to say so.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a column that is stored as JSON cannot be compared",
    label = "stored as JSON",
    note = "the service sees it as one string: filter by another property, or store the value for the filter in one"
)]
#[expect(unnameable_types, reason = "only this crate implements it")]
pub trait Comparable {}

macro_rules! incomparable {
    ($column:ident: $comparable:ident) => {
        incomparable!($column: $comparable, eq ne gt ge lt le is_in between starts_with);
    };
    ($column:ident[false]: $comparable:ident, $($name:ident)+) => {
        incomparable!(impl[E, F] $column<E, F, false>: $comparable, $($name)+);
    };
    ($column:ident[$eq:ident]: $comparable:ident, $($name:ident)+) => {
        incomparable!(impl[E, F, const $eq: bool] $column<E, F, $eq>: $comparable, $($name)+);
    };
    ($column:ident: $comparable:ident, $($name:ident)+) => {
        incomparable!(impl[E, F] $column<E, F>: $comparable, $($name)+);
    };
    (impl[$($generics:tt)*] $column:ty: $comparable:ident, $($name:ident)+) => {
        #[doc(hidden)]
        impl<$($generics)*> $column {
            $(pub fn $name<L>(self, _: L) -> Filter<E>
            where
                Self: $comparable,
            {
                Filter::new(Ok(Tree::Constant(false)))
            })+
        }
    };
}

pub(super) use incomparable;

incomparable!(JsonColumn: Comparable);
