//! Applies what the outbox of a partition holds, in order. Several clients may do so at the same
//! time: each request is conditional, and the pauses between attempts only save double work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tablesdk_protocol::limits::BATCH_CHANGES_MAX;
use tablesdk_protocol::{ETag, IfMatch, PartitionKey, TableName};

use super::accounts::Accounts;
use super::apply::{Basis, IN_FLIGHT, OPERATION, apply, sweep};
use super::entry::{
    ACCOUNT, ATTEMPTS, ERROR, ERROR_MAX, Entry, Kind, MESSAGE, StepState, delete, send,
};
use super::event;
use super::head::{Head, pointer_key};
use super::report::{DrainReport, Handlers};
use super::view::{View, read};
use super::wake::wake;
use crate::action::write::change::EntityChange;
use crate::error::{Error, ErrorKind};
use crate::pipeline::{Deadline, Table};
use crate::random::random_guid;

/// Applies the outbox of one partition.
pub(super) struct Worker<'w> {
    table: &'w Table,
    pub(super) name: TableName,
    partition: &'w PartitionKey,
    role: Role<'w>,
    pub(super) report: DrainReport,
    /// The pointers of the entries that it has seen.
    pub(super) pointers: BTreeSet<String>,
}

/// The handlers and accounts of a worker, and its end, which the program gives it.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerOptions {
    pub(super) handlers: Handlers,
    pub(super) accounts: Accounts,
    /// True when the worker begins no further step.
    pub(super) is_stopping: Arc<AtomicBool>,
}

/// Who applies the outbox.
#[derive(Clone, Copy)]
pub(super) enum Role<'w> {
    Worker(&'w WorkerOptions),
    /// A writer that has just committed the steps of this pointer, and knows the accounts that they
    /// name. It applies them, and what is before them.
    Writer(&'w str, &'w Accounts),
}

impl<'w> Role<'w> {
    const fn handlers(self) -> Option<&'w Handlers> {
        match self {
            Self::Worker(options) => Some(&options.handlers),
            Self::Writer(..) => None,
        }
    }

    const fn accounts(self) -> &'w Accounts {
        match self {
            Self::Worker(options) => &options.accounts,
            Self::Writer(_, accounts) => accounts,
        }
    }
}

/// The outcome of the work on an entry.
enum EntryOutcome {
    /// It was applied, and is still in the log.
    Applied,
    /// It was applied, and is no longer in the log.
    Removed,
    /// It is left to another worker, or to a later time, and so are those after it.
    Left,
    /// It is not as it was read: another worker is at it.
    Changed,
}

