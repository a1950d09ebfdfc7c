//! `get_many`: many entities by their keys, several at a time.

use std::marker::PhantomData;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::EntityKey;

use super::GetEntity;
use crate::entity::{EntityError, Stored, TableEntity};
use crate::error::Error;
use crate::pipeline::Table;

/// Reads many entities by their keys. See [`TableClient::get_many`](crate::TableClient::get_many).
#[must_use = "actions do nothing until awaited"]
pub struct GetMany<E> {
    table: Table,
    keys: Result<Vec<EntityKey>, EntityError>,
    concurrency: usize,
    marker: PhantomData<fn() -> E>,
}

impl<E: TableEntity> GetMany<E> {
    pub(crate) const fn new(table: Table, keys: Result<Vec<EntityKey>, EntityError>) -> Self {
        Self {
            table,
            keys,
            concurrency: CONCURRENCY,
            marker: PhantomData,
        }
    }

    /// How many requests are in flight at a time; 16 by default. Must not be 0.
    pub const fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests;
        self
    }

    async fn run(self) -> Result<Vec<Option<Stored<E>>>, Error> {
        let refused = |error: Error| error.with_operation(OPERATION);
        let keys = self.keys.map_err(|error| refused(Error::input(error)))?;
        if self.concurrency == 0 {
            return Err(refused(Error::input(
                "nothing can be read with a concurrency of 0",
            )));
        }
        let table = self.table;
        let reads = keys
            .into_iter()
            .map(|key| GetEntity::new(table.clone(), Ok(key)).into_future());
        stream::iter(reads)
            .buffered(self.concurrency)
            .try_collect()
            .await
    }
}

action!(impl[E: TableEntity] GetMany<E>, table.pipeline => Vec<Option<Stored<E>>>);

debug_by_fields!(GetMany<E> { table, keys, concurrency });

const OPERATION: &str = "get entity";
const CONCURRENCY: usize = 16;
