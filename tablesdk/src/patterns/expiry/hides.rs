//! Expired entities count as missing.

use tablesdk_protocol::Timestamp;
use tablesdk_protocol::filter::Filter as Tree;
use tablesdk_protocol::wire::json::JsonEntity;

use crate::action::extend::extension::{Extend, Shape};
use crate::action::query::parallel::ParallelQuery;
use crate::action::{GetEntity, GetMany, QueryEntities};
use crate::entity::attached::Extensions;
use crate::entity::{Schema, TableEntity};
use crate::error::Error;
use crate::patterns::order;
use crate::pipeline::Table;
use crate::query::Selection;

/// Hides expired entities.
struct Hides;

/// Adds that expired entities are hidden. Called by the derive.
#[doc(hidden)]
pub fn expires(extensions: &mut Extensions<'_>) {
    extensions.add_once(&Hides);
}

impl Extend for Hides {
    fn order(&self) -> u8 {
        order::EXPIRY
    }

    fn begin(&self, table: &Table) {
        table.pipeline.watch_service_time();
    }

    fn shape(
        &self,
        schema: &'static Schema,
        table: &Table,
        query: &mut Shape,
    ) -> Result<(), Error> {
        if let Some(expired) = schema.expired(table.pipeline.service_now()) {
            let own = query.filter.take().into_iter();
            query.filter = own.chain([!expired]).reduce(Tree::and);
        }
        Ok(())
    }

    fn can_hide(&self) -> bool {
        true
    }

    fn hides(&self, schema: &'static Schema, entity: &JsonEntity<'_>, now: Timestamp) -> bool {
        schema.is_expired(entity, now)
    }
}

impl<E: TableEntity> GetEntity<E> {
    /// Reads the entity even if it is [expired](derive@crate::TableEntity#expires).
    ///
    /// ```
    #[doc = include_str!("../../docs/sessions.md")]
    /// let key = || Session::key("ann", 1);
    /// assert!(table.get(key()).await?.is_none());
    /// assert!(table.get(key()).including_expired().await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn including_expired(mut self) -> Self {
        self.left_out = self.left_out.and(order::EXPIRY);
        self
    }
}

impl<E: TableEntity> GetMany<E> {
    /// Reads [expired](derive@crate::TableEntity#expires) entities, too.
    pub const fn including_expired(mut self) -> Self {
        self.left_out = self.left_out.and(order::EXPIRY);
        self
    }
}

impl<E: TableEntity, S: Selection<E>> QueryEntities<E, S> {
    /// Reads [expired](derive@crate::TableEntity#expires) entities, too.
    ///
    /// ```
    #[doc = include_str!("../../docs/sessions.md")]
    /// let of_ann = || table.query::<Session>().partition("ann");
    /// assert_eq!(of_ann().count().await?, 1);
    /// assert_eq!(of_ann().including_expired().count().await?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn including_expired(mut self) -> Self {
        self.left_out = self.left_out.and(order::EXPIRY);
        self
    }
}

impl<E: TableEntity, S: Selection<E>, O> ParallelQuery<E, S, O> {
    /// As [`QueryEntities::including_expired`].
    pub fn including_expired(self) -> Self {
        self.map(QueryEntities::including_expired)
    }
}
