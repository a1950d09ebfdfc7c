//! The loop of a bulk run: reads the input, packs batches, and sends several at a time.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;

use futures_util::stream::{FuturesUnordered, StreamExt as _, empty};
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::operation::update_entity::Mode;
use tablesdk_protocol::{IfMatch, PartitionKey};

use super::input::{Input, Inputs, SourceError};
use super::pack::{Item, Keys, Packer};
use super::position::Position;
use super::rate::MaxRate;
use super::report::{BulkError, BulkFailure, BulkProgress, BulkReport};
use super::report::{Cause, Outcome, ReportBuilder};
use super::send::{BatchOutcome, Sizes, Verb, is_fatal, is_rejection, send};
use super::turns::Turns;
use crate::action::write::encoded::EncodedEntity;
use crate::error::Error;
use crate::pipeline::Table;

/// The input and the options of a run.
pub(crate) struct BulkRun<'a> {
    pub(crate) table: Table,
    verb: Verb,
    inputs: Inputs<'a>,
    /// Sends a batch instead of [`send`].
    send: Option<SendBatch<'a>>,
    /// Counts the input, and sends nothing.
    pub(crate) dry_run: bool,
    pub(crate) concurrency: usize,
    pub(crate) batch_size: usize,
    pub(crate) buffer: usize,
    pub(crate) max_failures: usize,
    pub(crate) max_rate: MaxRate,
    /// The position in the query that is the input, where a run can be resumed there. The
    /// partitions of such an input follow each other.
    pub(crate) position: Option<Position>,
    /// The index of the input to begin at.
    pub(crate) first: u64,
    /// How many entities the input has left out.
    pub(crate) skipped: Arc<AtomicU64>,
    pub(crate) progress: Box<dyn FnMut(&BulkProgress) + Send + 'a>,
}

/// Sends a batch. Known only to a run that needs it, so that a program without such a run does not
/// contain it.
pub(crate) type SendBatch<'a> = Box<dyn Fn(Table, Vec<Item>) -> SentBatch<'a> + Send + 'a>;

pub(crate) type SentBatch<'a> = Pin<Box<dyn Future<Output = BatchOutcome> + Send + 'a>>;

