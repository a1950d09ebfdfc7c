//! The ledger: compares the client's result of each operation with what happened.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use tablesdk::action::CurrentState;
use tablesdk::{Error, ErrorKind};

/// The result that the client reported for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It was carried out.
    Done,
    /// It was not: there was nothing to delete.
    NotThere,
    /// It was not, and will not be.
    Refused,
    /// It may have been carried out. Whether what was found afterwards equals what was sent.
    Unknown { equals_sent: bool },
    /// A read found an entity with this token, or none.
    Saw(Option<i64>),
    /// A read failed.
    Unread,
}

impl Said {
    /// The result of a write.
    pub(crate) fn of<T>(result: &Result<T, Error>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(error) => Self::of_error(error),
        }
    }

    /// The result of a write that reads before, and may have ended there.
    pub(crate) fn of_reader<T>(result: &Result<T, Error>) -> Self {
        match result {
            Err(error) if error.kind() == ErrorKind::Response => Self::Refused,
            other => Self::of(other),
        }
    }

    pub(crate) fn of_read<T>(result: &Result<T, Error>) -> Self {
        match result {
            Ok(_) => Self::Done,
            Err(_) => Self::Unread,
        }
    }

    pub(crate) fn of_error(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::OutcomeUnknown => Self::Unknown {
                equals_sent: matches!(error.current(), Some(CurrentState::Present(row)) if row.equals_sent()),
            },
            // A write that ends so was carried out; a modification may have failed to read before.
            ErrorKind::Response if error.operation() != Some("modify entity") => Self::Done,
            _ => Self::Refused,
        }
    }

    /// The result of a delete.
    pub(crate) fn of_delete(result: &Result<bool, Error>) -> Self {
        match result {
            Ok(false) => Self::NotThere,
            other => Self::of(other),
        }
    }

    const WORDS: [&str; 4] = ["ok", "not there", "failed", "unknown"];

    /// One of the words of the summary.
    const fn word(&self) -> &'static str {
        Self::WORDS[match self {
            Self::Done | Self::Saw(_) => 0,
            Self::NotThere => 1,
            Self::Refused | Self::Unread => 2,
            Self::Unknown { .. } => 3,
        }]
    }
}

/// A difference between a reported result and the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A difference that the documentation announces.
    Limit(&'static str),
    Lie(String),
}

/// The guide: copies that the network makes arrive at any time, and a rejected request may find
/// another state by then.
pub(crate) const DUPLICATE_AFTER_REFUSAL: &str =
    "a late duplicate of a refused write was carried out";
/// The guide: a request that the network duplicates is reported as a failure by the plain forms.
pub(crate) const DUPLICATE_REFUSED: &str = "a duplicated request was reported as a failure";
/// The guide: a late unconditional write undoes a newer one.
pub(crate) const LATE_WRITE: &str = "a late unconditional write undid a newer one";
/// The guide: without its marker, a late duplicate of an exactly-once write is carried out again.
pub(crate) const DUPLICATE_AFTER_CLEAN_UP: &str =
    "a late duplicate of an exactly-once write was carried out again";
/// The guide: a duplicated request makes a plain modification change twice.
pub(crate) const MODIFIED_TWICE: &str = "a plain modification changed twice after a duplicate";

/// All that was said and found. Shared by all workers.
pub(crate) struct Ledger {
    origin: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    said: BTreeMap<(String, &'static str), u64>,
    limits: BTreeMap<&'static str, u64>,
    lies: Vec<String>,
    kills: u64,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// The origin of the times that are shown.
    pub(crate) const fn origin(&self) -> Instant {
        self.origin
    }

    /// Counts an operation.
    pub(crate) fn count(&self, verb: &str, said: &Said) {
        let key = (verb.to_owned(), said.word());
        *self.state.lock().unwrap().said.entry(key).or_default() += 1;
    }

    /// Enters what a judge found; `details` says more of a lie.
    pub(crate) fn enter(
        &self,
        findings: impl IntoIterator<Item = Finding>,
        details: impl Fn() -> String,
    ) {
        for finding in findings {
            match finding {
                Finding::Limit(limit) => {
                    *self.state.lock().unwrap().limits.entry(limit).or_default() += 1;
                }
                Finding::Lie(lie) => {
                    let text = format!("LIE: {lie}\n{}", details());
                    println!("{text}");
                    self.state.lock().unwrap().lies.push(text);
                }
            }
        }
    }

    pub(crate) fn server_was_killed(&self) {
        self.state.lock().unwrap().kills += 1;
    }

    pub(crate) fn lies(&self) -> Vec<String> {
        self.state.lock().unwrap().lies.clone()
    }

    /// The number of operations, and of those whose outcome was reported as unknown.
    pub(crate) fn operations(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap();
        let unknown = state
            .said
            .iter()
            .filter(|((_, word), _)| *word == "unknown");
        let unknown = unknown.map(|(_, count)| count).sum();
        (state.said.values().sum(), unknown)
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock().unwrap();
        let mut verbs = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
        for ((verb, word), count) in &state.said {
            verbs.entry(verb).or_default().insert(word, *count);
        }
        write!(f, "{:<36}", "operation")?;
        for word in Said::WORDS {
            write!(f, "{word:>11}")?;
        }
        for (verb, words) in verbs {
            write!(f, "\n{verb:<36}")?;
            for word in Said::WORDS {
                write!(f, "{:>11}", words.get(word).copied().unwrap_or_default())?;
            }
        }
        writeln!(f)?;
        writeln!(f, "kills of the server: {}", state.kills)?;
        for (limit, count) in &state.limits {
            writeln!(f, "documented limit: {limit}: {count}")?;
        }
        write!(f, "lies: {}", state.lies.len())
    }
}
