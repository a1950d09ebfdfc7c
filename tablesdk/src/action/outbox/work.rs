//! Applies what the outbox of a partition holds, in order. Several clients may do so at the same time: each request is conditional, and
//! the pauses between attempts only save double work.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{IfMatch, PartitionKey, TableName, Value};

use super::apply::{Applied, Basis, IN_FLIGHT, apply, sweep};
use super::drain::{DrainReport, Handlers};
use super::entry::{ATTEMPTS, ERROR, ERROR_MAX, Entry, Kind, MESSAGE, State};
use super::head::Pointer;
use super::view::View;
use crate::action::write::change::EntityChange;
use crate::action::write::together::send_together;
use crate::error::{Error, ErrorKind};
use crate::pipeline::{Deadline, OperationRun, Table};

/// Applies the outbox of one partition.
pub(super) struct Worker<'w> {
    table: &'w Table,
    name: TableName,
    partition: &'w PartitionKey,
    role: Role<'w>,
    pub(super) report: DrainReport,
    /// The pointers of the entries that it has seen.
    pub(super) pointers: BTreeSet<String>,
}

/// Who applies the outbox.
#[derive(Clone, Copy)]
pub(super) enum Role<'w> {
    /// A worker with these functions.
    Worker(&'w Handlers),
    /// A writer that has just committed the steps of this pointer. It applies them, and what is before them.
    Writer(&'w str),
}

impl<'w> Role<'w> {
    const fn handlers(self) -> Option<&'w Handlers> {
        match self {
            Self::Worker(handlers) => Some(handlers),
            Self::Writer(_) => None,
        }
    }
}

/// What came of an entry.
enum Outcome {
    /// It was applied, and is still in the log.
    Applied,
    /// It was applied, and is no longer in the log.
    Removed,
    /// It is left to another worker, or to a later time, and so are those after it.
    Left,
    /// It is not as it was read: another worker is at it.
    Changed,
}

/// Applies the steps that a transaction has just committed. What fails, and what is left at its deadline, is left to workers.
pub(super) async fn apply_now(
    pointer: &str,
    table: &Table,
    partition: &PartitionKey,
    deadline: Deadline,
) {
    let Ok(name) = table.checked_name(OPERATION) else {
        return;
    };
    let mut worker = Worker::new(table, name, partition, Role::Writer(pointer));
    let result = deadline.limit(worker.work()).await;
    let result = result.unwrap_or_else(|| {
        let error = Error::timeout("the deadline of the transaction has passed".to_owned());
        Err(table.pipeline.locate(error).with_operation(OPERATION))
    });
    if let Err(error) = result {
        table.pipeline.warn_step_left(None, &error);
    }
}

impl<'w> Worker<'w> {
    pub(super) fn new(
        table: &'w Table,
        name: TableName,
        partition: &'w PartitionKey,
        role: Role<'w>,
    ) -> Self {
        Self {
            table,
            name,
            partition,
            role,
            report: DrainReport::default(),
            pointers: BTreeSet::new(),
        }
    }

    /// Applies what can be applied now. Returns what is left.
    pub(super) async fn work(&mut self) -> Result<View, Error> {
        let mut without_progress = 0;
        loop {
            let before = self.report.clone();
            let mut run = self.table.pipeline.begin(OPERATION);
            let basis = Basis::now(run.pipeline());
            let view = View::read(&mut run, &self.name, self.partition).await;
            let mut view = run.end(view)?;
            self.pointers.extend(view.pointers());
            let is_over = self.pass(&mut view, basis).await?;
            without_progress += 1;
            if self.report != before {
                without_progress = 0;
            }
            // Other workers are at it, or no response arrives.
            if is_over || without_progress == ROUNDS {
                self.report.waiting = view.log.len().try_into().unwrap_or(u64::MAX);
                return Ok(view);
            }
        }
    }