/// Applies the steps that a transaction has just committed. What fails, and what is left at its
/// deadline, is left to workers.
pub(super) async fn apply_now(
    pointer: &str,
    accounts: &Accounts,
    table: &Table,
    partition: &PartitionKey,
    deadline: Deadline,
) {
    let Ok(name) = table.checked_name(OPERATION) else {
        return;
    };
    let role = Role::Writer(pointer, accounts);
    let mut worker = Worker::new(table, name, partition, role);
    let result = deadline.limit(worker.work()).await;
    let result = result.unwrap_or_else(|| {
        let error = Error::timeout("the deadline of the transaction has passed".to_owned());
        Err(table.pipeline.locate(error).with_operation(OPERATION))
    });
    match result {
        // Messages, and steps behind them, wait.
        Ok(view) if !view.log.is_empty() => wake(table, partition),
        Ok(_) => {}
        Err(error) => {
            event::step_left(table, None, &error);
            wake(table, partition);
        }
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
            self.pointers.extend(view.pointers().map(str::to_owned));
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

    /// Applies the entries of a view, and removes them from it. `false` when the outbox has to be
    /// read again.
    async fn pass(&mut self, view: &mut View, basis: Basis) -> Result<bool, Error> {
        let mut applied = Vec::new();
        while let Some(mut entry) = view.log.first().cloned() {
            if self.leaves(view, applied.len()) {
                break;
            }
            // A step of an entity must not be tried again after a delete of it, and no message
            // after a later one.
            let is_last_of_these = !matches!(entry.kind(), Kind::Merge | Kind::Replace)
                || applied.len() == BATCH_CHANGES_MAX;
            if is_last_of_these && !self.remove(&mut applied).await? {
                return Ok(false);
            }
            match self.entry(view, &mut entry, basis).await? {
                EntryOutcome::Applied => applied.push(entry),
                EntryOutcome::Removed => self.report.applied += 1,
                EntryOutcome::Left => break,
                EntryOutcome::Changed => {
                    // Otherwise the next look would leave them alone for a while, and all behind
                    // them.
                    self.remove(&mut applied).await?;
                    return Ok(false);
                }
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

    /// Returns true if the rest of the log is left to others: a worker is to stop, or a writer,
    /// which does not pay for the steps that others have left, has applied its own.
    fn leaves(&self, view: &View, applied: usize) -> bool {
        let pointer = match self.role {
            Role::Worker(options) => return options.is_stopping.load(Ordering::Relaxed),
            Role::Writer(pointer, _) => pointer,
        };
        let before = self.report.applied + self.report.set_aside;
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        before.saturating_add(applied) >= BATCH_CHANGES_MAX
            || !view.log.iter().any(|entry| entry.pointer() == pointer)
    }

    async fn entry(
        &mut self,
        view: &mut View,
        entry: &mut Entry,
        mut basis: Basis,
    ) -> Result<EntryOutcome, Error> {
        let mut dead = view.dead.iter();
        // Else a retry of the one that was set aside would find the number of this one.
        if let Some(before) = dead.find(|dead| dead.number < entry.number && dead.meets(entry)) {
            let why = format!("step {} of the same entity was set aside", before.number);
            return self.set_aside(view, entry, &why).await;
        }
        let is_worker = self.role.handlers().is_some();
        let kind = entry.kind();
        let message = entry.text(MESSAGE).filter(|_| kind == Kind::Message);
        let handler = message.and_then(|name| self.role.handlers()?.get(name));
        if matches!(kind, Kind::Message | Kind::Unknown) && handler.is_none() {
            if is_worker {
                let name = message.unwrap_or(kind.as_str());
                event::no_handler(OPERATION, self.table, name);
            }
            return Ok(EntryOutcome::Left);
        }
        let accounts = self.role.accounts();
        let Some(account) = accounts.of(&self.table.pipeline, entry) else {
            if is_worker {
                let account = entry.text(ACCOUNT).unwrap_or_default();
                event::no_account(OPERATION, self.table, account);
            }
            return Ok(EntryOutcome::Left);
        };
        let attempts = entry.attempts();
        if attempts > 0 && view.age(entry) < pause_after(attempts) {
            return Ok(EntryOutcome::Left);
        }
        if attempts >= ATTEMPTS_MAX && entry.text(ERROR).is_none_or(str::is_empty) {
            let why = "the worker did not survive it";
            return self.set_aside(view, entry, why).await;
        }
        // A writer has no time to lose: its first attempt is not counted.
        if is_worker || attempts > 0 {
            // That it is still there is newer than the view.
            basis = Basis::now(&self.table.pipeline);
            if !self.begin(entry, attempts + 1).await? {
                return Ok(EntryOutcome::Changed);
            }
        }
        let applied = match handler {
            Some(handler) => {
                let result = handler(entry).await;
                result.map(|()| true).map_err(|error| {
                    let error = self.table.pipeline.locate(Error::aborted(error));
                    error.with_operation(OPERATION)
                })
            }
            None => {
                let earlier = view.removed.iter().filter(|grave| grave.meets(entry));
                let removed = earlier.map(|grave| grave.number).max();
                apply(account, entry, removed, basis).await
            }
        };
        match applied {
            Ok(false) => Ok(EntryOutcome::Changed),
            Ok(true) => self.done(view, entry).await,
            Err(error) => self.failed(view, entry, &error).await,
        }
    }

    /// Notes the begin of an attempt in an entry. `false` if another worker was faster.
    async fn begin(&self, entry: &mut Entry, attempts: i32) -> Result<bool, Error> {
        let id = random_guid().to_string();
        let noted = [entry.note_attempt(&self.name, attempts, &id)?];
        if let Some([Some(etag)]) = self.send(&noted).await?.as_deref() {
            entry.attempted(attempts, etag.clone());
            return Ok(true);
        }
        // The refusal may be that of a second copy of the note, or the response was lost.
        match self.read_again(entry).await? {
            Some(again) if again.is_of_attempt(&id) => {
                *entry = again;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The entry as it is now. In a table that was made again, another one may have its key.
    async fn read_again(&self, entry: &Entry) -> Result<Option<Entry>, Error> {
        let key = entry.key().row_key().as_str();
        let range = (key, &*format!("{key}."));
        let mut run = self.table.pipeline.begin(OPERATION);
        let rows = read(&mut run, &self.name, self.partition.as_str(), range, 1).await;
        Ok(run.end(rows)?.entries(StepState::Logged).pop())
    }

    /// Replaces the head of a view, together with these changes. `false` if another client has
    /// replaced it.
    pub(super) async fn replace_head(
        &self,
        head: &Head,
        changes: Vec<EntityChange>,
    ) -> Result<bool, Error> {
        let id = random_guid().to_string();
        let mut all = vec![head.clone().after(&id).store(&self.name)?];
        all.extend(changes);
        if self.send(&all).await?.is_some() {
            return Ok(true);
        }
        let mut run = self.table.pipeline.begin(OPERATION);
        let now = Head::read(&mut run, &self.name, self.partition).await;
        Ok(run.end(now)?.has(&id, head) == Some(true))
    }

    /// Removes an applied entry from the log, if the next one must not be begun before. A delete
    /// step leaves a grave.
    async fn done(&mut self, view: &mut View, entry: &Entry) -> Result<EntryOutcome, Error> {
        let is_removed = match entry.kind() {
            Kind::Merge | Kind::Replace => return Ok(EntryOutcome::Applied),
            Kind::Delete => {
                let moved = entry.moved(&self.name, StepState::Removed, |_| ())?;
                self.send(&moved).await?.is_some()
            }
            Kind::Message | Kind::Unknown => self.remove_handled(entry.clone()).await?,
        };
        if !is_removed {
            return Ok(EntryOutcome::Changed);
        }
        if entry.kind() == Kind::Delete {
            view.removed.push(entry.clone());
        }
        Ok(EntryOutcome::Removed)
    }

    /// Removes a message that was handled, whatever other workers have noted in it since.
    async fn remove_handled(&mut self, mut entry: Entry) -> Result<bool, Error> {
        for _ in 0..ROUNDS {
            if self.send(&[entry.delete(&self.name)]).await?.is_some() {
                return Ok(true);
            }
            match self.read_again(&entry).await? {
                Some(again) if again.stamp() == entry.stamp() => entry = again,
                Some(_) => break,
                None => {
                    // It was handled all the same. The outbox is read again: another worker may
                    // have set it aside.
                    self.report.applied += 1;
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Notes in an entry that an attempt failed, or sets it aside after the last one.
    async fn failed(
        &mut self,
        view: &View,
        entry: &Entry,
        error: &Error,
    ) -> Result<EntryOutcome, Error> {
        event::step_left(self.table, Some(entry.number), error);
        self.report.failed += 1;
        let attempts = entry.attempts();
        let why = shortened(&error.to_string());
        // Time alone does not mend it, and the steps behind it would wait.
        if let Some((table, _)) = entry.target().filter(|_| error.is_table_not_found()) {
            self.report.missing_tables.insert(table.as_str().to_owned());
            return self.set_aside(view, entry, &why).await;
        }
        if attempts == 0 {
            return Ok(EntryOutcome::Left);
        }
        let attempts = match attempts_max(error) {
            Some(max) if attempts >= max => return self.set_aside(view, entry, &why).await,
            Some(_) => attempts,
            None => attempts.min(BUSY_ATTEMPTS.max(attempts - 1)),
        };
        let noted = self
            .send(&[entry.note(&self.name, attempts, &why)?])
            .await?;
        Ok(noted.map_or(EntryOutcome::Changed, |_| EntryOutcome::Left))
    }

    /// Moves an entry out of the log, so that the next ones can go on.
    async fn set_aside(
        &mut self,
        view: &View,
        entry: &Entry,
        why: &str,
    ) -> Result<EntryOutcome, Error> {
        let mut head = view.head.clone();
        head.next = head.next.max(entry.number + 1);
        let moved = entry.moved(&self.name, StepState::Dead, |properties| {
            properties.set(ATTEMPTS, entry.attempts());
            properties.set(ERROR, why);
        })?;
        head.moves += 1;
        if self.replace_head(&head, moved.into()).await? {
            self.report.set_aside += 1;
        }
        // It is read again, to see what is behind it.
        Ok(EntryOutcome::Changed)
    }

    /// Removes applied entries from the log. `false` where another worker has removed one of them.
    async fn remove(&mut self, applied: &mut Vec<Entry>) -> Result<bool, Error> {
        if applied.is_empty() {
            return Ok(true);
        }
        let deletes = applied.iter().map(|entry| entry.delete(&self.name));
        if self.send(&deletes.collect::<Vec<_>>()).await?.is_none() {
            return Ok(false);
        }
        self.report.applied += u64::try_from(applied.len()).unwrap_or(u64::MAX);
        applied.clear();
        Ok(true)
    }

    /// Looks once more at what delete steps have deleted, when no earlier request can be in flight
    /// any more.
    async fn sweep(&self, view: &mut View) -> Result<(), Error> {
        for grave in std::mem::take(&mut view.removed) {
            let mut is_swept = false;
            let accounts = self.role.accounts();
            let account = accounts.of(&self.table.pipeline, &grave);
            if let Some(account) = account
                && grave.state == StepState::Removed
                && view.age(&grave) > IN_FLIGHT
            {
                let mut run = account.begin(OPERATION);
                let swept = sweep(&mut run, &grave).await;
                // Otherwise a later drain tries again.
                is_swept = run.end(swept).is_ok()
                    && self.send(&[grave.delete(&self.name)]).await?.is_some();
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
            if let Ok(key) = pointer_key(id) {
                // A later drain deletes what is left.
                drop(self.send(&[delete(&self.name, &key, IfMatch::Any)]).await);
            }
        }
    }

    /// As [`send`], as an operation of its own.
    pub(super) async fn send(
        &self,
        changes: &[EntityChange],
    ) -> Result<Option<Vec<Option<ETag>>>, Error> {
        let mut run = self.table.pipeline.begin(OPERATION);
        let sent = send(&mut run, changes).await;
        run.end(sent)
    }
}

/// After how many attempts an error sets its step aside; `None` of a busy service, which is no
/// fault of the step.
fn attempts_max(error: &Error) -> Option<i32> {
    let is_refused = match error.status() {
        Some(
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE,
        ) => return None,
        Some(status) => status.is_client_error(),
        None => matches!(error.kind(), ErrorKind::Aborted | ErrorKind::Input),
    };
    Some(if is_refused { ATTEMPTS_MAX } else { FAULTS_MAX })
}

/// How long an entry is left alone after that many attempts.
fn pause_after(attempts: i32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).try_into().unwrap_or(0));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

fn shortened(text: &str) -> String {
    let mut units = 0;
    let fits = |char: &char| {
        units += char.len_utf16();
        units <= ERROR_MAX
    };
    text.chars().take_while(fits).collect()
}

const ATTEMPTS_MAX: i32 = 10;
/// After internal errors of the service, and lost connections: about 16 hours.
const FAULTS_MAX: i32 = 100;
/// A busy service counts no more attempts than these, so that the pause before the next one is at
/// most 8 minutes.
const BUSY_ATTEMPTS: i32 = 5;
const ROUNDS: u32 = 16;
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
