//! The selection by a closure, which converts each row, whatever its type: for programs that do not
//! want a type for every kind of row.

use std::fmt;

use tablesdk_protocol::wire::json::EntityCursor;

use super::{Selection, SelectionError};
use crate::entity::{DynamicEntity, Schema, Stored};
use crate::error::ClosureError;

/// A selection by a closure: the query yields the result of the closure for each row.
pub struct Resolve<F> {
    closure: F,
    names: Option<Vec<String>>,
    /// The type whose encrypted properties were decrypted.
    decrypted_by: Option<&'static Schema>,
}

impl<F> Resolve<F> {
    /// Selects whole entities without encrypted properties.
    pub(crate) const fn new(closure: F) -> Self {
        Self {
            closure,
            names: None,
            decrypted_by: None,
        }
    }

    /// Selects entities of a type.
    pub(crate) fn of(schema: &'static Schema, closure: F) -> Self {
        Self {
            closure,
            names: schema.select(),
            decrypted_by: schema.encrypts().then_some(schema),
        }
    }
}

impl<F> fmt::Debug for Resolve<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolve")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl<E, T, F> Selection<E> for Resolve<F>
where
    T: Send + 'static,
    F: Fn(Stored<DynamicEntity>) -> Result<T, ClosureError> + Send + Sync + 'static,
{
    type Item = T;

    /// The closure is called once.
    const LISTS: bool = true;

    fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<T, SelectionError> {
        let mut row: Stored<DynamicEntity> = Stored::read(entity, None)?;
        row.note_decrypted(self.decrypted_by);
        (self.closure)(row).map_err(SelectionError::Aborted)
    }
}
