//! Steps that were set aside, and how they are put back or discarded.

use std::fmt;

use super::entry::{ACCOUNT, ATTEMPTS, ERROR, Entry, Kind, MESSAGE, POINTER, StepState, send};
use super::head::{Head, pointer_key, write_pointer};
use super::pointers::read_pointers;
use super::view::read_dead;
use crate::action::Action;
use crate::error::Error;
use crate::pipeline::{OperationRun, Table};
use crate::random::random_guid;

/// A step that was set aside after too many attempts or because its table does not exist, or that
/// changes the same entity as an earlier one that was. Displayed, it says which step it is and why
/// the last attempt failed. See [`Outbox::poisoned`](crate::outbox::Outbox::poisoned).
#[derive(Clone)]
pub struct PoisonedStep {
    table: Table,
    entry: Entry,
}

impl PoisonedStep {
    /// The partition of the transaction that it follows.
    pub fn partition(&self) -> &str {
        self.entry.key().partition_key().as_str()
    }

    /// Its number among the steps of the partition.
    pub const fn number(&self) -> u64 {
        self.entry.number
    }

    /// The `NAME` of its message; `None` if it is a step that writes an entity.
    pub fn message(&self) -> Option<&str> {
        self.entry.text(MESSAGE)
    }

    /// The error of the last attempt.
    pub fn error(&self) -> &str {
        self.entry.text(ERROR).unwrap_or_default()
    }

    /// Lets workers try it again 10 times, and the other poisoned steps that change the same
    /// entity, in their order. A step that had its effect all the same, such as in an attempt
    /// without a response, has no second one. The handler of a message is called again.
    ///
    /// # Errors
    ///
    /// The errors of the service. The steps that were not put back are still poisoned.
    pub fn retry(&self) -> Action<()> {
        self.change("retry step", true)
    }

    /// Deletes it: no worker tries it again. An attempt without a response may have had its effect.
    /// Poisoned steps of the same entity behind it stay poisoned.
    ///
    /// # Errors
    ///
    /// The errors of the service.
    pub fn discard(&self) -> Action<()> {
        self.change("discard step", false)
    }

    fn change(&self, operation: &'static str, puts_back: bool) -> Action<()> {
        let step = self.clone();
        Action::of_table(&self.table, move |table| async move {
            let mut run = table.pipeline.begin(operation);
            let changed = step.put_back_or_delete(&mut run, puts_back).await;
            run.end(changed)
        })
    }

    async fn put_back_or_delete(
        &self,
        run: &mut OperationRun<'_>,
        puts_back: bool,
    ) -> Result<(), Error> {
        let table = self.table.checked_name(run.operation())?;
        let partition = self.entry.key().partition_key();
        let mut round = 0;
        loop {
            let head = Head::read(run, &table, partition).await?;
            let dead = read_dead(run, &table, partition).await?;
            // The earliest one first: a later step is not applied in front of it, as long as it is
            // dead.
            let mut dead = dead.iter();
            let is_meant = |dead: &&Entry| {
                dead.number == self.entry.number || puts_back && dead.meets(&self.entry)
            };
            let Some(entry) = dead.find(is_meant) else {
                return Ok(());
            };
            let changes = if puts_back {
                // A pointer for each: the pointer of a write is deleted with its last entry.
                let id = random_guid().to_string();
                write_pointer(run, &table, partition, &pointer_key(&id)?).await?;
                let moved = entry.moved(&table, StepState::Logged, |properties| {
                    properties.set(ATTEMPTS, 0);
                    properties.set(POINTER, id);
                })?;
                moved.to_vec()
            } else {
                vec![entry.delete(&table)]
            };
            let all = head.with_moves(&table, changes)?;
            if send(run, &all).await?.is_some() {
                if !puts_back {
                    return Ok(());
                }
                continue;
            }
            round += 1;
            if round == ROUNDS || !run.pause_before_round(round).await {
                let message = "the outbox of the partition was written again and again";
                return Err(run.annotate(Error::timeout(message.to_owned())));
            }
        }
    }
}

pub(super) async fn poisoned(table: Table) -> Result<Vec<PoisonedStep>, Error> {
    let name = table.checked_name(OPERATION)?;
    let mut found = Vec::new();
    for partition in read_pointers(&table, &name).await?.into_keys() {
        let mut run = table.pipeline.begin(OPERATION);
        let dead = read_dead(&mut run, &name, &partition).await;
        let steps = run.end(dead)?.into_iter();
        found.extend(steps.map(|entry| PoisonedStep {
            table: table.clone(),
            entry,
        }));
    }
    Ok(found)
}

impl fmt::Display for PoisonedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, partition) = (self.number(), self.partition());
        let (entry, kind) = (&self.entry, self.entry.kind().as_str());
        write!(f, "step {number} of the partition {partition:?} ({kind}")?;
        match (entry.kind(), entry.target()) {
            (Kind::Message, _) => write!(f, " {:?}", entry.text(MESSAGE).unwrap_or_default())?,
            (_, Some((table, key))) => {
                write!(f, " in {:?}", table.as_str())?;
                if let Some(account) = entry.text(ACCOUNT) {
                    write!(f, " at {account}")?;
                }
                let (partition_key, row_key) = (key.partition_key(), key.row_key());
                write!(f, " ({:?}, {:?})", partition_key.as_str(), row_key.as_str())?;
            }
            (_, None) => {}
        }
        match entry.attempts() {
            0 => f.write_str(") was set aside: ")?,
            1 => f.write_str(") failed once: ")?,
            attempts => write!(f, ") failed {attempts} times: ")?,
        }
        f.write_str(self.error())
    }
}

impl fmt::Debug for PoisonedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoisonedStep({self})")
    }
}

const OPERATION: &str = "read poisoned steps";
const ROUNDS: u32 = 16;
