//! The end of a round: each change gets the condition of what was read, what was only read is
//! checked, and all of it is sent as one batch. Whether a rejection is a conflict with another
//! client follows from what was read.
//!
//! The service reports the first change that it refuses. So what depends on a read is sent first:
//! if another client has written that, too, the round starts over, whatever else would be refused.
//!
//! The service has no change that only compares an ETag. A merge of no properties under the ETag
//! comes closest: it leaves the properties as they are, and makes a new version of the entity.

use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::batch::Change;
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, IfMatch, PartitionKey, TableName};

use super::read::Read;
use crate::action::batch::{BatchResult, as_a_whole};
use crate::action::extend::ride::{Commit, ETags, Riders};
use crate::action::refusal::{check_condition, refused};
use crate::action::write::ambiguous_write::resolve;
use crate::action::write::batch_request::BatchRequest;
use crate::action::write::change::{ChangeKind, EntityChange};
use crate::action::write::commit::commit_changes;
use crate::action::write::encoded::EncodedEntity;
use crate::action::write::keep_marker::KeepMarker;
use crate::action::write::own_copies::unchanged;
use crate::error::{CurrentState, Error};
use crate::pipeline::OperationRun;

/// The changes of a round, ready to be sent.
pub(super) struct Round {
    /// As they are sent.
    changes: Vec<EntityChange>,
    /// The origin of each change.
    origins: Vec<Origin>,
    /// The number of changes of the closure.
    of_closure: usize,
    /// The riders of the batch as a whole.
    riders: Riders,
    exactly_once: Option<KeepMarker>,
}

/// Where a change comes from.
#[derive(Clone, Copy)]
struct Origin {
    depends_on_read: bool,
    /// Its position among the changes of the closure; `None` for the check of an entity that was
    /// only read.
    position: Option<usize>,
}

/// Why the changes were not carried out, or may not have been.
pub(super) struct RoundFailure {
    pub(super) error: Error,
    /// Another client has written what was read: another round may succeed. Nothing was changed.
    pub(super) is_conflict: bool,
    pub(super) sent: Sent,
}

/// The result of a round that was carried out.
pub(super) struct Committed {
    /// The riders of the batch as a whole.
    pub(super) riders: Riders,
    /// The changes of the closure, in its order.
    pub(super) written: BatchResult,
}

/// The changes that a round sent.
pub(super) struct Sent(Vec<EntityChange>);

impl Sent {
    /// Returns true if the next round has read entities of these changes, and all of them are as
    /// they were sent.
    pub(super) fn is_stored(&self, reads: &[Read]) -> bool {
        let compared = self.0.iter().filter_map(|change| {
            let read = reads.iter().find(|read| read.key == change.key)?;
            let is_check = change.operation == CHECK;
            (!is_check).then(|| match (&read.found, change.body()) {
                (Some(found), Some(_)) => found.compared_with(change).equals_sent(),
                (None, None) => true,
                _ => false,
            })
        });
        let mut compared = compared.peekable();
        compared.peek().is_some() && compared.all(|is_stored| is_stored)
    }

    /// The error of a round that may have been carried out, although the response says otherwise.
    pub(super) fn unknown(&self, error: Error, reads: &[Read]) -> Error {
        let change = self
            .0
            .iter()
            .find(|change| error.key() == Some(&change.key));
        let read = reads.iter().find(|read| error.key() == Some(&read.key));
        let current = match (change, read) {
            (Some(change), Some(read)) => match &read.found {
                Some(found) => found.compared_with(change),
                None => CurrentState::Missing,
            },
            _ => CurrentState::Unread,
        };
        error.into_outcome_unknown(current)
    }
}

