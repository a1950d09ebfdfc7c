//! Delete Table. See <https://learn.microsoft.com/rest/api/storageservices/delete-table>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse};

use super::QueryOptions;
use super::message::{self, Answer};
use crate::path::{Endpoint, ResourcePath};
use crate::types::TableName;

/// `DELETE /Tables('name')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table to delete.
    pub name: TableName,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let resource = ResourcePath::Table(self.name.clone());
        let options = QueryOptions::default();
        message::request(Method::DELETE, endpoint, &resource, &options)
    }
}

/// 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response;

impl Response {
    /// The HTTP response.
    pub fn encode(self) -> HttpResponse<Bytes> {
        Answer::empty().into_response()
    }
}
