//! Sends one batch of a bulk run; if entities of it are rejected, sends it again without them.
//! Knows nothing about other batches.

use std::collections::HashSet;
use std::iter;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ETag, EntityKey, ErrorCode, IfMatch, PartitionKey};

use super::pack::{Item, Measure, Packer};
use super::report::{BulkFailure, Outcome};
use crate::action::write::change::ChangeKind;
use crate::action::write::encoded::EncodedEntity;
use crate::action::{Batch, DeleteEntity, InsertEntity, Write};
use crate::entity::DynamicEntity;
use crate::error::{CurrentState, Error, ErrorKind};
use crate::pipeline::Table;

/// The operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Delete,
    Insert,
    /// A replace of what was read.
    Replace,
    Upsert(Mode),
}

impl Verb {
    pub(crate) const fn operation(self) -> &'static str {
        match self {
            Self::Delete => "delete entity",
            Self::Insert => "insert entity",
            Self::Replace => "replace entity",
            Self::Upsert(Mode::Merge) => "upsert_merge entity",
            Self::Upsert(Mode::Replace) => "upsert_replace entity",
        }
    }
}

/// The outcome of each entity of a batch.
#[derive(Default)]
pub(crate) struct BatchOutcome {
    pub(crate) outcomes: Vec<(u64, Outcome)>,
    pub(crate) failures: Vec<BulkFailure>,
    pub(crate) requests: u64,
    /// An error of the table or of the credential, which ends the run.
    pub(crate) fatal: Option<Arc<Error>>,
    /// The error of a batch that may have been carried out, whose entities are now sent one by one.
    pub(crate) ambiguous: Option<Arc<Error>>,
}

impl BatchOutcome {
    pub(crate) fn failed(&mut self, item: &Item, error: &Arc<Error>, is_rejected: bool) {
        // A failure of the single change does not prove that the batch did not carry it out.
        let (error, is_rejected) = match &self.ambiguous {
            Some(ambiguous) if !error.is_outcome_unknown() => (ambiguous, false),
            _ => (error, is_rejected),
        };
        self.failures.push(BulkFailure {
            index: item.index,
            key: Some(item.key.clone()),
            error: Arc::clone(error),
            is_rejected,
        });
    }

    /// Adds the outcome of other changes.
    pub(crate) fn add(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
        self.failures.extend(other.failures);
        self.requests += other.requests;
        self.fatal = self.fatal.take().or(other.fatal);
    }

    /// All of these failed with one error, which is not about one of them.
    pub(crate) fn all_failed(&mut self, items: &[Item], error: Error) {
        let error = Arc::new(error);
        if is_fatal(&error) {
            self.fatal = Some(Arc::clone(&error));
        }
        for item in items {
            self.failed(item, &error, false);
        }
    }

    fn rejected(&mut self, verb: Verb, item: &Item, error: Error) {
        if verb == Verb::Delete && error.is_not_found() {
            self.outcomes.push((item.index, Outcome::Missing));
        } else if verb == Verb::Delete && error.is_precondition_failed() {
            self.outcomes.push((item.index, Outcome::Changed));
        } else {
            self.failed(item, &Arc::new(error), true);
        }
    }
}

/// Sends the changes as a batch. Removes a rejected change and sends the others again; after some
/// rejections, sends them one by one. With `batches` false, sends no batch at all.
pub(crate) async fn send(
    table: Table,
    verb: Verb,
    mut items: Vec<Item>,
    batches: bool,
) -> BatchOutcome {
    let mut sent = BatchOutcome::default();
    let mut rejections = 0;
    while let Some(first) = items.first() {
        if items.len() == 1 || rejections == MAX_REJECTIONS {
            one_by_one(&table, verb, &items, batches, &mut sent).await;
            break;
        }
        sent.requests += 1;
        let partition = first.key.partition_key().clone();
        let Err(error) = batch(&table, verb, partition, &items).await else {
            let written = items.iter().map(|item| (item.index, Outcome::Written));
            sent.outcomes.extend(written);
            break;
        };
        let index = error.batch_index().filter(|index| *index < items.len());
        if is_rejection(&error) {
            match index {
                Some(index) => {
                    rejections += 1;
                    let item = items.remove(index);
                    sent.rejected(verb, &item, error);
                }
                // The error does not say which change it is about: each change is sent alone.
                None => rejections = MAX_REJECTIONS,
            }
        } else if verb == Verb::Delete && is_gone(&error) {
            // A missing entity is the wanted result of a delete, whichever program deleted it. The
            // batch is atomic, and its retry is rejected for the first missing entity: all are
            // missing if the first attempt was carried out. A delete by key treats a missing entity
            // as success.
            rejections = MAX_REJECTIONS;
            sent.ambiguous = Some(Arc::new(error));
        } else {
            // Reading a hundred entities would not show which program wrote them, and a service
            // that just lost a response is not sent a hundred requests. They are reported as
            // unknown, hold back the position to resume from, and upserts are done again.
            sent.all_failed(&items, error);
            break;
        }
    }
    sent
}

