//! Commits changes together with their steps.
//!
//! The head is read before the pointer is written, and the pointer is written before the commit. So
//! a worker that finds the pointer and no entries only needs to replace the head: a commit that is
//! still in flight is then refused, and its writer writes the pointer again.
//!
//! A commit that is refused may have been carried out: a network may deliver it twice. It is then
//! not sent again, but found in the head.

use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{ETag, IfMatch, Timestamp};

use super::entry::{ATTEMPTS, POINTER, STAMP, StepState, delete, insert, stamp};
use super::head::{Head, pointer_key, write_pointer};
use super::steps::Steps;
use crate::action::extend::ride::{Commit, ETags, Layer, Next};
use crate::action::write::batch_request::BatchRequest;
use crate::action::write::change::EntityChange;
use crate::action::write::exactly_once::current_etags;
use crate::error::{Error, ErrorKind};
use crate::patterns::order;
use crate::pipeline::OperationRun;

/// Stores the steps together with the changes.
pub(super) static LAYER: Layer = Layer {
    order: order::OUTBOX,
    commit: |run, commit, next| Box::pin(commit_steps(run, commit, next)),
    count: |commit, count| {
        if let Some(steps) = commit.riders.find::<Steps>() {
            // The head is read, the pointer is written; the head is one of the changes.
            count.requests += 2;
            count.changes += 1 + steps.prepared.len();
            steps.count_follow_up(count);
        }
    },
};

/// The changes and the steps that are committed together.
#[derive(Clone, Copy)]
struct WithSteps<'r> {
    commit: Commit<'r>,
    steps: &'r Steps,
}

/// Carries out the changes and stores the steps, as one entity group transaction.
async fn commit_steps(
    run: &mut OperationRun<'_>,
    commit: Commit<'_>,
    next: Next<'_>,
) -> Result<ETags, Error> {
    let Some(steps) = commit.riders.find::<Steps>() else {
        return next.commit(run, commit).await;
    };
    let Commit {
        table,
        partition,
        changes,
        exactly_once,
        ..
    } = commit;
    let transaction = WithSteps { commit, steps };
    let max = BATCH_CHANGES_MAX - usize::from(exactly_once.is_some());
    let count = changes.len() + 1 + steps.prepared.len();
    if count > max {
        let (changes, steps) = (changes.len(), steps.prepared.len());
        let problem = StepCountProblem::Count {
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
        let with_steps = Commit {
            changes: &all,
            ..commit
        };
        let error = match next.commit(run, with_steps).await {
            Ok(mut etags) => {
                etags.truncate(changes.len());
                return Ok(etags);
            }
            Err(error) => error,
        };
        let index = error.batch_index();
        let is_of_change = index.is_some_and(|index| index < changes.len());
        let error = if is_of_change {
            error
        } else {
            error.without_batch_index()
        };
        if error.is_ambiguous() {
            // The pointer stays: the steps may have been stored. A service that does not respond to
            // the commit gets no further request.
            let responds = matches!(error.kind(), ErrorKind::Response | ErrorKind::Service);
            if responds && let Shown::Done = shown(run, transaction, &head).await {
                return Ok(etags_over(run, changes, &head).await);
            }
            return Err(error);
        }
        let is_refused = error.is_precondition_failed() || error.is_conflict();
        if is_of_change || !is_refused {
            break (error, head);
        }
        // The head was replaced: by another client, or by the first copy of this commit.
        match shown(run, transaction, &head).await {
            Shown::Done => return Ok(etags_over(run, changes, &head).await),
            // Not every backend names the change that it refuses.
            Shown::NotDone { is_same: true } if index.is_none() => break (error, head),
            Shown::NotDone { .. } => {}
            // The marker has shown that it was not carried out.
            Shown::Nothing if exactly_once.is_some() => {}
            Shown::Nothing => return Err(error.with_ambiguous(true)),
        }
        if round == ROUNDS || !run.pause_before_round(round).await {
            // Not the error of the head: its status would be taken for that of an entity.
            let message = "other clients committed steps in the partition again and again";
            return Err(run.annotate(Error::timeout(message.to_owned())));
        }
    };
    // A copy of the commit may have been carried out, or be in flight: not if the head is still the
    // same, and is replaced, nor if the error was found before it was sent. Otherwise workers
    // delete the pointer.
    let replaced = match error.kind() {
        ErrorKind::Input => None,
        _ => head.store(table)?.write(run, None).await.err(),
    };
    let Some(replaced) = replaced else {
        let delete = delete(table, &pointer, IfMatch::Any);
        drop(delete.write(run, None).await);
        return Err(error);
    };
    match shown(run, transaction, &head).await {
        Shown::Done => Ok(etags_over(run, changes, &head).await),
        // The head has another version, perhaps that of a copy.
        Shown::Nothing if replaced.is_out_of_date() && exactly_once.is_none() => {
            Err(error.with_ambiguous(true))
        }
        Shown::NotDone { .. } | Shown::Nothing => Err(error),
    }
}

/// The outcome of a commit by the head, after a response that says that the commit was refused.
enum Shown {
    Done,
    NotDone {
        /// No other client has written the head either.
        is_same: bool,
    },
    Nothing,
}

async fn shown(run: &mut OperationRun<'_>, transaction: WithSteps<'_>, before: &Head) -> Shown {
    let now = Head::read(run, transaction.commit.table, transaction.commit.partition).await;
    let Ok(now) = now else {
        return Shown::Nothing;
    };
    let is_same = now.etag == before.etag;
    match now.has(&transaction.steps.pointer, before) {
        Some(true) => Shown::Done,
        Some(false) => Shown::NotDone { is_same },
        None => Shown::Nothing,
    }
}

/// The ETags of the entities of a commit that was carried out without a response.
async fn etags_over(
    run: &mut OperationRun<'_>,
    changes: &[EntityChange],
    before: &Head,
) -> Vec<Option<ETag>> {
    // That of the head after the commit could be current: another commit may have written it
    // together with the entity.
    let over = before.etag.clone();
    let over = over.unwrap_or_else(|| ETag::from_timestamp(Timestamp::UNIX_EPOCH));
    current_etags(run, changes, &over).await
}

/// The changes of the program, the next head and the entries.
fn changes_on(head: &Head, transaction: WithSteps<'_>) -> Result<Vec<EntityChange>, Error> {
    let WithSteps { commit, steps } = transaction;
    let Commit {
        table, partition, ..
    } = commit;
    let mut all = commit.changes.to_vec();
    let mut next = head.clone().after(&steps.pointer);
    next.next += u64::try_from(steps.prepared.len()).unwrap_or(u64::MAX);
    all.push(next.store(table)?);
    for (number, step) in (head.next..).zip(&steps.prepared) {
        let mut entry = step.properties.clone();
        entry.set(STAMP, stamp(&head.stream, number));
        entry.set(POINTER, &steps.pointer);
        entry.set(ATTEMPTS, 0);
        let partition = partition.as_str();
        all.push(insert(table, partition, StepState::Logged, number, entry)?);
    }
    Ok(all)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
enum StepCountProblem {
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
