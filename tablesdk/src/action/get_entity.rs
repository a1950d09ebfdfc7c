//! `get`: Query Entities by both keys.

use std::marker::PhantomData;

use bytes::Bytes;
use http::{Request as HttpRequest, Response as HttpResponse};
use tablesdk_protocol::operation::get_entity::{Request, Response};
use tablesdk_protocol::wire::json::{MetadataLevel, has_other_key, read_entity, read_entity_by};
use tablesdk_protocol::{ETag, EntityKey, TableName};

use super::extend::extension::{Extensions, LeftOut, Opened};
use crate::entity::encrypted::encrypted;
use crate::entity::standalone::check_one_verified;
use crate::entity::{
    DynamicEntity, EntityError, Schema, Stored, TableEntity, WritableEntity, read_key,
};
use crate::error::{ClosureError, CurrentState, Error};
use crate::filter::AccessClass;
use crate::pipeline::{Effect, NoSuccess, OperationRun, SendOptions, Table};

/// Reads one entity. See [`TableClient::get`](crate::TableClient::get).
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
    pub(crate) table: Table,
    pub(crate) key: Result<EntityKey, EntityError>,
    pub(crate) left_out: LeftOut,
    is_tracked: bool,
    entity: PhantomData<fn() -> E>,
}

impl<E: TableEntity> GetEntity<E> {
    pub(crate) const fn new(table: Table, key: Result<EntityKey, EntityError>) -> Self {
        Self {
            table,
            key,
            left_out: LeftOut::NONE,
            is_tracked: false,
            entity: PhantomData,
        }
    }

    /// Keeps the properties that were read together with the value, so that
    /// [`changed_only`](super::Write::changed_only) can determine which ones differ.
    pub const fn tracked(mut self) -> Self
    where
        E: WritableEntity,
    {
        self.is_tracked = true;
        self
    }

    /// Converts the entity with a closure, which gets every property with its exact type. For a
    /// projection, the properties are those of its fields.
    ///
    /// ```
    #[doc = include_str!("../docs/company.md")]
    /// use tablesdk::DynamicEntity;
    ///
    /// let get = table.get::<DynamicEntity>(("Sales", "1"));
    /// let name = get.resolve(|entity| Ok(entity.properties().read::<String>("name")?)).await?;
    /// assert_eq!(name.as_deref(), Some("Ada"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Aborted`](crate::ErrorKind::Aborted) when the closure fails;
    /// [`Error::downcast_ref`] returns its error.
    pub fn resolve<'a, T: Send + 'a>(
        self,
        resolve: impl FnOnce(Stored<DynamicEntity>) -> Result<T, ClosureError> + Send + 'a,
    ) -> ResolveEntity<'a, T> {
        const { check_one_verified::<E>() }
        ResolveEntity {
            table: self.table,
            key: self.key,
            select: E::SCHEMA.select(),
            extensions: Extensions::of::<E>(self.left_out),
            decrypted_by: encrypted::<E>(),
            resolve: Box::new(resolve),
        }
    }

    async fn run(self) -> Result<Option<Stored<E>>, Error> {
        const { check_one_verified::<E>() }
        let select = E::SCHEMA.select();
        let extensions = Extensions::of::<E>(self.left_out);
        let (_, read) = read::<E>(&self.table, self.key, select, &extensions).await?;
        Ok(read.map(|(mut stored, content)| {
            if self.is_tracked {
                stored.track(content);
            }
            stored
        }))
    }
}

action!(impl[E: TableEntity] GetEntity<E>, table.pipeline => Option<Stored<E>>);
debug_by_fields!(GetEntity<E> { table, key, is_tracked });

/// Reads one entity and converts it with a closure. See [`GetEntity::resolve`].
#[must_use = "actions do nothing until awaited"]
pub struct ResolveEntity<'a, T> {
    table: Table,
    key: Result<EntityKey, EntityError>,
    select: Option<Vec<String>>,
    extensions: Extensions,
    /// The type whose encrypted properties are decrypted.
    decrypted_by: Option<&'static Schema>,
    resolve: Resolve<'a, T>,
}

type Resolve<'a, T> = Box<dyn FnOnce(Stored<DynamicEntity>) -> Result<T, ClosureError> + Send + 'a>;

