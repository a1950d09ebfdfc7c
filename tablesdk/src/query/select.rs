//! The selection of a query: whole entities, or some of their columns.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::{EntityCursor, JsonEntity};

use super::{Column, JsonColumn, KeyPartColumn};
use crate::entity::{
    DynamicEntity, DynamicSelection, EntityError, Field, JsonField, Stored, TableEntity,
    VariantRows,
};
use crate::error::ClosureError;

/// The columns that are read of each entity of type `E`: one column, or a tuple of up to eight.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::TableClient;
/// use tablesdk::query::Selection;
///
/// // Whatever is selected, of all employees of a department.
/// async fn of_department<S: Selection<Employee>>(
///     table: &TableClient,
///     department: &str,
///     columns: impl FnOnce(<Employee as TableEntity>::Columns) -> S,
/// ) -> Result<Vec<S::Item>, tablesdk::Error> {
///     table.query::<Employee>().partition(department).select(columns).collect().await
/// }
/// assert_eq!(of_department(&table, "Sales", |e| e.name).await?, ["Ada"]);
/// let pairs = of_department(&table, "Sales", |e| (e.id, e.name)).await?;
/// assert_eq!(pairs, [("1".to_owned(), "Ada".to_owned())]);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be selected from `{E}`",
    label = "not columns of this entity",
    note = "`select` takes a column, or a tuple of up to eight, as its closure gets them: `.select(|e| (e.id, e.name))`"
)]
pub trait Selection<E>: sealed::Sealed + Send + Sync + 'static {
    /// The items of the query.
    type Item: Send + 'static;

    /// The names to ask for; all when `None`.
    #[doc(hidden)]
    fn names(&self) -> Option<Vec<String>>;

    /// The condition of the selection on the rows: that they have the columns, where not all do.
    #[doc(hidden)]
    fn condition(&self) -> Result<Option<Tree>, SelectionError> {
        Ok(None)
    }

    /// True if the selection looks for properties by name, so that it needs the list of all.
    #[doc(hidden)]
    const LISTS: bool = false;

    /// True if the entries of an index may be read as they are.
    #[doc(hidden)]
    const IS_UNVERIFIED: bool = false;

    /// Reads an item from an entity of the answer. What it does may be done again for the same
    /// entity, unless it needs a list.
    #[doc(hidden)]
    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<Self::Item, SelectionError>;
}

/// Why nothing can be selected.
#[doc(hidden)]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The closure of the program failed.
    #[error(transparent)]
    Aborted(ClosureError),
    /// The entity is not what it should be.
    #[error(transparent)]
    Entity(#[from] EntityError),
    /// The entity is passed again.
    #[error("the members are not in a list")]
    NotListed,
    /// A column is that of a slot which the series does not have.
    #[error("property {property:?}: {problem}")]
    Slot {
        /// The beginning of the names of the slots.
        property: String,
        /// Which slot, and which ones there are.
        problem: String,
    },
    /// No row has all of the columns.
    #[error(
        "the columns are those of different variants, {one} and {another}, and no row has both: select those of one, or read whole rows"
    )]
    Rows {
        /// The rows of one column.
        one: String,
        /// The rows of another.
        another: String,
    },
}

/// The rows that have all of the columns.
pub(crate) fn common_rows<'r>(
    columns: impl IntoIterator<Item = Result<Option<&'r VariantRows>, SelectionError>>,
) -> Result<Option<Tree>, SelectionError> {
    let columns: Vec<_> = columns.into_iter().collect::<Result<_, _>>()?;
    let mut rows = columns.into_iter().flatten();
    let Some(first) = rows.next() else {
        return Ok(None);
    };
    match rows.find(|other| *other != first) {
        None => Ok(first.condition()),
        Some(other) => Err(SelectionError::Rows {
            one: first.describe(),
            another: other.describe(),
        }),
    }
}

/// The list of all members.
pub(crate) fn list<'e, 'a>(
    entity: &EntityCursor<'e, 'a>,
) -> Result<&'e JsonEntity<'a>, SelectionError> {
    entity.list().ok_or(SelectionError::NotListed)
}

/// The whole entity, or of a projection its properties: the query yields [`Stored<E>`].
pub struct Whole<E>(PhantomData<fn() -> E>);

impl<E> Whole<E> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<E> fmt::Debug for Whole<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Whole")
    }
}

impl<E> Clone for Whole<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Whole<E> {}

impl<E: TableEntity> Selection<E> for Whole<E> {
    type Item = Stored<E>;

    fn names(&self) -> Option<Vec<String>> {
        E::SCHEMA.select()
    }

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<Stored<E>, SelectionError> {
        Ok(Stored::read(entity, None)?)
    }
}

/// One selection for a query at several places.
impl<E, S: Selection<E>> Selection<E> for Arc<S> {
    type Item = S::Item;

    fn names(&self) -> Option<Vec<String>> {
        S::names(self)
    }

    const LISTS: bool = S::LISTS;

    const IS_UNVERIFIED: bool = S::IS_UNVERIFIED;

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<S::Item, SelectionError> {
        S::read(self, entity)
    }
}