async fn one_by_one(
    table: &Table,
    verb: Verb,
    items: &[Item],
    batches: bool,
    sent: &mut BatchOutcome,
) {
    let mut rest = items;
    while let Some((item, others)) = rest.split_first() {
        sent.requests += 1;
        match send_one(table, verb, item, batches).await {
            Ok(true) => sent.outcomes.push((item.index, Outcome::Written)),
            Ok(false) => sent.outcomes.push((item.index, Outcome::Missing)),
            // A signature that does not cover this entity may cover the next.
            Err(error) if is_rejection(&error) || is_out_of_range(&error) => {
                sent.rejected(verb, item, error);
            }
            // If the service does not respond to one request, the others are not sent.
            Err(error) => {
                sent.all_failed(rest, error);
                return;
            }
        }
        rest = others;
    }
}

/// Sends one change. Returns `false` if there is nothing to delete.
pub(crate) async fn send_one(
    table: &Table,
    verb: Verb,
    item: &Item,
    batches: bool,
) -> Result<bool, Error> {
    let table = table.clone();
    match verb {
        Verb::Delete => {
            return DeleteEntity::encoded(table, item.encoded(), item.if_match()).await;
        }
        _ if batches => {
            let partition = item.key.partition_key().clone();
            let item = std::slice::from_ref(item);
            batch(&table, verb, partition, item).await?;
        }
        Verb::Insert => {
            InsertEntity::<DynamicEntity>::encoded(table, Ok(item.encoded())).await?;
        }
        Verb::Replace => {
            Write::encoded(table, Mode::Replace, item.if_match.clone(), item.encoded()).await?;
        }
        Verb::Upsert(mode) => {
            Write::encoded(table, mode, None, item.encoded()).await?;
        }
    }
    Ok(true)
}

/// Deletes different entities under their ETags, those of a partition together where that is
/// possible. Returns of each whether it is gone.
pub(crate) async fn delete_unchanged(
    table: &Table,
    versions: impl IntoIterator<Item = (EntityKey, ETag)>,
    concurrency: usize,
) -> Result<Vec<bool>, Error> {
    let sizes = Sizes::new(table.clone(), Verb::Delete);
    let mut packer = Packer::new(sizes, BATCH_CHANGES_MAX, usize::MAX, usize::MAX);
    let mut count = 0;
    for (key, etag) in versions {
        let version = (EncodedEntity::of_key(key), Some(IfMatch::ETag(etag)));
        packer.push(Item::new(count, version));
        count += 1;
    }
    while packer.close_oldest() {}
    let batches = iter::from_fn(|| packer.take());
    let batches = batches.map(|batch| delete_batch(table.clone(), batch.items));
    let changed = stream::iter(batches).buffer_unordered(concurrency);
    let changed: Vec<_> = changed.try_collect().await?;
    let changed: HashSet<_> = changed.into_iter().flatten().collect();
    Ok((0..count).map(|index| !changed.contains(&index)).collect())
}

/// Deletes a batch of entities. Returns the indexes of those that have changed, and are left as
/// they are.
async fn delete_batch(table: Table, items: Vec<Item>) -> Result<Vec<u64>, Error> {
    let BatchOutcome {
        outcomes, failures, ..
    } = send(table, Verb::Delete, items, true).await;
    // The error of a batch may be that of another entity.
    let is_gone = |failure: &BulkFailure| {
        is_missing(&failure.error) && failure.error.key() == failure.key.as_ref()
    };
    let mut failures = failures.into_iter();
    if let Some(failure) = failures.find(|failure| !is_gone(failure)) {
        drop(failures);
        return Err(Arc::into_inner(failure.error).expect("the other failures are dropped"));
    }
    let changed = outcomes
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Changed));
    Ok(changed.map(|(index, _)| index).collect())
}

/// Returns true if a delete failed because the entity does not exist, perhaps since an attempt
/// whose response was lost.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.is_not_found() || is_gone(error)
}

impl Item {
    pub(super) fn new(index: u64, (entity, if_match): (EncodedEntity, Option<IfMatch>)) -> Self {
        let EncodedEntity { key, body, riders } = entity;
        Self {
            index,
            key,
            body,
            if_match,
            riders,
        }
    }

    pub(crate) fn encoded(&self) -> EncodedEntity {
        EncodedEntity {
            key: self.key.clone(),
            body: self.body.clone(),
            riders: self.riders.clone(),
        }
    }

    pub(crate) fn if_match(&self) -> IfMatch {
        self.if_match.clone().unwrap_or(IfMatch::Any)
    }
}

