//! Items with their row keys, which a projection need not have: for a read that merges partitions.

use tablesdk_protocol::wire::json::EntityCursor;
use tablesdk_protocol::{KeyKind, RowKey};

use super::{Selection, SelectionError};
use crate::entity::{EntityError, EntityProblem, key_text};

/// A selection, and the row key of each item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<S>(S);

impl<S> Keyed<S> {
    pub(crate) const fn new(selection: S) -> Self {
        Self(selection)
    }
}

impl<E, S: Selection<E>> Selection<E> for Keyed<S> {
    type Item = (RowKey, S::Item);

    const LISTS: bool = S::LISTS;

    const IS_UNVERIFIED: bool = S::IS_UNVERIFIED;

    // A request for a page asks for the row key in any case.
    fn names(&self) -> Option<Vec<String>> {
        self.0.names()
    }

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<Self::Item, SelectionError> {
        let row_key = RowKey::new(key_text(entity, KeyKind::RowKey)?);
        let row_key = row_key.map_err(|error| EntityError::from(EntityProblem::Key(error)))?;
        Ok((row_key, self.0.read(entity)?))
    }
}
