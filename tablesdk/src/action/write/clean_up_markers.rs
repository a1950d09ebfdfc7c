//! `clean_up_markers`: deletes the markers that exactly-once operations left behind.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use tablesdk_protocol::wire::json::JsonEntity;
use tablesdk_protocol::{EntityKey, IfMatch, PartitionKey, TableName, Timestamp};

use super::ambiguous_write::resolve_without_entity;
use super::change::{ChangeKind, EntityChange};
use super::encoded::EncodedEntity;
use super::keep_marker::{KEEP_SECONDS, KeepMarker, PREFIX, PREFIX_END, is_marker};
use crate::action::query::own_pages::OwnPages;
use crate::action::query::request::QueryRequest;
use crate::action::refusal::refused;
use crate::entity::EntityError;
use crate::error::Error;
use crate::filter::rows_in_partition;
use crate::pipeline::{Effect, Table};

/// Deletes old markers of one partition. See
/// [`TableClient::clean_up_markers`](crate::TableClient::clean_up_markers).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct CleanUpMarkers {
    table: Table,
    partition: Result<PartitionKey, EntityError>,
    older_than: Duration,
}

impl CleanUpMarkers {
    pub(crate) const fn new(table: Table, partition: Result<PartitionKey, EntityError>) -> Self {
        Self {
            table,
            partition,
            older_than: OLDER_THAN,
        }
    }

    /// Deletes only markers that are older than this age; one hour by default. The age must exceed
    /// the longest time that any client of the table tries an operation plus the longest time that
    /// a request can be in flight. An age below the [deadline](crate::RetryPolicy::deadline) of
    /// this client plus one minute is refused; longer deadlines of single calls are not known here.
    /// The age is measured with this machine's clock. A marker that is to be
    /// [kept](crate::action::InsertEntity::exactly_once_for) longer is kept for that time.
    pub const fn older_than(mut self, age: Duration) -> Self {
        self.older_than = age;
        self
    }

    async fn run(self) -> Result<usize, Error> {
        let partition = self.partition.map_err(|error| refused(OPERATION, error))?;
        let table = self.table.checked_name(OPERATION)?;
        let (now, deadline) = self.table.pipeline.now_and_deadline();
        let least = deadline.saturating_add(IN_FLIGHT);
        if self.older_than < least {
            let age = self.older_than;
            return Err(refused(OPERATION, TooYoung { age, least }));
        }
        let select = ["PartitionKey", "RowKey", "Timestamp", KEEP_SECONDS];
        let select = Some(select.map(str::to_owned).to_vec());
        let filter = rows_in_partition(partition.as_str(), PREFIX, PREFIX_END);
        let mut pages = OwnPages::new(QueryRequest::own(table.clone(), filter, select));
        let mut deleted_count = 0;
        loop {
            let request = pages.request(&self.table.pipeline)?;
            let sent = self
                .table
                .pipeline
                .send(OPERATION, Effect::ReadNow, &request);
            let old = pages.read(sent.await?, |entity| {
                let KeepMarker(keep) = KeepMarker::read(entity)?;
                let is_old = age(entity, now)? >= self.older_than.max(keep);
                marker_key(entity).filter(|_| is_old)
            });
            let old = old.map_err(|error| error.with_operation(OPERATION))?;
            let old = old.into_iter().flatten();
            let requests = old.map(|key| delete(&self.table, &table, key));
            let deleted: Vec<bool> = stream::iter(requests)
                .buffer_unordered(CONCURRENCY)
                .try_collect()
                .await?;
            deleted_count += deleted.into_iter().filter(|deleted| *deleted).count();
            if pages.is_last() {
                return Ok(deleted_count);
            }
            let advanced = pages.advance();
            advanced.map_err(|error| error.with_operation(OPERATION))?;
        }
    }
}

action!(impl[] CleanUpMarkers, table.pipeline => usize);

fn marker_key(entity: &JsonEntity<'_>) -> Option<EntityKey> {
    let text = |name| entity.text(name).ok().flatten();
    let row_key = text("RowKey")?;
    is_marker(row_key)
        .then(|| EntityKey::new(text("PartitionKey")?, row_key).ok())
        .flatten()
}

/// The age of a marker, if it is known.
fn age(entity: &JsonEntity<'_>, now: Timestamp) -> Option<Duration> {
    let written = entity.timestamp().ok().flatten()?;
    Some(if written < now {
        now.abs_diff(written)
    } else {
        Duration::ZERO
    })
}

/// Deletes a marker. `false` if it does not exist.
async fn delete(client: &Table, table: &TableName, key: EntityKey) -> Result<bool, Error> {
    let (kind, entity) = (ChangeKind::Delete(IfMatch::Any), EncodedEntity::of_key(key));
    let delete = EntityChange::of(table.clone(), kind, entity);
    let request = delete.change.encode(client.endpoint());
    let resolve = |sent: Result<_, Error>| match sent {
        // Another client deleted it.
        Err(error) if error.is_not_found() => Ok(error.is_ambiguous()),
        sent => resolve_without_entity(OPERATION, sent, &[StatusCode::NO_CONTENT])
            .map(|()| true)
            .map_err(|error| error.with_key(&delete.key)),
    };
    client.pipeline.write(OPERATION, &request, resolve).await
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a marker of {age:?} may still be needed: it must be {least:?} old")]
struct TooYoung {
    age: Duration,
    least: Duration,
}

const OPERATION: &str = "clean up markers";
const OLDER_THAN: Duration = Duration::from_secs(3600);
/// The maximum time that a request is in flight after its client stopped waiting: the service takes
/// 30 seconds at most.
const IN_FLIGHT: Duration = Duration::from_secs(60);
const CONCURRENCY: usize = 16;
