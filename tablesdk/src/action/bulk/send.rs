//! Sends one batch of a bulk run, and without the entities that spoil it, if need be. Knows nothing of other batches.

use std::sync::Arc;

use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{ErrorCode, IfMatch, PartitionKey};

use super::is_refusal;
use super::pack::{Item, Measure};
use super::report::{BulkFailure, Outcome};
use crate::action::{Batch, DeleteEntity, EncodedEntity};
use crate::error::{CurrentState, Error, ErrorKind};
use crate::pipeline::Table;

/// What a run does to every entity of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Delete,
    Insert,
    Upsert(Mode),
}

/// What came of a batch.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) outcomes: Vec<(u64, Outcome)>,
    pub(super) failures: Vec<BulkFailure>,
    pub(super) requests: u64,
    /// What is at fault is no entity: nothing else is worth sending.
    pub(super) fatal: Option<Arc<Error>>,
    /// The error of a batch that may have been carried out, whose entities are now sent one by one.
    ambiguous: Option<Arc<Error>>,
}

impl Sent {
    fn fail(&mut self, item: &Item, error: &Arc<Error>, is_refused: bool) {
        // A failure of the single change does not prove that the batch did not carry it out.
        let (error, is_refused) = match &self.ambiguous {
            Some(ambiguous) if !error.is_outcome_unknown() => (ambiguous, false),
            _ => (error, is_refused),
        };
        self.failures.push(BulkFailure {
            index: item.index,
            key: Some(item.key.clone()),
            error: Arc::clone(error),
            is_refused,
        });
    }

    /// Notes that all of these failed for one reason, which is about none of them.
    fn fail_all(&mut self, items: &[Item], error: Error) {
        let error = Arc::new(error);
        if is_fatal(&error) {
            self.fatal = Some(Arc::clone(&error));
        }
        for item in items {
            self.fail(item, &error, false);
        }
    }
}

