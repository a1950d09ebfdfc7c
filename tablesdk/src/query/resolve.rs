//! What a closure makes of each row, whatever it is: the form for those who do not want a type for every kind of row.

use std::fmt;

use tablesdk_protocol::wire::json::EntityMembers;

use super::{Selection, SelectionError};
use crate::entity::{DynamicEntity, Schema, Stored};
use crate::error::ClosureError;

/// What a closure makes of each row: the query yields it.
pub struct Resolve<F> {
    closure: F,
    names: Option<Vec<String>>,
    /// Whether properties of the entities were decrypted.
    are_decrypted: bool,
}

impl<F> Resolve<F> {
    /// Of whole entities without encrypted properties.
    pub(crate) const fn new(closure: F) -> Self {
        Self {
            closure,
            names: None,
            are_decrypted: false,
        }
    }

    /// Of entities of a type.
    pub(crate) fn of(schema: &Schema, closure: F) -> Self {
        Self {
            closure,
            names: schema.select(),
            are_decrypted: schema.encrypts(),
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

    fn read(&self, entity: &mut EntityMembers<'_, '_>) -> Result<T, SelectionError> {
        let mut row: Stored<DynamicEntity> = Stored::read(entity, None)?;
        if self.are_decrypted {
            row.mark_decrypted();
        }
        (self.closure)(row).map_err(SelectionError::CalledOff)
    }
}
