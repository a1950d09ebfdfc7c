//! A table of an account, as the operations on it see it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use tablesdk_protocol::{Endpoint, TableName};

use super::{Effect, OperationRun, PagedOperation, PipelineHandle};
use crate::error::Error;

/// The name of a table, and the pipeline to its account. Each action has a clone.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) pipeline: PipelineHandle,
    name: Arc<str>,
}

impl Table {
    pub(crate) fn new(pipeline: PipelineHandle, name: String) -> Self {
        let name = Arc::from(name);
        Self {
            pipeline: pipeline.of_table(&name),
            name,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.pipeline.endpoint
    }

    /// The name, if it is one, for a request of that operation.
    pub(crate) fn checked_name(&self, operation: &'static str) -> Result<TableName, Error> {
        let name = TableName::new(self.name());
        name.map_err(|error| Error::input(error).with_operation(operation))
    }

    /// Starts an operation on the table.
    pub(crate) fn begin(&self, operation: &'static str) -> OperationRun<'_> {
        self.pipeline.begin(operation, Some(&self.name))
    }

    /// Starts the next requests of an operation on the table whose requests begin one by one.
    pub(crate) fn resume(
        &self,
        operation: &'static str,
        paged: &PagedOperation,
    ) -> OperationRun<'_> {
        self.pipeline.resume(operation, Some(&self.name), paged)
    }

    /// Sends the only request of an operation on the table, and returns the response of success.
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        effect: Effect,
        request: &Request<Bytes>,
    ) -> Result<Response<Bytes>, Error> {
        let name = Some(&*self.name);
        self.pipeline.send(operation, name, effect, request).await
    }

    /// Sends the only request of a write to the table. `resolve` makes the result of the operation from its outcome.
    pub(crate) async fn write<T>(
        &self,
        operation: &'static str,
        request: &Request<Bytes>,
        resolve: impl FnOnce(Result<Response<Bytes>, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let name = Some(&*self.name);
        let pipeline = &self.pipeline;
        pipeline.write(operation, name, request, resolve).await
    }
}