/// A column that a query can read: one of any kind.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of `{E}`",
    label = "not a column of this entity",
    note = "`select` takes a column, or a tuple of up to eight, as its closure gets them: `.select(|e| (e.id, e.name))`"
)]
pub trait SelectColumn<E>: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type of its field.
    type Value: Send + 'static;

    /// The names to ask for: the column's own, and its aliases.
    #[doc(hidden)]
    fn column_names(self) -> Vec<String>;

    /// The rows that have the column, where not all do.
    #[doc(hidden)]
    fn column_rows(&self) -> Result<Option<&VariantRows>, SelectionError>;

    /// Reads the column.
    #[doc(hidden)]
    fn read_column(self, entity: &JsonEntity<'_>) -> Result<Self::Value, EntityError>;
}

impl<E: 'static, F: Field> SelectColumn<E> for Column<E, F> {
    type Value = F;

    fn column_names(self) -> Vec<String> {
        self.names()
    }

    fn column_rows(&self) -> Result<Option<&VariantRows>, SelectionError> {
        match self.missing_slot() {
            Some(slot) => Err(SelectionError::Slot {
                property: self.name().into_owned(),
                problem: slot.to_string(),
            }),
            None => Ok(self.rows()),
        }
    }

    fn read_column(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        self.read(entity)
    }
}

macro_rules! selection {
    ($column:ident, $field:path $(, $eq:ident)?) => {
        impl<E: 'static, F: $field + 'static $(, const $eq: bool)?> $crate::query::select::Selection<E> for $column<E, F $(, $eq)?> {
            type Item = F;

            fn names(&self) -> Option<Vec<String>> {
                Some($column::names(*self))
            }

            fn condition(&self) -> Result<Option<tablesdk_protocol::filter::Filter>, $crate::query::select::SelectionError> {
                $crate::query::select::common_rows([$crate::query::select::SelectColumn::<E>::column_rows(self)])
            }

            const LISTS: bool = true;

            fn read(&self, entity: &mut tablesdk_protocol::wire::json::EntityCursor<'_, '_>) -> Result<F, $crate::query::select::SelectionError> {
                Ok($crate::query::select::SelectColumn::<E>::read_column(*self, $crate::query::select::list(entity)?)?)
            }
        }
    };
}

macro_rules! column {
    ($column:ident, $field:path $(, $eq:ident)?) => {
        impl<E: 'static, F: $field + 'static $(, const $eq: bool)?> $crate::query::select::SelectColumn<E> for $column<E, F $(, $eq)?> {
            type Value = F;

            fn column_names(self) -> Vec<String> {
                self.names()
            }

            fn column_rows(&self) -> Result<Option<&$crate::entity::VariantRows>, $crate::query::select::SelectionError> {
                Ok(self.rows())
            }

            fn read_column(self, entity: &tablesdk_protocol::wire::json::JsonEntity<'_>) -> Result<F, $crate::entity::EntityError> {
                self.read(entity)
            }
        }

        $crate::query::select::selection!($column, $field $(, $eq)?);
    };
}

pub(crate) use {column, selection};

selection!(Column, Field);
column!(JsonColumn, JsonField);
column!(KeyPartColumn, Send);

/// Some properties of an entity without a struct: the query yields it with these alone.
impl Selection<DynamicEntity> for DynamicSelection {
    type Item = Stored<DynamicEntity>;

    fn names(&self) -> Option<Vec<String>> {
        Some(Self::names(self))
    }

    fn read(
        &self,
        entity: &mut EntityCursor<'_, '_>,
    ) -> Result<Stored<DynamicEntity>, SelectionError> {
        Ok(Stored::read(entity, None)?)
    }
}

macro_rules! tuple {
    ($($column:ident $index:tt),+) => {
        impl<E: 'static, $($column: SelectColumn<E>),+> Selection<E> for ($($column,)+) {
            type Item = ($($column::Value,)+);

            fn names(&self) -> Option<Vec<String>> {
                Some([$(self.$index.column_names()),+].concat())
            }

            fn condition(&self) -> Result<Option<Tree>, SelectionError> {
                common_rows([$(self.$index.column_rows()),+])
            }

            const LISTS: bool = true;

            fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<Self::Item, SelectionError> {
                let entity = list(entity)?;
                Ok(($(self.$index.read_column(entity)?,)+))
            }
        }

        impl<$($column: sealed::Sealed),+> sealed::Sealed for ($($column,)+) {}
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, F 4);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5, H 6);
tuple!(A 0, B 1, C 2, D 3, F 4, G 5, H 6, I 7);

pub(crate) mod sealed {
    #[expect(
        unnameable_types,
        reason = "what cannot be named cannot be implemented"
    )]
    pub trait Sealed {}
}

impl<F> sealed::Sealed for super::Resolve<F> {}
impl<S: sealed::Sealed> sealed::Sealed for Arc<S> {}
impl<E> sealed::Sealed for Whole<E> {}
impl<E, F> sealed::Sealed for Column<E, F> {}
impl<E, F> sealed::Sealed for JsonColumn<E, F> {}
impl<E, F> sealed::Sealed for KeyPartColumn<E, F> {}
impl sealed::Sealed for DynamicSelection {}
