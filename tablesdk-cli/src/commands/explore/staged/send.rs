//! Sends a plan, transaction after transaction, and says what became of each. After an outcome that
//! nothing is known of, no more is sent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tablesdk::action::{Batch, CurrentState};
use tablesdk::{
    DynamicEntity, Error, ErrorKind, RetryPolicy, Stored, TableClient, TableServiceClient,
};
use tablesdk_cli::own::AsStored;

use super::super::app::read_retries;
use super::change::{Change, Target, Write};
use super::conflict::{Now, Version};
use super::plan::{Plan, Transaction};
use super::{BYTES_MAX, Entry, State};
use crate::error::with_causes;
use crate::escape::harmless;

/// The outcome of a plan.
#[derive(Clone, Default)]
pub(crate) struct Report {
    pub(crate) transactions: Vec<(Transaction, Outcome)>,
    /// How many transactions reached the service, or may have.
    pub(crate) requests: usize,
    pub(crate) elapsed: Duration,
}

/// The outcome of a transaction. An index is that of the change concerned.
#[derive(Clone)]
pub(crate) enum Outcome {
    Sent,
    /// An entity is not as it was read. Nothing was stored.
    Conflict {
        index: usize,
        now: Arc<Now>,
    },
    /// The service refused it, or it could not be sent. Nothing was stored.
    Failed {
        index: Option<usize>,
        text: String,
    },
    /// It may or may not have been carried out.
    Unknown {
        index: usize,
        now: Arc<Now>,
        text: String,
    },
    /// It was not sent, since one before it was the last: the next ones would end alike, or there
    /// are as many conflicts as memory has room for.
    NotSent,
}

impl Outcome {
    /// The state of the change with that index; `None` if it is done.
    pub(super) fn state_of(&self, place: usize) -> Option<State> {
        Some(match self {
            Self::Sent => return None,
            Self::Conflict { index, now } if *index == place => State::Conflict(Arc::clone(now)),
            Self::Failed { index, text } if index.is_none_or(|index| index == place) => {
                State::Failed(text.clone())
            }
            Self::Unknown { index, now, text } if *index == place => {
                State::Unknown(Arc::clone(now), text.clone())
            }
            Self::Unknown { text, .. } => {
                State::Unknown(Arc::new(Now::Unread(TOGETHER.to_owned())), text.clone())
            }
            Self::Conflict { .. } | Self::Failed { .. } | Self::NotSent => State::Waiting,
        })
    }
}

impl Outcome {
    pub(crate) const fn is_sent(&self) -> bool {
        matches!(self, Self::Sent)
    }

    /// About as many bytes as the stored version takes in memory.
    fn bytes(&self) -> usize {
        match self {
            Self::Conflict { now, .. } | Self::Unknown { now, .. } => now.bytes(),
            Self::Sent | Self::Failed { .. } | Self::NotSent => 0,
        }
    }
}

impl Report {
    /// How many changes were sent, of how many.
    pub(crate) fn sent(&self) -> (usize, usize) {
        let count = |it: &(Transaction, Outcome)| it.0.entries.len();
        let sent = self.transactions.iter().filter(|it| it.1.is_sent());
        let sent = sent.map(count).sum();
        (sent, self.transactions.iter().map(count).sum())
    }

    /// The report of what was sent alone; `None` if nothing was.
    pub(super) fn of_sent(&self) -> Option<Self> {
        let transactions = self.transactions.iter();
        let sent = transactions.filter(|it| it.1.is_sent());
        let transactions: Vec<_> = sent.cloned().collect();
        (!transactions.is_empty()).then_some(Self {
            transactions,
            ..*self
        })
    }
}

/// Sends the transactions of a plan.
pub(crate) async fn send(service: &TableServiceClient, plan: Plan) -> Report {
    let started = Instant::now();
    let mut report = Report::default();
    let (mut is_over, mut bytes) = (false, 0);
    for transaction in plan.transactions {
        let outcome = if is_over {
            Outcome::NotSent
        } else {
            let (outcome, is_last) = carry_out(service, &transaction).await;
            report.requests += 1;
            bytes += outcome.bytes();
            is_over = is_last || bytes > BYTES_MAX;
            outcome
        };
        report.transactions.push((transaction, outcome));
    }
    report.elapsed = started.elapsed();
    report
}

/// Sends one. Returns whether no more is to be sent: the next ones would end alike, or rest on what
/// is not known.
async fn carry_out(service: &TableServiceClient, transaction: &Transaction) -> (Outcome, bool) {
    let table = service.table(&transaction.table);
    match write(&table, transaction).await {
        Ok(()) => (Outcome::Sent, false),
        Err(Failure::Missing) => {
            let now = Arc::new(Now::Missing);
            (Outcome::Conflict { index: 0, now }, false)
        }
        Err(Failure::Error(error)) => {
            let is_last = error.is_outcome_unknown()
                || error.is_unavailable()
                || error.kind() == ErrorKind::Credential;
            (outcome_of(&table, transaction, &error).await, is_last)
        }
    }
}

