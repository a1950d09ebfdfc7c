//! Insert Entity. See <https://learn.microsoft.com/rest/api/storageservices/insert-entity>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::EntityBody;
use super::change::EntityChange;
use super::message::{self, Answer, MalformedResponse, Prefer, RequestParts};
use crate::path::Endpoint;
use crate::types::{ETag, EntityKey, ServiceError, TableName};
use crate::wire::json::MetadataLevel;

/// `POST /people`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table to insert into.
    pub table: TableName,
    /// The entity, keys included.
    pub entity: EntityBody,
    /// The preferred response: with the created entity, or without.
    pub prefer: Prefer,
    /// The metadata of the response. A client always requests minimal metadata.
    pub level: MetadataLevel,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        self.as_change().to_request(endpoint)
    }

    pub(super) const fn as_change(&self) -> EntityChange<'_> {
        EntityChange {
            method: Method::POST,
            table: &self.table,
            key: None,
            prefer: self.prefer,
            if_match: None,
            body: Some(self.entity.as_bytes()),
        }
    }

    pub(super) fn decode(
        table: TableName,
        request: &RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        request.require_json()?;
        Ok(Self {
            table,
            entity: EntityBody::from_bytes(request.body.clone()),
            prefer: Prefer::from_headers(request.headers),
            level: request.accepted_level()?,
        })
    }
}

/// 201 with the entity, or 204.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The ETag of the new entity.
    pub etag: ETag,
    /// The entity as JSON, if it comes back.
    pub content: Option<Bytes>,
}

impl Response {
    /// The HTTP response to this request for an entity with that key, below that endpoint.
    pub fn encode(
        self,
        request: &Request,
        endpoint: &Endpoint,
        key: &EntityKey,
    ) -> HttpResponse<Bytes> {
        let location = endpoint.entity_url(&request.table, Some(key));
        let answer = match self.content {
            Some(content) => Answer::json(StatusCode::CREATED, request.level, content),
            None => Answer::empty(),
        };
        answer
            .with_etag(&self.etag)
            .created(location, request.prefer)
            .into_response()
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When the response has no ETag.
    pub fn decode(response: HttpResponse<Bytes>) -> Result<Self, MalformedResponse> {
        let etag = message::require_etag(&response)?;
        let content = response.into_body();
        Ok(Self {
            etag,
            content: (!content.is_empty()).then_some(content),
        })
    }
}