impl Round {
    /// Refuses changes that contradict what was read, and more than a batch can have.
    pub(super) fn new(
        table: &TableName,
        changes: Vec<EntityChange>,
        riders: Riders,
        reads: &[Read],
        exactly_once: Option<KeepMarker>,
    ) -> Result<Self, Error> {
        let of_closure = changes.len();
        let mut commit = Self {
            changes: Vec::new(),
            origins: Vec::new(),
            of_closure,
            riders,
            exactly_once,
        };
        // Without a change, there is nothing that could be checked together with it.
        if changes.is_empty() && !commit.riders.are_committed_alone() {
            return Ok(commit);
        }
        for read in reads {
            if let Some(etag) = read.etag() {
                let etag = IfMatch::ETag(etag.clone());
                check_condition(OPERATION, &etag).map_err(|error| error.with_key(&read.key))?;
            }
        }
        // What goes along with a change is protected by the ETag of its entity.
        let is_changed = |read: &&Read| {
            let mut changes = changes.iter();
            changes.any(|change| change.key == read.key || change.riders.also_write(&read.key))
        };
        let (_, only_read): (Vec<_>, Vec<_>) = reads.iter().partition(is_changed);
        let mut all = Vec::new();
        for (index, change) in changes.into_iter().enumerate() {
            let read = reads.iter().find(|read| read.key == change.key);
            let mut origin = Origin {
                depends_on_read: false,
                position: Some(index),
            };
            let Some(read) = read else {
                all.push((change, origin));
                continue;
            };
            let change = conditional(change, read.etag());
            let change = change.map_err(|error| error.with_batch_index(index))?;
            let is_of_read = |if_match: &IfMatch| match if_match {
                IfMatch::Any => false,
                IfMatch::ETag(etag) => Some(etag) == read.etag(),
            };
            origin.depends_on_read = change.condition().is_none_or(is_of_read);
            all.push((change, origin));
        }
        for read in only_read {
            // The service has no change that succeeds only if an entity is missing, and makes none.
            if let Some(etag) = read.etag() {
                let origin = Origin {
                    depends_on_read: true,
                    position: None,
                };
                all.push((check(table, &read.key, etag)?, origin));
            }
        }
        all.sort_by_key(|(_, origin)| !origin.depends_on_read);
        (commit.changes, commit.origins) = all.into_iter().unzip();
        let max = BATCH_CHANGES_MAX - usize::from(exactly_once.is_some());
        if commit.changes.len() > max {
            let problem = TransactionProblem::Count {
                of_closure,
                checks: commit.changes.len() - of_closure,
                max,
            };
            return Err(refused(OPERATION, problem));
        }
        Ok(commit)
    }

