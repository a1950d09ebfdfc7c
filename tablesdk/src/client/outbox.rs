//! What the outbox takes table clients for.

use super::TableClient;
use crate::action::{Outbox, Step};
use crate::entity::Standalone;
use crate::entity::key::{IntoEntityKey, check_standalone_key};

impl Step {
    /// Inserts an entity, or replaces the existing one. The table may be any of the account.
    pub fn upsert_replace<E: Standalone>(table: &TableClient, entity: &E) -> Self {
        Self::write(table.table(), false, entity)
    }

    /// Inserts an entity, or merges it into the existing one.
    pub fn upsert_merge<E: Standalone>(table: &TableClient, entity: &E) -> Self {
        Self::write(table.table(), true, entity)
    }

    /// Deletes an entity, if it exists.
    pub fn delete<K: IntoEntityKey>(table: &TableClient, key: K) -> Self {
        const { check_standalone_key::<K>() }
        Self::delete_of(table.table(), key)
    }
}

impl Outbox {
    /// The outbox of the transactions of a table.
    pub fn new(table: &TableClient) -> Self {
        Self::of(table.table().clone())
    }
}
