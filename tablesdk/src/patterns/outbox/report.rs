//! The report of a worker, and its handlers of messages.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::entry::Entry;
use crate::error::ClosureError;

/// The result of [`Outbox::drain`](crate::outbox::Outbox::drain), or the sum of those of
/// [`Outbox::run`](crate::outbox::Outbox::run), in which `waiting` is that of the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// The number of steps that were applied, and of messages that were handled.
    pub applied: u64,
    /// The number of steps that are left for later, or to other workers, of those that were read:
    /// at most 1,000 of a partition.
    pub waiting: u64,
    /// The number of attempts that failed.
    pub failed: u64,
    /// The number of steps that were set aside.
    pub set_aside: u64,
    /// The tables that do not exist, although steps write their entities. These steps were set
    /// aside: create the tables, and [retry](crate::outbox::PoisonedStep::retry) them.
    pub missing_tables: BTreeSet<String>,
}

impl DrainReport {
    pub(super) fn add(&mut self, other: Self) {
        self.applied += other.applied;
        self.waiting += other.waiting;
        self.failed += other.failed;
        self.set_aside += other.set_aside;
        self.missing_tables.extend(other.missing_tables);
    }
}

/// Functions that take messages, by the names of the messages.
#[derive(Clone, Default)]
pub(super) struct Handlers(Vec<(&'static str, Handler)>);

pub(super) type Handler = Arc<dyn Fn(&Entry) -> Handled + Send + Sync>;
pub(super) type Handled = Pin<Box<dyn Future<Output = Result<(), ClosureError>> + Send>>;

impl Handlers {
    /// The function for a message, instead of the one before.
    #[cfg(feature = "json")]
    pub(super) fn set(&mut self, name: &'static str, handler: Handler) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, handler));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Handler> {
        let mut handlers = self.0.iter();
        handlers
            .find(|(known, _)| *known == name)
            .map(|(_, handler)| handler)
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}
