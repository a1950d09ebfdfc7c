//! What a query reads of each entity: all of it, or some columns.

use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::wire::json::JsonEntity;

use super::Column;
use crate::entity::{EntityError, Field, Stored, TableEntity, read_column};

/// What is read of each entity of type `E`: one column, or a tuple of up to eight.
pub trait Selection<E>: sealed::Sealed + Send + Sync + 'static {
    /// What the query yields.
    type Item: Send + 'static;

    /// The names to ask for; all when `None`.
    #[doc(hidden)]
    fn names(&self) -> Option<Vec<String>>;

    /// Reads an item from an entity of the answer.
    #[doc(hidden)]
    fn read(&self, entity: &JsonEntity<'_>) -> Result<Self::Item, EntityError>;
}

/// Everything: the query yields [`Stored<E>`].
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
        None
    }

    fn read(&self, entity: &JsonEntity<'_>) -> Result<Stored<E>, EntityError> {
        Stored::read(entity, None)
    }
}

impl<E: 'static, F: Field> Selection<E> for Column<E, F> {
    type Item = F;

    fn names(&self) -> Option<Vec<String>> {
        Some(vec![self.name().to_owned()])
    }

    fn read(&self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        read_column(self.name(), entity)
    }
}

macro_rules! tuple {
    ($($field:ident $index:tt),+) => {
        impl<E: 'static, $($field: Field),+> Selection<E> for ($(Column<E, $field>,)+) {
            type Item = ($($field,)+);

            fn names(&self) -> Option<Vec<String>> {
                Some(vec![$(self.$index.name().to_owned()),+])
            }

            fn read(&self, entity: &JsonEntity<'_>) -> Result<Self::Item, EntityError> {
                Ok(($(read_column(self.$index.name(), entity)?,)+))
            }
        }

        impl<E, $($field),+> sealed::Sealed for ($(Column<E, $field>,)+) {}
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

mod sealed {
    #[expect(
        unnameable_types,
        reason = "what cannot be named cannot be implemented"
    )]
    pub trait Sealed {}
}

impl<E> sealed::Sealed for Whole<E> {}
impl<E, F> sealed::Sealed for Column<E, F> {}
