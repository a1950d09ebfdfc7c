//! An operation: what it is to do, what the client said of it, and what reached the server.

use std::time::Instant;

use tablesdk::ETag;

use crate::ledger::{Finding, Said};
use crate::record::Record;

/// The effect of a write on an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is there afterwards, with this content alone.
    Replace,
    /// It is there afterwards, with this content and what was there before.
    Merge,
    Delete,
}

/// An entity that an operation is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) row: String,
    pub(crate) effect: Effect,
    /// It depends on the version that is there.
    pub(crate) is_conditional: bool,
    /// The version that the client says it made.
    pub(crate) etag: Option<ETag>,
}

/// The called method, and the number of the call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) verb: String,
    pub(crate) is_once: bool,
}

/// An operation that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Also the token that it writes.
    pub(crate) id: u64,
    pub(crate) verb: String,
    /// All its changes are sent as batches.
    pub(crate) in_batches: bool,
    pub(crate) is_once: bool,
    /// The targets of operations on entities of one worker.
    pub(crate) targets: Vec<Target>,
    pub(crate) said: Said,
    /// The result, printed.
    pub(crate) words: String,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// Empty until everything of it has arrived.
    pub(crate) record: Record,
}

impl Step {
    pub(crate) fn lie(&self, text: &str) -> Finding {
        Finding::Lie(format!("{} {}: {text}", self.verb, self.id))
    }

    /// As lines of text, with times in milliseconds since `origin`.
    pub(crate) fn show(&self, origin: Instant) -> String {
        let ms = |time: Instant| (time - origin).as_millis();
        let Self {
            id,
            verb,
            said,
            words,
            ..
        } = self;
        let rows: Vec<_> = self.targets.iter().map(|it| it.row.as_str()).collect();
        let (began, ended) = (ms(self.began), ms(self.ended));
        let record = self.record.show(origin);
        format!("  {id} {verb} {rows:?} at {began}-{ended}: {said:?}: {words}\n{record}")
    }
}

/// The token that an operation writes.
pub(crate) fn token(id: u64) -> i64 {
    i64::try_from(id).expect("the operations are not that many")
}

/// An action with an option, such as `exactly_once`, if the condition holds.
pub(crate) fn when<T>(condition: bool, action: T, option: impl FnOnce(T) -> T) -> T {
    if condition { option(action) } else { action }
}
