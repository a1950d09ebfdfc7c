//! The entries of an index as they are, without a look at their entities.

use tablesdk_protocol::wire::json::EntityMembers;

use super::{Selection, SelectionError};

/// A selection of entries that may be out of date.
#[derive(Clone, Copy, Debug)]
pub struct Unverified<S>(S);

impl<S> Unverified<S> {
    pub(crate) const fn new(selection: S) -> Self {
        Self(selection)
    }
}

impl<E, S: Selection<E>> Selection<E> for Unverified<S> {
    type Item = S::Item;

    const LISTS: bool = S::LISTS;

    const IS_UNVERIFIED: bool = true;

    fn names(&self) -> Option<Vec<String>> {
        self.0.names()
    }

    fn read(&self, entity: &mut EntityMembers<'_, '_>) -> Result<S::Item, SelectionError> {
        self.0.read(entity)
    }
}
