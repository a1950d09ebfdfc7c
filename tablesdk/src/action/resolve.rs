//! `get(…).resolve(…)`: Query Entities by both keys, and a closure that converts the entity.

use std::fmt;
use std::future::IntoFuture;

use tablesdk_protocol::EntityKey;

use super::ActionFuture;
use super::get_entity::{read, refused};
use crate::entity::{DynamicEntity, EntityError, Stored};
use crate::error::Error;
use crate::pipeline::Table;
use crate::query::ResolveError;

/// Reads one entity and converts it with a closure. See [`GetEntity::resolve`](super::GetEntity::resolve).
#[must_use = "actions do nothing until awaited"]
pub struct ResolveEntity<F> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    select: Option<Vec<String>>,
    resolve: F,
}

impl<F> ResolveEntity<F> {
    pub(super) const fn new(
        table: Table,
        key: Result<EntityKey, EntityError>,
        select: Option<Vec<String>>,
        resolve: F,
    ) -> Self {
        Self {
            table,
            key,
            select,
            resolve,
        }
    }

    async fn run<T>(self) -> Result<Option<T>, Error>
    where
        F: FnOnce(Stored<DynamicEntity>) -> Result<T, ResolveError>,
    {
        let key = self.key.map_err(refused)?;
        let read = read::<DynamicEntity>(&self.table, &key, self.select).await?;
        let Some((row, _)) = read else {
            return Ok(None);
        };
        let resolved = (self.resolve)(row).map_err(|error| {
            Error::caller(error)
                .with_operation(OPERATION)
                .with_key(&key)
        });
        resolved.map(Some)
    }
}

impl<T, F> IntoFuture for ResolveEntity<F>
where
    T: Send + 'static,
    F: FnOnce(Stored<DynamicEntity>) -> Result<T, ResolveError> + Send + 'static,
{
    type Output = Result<Option<T>, Error>;
    type IntoFuture = ActionFuture<'static, Option<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<F> fmt::Debug for ResolveEntity<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolveEntity")
            .field("table", &self.table)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

const OPERATION: &str = "get entity";