    /// How many entities it writes or checks.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Carries the changes out, all or none. Without a change, nothing is sent.
    pub(super) async fn send(
        self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<Committed, RoundFailure> {
        if self.changes.is_empty() && !self.riders.are_committed_alone() {
            return Ok(Committed {
                riders: Riders::NONE,
                written: BatchResult::default(),
            });
        }
        let commit = Commit {
            table,
            partition,
            changes: &self.changes,
            riders: &self.riders,
            exactly_once: self.exactly_once,
        };
        let sent = commit_changes(run, commit).await;
        let error = match sent {
            Ok(etags) => return Ok(self.committed(etags)),
            Err(error) => error,
        };
        let is_conflict = !error.is_ambiguous() && self.is_conflict(&error);
        let error = self.explain(run, error).await;
        let sent = Sent(self.changes);
        Err(RoundFailure {
            error,
            is_conflict,
            sent,
        })
    }

    /// The changes of the closure, without checks, in the order in which it made them.
    fn committed(self, etags: ETags) -> Committed {
        let sent = self.changes.into_iter().zip(etags).zip(self.origins);
        let of_closure = sent.filter_map(|(written, origin)| Some((origin.position?, written)));
        let mut of_closure: Vec<_> = of_closure.collect();
        of_closure.sort_unstable_by_key(|(position, _)| *position);
        Committed {
            riders: self.riders,
            written: of_closure.into_iter().map(|(_, written)| written).collect(),
        }
    }

    /// Returns true if the rejection shows that another client has written an entity that was read.
    fn is_conflict(&self, error: &Error) -> bool {
        let may_cause: fn(&EntityChange) -> bool = if error.is_precondition_failed() {
            |change| matches!(change.condition(), Some(IfMatch::ETag(_)))
        } else if error.is_not_found() {
            |change| change.condition().is_some()
        } else if error.has_details() {
            // It is one of what goes along with an inserted entity.
            return false;
        } else if error.code() == Some(&ErrorCode::EntityAlreadyExists) {
            |change| matches!(change.change, Change::Insert(_))
        } else {
            return false;
        };
        let depends = self.origins.iter().map(|origin| origin.depends_on_read);
        let changes = self.changes.iter().zip(depends).enumerate();
        let mut causes = changes.filter(|(_, (change, _))| may_cause(change));
        // Not every backend names the change that it refuses.
        let named = causes
            .clone()
            .find(|(index, _)| error.batch_index() == Some(*index));
        match named {
            Some((_, (_, depends_on_read))) => depends_on_read,
            None => {
                let first = causes.next();
                first.is_some_and(|(_, (_, depends))| depends)
                    && causes.all(|(_, (_, depends))| depends)
            }
        }
    }

    /// The first change of the closure.
    fn first(&self) -> Option<&EntityChange> {
        let mut changes = self.changes.iter().zip(&self.origins);
        let first = changes.find(|(_, origin)| origin.position == Some(0));
        first.map(|(change, _)| change)
    }

    /// Adds to an error which change it is about, and what is stored now if the outcome is
    /// ambiguous.
    async fn explain(&self, run: &mut OperationRun<'_>, error: Error) -> Error {
        let index = error.batch_index();
        let found = index.and_then(|index| self.changes.get(index).zip(self.origins.get(index)));
        let Some((change, origin)) = found else {
            return as_a_whole(error);
        };
        let (change, error) = match origin.position {
            Some(position) => {
                let error = error.with_batch_index(position);
                let error = error.with_batch_size(self.of_closure);
                (Some(change), error.for_change(change.operation))
            }
            // What is stored of a check shows nothing: it writes no property.
            None if error.is_ambiguous() => (self.first(), error.without_batch_index()),
            None => (Some(change), error.without_batch_index().for_change(CHECK)),
        };
        let Some(change) = change else {
            return as_a_whole(error);
        };
        match resolve(run, change, error).await {
            Ok((current, error)) => error.into_outcome_unknown(current),
            Err(error) => error,
        }
    }
}

/// The same change, which succeeds only if the entity is still as it was read. A change that has an
/// ETag keeps it. Its error names the verb of the closure.
fn conditional(change: EntityChange, read: Option<&ETag>) -> Result<EntityChange, Error> {
    let failed = |change: &EntityChange, problem| {
        Err(refused(change.operation, problem).with_key(&change.key))
    };
    match (&change.change, read) {
        (Change::Insert(_), Some(_)) => failed(&change, TransactionProblem::Present),
        (Change::Insert(_), None) => Ok(change),
        (Change::Update(upsert), None) if upsert.if_match.is_none() => {
            let (table, body) = (upsert.table.clone(), upsert.entity.as_bytes().clone());
            let entity = EncodedEntity::alone(change.key.clone(), body);
            let insert = EntityChange::of(table, ChangeKind::Insert, entity);
            Ok(EntityChange {
                change: insert.change,
                ..change
            })
        }
        (Change::Update(_) | Change::Delete(_), None) => {
            failed(&change, TransactionProblem::Missing)
        }
        (Change::Update(_) | Change::Delete(_), Some(etag)) => {
            let mut change = change;
            if !matches!(change.condition(), Some(IfMatch::ETag(_))) {
                change.set_condition(IfMatch::ETag(etag.clone()));
            }
            Ok(change)
        }
    }
}

/// A change that changes no property, and is refused if the entity is not the version that was
/// read.
fn check(table: &TableName, key: &EntityKey, etag: &ETag) -> Result<EntityChange, Error> {
    let change = unchanged(table, key, etag).map_err(|error| error.with_operation(OPERATION))?;
    Ok(EntityChange {
        operation: CHECK,
        ..change
    })
}

/// Sends checks of all entities that were read. Returns true if they are accepted; `None` if that
/// cannot be established.
pub(super) async fn probe(
    run: &mut OperationRun<'_>,
    table: &TableName,
    reads: &[Read],
) -> Option<bool> {
    let found = reads
        .iter()
        .filter_map(|read| Some((&read.key, read.etag()?)));
    let checks = found.map(|(key, etag)| check(table, key, etag));
    let checks: Vec<_> = checks.collect::<Result<_, _>>().ok()?;
    if checks.is_empty() {
        return None;
    }
    let batch = BatchRequest::new(run, checks.iter().map(|check| &check.change)).ok()?;
    match batch.send(run).await {
        Ok(_) => Some(true),
        Err(error) if error.is_out_of_date() => Some(false),
        Err(_) => None,
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
enum TransactionProblem {
    #[error(
        "a batch has at most {max} changes: the transaction has {of_closure}, and {checks} checks of entities that were only read"
    )]
    Count {
        of_closure: usize,
        checks: usize,
        max: usize,
    },
    #[error("the transaction has read that no such entity exists: insert it instead")]
    Missing,
    #[error("the transaction has read that the entity exists: replace or merge it instead")]
    Present,
}

pub(super) const OPERATION: &str = "transaction";
/// The operation in the error of an entity that was only read.
const CHECK: &str = "check entity";
