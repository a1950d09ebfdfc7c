//! Operations without options of their own: one type for all of them.

use std::fmt;

use super::ActionFuture;
use crate::error::Error;
use crate::pipeline::{PipelineHandle, Table};

/// An operation without options of its own, which returns a `T`: of a table
/// [`delete_table`](crate::TableClient::delete_table),
/// [`table_exists`](crate::TableClient::table_exists),
/// [`access_policy`](crate::TableClient::access_policy) and
/// [`set_access_policy`](crate::TableClient::set_access_policy), of an account
/// [`properties`](crate::TableServiceClient::properties),
/// [`set_properties`](crate::TableServiceClient::set_properties) and
/// [`stats`](crate::TableServiceClient::stats), of several tables
/// [`drop_before`](crate::rolling::RollingTable::drop_before), of a signature
/// [`delegate`](crate::sas::TableSasBuilder::delegate).
#[must_use = "actions do nothing until awaited"]
pub struct Action<T> {
    pipeline: PipelineHandle,
    operation: Operation<T>,
}

type Operation<T> = Box<dyn FnOnce(PipelineHandle) -> ActionFuture<'static, T> + Send + Sync>;

impl<T> Action<T> {
    pub(crate) fn new<F>(
        pipeline: &PipelineHandle,
        operation: impl FnOnce(PipelineHandle) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        Self {
            pipeline: pipeline.clone(),
            operation: Box::new(|pipeline| Box::pin(operation(pipeline))),
        }
    }

    pub(crate) fn of_table<F>(
        table: &Table,
        operation: impl FnOnce(Table) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut table = table.clone();
        Self::new(&table.pipeline.clone(), |pipeline| {
            table.pipeline = pipeline;
            operation(table)
        })
    }

    fn run(self) -> ActionFuture<'static, T> {
        (self.operation)(self.pipeline)
    }
}

action!(impl[T: 'static] Action<T>, pipeline => T);

impl<T> fmt::Debug for Action<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action")
            .field("pipeline", &self.pipeline)
            .finish_non_exhaustive()
    }
}
