//! Get and Set Table Service Properties.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-service-properties> and
//! <https://learn.microsoft.com/rest/api/storageservices/set-table-service-properties>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::path::Endpoint;
use crate::types::{ServiceError, ServiceProperties, ServicePropertiesError};
use crate::wire::xml::{self, XmlError, read_service_properties, write_service_properties};

/// `GET /?restype=service&comp=properties`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetRequest;

impl GetRequest {
    /// The HTTP request.
    pub fn encode(self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        message::xml_request(Method::GET, endpoint, "", &options())
    }
}

/// 200 with the properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetResponse {
    /// The properties.
    pub properties: ServiceProperties,
}

impl GetResponse {
    /// The HTTP response.
    pub fn encode(&self) -> HttpResponse<Bytes> {
        let body = write_service_properties(&self.properties);
        Answer::xml(StatusCode::OK, body.into()).into_response()
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When the body holds no properties.
    pub fn decode(response: &HttpResponse<Bytes>) -> Result<Self, XmlError> {
        let properties = read_service_properties(response.body())?;
        Ok(Self { properties })
    }
}

/// `PUT /?restype=service&comp=properties`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRequest {
    /// The properties that change.
    pub properties: ServiceProperties,
}

impl SetRequest {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let request = message::xml_request(Method::PUT, endpoint, "", &options());
        let document = write_service_properties(&self.properties);
        message::with_xml(request, xml::request_body(document))
    }

    pub(super) fn decode(request: &RequestParts<'_>) -> Result<Self, ServiceError> {
        let properties = read_service_properties(&request.body)?;
        match properties.check() {
            Err(ServicePropertiesError::CorsRules) if !request.rules.limits_cors_rules => {}
            checked => checked.map_err(XmlError::from)?,
        }
        Ok(Self { properties })
    }
}

/// 202: they change soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetResponse;

impl SetResponse {
    /// The HTTP response.
    pub fn encode(self) -> HttpResponse<Bytes> {
        let mut response = Answer::empty().into_response();
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    }
}

fn options() -> QueryOptions {
    let mut options = QueryOptions::default();
    options.push("restype", "service");
    options.push("comp", "properties");
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CorsRule, Logging, Metrics};

    #[test]
    fn properties_are_sent_as_clients_send_them() {
        let endpoint: Endpoint = "https://acct.table.core.windows.net".parse().unwrap();
        let rule = CorsRule::new("*")
            .allow_method("GET")
            .allow_method("PUT")
            .expose_header("x-ms-*")
            .max_age_in_seconds(5);
        let properties = ServiceProperties::default()
            .with_logging(Logging::default().deletes().retain_days(7))
            .with_minute_metrics(Metrics::enabled())
            .with_cors([rule]);
        let sent = SetRequest { properties }.encode(&endpoint);
        assert_eq!(sent.method(), Method::PUT);
        let url = "https://acct.table.core.windows.net/?restype=service&comp=properties";
        assert_eq!(sent.uri(), url);
        assert_eq!(sent.headers()["content-type"], "application/xml");
        let body = concat!(
            r#"<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>"#,
            "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>true</Delete>",
            "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></Logging>",
            "<MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>",
            "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>",
            "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>",
            "<AllowedHeaders /><ExposedHeaders>x-ms-*</ExposedHeaders><MaxAgeInSeconds>5</MaxAgeInSeconds>",
            "</CorsRule></Cors></StorageServiceProperties>",
        );
        assert_eq!(sent.body(), body);
    }
}
