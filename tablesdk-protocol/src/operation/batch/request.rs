//! The request of a batch: the operations in it, each decoded as if it stood alone.
//!
//! Tells three kinds of bad input apart: what cannot be taken apart is refused as a whole, what cannot be read is refused at
//! its place, and what may not happen is none of its business.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, Method, Request as HttpRequest, header};

use super::Refusal;
use crate::operation::message::{self, ReceivedRequest};
use crate::operation::{Operation, QueryOptions};
use crate::operation::{delete_entity, get_entity, insert_entity, query_entities, update_entity};
use crate::path::{Endpoint, ResourcePath};
use crate::types::header::{CONTENT_TRANSFER_ENCODING, DATA_SERVICE_VERSION, PREFER};
use crate::types::limits::BATCH_CHANGES_MAX;
use crate::types::{ErrorCode, Guid, ServiceError, TableName};
use crate::wire::http_message::{self, RequestText};
use crate::wire::multipart::{self, MultipartError, Part};

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
        self.encode_with(endpoint, id, |_| {})
    }

    /// The HTTP request, with `adapt` applied to the request of each change in it.
    pub fn encode_with(
        &self,
        endpoint: &Endpoint,
        id: Guid,
        adapt: impl Fn(&mut HttpRequest<Bytes>),
    ) -> HttpRequest<Bytes> {
        let (batch, change_set) = (format!("batch_{id}"), format!("changeset_{id}"));
        let mut body = Vec::new();
        match self {
            Self::Changes(changes) => {
                multipart::start_multipart(&mut body, &batch, &change_set);
                for change in changes {
                    multipart::start_http(&mut body, &change_set);
                    let mut change = change.encode(endpoint);
                    adapt(&mut change);
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
    /// The table that it changes.
    pub const fn table(&self) -> &TableName {
        match self {
            Self::Delete(request) => &request.table,
            Self::Insert(request) => &request.table,
            Self::Update(request) => &request.table,
        }
    }

    /// The HTTP request of the change alone.
    pub fn encode(&self, endpoint: &Endpoint) -> HttpRequest<Bytes> {
        match self {
            Self::Delete(request) => request.encode(endpoint),
            Self::Insert(request) => request.encode(endpoint),
            Self::Update(request) => request.encode(endpoint),
        }
    }

    fn decode(text: RequestText, account: &Arc<str>) -> Result<Self, ServiceError> {
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

    fn decode(text: RequestText, account: &Arc<str>) -> Result<Self, ServiceError> {
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
        /// How many sets of changes follow this one. They are always refused.
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
        account: &Arc<str>,
        surplus: usize,
    ) -> Result<Self, ServiceError> {
        let parts = match multipart::parts(&part.content, boundary, BATCH_CHANGES_MAX) {
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
        // A body that cannot be split is refused as a whole; a malformed part is refused at its position.
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

/// Decodes an operation on entities as if it were a request of its own. A batch cannot contain other operations.
fn decode_operation(text: RequestText, account: &Arc<str>) -> Result<Operation, ServiceError> {
    let (path, query) = text.target.split_once('?').unwrap_or((&text.target, ""));
    let resource = ResourcePath::parse(below_account(path, account))?;
    if !matches!(
        resource,
        ResourcePath::EntitySet(_) | ResourcePath::Entity(..)
    ) {
        return Err(ErrorCode::InvalidInput.into());
    }
    Operation::decode(ReceivedRequest {
        account: Arc::clone(account),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::update_entity::Mode;
    use crate::operation::{EntityBody, Prefer};
    use crate::types::{ETag, EntityKey, IfMatch};
    use crate::wire::json::MetadataLevel;

    fn received(content_type: &str, body: impl Into<Bytes>) -> ReceivedRequest {
        let mut headers = http::HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        ReceivedRequest {
            account: "acct".into(),
            method: Method::POST,
            resource: ResourcePath::Batch,
            options: QueryOptions::default(),
            headers,
            body: body.into(),
        }
    }

    fn decode(body: &str) -> Result<Received, ServiceError> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        Received::decode(&received("multipart/mixed; boundary=b", body))
    }

    /// A set of these changes, each a request without a body unless it has one.
    fn change_set(requests: &[&str]) -> String {
        let mut text = "--b\nContent-Type: multipart/mixed; boundary=c\n\n".to_owned();
        for request in requests {
            text = text + "--c\nContent-Type: application/http\n\n" + request + "\n\n";
        }
        text + "--c--\n"
    }

    fn changes(body: &str) -> (usize, Option<Refusal>, usize) {
        match decode(body) {
            Ok(Received::Changes {
                changes,
                refusal,
                surplus,
            }) => (changes.len(), refusal, surplus),
            other => panic!("{body} gave {other:?}"),
        }
    }

    const DELETE: &str = "DELETE /people(PartitionKey='p',RowKey='r') HTTP/1.1\nIf-Match: *";

    #[test]
    fn a_target_may_have_every_form() {
        for target in [
            "/people",
            "people",
            "//people()",
            "/acct/people",
            "//acct//people",
            "http://127.0.0.1:10002/acct/people",
            "https://acct.table.core.windows.net/people()",
            "HTTP://elsewhere:1/acct/people?$format=application%2Fjson%3Bodata%3Dnometadata&sig=x",
        ] {
            let insert = format!("POST {target} HTTP/1.1\nContent-Type: application/json\n\n{{}}");
            let body = change_set(&[&insert]) + "--b--";
            assert_eq!(changes(&body), (1, None, 0), "{target}");
        }
        for target in [
            "/other/people",
            "http://host/other/people",
            "/acct/acct/people",
            "http://host",
            "/acct/$batch",
            "/Tables",
            "/",
        ] {
            let insert = format!("POST {target} HTTP/1.1\nContent-Type: application/json\n\n{{}}");
            let body = change_set(&[&insert]) + "--b--";
            let (changes, refusal, _) = changes(&body);
            assert_eq!((changes, refusal.unwrap().index), (0, 0), "{target}");
        }
    }

    #[test]
    fn a_change_that_cannot_be_read_is_named_and_ends_the_changes() {
        for (request, code) in [
            ("GET /people() HTTP/1.1", ErrorCode::InvalidInput),
            (
                "GET /people(PartitionKey='p',RowKey='r') HTTP/1.1",
                ErrorCode::InvalidInput,
            ),
            ("POST /Tables HTTP/1.1", ErrorCode::InvalidInput),
            ("POST /$batch HTTP/1.1", ErrorCode::InvalidInput),
            ("PUT /people HTTP/1.1", ErrorCode::MethodNotAllowed),
            ("POST /people HTTP/1.1", ErrorCode::MediaTypeNotSupported),
            ("POST /p-q HTTP/1.1", ErrorCode::InvalidResourceName),
            (
                "DELETE /people(PartitionKey='p',RowKey='r') HTTP/1.1",
                ErrorCode::InvalidInput,
            ),
            (
                "PATCH /people(PartitionKey='p',RowKey='r') HTTP/1.1\nX-HTTP-Method: MERGE",
                ErrorCode::XMethodNotUsingPost,
            ),
        ] {
            let body = change_set(&[DELETE, request, "GET /never HTTP/1.1"]) + "--b--";
            let (count, refusal, _) = changes(&body);
            let refusal = refusal.unwrap();
            assert_eq!((count, refusal.index), (1, 1), "{request}");
            assert_eq!(refusal.error.code(), &code, "{request}");
        }
    }

    #[test]
    fn the_hundredth_change_is_the_last() {
        let hundred = [DELETE; 100];
        let body = change_set(&hundred) + "--b--";
        assert_eq!(changes(&body), (100, None, 0));
        for more in [1, 50] {
            let body = change_set(&[&hundred[..], &vec![DELETE; more]].concat()) + "--b--";
            let (count, refusal, _) = changes(&body);
            assert_eq!((count, refusal), (0, Some(too_many_changes())));
        }
        let refusal = too_many_changes().to_error();
        assert_eq!(
            refusal.message(),
            "99:The batch request operation exceeds the maximum 100 changes per change set."
        );
    }

    #[test]
    fn other_sets_of_changes_are_counted() {
        let body = change_set(&[DELETE]) + &change_set(&[DELETE]) + &change_set(&["x"]) + "--b--";
        assert_eq!(changes(&body), (1, None, 2));
    }

    #[test]
    fn a_query_is_the_only_operation_of_its_batch() {
        let query = |target: &str| {
            format!("--b\nContent-Type: application/http\n\nGET {target} HTTP/1.1\n\n")
        };
        let point = "/people(PartitionKey='p',RowKey='r')?$select=a";
        for target in [point, "http://h/acct/people()?$filter=a%20eq%201&$top=5"] {
            let decoded = decode(&(query(target) + "--b--")).unwrap();
            assert!(matches!(decoded, Received::Query(Ok(_))), "{decoded:?}");
        }
        for target in ["/people?$filter=a%20eq", "/Tables", "/acct/$metadata"] {
            let decoded = decode(&(query(target) + "--b--")).unwrap();
            assert!(matches!(decoded, Received::Query(Err(_))), "{decoded:?}");
        }
        for body in [
            query(point) + &query(point) + "--b--",
            query(point) + &change_set(&[DELETE]) + "--b--",
            change_set(&[DELETE]) + &query(point) + "--b--",
        ] {
            assert_eq!(decode(&body), Err(malformed()), "{body}");
        }
        let lone_change = format!("--b\nContent-Type: application/http\n\n{DELETE}\n\n--b--");
        let decoded = decode(&lone_change);
        assert!(
            matches!(decoded, Ok(Received::Query(Err(_)))),
            "{decoded:?}"
        );
    }

    #[test]
    fn malformed_batches_are_refused_completely() {
        let whole = change_set(&[DELETE]) + "--b--";
        assert!(decode(&whole).is_ok());
        for body in [
            String::new(),
            "{}".to_owned(),
            "--b--".to_owned(),
            change_set(&[DELETE]),
            change_set(&["no request"]) + "--b--",
            change_set(&[DELETE, ""]) + "--b--",
            whole.replace("--c--\n", ""),
            whole.replace("--c--\n", "--c"),
            whole.replace("; boundary=c", ""),
            whole.replace("application/http", "text/plain"),
            whole.replace(
                "application/http",
                "application/http\nContent-Transfer-Encoding: base64",
            ),
            whole.replace("multipart/mixed; boundary=c", "text/plain"),
        ] {
            assert_eq!(decode(&body), Err(malformed()), "{body}");
        }
        let empty = decode(&(change_set(&[]) + "--b--")).unwrap();
        assert_eq!(
            empty,
            Received::Changes {
                changes: Vec::new(),
                refusal: None,
                surplus: 0
            }
        );
        for (content_type, code) in [
            ("multipart/mixed", ErrorCode::InvalidInput),
            ("application/json", ErrorCode::MediaTypeNotSupported),
            ("", ErrorCode::MediaTypeNotSupported),
        ] {
            let error = Received::decode(&received(content_type, whole.clone())).unwrap_err();
            assert_eq!(error.code(), &code, "{content_type}");
        }
    }

    fn change() -> impl Strategy<Value = Change> {
        let table = "[a-z]{3,6}".prop_map(|name| TableName::new(name).unwrap());
        let key = ("[^/\\\\#?\\p{Cc}]{0,9}", "[a-z '(),=%&+-]{0,9}");
        let key = key.prop_map(|(partition, row)| EntityKey::new(partition, row).unwrap());
        let body = "\\{([ -~ü]|\r?\n){0,40}\\}";
        let body = body.prop_map(|text| EntityBody::from_bytes(text.into()));
        let if_match = prop_oneof![
            Just(IfMatch::Any),
            Just(IfMatch::ETag(ETag::from_opaque("W/\"datetime'x'\"")))
        ];
        let prefer = prop_oneof![
            Just(Prefer::Unspecified),
            Just(Prefer::ReturnContent),
            Just(Prefer::ReturnNoContent)
        ];
        let mode = prop_oneof![Just(Mode::Merge), Just(Mode::Replace)];
        let parts = (table, key, body, if_match, prefer, mode, 0..4);
        parts.prop_map(
            |(table, key, entity, if_match, prefer, mode, kind)| match kind {
                0 => Change::Delete(delete_entity::Request {
                    table,
                    key,
                    if_match,
                }),
                1 => Change::Insert(insert_entity::Request {
                    table,
                    entity,
                    prefer,
                    level: MetadataLevel::Minimal,
                }),
                _ => Change::Update(update_entity::Request {
                    table,
                    key,
                    mode,
                    if_match: (kind == 2).then_some(if_match),
                    entity,
                }),
            },
        )
    }

    fn there_and_back(request: &Request, endpoint: &str) -> Result<Received, ServiceError> {
        let request = request.encode(&endpoint.parse().unwrap(), Guid::from_bytes([7; 16]));
        assert!(request.uri().path().ends_with("/$batch"));
        let content_type = request.headers()[header::CONTENT_TYPE].to_str().unwrap();
        Received::decode(&received(content_type, request.body().clone()))
    }

    const ENDPOINTS: [&str; 2] = [
        "http://127.0.0.1:10002/acct",
        "https://acct.table.core.windows.net",
    ];

    #[test]
    fn a_query_is_read_back_as_it_was_written() {
        let table = TableName::new("people").unwrap();
        let (select, level) = (Some(vec!["a".to_owned()]), MetadataLevel::Minimal);
        let entity = Query::Entity(get_entity::Request {
            table: table.clone(),
            key: EntityKey::new("O'Brien", "é ").unwrap(),
            select: select.clone(),
            level,
        });
        let entities = Query::Entities(query_entities::Request {
            table,
            filter: Some("a eq 'b&c'".parse().unwrap()),
            select,
            top: Some(3),
            continuation: None,
            level,
        });
        for query in [entity, entities] {
            for endpoint in ENDPOINTS {
                let decoded = there_and_back(&Request::Query(query.clone()), endpoint);
                assert_eq!(decoded, Ok(Received::Query(Ok(query.clone()))));
            }
        }
    }

    proptest! {
        #[test]
        fn changes_are_read_back_as_they_were_written(
            changes in prop::collection::vec(change(), 1..5),
            endpoint in prop::sample::select(&ENDPOINTS),
        ) {
            let decoded = there_and_back(&Request::Changes(changes.clone()), endpoint);
            prop_assert_eq!(decoded, Ok(Received::Changes { changes, refusal: None, surplus: 0 }));
        }

        #[test]
        fn never_panics_on_any_bytes(
            bytes: Vec<u8>,
            text in "(--[bc](--)?\r?\n|Content-Type: (application/http|multipart/mixed; boundary=[bc])\r?\n|\n|(GET|PUT) /people[(]PartitionKey='p',RowKey='r'[)] HTTP/1.1\n|[a: {}'-]){0,30}--b--",
        ) {
            for body in [bytes, text.into_bytes()] {
                let _ = Received::decode(&received("multipart/mixed; boundary=b", body));
            }
        }
    }
}
