//! The operations of the service, one file each: a `Request` and a `Response`, both with `encode`
//! and `decode`.
//!
//! The client's pipeline adds what every request has: date, version, signature and request ids. The
//! server's pipeline adds what every response has. See
//! <https://learn.microsoft.com/rest/api/storageservices/operations-on-entities>.

pub mod batch;
mod body;
mod change;
mod checksum;
pub mod create_table;
pub mod delete_entity;
pub mod delete_table;
pub mod get_entity;
pub mod get_metadata;
pub mod get_table;
mod headers;
pub mod insert_entity;
mod message;
pub mod query_entities;
pub mod query_tables;
pub mod service_properties;
pub mod service_stats;
pub mod table_acl;
pub mod update_entity;
pub mod user_delegation_key;

use http::{Method, header};

pub use crate::path::QueryOptions;
pub use body::{EntityBody, EntityInput};
pub use message::{MalformedResponse, Prefer, ReceivedRequest, RequestRules};

use headers::RequestHeaders;
use message::RequestParts;

use crate::path::ResourcePath;
use crate::path::wrong_number_of_keys;
use crate::types::header::{X_HTTP_METHOD, text};
use crate::types::{ETag, ErrorCode, IfMatch, ServiceError, TableName};

/// A request of any operation, decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// Changes entities of one partition together, or queries.
    Batch(batch::Received),
    /// Creates a table.
    CreateTable(create_table::Request),
    /// Deletes an entity.
    DeleteEntity(delete_entity::Request),
    /// Deletes a table.
    DeleteTable(delete_table::Request),
    /// Reads one entity by its key.
    GetEntity(get_entity::Request),
    /// Reads the model of the service.
    GetMetadata(get_metadata::Request),
    /// Reads the properties of the service.
    GetServiceProperties(service_properties::GetRequest),
    /// Reads the statistics of the service.
    GetServiceStats(service_stats::Request),
    /// Reads one table by its name.
    GetTable(get_table::Request),
    /// Reads the stored access policies of a table.
    GetTableAcl(table_acl::GetRequest),
    /// Gets a key that signs with the rights of the user who sends the request.
    GetUserDelegationKey(user_delegation_key::Request),
    /// Inserts an entity that must not exist.
    InsertEntity(insert_entity::Request),
    /// Reads a page of entities.
    QueryEntities(query_entities::Request),
    /// Reads a page of tables.
    QueryTables(query_tables::Request),
    /// Changes the properties of the service.
    SetServiceProperties(service_properties::SetRequest),
    /// Addresses a resource of the account below a table. No operation has that address: the error
    /// is the response, unless the table does not exist, which comes first.
    Misplaced(TableName, ServiceError),
    /// Replaces the stored access policies of a table.
    SetTableAcl(table_acl::SetRequest),
    /// Replaces or merges an entity, or upserts it.
    UpdateEntity(update_entity::Request),
}

impl Operation {
    /// Decides by method and resource which operation a request is, and decodes it as that.
    ///
    /// # Errors
    ///
    /// `UnsupportedHttpVerb` for a verb that no resource has, `MethodNotAllowed` for one that this
    /// resource does not have, `Md5Mismatch` for a body that is not the one that was sent, and the
    /// errors of each operation's `decode`.
    pub fn decode(request: ReceivedRequest) -> Result<Self, ServiceError> {
        let parts = RequestParts {
            account: &request.account,
            options: &request.options,
            headers: RequestHeaders::Alone(&request.headers),
            body: request.body,
            rules: request.rules,
        };
        Self::of(&request.method, request.resource, parts)
    }

    fn of(
        method: &Method,
        resource: ResourcePath,
        request: RequestParts<'_>,
    ) -> Result<Self, ServiceError> {
        let method = tunnelled_method(method, request.headers)?;
        if !VERBS.contains(&method.as_str()) {
            return Err(ErrorCode::UnsupportedHttpVerb.into());
        }
        if method == Method::PATCH && !request.rules.accepts_patch {
            return Err(ErrorCode::InvalidInput.into());
        }
        checksum::check(request.headers, &request.body)?;
        let merge = method == Method::PATCH || method.as_str() == "MERGE";
        if let Some(part) = Part::of(&resource, request.options)? {
            return part.decode(&method, &request);
        }
        if matches!(resource, ResourcePath::Tables | ResourcePath::Table(_)) {
            refuse_conditions(request.headers)?;
        }
        Ok(match resource {
            ResourcePath::Tables if method == Method::GET => {
                Self::QueryTables(query_tables::Request::decode(&request)?)
            }
            ResourcePath::Tables if method == Method::POST => {
                Self::CreateTable(create_table::Request::decode(&request)?)
            }
            ResourcePath::Table(name) if method == Method::GET => {
                Self::GetTable(get_table::Request::decode(name, &request)?)
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
            ResourcePath::Batch if method == Method::POST => {
                Self::Batch(batch::Received::decode(&request)?)
            }
            ResourcePath::Metadata if method == Method::GET => {
                Self::GetMetadata(get_metadata::Request)
            }
            // SERVICE: what follows the name of the table is passed over, so that this is an
            // insert, and fails as one.
            ResourcePath::Misplaced(table, _) if method == Method::POST => {
                Self::InsertEntity(insert_entity::Request::decode(table, &request)?)
            }
            ResourcePath::Misplaced(table, rest) => {
                let error = refuse_misplaced(&method, request.account, &table, &rest);
                Self::Misplaced(table, error)
            }
            ResourcePath::Service => return Err(ErrorCode::InvalidUri.into()),
            _ => return Err(ErrorCode::MethodNotAllowed.into()),
        })
    }
}

/// A resource that the query addresses, and not the path alone.
enum Part {
    Acl(TableName),
    Properties,
    Stats,
    UserDelegationKey,
}

impl Part {
    fn of(resource: &ResourcePath, options: &QueryOptions) -> Result<Option<Self>, ServiceError> {
        let option = |name| options.get(name);
        match (resource, option("restype"), option("comp")) {
            (_, None, None) => Ok(None),
            (ResourcePath::Service, Some("service"), Some("properties")) => {
                Ok(Some(Self::Properties))
            }
            (ResourcePath::Service, Some("service"), Some("stats")) => Ok(Some(Self::Stats)),
            (ResourcePath::Service, Some("service"), Some("userdelegationkey")) => {
                Ok(Some(Self::UserDelegationKey))
            }
            (ResourcePath::EntitySet(table), None, Some("acl")) => {
                Ok(Some(Self::Acl(table.clone())))
            }
            _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
        }
    }

