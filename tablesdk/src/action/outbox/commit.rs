//! Commits changes together with their steps.
//!
//! The head is read before the pointer is written, and the pointer is written before the commit. So a worker that finds the pointer and no
//! entries only needs to replace the head: a commit that is still in flight is then refused, and its writer writes the pointer again.

use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{ETag, IfMatch};

use super::entry::{ATTEMPTS, POINTER, STAMP, State, delete, insert, stamp};
use super::head::{Head, pointer_key, write_pointer};
use super::steps::Transaction;
use crate::action::write::batch_request::BatchRequest;
use crate::action::write::change::EntityChange;
use crate::action::write::together::carry_out;
use crate::error::{Error, ErrorKind};
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
    // What is too large is refused before anything is sent.
    let all = changes_on(&Head::new(partition), transaction)?;
    drop(BatchRequest::new(run, all.iter().map(|it| &it.change))?);
    let pointer = pointer_key(&steps.pointer)?;
    let mut round = 0;
    let (error, head) = loop {
        round += 1;
        let head = Head::read(run, table, partition).await?;
        write_pointer(run, table, partition, &pointer).await?;
        let all = changes_on(&head, transaction)?;
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
    // A copy of the commit may have been carried out, or be in flight: not if the head is still the same, and is replaced, nor if the
    // error was found before it was sent. Otherwise workers delete the pointer.
    if error.kind() == ErrorKind::Input || head.store(table)?.write(run, None).await.is_ok() {
        let delete = delete(table, &pointer, IfMatch::Any);
        drop(delete.write(run, None).await);
    }
    Err(error)
}

/// The changes of the program, the next head and the entries.
fn changes_on(head: &Head, transaction: Transaction<'_>) -> Result<Vec<EntityChange>, Error> {
    let Transaction {
        table,
        partition,
        steps,
        ..
    } = transaction;
    let mut all = transaction.changes.to_vec();
    let mut next = head.clone();
    next.next += u64::try_from(steps.prepared.len()).unwrap_or(u64::MAX);
    all.push(next.store(table)?);
    for (number, step) in (head.next..).zip(&steps.prepared) {
        let mut entry = step.properties.clone();
        entry.set(STAMP, stamp(&head.stream, number));
        entry.set(POINTER, &steps.pointer);
        entry.set(ATTEMPTS, 0);
        let partition = partition.as_str();
        all.push(insert(table, partition, State::Logged, number, entry)?);
    }
    Ok(all)
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
