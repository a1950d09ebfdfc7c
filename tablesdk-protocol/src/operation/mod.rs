//! The operations of the service, one file each: a `Request` and a `Response`, both with `encode` and `decode`.
//!
//! What every request has in common — date, version, signature, request ids — is added by the client's pipeline; what every
//! answer has in common is added by the server's. See
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-entities>.

mod body;
pub mod create_table;
pub mod delete_entity;
pub mod delete_table;
pub mod get_entity;
pub mod insert_entity;
mod message;
mod options;
pub mod query_entities;
pub mod query_tables;
pub mod update_entity;

use http::{HeaderMap, Method, header};

pub use body::{EntityBody, EntityInput};
pub use message::{MalformedResponse, Prefer, ReceivedRequest};
pub use options::QueryOptions;

use crate::wire::header::X_HTTP_METHOD;
use crate::{ErrorCode, IfMatch, ResourcePath, ServiceError};

/// A request of any operation, decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// Creates a table.
    CreateTable(create_table::Request),
    /// Deletes an entity.
    DeleteEntity(delete_entity::Request),
    /// Deletes a table.
    DeleteTable(delete_table::Request),
    /// Reads one entity by its key.
    GetEntity(get_entity::Request),
    /// Inserts an entity that must not exist.
    InsertEntity(insert_entity::Request),
    /// Reads a page of entities.
    QueryEntities(query_entities::Request),
    /// Reads a page of tables.
    QueryTables(query_tables::Request),
    /// Replaces or merges an entity, or upserts it.
    UpdateEntity(update_entity::Request),
}

impl Operation {
    /// Decides by method and resource which operation a request is, and decodes it as that.
    ///
    /// # Errors
    ///
    /// `MethodNotAllowed` for a verb that the resource does not have, `NotImplemented` for what this crate does not speak
    /// yet, and the errors of each operation's `decode`.
    pub fn decode(request: ReceivedRequest) -> Result<Self, ServiceError> {
        let method = tunnelled_method(&request.method, &request.headers)?;
        let merge = method == Method::PATCH || method.as_str() == "MERGE";
        // These live on the account root and on `/{table}` by way of the query.
        if request.options.get("comp").is_some() || request.options.get("restype").is_some() {
            return Err(ErrorCode::NotImplemented.into());
        }
        Ok(match request.resource.clone() {
            ResourcePath::Tables if method == Method::GET => {
                Self::QueryTables(query_tables::Request::decode(&request)?)
            }
            ResourcePath::Tables if method == Method::POST => {
                Self::CreateTable(create_table::Request::decode(&request)?)
            }
            ResourcePath::Table(name) if method == Method::DELETE => {
                Self::DeleteTable(delete_table::Request { name })
            }
            ResourcePath::EntitySet(table) if method == Method::GET => {
                Self::QueryEntities(query_entities::Request::decode(table, &request)?)
            }
            ResourcePath::EntitySet(table) if method == Method::POST => {
                Self::InsertEntity(insert_entity::Request::decode(table, &request)?)
            }
            ResourcePath::Entity(table, key) if method == Method::GET => {
                Self::GetEntity(get_entity::Request::decode(table, key, &request)?)
            }
            ResourcePath::Entity(table, key) if method == Method::PUT || merge => {
                let mode = if merge {
                    update_entity::Mode::Merge
                } else {
                    update_entity::Mode::Replace
                };
                Self::UpdateEntity(update_entity::Request::decode(table, key, mode, request)?)
            }
            ResourcePath::Entity(table, key) if method == Method::DELETE => {
                Self::DeleteEntity(delete_entity::Request::decode(table, key, &request)?)
            }
            ResourcePath::Batch | ResourcePath::Metadata | ResourcePath::Table(_)
                if method == Method::GET || method == Method::POST =>
            {
                return Err(ErrorCode::NotImplemented.into());
            }
            ResourcePath::Service => return Err(ErrorCode::InvalidUri.into()),
            _ => return Err(ErrorCode::MethodNotAllowed.into()),
        })
    }
}

/// The method that the request means: its own, or the one a POST carries in `X-HTTP-Method`.
fn tunnelled_method(method: &Method, headers: &HeaderMap) -> Result<Method, ServiceError> {
    let mut values = headers.get_all(X_HTTP_METHOD).iter();
    let Some(value) = values.next() else {
        return Ok(method.clone());
    };
    if values.next().is_some() {
        return Err(ErrorCode::XMethodIncorrectCount.into());
    }
    if method != Method::POST {
        return Err(ErrorCode::XMethodNotUsingPost.into());
    }
    match value.as_bytes() {
        b"DELETE" | b"MERGE" | b"PATCH" | b"PUT" => Ok(Method::from_bytes(value.as_bytes())
            .map_err(|_| ServiceError::from(ErrorCode::XMethodIncorrectValue))?),
        _ => Err(ErrorCode::XMethodIncorrectValue.into()),
    }
}

/// The condition of a write. `If-None-Match` has no meaning on any of them.
fn if_match(headers: &HeaderMap) -> Result<Option<IfMatch>, ServiceError> {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return Err(ErrorCode::InvalidInput.into());
    }
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    if text == "*" && values.next().is_none() {
        return Ok(Some(IfMatch::Any));
    }
    let etag = crate::ETag::from_opaque(text);
    if values.next().is_some() || !etag.is_well_formed() {
        return Err(ServiceError::new(
            ErrorCode::InvalidInput,
            format!(
                "The etag value '{text}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid."
            ),
        ));
    }
    Ok(Some(IfMatch::ETag(etag)))
}

/// `Content-Type` of every request with a body of JSON.
const JSON: &str = "application/json";

/// `DataServiceVersion` of every request.
const DATA_SERVICE_VERSION: &str = "3.0";
