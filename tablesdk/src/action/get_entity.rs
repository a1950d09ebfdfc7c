//! `get`: Query Entities by both keys.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use bytes::Bytes;
use tablesdk_protocol::operation::get_entity::{Request, Response};
use tablesdk_protocol::wire::json::{MetadataLevel, read_entity};
use tablesdk_protocol::{ETag, EntityKey};

use super::{ActionFuture, GetTracked, ResolveEntity};
use crate::entity::{DynamicEntity, EntityError, Stored, TableEntity, WritableEntity};
use crate::error::Error;
use crate::pipeline::Table;
use crate::pipeline::{Effect, OperationRun};
use crate::query::{AccessClass, ResolveError};

/// Reads one entity. See [`TableClient::get`].
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// let key = Employee::key("Sales", "1");
/// let mut ada = table.get(key).tracked().await?.expect("she works here");
/// ada.name.push_str(" Lovelace");
/// table.merge(&mut ada).changed_only().await?; // sends the name alone
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct GetEntity<E> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    marker: PhantomData<fn() -> E>,
}

impl<E: TableEntity> GetEntity<E> {
    pub(crate) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            marker: PhantomData,
        }
    }

    /// Keeps the properties that were read together with the value, so that [`changed_only`](super::ReplaceStored::changed_only)
    /// can determine which ones differ.
    pub fn tracked(self) -> GetTracked<E>
    where
        E: WritableEntity,
    {
        GetTracked::new(self.table, self.key)
    }

    /// Converts the entity with a closure, which gets every property with its exact type. For a projection, the properties are
    /// those of its fields.
    ///
    /// ```
    #[doc = include_str!("../docs/company.md")]
    /// use tablesdk::DynamicEntity;
    ///
    /// let get = table.get::<DynamicEntity>(("Sales", "1"));
    /// let name = get.resolve(|row| Ok(row.properties().read::<String>("name")?)).await?;
    /// assert_eq!(name.as_deref(), Some("Ada"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Caller`](crate::ErrorKind::Caller) when the closure fails, with its error as the source.
    pub fn resolve<T, F>(self, resolve: F) -> ResolveEntity<F>
    where
        F: FnOnce(Stored<DynamicEntity>) -> Result<T, ResolveError> + Send + 'static,
    {
        ResolveEntity::new(self.table, self.key, E::SCHEMA.select(), resolve)
    }

    async fn run(self) -> Result<Option<Stored<E>>, Error> {
        let key = self.key.map_err(refused)?;
        let read = read(&self.table, &key, E::SCHEMA.select()).await?;
        Ok(read.map(|(stored, _)| stored))
    }
}

pub(super) fn refused(error: EntityError) -> Error {
    Error::input(error).with_operation(OPERATION)
}

/// The entity, as an `E`, of which these properties are asked for; and as it came.
pub(super) async fn read<E: TableEntity>(
    table: &Table,
    key: &EntityKey,
    select: Option<Vec<String>>,
) -> Result<Option<(Stored<E>, Bytes)>, Error> {
    let mut run = table.begin(OPERATION);
    let fetched = fetch(&mut run, Effect::Read, table, key, select).await;
    let read = match fetched {
        Ok((content, etag)) => match stored(&content, etag) {
            Ok(stored) => Ok(Some((stored, content))),
            Err(error) => Err(run.annotate(error).with_key(key)),
        },
        // A missing table is an error, a missing entity an answer.
        Err(error) if error.is_no_such_resource() => {
            run.note_expected_error(&error);
            Ok(None)
        }
        Err(error) => Err(error),
    };
    run.end(read)
}

fn stored<E: TableEntity>(content: &Bytes, etag: Option<ETag>) -> Result<Stored<E>, Error> {
    let entity = read_entity(content).map_err(Error::response)?;
    Stored::read(&entity, etag).map_err(Error::response)
}

/// The entity as it came, with its ETag.
pub(super) async fn fetch(
    run: &mut OperationRun<'_>,
    effect: Effect,
    table: &Table,
    key: &EntityKey,
    select: Option<Vec<String>>,
) -> Result<(Bytes, Option<ETag>), Error> {
    let request = Request {
        table: table.checked_name(run.operation())?,
        key: key.clone(),
        select,
        level: MetadataLevel::Minimal,
    };
    let request = request.encode(&run.pipeline().endpoint);
    run.note_access(AccessClass::Point);
    let answer = run.send(effect, &request).await;
    let answer = answer.map_err(|error| error.with_key(key))?;
    run.note_entities(1);
    let Response { etag, content } = Response::decode(answer.response);
    Ok((content, etag))
}

impl<E: TableEntity> IntoFuture for GetEntity<E> {
    type Output = Result<Option<Stored<E>>, Error>;
    type IntoFuture = ActionFuture<'static, Option<Stored<E>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<E> fmt::Debug for GetEntity<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetEntity")
            .field("table", &self.table)
            .field("key", &self.key)
            .finish()
    }
}

const OPERATION: &str = "get entity";