    fn decode(
        self,
        method: &Method,
        request: &RequestParts<'_>,
    ) -> Result<Operation, ServiceError> {
        let is_read = method == Method::GET || method == Method::HEAD;
        let is_write = method == Method::PUT;
        Ok(match self {
            Self::Acl(table) if is_read => Operation::GetTableAcl(table_acl::GetRequest { table }),
            Self::Acl(table) if is_write => {
                Operation::SetTableAcl(table_acl::SetRequest::decode(table, request)?)
            }
            Self::Properties if is_read => {
                Operation::GetServiceProperties(service_properties::GetRequest)
            }
            Self::Properties if is_write => {
                let decoded = service_properties::SetRequest::decode(request)?;
                Operation::SetServiceProperties(decoded)
            }
            Self::Stats if is_read => Operation::GetServiceStats(service_stats::Request),
            Self::UserDelegationKey if method == Method::POST => {
                let decoded = user_delegation_key::Request::decode(request)?;
                Operation::GetUserDelegationKey(decoded)
            }
            _ => return Err(ErrorCode::MethodNotAllowed.into()),
        })
    }
}

/// The method that the request means: its own, or the one a POST carries in `X-HTTP-Method`.
fn tunnelled_method(method: &Method, headers: RequestHeaders<'_>) -> Result<Method, ServiceError> {
    let Some(value) = headers.first(X_HTTP_METHOD) else {
        return Ok(method.clone());
    };
    // A list in one header is the same as several headers.
    if headers.all(X_HTTP_METHOD).nth(1).is_some() || value.contains(&b',') {
        return Err(ErrorCode::XMethodIncorrectCount.into());
    }
    if method != Method::POST {
        return Err(ErrorCode::XMethodNotUsingPost.into());
    }
    match value {
        b"DELETE" | b"MERGE" | b"PATCH" | b"PUT" => Ok(Method::from_bytes(value)
            .map_err(|_| ServiceError::from(ErrorCode::XMethodIncorrectValue))?),
        _ => Err(ErrorCode::XMethodIncorrectValue.into()),
    }
}

/// The error for a request whose path has a resource of the account after the name of a table.
// SERVICE: seen for a GET of the set of tables and for a DELETE of one; the rest is assumed.
fn refuse_misplaced(method: &Method, account: &str, table: &TableName, rest: &str) -> ServiceError {
    if rest.contains('(') && !rest.ends_with("()") {
        wrong_number_of_keys(&format!("{account}.{table}"))
    } else if method == Method::GET {
        ErrorCode::NotImplemented.into()
    } else {
        ErrorCode::MethodNotAllowed.into()
    }
}

/// Tables have no version, and so no condition on it.
fn refuse_conditions(headers: RequestHeaders<'_>) -> Result<(), ServiceError> {
    if headers.contains(header::IF_MATCH) || headers.contains(header::IF_NONE_MATCH) {
        return Err(ErrorCode::InvalidInput.into());
    }
    Ok(())
}

/// The condition of a write. `If-None-Match` has no meaning on any of them.
fn if_match(request: &RequestParts<'_>) -> Result<Option<IfMatch>, ServiceError> {
    let headers = request.headers;
    if headers.contains(header::IF_NONE_MATCH) {
        return Err(ErrorCode::InvalidInput.into());
    }
    let mut values = headers.all(header::IF_MATCH);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = text(value).unwrap_or_default();
    if text == "*" && values.next().is_none() {
        return Ok(Some(IfMatch::Any));
    }
    let etag = ETag::of(text);
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

/// The verbs that some resource has, and those that it could.
// SERVICE: documented are two codes for a verb that cannot be used; which is for what is assumed.
const VERBS: [&str; 8] = [
    "DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH", "POST", "PUT",
];

/// `Content-Type` of every request with a body of JSON.
const JSON: &str = "application/json";

/// `Content-Type` of every request and response with a body of XML.
const XML: &str = "application/xml";

/// `DataServiceVersion` of every request.
const DATA_SERVICE_VERSION: &str = "3.0";
