//! Exactly once: changes are sent together with a marker, an entity with a random name, in one
//! entity group transaction. The changes were carried out if and only if this marker is there.
//!
//! An ambiguous outcome is resolved by trying to insert the marker under the same name, with
//! another state. If that succeeds, no attempt was carried out, and no attempt still in flight can
//! be, since it would insert the marker again. If it fails, the existing marker shows the outcome.
//! The marker is the first change, so that a retry of changes that were carried out is refused
//! because of it.
//!
//! Knows nothing of what the changes are for.

use http::StatusCode;
use tablesdk_protocol::operation::get_entity::Response;
use tablesdk_protocol::wire::json::read_entity;
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, IfMatch, TableName, Value};

use super::ambiguous_write::read_current;
use super::batch_request::BatchRequest;
use super::change::{ChangeKind, EntityChange};
use super::encoded::EncodedEntity;
use super::keep_marker::{KEEP_SECONDS, KeepMarker, PREFIX};
use super::response::check_status;
use crate::action::get_entity;
use crate::entity::write_values;
use crate::error::{CurrentState, Error};
use crate::pipeline::{Effect, OperationRun, SendOptions};
use crate::random::random_guid;

/// Carries changes out exactly once, or not at all, and returns the new ETags in their order;
/// `None` for a delete.
///
/// Where the response was lost and the entity was written again since, the ETag is one that is no
/// longer current.
///
/// The error is [ambiguous](Error::is_ambiguous) only where not even the marker could be read or
/// written.
pub(crate) async fn commit(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    keep: KeepMarker,
) -> Result<Vec<Option<ETag>>, Error> {
    let Some(first) = changes.first() else {
        return Ok(Vec::new());
    };
    let marker = Marker::new(run, first, keep)?;
    let insert = marker.insert(MarkerState::Committed)?;
    let all = [&insert].into_iter().chain(changes);
    let request = BatchRequest::new(run, all.map(|change| &change.change))?;
    let error = match request.send(run).await {
        Ok(done) => {
            // An attempt that is still in flight must find the marker.
            if !done.is_after_ambiguous && keep.0.is_zero() {
                marker.delete(run).await;
            }
            return Ok(done.etags.into_iter().skip(1).collect());
        }
        Err(error) => error,
    };
    let index = error.batch_index();
    // Even at the first attempt: a proxy may have sent it twice.
    let met_itself = index == Some(0) && error.code() == Some(&ErrorCode::EntityAlreadyExists);
    let error = match index {
        Some(index) if index > 0 => error.with_batch_index(index - 1),
        _ => error.without_batch_index(),
    };
    if !error.is_ambiguous() && !met_itself {
        return Err(error);
    }
    // A backend that does not report which change it refuses may have refused another one: then no
    // marker exists.
    let found = if met_itself {
        marker.read(run).await
    } else {
        None
    };
    let outcome = match found {
        Some(outcome) => outcome,
        None => marker.decide(run).await?,
    };
    match outcome {
        MarkerOutcome::Committed { marker: over } => Ok(current_etags(run, changes, &over).await),
        MarkerOutcome::Cancelled => Err(run.annotate(error.into_not_done())),
        MarkerOutcome::Unknown => Err(run.annotate(error.with_ambiguous(true))),
    }
}

/// The entity that proves that the changes in its transaction were carried out.
struct Marker<'t> {
    table: &'t TableName,
    key: EntityKey,
    operation: &'static str,
    keep: KeepMarker,
}

#[derive(Clone, Copy)]
enum MarkerState {
    Committed,
    Cancelled,
}

enum MarkerOutcome {
    /// All changes were carried out; the version of the marker is no newer than theirs.
    Committed {
        marker: ETag,
    },
    /// None was, and none will be.
    Cancelled,
    Unknown,
}

impl<'t> Marker<'t> {
    fn new(
        run: &OperationRun<'_>,
        first: &'t EntityChange,
        keep: KeepMarker,
    ) -> Result<Self, Error> {
        let partition = first.key.partition_key().as_str();
        let key = EntityKey::new(partition, format!("{PREFIX}{}", random_guid()));
        Ok(Self {
            table: first.table(),
            key: key.map_err(|error| run.annotate(Error::input(error)))?,
            operation: run.operation(),
            keep,
        })
    }

