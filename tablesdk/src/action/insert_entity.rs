//! `insert`: Insert Entity.

use std::error::Error as StdError;
use std::marker::PhantomData;

use bytes::Bytes;
use http::StatusCode;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::insert_entity::{Request, Response};
use tablesdk_protocol::operation::{EntityBody, Prefer};
use tablesdk_protocol::wire::json::{MetadataLevel, read_entity};
use tablesdk_protocol::{ETag, EntityKey, Timestamp};

use super::EncodedEntity;
use super::ambiguous_write::{WriteAttempt, check_status, malformed_success, resolve};
use super::exactly_once::{self, KeepMarker};
use super::get_entity::fetch;
use crate::entity::{PropertyReader, Stored, TableEntity, WritableEntity};
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, Table};

/// Inserts an entity. See [`TableClient::insert`](crate::TableClient::insert).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// let ada = Employee::new("Sales", "1", "Ada");
/// // Where answers are lost, a marker in the same partition proves what came of it.
/// let stored = table.insert(&ada).exactly_once().await?;
/// assert!(table.insert(&ada).exactly_once().await.unwrap_err().is_conflict());
/// # drop(stored);
/// # Ok(())
/// # }
/// ```
#[must_use = "actions do nothing until awaited"]
pub struct InsertEntity<E> {
    table: Table,
    entity: Result<EncodedEntity, Error>,
    exactly_once: Option<KeepMarker>,
    marker: PhantomData<fn() -> E>,
}

impl<E: WritableEntity> InsertEntity<E> {
    pub(crate) fn new(table: Table, entity: &E) -> Self {
        Self::encoded(table, EncodedEntity::new(OPERATION, entity))
    }

    pub(super) const fn encoded(table: Table, entity: Result<EncodedEntity, Error>) -> Self {
        Self {
            table,
            entity,
            exactly_once: None,
            marker: PhantomData,
        }
    }

    async fn run(self) -> Result<Stored<E>, Error> {
        let EncodedEntity { key, body } = self.entity?;
        let failed = |error: Error| error.with_operation(OPERATION).with_key(&key);
        // Before it is sent, since nothing may fail afterwards that is not about the service.
        let now = ETag::from_timestamp(Timestamp::UNIX_EPOCH);
        read_back::<E>(&body, &now)
            .map_err(|error| failed(Error::input(Unreadable { source: error })))?;
        let request = Request {
            table: self.table.checked_name(OPERATION)?,
            entity: EntityBody::from_bytes(body),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        };
        let mut run = self.table.begin(OPERATION);
        let stored = insert(&mut run, &self.table, request, key, self.exactly_once).await;
        run.end(stored)
    }
}

async fn insert<E: WritableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    request: Request,
    key: EntityKey,
    once: Option<KeepMarker>,
) -> Result<Stored<E>, Error> {
    let body = request.entity.as_bytes();
    let etag = match send(run, &request, &key, once).await {
        Ok(etag) => etag,
        Err(error) => {
            let sent = WriteAttempt {
                table: &request.table,
                key: &key,
                body: Some(body),
                whole: true,
            };
            let (row, error) = resolve(run, sent, error).await?;
            return Err(error.into_outcome_unknown(row));
        }
    };
    // What was sent is what is stored, and needs no way back over the network. It is read as any answer is read, so
    // that no field shows what was not stored.
    match read_back::<E>(body, &etag) {
        Ok(value) => Ok(Stored::new(value, key, etag)),
        // A field wants the time, and this backend's ETags do not hold it.
        Err(_) => fetch_back(run, table, &key, &etag)
            .await
            .map_err(|error| run.annotate(error).with_key(&key)),
    }
}

/// Sends the request, and gives back the version of the new entity.
async fn send(
    run: &mut OperationRun<'_>,
    request: &Request,
    key: &EntityKey,
    once: Option<KeepMarker>,
) -> Result<ETag, Error> {
    if let Some(keep) = once {
        let changes = vec![Change::Insert(request.clone())];
        let keys = std::slice::from_ref(key);
        let etags = exactly_once::commit(run, &request.table, keys, changes, keep).await;
        let etags = etags.map_err(Error::without_batch_index)?;
        run.note_entities(1);
        return etags
            .into_iter()
            .flatten()
            .next()
            .ok_or_else(|| malformed_success("the answer has no version of the entity"));
    }
    let encoded = request.encode(&run.pipeline().endpoint);
    let answer = run.send(Effect::Write, &encoded).await?;
    run.note_entities(1);
    check_status(&answer, &[StatusCode::CREATED, StatusCode::NO_CONTENT])?;
    let decoded = Response::decode(answer.response).map_err(malformed_success)?;
    Ok(decoded.etag)
}

/// What an entity that was written looks like when it is read.
fn read_back<E: TableEntity>(body: &Bytes, etag: &ETag) -> Result<E, Cause> {
    let sent = read_entity(body)?;
    Ok(E::read(&mut PropertyReader::new(&sent, Some(etag)))?)
}

/// Fetches an entity that was stored as that version.
async fn fetch_back<E: TableEntity>(
    run: &mut OperationRun<'_>,
    table: &Table,
    key: &EntityKey,
    etag: &ETag,
) -> Result<Stored<E>, Error> {
    let unshown = |why| {
        Error::response(Unshown {
            etag: etag.clone(),
            why,
        })
    };
    let fetched = fetch(run, Effect::ReadNow, table, key, E::SCHEMA.select()).await;
    let (content, header) = fetched.map_err(|error| unshown(error.into()))?;
    let entity = read_entity(&content).map_err(|error| unshown(error.into()))?;
    let stored = Stored::<E>::read(&entity, header).map_err(|error| unshown(error.into()))?;
    if stored.etag() == etag {
        Ok(stored)
    } else {
        Err(unshown("it was written again since".into()))
    }
}

type Cause = Box<dyn StdError + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[error("it could be written, and not be read again")]
struct Unreadable {
    source: Cause,
}

#[derive(Debug, thiserror::Error)]
#[error("the entity was stored as version {etag}, and cannot be shown")]
struct Unshown {
    etag: ETag,
    #[source]
    why: Cause,
}

awaitable!(impl[E: WritableEntity] InsertEntity<E> => Stored<E>);
exactly_once_options!(
    impl[E: WritableEntity] InsertEntity<E>;
    /// Determines the outcome even when responses are lost. See [the guide](crate::guide::errors_and_retries#exactly-once) for what
    /// it costs.
    ///
    /// ```
    #[doc = include_str!("../docs/employees.md")]
    /// table.insert(&Employee::new("Sales", "1", "Ada")).exactly_once().await?;
    /// // No trace is left of how that was made sure.
    /// assert_eq!(table.query::<Employee>().count().await?, 1);
    ///
    /// // Keeps the marker for ten minutes: `sweep_markers` deletes it later.
    ///     ///
    /// let grace = Employee::new("Sales", "2", "Grace");
    /// table.insert(&grace).exactly_once().keep_marker(Duration::from_secs(600)).await?;
    /// assert_eq!(table.sweep_markers("Sales").await?, 0);
    /// # Ok(())
    /// # }
    /// ```
);

debug_by_fields!(InsertEntity<E> { table, entity, exactly_once });

const OPERATION: &str = "insert entity";
