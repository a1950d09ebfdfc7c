//! Query Entities: a page of them. See
//! <https://learn.microsoft.com/rest/api/storageservices/query-entities>.

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response as HttpResponse, StatusCode};

use super::QueryOptions;
use super::message::{self, Answer, RequestParts};
use crate::filter::{Filter, ParseFilterError};
use crate::path::continuation::EntityContinuation;
use crate::path::{Endpoint, ResourcePath};
use crate::types::header::{X_MS_CONTINUATION_NEXT_PARTITION_KEY, X_MS_CONTINUATION_NEXT_ROW_KEY};
use crate::types::{ErrorCode, ServiceError, TableName};
use crate::wire::json::MetadataLevel;

/// `GET /people()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The table to read from.
    pub table: TableName,
    /// Which entities.
    pub filter: Option<Filter>,
    /// Why the service refuses the filter, if the server accepts it all the same. Not sent.
    pub filter_refusal: Option<Box<ParseFilterError>>,
    /// The names of the properties to read; all when `None`.
    pub select: Option<Vec<String>>,
    /// The most entities of this page.
    pub top: Option<usize>,
    /// Where this page starts, as the response with the page before returned it.
    pub continuation: Option<EntityContinuation>,
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
        let resource = ResourcePath::EntitySet(self.table.clone());
        let mut options = QueryOptions::default();
        if let Some(filter) = &self.filter {
            options.push("$filter", filter.to_string());
        }
        if let Some(select) = &self.select {
            options.push("$select", select.join(","));
        }
        if let Some(top) = self.top {
            options.push("$top", top.to_string());
        }
        if let Some(continuation) = &self.continuation {
            options.push("NextPartitionKey", &continuation.next_partition_key);
            // Absent stays absent: the service refuses an empty one.
            if let Some(next_row_key) = &continuation.next_row_key {
                options.push("NextRowKey", next_row_key);
            }
        }
        (resource, options)
    }

    pub(super) fn decode(
        table: TableName,
        request: &RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        let options = &request.options;
        options.refuse_unsupported()?;
        let continuation = match (options.get("NextPartitionKey"), options.get("NextRowKey")) {
            (None, None) => None,
            (Some(partition), row) if !partition.is_empty() && row != Some("") => {
                Some(EntityContinuation {
                    next_partition_key: partition.to_owned(),
                    next_row_key: row.map(str::to_owned),
                })
            }
            _ => return Err(ErrorCode::InvalidInput.into()),
        };
        Ok(Self {
            table,
            filter: request.filter()?,
            filter_refusal: request.filter_refusal().map(Box::new),
            select: request.select()?,
            top: request.top()?,
            continuation,
            level: request.metadata_level()?,
        })
    }
}

/// 200 with a page, and where the next one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The page as JSON.
    pub content: Bytes,
    /// Where the next page starts; `None` at the end.
    pub continuation: Option<EntityContinuation>,
}

impl Response {
    /// The HTTP response.
    pub fn encode(self, level: MetadataLevel) -> HttpResponse<Bytes> {
        let mut answer = Answer::json(StatusCode::OK, level, self.content);
        if let Some(continuation) = &self.continuation {
            let next = &continuation.next_partition_key;
            answer = answer.with(X_MS_CONTINUATION_NEXT_PARTITION_KEY, next);
            if let Some(next) = &continuation.next_row_key {
                answer = answer.with(X_MS_CONTINUATION_NEXT_ROW_KEY, next);
            }
        }
        answer.into_response()
    }

    /// Reads the HTTP response of a success.
    pub fn decode(response: HttpResponse<Bytes>) -> Self {
        let next_partition_key = message::text(&response, &X_MS_CONTINUATION_NEXT_PARTITION_KEY);
        let continuation = next_partition_key.map(|next_partition_key| EntityContinuation {
            next_partition_key,
            next_row_key: message::text(&response, &X_MS_CONTINUATION_NEXT_ROW_KEY),
        });
        Self {
            content: response.into_body(),
            continuation,
        }
    }
}