    /// Applies the entries of a view, and removes them from it. `false` when the outbox has to be read again.
    async fn pass(&mut self, view: &mut View, basis: Basis) -> Result<bool, Error> {
        let mut applied = Vec::new();
        while let Some(mut entry) = view.log.first().cloned() {
            if self.leaves(view, applied.len()) {
                break;
            }
            // A step of an entity must not be tried again after a delete of it, and no message after a later one.
            let is_last_of_these = !matches!(entry.kind, Kind::Merge | Kind::Replace)
                || applied.len() == BATCH_CHANGES_MAX;
            if is_last_of_these && !self.remove(&mut applied).await? {
                return Ok(false);
            }
            match self.entry(view, &mut entry, basis).await? {
                Outcome::Applied => applied.push(entry),
                Outcome::Removed => self.report.applied += 1,
                Outcome::Left => break,
                Outcome::Changed => return Ok(false),
            }
            view.log.remove(0);
            if view.log.is_empty() && !view.is_complete {
                // Only the first entries of a long log were read.
                self.remove(&mut applied).await?;
                return Ok(false);
            }
        }
        if !self.remove(&mut applied).await? {
            return Ok(false);
        }
        if self.role.handlers().is_some() {
            self.sweep(view).await?;
        }
        self.forget(view).await;
        Ok(true)
    }

    /// Whether the rest of the log is for others: a writer does not pay for what others have left, and returns when its own steps are applied.
    fn leaves(&self, view: &View, applied: usize) -> bool {
        let Role::Writer(pointer) = self.role else {
            return false;
        };
        let before = self.report.applied + self.report.set_aside;
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        before.saturating_add(applied) >= BATCH_CHANGES_MAX
            || !view.log.iter().any(|entry| entry.pointer == pointer)
    }

    async fn entry(
        &mut self,
        view: &mut View,
        entry: &mut Entry,
        mut basis: Basis,
    ) -> Result<Outcome, Error> {
        if let Some(before) = blocking(view, entry) {
            let why = format!("step {before} of the same entity was set aside");
            return self.set_aside(view, entry, &why).await;
        }
        let message = entry.text(MESSAGE).filter(|_| entry.kind == Kind::Message);
        let handler = message.and_then(|name| {
            let handlers = self.role.handlers()?;
            handlers.get(name)
        });
        if !is_table_step(entry.kind) && handler.is_none() {
            if self.role.handlers().is_some() {
                let name = message.unwrap_or(entry.kind.as_str());
                self.table.pipeline.warn_no_handler(OPERATION, name);
            }
            return Ok(Outcome::Left);
        }
        if entry.attempts > 0 && view.age(entry.written) < pause_after(entry.attempts) {
            return Ok(Outcome::Left);
        }
        if entry.attempts >= ATTEMPTS_MAX {
            let why = entry.text(ERROR).unwrap_or("the worker did not survive it");
            let why = why.to_owned();
            return self.set_aside(view, entry, &why).await;
        }
        let mut run = self.table.pipeline.begin(OPERATION);
        // A writer has no time to lose: its first attempt is not counted.
        let counts = self.role.handlers().is_some() || entry.attempts > 0;
        if counts {
            // That it is still there is newer than the view.
            basis = Basis::now(run.pipeline());
            entry.attempts += 1;
            let attempts = [(ATTEMPTS.to_owned(), Value::Int32(entry.attempts))];
            let merge = entry.merge(&self.name, &attempts)?;
            match merge.write(&mut run, None).await {
                Ok(etag) => entry.etag = etag.unwrap_or_else(|| entry.etag.clone()),
                Err(error) if is_changed(&error) => {
                    run.note_expected_error(&error);
                    return run.end(Ok(Outcome::Changed));
                }
                Err(error) => return run.end(Err(error)),
            }
        }
        let applied = match handler {
            Some(handler) => {
                // The time of the handler is not that of a request.
                run.end(Ok(()))?;
                let called = handler(entry, self.partition).await;
                run = self.table.pipeline.begin(OPERATION);
                called.map(|()| Applied::Done).map_err(Error::called_off)
            }
            None => {
                let target = entry.target();
                let earlier = view.removed.iter();
                let earlier = earlier.filter(|grave| grave.target() == target);
                let removed = earlier.map(|grave| grave.number).max();
                apply(&mut run, entry, removed, basis).await
            }
        };
        match applied {
            Ok(Applied::TooLate) => run.end(Ok(Outcome::Changed)),
            Ok(Applied::Done) => {
                let removed = self.done(&mut run, view, entry).await;
                run.end(removed)
            }
            Err(error) => {
                let error = run.annotate(error);
                self.table
                    .pipeline
                    .warn_step_left(Some(entry.number), &error);
                let Err(error) = run.end(Err::<Infallible, _>(error));
                self.failed(view, entry, counts, &error).await
            }
        }
    }

