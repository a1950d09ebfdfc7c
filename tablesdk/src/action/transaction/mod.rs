//! `transaction`: a closure reads entities of one partition and decides what changes. The changes
//! are written if what was read is still stored. Otherwise the closure runs again.
//!
//! Knows neither how changes are checked nor how a batch is sent.

mod commit;
mod handle;
mod read;

pub use handle::Transaction;

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::pin::{Pin, pin};

use futures_util::future::{Either, select};
use tablesdk_protocol::{EntityKey, PartitionKey, TableName};
use tokio::sync::mpsc::UnboundedReceiver;

use self::commit::{Committed, OPERATION, Round, RoundFailure, Sent, probe};
use self::handle::ReadRequest;
use self::read::Read;
use super::batch::{Batch, BatchResult};
use super::extend::ride::Riders;
use super::get_entity::{RawEntity, fetch, opened};
use super::refusal::refused;
use super::write::change::EntityChange;
use super::write::keep_marker::KeepMarker;
use super::write::own_copies::{Next, OwnCopies};
use crate::entity::EntityError;
use crate::error::{ClosureError, Error};
use crate::pipeline::{Effect, OperationRun, Table};

/// Changes entities of one partition with a closure. See
/// [`TableClient::transaction`](crate::TableClient::transaction).
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use std::time::Duration;
///
/// let rename = table.transaction("Sales", async |tx| {
///     let mut ada = tx.get(Employee::key("Sales", "1")).await?.ok_or("she left")?;
///     ada.name.push_str(" Lovelace");
///     tx.replace(ada);
///     Ok(())
/// });
/// rename.rounds(3).deadline(Duration::from_secs(5)).exactly_once().await?;
/// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap().name, "Ada Lovelace");
/// # Ok(())
/// # }
/// ```
///
/// `O` is its result: the value of the closure, or that and the ETags, by
/// [`with_etags`](Self::with_etags).
#[must_use = "actions do nothing until awaited"]
pub struct RunTransaction<'a, T, O = T> {
    table: Table,
    partition: Result<PartitionKey, EntityError>,
    decide: Decide<'a, T>,
    rounds: u32,
    /// The riders of the batch of each round.
    pub(crate) riders: Riders,
    exactly_once: Option<KeepMarker>,
    output: fn(T, BatchResult) -> O,
}

type Decide<'a, T> = Box<dyn FnMut(Transaction) -> Decision<'a, T> + Send + 'a>;
type Decision<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClosureError>> + Send + 'a>>;

impl<'a, T: Send + 'a> RunTransaction<'a, T> {
    pub(crate) fn new<F, Fut>(
        table: Table,
        partition: Result<PartitionKey, EntityError>,
        mut decide: F,
    ) -> Self
    where
        F: FnMut(Transaction) -> Fut + Send + 'a,
        Fut: Future<Output = Result<T, ClosureError>> + Send + 'a,
    {
        Self {
            table,
            partition,
            decide: Box::new(move |transaction| Box::pin(decide(transaction))),
            rounds: ROUNDS,
            riders: Riders::NONE,
            exactly_once: None,
            output: |value, _| value,
        }
    }

    /// Also returns the ETags of the entities that were written, in the order in which the closure
    /// changed them, and the entities themselves as [`Stored`](crate::Stored): they can be written
    /// again, or shown with their versions, without a read.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// let promote = table.transaction("Sales", async |tx| {
    ///     let mut ada = tx.get(Employee::key("Sales", "1")).await?.ok_or("she left")?;
    ///     ada.name.push_str(" Lovelace");
    ///     tx.replace(ada).insert(&Employee::new("Sales", "2", "Grace"));
    ///     Ok(())
    /// });
    /// let ((), written) = promote.with_etags().await?;
    /// assert_eq!(written.etags().len(), 2);
    ///
    /// let mut ada = written.stored(Employee::key("Sales", "1"))?.expect("it was replaced");
    /// ada.name.push_str(", Countess");
    /// table.replace(&mut ada).await?;
    /// # assert_eq!(table.get(Employee::key("Sales", "1")).await?.unwrap(), ada);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Checks of entities that were only read are not among the ETags. A transaction without
    /// changes has none.
    pub fn with_etags(self) -> RunTransaction<'a, T, (T, BatchResult)> {
        RunTransaction {
            table: self.table,
            partition: self.partition,
            decide: self.decide,
            rounds: self.rounds,
            riders: self.riders,
            exactly_once: self.exactly_once,
            output: |value, written| (value, written),
        }
    }
}

