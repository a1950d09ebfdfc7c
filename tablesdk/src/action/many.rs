//! `get_many`: many entities by their keys, several at a time.

use std::marker::PhantomData;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::EntityKey;

use super::GetEntity;
use super::extend::extension::LeftOut;
use super::refusal::refused;
use crate::entity::{EntityError, Stored, TableEntity};
use crate::error::Error;
use crate::pipeline::Table;
use crate::query::EntityStream;

/// Reads many entities by their keys. See [`TableClient::get_many`](crate::TableClient::get_many).
#[must_use = "actions do nothing until awaited"]
pub struct GetMany<E> {
    table: Table,
    keys: Result<Vec<EntityKey>, EntityError>,
    concurrency: usize,
    pub(crate) left_out: LeftOut,
    marker: PhantomData<fn() -> E>,
}

impl<E: TableEntity> GetMany<E> {
    pub(crate) const fn new(table: Table, keys: Result<Vec<EntityKey>, EntityError>) -> Self {
        Self {
            table,
            keys,
            concurrency: CONCURRENCY,
            left_out: LeftOut::NONE,
            marker: PhantomData,
        }
    }

    /// How many requests are in flight at a time; 16 by default. Must not be 0.
    pub const fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests;
        self
    }

    /// The entities as a stream, in the order of the keys; `None` where there is no entity of that
    /// key. For an entity that does not fit the type ([`ErrorKind::Data`](crate::ErrorKind::Data)),
    /// the stream yields an error with its key, and continues. Any other error ends the stream.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// use futures::StreamExt;
    /// use tablesdk::DynamicEntity;
    ///
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// table.insert(&DynamicEntity::new("Sales", "2")).await?; // it has no name
    /// let keys = ["1", "2", "3"].map(|id| Employee::key("Sales", id));
    /// let read: Vec<_> = table.get_many(keys).stream().collect().await;
    /// assert!(matches!(read.as_slice(), [Ok(Some(_)), Err(_), Ok(None)]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> EntityStream<Option<Stored<E>>> {
        let table = self.table;
        let failed = |error: Error| EntityStream::failed(table.pipeline.locate(error));
        let keys = match self.keys {
            Ok(keys) => keys,
            Err(error) => return failed(refused(OPERATION, error)),
        };
        if self.concurrency == 0 {
            return failed(refused(
                OPERATION,
                "nothing can be read with a concurrency of 0",
            ));
        }
        let left_out = self.left_out;
        let reads = keys.into_iter().map(move |key| {
            let mut get = GetEntity::new(table.clone(), Ok(key));
            get.left_out = left_out;
            get.into_future()
        });
        EntityStream::first(None, stream::iter(reads).buffered(self.concurrency))
    }

    async fn run(self) -> Result<Vec<Option<Stored<E>>>, Error> {
        self.stream().try_collect().await
    }
}

action!(impl[E: TableEntity] GetMany<E>, table.pipeline => Vec<Option<Stored<E>>>);

debug_by_fields!(GetMany<E> { table, keys, concurrency });

const OPERATION: &str = "get entity";
const CONCURRENCY: usize = 16;
