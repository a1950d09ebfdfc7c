//! What a closure makes of each row, whatever it is: the form for those who do not want a type for every kind of row.

use std::fmt;

use tablesdk_protocol::wire::json::EntityMembers;

use super::{Selection, SelectionError};
use crate::entity::{DynamicEntity, Stored};
use crate::error::ClosureError;

/// What a closure makes of each row: the query yields it.
pub struct Resolve<F> {
    resolve: F,
    names: Option<Vec<String>>,
}

impl<F> Resolve<F> {
    pub(crate) const fn new(resolve: F, names: Option<Vec<String>>) -> Self {
        Self { resolve, names }
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
        let row = Stored::read(entity, None)?;
        (self.resolve)(row).map_err(SelectionError::CalledOff)
    }
}