    fn insert(&self, state: MarkerState) -> Result<EntityChange, Error> {
        let text = |text: &str| Value::String(text.to_owned());
        let mut values = vec![
            ("TablesdkMarker".to_owned(), text("exactly-once")),
            (STATE.to_owned(), text(state.as_str())),
            ("TablesdkOperation".to_owned(), text(self.operation)),
        ];
        if !self.keep.0.is_zero() {
            let seconds = Value::Int64(self.keep.seconds());
            values.push((KEEP_SECONDS.to_owned(), seconds));
        }
        let body = write_values(&self.key, &values).map_err(Error::input)?;
        let key = self.key.clone();
        let entity = EncodedEntity::alone(key, body);
        Ok(EntityChange::of(
            self.table.clone(),
            ChangeKind::Insert,
            entity,
        ))
    }

    /// Determines the outcome of the changes once and for all.
    async fn decide(&self, run: &mut OperationRun<'_>) -> Result<MarkerOutcome, Error> {
        let insert = self.insert(MarkerState::Cancelled)?;
        let request = insert.change.encode(&run.pipeline().endpoint);
        let statuses = [StatusCode::CREATED, StatusCode::NO_CONTENT];
        Ok(match run.send(Effect::Write, &request).await {
            Ok(response) if check_status(&response, &statuses).is_ok() => MarkerOutcome::Cancelled,
            Err(error) if error.code() == Some(&ErrorCode::EntityAlreadyExists) => {
                self.read(run).await.unwrap_or(MarkerOutcome::Unknown)
            }
            _ => MarkerOutcome::Unknown,
        })
    }

    /// The outcome by the marker; `None` when no marker exists.
    async fn read(&self, run: &mut OperationRun<'_>) -> Option<MarkerOutcome> {
        let table = self.table.clone();
        let read = get_entity::request(run, Effect::ReadNow, table, &self.key, None);
        let Response { etag, content } = match read.await {
            Ok(response) => response,
            Err(error) if error.is_not_found() => return None,
            Err(_) => return Some(MarkerOutcome::Unknown),
        };
        let Ok(entity) = read_entity(&content) else {
            return Some(MarkerOutcome::Unknown);
        };
        let state = entity.text(STATE).ok().flatten();
        Some(match (state, get_entity::entity_etag(etag, &content)) {
            (Some(COMMITTED), Ok(marker)) => MarkerOutcome::Committed { marker },
            (Some(CANCELLED), _) => MarkerOutcome::Cancelled,
            _ => MarkerOutcome::Unknown,
        })
    }

    /// Deletes the marker, if the first attempt succeeds: the changes were carried out in any case.
    async fn delete(&self, run: &mut OperationRun<'_>) {
        let entity = EncodedEntity::of_key(self.key.clone());
        let kind = ChangeKind::Delete(IfMatch::Any);
        let delete = EntityChange::of(self.table.clone(), kind, entity);
        let request = delete.change.encode(&run.pipeline().endpoint);
        let options = SendOptions {
            attempts: Some(1),
            ..SendOptions::default()
        };
        // A marker that remains is found by `clean_up_markers`.
        let _ = run.send_with(Effect::Write, &request, options).await;
    }
}

impl MarkerState {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => CANCELLED,
            Self::Committed => COMMITTED,
        }
    }
}

/// The ETags after changes that were carried out without a response; `None` for a delete.
pub(crate) async fn current_etags(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    over: &ETag,
) -> Vec<Option<ETag>> {
    let mut etags = Vec::new();
    for change in changes {
        etags.push(current_etag(run, change, over).await);
    }
    etags
}

/// The ETag after a change that was carried out without a response: that of the entity now, if the
/// entity is as the change made it; else one that is no longer current, as the true one is.
async fn current_etag(
    run: &mut OperationRun<'_>,
    change: &EntityChange,
    over: &ETag,
) -> Option<ETag> {
    change.body()?;
    Some(match read_current(run, change).await {
        // After a merge, properties that were not sent may have changed since.
        CurrentState::Present(entity) if change.is_whole() && entity.equals_sent() => {
            entity.etag().clone()
        }
        _ => over.clone(),
    })
}

const STATE: &str = "TablesdkState";
const COMMITTED: &str = "committed";
const CANCELLED: &str = "cancelled";
