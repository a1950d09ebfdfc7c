//! Applies a step to its entity. Each request is conditional on what was read, so a step that is
//! applied twice, or late, has one effect.

use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{EntityKey, IfMatch, TableName, Timestamp};
use tokio::time::Instant;

use super::entry::{Entry, Kind, Row, change, delete};
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::response::check_status;
use crate::action::{CreateTable, get_entity};
use crate::entity::DynamicEntity;
use crate::error::Error;
use crate::pipeline::{Effect, OperationRun, PipelineHandle, SendOptions, Table};

/// No request is applied later than this time after the read of the log on which it rests. Deletes
/// are looked at once more after it.
pub(super) const IN_FLIGHT: Duration = Duration::from_secs(3600);

/// When the log was read that a request rests on. The time of a suspended machine counts, too:
/// `Instant` leaves it out on some systems.
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
    fn is_too_old(self, pipeline: &PipelineHandle) -> bool {
        let elapsed = self.instant.elapsed();
        elapsed.max(pipeline.now().abs_diff(self.time)) > IN_FLIGHT / 2
    }
}

/// Applies a step to its entity in that account. `removed` is the greatest number of an earlier
/// delete step of this entity: what an even earlier step has written since is as if it were not
/// there. `false` if the log was read too long ago.
pub(super) async fn apply(
    account: &PipelineHandle,
    entry: &Entry,
    removed: Option<u64>,
    basis: Basis,
) -> Result<bool, Error> {
    let once = async || {
        let mut run = account.begin(OPERATION);
        let applied = apply_to(&mut run, entry, removed, basis).await;
        let applied = applied.map_err(|error| run.annotate(error));
        run.end(applied)
    };
    match (once().await, entry.target()) {
        (Err(error), Some((table, _))) if error.is_table_not_found() && entry.creates_table() => {
            let table = Table::new(account.clone(), table.as_str().to_owned());
            CreateTable::new(table).if_missing().await?;
            once().await
        }
        (applied, _) => applied,
    }
}

async fn apply_to(
    run: &mut OperationRun<'_>,
    entry: &Entry,
    removed: Option<u64>,
    basis: Basis,
) -> Result<bool, Error> {
    let Some((table, key)) = entry.target() else {
        return Err(Error::input("the step has no key"));
    };
    let mut round = 0;
    loop {
        round += 1;
        let found = find(run, &table, &key).await?;
        let order = found.as_ref().and_then(|found| entry.order_of(found));
        // Its effect, or that of a later one.
        if order.is_some_and(|number| number >= entry.number) {
            return Ok(true);
        }
        let kind = match (entry.kind(), found.as_ref().map(is_as_read)) {
            (Kind::Delete, None) => return Ok(true),
            (Kind::Delete, Some(if_match)) => ChangeKind::Delete(if_match),
            (_, None) => ChangeKind::Insert,
            (Kind::Merge, Some(if_match)) if order.is_none() || order > removed => {
                ChangeKind::Update(Mode::Merge, Some(if_match))
            }
            (_, Some(if_match)) => ChangeKind::Update(Mode::Replace, Some(if_match)),
        };
        if basis.is_too_old(run.pipeline()) {
            return Ok(false);
        }
        let change = match kind {
            ChangeKind::Delete(if_match) => delete(&table, &key, if_match),
            kind => {
                let entity = DynamicEntity::of_key(&key).with_properties(entry.content());
                change(&table, kind, &entity)?
            }
        };
        let Err(error) = write(run, &change).await else {
            return Ok(true);
        };
        // After a lost response, the stamp shows whether it was this step.
        let starts_over = error.is_out_of_date() || error.is_ambiguous();
        if !starts_over || round == ROUNDS || !run.pause_before_round(round).await {
            return Err(error.with_key(&key));
        }
    }
}

/// Deletes the entity of a delete step again, if an earlier step of the same outbox was carried out
/// late. No such request is in flight any more.
pub(super) async fn sweep(run: &mut OperationRun<'_>, grave: &Entry) -> Result<(), Error> {
    let Some((table, key)) = grave.target() else {
        return Ok(());
    };
    let found = match find(run, &table, &key).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(()),
        Err(error) if error.is_table_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    match grave.order_of(&found) {
        Some(number) if number < grave.number => {
            write(run, &delete(&table, &key, is_as_read(&found))).await
        }
        _ => Ok(()),
    }
}

fn is_as_read(found: &Row) -> IfMatch {
    IfMatch::ETag(found.etag().clone())
}

async fn find(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
) -> Result<Option<Row>, Error> {
    match get_entity::request(run, Effect::ReadNow, table.clone(), key, None).await {
        Ok(found) => {
            let etag = get_entity::entity_etag(found.etag, &found.content);
            let found = etag.and_then(|etag| get_entity::stored(&found.content, &etag));
            let found = found.map_err(|error| run.annotate(error).with_key(key));
            found.map(Some)
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.with_key(key)),
    }
}

async fn write(run: &mut OperationRun<'_>, change: &EntityChange) -> Result<(), Error> {
    let request = change.change.encode(&run.pipeline().endpoint);
    let options = SendOptions {
        // A retry of an insert would not know how old its basis is. What has an ETag is refused
        // when it is late.
        attempts: matches!(change.change, Change::Insert(_)).then_some(1),
        ..SendOptions::default()
    };
    let sent = run.send_with(Effect::Write, &request, options).await?;
    let statuses = [StatusCode::CREATED, StatusCode::NO_CONTENT];
    check_status(&sent.response, &statuses).map_err(|error| run.annotate(error))
}

pub(super) const OPERATION: &str = "apply steps";
const ROUNDS: u32 = 5;
