//! Steps that were set aside, and how they are put back or discarded.

use std::fmt;

use tablesdk_protocol::{IfMatch, PartitionKey, TableName, Value};

use super::drain::read_pointers;
use super::entry::{ATTEMPTS, ERROR, Entry, Kind, MESSAGE, POINTER, State};
use super::head::{Head, Pointer};
use super::view::read_dead;
use crate::action::Action;
use crate::action::write::change::EntityChange;
use crate::action::write::together::send_together;
use crate::error::Error;
use crate::pipeline::{OperationRun, Table};

/// A step that was set aside after 10 attempts, or that changes the same entity as an earlier one that was. Displayed, it says which step it
/// is and why the last attempt failed. See [`Outbox::poisoned`](crate::action::Outbox::poisoned).
#[derive(Clone)]
pub struct PoisonedStep {
    table: Table,
    partition: PartitionKey,
    entry: Entry,
}

impl PoisonedStep {
    /// The partition of the transaction that it follows.
    pub fn partition(&self) -> &str {
        self.partition.as_str()
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

    /// Lets workers try it again 10 times, and the other poisoned steps that change the same entity, in their order. A step that had its
    /// effect all the same, such as in an attempt without a response, has no second one. The handler of a message is called again.
    ///
    /// # Errors
    ///
    /// Those of the service. The steps that were not put back are still poisoned.
    pub fn retry(&self) -> Action<()> {
        let step = self.clone();
        Action::of_table(&self.table, |table| async move {
            let mut run = table.pipeline.begin("retry step");
            let retried = step.put_back(&mut run).await;
            run.end(retried)
        })
    }

    /// Deletes it: no worker tries it again. An attempt without a response may have had its effect. Poisoned steps of the same entity behind
    /// it stay poisoned.
    ///
    /// # Errors
    ///
    /// Those of the service.
    pub fn discard(&self) -> Action<()> {
        let step = self.clone();
        Action::of_table(&self.table, |table| async move {
            let mut run = table.pipeline.begin("discard step");
            let discarded = step.delete(&mut run).await;
            run.end(discarded)
        })
    }

    async fn put_back(&self, run: &mut OperationRun<'_>) -> Result<(), Error> {
        let table = self.table.checked_name(run.operation())?;
        let mut round = 0;
        loop {
            let head = Head::read(run, &table, &self.partition).await?;
            let dead = read_dead(run, &table, &self.partition).await?;
            // The earliest one first: a later step is not applied in front of it, as long as it is dead.
            let Some(first) = dead.iter().find(|dead| self.is_behind(dead)) else {
                return Ok(());
            };
            // A pointer for each: the pointer of a write is deleted with its last entry.
            let pointer = Pointer::new()?;
            pointer.write(run, &table, &self.partition).await?;
            let changed = vec![
                (ATTEMPTS.to_owned(), Value::Int32(0)),
                (POINTER.to_owned(), Value::String(pointer.id)),
            ];
            let moved = first.moved(&table, State::Logged, changed)?;
            if !self.send(run, &table, head, &moved).await? {
                round += 1;
                self.pause(run, round).await?;
            }
        }
    }

    async fn delete(&self, run: &mut OperationRun<'_>) -> Result<(), Error> {
        let table = self.table.checked_name(run.operation())?;
        let mut round = 0;
        loop {
            let head = Head::read(run, &table, &self.partition).await?;
            let dead = read_dead(run, &table, &self.partition).await?;
            let Some(entry) = dead.iter().find(|dead| dead.number == self.entry.number) else {
                return Ok(());
            };
            let delete = entry.delete(&table, IfMatch::ETag(entry.etag.clone()));
            if self.send(run, &table, head, &[delete]).await? {
                return Ok(());
            }
            round += 1;
            self.pause(run, round).await?;
        }
    }

    /// Whether it is this step, or changes the same entity.
    fn is_behind(&self, dead: &Entry) -> bool {
        let target = self.entry.target();
        dead.number == self.entry.number || target.is_some() && dead.target() == target
    }

    /// Sends changes of steps that were set aside, unless the outbox has changed since. `false` if it has.
    async fn send(
        &self,
        run: &mut OperationRun<'_>,
        table: &TableName,
        mut head: Head,
        changes: &[EntityChange],
    ) -> Result<bool, Error> {
        head.moves += 1;
        let mut all = vec![head.store(table, &self.partition)?];
        all.extend_from_slice(changes);
        match send_together(run, &all, None).await {
            Ok(_) => Ok(true),
            Err(error) => {
                let is_changed = error.is_precondition_failed()
                    || error.is_not_found()
                    || error.is_conflict()
                    || error.is_ambiguous();
                if is_changed { Ok(false) } else { Err(error) }
            }
        }
    }

    async fn pause(&self, run: &OperationRun<'_>, round: u32) -> Result<(), Error> {
        if round < ROUNDS && run.pause_before_round(round).await {
            return Ok(());
        }
        let message = "the outbox of the partition was written again and again";
        Err(run.annotate(Error::timeout(message.to_owned())))
    }
}

pub(super) async fn poisoned(table: Table) -> Result<Vec<PoisonedStep>, Error> {
    let name = table.checked_name(OPERATION)?;
    let mut found = Vec::new();
    for partition in read_pointers(&table, &name).await?.into_keys() {
        let mut run = table.pipeline.begin(OPERATION);
        let dead = read_dead(&mut run, &name, &partition).await;
        for entry in run.end(dead)? {
            found.push(PoisonedStep {
                table: table.clone(),
                partition: partition.clone(),
                entry,
            });
        }
    }
    Ok(found)
}

impl fmt::Display for PoisonedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            partition, entry, ..
        } = self;
        write!(
            f,
            "step {} of the partition {:?} ({}",
            entry.number,
            partition.as_str(),
            entry.kind.as_str()
        )?;
        match (entry.kind, entry.target_key()) {
            (Kind::Message, _) => write!(f, " {:?}", entry.text(MESSAGE).unwrap_or_default())?,
            (_, Some((table, key))) => write!(
                f,
                " in {:?} ({:?}, {:?})",
                table.as_str(),
                key.partition_key().as_str(),
                key.row_key().as_str()
            )?,
            (_, None) => {}
        }
        match entry.attempts {
            0 => f.write_str(") was set aside: ")?,
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
