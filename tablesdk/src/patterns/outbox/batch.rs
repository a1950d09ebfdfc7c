//! How a batch and a transaction get their steps.

use super::step::Step;
use super::steps::Steps;
use crate::action::{Batch, RunTransaction, Transaction};

impl Batch<'_> {
    /// Adds a step that follows the batch: a change in another partition or table, or a message. It
    /// is stored together with the changes, and applied in the order of the steps of this
    /// partition: now, as far as that succeeds, and otherwise by a worker
    /// ([`Outbox::drain`](crate::outbox::Outbox::drain)). See [the guide](crate::guide::outbox).
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// use tablesdk::outbox::Step;
    ///
    /// let names = service.table("Names");
    /// names.create_table().await?;
    /// let by_name = Employee::new("Ada", "Sales 1", "Ada");
    /// table
    ///     .batch("Sales")
    ///     .insert(&Employee::new("Sales", "1", "Ada"))
    ///     .step(Step::upsert_replace(&names, &by_name))
    ///     .await?;
    /// assert!(names.get(Employee::key("Ada", "Sales 1")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `Ok` means that the changes and the steps are stored, and not that the steps are applied:
    /// what is not applied before the deadline of the call is left to workers. Each step is one of
    /// the 100 changes of the batch, and so is the head of the outbox.
    pub fn step(mut self, step: Step) -> Self {
        self.ride(|table, riders| Steps::add(riders, table, step));
        self
    }

    /// Leaves the steps to workers, and returns without applying them. Without [steps](Self::step),
    /// it has no effect.
    pub fn leave_steps(mut self) -> Self {
        self.ride(|_, riders| {
            Steps::leave(riders);
            Ok(())
        });
        self
    }
}

impl Transaction {
    /// Adds a step that follows the transaction: see [`Batch::step`](crate::action::Batch::step).
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
    /// use tablesdk::outbox::Step;
    ///
    /// let archive = service.table("Archive");
    /// archive.create_table().await?;
    /// let retire = table.transaction("Sales", async |tx| {
    ///     let ada = tx.get(Employee::key("Sales", "1")).await?.ok_or("no such employee")?;
    ///     tx.delete_stored(&ada).step(Step::upsert_replace(&archive, &*ada));
    ///     Ok(())
    /// });
    /// retire.await?;
    /// assert!(archive.get(Employee::key("Sales", "1")).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn step(&self, step: Step) -> &Self {
        self.add(|batch| batch.ride(|table, riders| Steps::add(riders, table, step)))
    }
}

impl<T, O> RunTransaction<'_, T, O> {
    /// Leaves the [steps](Transaction::step) to workers, as
    /// [`Batch::leave_steps`](Batch::leave_steps).
    pub fn leave_steps(mut self) -> Self {
        Steps::leave(&mut self.riders);
        self
    }
}
