//! Applies a step to its entity. Each request is conditional on what was read, so a step that is applied twice, or late, has one effect.

use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::operation::get_entity::Response;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::wire::json::read_entity;
use tablesdk_protocol::{ETag, EntityKey, IfMatch, TableName, Timestamp};
use tokio::time::Instant;

use super::entry::{Entry, Kind, STAMP, change};
use crate::action::get_entity;
use crate::action::write::ambiguous_write::check_status;
use crate::action::write::change::ChangeKind;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, PipelineHandle, SendOptions};

/// No request is applied later than this time after the read of the log on which it rests. Deletes are looked at once more after it.
pub(super) const IN_FLIGHT: Duration = Duration::from_secs(3600);

/// When the log was read that a request rests on. The time of a suspended machine counts, too: `Instant` leaves it out on some systems.
#[derive(Clone, Copy)]
pub(super) struct Basis {
    instant: Instant,
    time: Timestamp,
}

impl Basis {
    pub(super) fn now(pipeline: &PipelineHandle) -> Self {
        Self {
            instant: Instant::now(),
            time: pipeline.now(),
        }
    }

    /// Half of the time is left for the request itself.
    pub(super) fn is_too_old(self, pipeline: &PipelineHandle) -> bool {
        let elapsed = self.instant.elapsed();
        elapsed.max(pipeline.now().abs_diff(self.time)) > IN_FLIGHT / 2
    }
}

/// What came of applying a step.
pub(super) enum Applied {
    Done,
    /// The log was read too long ago.
    TooLate,
}

/// What is stored under the key of the entity of a step.
struct Found {
    etag: ETag,
    stamp: Option<String>,
}

/// Applies a step to its entity. `removed` is the greatest number of an earlier delete step of this entity: what an even earlier step
/// has written since is as if it were not there.
pub(super) async fn apply(
    run: &mut OperationRun<'_>,
    entry: &Entry,
    removed: Option<u64>,
    basis: Basis,
) -> Result<Applied, Error> {
    let Some((table, key)) = entry.target_key() else {
        return Err(run.annotate(Error::input("the step has no key")));
    };
    let mut round = 0;
    loop {
        round += 1;
        let found = find(run, &table, &key).await?;
        let if_match = match &found {
            Some(found) if entry.is_applied_in(found.stamp.as_deref()) => return Ok(Applied::Done),
            Some(found) => Some(IfMatch::ETag(found.etag.clone())),
            None => None,
        };
        let order = found.and_then(|found| entry.order_of(found.stamp.as_deref()));
        let kind = match (entry.kind, if_match) {
            (Kind::Delete, None) => return Ok(Applied::Done),
            (Kind::Delete, Some(if_match)) => ChangeKind::Delete(if_match),
            (_, None) => ChangeKind::Insert,
            (Kind::Merge, Some(if_match)) if order.is_none() || order > removed => {
                ChangeKind::Update(Mode::Merge, Some(if_match))
            }
            (_, Some(if_match)) => ChangeKind::Update(Mode::Replace, Some(if_match)),
        };
        if basis.is_too_old(run.pipeline()) {
            return Ok(Applied::TooLate);
        }
        let Err(error) = write(run, &table, &key, kind, entry).await else {
            return Ok(Applied::Done);
        };
        let is_other =
            error.is_conflict() || error.is_precondition_failed() || error.is_not_found();
        // After a lost response, the stamp shows whether it was this step.
        let starts_over = is_other || error.is_ambiguous();
        if !starts_over || round == ROUNDS || !run.pause_before_round(round).await {
            return Err(error.with_key(&key));
        }
    }
}

/// Deletes the entity of a delete step again, if an earlier step of the same outbox was carried out late. No such request is in flight
/// any more.
pub(super) async fn sweep(run: &mut OperationRun<'_>, grave: &Entry) -> Result<(), Error> {
    let Some((table, key)) = grave.target_key() else {
        return Ok(());
    };
    let found = match find(run, &table, &key).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(()),
        Err(error) if error.is_table_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    match grave.order_of(found.stamp.as_deref()) {
        Some(number) if number < grave.number => {}
        _ => return Ok(()),
    }
    let kind = ChangeKind::Delete(IfMatch::ETag(found.etag));
    write(run, &table, &key, kind, grave).await
}

async fn find(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
) -> Result<Option<Found>, Error> {
    let read = get_entity::request(run, Effect::ReadNow, table.clone(), key, None).await;
    let Response { etag, content } = match read {
        Ok(response) => response,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.with_key(key)),
    };
    let failed = |error| run.annotate(error).with_key(key);
    let entity = read_entity(&content).map_err(|error| failed(Error::response(error)))?;
    let stamp = entity.text(STAMP).ok().flatten().map(str::to_owned);
    let etag = get_entity::entity_etag(etag, &content).map_err(failed)?;
    Ok(Some(Found { etag, stamp }))
}

/// Sends a change of the entity of a step.
async fn write(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    kind: ChangeKind,
    entry: &Entry,
) -> Result<(), Error> {
    // A retry of an insert would not know how old its basis is. What has an ETag is refused when it is late.
    let attempts = matches!(kind, ChangeKind::Insert).then_some(1);
    let values = match kind {
        ChangeKind::Delete(_) => Vec::new(),
        ChangeKind::Insert | ChangeKind::Update(..) => entry.content(),
    };
    let change = change(table, key, kind, &values).map_err(|error| run.annotate(error))?;
    let request = change.change.encode(&run.pipeline().endpoint);
    let options = SendOptions {
        attempts,
        ..SendOptions::default()
    };
    let sent = run.send_with(Effect::Write, &request, options).await?;
    let statuses = [StatusCode::CREATED, StatusCode::NO_CONTENT];
    check_status(&sent.response, &statuses).map_err(|error| run.annotate(error))
}

const ROUNDS: u32 = 5;