    /// Removes an applied entry from the log, if the next one must not be begun before. A delete step leaves a grave.
    async fn done(
        &self,
        run: &mut OperationRun<'_>,
        view: &mut View,
        entry: &Entry,
    ) -> Result<Outcome, Error> {
        let removed = match entry.kind {
            Kind::Merge | Kind::Replace => return Ok(Outcome::Applied),
            Kind::Delete => {
                let moved = entry.moved(&self.name, State::Removed, Vec::new())?;
                send_together(run, &moved, None).await.map(|_| ())
            }
            Kind::Message | Kind::Unknown => {
                // Whatever other workers have noted in it since: it was handled.
                let delete = entry.delete(&self.name, IfMatch::Any);
                delete.send_alone(run).await.map(|_| ())
            }
        };
        match removed {
            Ok(()) => {
                if entry.kind == Kind::Delete {
                    let mut grave = entry.clone();
                    grave.written = None;
                    view.removed.push(grave);
                }
                Ok(Outcome::Removed)
            }
            Err(error) if is_changed(&error) => {
                run.note_expected_error(&error);
                Ok(Outcome::Changed)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes in an entry that an attempt failed, or sets it aside after the last one.
    async fn failed(
        &mut self,
        view: &View,
        entry: &Entry,
        was_counted: bool,
        error: &Error,
    ) -> Result<Outcome, Error> {
        self.report.failed += 1;
        if !was_counted {
            return Ok(Outcome::Left);
        }
        let is_its_fault = is_fault_of_step(error);
        let why = shortened(&error.to_string());
        if is_its_fault && entry.attempts >= ATTEMPTS_MAX {
            return self.set_aside(view, entry, &why).await;
        }
        let attempts = entry.attempts - i32::from(!is_its_fault);
        let values = [
            (ATTEMPTS.to_owned(), Value::Int32(attempts)),
            (ERROR.to_owned(), Value::String(why)),
        ];
        let note = entry.merge(&self.name, &values)?;
        let mut run = self.table.pipeline.begin(OPERATION);
        let noted = note.write(&mut run, None).await;
        match noted {
            Err(error) if is_changed(&error) => run.end(Ok(Outcome::Changed)),
            noted => run.end(noted).map(|_| Outcome::Left),
        }
    }

    /// Moves an entry out of the log, so that the next ones can go on.
    async fn set_aside(&mut self, view: &View, entry: &Entry, why: &str) -> Result<Outcome, Error> {
        let mut head = view.head.clone();
        head.moves += 1;
        head.next = head.next.max(entry.number + 1);
        let mut all = vec![head.store(&self.name, self.partition)?];
        let changed = vec![
            (ATTEMPTS.to_owned(), Value::Int32(entry.attempts)),
            (ERROR.to_owned(), Value::String(why.to_owned())),
        ];
        all.extend(entry.moved(&self.name, State::Dead, changed)?);
        if self.send(&all).await? {
            self.report.set_aside += 1;
        }
        // It is read again, to see what is behind it.
        Ok(Outcome::Changed)
    }

    /// Removes applied entries from the log. `false` where another worker has removed one of them.
    async fn remove(&mut self, applied: &mut Vec<Entry>) -> Result<bool, Error> {
        if applied.is_empty() {
            return Ok(true);
        }
        let deletes: Vec<_> = applied
            .iter()
            .map(|entry| entry.delete(&self.name, IfMatch::ETag(entry.etag.clone())))
            .collect();
        if !self.send(&deletes).await? {
            return Ok(false);
        }
        self.report.applied += u64::try_from(applied.len()).unwrap_or(u64::MAX);
        applied.clear();
        Ok(true)
    }

    /// Looks once more at what delete steps have deleted, when no earlier request can be in flight any more.
    async fn sweep(&mut self, view: &mut View) -> Result<(), Error> {
        for grave in std::mem::take(&mut view.removed) {
            let mut is_swept = false;
            if view.age(grave.written) > IN_FLIGHT {
                let mut run = self.table.pipeline.begin(OPERATION);
                let swept = sweep(&mut run, &grave).await;
                // Otherwise a later drain tries again.
                is_swept = run.end(swept).is_ok()
                    && self
                        .send(&[grave.delete(&self.name, IfMatch::ETag(grave.etag.clone()))])
                        .await?;
            }
            if !is_swept {
                view.removed.push(grave);
            }
        }
        Ok(())
    }

    /// Deletes the pointers of writes of which no entry is left.
    async fn forget(&self, view: &View) {
        if !view.is_complete {
            return;
        }
        for id in self.pointers.iter().filter(|id| !view.has(id)) {
            if let Ok(pointer) = Pointer::of(id.clone()) {
                // A later drain deletes what is left.
                drop(self.send(&[pointer.delete(&self.name, IfMatch::Any)]).await);
            }
        }
    }

    /// Sends changes of the outbox. `false` where one of its entities is not as it was read. What is gone was perhaps moved by another
    /// worker, and not deleted by a request without a response: so such a delete does not count as done.
    pub(super) async fn send(&self, changes: &[EntityChange]) -> Result<bool, Error> {
        let mut run = self.table.pipeline.begin(OPERATION);
        let sent = match changes {
            [change] => change.send_alone(&mut run).await.map(|_| ()),
            changes => send_together(&mut run, changes, None).await.map(|_| ()),
        };
        match sent {
            Err(error) if is_changed(&error) => {
                run.note_expected_error(&error);
                run.end(Ok(false))
            }
            sent => run.end(sent).map(|()| true),
        }
    }
}

/// The number of an earlier step of the same entity that was set aside.
fn blocking(view: &View, entry: &Entry) -> Option<u64> {
    let target = entry.target()?;
    let mut dead = view.dead.iter();
    let before =
        dead.find(|dead| dead.number < entry.number && dead.target().as_ref() == Some(&target));
    before.map(|before| before.number)
}

const fn is_table_step(kind: Kind) -> bool {
    matches!(kind, Kind::Delete | Kind::Merge | Kind::Replace)
}

/// Whether another client has written or deleted what was to be changed.
fn is_changed(error: &Error) -> bool {
    error.is_out_of_date() || error.is_ambiguous()
}

/// Whether another attempt would fail in the same way, as far as the error shows. A busy service and a network are not the step's fault.
fn is_fault_of_step(error: &Error) -> bool {
    let is_passing = |status| {
        matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        )
    };
    match error.status() {
        Some(status) => status.is_client_error() && !is_passing(status),
        None => matches!(error.kind(), ErrorKind::CalledOff | ErrorKind::Input),
    }
}

/// How long an entry is left alone after that many attempts.
fn pause_after(attempts: i32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).try_into().unwrap_or(0));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

fn shortened(text: &str) -> String {
    text.chars().take(ERROR_MAX).collect()
}

const OPERATION: &str = "apply steps";
const ATTEMPTS_MAX: i32 = 10;
const ROUNDS: u32 = 16;
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
