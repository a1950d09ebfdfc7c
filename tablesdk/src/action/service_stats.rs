//! `stats`: Get Table Service Stats, to which the secondary responds.

use tablesdk_protocol::ServiceStats;
use tablesdk_protocol::operation::service_stats::{Request, Response};

use crate::action::refusal::malformed;
use crate::error::Error;
use crate::pipeline::{Effect, PipelineHandle};

/// Reads the statistics of the service.
pub(crate) async fn get_stats(pipeline: PipelineHandle) -> Result<ServiceStats, Error> {
    let Some(secondary) = &pipeline.secondary else {
        let problem = "the secondary cannot be derived from the endpoint: set `secondary_endpoint` on the builder";
        return Err(Error::configuration_message(problem).with_operation(OPERATION));
    };
    let request = Request.encode(secondary);
    let response = pipeline.send(OPERATION, Effect::ReadNow, &request).await?;
    let response = Response::decode(&response).map_err(|error| malformed(OPERATION, error))?;
    Ok(response.stats)
}

const OPERATION: &str = "get service stats";
