//! Delete Entity. See <https://learn.microsoft.com/rest/api/storageservices/delete-entity1>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse};

use super::change::EntityChange;
use super::if_match;
use super::message::{Answer, Prefer, RequestParts};
use crate::path::Endpoint;
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
        self.as_change().to_request(endpoint)
    }

    pub(super) const fn as_change(&self) -> EntityChange<'_> {
        EntityChange {
            method: Method::DELETE,
            table: &self.table,
            key: Some(&self.key),
            prefer: Prefer::Unspecified,
            if_match: Some(&self.if_match),
            body: None,
        }
    }

    pub(super) fn decode(
        table: TableName,
        key: EntityKey,
        request: &RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        // SERVICE: a delete without a condition is documented as an error; its code is assumed.
        let if_match =
            if_match(request)?.ok_or_else(|| ServiceError::from(ErrorCode::InvalidInput))?;
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