pub(crate) fn batch(
    table: &Table,
    verb: Verb,
    partition: PartitionKey,
    items: &[Item],
) -> Batch<'static> {
    let batch = Batch::new(table.clone(), Ok(partition));
    items.iter().fold(batch, |batch, item| {
        let kind = match verb {
            Verb::Delete => ChangeKind::Delete(item.if_match()),
            Verb::Insert => ChangeKind::Insert,
            Verb::Replace => ChangeKind::Update(Mode::Replace, item.if_match.clone()),
            Verb::Upsert(mode) => ChangeKind::Update(mode, None),
        };
        batch.add(kind, Ok(item.encoded()), None)
    })
}

/// Returns true if the client or the service rejected this entity. Every other error says nothing
/// about the entity.
pub(crate) fn is_rejection(error: &Error) -> bool {
    let is_final = |status: StatusCode| {
        status.is_client_error()
            && status != StatusCode::UNAUTHORIZED
            && status != StatusCode::REQUEST_TIMEOUT
            && status != StatusCode::TOO_MANY_REQUESTS
    };
    match error.kind() {
        ErrorKind::Input => true,
        ErrorKind::Service => !is_fatal(error) && error.status().is_some_and(is_final),
        _ => false,
    }
}

/// Returns true if the error is about the table or the credential: every other entity would fail,
/// too.
pub(super) fn is_fatal(error: &Error) -> bool {
    let code = error.code().map(ErrorCode::as_str);
    // A signature may cover some keys and not others. Then a batch is rejected for one of its
    // changes.
    let is_about_a_change = is_out_of_range(error) && error.batch_index().is_some();
    error.is_denied() && !is_about_a_change
        || error.is_table_not_found()
        || error.is_conflict() && code == Some("TableBeingDeleted")
        || error.kind() == ErrorKind::Configuration
}

/// Returns true if the credential allows the operation, but perhaps not for an entity with this
/// key.
pub(crate) fn is_out_of_range(error: &Error) -> bool {
    error.is_denied() && error.code() == Some(&ErrorCode::AuthorizationFailure)
}

/// Returns true if a response was lost, and the retry finds the entity missing.
fn is_gone(error: &Error) -> bool {
    error.is_outcome_unknown() && matches!(error.current(), Some(CurrentState::Missing))
}

/// Sizes of requests.
pub(crate) struct Sizes {
    table: Table,
    verb: Verb,
    frame: usize,
    max_head: usize,
}

impl Sizes {
    pub(crate) fn new(table: Table, verb: Verb) -> Self {
        let partition = PartitionKey::new("").map_err(Into::into);
        let frame = Batch::new(table.clone(), partition).body_bytes();
        let max_head = MAX_HEAD_BYTES + table.pipeline.endpoint.to_string().len();
        Self {
            table,
            verb,
            frame,
            max_head,
        }
    }
}

impl Measure for Sizes {
    fn limit(&self) -> usize {
        self.table.pipeline.batch_bytes_max()
    }

    fn frame(&self) -> usize {
        self.frame
    }

    /// The size of what the riders also write is an upper bound here, too.
    fn exact(&self, item: &Item) -> usize {
        let partition = item.key.partition_key().clone();
        let items = std::slice::from_ref(item);
        let change = batch(&self.table, self.verb, partition, items).body_bytes() - self.frame;
        change + self.also_written(item)
    }

    fn at_most(&self, item: &Item) -> usize {
        let if_match = item.if_match.as_ref().map_or(1, |it| it.as_str().len());
        let change = self.change(&item.key, item.body.len()) + if_match;
        change + self.also_written(item)
    }
}

impl Sizes {
    /// An upper bound of the size of a change without its condition.
    fn change(&self, key: &EntityKey, bytes: usize) -> usize {
        let keys = key.partition_key().as_str().len() + key.row_key().as_str().len();
        self.max_head + bytes + keys * MAX_BYTES_PER_KEY_BYTE
    }

    /// An upper bound of the size of what goes along with a change in its request.
    fn also_written(&self, item: &Item) -> usize {
        let mut size = 0;
        item.riders.also_written(|it| {
            if it.place.is_in_request() {
                size += self.change(it.key, it.bytes) + MAX_ETAG_BYTES;
            }
        });
        if item.riders.add_change() {
            size += self.change(&item.key, 0) + MAX_ADDED_BYTES;
        }
        size
    }
}

/// After so many rejections, the entities of a batch are sent one by one.
pub(crate) const MAX_REJECTIONS: usize = 3;
/// An upper bound for the headers of a change with the name of a table, without URL, keys and
/// condition.
const MAX_HEAD_BYTES: usize = 1024;
/// An upper bound for the condition of what goes along with a change.
const MAX_ETAG_BYTES: usize = 256;
/// An upper bound for the rest of the row key and for the condition of an added change.
const MAX_ADDED_BYTES: usize = 1024;
/// A quote in a key is doubled, and both are percent-encoded.
const MAX_BYTES_PER_KEY_BYTE: usize = 6;