impl<'a, T: Send + 'a, O: Send + 'a> RunTransaction<'a, T, O> {
    /// The maximum number of rounds when other clients keep writing the entities; 16 by default.
    /// Must not be 0.
    ///
    /// All rounds together have the [deadline](crate::RetryPolicy::deadline) of the client, and the
    /// time of the closure counts. The pauses between two rounds are those of
    /// [`Modify::rounds`](super::Modify::rounds).
    pub const fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    async fn run(mut self) -> Result<O, Error> {
        if self.rounds == 0 {
            let error = "a transaction needs at least one round";
            return Err(refused(OPERATION, error));
        }
        let partition = self.partition.clone();
        let partition = partition.map_err(|error| refused(OPERATION, error))?;
        let table = self.table.clone();
        let name = table.checked_name(OPERATION)?;
        let mut run = table.pipeline.begin(OPERATION);
        let committed = self.in_rounds(&mut run, &name, &partition).await;
        let deadline = run.deadline();
        let (value, committed) = run.end(committed)?;
        let follow_up = committed.riders.follow_up(&table, &partition, deadline);
        follow_up.await;
        Ok((self.output)(value, committed.written))
    }

    async fn in_rounds(
        &mut self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        partition: &PartitionKey,
    ) -> Result<(T, Committed), Error> {
        let mut round = 0;
        let mut own_copies = OwnCopies::default();
        let mut last: Option<(Error, Sent)> = None;
        loop {
            let (value, (changes, riders), reads) = self.decide(run, partition).await?;
            let commit = Round::new(table, changes, riders, &reads, self.exactly_once);
            let commit = commit.map_err(|error| run.annotate(error))?;
            run.report().entities = match commit.len() {
                0 => reads.iter().filter(|read| read.found.is_some()).count(),
                changed_or_checked => changed_or_checked,
            };
            if let Some((error, sent)) = last.take().filter(|_| commit.len() > 0) {
                match own_copies.after_refusal(sent.is_stored(&reads)) {
                    Next::Round => {}
                    Next::Probe => {
                        let accepted = probe(run, table, &reads).await;
                        own_copies.after_probe(accepted == Some(true));
                        match accepted {
                            Some(true) => {}
                            Some(false) if run.pause_before_round(round).await => {
                                last = Some((error, sent));
                            }
                            _ => return Err(run.annotate(sent.unknown(error, &reads))),
                        }
                        // What was read has other versions.
                        continue;
                    }
                    Next::End => return Err(run.annotate(sent.unknown(error, &reads))),
                }
            }
            round += 1;
            let RoundFailure {
                error,
                is_conflict,
                sent,
            } = match commit.send(run, table, partition).await {
                Ok(committed) => return Ok((value, committed)),
                Err(failure) => failure,
            };
            let starts_over =
                is_conflict && round < self.rounds && run.pause_before_round(round).await;
            if !starts_over {
                return Err(error);
            }
            // With a marker, the outcome of the round is known.
            last = self.exactly_once.is_none().then_some((error, sent));
        }
    }