/// Sends the changes as a batch. What is refused is left out, and the rest sent again; after some refusals, one by one.
pub(super) async fn send(table: Table, verb: Verb, mut items: Vec<Item>) -> Sent {
    let mut sent = Sent::default();
    let mut refusals = 0;
    while let Some(first) = items.first() {
        if items.len() == 1 || refusals == REFUSALS_MAX {
            one_by_one(&table, verb, &items, &mut sent).await;
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
        match judge(&error) {
            Judgement::Refusal => match index {
                Some(index) => {
                    refusals += 1;
                    let item = items.remove(index);
                    refuse(&mut sent, verb, &item, error);
                }
                // The error does not say which change it is about: each change is sent alone.
                None => refusals = REFUSALS_MAX,
            },
            // A missing entity is the wanted result of a delete, whichever program deleted it.
            // The batch is atomic, and its retry is refused for the first missing entity: all are missing if the first attempt was carried
            // out. A delete by key treats a missing entity as success.
            Judgement::Other if verb == Verb::Delete && is_gone(&error) => {
                refusals = REFUSALS_MAX;
                sent.ambiguous = Some(Arc::new(error));
            }
            // Reading a hundred entities would not show which program wrote them, and a service that just lost a response is not
            // sent a hundred requests. They are reported as unknown, hold back the position to resume from, and upserts are done again.
            Judgement::Other => {
                sent.fail_all(&items, error);
                break;
            }
        }
    }
    sent
}

async fn one_by_one(table: &Table, verb: Verb, items: &[Item], sent: &mut Sent) {
    let mut rest = items;
    while let Some((item, others)) = rest.split_first() {
        sent.requests += 1;
        let result = match verb {
            Verb::Delete => {
                let if_match = item.if_match.clone().unwrap_or(IfMatch::Any);
                let delete = DeleteEntity::new(table.clone(), Ok(item.key.clone()));
                delete.if_match(if_match).await
            }
            Verb::Insert | Verb::Upsert(_) => {
                let partition = item.key.partition_key().clone();
                let item = std::slice::from_ref(item);
                let done = batch(table, verb, partition, item).await;
                done.map(|_| true)
            }
        };
        match result {
            Ok(true) => sent.outcomes.push((item.index, Outcome::Written)),
            Ok(false) => sent.outcomes.push((item.index, Outcome::Missing)),
            Err(error) if judge(&error) == Judgement::Refusal => refuse(sent, verb, item, error),
            // A signature that does not cover this entity may cover the next.
            Err(error) if is_out_of_range(&error) => refuse(sent, verb, item, error),
            // A service that does not answer one is not asked for the others.
            Err(error) => {
                sent.fail_all(rest, error);
                return;
            }
        }
        rest = others;
    }
}

fn refuse(sent: &mut Sent, verb: Verb, item: &Item, error: Error) {
    if verb == Verb::Delete && error.is_not_found() {
        sent.outcomes.push((item.index, Outcome::Missing));
    } else if verb == Verb::Delete && error.is_precondition_failed() {
        sent.outcomes.push((item.index, Outcome::Changed));
    } else {
        sent.fail(item, &Arc::new(error), true);
    }
}

fn batch(table: &Table, verb: Verb, partition: PartitionKey, items: &[Item]) -> Batch<'static> {
    let batch = Batch::new(table.clone(), Ok(partition));
    items.iter().fold(batch, |batch, item| {
        let encoded = || EncodedEntity {
            key: item.key.clone(),
            body: item.body.clone(),
        };
        match verb {
            Verb::Delete => {
                let if_match = item.if_match.clone().unwrap_or(IfMatch::Any);
                batch.delete_if(Ok(item.key.clone()), if_match)
            }
            Verb::Insert => batch.insert_encoded(Ok(encoded())),
            Verb::Upsert(mode) => batch.write_encoded(mode, None, Ok(encoded())),
        }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Judgement {
    /// The service, or the client before it, will not have this entity.
    Refusal,
    /// Everything else.
    Other,
}

fn judge(error: &Error) -> Judgement {
    let is_about_the_entity = match error.kind() {
        ErrorKind::Input => true,
        ErrorKind::Service => !is_fatal(error) && error.status().is_some_and(is_refusal),
        _ => false,
    };
    if is_about_the_entity {
        Judgement::Refusal
    } else {
        Judgement::Other
    }
}

/// Whether the table or the credential is at fault: the next entity will not fare better.
fn is_fatal(error: &Error) -> bool {
    let code = error.code().map(ErrorCode::as_str);
    // A signature may cover some keys and not others, and then a batch is refused for one of its changes.
    let is_about_a_change = is_out_of_range(error) && error.batch_index().is_some();
    error.is_denied() && !is_about_a_change
        || error.is_not_found() && code == Some("TableNotFound")
        || error.is_conflict() && code == Some("TableBeingDeleted")
        || error.kind() == ErrorKind::Configuration
}

/// Whether a credential that may do such a thing may not do it with an entity of that key; or not here at all.
fn is_out_of_range(error: &Error) -> bool {
    error.is_denied() && error.code() == Some(&ErrorCode::AuthorizationFailure)
}

/// Whether an answer was lost, and the repetition finds something gone.
fn is_gone(error: &Error) -> bool {
    error.is_outcome_unknown() && matches!(error.current(), Some(CurrentState::Missing))
}

/// Sizes as the service will see them.
pub(super) struct Sizes {
    table: Table,
    verb: Verb,
    frame: usize,
    head_max: usize,
}

impl Sizes {
    pub(super) fn new(table: Table, verb: Verb) -> Self {
        let nowhere = PartitionKey::new("").map_err(Into::into);
        let frame = Batch::new(table.clone(), nowhere).body_bytes();
        let head_max = HEAD_BYTES_MAX + table.pipeline.endpoint.to_string().len();
        Self {
            table,
            verb,
            frame,
            head_max,
        }
    }
}

impl Measure for Sizes {
    fn frame(&self) -> usize {
        self.frame
    }

    fn exact(&self, item: &Item) -> usize {
        let partition = item.key.partition_key().clone();
        let items = std::slice::from_ref(item);
        batch(&self.table, self.verb, partition, items).body_bytes() - self.frame
    }

    fn at_most(&self, item: &Item) -> usize {
        let (partition, row) = (item.key.partition_key(), item.key.row_key());
        let keys = partition.as_str().len() + row.as_str().len();
        let if_match = item.if_match.as_ref().map_or(1, |it| it.as_str().len());
        self.head_max + item.body.len() + keys * KEY_BYTE_BYTES_MAX + if_match
    }
}

/// After so many refusals, a batch is sent entity by entity.
const REFUSALS_MAX: u32 = 3;
/// More than the headers of a change have, with the name of a table, but for URL, keys and condition.
const HEAD_BYTES_MAX: usize = 1024;
/// A quote in a key is doubled, and each of them encoded.
const KEY_BYTE_BYTES_MAX: usize = 6;
