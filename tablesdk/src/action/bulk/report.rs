//! The result of a bulk run: counts, the single failures, and the index to resume at.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tablesdk_protocol::EntityKey;

use super::position::Position;
use super::send::BatchOutcome;
use crate::error::{Error, find_cause, push_causes};
use crate::query::PageToken;

/// The progress of a bulk run. Every count is a number of entities.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::stream;
///
/// let employees = (0..250).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// let run = table.bulk().upsert_replace(stream::iter(employees)).progress(|progress| {
///     eprint!("\r{} read, {} written, {} failed", progress.read, progress.written, progress.failed);
/// });
/// let report = run.await?;
/// assert_eq!((report.progress().written, report.progress().requests), (250, 3));
/// assert_eq!(report.progress().resume_at, 250, "nothing is left to be done");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkProgress {
    /// Read from the input so far.
    pub read: u64,
    /// Written; of deletes, deleted; of moves, moved.
    pub written: u64,
    /// To be deleted or moved, but not found: deleted by another program, never there, or deleted
    /// by an attempt of this run whose response was lost.
    pub missing: u64,
    /// To be deleted or moved only if unchanged, but changed. They stay. To be
    /// [modified](super::ModifyAll), but changed so that the query no longer finds them, or that
    /// the closure leaves them as they are.
    pub changed: u64,
    /// Found with the key that the run would give them, or left by the closure as they are, and
    /// not written. They are not in [`read`](Self::read).
    pub skipped: u64,
    /// Failed.
    pub failed: u64,
    /// Requests that were sent: batches, and single changes after a batch was rejected. An entity
    /// that is moved alone counts as one. Reads and writes of entries of indexes beside a batch do
    /// not count.
    pub requests: u64,
    /// Everything in the input before this index is done: written, or itself rejected. A run that
    /// begins here continues this run. See [`Bulk::resume_at`](super::Bulk::resume_at).
    pub resume_at: u64,
    /// The position in the query of a [`ModifyAll`](super::ModifyAll): every entity that the query
    /// finds before it is done. A run that [resumes](super::ModifyAll::resume_at) here continues
    /// this run. `None` when the query has no more entities, for other runs, and on Cosmos DB,
    /// which has no order.
    pub resume_token: Option<PageToken>,
}

/// The result of a bulk run that reached the end of its input.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::stream;
///
/// table.insert(&Employee::new("Sales", "7", "Grace")).await?;
/// let employees = (0..100).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// let report = table.bulk().insert(stream::iter(employees)).await?;
/// assert_eq!(report.progress().written, 99);
/// for failure in report.failures() {
///     println!("{failure}");
/// }
/// # assert_eq!(report.failures().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "single entities may have failed: see `failures`"]
pub struct BulkReport {
    progress: BulkProgress,
    failures: Vec<BulkFailure>,
}

impl BulkReport {
    /// The counts.
    pub const fn progress(&self) -> &BulkProgress {
        &self.progress
    }

    /// The entities that failed, in the order in which they did.
    pub fn failures(&self) -> &[BulkFailure] {
        &self.failures
    }

    /// Returns true if nothing failed.
    pub fn is_success(&self) -> bool {
        self.failures.is_empty()
    }
}

/// An entity that a bulk run could not write, or whose write has an unknown outcome.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::stream;
///
/// table.insert(&Employee::new("Sales", "7", "Grace")).await?;
/// let employees = (0..100).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// let report = table.bulk().insert(stream::iter(employees)).await?;
///
/// let [failure] = report.failures() else { panic!("one is there already") };
/// assert_eq!(failure.index(), 7);
/// assert_eq!(failure.key().expect("it has one").row_key().as_str(), "7");
/// assert!(failure.error().is_conflict() && !failure.is_outcome_unknown());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BulkFailure {
    pub(crate) index: u64,
    pub(crate) key: Option<EntityKey>,
    pub(crate) error: Arc<Error>,
    /// True if the entity itself was rejected. A retry would be rejected again: nothing was
    /// written, and a run that resumes can skip it.
    pub(crate) is_rejected: bool,
}

impl BulkFailure {
    /// The index of the entity in the input, counted from 0.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// The key of the entity, if it has one.
    pub const fn key(&self) -> Option<&EntityKey> {
        self.key.as_ref()
    }

    /// The error. Entities of one batch may share it: [`BulkFailure::key`] returns the key of this
    /// entity, even if the error names another.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns true if the entity may still have been written: the change was sent, and no response
    /// arrived, or the response does not show the outcome. After a batch of deletes whose response
    /// was lost, this stays true when the single delete that follows fails in another way.
    pub fn is_outcome_unknown(&self) -> bool {
        self.error.is_outcome_unknown()
    }
}

impl fmt::Display for BulkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entity at index {}", self.index)?;
        // The error of a batch may name another entity than this one, and then both matter.
        if let Some(key) = self
            .key
            .as_ref()
            .filter(|key| self.error.key() != Some(key))
        {
            write!(f, " {key}")?;
        }
        write!(f, ": {}", self.error)
    }
}

/// Why a bulk run ended before its input did, with the report up to that point. The run waited for
/// the batches in flight.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use futures::stream;
///
/// let employees = (0..250).map(|id| Employee::new("Sales", &id.to_string(), "Ada"));
/// let error = service.table("Nowhere").bulk().insert(stream::iter(employees)).await.unwrap_err();
/// assert!(error.error().is_some_and(|error| error.is_table_not_found()), "it does not exist");
/// assert_eq!(error.report().progress().written, 0);
/// # Ok(())
/// # }
/// ```
pub struct BulkError(Box<Inner>);

struct Inner {
    report: BulkReport,
    cause: Cause,
}

