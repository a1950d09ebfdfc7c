//! `Outbox::drain`: a worker, which applies the steps that writers have left.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use futures_util::{StreamExt as _, stream};
use tablesdk_protocol::{IfMatch, PartitionKey};

use super::entry::{Row, delete};
use super::head::read_pointer;
use super::pointers::read_pointers;
use super::poisoned::{PoisonedStep, poisoned};
use super::report::DrainReport;
#[cfg(feature = "json")]
use super::report::Handler;
use super::work::{Role, Worker, WorkerOptions};
use crate::action::Action;
use crate::action::refusal::refused;
use crate::client::TableClient;
use crate::entity::EntityError;
use crate::entity::key::IntoPartitionKey;
use crate::error::Error;
use crate::pipeline::Table;

/// The steps that transactions of a table have left to workers. See [the
/// guide](crate::guide::outbox).
///
/// Any number of workers may run at the same time, in any number of processes.
///
/// ```
#[doc = include_str!("../../docs/employees.md")]
/// use tablesdk::outbox::{Outbox, Step};
///
/// let names = service.table("Names");
/// names.create_table().await?;
/// let ada = Employee::new("Sales", "1", "Ada");
/// let by_name = Employee::new("Ada", "Sales 1", "Ada");
/// table.batch("Sales").insert(&ada).step(Step::upsert_replace(&names, &by_name)).leave_steps().await?;
///
/// let outbox = Outbox::new(&table);
/// let report = outbox.drain().await?;
/// assert_eq!((report.applied, report.waiting), (1, 0));
/// assert_eq!(names.query::<Employee>().partition("Ada").count().await?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Outbox {
    pub(super) table: Table,
    pub(super) options: WorkerOptions,
}

impl Outbox {
    /// The outbox of the transactions of a table.
    pub fn new(table: &TableClient) -> Self {
        Self::of(table.table().clone())
    }

    pub(crate) fn of(table: Table) -> Self {
        Self {
            table,
            options: WorkerOptions::default(),
        }
    }

    #[cfg(feature = "json")]
    pub(super) fn with_handler(mut self, name: &'static str, handler: Handler) -> Self {
        self.options.handlers.set(name, handler);
        self
    }

    /// Applies the steps that can be applied now, in the order of each partition, and returns: for
    /// a program with a loop of its own. [`run`](Self::run) is a loop.
    ///
    /// A step that fails is tried again by a later call: after 30 seconds, and then after twice the
    /// time of before, up to 10 minutes. The steps behind it in its partition wait. After 10
    /// attempts it is [set aside](Self::poisoned); after 100, if the service had an internal error
    /// or the connection was lost; never, while the service is busy; and at once, if its table does
    /// not exist.
    ///
    /// # Errors
    ///
    /// The errors of the service about the outbox itself, such as `TableNotFound`. The error of one
    /// step is counted in the report, and logged as a warning.
    pub fn drain(&self) -> DrainOutbox {
        DrainOutbox {
            table: self.table.clone(),
            options: self.options.clone(),
            partition: None,
        }
    }

    /// Reads the steps that were set aside, after too many attempts or because their table does not
    /// exist, and those behind them that change the same entity.
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `TableNotFound`.
    pub fn poisoned(&self) -> Action<Vec<PoisonedStep>> {
        Action::of_table(&self.table, poisoned)
    }
}

/// Applies steps. See [`Outbox::drain`].
#[derive(Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct DrainOutbox {
    table: Table,
    options: WorkerOptions,
    partition: Option<Result<PartitionKey, EntityError>>,
}

impl DrainOutbox {
    /// Applies the steps of one partition only, without looking for others. A program that knows
    /// from elsewhere which partition has steps, such as from a queue, so saves the search.
    pub fn partition(mut self, partition: impl IntoPartitionKey) -> Self {
        self.partition = Some(partition.into_partition_key());
        self
    }

    pub(super) fn of(mut self, partition: PartitionKey) -> Self {
        self.partition = Some(Ok(partition));
        self
    }

    async fn run(self) -> Result<DrainReport, Error> {
        let mut report = DrainReport::default();
        self.add_to(&mut report).await?;
        Ok(report)
    }

    /// Adds to a report, which then has what was applied beside an error, too.
    pub(super) async fn add_to(self, report: &mut DrainReport) -> Result<(), Error> {
        let name = self.table.checked_name(OPERATION)?;
        let partitions = match self.partition {
            Some(partition) => {
                let partition = partition.map_err(|error| refused(OPERATION, error))?;
                BTreeMap::from([(partition, Vec::new())])
            }
            None => read_pointers(&self.table, &name).await?,
        };
        let (table, options) = (&self.table, &self.options);
        let drained = partitions.into_iter().map(|(partition, pointers)| {
            let name = name.clone();
            async move {
                let mut worker = Worker::new(table, name, &partition, Role::Worker(options));
                let drained = drain(&mut worker, options, pointers).await;
                (worker.report, drained)
            }
        });
        // An error of one partition does not end the others.
        let drained: Vec<_> = stream::iter(drained)
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        let mut all = Ok(());
        for (of_partition, drained) in drained {
            report.add(of_partition);
            all = all.and(drained);
        }
        all
    }
}

async fn drain(
    worker: &mut Worker<'_>,
    options: &WorkerOptions,
    old: Vec<Row>,
) -> Result<(), Error> {
    if options.is_stopping.load(Ordering::Relaxed) {
        return Ok(());
    }
    let view = worker.work().await?;
    let is_lost = |pointer: &&Row| {
        read_pointer(pointer).is_some_and(|(id, _)| !view.has(id) && !worker.pointers.contains(id))
    };
    let lost: Vec<_> = old.iter().filter(is_lost).collect();
    // A commit that rests on an older head is refused from now on. Its writer then writes the
    // pointer again.
    if view.is_complete && !lost.is_empty() && worker.replace_head(&view.head, Vec::new()).await? {
        for pointer in lost {
            let if_match = IfMatch::ETag(pointer.etag().clone());
            worker
                .send(&[delete(&worker.name, pointer.key(), if_match)])
                .await?;
        }
    }
    Ok(())
}

action!(impl[] DrainOutbox, table.pipeline => DrainReport);

const OPERATION: &str = "drain outbox";
const CONCURRENCY: usize = 8;
