//! The entries of an index as they are, without a look at their entities.

use tablesdk_protocol::wire::json::EntityCursor;

use super::entry::IndexEntry;
use crate::action::QueryEntities;
use crate::query::select::sealed;
use crate::query::{Selection, SelectionError};

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

    fn read(&self, entity: &mut EntityCursor<'_, '_>) -> Result<S::Item, SelectionError> {
        self.0.read(entity)
    }
}

impl<S> sealed::Sealed for Unverified<S> {}

impl<I: IndexEntry, S: Selection<I>> QueryEntities<I, S> {
    /// Reads the entries as they are, without a look at their entities: one request for a thousand.
    /// In an index with entries in other partitions, an entry may be that of an entity which was
    /// not written in the end, or has changed. The properties may be those of an earlier version.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed_elsewhere.md")]
    /// # table.insert(&Employee::new("Sales", 1, "Jones")).await?;
    /// # table.insert(&Employee::new("Legal", 2, "Jones")).await?;
    /// let jones = || table.query::<ByName>().partition(ByName::partition("Jones"));
    /// let departments = jones().select(|e| e.department).unverified().collect().await?;
    /// assert_eq!(departments, ["Legal", "Sales"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A query of such an index says which of the two it means, or it does not compile:
    ///
    /// ```compile_fail,E0080
    #[doc = include_str!("../../docs/indexed_elsewhere.md")]
    /// table.query::<ByName>().partition(ByName::partition("Jones")).collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn unverified(self) -> QueryEntities<I, Unverified<S>> {
        self.map_selection(Unverified::new)
    }
}