impl<'a> BulkRun<'a> {
    /// A run with an empty input.
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            verb: Verb::Insert,
            inputs: empty().boxed(),
            send: None,
            dry_run: false,
            concurrency: 16,
            batch_size: BATCH_CHANGES_MAX,
            buffer: 10_000,
            max_failures: 1_000,
            max_rate: MaxRate::default(),
            position: None,
            first: 0,
            skipped: Arc::default(),
            progress: Box::new(|_| {}),
        }
    }

    pub(crate) fn with_input(self, verb: Verb, inputs: Inputs<'a>) -> Self {
        Self {
            verb,
            inputs,
            ..self
        }
    }

    /// As [`with_input`](Self::with_input), with another way to send a batch to the table of the
    /// run.
    pub(crate) fn with_sender(self, verb: Verb, inputs: Inputs<'a>, send: SendBatch<'a>) -> Self {
        Self {
            send: Some(send),
            ..self.with_input(verb, inputs)
        }
    }

    /// Rejects a name or an option with which no run is possible.
    fn check(&self) -> Result<(), BulkError> {
        let locate = |error: Error| self.table.pipeline.locate(error);
        let rejected = |problem: String| locate(Error::input(problem).with_operation(OPERATION));
        let error = match self {
            Self { concurrency: 0, .. } => rejected("the concurrency must not be 0".to_owned()),
            Self { max_rate, .. } if max_rate.entities_max() == 0 => {
                rejected("the maximum rate must not be 0".to_owned())
            }
            Self { buffer: 0, .. } => rejected("the buffer must not be 0".to_owned()),
            Self { batch_size, .. } if !(1..=BATCH_CHANGES_MAX).contains(batch_size) => rejected(
                format!("a batch size of {batch_size} is not from 1 to {BATCH_CHANGES_MAX}"),
            ),
            Self { table, .. } => match table.checked_name(OPERATION) {
                Ok(_) => return Ok(()),
                Err(error) => locate(error),
            },
        };
        let report = ReportBuilder::new(self.first).finish(self.first);
        Err(BulkError::new(report, Cause::Error(Arc::new(error))))
    }

    pub(crate) async fn run(mut self) -> Result<BulkReport, BulkError> {
        self.check()?;
        if self.dry_run {
            return self.count().await;
        }
        let (verb, first, concurrency) = (self.verb, self.first, self.concurrency);
        let mut report = self.report_from(first);
        let sizes = Sizes::new(self.table.clone(), verb);
        let batch_size = self.batch_size.min(self.max_rate.entities_max());
        let mut packer = Packer::new(sizes, batch_size, self.buffer, BUFFER_BYTES);
        let mut turns = Turns::new(self.max_rate);
        let mut partition = None;
        let mut in_flight = FuturesUnordered::new();
        let (mut next, mut has_ended) = (0, false);
        let (mut cause, mut source_error) = (None, None);
        loop {
            while cause.is_none() && in_flight.len() + turns.len() < concurrency {
                let Some(batch) = packer.take() else {
                    break;
                };
                turns.push(batch);
            }
            while let Some(batch) = turns.take() {
                let table = turns.paced(&self.table, &batch);
                let sent = match &self.send {
                    Some(send) => send(table, batch.items),
                    None => Box::pin(send(table, verb, batch.items, self.batch_size > 1)),
                };
                in_flight.push(Box::pin(async move { (sent.await, batch.keys) }));
            }
            let reads = cause.is_none() && !has_ended && packer.closed() < concurrency;
            if in_flight.is_empty() && turns.is_empty() && !reads {
                break;
            }
            let mut turn = pin!(turns.wait());
            let is_idle = in_flight.is_empty() && turns.is_empty();
            let event = poll_fn(|cx| {
                if let Poll::Ready(Some((outcome, keys))) = in_flight.poll_next_unpin(cx) {
                    return Poll::Ready(Event::Sent(outcome, keys));
                }
                if reads {
                    match self.inputs.poll_next_unpin(cx) {
                        Poll::Ready(input) => return Poll::Ready(Event::Read(input)),
                        // No batch is in flight and the input pauses: what is packed is sent.
                        Poll::Pending if is_idle && packer.close_oldest() => {
                            return Poll::Ready(Event::Idle);
                        }
                        Poll::Pending => {}
                    }
                }
                turn.as_mut().poll(cx).map(|()| Event::Idle)
            });
            let mut ended = Vec::new();
            match event.await {
                Event::Idle => {}
                Event::Sent(outcome, keys) => ended.push((outcome, keys)),
                Event::Read(Some(Ok(_))) if next < first => next += 1,
                Event::Read(Some(Ok(input))) => {
                    report.read(next);
                    let transformed = transformed(&self.table, self.verb, input);
                    match beside(&mut in_flight, &mut ended, transformed).await {
                        Ok(entity) => {
                            let other = |it: &PartitionKey| it != entity.0.key.partition_key();
                            if self.position.is_some() && partition.as_ref().is_none_or(other) {
                                // No more entities of the partition before follow.
                                while packer.close_oldest() {}
                                partition = Some(entity.0.key.partition_key().clone());
                            }
                            packer.push(Item::new(next, entity));
                        }
                        Err((error, is_rejected)) => {
                            let failure = self.failure(next, error, is_rejected);
                            cause = cause.or_else(|| fatal(&failure));
                            report.failed(failure);
                        }
                    }
                    next += 1;
                }
                Event::Read(end) => {
                    has_ended = true;
                    source_error = end.and_then(Result::err);
                    // What came before an error is still sent.
                    while packer.close_oldest() {}
                }
            }
            for (outcome, keys) in ended {
                packer.done(&keys);
                let fatal = report.batch(outcome);
                cause = cause.or(fatal);
                (self.progress)(report.progress(next.max(first)));
            }
            cause = cause.or_else(|| report.too_many(self.max_failures));
            if cause.is_some() {
                // The input is not read any more. A query that waits for its next page may hold a
                // permit that a batch needs.
                self.inputs = empty().boxed();
                turns.clear();
            }
        }
        let report = report.finish(next.max(first));
        match cause.or_else(|| source_error.map(Cause::Source)) {
            Some(cause) => Err(BulkError::new(report, cause)),
            None => Ok(report),
        }
    }

    fn report_from(&self, first: u64) -> ReportBuilder {
        let report = ReportBuilder::new(first).counting(Arc::clone(&self.skipped));
        report.at(self.position.clone())
    }

    /// The failure of an entity of the input.
    fn failure(&self, index: u64, error: Error, is_rejected: bool) -> BulkFailure {
        BulkFailure {
            index,
            key: error.key().cloned(),
            error: Arc::new(self.table.pipeline.locate(error)),
            is_rejected,
        }
    }

    async fn count(mut self) -> Result<BulkReport, BulkError> {
        let mut report = self.report_from(0);
        let mut count = 0;
        loop {
            match self.inputs.next().await {
                Some(Ok(input)) => {
                    report.read(count);
                    match input {
                        Ok(_) => report.outcome(count, Outcome::Found),
                        Err(error) => report.failed(self.failure(count, error, true)),
                    }
                    if let Some(cause) = report.too_many(self.max_failures) {
                        return Err(BulkError::new(report.finish(count + 1), cause));
                    }
                    count += 1;
                    if count % COUNTED_PER_PROGRESS == 0 {
                        (self.progress)(report.progress(count));
                    }
                }
                None => return Ok(report.finish(count)),
                Some(Err(error)) => {
                    return Err(BulkError::new(report.finish(count), Cause::Source(error)));
                }
            }
        }
    }
}

