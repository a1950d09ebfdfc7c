//! Create Table. See <https://learn.microsoft.com/rest/api/storageservices/create-table>.

use bytes::Bytes;
use http::{HeaderValue, Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, Prefer, RequestParts};
use crate::path::{Endpoint, ResourcePath};
use crate::types::header::PREFER;
use crate::types::{ErrorCode, ServiceError, TableName};
use crate::wire::json::{self, MetadataLevel, TableJsonError};

/// `POST /Tables`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The name of the new table.
    pub name: TableName,
    /// The preferred response: with the created table, or without.
    pub prefer: Prefer,
    /// The metadata of the response. A client always requests minimal metadata.
    pub level: MetadataLevel,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let options = QueryOptions::default();
        let mut request = message::request(Method::POST, endpoint, &ResourcePath::Tables, &options);
        if let Some(prefer) = self.prefer.as_str() {
            let headers = request.headers_mut();
            headers.insert(PREFER, HeaderValue::from_static(prefer));
        }
        message::with_json(request, json::write_table_name(self.name.as_str()).into())
    }

    pub(super) fn decode(request: &RequestParts<'_>) -> Result<Self, ServiceError> {
        request.require_json()?;
        let name = json::read_table_name(&request.body)
            .map_err(|error| match error {
                TableJsonError::Duplicate => ErrorCode::DuplicatePropertiesSpecified,
                _ => ErrorCode::InvalidInput,
            })?
            .ok_or_else(|| ServiceError::from(ErrorCode::PropertiesNeedValue))?;
        Ok(Self {
            name: TableName::new(name)?,
            prefer: Prefer::from_headers(request.headers),
            level: request.metadata_level()?,
        })
    }
}

/// 201 with the table, or 204.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The preference that was honoured.
    pub prefer: Prefer,
    /// The metadata of the response.
    pub level: MetadataLevel,
    /// The account, for the metadata.
    pub account: String,
    /// The table that was created.
    pub name: TableName,
}

impl Response {
    /// The HTTP response.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpResponse<Bytes> {
        let location = format!("{endpoint}/{}", ResourcePath::Table(self.name.clone()));
        let answer = if self.prefer == Prefer::ReturnNoContent {
            Answer::empty()
        } else {
            let body = json::write_table(self.level, endpoint, &self.account, self.name.as_str());
            Answer::json(StatusCode::CREATED, self.level, body.into())
        };
        answer.created(location, self.prefer).into_response()
    }
}
