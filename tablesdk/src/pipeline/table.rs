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
    /// Why there is no such table.
    problem: Option<Arc<str>>,
}

impl Table {
    pub(crate) fn new(pipeline: PipelineHandle, name: String) -> Self {
        let name = Arc::from(name);
        Self {
            pipeline: pipeline.of_table(&name),
            name,
            problem: None,
        }
    }

    /// A table whose name cannot be made: each operation reports why.
    pub(crate) fn refused(pipeline: PipelineHandle, name: String, problem: &str) -> Self {
        Self {
            problem: Some(Arc::from(problem)),
            ..Self::new(pipeline, name)
        }
    }

    /// The table of another name, with the same options.
    #[must_use]
    pub(crate) fn renamed(&self, name: &str) -> Self {
        if *self.name == *name {
            return self.clone();
        }
        let name = Arc::from(name);
        Self {
            pipeline: self.pipeline.clone().of_table(&name),
            name,
            problem: self.problem.clone(),
        }
    }

    /// The same table, which is read at the primary only.
    #[must_use]
    pub(crate) fn at_primary(mut self) -> Self {
        self.pipeline.reads_now = true;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it is the same table of the same client or of a clone of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_name = self.name.eq_ignore_ascii_case(&other.name);
        is_same_name && self.pipeline.is_same_client(&other.pipeline)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.pipeline.endpoint
    }

    /// The name, if it is one, for a request of that operation.
    pub(crate) fn checked_name(&self, operation: &'static str) -> Result<TableName, Error> {
        if let Some(problem) = &self.problem {
            return Err(Error::input(&**problem).with_operation(operation));
        }
        let name = TableName::new(self.name());
        name.map_err(|error| Error::input(error).with_operation(operation))
    }
}
