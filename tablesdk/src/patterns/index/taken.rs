//! The error of an entry that another entity has.

use tablesdk_protocol::EntityKey;

use super::part::NoEntityError;
use crate::error::Error;
use crate::error::message::Excerpt;

/// Another entity has the entry of an index which the operation would have written.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the {noun} {index} has another entity, {}, at {row_key:?}",
    Excerpt(owner)
)]
pub(super) struct TakenEntry {
    pub(super) noun: &'static str,
    pub(super) index: &'static str,
    pub(super) row_key: String,
    pub(super) owner: EntityKey,
}

impl Error {
    /// The [unique index](derive@crate::TableEntity#index) in which another entity has the entry
    /// that the operation would have written: the name of the type of its entries. Also the name of
    /// a [copy](derive@crate::TableEntity#copy) whose key another entity has, or that has no entity
    /// to go into.
    ///
    /// ```
    #[doc = include_str!("../../docs/indexed.md")]
    /// table.insert(&Employee::new("Sales", 1, "ada@contoso.com")).await?;
    /// let error = table.insert(&Employee::new("Sales", 2, "ada@contoso.com")).await.unwrap_err();
    /// assert!(error.is_conflict());
    /// assert_eq!(error.index(), Some("ByEmail"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(&self) -> Option<&str> {
        let taken = self.details::<TakenEntry>().map(|taken| taken.index);
        taken.or_else(|| Some(self.downcast_ref::<NoEntityError>()?.copy))
    }
}
