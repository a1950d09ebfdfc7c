//! The selections of the library's own queries: keys, values, row keys with items, and nothing but
//! that an entity exists.

use tablesdk_protocol::wire::json::EntityCursor;
use tablesdk_protocol::{ETag, EntityKey, KeyKind, RowKey};

use super::select::sealed;
use super::{Selection, SelectionError};
use crate::entity::{EntityError, EntityProblem, Stored, key_text, read_key};

/// Nothing but that it is there: for queries that count.
pub(crate) struct Presence;

impl<E> Selection<E> for Presence {
    type Item = ();

    // It is made of another selection, which is checked before.
    const IS_UNVERIFIED: bool = true;

    fn names(&self) -> Option<Vec<String>> {
        Some(vec!["RowKey".to_owned()])
    }

    fn read(&self, _: &mut EntityCursor<'_, '_>) -> Result<(), SelectionError> {
        Ok(())
    }
}

/// Keys, and versions if they are wanted: for what deletes.
pub(crate) struct Keys {
    pub(crate) with_etag: bool,
}

impl<E> Selection<E> for Keys {
    type Item = (EntityKey, Option<ETag>);

    fn names(&self) -> Option<Vec<String>> {
        // If the response has no ETag, it follows from the timestamp.
        let names = ["PartitionKey", "RowKey", "Timestamp"];
        let names = names.into_iter().take(if self.with_etag { 3 } else { 2 });
        Some(names.map(str::to_owned).collect())
    }

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<Self::Item, SelectionError> {
        Ok(read_key(entity, self.with_etag)?)
    }
}

/// Whole entities, each read by a function, which gets the list of its properties, too.
pub(crate) struct ReadBy<T>(pub(crate) fn(&mut EntityCursor<'_, '_>) -> Result<T, SelectionError>);

impl<E, T: Send + 'static> Selection<E> for ReadBy<T> {
    type Item = T;

    const LISTS: bool = true;

    fn names(&self) -> Option<Vec<String>> {
        None
    }

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<T, SelectionError> {
        (self.0)(entity)
    }
}

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

/// A selection, and the row key of each item, which a projection need not have: for a read that
/// merges partitions.
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

impl<S> sealed::Sealed for Keyed<S> {}
impl<S> sealed::Sealed for Values<S> {}
impl<T> sealed::Sealed for ReadBy<T> {}
impl sealed::Sealed for Keys {}
impl sealed::Sealed for Presence {}
