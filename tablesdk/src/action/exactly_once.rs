//! Exactly once: changes are sent together with a marker, an entity with a random name, in one entity group transaction. The
//! changes were carried out if and only if this marker is there.
//!
//! An ambiguous outcome is resolved by trying to insert the marker under the same name, with another state. If that succeeds, no
//! attempt was carried out, and no attempt still in flight can be, since it would insert the marker again. If it fails, the
//! existing marker shows the outcome. The marker is the first change, so that a retry of changes that were carried out is refused
//! because of it.
//!
//! Knows nothing of what the changes are for.

use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::operation::{EntityBody, Prefer, delete_entity, get_entity, insert_entity};
use tablesdk_protocol::wire::json::{JsonEntity, MetadataLevel, read_entity};
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, Guid, IfMatch, TableName, Value};

use super::ambiguous_write::{WriteAttempt, check_status, read_current};
use super::transaction::{Transaction, content};
use crate::entity::write_values;
use crate::error::{CurrentState, Error};
use crate::pipeline::{Effect, OperationRun, random_guid};

/// The minimum time that the marker stays after a success. Zero: it is deleted at once, unless the outcome of an attempt is
/// ambiguous.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepMarker(pub(super) Duration);

impl KeepMarker {
    pub(super) const NOT: Self = Self(Duration::ZERO);

    /// The time that was chosen for the marker, or none: `exactly_once` leaves an earlier `keep_marker` as it is.
    pub(super) const fn unless_chosen(chosen: Option<Self>) -> Option<Self> {
        match chosen {
            None => Some(Self::NOT),
            chosen => chosen,
        }
    }

    /// What a marker says of it; `None` where it cannot be read.
    pub(super) fn read(marker: &JsonEntity<'_>) -> Option<Self> {
        let Some(property) = marker.property(KEEP_SECONDS) else {
            return Some(Self::NOT);
        };
        match property.to_value().ok()? {
            None => Some(Self::NOT),
            Some(Value::Int64(seconds)) => {
                let seconds = u64::try_from(seconds).ok()?;
                Some(Self(Duration::from_secs(seconds)))
            }
            Some(_) => None,
        }
    }

    /// In whole seconds, and no less than asked for.
    fn seconds(self) -> i64 {
        let whole = self.0.as_secs();
        let seconds = whole.saturating_add(u64::from(self.0.subsec_nanos() > 0));
        i64::try_from(seconds).unwrap_or(i64::MAX)
    }
}

/// Carries changes out exactly once, or not at all, and gives back the new versions in their order; `None` for a delete.
///
/// Where the answer was lost and the entity was written again since, the version is one that is over.
///
/// The error is [ambiguous](Error::is_ambiguous) only where not even the marker could be asked.
pub(super) async fn commit(
    run: &mut OperationRun<'_>,
    table: &TableName,
    keys: &[EntityKey],
    changes: Vec<Change>,
    keep: KeepMarker,
) -> Result<Vec<Option<ETag>>, Error> {
    let marker = Marker::new(run, table, keys, keep)?;
    let mut all = vec![Change::Insert(marker.insert(State::Committed)?)];
    all.extend(changes);
    let transaction = Transaction::new(run, all)?;
    let error = match transaction.send(run).await {
        Ok(done) => {
            // An attempt that is still under way must find the marker.
            if !done.is_after_ambiguous && keep.0.is_zero() {
                marker.sweep(run).await;
            }
            return Ok(done.etags.into_iter().skip(1).collect());
        }
        Err(error) => error,
    };
    let index = error.batch_index();
    // Even at the first attempt: something on the way may have sent it twice.
    let met_itself = index == Some(0) && error.code() == Some(&ErrorCode::EntityAlreadyExists);
    let error = match index {
        Some(index) if index > 0 => error.with_batch_index(index - 1),
        _ => error.without_batch_index(),
    };
    if !error.is_ambiguous() && !met_itself {
        return Err(error);
    }
    // A backend that leaves out which change it refuses may have meant another one: then no marker is there.
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
        Outcome::Committed { marker: over } => {
            let mut etags = Vec::new();
            for (key, change) in keys.iter().zip(transaction.changes().iter().skip(1)) {
                etags.push(version_now(run, table, key, change, &over).await);
            }
            Ok(etags)
        }
        Outcome::Cancelled => Err(run.annotate(error.into_not_done())),
        Outcome::Unknown => Err(run.annotate(error.with_ambiguous(true))),
    }
}

/// Whether a row of that key is a marker.
pub(super) fn is_marker(row_key: &str) -> bool {
    row_key
        .strip_prefix(PREFIX)
        .is_some_and(|id| id.parse::<Guid>().is_ok())
}

