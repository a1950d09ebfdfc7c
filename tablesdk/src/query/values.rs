//! Entities without their keys, ETags and timestamps.

use tablesdk_protocol::wire::json::EntityCursor;

use super::{Selection, SelectionError};
use crate::entity::Stored;

/// The values of a selection of stored entities.
#[derive(Clone, Copy, Debug)]
pub struct Values<S>(S);

impl<S> Values<S> {
    pub(crate) const fn new(stored: S) -> Self {
        Self(stored)
    }
}

impl<E, T: Send + 'static, S: Selection<E, Item = Stored<T>>> Selection<E> for Values<S> {
    type Item = T;

    const LISTS: bool = S::LISTS;

    const IS_UNVERIFIED: bool = S::IS_UNVERIFIED;

    fn names(&self) -> Option<Vec<String>> {
        self.0.names()
    }

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<T, SelectionError> {
        Ok(self.0.read(entity)?.into_inner())
    }
}
