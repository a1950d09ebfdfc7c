//! `properties` and `set_properties`: Get and Set Table Service Properties.

use http::StatusCode;
use tablesdk_protocol::ServiceProperties;
use tablesdk_protocol::operation::service_properties::{GetRequest, GetResponse, SetRequest};

use super::write::ambiguous_write::resolve_without_entity;
use crate::action::refusal::{malformed, refused};
use crate::error::Error;
use crate::pipeline::{Effect, PipelineHandle};

/// Reads the properties of the service.
pub(crate) async fn get_properties(pipeline: PipelineHandle) -> Result<ServiceProperties, Error> {
    let request = GetRequest.encode(&pipeline.endpoint);
    let response = pipeline.send(GET, Effect::ReadNow, &request).await?;
    let response = GetResponse::decode(&response).map_err(|error| malformed(GET, error))?;
    Ok(response.properties)
}

/// Changes the properties of the service.
pub(crate) async fn set_properties(
    pipeline: PipelineHandle,
    properties: ServiceProperties,
) -> Result<(), Error> {
    properties.check().map_err(|error| refused(SET, error))?;
    let request = SetRequest { properties }.encode(&pipeline.endpoint);
    let resolve = |sent| resolve_without_entity(SET, sent, &[StatusCode::ACCEPTED]);
    pipeline.write(SET, &request, resolve).await
}

const GET: &str = "get service properties";
const SET: &str = "set service properties";
