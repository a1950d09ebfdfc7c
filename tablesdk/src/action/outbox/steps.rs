//! The steps of a transaction. Knows how they are carried out only by functions that `then` adds, so that a program without steps does
//! not contain them.

use std::fmt;
use std::pin::Pin;

use tablesdk_protocol::{ETag, PartitionKey, TableName};

use super::commit::commit;
use super::step::{Prepared, Step};
use super::work::apply_now;
use crate::action::write::change::EntityChange;
use crate::action::write::exactly_once::KeepMarker;
use crate::error::Error;
use crate::pipeline::{Deadline, OperationRun, Table};
use crate::random::random_guid;

/// The steps that follow a transaction, in order.
pub(in crate::action) struct Steps {
    pub(super) prepared: Vec<Prepared>,
    /// The id of their pointer, and of their entries.
    pub(super) pointer: String,
    commit: CommitSteps,
    apply: ApplySteps,
}

/// [`commit`].
type CommitSteps = for<'r, 'p> fn(
    &'r mut OperationRun<'p>,
    Transaction<'r>,
) -> Pin<
    Box<dyn Future<Output = Result<Vec<Option<ETag>>, Error>> + Send + 'r>,
>;

/// [`apply_now`].
type ApplySteps = for<'r> fn(
    &'r Steps,
    &'r Table,
    &'r PartitionKey,
    Deadline,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'r>>;

/// What is committed together.
#[derive(Clone, Copy)]
pub(in crate::action) struct Transaction<'r> {
    pub(in crate::action) table: &'r TableName,
    pub(in crate::action) partition: &'r PartitionKey,
    pub(in crate::action) changes: &'r [EntityChange],
    pub(in crate::action) steps: &'r Steps,
    pub(in crate::action) exactly_once: Option<KeepMarker>,
}

impl Steps {
    /// Adds a step of a transaction in that table.
    pub(in crate::action) fn add(
        steps: &mut Option<Self>,
        table: &Table,
        step: Step,
    ) -> Result<(), Error> {
        let steps = steps.get_or_insert_with(|| Self {
            prepared: Vec::new(),
            pointer: random_guid().to_string(),
            commit: |run, transaction| Box::pin(commit(run, transaction)),
            apply: |steps, table, partition, deadline| {
                Box::pin(apply_now(&steps.pointer, table, partition, deadline))
            },
        });
        steps.prepared.push(step.into_prepared(table.endpoint())?);
        Ok(())
    }

    /// Carries out the changes of the transaction, and stores its steps with them. Returns the new ETags of the entities. An index in an
    /// error is that of a change. An [ambiguous](Error::is_ambiguous) error is not resolved yet.
    pub(in crate::action) async fn commit(
        run: &mut OperationRun<'_>,
        transaction: Transaction<'_>,
    ) -> Result<Vec<Option<ETag>>, Error> {
        (transaction.steps.commit)(run, transaction).await
    }

    /// Applies the steps, as far as this client can until the deadline of the transaction. The rest is left to workers.
    pub(in crate::action) async fn apply(
        &self,
        table: &Table,
        partition: &PartitionKey,
        deadline: Deadline,
    ) {
        (self.apply)(self, table, partition, deadline).await;
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.prepared.iter().map(|step| step.kind);
        f.debug_list().entries(kinds).finish()
    }
}
