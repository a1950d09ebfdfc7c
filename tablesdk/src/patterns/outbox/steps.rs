//! The steps of a batch or transaction. A program without steps does not contain how they are
//! carried out: only [`Steps::add`] names it.

use std::fmt;

use futures_util::future::BoxFuture;
use tablesdk_protocol::PartitionKey;

use super::accounts::Accounts;
use super::commit::LAYER;
use super::entry::Kind;
use super::step::{Prepared, Step};
use super::wake::wake;
use super::work::apply_now;
use crate::action::extend::count::RequestCount;
use crate::action::extend::ride::{Layer, Ride, Riders};
use crate::error::Error;
use crate::pipeline::{Deadline, Table};
use crate::random::random_guid;

/// The steps that follow a transaction, in order.
#[derive(Clone)]
pub(super) struct Steps {
    pub(super) prepared: Vec<Prepared>,
    /// The id of their pointer, and of their entries.
    pub(super) pointer: String,
    /// True if the steps are left to workers.
    is_later: bool,
    /// The other accounts whose entities the steps change.
    accounts: Accounts,
    /// Known only with a step.
    by: Option<By>,
}

/// How steps are carried out.
#[derive(Clone, Copy)]
struct By {
    layer: &'static Layer,
    apply: Apply,
    /// Wakes the workers of this client.
    leave: fn(&Table, &PartitionKey),
}

type Apply = for<'r> fn(&'r Steps, &'r Table, &'r PartitionKey, Deadline) -> BoxFuture<'r, ()>;

impl Steps {
    /// Adds a step to what goes along with a transaction in that table.
    pub(super) fn add(riders: &mut Riders, table: &Table, step: Step) -> Result<(), Error> {
        let prepared = step.into_prepared(table.endpoint())?;
        let steps = Self::of(riders);
        if let Some(account) = &prepared.account {
            steps.accounts.add(account.clone());
        }
        steps.prepared.push(prepared);
        if steps.by.is_none() {
            steps.pointer = random_guid().to_string();
            steps.by = Some(By {
                layer: &LAYER,
                apply: |steps, table, partition, deadline| {
                    let (pointer, accounts) = (&steps.pointer, &steps.accounts);
                    Box::pin(apply_now(pointer, accounts, table, partition, deadline))
                },
                leave: wake,
            });
        }
        Ok(())
    }

    /// Leaves the steps to workers.
    pub(super) fn leave(riders: &mut Riders) {
        Self::of(riders).is_later = true;
    }

    /// Counts the requests that apply the steps, if the outbox has no others.
    pub(super) fn count_follow_up(&self, count: &mut RequestCount) {
        if self.is_later {
            return;
        }
        // The outbox is read as one page.
        count.requests += 1;
        let (mut in_log, mut has_rest) = (false, false);
        for step in &self.prepared {
            match step.kind {
                Kind::Merge | Kind::Replace => {
                    // The entity is read, then written.
                    count.requests += 2;
                    if step.creates_table() {
                        count.more = Some(NEW_TABLES);
                    }
                    in_log = true;
                }
                Kind::Delete => {
                    // Those before it are removed from the log. The entity is read, and the step
                    // becomes a grave.
                    count.requests += usize::from(in_log) + 2;
                    count.more = Some(DELETES);
                    (in_log, has_rest) = (false, true);
                }
                Kind::Message | Kind::Unknown => {
                    // Left to workers, with those after it.
                    has_rest = true;
                    break;
                }
            }
        }
        // The applied ones are removed from the log, and the pointer with the last of them.
        count.requests += usize::from(in_log) + usize::from(!has_rest);
    }

    fn of(riders: &mut Riders) -> &mut Self {
        riders.find_or_add(|| Self {
            prepared: Vec::new(),
            pointer: String::new(),
            is_later: false,
            accounts: Accounts::default(),
            by: None,
        })
    }
}

impl Ride for Steps {
    fn clone_box(&self) -> Box<dyn Ride> {
        Box::new(self.clone())
    }

    fn layer(&self) -> Option<&'static Layer> {
        Some(self.by?.layer)
    }

    fn is_committed_alone(&self) -> bool {
        !self.prepared.is_empty()
    }

    /// Applies the steps, as far as this client can until the deadline of the transaction. The rest
    /// is left to workers, and those of this client are woken.
    fn follow_up<'r>(
        &'r self,
        table: &'r Table,
        partition: &'r PartitionKey,
        deadline: Deadline,
    ) -> Option<BoxFuture<'r, ()>> {
        let by = self.by?;
        if self.is_later {
            (by.leave)(table, partition);
            return None;
        }
        Some((by.apply)(self, table, partition, deadline))
    }
}

/// The rule for the further requests of steps that create their tables.
const NEW_TABLES: &str = "two for each table that a step creates";
/// The rule for the further requests of delete steps.
const DELETES: &str = "one for each entity that a step deletes";

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.prepared.iter().map(|step| step.kind);
        f.debug_list().entries(kinds).finish()
    }
}
