//! Reads of entries and of the entities that have them: any entity, as it is stored.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tablesdk_protocol::operation::get_entity::Response;
use tablesdk_protocol::wire::json::{read_entity, read_entity_by};
use tablesdk_protocol::{ETag, EntityKey, Guid, TableName, Timestamp, Value};

use super::part::values_in;
use crate::action::get_entity::{entity_etag, send};
use crate::entity::read_key;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, PipelineHandle, date_of};

/// An entity as it is stored.
pub(super) struct DatedEntity {
    pub(super) content: Bytes,
    pub(super) etag: ETag,
    /// The time of the service.
    now: Timestamp,
}

impl DatedEntity {
    /// Returns true if the entity has the properties that were sent, and no others but the id of a
    /// write.
    pub(super) fn equals(&self, body: &Bytes) -> bool {
        let (Ok(mut found), Ok(sent)) = (values_in(&self.content), values_in(body)) else {
            return false;
        };
        found.retain(|(name, _)| name != WRITE_ID);
        found.len() == sent.len() && sent.iter().all(|property| found.contains(property))
    }

    /// Returns true if the last write of the entity had that id: the write was carried out,
    /// whatever its response was.
    pub(super) fn was_written_by(&self, id: &Guid) -> bool {
        let values = values_in(&self.content).unwrap_or_default();
        values.contains(&(WRITE_ID.to_owned(), Value::Guid(*id)))
    }

    /// Returns true if no write that depends on this entity can still be in flight.
    pub(super) fn is_old(&self) -> bool {
        let entity = read_entity(&self.content).ok();
        let written = entity.and_then(|entity| entity.timestamp().ok().flatten());
        written.is_some_and(|written| self.now > written && self.now.abs_diff(written) > GRACE)
    }
}

/// An entity; `None` where it does not exist. Its table need not be the one that the operation is
/// about.
pub(super) async fn read(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
) -> Result<Option<DatedEntity>, Error> {
    if run.table_name() == Some(table.as_str()) {
        return read_here(run, table, key).await;
    }
    let handle = handle_of(run, table);
    let mut run = handle.begin(OPERATION);
    let found = read_here(&mut run, table, key).await;
    run.end(found)
}

async fn read_here(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
) -> Result<Option<DatedEntity>, Error> {
    let response = match send(run, Effect::ReadNow, table.clone(), key, None).await {
        Ok(response) => response,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.with_key(key)),
    };
    // A server in the same process has the client's clock, and sends no date.
    let now = date_of(response.headers()).unwrap_or_else(|| run.pipeline().now());
    let Response { etag, content } = Response::decode(response);
    let etag = entity_etag(etag, &content).and_then(|etag| {
        // Otherwise an object of a gateway would be taken for what another program has stored.
        let found = read_entity_by(&content, |entity| read_key(&entity, false));
        found.map_err(Error::response)?.map_err(Error::entity)?;
        Ok(etag)
    });
    let etag = etag.map_err(|error| run.annotate(error).with_key(key))?;
    Ok(Some(DatedEntity { content, etag, now }))
}

/// Reads entities, several at a time.
pub(super) async fn read_all(
    run: &mut OperationRun<'_>,
    table: &TableName,
    keys: Vec<EntityKey>,
) -> Result<Vec<Option<DatedEntity>>, Error> {
    if let [key] = keys.as_slice() {
        return Ok(vec![read(run, table, key).await?]);
    }
    let handle = handle_of(run, table);
    let found = stream::iter(keys).map(|key| {
        let (handle, table) = (handle.clone(), table.clone());
        async move {
            let mut run = handle.begin(OPERATION);
            let found = read(&mut run, &table, &key).await;
            run.end(found)
        }
    });
    found.buffered(CONCURRENCY).try_collect().await
}

/// For requests to a table that are sent beside each other, until the deadline of the operation.
pub(super) fn handle_of(run: &OperationRun<'_>, table: &TableName) -> PipelineHandle {
    let mut handle = run.pipeline().clone();
    if run.table_name() != Some(table.as_str()) {
        handle = handle.of_table(&Arc::from(table.as_str()));
    }
    handle.deadline = run.deadline().remaining();
    handle
}

const OPERATION: &str = "read entry of an index";
/// The longest time from the write of an entry to that of its entity.
pub(super) const GRACE: Duration = Duration::from_secs(3600);
/// The property of an entry with the id of the write that was the last, where that write has one.
/// No entry needs it.
pub(super) const WRITE_ID: &str = "TablesdkWriteId";
/// How many entries are read or written at a time.
pub(super) const CONCURRENCY: usize = 8;