/// Why a run ends early.
pub(crate) enum Cause {
    /// The run cannot be started, or the error is about the table or the credential and not about
    /// an entity.
    Error(Arc<Error>),
    /// More entities failed than the limit allows.
    Failures(Arc<Error>),
    /// The input failed.
    Source(Box<dyn StdError + Send + Sync>),
}

impl BulkError {
    pub(crate) fn new(report: BulkReport, cause: Cause) -> Self {
        Self(Box::new(Inner { report, cause }))
    }

    /// The report up to the end of the run.
    pub const fn report(&self) -> &BulkReport {
        &self.0.report
    }

    /// The report up to the end of the run.
    pub fn into_report(self) -> BulkReport {
        self.0.report
    }

    /// The error that ended the run: of the table, of the credential, of the last entity that
    /// failed, or of the input if the input was a query. `None` for other inputs:
    /// [`downcast_ref`](Self::downcast_ref) returns the error of the input.
    pub fn error(&self) -> Option<&Error> {
        match &self.0.cause {
            Cause::Error(error) | Cause::Failures(error) => Some(error),
            Cause::Source(error) => error.downcast_ref(),
        }
    }

    /// The first cause that is a `T`, such as the error of the input.
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        find_cause(self.cause())
    }

    fn cause(&self) -> &(dyn StdError + 'static) {
        match &self.0.cause {
            Cause::Error(error) | Cause::Failures(error) => error.as_ref(),
            Cause::Source(error) => error.as_ref(),
        }
    }
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BulkProgress {
            written, failed, ..
        } = self.0.report.progress;
        match &self.0.cause {
            Cause::Error(_) => f.write_str("the bulk run cannot continue")?,
            Cause::Failures(_) => f.write_str("too many entities of the bulk run failed")?,
            Cause::Source(_) => f.write_str("the input of the bulk run failed")?,
        }
        let mut cause = String::new();
        push_causes(&mut cause, self.cause());
        write!(
            f,
            ", with {written} entities written and {failed} failed: {cause}"
        )
    }
}

/// As `{}`: it is what `unwrap` and a failing test print.
impl fmt::Debug for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The source is the cause, whose message is a part of `{}`, as it is for [`Error`].
impl StdError for BulkError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.cause())
    }
}

/// The result of one entity of the input.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// Not deleted, since it has changed.
    Changed,
    /// Found by a dry run.
    Found,
    Missing,
    Written,
}

/// Collects the report of a run.
pub(crate) struct ReportBuilder {
    progress: BulkProgress,
    failures: Vec<BulkFailure>,
    /// Indexes that were read and are not done: packed, in flight, or failed in a way that a retry
    /// may mend. Each with the key that the query found before it, where the position counts.
    pending: BTreeMap<u64, Option<Arc<EntityKey>>>,
    position: Option<Position>,
    /// How many entities the input has left out.
    skipped: Arc<AtomicU64>,
}

impl ReportBuilder {
    /// The report of a run that begins at that index.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            progress: BulkProgress {
                resume_at: first,
                ..BulkProgress::default()
            },
            failures: Vec::new(),
            pending: BTreeMap::new(),
            position: None,
            skipped: Arc::default(),
        }
    }

    /// Adds the counter of the entities that the input leaves out.
    pub(crate) fn counting(self, skipped: Arc<AtomicU64>) -> Self {
        Self { skipped, ..self }
    }

    /// Adds the position in the query that is the input.
    pub(crate) fn at(self, position: Option<Position>) -> Self {
        Self { position, ..self }
    }

    pub(crate) fn read(&mut self, index: u64) {
        self.progress.read += 1;
        let before = self.position.as_ref().and_then(Position::before);
        self.pending.insert(index, before);
    }

    pub(crate) fn outcome(&mut self, index: u64, outcome: Outcome) {
        self.pending.remove(&index);
        match outcome {
            Outcome::Found => {}
            Outcome::Changed => self.progress.changed += 1,
            Outcome::Missing => self.progress.missing += 1,
            Outcome::Written => self.progress.written += 1,
        }
    }

    pub(crate) fn failed(&mut self, failure: BulkFailure) {
        if failure.is_rejected {
            self.pending.remove(&failure.index);
        }
        self.progress.failed += 1;
        self.failures.push(failure);
    }

    /// Adds the outcome of a batch. Returns why the run must end, if it must.
    pub(crate) fn batch(&mut self, batch: BatchOutcome) -> Option<Cause> {
        for (index, outcome) in batch.outcomes {
            self.outcome(index, outcome);
        }
        for failure in batch.failures {
            self.failed(failure);
        }
        self.progress.requests += batch.requests;
        batch.fatal.map(Cause::Error)
    }

    /// The counts, when everything before `next` was read.
    pub(crate) fn progress(&mut self, next: u64) -> &BulkProgress {
        let first = self.pending.first_key_value();
        self.progress.resume_at = first.map_or(next, |(index, _)| *index);
        self.progress.resume_token = self.position.as_ref().and_then(|position| match first {
            Some((_, before)) => Some(position.token(before.as_deref())),
            None => position.now(),
        });
        self.progress.skipped = self.skipped.load(Ordering::Relaxed);
        &self.progress
    }

    /// Why the run ends, if that many entities have failed.
    pub(crate) fn too_many(&self, max_failures: usize) -> Option<Cause> {
        let last = self.failures.last();
        let last = last.filter(|_| self.failures.len() >= max_failures);
        last.map(|failure| Cause::Failures(Arc::clone(&failure.error)))
    }

    pub(crate) fn finish(mut self, next: u64) -> BulkReport {
        self.progress(next);
        BulkReport {
            progress: self.progress,
            failures: self.failures,
        }
    }
}
