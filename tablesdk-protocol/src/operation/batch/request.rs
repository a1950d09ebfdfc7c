//! The request of a batch: the operations in it, each decoded as if it stood alone.
//!
//! Tells three kinds of bad input apart: what cannot be taken apart is refused as a whole, what cannot be read is refused at
//! its place, and what may not happen is none of its business.

use bytes::Bytes;
use http::{HeaderName, Method, Request as HttpRequest, header};

use super::Refusal;
use crate::limits::BATCH_CHANGES_MAX;
use crate::operation::message::{self, ReceivedRequest};
use crate::operation::{Operation, QueryOptions};
use crate::operation::{delete_entity, get_entity, insert_entity, query_entities, update_entity};
use crate::wire::header::{CONTENT_TRANSFER_ENCODING, DATA_SERVICE_VERSION, PREFER};
use crate::wire::http_message::{self, RequestText};
use crate::wire::multipart::{self, MultipartError, Part};
use crate::{Endpoint, ErrorCode, Guid, ResourcePath, ServiceError, TableName};

/// `POST /$batch`.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a batch is one or the other")]
pub enum Request {
    /// Changes that happen together or not at all: 1 to 100, in one partition, each of another entity.
    Changes(Vec<Change>),
    /// A query.
    Query(Query),
}

/// A change of one entity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the service has these changes")]
pub enum Change {
    /// Deletes it.
    Delete(delete_entity::Request),
    /// Inserts it.
    Insert(insert_entity::Request),
    /// Replaces, merges or upserts it.
    Update(update_entity::Request),
}

/// A query of one table.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the service has these queries")]
pub enum Query {
    /// A page of entities.
    Entities(query_entities::Request),
    /// One entity.
    Entity(get_entity::Request),
}

impl Request {
    /// The HTTP request. The boundaries are made of `id`, which must be no part of any entity: a random one is not.
    pub fn encode(&self, endpoint: &Endpoint, id: Guid) -> HttpRequest<Bytes> {
        let (batch, change_set) = (format!("batch_{id}"), format!("changeset_{id}"));
        let mut body = Vec::new();
        match self {
            Self::Changes(changes) => {
                multipart::start_multipart(&mut body, &batch, &change_set);
                for change in changes {
                    multipart::start_http(&mut body, &change_set);
                    let change = change.encode(endpoint);
                    http_message::write_request(&mut body, &change, &REQUEST_HEADERS);
                }
                multipart::end(&mut body, &change_set);
                body.extend_from_slice(b"\r\n");
            }
            Self::Query(query) => {
                multipart::start_http(&mut body, &batch);
                let query = query.encode(endpoint);
                http_message::write_request(&mut body, &query, &REQUEST_HEADERS);
            }
        }
        multipart::end(&mut body, &batch);
        let options = QueryOptions::default();
        let builder = message::request(Method::POST, endpoint, &ResourcePath::Batch, &options);
        message::with_body(
            builder.header(header::CONTENT_TYPE, multipart::content_type(&batch)),
            body.into(),
        )
    }
}

