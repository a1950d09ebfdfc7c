//! The values that all clients of a run share: the servers, the history, and how often each answer
//! came.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use harness::written::Row;
use tablesdk::{ETag, Error, ErrorKind, RetryPolicy, Stored, TableClient, TableServiceClient};
use tokio::sync::watch;

use crate::history::{History, Moment, Name, Op, Violation};
use crate::linearizable::check;
use crate::register::{Outcome, Refusal, Seen, Token, Version};

/// The table of the entities.
pub(crate) const TABLE: &str = "Entities";

/// A policy with which the history sees each attempt.
pub(crate) fn single_attempts() -> RetryPolicy {
    RetryPolicy::none().try_timeout(ATTEMPT).deadline(ATTEMPT)
}

/// Longer than a database is away.
const ATTEMPT: Duration = Duration::from_secs(20);

/// How many entities there are. Few, so that clients meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) partitions: usize,
    pub(crate) rows: usize,
    /// The run is over after so many operations that were carried out or rejected because of an
    /// entity.
    pub(crate) operations: u64,
}

pub(crate) struct Workload {
    /// A client of each server.
    services: Vec<TableServiceClient>,
    pub(crate) size: Size,
    moment: AtomicU64,
    next_token: AtomicI64,
    state: Mutex<State>,
    done: watch::Sender<u64>,
    /// False while it makes no sense to go on: the database is away.
    is_available: watch::Sender<bool>,
    began: Instant,
}

#[derive(Default)]
struct State {
    history: History,
    /// The newest ETag that a response had.
    etags: HashMap<Name, ETag>,
    counts: BTreeMap<(&'static str, &'static str), u64>,
    unexpected: Vec<String>,
}

impl Workload {
    pub(crate) fn new(services: Vec<TableServiceClient>, size: Size) -> Self {
        Self {
            services,
            size,
            moment: AtomicU64::new(0),
            next_token: AtomicI64::new(1),
            state: Mutex::default(),
            done: watch::Sender::new(0),
            is_available: watch::Sender::new(true),
            began: Instant::now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table, through any server.
    pub(crate) fn table(&self, rng: &mut Rng) -> TableClient {
        self.service(rng).table(TABLE)
    }

    /// Any server.
    pub(crate) fn service(&self, rng: &mut Rng) -> &TableServiceClient {
        &self.services[rng.usize(..self.services.len())]
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.done.borrow() >= self.size.operations
    }

    /// Returns when so many operations are done.
    pub(crate) async fn wait_for(&self, operations: u64) {
        let mut done = self.done.subscribe();
        let waited = done.wait_for(|done| *done >= operations).await;
        waited.expect("the sender is in this workload");
    }

    /// Notes that one more of the operations is done that the run has.
    pub(crate) fn is_done(&self) {
        self.done.send_modify(|done| *done += 1);
    }

    /// Says whether the database is there.
    pub(crate) fn set_available(&self, is_available: bool) {
        self.is_available.send_replace(is_available);
    }

    /// After a failure: returns when it makes sense to go on.
    pub(crate) async fn wait_until_available(&self) {
        let mut is_available = self.is_available.subscribe();
        let waited = is_available.wait_for(|is_available| *is_available).await;
        waited.expect("the sender is in this workload");
    }

    pub(crate) fn next_token(&self) -> Token {
        self.next_token.fetch_add(1, Ordering::Relaxed)
    }

    /// A new moment, after all earlier ones.
    pub(crate) fn now(&self) -> Moment {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    /// The newest ETag of an entity that a response had.
    pub(crate) fn etag(&self, name: &Name) -> Option<ETag> {
        self.state().etags.get(name).cloned()
    }

    /// Notes the ETag of a response.
    pub(crate) fn learn(&self, name: &Name, etag: &ETag) {
        self.state().etags.insert(name.clone(), etag.clone());
    }

    /// Counts an operation and its result.
    pub(crate) fn count(&self, verb: &'static str, outcome: &Outcome) {
        let word = match outcome {
            Outcome::Saw(_) | Outcome::Done(_) => "done",
            Outcome::Refused(Refusal::Exists) => "409",
            Outcome::Refused(Refusal::Missing) => "404",
            Outcome::Refused(Refusal::Changed) => "412",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
        };
        *self.state().counts.entry((verb, word)).or_default() += 1;
    }

    /// Notes an operation on an entity.
    pub(crate) fn note(&self, name: &Name, op: Op) {
        self.state().history.note(name.clone(), op);
    }

    /// Notes a query of all entities of a partition.
    pub(crate) fn note_query(
        &self,
        partition: &str,
        rows: BTreeMap<String, Option<Seen>>,
        moments: (Moment, Moment),
    ) {
        self.state().history.note_query(partition, rows, moments);
    }

    /// The outcome of a write that returned an error.
    pub(crate) fn outcome(&self, verb: &'static str, error: &Error) -> Outcome {
        if error.is_outcome_unknown() {
            return Outcome::Unknown;
        }
        if error.is_conflict() {
            return Outcome::Refused(Refusal::Exists);
        }
        if error.is_not_found() {
            return Outcome::Refused(Refusal::Missing);
        }
        if error.is_precondition_failed() {
            return Outcome::Refused(Refusal::Changed);
        }
        // A server that was killed, or one without a database.
        if error.kind() != ErrorKind::Transport && !error.is_throttled() {
            let text = format!("{verb}: {error:?}");
            self.state().unexpected.push(text);
        }
        Outcome::Failed
    }

    /// Checks the history, and prints what there is to know of it.
    pub(crate) fn judge(&self) -> Result<(), Violation> {
        let state = self.state();
        println!("{} in {:?}", state.summary(), self.began.elapsed());
        state.check_failures()?;
        let began = Instant::now();
        let effort = check(&state.history)?;
        println!("checked in {:?}: {effort:?}", began.elapsed());
        Ok(())
    }

    /// Checks that after each failure a client may try again.
    pub(crate) fn check_failures(&self) -> Result<(), Violation> {
        self.state().check_failures()
    }

    /// The numbers of results.
    pub(crate) fn summary(&self) -> String {
        format!("{} in {:?}", self.state().summary(), self.began.elapsed())
    }

    /// How many operations ended like this.
    pub(crate) fn counted(&self, of: &str) -> u64 {
        let state = self.state();
        let counts = state.counts.iter().filter(|((_, word), _)| *word == of);
        counts.map(|(_, count)| count).sum()
    }
}

impl State {
    fn check_failures(&self) -> Result<(), Violation> {
        let Some(first) = self.unexpected.first() else {
            return Ok(());
        };
        let count = self.unexpected.len();
        let text = format!("{count} unexpected failures, the first of which is {first}");
        Err(Violation(text))
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, word), count) in &self.counts {
            *totals.entry(word).or_default() += count;
        }
        for (word, count) in totals {
            write!(text, "{word}: {count}, ").expect("a string grows");
        }
        text += "of which";
        for ((verb, word), count) in &self.counts {
            if *word == "unknown" {
                write!(text, " {count} {verb} {word},").expect("a string grows");
            }
        }
        text.trim_end_matches([',', ' ']).to_owned()
    }
}

/// The time in an ETag.
pub(crate) fn version(etag: &ETag) -> Version {
    let timestamp = etag.timestamp();
    timestamp.expect("an ETag of ours has a time").unix_ticks()
}

/// The content that a read shows.
pub(crate) fn seen(row: &Stored<Row>) -> Seen {
    Seen {
        token: row.token,
        a: row.a,
        b: row.b,
        version: version(row.etag()),
    }
}
