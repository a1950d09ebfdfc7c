//! Query Tables with a name: one table. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-tables>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::path::{Endpoint, ResourcePath};
use crate::types::{ServiceError, TableName};
use crate::wire::json::{self, MetadataLevel, TableJsonError};

/// `GET /Tables('name')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The table to look for.
    pub name: TableName,
    /// The metadata of the response. A client always requests minimal metadata.
    pub level: MetadataLevel,
}

impl Request {
    /// The HTTP request.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let resource = ResourcePath::Table(self.name.clone());
        let options = QueryOptions::default();
        message::request(Method::GET, endpoint, &resource, &options)
    }

    pub(super) fn decode(
        name: TableName,
        request: &RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        request.options.refuse_unsupported()?;
        let level = request.metadata_level()?;
        Ok(Self { name, level })
    }
}

/// 200 with the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The name in the case that the table was created with.
    pub name: String,
}

impl Response {
    /// The HTTP response.
    pub fn encode(
        &self,
        level: MetadataLevel,
        endpoint: &Endpoint,
        account: &str,
    ) -> HttpResponse<Bytes> {
        let body = json::write_table(level, endpoint, account, &self.name);
        Answer::json(StatusCode::OK, level, body.into()).into_response()
    }

    /// Reads the HTTP response of a success; `None` when it does not name a table.
    ///
    /// # Errors
    ///
    /// When the body is not a table.
    pub fn decode(response: &HttpResponse<Bytes>) -> Result<Option<Self>, TableJsonError> {
        let name = json::read_table_name(response.body())?;
        Ok(name.map(|name| Self { name }))
    }
}