impl fmt::Debug for BulkRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk")
            .field("table", &self.table)
            .field("verb", &self.verb)
            .field("dry_run", &self.dry_run)
            .field("concurrency", &self.concurrency)
            .field("resume_at", &self.first)
            .finish_non_exhaustive()
    }
}

/// Encrypts an entity, once for all batches that it may become a part of. The error comes with
/// whether the entity itself is rejected: that no key could be read is not its fault.
async fn transformed(
    table: &Table,
    verb: Verb,
    input: Input,
) -> Result<(EncodedEntity, Option<IfMatch>), (Error, bool)> {
    let (entity, if_match) = input.map_err(|error| (error, true))?;
    let is_whole = !matches!(verb, Verb::Upsert(Mode::Merge));
    let transformed = entity.transformed(table, is_whole).await;
    let transformed = transformed.map_err(|error| {
        let is_rejected = is_rejection(&error) || error.is_about_one_entity();
        (error.with_operation(verb.operation()), is_rejected)
    })?;
    Ok((transformed, if_match))
}

/// The end of a run whose next entities would fail, too.
fn fatal(failure: &BulkFailure) -> Option<Cause> {
    let is_fatal = !failure.is_rejected && is_fatal(&failure.error);
    is_fatal.then(|| Cause::Error(Arc::clone(&failure.error)))
}

/// Awaits something while batches are in flight, one of which may hold the permit that it needs.
async fn beside<F: Future + Unpin, T>(
    in_flight: &mut FuturesUnordered<F>,
    ended: &mut Vec<F::Output>,
    other: impl Future<Output = T>,
) -> T {
    let mut other = pin!(other);
    let done = poll_fn(|cx| {
        while let Poll::Ready(Some(output)) = in_flight.poll_next_unpin(cx) {
            ended.push(output);
        }
        other.as_mut().poll(cx)
    });
    done.await
}

/// The next event of a run.
enum Event {
    Idle,
    Read(Option<Result<Input, SourceError>>),
    Sent(BatchOutcome, Keys),
}

const OPERATION: &str = "bulk";
const COUNTED_PER_PROGRESS: u64 = 1_000;
const BUFFER_BYTES: usize = 16 * 1024 * 1024;