/// Why a transaction was not carried out.
enum Failure {
    /// The entity to delete does not exist.
    Missing,
    Error(Box<Error>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

async fn write(table: &TableClient, transaction: &Transaction) -> Result<(), Failure> {
    let written = match &*transaction.entries {
        [entry] => write_one(table, &entry.change).await,
        entries => {
            let batch = table.batch(&*transaction.partition);
            let batch = entries.iter().fold(batch, add);
            batch.retry(retries()).await.map(|_| true)
        }
    };
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Missing),
        // It was carried out. Its response alone cannot be read.
        Err(error) if error.kind() == ErrorKind::Response => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends one change. Returns whether the entity was there.
async fn write_one(table: &TableClient, change: &Change) -> Result<bool, Error> {
    let entity = |entity: &DynamicEntity| AsStored(entity.clone());
    match &change.write {
        Write::Insert(it) => {
            let insert = table.insert(&entity(it)).retry(retries());
            insert.await.map(|_| true)
        }
        Write::Merge(it, etag) => {
            let merge = table.merge_if(&entity(it), etag).retry(retries());
            merge.await.map(|_| true)
        }
        Write::Replace(it, etag) => {
            let replace = table.replace_if(&entity(it), etag).retry(retries());
            replace.await.map(|_| true)
        }
        Write::Delete(etag) => {
            let delete = table.delete(key(&change.target)).if_match(etag);
            delete.retry(retries()).await
        }
    }
}

fn add<'e>(batch: Batch<'e>, entry: &Entry) -> Batch<'e> {
    let change = &entry.change;
    let entity = |entity: &DynamicEntity| AsStored(entity.clone());
    match &change.write {
        Write::Insert(it) => batch.insert(&entity(it)),
        Write::Merge(it, etag) => batch.merge_if(&entity(it), etag),
        Write::Replace(it, etag) => batch.replace_if(&entity(it), etag),
        Write::Delete(etag) => batch.delete_if(key(&change.target), etag),
    }
}

fn key(target: &Target) -> (&str, &str) {
    (&target.partition, &target.row)
}

async fn outcome_of(table: &TableClient, transaction: &Transaction, error: &Error) -> Outcome {
    let text = harmless(&with_causes(error));
    if error.is_outcome_unknown() {
        let index = error.batch_index().unwrap_or(0);
        let entry = transaction.entries.get(index);
        // The time for the write may be over, and not that of a person.
        let now = match (current(error), entry) {
            (Now::Unread(_), Some(entry)) => read(table, &entry.change.target).await,
            (now, _) => now,
        };
        let now = Arc::new(now);
        return Outcome::Unknown { index, now, text };
    }
    let index = match &*transaction.entries {
        [_] => Some(0),
        _ => error.batch_index(),
    };
    let is_stale = error.is_precondition_failed() || error.is_not_found() || is_taken(error);
    if !is_stale {
        return Outcome::Failed { index, text };
    }
    match index {
        Some(index) => match transaction.entries.get(index) {
            Some(entry) => {
                let now = Arc::new(read(table, &entry.change.target).await);
                Outcome::Conflict { index, now }
            }
            None => Outcome::Failed { index: None, text },
        },
        None => match first_stale(table, transaction).await {
            Some((index, now)) => {
                let now = Arc::new(now);
                Outcome::Conflict { index, now }
            }
            None => Outcome::Failed { index: None, text },
        },
    }
}

/// Returns true if an insert found an entity with its keys.
fn is_taken(error: &Error) -> bool {
    let code = error.code().map(tablesdk::ErrorCode::as_str);
    error.is_conflict() && code == Some("EntityAlreadyExists")
}

/// The first change that rests on another version, where the service does not say which.
async fn first_stale(table: &TableClient, transaction: &Transaction) -> Option<(usize, Now)> {
    for (index, entry) in transaction.entries.iter().enumerate() {
        let now = read(table, &entry.change.target).await;
        let etag = match &now {
            Now::Present(version) => Some(&version.etag),
            Now::Missing => None,
            Now::Unread(_) => return None,
        };
        if etag != entry.change.etag() {
            return Some((index, now));
        }
    }
    None
}

/// The entity as it is stored now.
async fn read(table: &TableClient, target: &Target) -> Now {
    match stored(table, key(target)).await {
        Ok(Some(version)) => Now::Present(Box::new(version)),
        Ok(None) => Now::Missing,
        Err(error) => Now::Unread(harmless(&with_causes(&error))),
    }
}

/// The stored version of an entity.
pub(crate) async fn stored(
    table: &TableClient,
    keys: (&str, &str),
) -> Result<Option<Version>, Error> {
    let stored = table.get::<AsStored>(keys).retry(read_retries()).await?;
    Ok(stored.map(Version::from))
}

impl From<Stored<AsStored>> for Version {
    fn from(stored: Stored<AsStored>) -> Self {
        Self {
            etag: stored.etag().clone(),
            entity: stored.into_inner().0,
        }
    }
}

/// The entity as the client has read it after a write with an unknown outcome.
fn current(error: &Error) -> Now {
    match error.current() {
        Some(CurrentState::Missing) => Now::Missing,
        Some(CurrentState::Present(row)) => match row.read::<AsStored>() {
            Ok(stored) => Now::Present(Box::new(stored.into())),
            Err(error) => Now::Unread(harmless(&with_causes(&error))),
        },
        _ => Now::Unread("it could not be read".to_owned()),
    }
}

/// A person waits, and can send again.
fn retries() -> RetryPolicy {
    RetryPolicy::exponential().attempts(3)
}

const TOGETHER: &str = "another entity of its transaction was looked at";
