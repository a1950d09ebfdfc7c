//! A table of an account, as the operations on it see it.

use std::sync::Arc;

use tablesdk_protocol::{Endpoint, TableName};

use super::PipelineHandle;
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
}