impl<T> ResolveEntity<'_, T> {
    async fn run(self) -> Result<Option<T>, Error> {
        let (key, read) = read(&self.table, self.key, self.select, &self.extensions).await?;
        let resolved = read.map(|(mut entity, _): (Stored<DynamicEntity>, _)| {
            entity.note_decrypted(self.decrypted_by);
            (self.resolve)(entity)
        });
        let resolved = resolved.transpose();
        resolved.map_err(|error| {
            Error::aborted(error)
                .with_operation(OPERATION)
                .with_key(&key)
        })
    }
}

action!(impl['a, T: Send + 'a] ResolveEntity<'a, T>, table.pipeline => 'a, Option<T>);
debug_by_fields!(ResolveEntity<'a, T> { table, key });

/// Reads an entity as an `E`, and gives back its key, the value and the content.
async fn read<E: TableEntity>(
    table: &Table,
    key: Result<EntityKey, EntityError>,
    select: Option<Vec<String>>,
    extensions: &Extensions,
) -> Result<(EntityKey, Option<(Stored<E>, Bytes)>), Error> {
    let key = key.map_err(|error| Error::input(error).with_operation(OPERATION))?;
    let mut run = table.pipeline.begin(OPERATION);
    let found = find(&mut run, table, &key, select, extensions).await;
    Ok((key, run.end(found)?))
}

/// Returns true if an entity that was just read counts as missing.
pub(crate) fn is_hidden(run: &OperationRun<'_>, extensions: &Extensions, content: &Bytes) -> bool {
    let now = run.pipeline().service_now();
    read_entity(content).is_ok_and(|entity| extensions.hides(&entity, now))
}

/// Reads an entity as an `E` for the operation of that run, and gives back the value and the
/// content; `None` where it does not exist, or is hidden. A hidden entity is not opened.
pub(crate) async fn find<E: TableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    select: Option<Vec<String>>,
    extensions: &Extensions,
) -> Result<Option<(Stored<E>, Bytes)>, Error> {
    extensions.begin(table);
    match fetch(run, Effect::Read, table, key, select).await {
        Ok(found) if extensions.can_hide() && is_hidden(run, extensions, &found.content) => {
            Ok(None)
        }
        Ok(found)
            if !extensions.is_empty()
                && !Box::pin(extensions.are_present(run, table, key, &found.content)).await? =>
        {
            Ok(None)
        }
        Ok(RawEntity { content, etag }) => {
            let read = opened(table, extensions, key, content).await;
            let read = read.and_then(|content| Ok((stored(&content, &etag)?, content)));
            let read = read.map_err(|error| run.annotate(error).with_key(key));
            read.map(Some)
        }
        // A missing table is an error, a missing entity is not.
        Err(error) if error.is_not_found() => {
            run.note_expected_error(&error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The content of an entity as the program wrote it.
pub(crate) async fn opened(
    table: &Table,
    extensions: &Extensions,
    key: &EntityKey,
    mut content: Bytes,
) -> Result<Bytes, Error> {
    if extensions.is_empty() {
        return Ok(content);
    }
    let response = Opened {
        content: &content,
        is_page: false,
        select: None,
    };
    for open in Box::pin(extensions.open(table, response)).await? {
        let entity = read_entity(&content).map_err(Error::response)?;
        let opened = open.open(&entity, Some(key), None);
        content = opened.map_err(Error::entity)?;
    }
    Ok(content)
}

/// Reads what was found as an `E`.
pub(crate) async fn read_content<E: TableEntity>(
    table: &Table,
    extensions: &Extensions,
    key: &EntityKey,
    found: RawEntity,
) -> Result<Stored<E>, Error> {
    let content = opened(table, extensions, key, found.content).await?;
    stored(&content, &found.etag)
}

/// Reads an entity at the primary: as it is now, also for a client that reads the secondary.
pub(crate) async fn get_now(
    table: &Table,
    key: &EntityKey,
) -> Result<Option<Stored<DynamicEntity>>, Error> {
    let mut run = table.pipeline.begin(OPERATION);
    let found = match fetch(&mut run, Effect::ReadNow, table, key, None).await {
        Ok(RawEntity { content, etag }) => stored(&content, &etag)
            .map(Some)
            .map_err(|error| run.annotate(error).with_key(key)),
        Err(error) if error.is_not_found() => {
            run.note_expected_error(&error);
            Ok(None)
        }
        Err(error) => Err(error),
    };
    run.end(found)
}

/// The entity after a conditional write that failed because of its state, or whose response was
/// lost; and the error. Another error is returned at once.
///
/// A response that refuses a write does not show that the write was not carried out: the network
/// may have delivered the request twice.
pub(crate) async fn found_after(
    table: &Table,
    key: &EntityKey,
    error: Error,
) -> Result<(Option<Stored<DynamicEntity>>, Error), Error> {
    let refused = error.is_conflict() || error.is_precondition_failed() || error.is_not_found();
    let now = match error.current() {
        Some(CurrentState::Present(now)) => Some(now.read()?),
        Some(CurrentState::Missing) => None,
        None if refused => {
            let now = get_now(table, key).await;
            now.map_err(|error| error.into_outcome_unknown(CurrentState::Unread))?
        }
        Some(CurrentState::Unread) | None => return Err(error),
    };
    Ok((now, error))
}

/// Decodes an entity.
pub(crate) fn stored<E: TableEntity>(content: &Bytes, etag: &ETag) -> Result<Stored<E>, Error> {
    let read = read_entity_by(content, |mut entity| Stored::read(&mut entity, Some(etag)));
    read.map_err(Error::response)?.map_err(Error::entity)
}

/// The content and the ETag of an entity, as they are stored.
#[derive(Clone)]
pub(crate) struct RawEntity {
    pub(crate) content: Bytes,
    pub(crate) etag: ETag,
}

/// Reads an entity as it is stored, for the operation of that run.
pub(crate) async fn fetch(
    run: &mut OperationRun<'_>,
    effect: Effect,
    table: &Table,
    key: &EntityKey,
    select: Option<Vec<String>>,
) -> Result<RawEntity, Error> {
    let table = table.checked_name(run.operation())?;
    run.report().access = Some(AccessClass::Point);
    let fetched = request(run, effect, table, key, select).await;
    let Response { etag, content } = fetched.map_err(|error| error.with_key(key))?;
    run.report().entities = 1;
    let etag = entity_etag(etag, &content).map_err(|error| run.annotate(error).with_key(key))?;
    Ok(RawEntity { content, etag })
}

/// The ETag of an entity that was read: the header of the response, or what the body has where a
/// backend sends no header.
pub(crate) fn entity_etag(header: Option<ETag>, content: &Bytes) -> Result<ETag, Error> {
    if let Some(etag) = header {
        return Ok(etag);
    }
    let key = read_entity_by(content, |entity| read_key(&entity, true));
    let (_, etag) = key.map_err(Error::response)?.map_err(Error::entity)?;
    etag.ok_or_else(|| Error::response("the entity has no ETag"))
}

/// Sends the request for an entity.
pub(crate) async fn request(
    run: &mut OperationRun<'_>,
    effect: Effect,
    table: TableName,
    key: &EntityKey,
    select: Option<Vec<String>>,
) -> Result<Response, Error> {
    let response = send(run, effect, table, key, select).await?;
    Ok(Response::decode(response))
}

/// As [`request`], with all headers of the response.
pub(crate) async fn send(
    run: &mut OperationRun<'_>,
    effect: Effect,
    table: TableName,
    key: &EntityKey,
    select: Option<Vec<String>>,
) -> Result<HttpResponse<Bytes>, Error> {
    let request = Request {
        table,
        key: key.clone(),
        select,
        level: MetadataLevel::Minimal,
    };
    let request = request.encode(&run.pipeline().endpoint);
    send_for(run, effect, key, &request).await
}

/// Sends a request for the entity of that key. A response with another entity is that to another
/// request, and is not believed.
pub(crate) async fn send_for(
    run: &mut OperationRun<'_>,
    effect: Effect,
    key: &EntityKey,
    request: &HttpRequest<Bytes>,
) -> Result<HttpResponse<Bytes>, Error> {
    let inspect = |response: &HttpResponse<Bytes>| {
        // What cannot be read is reported where it is decoded.
        let is_other = has_other_key(response.body(), key).unwrap_or_default();
        is_other.then_some(NoSuccess::OfOtherEntity)
    };
    let options = SendOptions {
        inspect: &inspect,
        ..SendOptions::default()
    };
    let sent = run.send_with(effect, request, options);
    Ok(sent.await?.response)
}

const OPERATION: &str = "get entity";
