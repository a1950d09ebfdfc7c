//! Delete Entity. See <https://learn.microsoft.com/rest/api/storageservices/delete-entity1>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, header};

use super::message::{self, Answer, ReceivedRequest};
use super::{QueryOptions, if_match};
use crate::path::{Endpoint, ResourcePath};
use crate::types::{EntityKey, ErrorCode, IfMatch, ServiceError, TableName};

/// `DELETE /people(PartitionKey='p',RowKey='r')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table to delete from.
    pub table: TableName,
    /// The entity to delete.
    pub key: EntityKey,
    /// The version to delete.
    pub if_match: IfMatch,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let resource = ResourcePath::Entity(self.table.clone(), self.key.clone());
        let options = QueryOptions::default();
        let builder = message::request(Method::DELETE, endpoint, &resource, &options);
        message::without_body(builder.header(header::IF_MATCH, self.if_match.as_str()))
    }

    pub(super) fn decode(
        table: TableName,
        key: EntityKey,
        request: &ReceivedRequest,
    ) -> Result<Self, ServiceError> {
        // SERVICE: a delete without a condition is documented as an error; its code is assumed.
        let if_match = if_match(&request.headers)?
            .ok_or_else(|| ServiceError::from(ErrorCode::InvalidInput))?;
        Ok(Self {
            table,
            key,
            if_match,
        })
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
