//! Commits changes together with their steps.
//!
//! The head is read before the pointer is written, and the pointer is written before the commit. So a worker that finds the pointer and no
//! entries only needs to replace the head: a commit that is still in flight is then refused, and its writer writes the pointer again.

use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{ETag, IfMatch, Value};

use super::entry::{self, ATTEMPTS, POINTER, STAMP};
use super::head::{Head, Pointer};
use super::steps::Transaction;
use crate::action::write::together::carry_out;
use crate::error::Error;
use crate::pipeline::OperationRun;

/// Carries out the changes and stores the steps, as one entity group transaction.
pub(super) async fn commit(
    run: &mut OperationRun<'_>,
    transaction: Transaction<'_>,
) -> Result<Vec<Option<ETag>>, Error> {
    let Transaction {
        table,
        partition,
        changes,
        steps,
        exactly_once,
    } = transaction;
    let max = BATCH_CHANGES_MAX - usize::from(exactly_once.is_some());
    let count = changes.len() + 1 + steps.prepared.len();
    if count > max {
        let (changes, steps) = (changes.len(), steps.prepared.len());
        let problem = Problem::Count {
            changes,
            steps,
            max,
        };
        return Err(run.annotate(Error::input(problem)));
    }
    let pointer = Pointer::of(steps.pointer.clone())?;
    let mut round = 0;
    let (error, head) = loop {
        round += 1;
        let head = Head::read(run, table, partition).await?;
        pointer.write(run, table, partition).await?;
        let mut all = changes.to_vec();
        let mut next = head.clone();
        next.next += u64::try_from(steps.prepared.len()).unwrap_or(u64::MAX);
        all.push(next.store(table, partition)?);
        for (number, step) in (head.next..).zip(&steps.prepared) {
            let mut values = step.values.clone();
            let stamp = entry::stamp(&head.stream, number);
            values.push((STAMP.to_owned(), Value::String(stamp)));
            values.push((POINTER.to_owned(), Value::String(pointer.id.clone())));
            values.push((ATTEMPTS.to_owned(), Value::Int32(0)));
            all.push(entry::insert(table, partition, number, &values)?);
        }
        let error = match carry_out(run, &all, exactly_once).await {
            Ok(mut etags) => {
                etags.truncate(changes.len());
                return Ok(etags);
            }
            Err(error) => error,
        };
        if error.is_ambiguous() {
            // The pointer stays: the steps may have been stored.
            let is_of_change = error
                .batch_index()
                .is_some_and(|index| index < changes.len());
            return Err(if is_of_change {
                error
            } else {
                error.without_batch_index()
            });
        }
        let is_refused = error.is_precondition_failed() || error.is_conflict();
        let of_rival = match error.batch_index() {
            Some(index) => index >= changes.len(),
            // Not every backend names the change that it refuses.
            None => is_refused && Head::read(run, table, partition).await?.etag != head.etag,
        };
        if !of_rival {
            break (error, head);
        }
        if !is_refused {
            break (error.without_batch_index(), head);
        }
        if round == ROUNDS || !run.pause_before_round(round).await {
            // Not the error of the head: its status would be taken for that of an entity.
            let message = "other clients committed steps in the partition again and again";
            return Err(run.annotate(Error::timeout(message.to_owned())));
        }
    };
    // A copy of the commit may have been carried out, or be in flight: not if the head is still the same, and is replaced. Otherwise
    // workers delete the pointer.
    if head.store(table, partition)?.write(run, None).await.is_ok() {
        drop(pointer.delete(table, IfMatch::Any).write(run, None).await);
    }
    Err(error)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Problem {
    #[error(
        "a transaction has at most {max} changes, and this one has {changes}, {steps} steps and the head of the outbox"
    )]
    Count {
        changes: usize,
        steps: usize,
        max: usize,
    },
}

const ROUNDS: u32 = 16;
