//! `bulk`: any number of entities over any partitions, in batches, several at a time. Not atomic, resumable.

mod delete_all;
mod pack;
mod report;
mod send;

pub use delete_all::DeleteAll;
pub use report::{BulkError, BulkFailure, BulkProgress, BulkReport};

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use tablesdk_protocol::IfMatch;
use tablesdk_protocol::operation::update_entity::Mode;

use self::pack::{Done, Item, Packer};
use self::report::{Cause, Ledger};
use self::send::{Sent, Sizes, Verb, send};
use crate::action::EncodedEntity;
use crate::entity::WritableEntity;
use crate::entity::key::IntoEntityKey;
use crate::error::Error;
use crate::pipeline::Table;

/// Starts a bulk run: selects the operation and the input. See [`TableClient::bulk`].
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::{TryStreamExt, stream};
/// use tablesdk::Stored;
///
/// let employees = (0..150).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// table.bulk().upsert_replace_stream(stream::iter(employees)).run().await?;
///
/// // From one table into another. Where the query fails, the run ends.
/// let former = service.table("FormerEmployees");
/// former.create_table().await?;
/// let found = table.query::<Employee>().stream().map_ok(Stored::into_inner);
/// let report = former.bulk().upsert_replace_try_stream(found).run().await?;
/// assert_eq!(report.progress().written, 150);
///
/// let keys = (0..150).map(|id| Employee::key("Sales", id.to_string()));
/// let report = table.bulk().delete_all(keys).run().await?;
/// assert!(report.is_success());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a bulk run does nothing until it is run"]
pub struct BulkStart {
    table: Table,
}

impl BulkStart {
    pub(crate) const fn new(table: Table) -> Self {
        Self { table }
    }

    /// Inserts entities that must not exist yet.
    pub fn insert_all<'a, E, I>(self, entities: I) -> Bulk<'a>
    where
        E: WritableEntity,
        I: IntoIterator<Item = E, IntoIter: Send + 'a>,
    {
        self.insert_stream(stream::iter(entities))
    }

    /// As [`insert_all`](Self::insert_all), from a stream.
    pub fn insert_stream<'a, E: WritableEntity>(
        self,
        entities: impl Stream<Item = E> + Send + 'a,
    ) -> Bulk<'a> {
        self.write(Verb::Insert, entities.map(Ok::<_, Error>))
    }

    /// Inserts entities, or replaces the existing ones, whatever their version.
    pub fn upsert_replace_all<'a, E, I>(self, entities: I) -> Bulk<'a>
    where
        E: WritableEntity,
        I: IntoIterator<Item = E, IntoIter: Send + 'a>,
    {
        self.upsert_replace_stream(stream::iter(entities))
    }

    /// As [`upsert_replace_all`](Self::upsert_replace_all), from a stream.
    pub fn upsert_replace_stream<'a, E: WritableEntity>(
        self,
        entities: impl Stream<Item = E> + Send + 'a,
    ) -> Bulk<'a> {
        self.write(Verb::Upsert(Mode::Replace), entities.map(Ok::<_, Error>))
    }

    /// As [`upsert_replace_all`](Self::upsert_replace_all), from a stream that may fail, such as a query or a file. The first
    /// error ends the run, when what came before it is settled.
    pub fn upsert_replace_try_stream<'a, E, X>(
        self,
        entities: impl Stream<Item = Result<E, X>> + Send + 'a,
    ) -> Bulk<'a>
    where
        E: WritableEntity,
        X: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.write(Verb::Upsert(Mode::Replace), entities)
    }

    /// Inserts entities, or merges them into the existing ones, whatever their version.
    pub fn upsert_merge_all<'a, E, I>(self, entities: I) -> Bulk<'a>
    where
        E: WritableEntity,
        I: IntoIterator<Item = E, IntoIter: Send + 'a>,
    {
        self.upsert_merge_stream(stream::iter(entities))
    }

    /// As [`upsert_merge_all`](Self::upsert_merge_all), from a stream.
    pub fn upsert_merge_stream<'a, E: WritableEntity>(
        self,
        entities: impl Stream<Item = E> + Send + 'a,
    ) -> Bulk<'a> {
        self.write(Verb::Upsert(Mode::Merge), entities.map(Ok::<_, Error>))
    }

    /// Deletes entities by their keys, whatever their version. An entity that does not exist is counted as
    /// [missing](BulkProgress::missing), and is not a failure.
    pub fn delete_all<'a, K, I>(self, keys: I) -> Bulk<'a>
    where
        K: IntoEntityKey,
        I: IntoIterator<Item = K, IntoIter: Send + 'a>,
    {
        self.delete_stream(stream::iter(keys))
    }

    /// As [`delete_all`](Self::delete_all), from a stream.
    pub fn delete_stream<'a, K: IntoEntityKey>(
        self,
        keys: impl Stream<Item = K> + Send + 'a,
    ) -> Bulk<'a> {
        let inputs = keys.map(|key| {
            let key = key.into_entity_key();
            let key = key.map_err(|error| Error::input(error).with_operation("delete entity"));
            Ok(Input {
                change: key.map(|key| (EncodedEntity::of_key(key), None)),
            })
        });
        Bulk::new(self.table, Verb::Delete, inputs)
    }

    fn write<'a, E, X>(
        self,
        verb: Verb,
        entities: impl Stream<Item = Result<E, X>> + Send + 'a,
    ) -> Bulk<'a>
    where
        E: WritableEntity,
        X: Into<Box<dyn StdError + Send + Sync>>,
    {
        let operation = match verb {
            Verb::Upsert(Mode::Merge) => "insert or merge entity",
            Verb::Upsert(Mode::Replace) => "insert or replace entity",
            Verb::Delete | Verb::Insert => "insert entity",
        };
        let inputs = entities.map(move |entity| {
            let entity = entity.map_err(Into::into)?;
            let encoded = EncodedEntity::new(operation, &entity);
            Ok(Input {
                change: encoded.map(|encoded| (encoded, None)),
            })
        });
        Bulk::new(self.table, verb, inputs)
    }
}

