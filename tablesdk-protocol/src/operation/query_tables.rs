//! Query Tables. See <https://learn.microsoft.com/rest/api/storageservices/query-tables>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::filter::Filter;
use crate::path::{Endpoint, ResourcePath};
use crate::types::ServiceError;
use crate::types::header::X_MS_CONTINUATION_NEXT_TABLE_NAME;
use crate::wire::json::{self, MetadataLevel, TableJsonError};

/// `GET /Tables`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Which tables; their one property is `TableName`.
    pub filter: Option<Filter>,
    /// The most tables of this page.
    pub top: Option<usize>,
    /// Where this page starts, as the response with the page before returned it.
    pub next_table_name: Option<String>,
    /// The metadata of the response. A client always requests minimal metadata.
    pub level: MetadataLevel,
}

impl Request {
    /// The HTTP request.
    ///
    /// # Panics
    ///
    /// When its URL has more than 65,534 bytes. [`Request::url_bytes`] returns the length.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        let (resource, options) = self.target();
        message::request(Method::GET, endpoint, &resource, &options)
    }

    /// The length of its URL.
    pub fn url_bytes(&self, endpoint: &Endpoint) -> usize {
        let (resource, options) = self.target();
        format!("{endpoint}/{resource}{options}").len()
    }

    fn target(&self) -> (ResourcePath, QueryOptions) {
        let mut options = QueryOptions::default();
        if let Some(filter) = &self.filter {
            options.push("$filter", filter.to_string());
        }
        if let Some(top) = self.top {
            options.push("$top", top.to_string());
        }
        if let Some(next) = &self.next_table_name {
            options.push("NextTableName", next);
        }
        (ResourcePath::Tables, options)
    }

    pub(super) fn decode(request: &RequestParts<'_>) -> Result<Self, ServiceError> {
        request.options.refuse_unsupported()?;
        Ok(Self {
            filter: request.filter()?,
            top: request.top()?,
            next_table_name: request.options.get("NextTableName").map(str::to_owned),
            level: request.metadata_level()?,
        })
    }
}

/// 200 with a list of tables, and where the next page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The names, ordered without regard to case.
    pub names: Vec<String>,
    /// Where the next page starts; `None` at the end.
    pub next_table_name: Option<String>,
}

impl Response {
    /// The HTTP response.
    pub fn encode(
        &self,
        level: MetadataLevel,
        endpoint: &Endpoint,
        account: &str,
    ) -> HttpResponse<Bytes> {
        let names = self.names.iter().map(String::as_str);
        let body = json::write_tables(level, endpoint, account, names);
        let answer = Answer::json(StatusCode::OK, level, body.into());
        match &self.next_table_name {
            Some(next) => answer.with(X_MS_CONTINUATION_NEXT_TABLE_NAME, next),
            None => answer,
        }
        .into_response()
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When the body is not a list of tables.
    pub fn decode(response: &HttpResponse<Bytes>) -> Result<Self, TableJsonError> {
        Ok(Self {
            names: json::read_tables(response.body())?,
            next_table_name: message::text(response, &X_MS_CONTINUATION_NEXT_TABLE_NAME),
        })
    }
}