    /// Runs the closure, and reads for it.
    async fn decide(
        &mut self,
        run: &mut OperationRun<'_>,
        partition: &PartitionKey,
    ) -> Result<(T, (Vec<EntityChange>, Riders), Vec<Read>), Error> {
        let (table, riders) = (self.table.clone(), self.riders.clone());
        let batch = Batch::with_riders(table, partition.clone(), riders, self.exactly_once);
        let (transaction, changes, requests) = Transaction::new(partition.clone(), batch);
        let mut reads = Vec::new();
        let mut unread = None;
        let deadline = run.deadline();
        let decision = (self.decide)(transaction);
        let decided = {
            let reading = pin!(read_for(
                &self.table,
                run,
                requests,
                &mut reads,
                &mut unread
            ));
            match deadline.limit(select(decision, reading)).await {
                Some(Either::Left((decided, _))) => Some(decided),
                Some(Either::Right((never, _))) => match never {},
                None => None,
            }
        };
        match decided {
            Some(Ok(value)) => {
                let changes = match changes.end() {
                    Some(batch) => batch.into_changes().await,
                    None => Ok((Vec::new(), Riders::NONE)),
                };
                let changes = changes.map_err(|error| run.annotate(error))?;
                match unread {
                    // The changes may depend on it, and could not be checked.
                    Some(key) if !changes.0.is_empty() || changes.1.are_committed_alone() => {
                        let error = refused(OPERATION, Unread).with_key(&key);
                        Err(run.annotate(error))
                    }
                    _ => Ok((value, changes, reads)),
                }
            }
            Some(Err(error)) => Err(match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(error) => run.annotate(Error::aborted(error)),
            }),
            None => {
                let what = match unread {
                    None => "the closure did not end",
                    Some(_) => "no response to a read",
                };
                let message = format!("{what} within {:?}", deadline.elapsed());
                let error = run.annotate(Error::timeout(message));
                Err(match unread {
                    None => error,
                    Some(key) => error.with_key(&key),
                })
            }
        }
    }
}

/// Reads what the closure asks for, one entity after the other, and each only once. `unread` is the
/// first key whose read failed or did not end.
async fn read_for(
    table: &Table,
    run: &mut OperationRun<'_>,
    mut requests: UnboundedReceiver<ReadRequest>,
    reads: &mut Vec<Read>,
    unread: &mut Option<EntityKey>,
) -> Infallible {
    while let Some(request) = requests.recv().await {
        let ReadRequest {
            key,
            extensions,
            respond,
        } = request;
        let known = reads.iter().position(|read| read.key == key);
        let index = match known {
            Some(index) => Ok(index),
            None => {
                let is_first = unread.is_none();
                unread.get_or_insert_with(|| key.clone());
                let read = read(table, run, key.clone()).await;
                if is_first && read.is_ok() {
                    *unread = None;
                }
                read.map(|read| {
                    reads.push(read);
                    reads.len() - 1
                })
            }
        };
        let read = index.map(|index| reads.get(index).and_then(|read| read.found.as_ref()));
        let opened_here;
        let read = match read {
            Ok(Some(found)) if !extensions.is_empty() => {
                match opened(table, &extensions, &key, found.content.clone()).await {
                    Ok(content) => {
                        let etag = found.etag.clone();
                        opened_here = RawEntity { content, etag };
                        Ok(Some(&opened_here))
                    }
                    Err(error) => Err(run.annotate(error)),
                }
            }
            read => read,
        };
        respond(read, &|error| run.annotate(error).with_key(&key));
    }
    // The closure goes on without its transaction.
    pending().await
}

/// Reads an entity at the primary.
async fn read(table: &Table, run: &mut OperationRun<'_>, key: EntityKey) -> Result<Read, Error> {
    let found = match fetch(run, Effect::ReadNow, table, &key, None).await {
        Ok(found) => Some(found),
        // A missing table is an error, a missing entity is not.
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    Ok(Read { key, found })
}

action!(
    impl['a, T: Send + 'a, O: Send + 'a]
    RunTransaction<'a, T, O>, table.pipeline => 'a, O
);
exactly_once_options!(
    impl['a, T: Send + 'a, O: Send + 'a] RunTransaction<'a, T, O>;
    /// Determines the outcome of each round even when responses are lost. The changes are made once
    /// if the operation succeeds, and not at all if it fails. The marker for this is one of the 100
    /// changes. See [the guide](crate::guide::errors_and_retries#exactly-once) for what it costs.
);

impl<T, O> fmt::Debug for RunTransaction<'_, T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunTransaction")
            .field("table", &self.table)
            .field("partition", &self.partition)
            .field("rounds", &self.rounds)
            .field("exactly_once", &self.exactly_once)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the closure changes entities although a read of it failed, so the read cannot be checked")]
struct Unread;

const ROUNDS: u32 = 16;
