//! Query Entities with both keys: one entity. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-entities>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::path::Endpoint;
use crate::types::{ETag, EntityKey, ServiceError, TableName};
use crate::wire::json::MetadataLevel;

/// `GET /people(PartitionKey='p',RowKey='r')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table to read from.
    pub table: TableName,
    /// The entity to read.
    pub key: EntityKey,
    /// The names of the properties to read; all when `None`.
    pub select: Option<Vec<String>>,
    /// The metadata of the response. A client always requests minimal metadata.
    pub level: MetadataLevel,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let mut options = QueryOptions::default();
        if let Some(select) = &self.select {
            options.push("$select", select.join(","));
        }
        let uri = endpoint.entity_uri(&self.table, Some(&self.key), &options);
        message::request_to(Method::GET, uri)
    }

    pub(super) fn decode(
        table: TableName,
        key: EntityKey,
        request: &RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        request.options.refuse_unsupported()?;
        Ok(Self {
            table,
            key,
            select: request.select()?,
            level: request.metadata_level()?,
        })
    }
}

/// 200 with the entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The entity's ETag; some backends have it only in the body.
    pub etag: Option<ETag>,
    /// The entity as JSON.
    pub content: Bytes,
}

impl Response {
    /// The HTTP response.
    pub fn encode(self, level: MetadataLevel) -> HttpResponse<Bytes> {
        let answer = Answer::json(StatusCode::OK, level, self.content);
        match self.etag {
            Some(etag) => answer.with_etag(&etag),
            None => answer,
        }
        .into_response()
    }

    /// Reads the HTTP response of a success.
    pub fn decode(response: HttpResponse<Bytes>) -> Self {
        Self {
            etag: message::etag(&response),
            content: response.into_body(),
        }
    }
}