/// An entity of the input, encoded, or what is wrong with it.
struct Input {
    change: Result<(EncodedEntity, Option<IfMatch>), Error>,
}

type Inputs<'a> =
    Pin<Box<dyn Stream<Item = Result<Input, Box<dyn StdError + Send + Sync>>> + Send + 'a>>;

/// A bulk run, ready to go. See [`TableClient::bulk`].
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// let employees = (0..250).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// let mut written = 0;
/// let run = table
///     .bulk()
///     .upsert_merge_all(employees)
///     .concurrency(4)
///     .buffer(1_000)
///     .max_failures(10)
///     .progress(|progress| written = progress.written);
/// let report = run.run().await?;
/// assert!(report.is_success());
/// assert_eq!(written, 250);
/// # Ok(())
/// # }
/// ```
#[must_use = "a bulk run does nothing until it is run"]
pub struct Bulk<'a> {
    table: Table,
    verb: Verb,
    inputs: Inputs<'a>,
    concurrency: usize,
    buffer: usize,
    max_failures: usize,
    first: u64,
    progress: Box<dyn FnMut(&BulkProgress) + Send + 'a>,
}

impl<'a> Bulk<'a> {
    fn new(
        table: Table,
        verb: Verb,
        inputs: impl Stream<Item = Result<Input, Box<dyn StdError + Send + Sync>>> + Send + 'a,
    ) -> Self {
        Self {
            table,
            verb,
            inputs: Box::pin(inputs),
            concurrency: CONCURRENCY,
            buffer: BUFFER,
            max_failures: FAILURES_MAX,
            first: 0,
            progress: Box::new(|_| {}),
        }
    }

    /// How many batches are in flight at a time; 16 by default. Must not be 0.
    pub const fn concurrency(mut self, batches: usize) -> Self {
        self.concurrency = batches;
        self
    }

    /// The maximum number of entities that are held until their batches are full; 10,000 by default. The held entities never exceed
    /// 16 MiB. Must not be 0. If the input alternates between more partitions than fit, the batches are smaller.
    pub const fn buffer(mut self, entities: usize) -> Self {
        self.buffer = entities;
        self
    }

    /// The number of the failure that ends the run: the 1,000th by default. With 0 or 1, the first failure ends it. After that
    /// failure, the run reads and sends nothing more. The results of the batches that were in flight are still in the report. This
    /// limit and the [concurrency](Self::concurrency) therefore bound the size of the report.
    pub const fn max_failures(mut self, failures: usize) -> Self {
        self.max_failures = failures;
        self
    }

    /// Skips the input before that index: use the [`BulkProgress::resume_at`] of an earlier run over the same input. Indexes still
    /// count from the start of the whole input.
    pub const fn resume_at(mut self, index: u64) -> Self {
        self.first = index;
        self
    }

    /// Sets a function that is called with the progress of the run after every batch.
    pub fn progress(mut self, tell: impl FnMut(&BulkProgress) + Send + 'a) -> Self {
        self.progress = Box::new(tell);
        self
    }

    /// Runs until the end of the input.
    ///
    /// # Errors
    ///
    /// [`BulkError`] when the run ended early: the table is missing or being deleted, the credential is not valid, the input
    /// failed, or too many entities failed. The failure of a single entity is in the report.
    ///
    /// # Dropping it
    ///
    /// A run that is dropped sends nothing more. The batches in flight may be carried out. The last progress that was passed to
    /// [`progress`](Self::progress) remains valid: a run that resumes there loses nothing.
    pub async fn run(self) -> Result<BulkReport, BulkError> {
        Box::pin(self.follow()).await
    }