impl Change {
    fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        match self {
            Self::Delete(request) => request.encode(endpoint),
            Self::Insert(request) => request.encode(endpoint),
            Self::Update(request) => request.encode(endpoint),
        }
    }

    fn decode(text: RequestText, account: &str) -> Result<Self, ServiceError> {
        match decode_operation(text, account)? {
            Operation::DeleteEntity(request) => Ok(Self::Delete(request)),
            Operation::InsertEntity(request) => Ok(Self::Insert(request)),
            Operation::UpdateEntity(request) => Ok(Self::Update(request)),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}

impl Query {
    /// The table that is read.
    pub const fn table(&self) -> &TableName {
        match self {
            Self::Entities(request) => &request.table,
            Self::Entity(request) => &request.table,
        }
    }

    fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        match self {
            Self::Entities(request) => request.encode(endpoint),
            Self::Entity(request) => request.encode(endpoint),
        }
    }

    fn decode(text: RequestText, account: &str) -> Result<Self, ServiceError> {
        match decode_operation(text, account)? {
            Operation::QueryEntities(request) => Ok(Self::Entities(request)),
            Operation::GetEntity(request) => Ok(Self::Entity(request)),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}

/// What the server makes of a request whose framing can be read. Its operations need not be readable.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a batch is one or the other")]
pub enum Received {
    /// A set of changes.
    Changes {
        /// The changes before the first that cannot be read, or all.
        changes: Vec<Change>,
        /// What is wrong with the change after those, unless one of those is refused first.
        refusal: Option<Refusal>,
        /// How many sets of changes follow this one. They are refused, whatever becomes of it.
        surplus: usize,
    },
    /// A query, or what is wrong with it.
    Query(Result<Query, ServiceError>),
}

impl Received {
    pub(in crate::operation) fn decode(request: &ReceivedRequest) -> Result<Self, ServiceError> {
        let content_type = request.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let boundary = multipart::boundary(content_type.unwrap_or_default())?;
        let parts = multipart::parts(&request.body, &boundary, PARTS_MAX)?;
        let (first, more) = parts.split_first().ok_or_else(malformed)?;
        match change_set(first)? {
            Some(boundary) => {
                // SERVICE: documented: the first set is processed, and each other one is refused.
                for part in more {
                    change_set(part)?.ok_or_else(malformed)?;
                }
                Self::decode_changes(first, &boundary, &request.account, more.len())
            }
            None if more.is_empty() => {
                let query = Query::decode(embedded(first)?, &request.account);
                Ok(Self::Query(query))
            }
            None => Err(malformed()),
        }
    }

    fn decode_changes(
        part: &Part,
        boundary: &str,
        account: &str,
        surplus: usize,
    ) -> Result<Self, ServiceError> {
        let parts = match multipart::parts(&part.content, boundary, BATCH_CHANGES_MAX) {
            Ok(parts) if parts.is_empty() => return Err(malformed()),
            Ok(parts) => parts,
            Err(MultipartError::TooManyParts) => {
                return Ok(Self::Changes {
                    changes: Vec::new(),
                    refusal: Some(too_many_changes()),
                    surplus,
                });
            }
            Err(error) => return Err(error.into()),
        };
        // What cannot be taken apart is refused as a whole; what cannot be read, at its place.
        let texts: Vec<_> = parts.iter().map(embedded).collect::<Result<_, _>>()?;
        let mut changes = Vec::new();
        let mut refusal = None;
        for (index, text) in texts.into_iter().enumerate() {
            match Change::decode(text, account) {
                Ok(change) => changes.push(change),
                Err(error) => {
                    refusal = Some(Refusal { index, error });
                    break;
                }
            }
        }
        Ok(Self::Changes {
            changes,
            refusal,
            surplus,
        })
    }
}

/// The boundary of the changes in a part, or `None` for a part that is itself an operation.
fn change_set(part: &Part) -> Result<Option<String>, ServiceError> {
    match multipart::boundary(part.content_type().unwrap_or_default()) {
        Ok(boundary) => Ok(Some(boundary)),
        Err(MultipartError::OtherType) => Ok(None),
        Err(_) => Err(malformed()),
    }
}

/// The request in a part.
fn embedded(part: &Part) -> Result<RequestText, ServiceError> {
    let is = |name: &HeaderName, expected: &str| match part.headers.get(name) {
        Some(value) => {
            let value = value.to_str().unwrap_or_default();
            let value = value.split(';').next().unwrap_or_default();
            value.trim().eq_ignore_ascii_case(expected)
        }
        None => true,
    };
    if !is(&header::CONTENT_TYPE, multipart::APPLICATION_HTTP)
        || !is(&CONTENT_TRANSFER_ENCODING, "binary")
    {
        return Err(malformed());
    }
    http_message::read_request(&part.content).map_err(|_| malformed())
}

/// Decodes an operation on entities as if it stood alone. No other has a place in a batch.
fn decode_operation(text: RequestText, account: &str) -> Result<Operation, ServiceError> {
    let (path, query) = text.target.split_once('?').unwrap_or((&text.target, ""));
    let resource = ResourcePath::parse(below_account(path, account))?;
    if !matches!(
        resource,
        ResourcePath::EntitySet(_) | ResourcePath::Entity(..)
    ) {
        return Err(ErrorCode::InvalidInput.into());
    }
    Operation::decode(ReceivedRequest {
        account: account.to_owned(),
        method: text.method,
        resource,
        options: QueryOptions::parse(query)?,
        headers: text.headers,
        body: text.body,
    })
}

/// The path below the account, of a URL or of a path with or without the account's segment.
// SERVICE: scheme and host of a URL in a batch are not looked at: clients behind a proxy name another one.
fn below_account<'a>(target: &'a str, account: &str) -> &'a str {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            rest.split_once('/').map_or("", |(_, path)| path)
        }
        _ => target,
    };
    match path.trim_start_matches('/').split_once('/') {
        Some((segment, rest)) if segment == account => rest,
        _ => path,
    }
}

fn too_many_changes() -> Refusal {
    // SERVICE: the index is always this one, however many changes there are.
    Refusal {
        index: BATCH_CHANGES_MAX - 1,
        error: ServiceError::new(
            ErrorCode::InvalidInput,
            "The batch request operation exceeds the maximum 100 changes per change set.",
        ),
    }
}

fn malformed() -> ServiceError {
    ErrorCode::InvalidInput.into()
}

impl From<MultipartError> for ServiceError {
    fn from(error: MultipartError) -> Self {
        match error {
            MultipartError::OtherType => ErrorCode::MediaTypeNotSupported.into(),
            MultipartError::Malformed | MultipartError::TooManyParts => malformed(),
        }
    }
}

/// In the order in which clients of the service write them.
static REQUEST_HEADERS: [HeaderName; 5] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    DATA_SERVICE_VERSION,
    PREFER,
    header::IF_MATCH,
];

/// The most parts that are looked at, for the sake of a bound. All but the first are refused anyway.
const PARTS_MAX: usize = BATCH_CHANGES_MAX;
