//! `stats`: Get Table Service Stats, which the secondary answers.

use tablesdk_protocol::ServiceStats;
use tablesdk_protocol::operation::service_stats::{Request, Response};

use crate::error::Error;
use crate::pipeline::{Effect, PipelineHandle};

/// Reads the statistics of the service. See [`TableServiceClient::stats`](crate::TableServiceClient::stats).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct GetStats {
    pipeline: PipelineHandle,
}

impl GetStats {
    pub(crate) const fn new(pipeline: PipelineHandle) -> Self {
        Self { pipeline }
    }

    async fn run(self) -> Result<ServiceStats, Error> {
        let Some(secondary) = &self.pipeline.secondary else {
            let problem = "where the secondary is cannot be told from the endpoint: give the builder a secondary_endpoint";
            return Err(Error::configuration_message(problem).with_operation(OPERATION));
        };
        let request = Request.encode(secondary);
        let response = self
            .pipeline
            .send(OPERATION, None, Effect::ReadNow, &request)
            .await?;
        let response = Response::decode(&response)
            .map_err(|error| Error::response(error).with_operation(OPERATION))?;
        Ok(response.stats)
    }
}

action!(impl[] GetStats, pipeline => ServiceStats);

const OPERATION: &str = "get service stats";