    async fn follow(self) -> Result<BulkReport, BulkError> {
        let Self {
            table,
            verb,
            mut inputs,
            concurrency,
            buffer,
            max_failures,
            first,
            mut progress,
        } = self;
        let mut ledger = Ledger::new(first);
        if let Err(error) = check(&table, concurrency, buffer) {
            let cause = Cause::Error(Arc::new(error));
            return Err(BulkError::new(ledger.finish(first), cause));
        }
        let mut packer = Packer::new(Sizes::new(table.clone(), verb), buffer, BUFFER_BYTES);
        let mut running = FuturesUnordered::new();
        let mut next = 0;
        let mut has_ended = false;
        let (mut cause, mut source_error) = (None, None);
        loop {
            while cause.is_none() && running.len() < concurrency {
                let Some(batch) = packer.take() else {
                    break;
                };
                let (items, done) = batch.split();
                let sent = send(table.clone(), verb, items);
                running.push(Box::pin(async move { (sent.await, done) }));
            }
            let reads = cause.is_none() && !has_ended && packer.closed() < concurrency;
            if running.is_empty() && !reads {
                break;
            }
            let event = poll_fn(|cx| {
                if let Poll::Ready(Some((sent, done))) = running.poll_next_unpin(cx) {
                    return Poll::Ready(Event::Sent(sent, done));
                }
                if reads {
                    match inputs.poll_next_unpin(cx) {
                        Poll::Ready(input) => return Poll::Ready(Event::Read(input)),
                        // Nothing is on its way, and nothing comes: what is there need not wait.
                        Poll::Pending if running.is_empty() && packer.close_oldest() => {
                            return Poll::Ready(Event::Idle);
                        }
                        Poll::Pending => {}
                    }
                }
                Poll::Pending
            });
            match event.await {
                Event::Idle => {}
                Event::Sent(sent, done) => {
                    packer.done(&done);
                    let fatal = note(&mut ledger, sent);
                    cause = cause.or(fatal);
                    progress(ledger.progress(next.max(first)));
                }
                Event::Read(Some(Ok(_))) if next < first => next += 1,
                Event::Read(Some(Ok(Input { change }))) => {
                    ledger.read(next);
                    match change {
                        Ok((EncodedEntity { key, body }, if_match)) => packer.push(Item {
                            index: next,
                            key,
                            body,
                            if_match,
                        }),
                        Err(error) => ledger.fail(BulkFailure {
                            index: next,
                            key: error.key().cloned(),
                            error: Arc::new(error),
                            is_refused: true,
                        }),
                    }
                    next += 1;
                }
                Event::Read(Some(Err(error))) => {
                    has_ended = true;
                    source_error = Some(error);
                    // What came before is still sent.
                    while packer.close_oldest() {}
                }
                Event::Read(None) => {
                    has_ended = true;
                    while packer.close_oldest() {}
                }
            }
            if cause.is_none() && ledger.failures().len() >= max_failures {
                let last = ledger.failures().last();
                cause = last.map(|failure| Cause::Failures(Arc::clone(&failure.error)));
            }
            if cause.is_some() {
                // It is read no more, and what it waits for may take a place that a batch needs.
                inputs = Box::pin(stream::empty());
            }
        }
        let report = ledger.finish(next.max(first));
        match cause.or_else(|| source_error.map(Cause::Source)) {
            Some(cause) => Err(BulkError::new(report, cause)),
            None => Ok(report),
        }
    }
}

impl fmt::Debug for Bulk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk")
            .field("table", &self.table)
            .field("verb", &self.verb)
            .field("concurrency", &self.concurrency)
            .field("buffer", &self.buffer)
            .field("max_failures", &self.max_failures)
            .field("resume_at", &self.first)
            .finish_non_exhaustive()
    }
}

/// What a run waits for.
enum Event {
    Idle,
    Read(Option<Result<Input, Box<dyn StdError + Send + Sync>>>),
    Sent(Sent, Done),
}

/// Refuses what no run can be made with.
fn check(table: &Table, concurrency: usize, buffer: usize) -> Result<(), Error> {
    table.checked_name(OPERATION)?;
    let refused = |problem| Err(Error::input(problem).with_operation(OPERATION));
    if concurrency == 0 {
        return refused("nothing can be sent with a concurrency of 0");
    }
    if buffer == 0 {
        return refused("nothing can be packed in a buffer of no entities");
    }
    Ok(())
}

/// Enters what came of a batch into the accounts. Gives back why the run must end, if it must.
fn note(ledger: &mut Ledger, sent: Sent) -> Option<Cause> {
    let Sent {
        outcomes,
        failures,
        requests,
        fatal,
        ..
    } = sent;
    for (index, outcome) in outcomes {
        ledger.settle(index, &outcome);
    }
    for failure in failures {
        ledger.fail(failure);
    }
    ledger.sent(requests);
    fatal.map(Cause::Error)
}

/// Whether a status refuses a request for what it is.
fn is_refusal(status: StatusCode) -> bool {
    status.is_client_error()
        && status != StatusCode::UNAUTHORIZED
        && status != StatusCode::REQUEST_TIMEOUT
        && status != StatusCode::TOO_MANY_REQUESTS
}

const OPERATION: &str = "bulk";
const CONCURRENCY: usize = 16;
const BUFFER: usize = 10_000;
const BUFFER_BYTES: usize = 16 * 1024 * 1024;
const FAILURES_MAX: usize = 1_000;
