//! The model of the service: which properties every table and every entity has. See
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model>.
//!
//! The document says nothing of what is stored: entities are of open types.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer};
use crate::path::{Endpoint, ResourcePath};
use crate::wire::xml::write_metadata;

/// `GET /$metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request;

impl Request {
    /// The HTTP request.
    pub fn encode(self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let path = ResourcePath::Metadata.to_string();
        let options = QueryOptions::default();
        message::xml_request(Method::GET, endpoint, &path, &options)
    }
}

/// 200 with the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The account, which is the namespace of its types.
    pub account: String,
}

impl Response {
    /// The HTTP response.
    pub fn encode(&self) -> HttpResponse<Bytes> {
        let body = write_metadata(&self.account);
        Answer::xml(StatusCode::OK, body.into()).into_response()
    }
}
