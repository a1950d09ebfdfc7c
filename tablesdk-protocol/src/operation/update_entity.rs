//! Update, Merge, Insert Or Replace and Insert Or Merge Entity: one operation with two modes and an
//! optional condition.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/update-entity2>,
//! <https://learn.microsoft.com/rest/api/storageservices/merge-entity>,
//! <https://learn.microsoft.com/rest/api/storageservices/insert-or-replace-entity> and
//! <https://learn.microsoft.com/rest/api/storageservices/insert-or-merge-entity>.

use bytes::Bytes;
use http::{HeaderValue, Method, Request as HttpRequest, Response as HttpResponse};

use super::change::EntityChange;
use super::message::{self, Answer, MalformedResponse, Prefer, RequestParts};
use super::{EntityBody, if_match};
use crate::path::Endpoint;
use crate::types::header::X_HTTP_METHOD;
use crate::types::{ETag, EntityKey, IfMatch, ServiceError, TableName};

/// The effect of an update on the properties that the request does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the service has these two modes")]
pub enum Mode {
    /// They stay.
    Merge,
    /// They go.
    Replace,
}

/// `PUT` or `PATCH /people(PartitionKey='p',RowKey='r')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table to write to.
    pub table: TableName,
    /// The entity to write.
    pub key: EntityKey,
    /// Replace or merge.
    pub mode: Mode,
    /// With a condition the entity must exist; without one it is inserted if it does not.
    pub if_match: Option<IfMatch>,
    /// The properties. The key is taken from the URL.
    pub entity: EntityBody,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        self.as_change().to_request(endpoint)
    }

    pub(super) const fn as_change(&self) -> EntityChange<'_> {
        EntityChange {
            method: match self.mode {
                Mode::Merge => Method::PATCH,
                Mode::Replace => Method::PUT,
            },
            table: &self.table,
            key: Some(&self.key),
            prefer: Prefer::Unspecified,
            if_match: self.if_match.as_ref(),
            body: Some(self.entity.as_bytes()),
        }
    }

    pub(super) fn decode(
        table: TableName,
        key: EntityKey,
        mode: Mode,
        request: RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        // A merge without a body, as old clients send it, has no type either.
        if !request.body.is_empty() {
            request.require_json()?;
        }
        let if_match = if_match(&request)?;
        Ok(Self {
            table,
            key,
            mode,
            if_match,
            entity: EntityBody::from_bytes(request.body),
        })
    }
}

/// The method of a merge in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are these two forms")]
pub enum MergeMethod {
    /// `PATCH`.
    #[default]
    Patch,
    /// `POST` with `X-HTTP-Method: MERGE`, as [`merge_by_post`] makes it.
    Post,
}

/// Turns a merge into the form that Cosmos DB knows: `POST` with `X-HTTP-Method: MERGE`. Leaves
/// other requests as they are.
pub fn merge_by_post(request: &mut HttpRequest<Bytes>) {
    if *request.method() == Method::PATCH {
        *request.method_mut() = Method::POST;
        let merge = HeaderValue::from_static("MERGE");
        request.headers_mut().insert(X_HTTP_METHOD, merge);
    }
}

/// 204, and the new ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The ETag that the entity has now.
    pub etag: ETag,
}

impl Response {
    /// The HTTP response.
    pub fn encode(self) -> HttpResponse<Bytes> {
        Answer::empty().with_etag(&self.etag).into_response()
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When the response has no ETag.
    pub fn decode(response: &HttpResponse<Bytes>) -> Result<Self, MalformedResponse> {
        Ok(Self {
            etag: message::require_etag(response)?,
        })
    }
}
