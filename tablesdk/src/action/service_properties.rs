//! `properties` and `set_properties`: Get and Set Table Service Properties.

use http::StatusCode;
use tablesdk_protocol::ServiceProperties;
use tablesdk_protocol::operation::service_properties::{GetRequest, GetResponse, SetRequest};

use super::write::ambiguous_write::resolve_without_entity;
use super::{malformed, refused};
use crate::error::Error;
use crate::pipeline::{Effect, PipelineHandle};

/// Reads the properties of the service. See [`TableServiceClient::properties`](crate::TableServiceClient::properties).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct GetProperties {
    pub(crate) pipeline: PipelineHandle,
}

impl GetProperties {
    async fn run(self) -> Result<ServiceProperties, Error> {
        let request = GetRequest.encode(&self.pipeline.endpoint);
        let response = self
            .pipeline
            .send(GET, None, Effect::ReadNow, &request)
            .await?;
        let response = GetResponse::decode(&response).map_err(|error| malformed(GET, error))?;
        Ok(response.properties)
    }
}

action!(impl[] GetProperties, pipeline => ServiceProperties);

/// Changes the properties of the service. See [`TableServiceClient::set_properties`](crate::TableServiceClient::set_properties).
#[derive(Clone, Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct SetProperties {
    pub(crate) pipeline: PipelineHandle,
    pub(crate) properties: ServiceProperties,
}

impl SetProperties {
    async fn run(self) -> Result<(), Error> {
        let Self {
            pipeline,
            properties,
        } = self;
        properties.check().map_err(|error| refused(SET, error))?;
        let request = SetRequest { properties }.encode(&pipeline.endpoint);
        let sent = pipeline.send(SET, None, Effect::Write, &request).await;
        resolve_without_entity(SET, sent, &[StatusCode::ACCEPTED])
    }
}

action!(impl[] SetProperties, pipeline => ());

const GET: &str = "get service properties";
const SET: &str = "set service properties";
