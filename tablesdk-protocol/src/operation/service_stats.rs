//! Get Table Service Stats: the state of the replication, requested from the secondary.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/get-table-service-stats>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer};
use crate::path::Endpoint;
use crate::types::ServiceStats;
use crate::wire::xml::{XmlError, read_service_stats, write_service_stats};

/// `GET /?restype=service&comp=stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request;

impl Request {
    /// The HTTP request to the endpoint of the secondary.
    pub fn encode(self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let mut options = QueryOptions::default();
        options.push("restype", "service");
        options.push("comp", "stats");
        message::xml_request(Method::GET, endpoint, "", &options)
    }
}

/// 200 with the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The statistics.
    pub stats: ServiceStats,
}

impl Response {
    /// The HTTP response.
    pub fn encode(self) -> HttpResponse<Bytes> {
        let body = write_service_stats(&self.stats);
        Answer::xml(StatusCode::OK, body.into()).into_response()
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When the body holds no statistics.
    pub fn decode(response: &HttpResponse<Bytes>) -> Result<Self, XmlError> {
        let stats = read_service_stats(response.body())?;
        Ok(Self { stats })
    }
}