/// The row that proves that the changes beside it were carried out.
struct Marker<'t> {
    table: &'t TableName,
    key: EntityKey,
    operation: &'static str,
    keep: KeepMarker,
}

#[derive(Clone, Copy)]
enum State {
    Committed,
    Cancelled,
}

enum Outcome {
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
        table: &'t TableName,
        keys: &[EntityKey],
        keep: KeepMarker,
    ) -> Result<Self, Error> {
        let partition = keys.first().map_or("", |key| key.partition_key().as_str());
        let key = EntityKey::new(partition, format!("{PREFIX}{}", random_guid()));
        Ok(Self {
            table,
            key: key.map_err(|error| run.annotate(Error::input(error)))?,
            operation: run.operation(),
            keep,
        })
    }

    fn insert(&self, state: State) -> Result<insert_entity::Request, Error> {
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
        Ok(insert_entity::Request {
            table: self.table.clone(),
            entity: EntityBody::from_bytes(body),
            prefer: Prefer::ReturnNoContent,
            level: MetadataLevel::Minimal,
        })
    }

    /// Settles what came of the changes, once and for all.
    async fn decide(&self, run: &mut OperationRun<'_>) -> Result<Outcome, Error> {
        let request = self.insert(State::Cancelled)?;
        let request = request.encode(&run.pipeline().endpoint);
        let statuses = [StatusCode::CREATED, StatusCode::NO_CONTENT];
        Ok(match run.send(Effect::Write, &request).await {
            Ok(answer) if check_status(&answer, &statuses).is_ok() => Outcome::Cancelled,
            Err(error) if error.code() == Some(&ErrorCode::EntityAlreadyExists) => {
                self.read(run).await.unwrap_or(Outcome::Unknown)
            }
            _ => Outcome::Unknown,
        })
    }

    /// What the marker says; `None` when there is none.
    async fn read(&self, run: &mut OperationRun<'_>) -> Option<Outcome> {
        let request = get_entity::Request {
            table: self.table.clone(),
            key: self.key.clone(),
            select: None,
            level: MetadataLevel::Minimal,
        };
        let request = request.encode(&run.pipeline().endpoint);
        let answer = match run.send(Effect::ReadNow, &request).await {
            Ok(answer) => answer,
            Err(error) if error.is_no_such_resource() => return None,
            Err(_) => return Some(Outcome::Unknown),
        };
        let get_entity::Response { etag, content } = get_entity::Response::decode(answer.response);
        let Ok(row) = read_entity(&content) else {
            return Some(Outcome::Unknown);
        };
        let state = row.text(STATE).ok().flatten();
        Some(match (state, etag.or_else(|| row.etag())) {
            (Some(COMMITTED), Some(marker)) => Outcome::Committed { marker },
            (Some(CANCELLED), _) => Outcome::Cancelled,
            _ => Outcome::Unknown,
        })
    }

    /// Deletes the marker, if that can be done at the first attempt: the changes are done in any case.
    async fn sweep(&self, run: &mut OperationRun<'_>) {
        let request = delete_entity::Request {
            table: self.table.clone(),
            key: self.key.clone(),
            if_match: IfMatch::Any,
        };
        let request = request.encode(&run.pipeline().endpoint);
        // What stays behind, `sweep_markers` finds.
        let _ = run.send_once(Effect::Write, &request).await;
    }
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => CANCELLED,
            Self::Committed => COMMITTED,
        }
    }
}

/// The version of a change that was carried out without an answer: that of the entity now, if that is what the change made of
/// it; else one that is over, as the true one is.
async fn version_now(
    run: &mut OperationRun<'_>,
    table: &TableName,
    key: &EntityKey,
    change: &Change,
    over: &ETag,
) -> Option<ETag> {
    if let Change::Delete(_) = change {
        return None;
    }
    let (body, whole) = content(change);
    let sent = WriteAttempt {
        table,
        key,
        body,
        whole,
    };
    Some(match read_current(run, &sent).await {
        // After a merge, properties that were not sent may have changed since.
        CurrentState::Present(row) if whole && row.equals_sent() => row.etag().clone(),
        _ => over.clone(),
    })
}

/// What the names of all markers start with. Sorts behind letters and digits.
pub(super) const PREFIX: &str = "~tablesdk.once.";
/// Behind the names of all markers, which go on with a GUID.
pub(super) const PREFIX_END: &str = "~tablesdk.once.~";
/// How long a marker is to stay from its timestamp on, where that was asked for.
pub(super) const KEEP_SECONDS: &str = "TablesdkKeepSeconds";
const STATE: &str = "TablesdkState";
const COMMITTED: &str = "committed";
const CANCELLED: &str = "cancelled";
