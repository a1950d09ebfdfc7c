//! Decodes the request of a batch in the server: each operation in it as if it stood alone.
//!
//! Distinguishes three kinds of bad input: a body that cannot be split is refused as a whole, an
//! operation that cannot be read is refused at its index, and what may not happen is not known
//! here.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, header};

use super::{Change, Query, Refusal};
use crate::operation::headers::RequestHeaders;
use crate::operation::message::RequestParts;
use crate::operation::{
    EntityBody, Operation, QueryOptions, RequestRules, insert_entity, tunnelled_method,
};
use crate::path::ResourcePath;
use crate::types::header::{CONTENT_ID, CONTENT_MD5};
use crate::types::limits::BATCH_CHANGES_MAX;
use crate::types::{ErrorCode, ServiceError, TableName};
use crate::wire::http_message::{self, HeaderLine, RequestText};
use crate::wire::multipart::{self, MultipartError, Part};

/// A batch whose framing can be read. Its operations need not be readable.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a batch is one or the other")]
pub enum Received {
    /// A set of changes.
    Changes {
        /// The changes before the first that cannot be read, or all.
        changes: Vec<Change>,
        /// The `Content-ID` of each change, and of the one that cannot be read, too; empty if none
        /// has one.
        content_ids: Vec<Option<Bytes>>,
        /// The error of the change after those, unless one of those is refused first.
        refusal: Option<Refusal>,
        /// How many sets of changes follow this one. They are always refused.
        surplus: usize,
    },
    /// A query, or what is wrong with it.
    Query(Result<Query, ServiceError>),
}

impl Received {
    pub(in crate::operation) fn decode(request: &RequestParts<'_>) -> Result<Self, ServiceError> {
        let content_type = request.headers.text(header::CONTENT_TYPE);
        let boundary = multipart::boundary(content_type.unwrap_or_default())?;
        let parts = multipart::parts(&request.body, &boundary, PARTS_MAX)?;
        let (first, more) = parts.split_first().ok_or_else(malformed)?;
        let mut decoder = Decoder::of(request);
        match change_set(first)? {
            Some(boundary) => {
                // SERVICE: documented: the first set is processed, and each other one is refused.
                for part in more {
                    change_set(part)?.ok_or_else(malformed)?;
                }
                Self::decode_changes(decoder, first, &boundary, more.len())
            }
            None if more.is_empty() => {
                let text = decoder.read(first)?;
                let query = Query::decode(&mut decoder, &text);
                Ok(Self::Query(query))
            }
            None => Err(malformed()),
        }
    }

    fn decode_changes<'r>(
        mut decoder: Decoder<'r>,
        part: &Part<'r>,
        boundary: &str,
        surplus: usize,
    ) -> Result<Self, ServiceError> {
        let parts = match multipart::parts(part.content, boundary, BATCH_CHANGES_MAX) {
            Ok(parts) => parts,
            Err(MultipartError::TooManyParts) => {
                return Ok(Self::Changes {
                    changes: Vec::new(),
                    content_ids: Vec::new(),
                    refusal: Some(too_many_changes()),
                    surplus,
                });
            }
            Err(error) => return Err(error.into()),
        };
        let mut changes = Vec::with_capacity(parts.len());
        let mut content_ids: Vec<Option<Bytes>> = Vec::new();
        let mut refusal = None;
        for (index, part) in parts.iter().enumerate() {
            if let Some(insert) = decoder.same_insert(part, changes.last()) {
                if refusal.is_none() {
                    changes.push(Change::Insert(insert));
                    // With all of its head, they have that in common, too.
                    if let Some(same) = content_ids.last().cloned() {
                        content_ids.push(same);
                    }
                }
                continue;
            }
            // A body that cannot be split is refused as a whole; a malformed part is refused at its
            // position.
            let text = decoder.read(part)?;
            // SERVICE: recorded for the method; that a tunnelled one is refused as well is assumed.
            let headers = RequestHeaders::Part(&decoder.headers);
            let method = tunnelled_method(&text.method, headers);
            if method == Ok(Method::PATCH) && !decoder.rules.accepts_patch {
                return Err(malformed());
            }
            if refusal.is_some() {
                continue;
            }
            let content_id = decoder.content_id();
            if content_id.is_some() || !content_ids.is_empty() {
                content_ids.resize(index, None);
                content_ids.push(content_id);
            }
            match Change::decode(&mut decoder, &text) {
                Ok(change) => {
                    decoder.keep(&text, &change);
                    changes.push(change);
                }
                Err(error) => refusal = Some(Refusal { index, error }),
            }
        }
        Ok(Self::Changes {
            changes,
            content_ids,
            refusal,
            surplus,
        })
    }
}

impl Change {
    fn decode<'r>(decoder: &mut Decoder<'r>, text: &RequestText<'r>) -> Result<Self, ServiceError> {
        match decoder.decode(text)? {
            Operation::DeleteEntity(request) => Ok(Self::Delete(request)),
            Operation::InsertEntity(request) => Ok(Self::Insert(request)),
            Operation::UpdateEntity(request) => Ok(Self::Update(request)),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}

impl Query {
    fn decode<'r>(decoder: &mut Decoder<'r>, text: &RequestText<'r>) -> Result<Self, ServiceError> {
        match decoder.decode(text)? {
            Operation::QueryEntities(request) => Ok(Self::Entities(request)),
            Operation::GetEntity(request) => Ok(Self::Entity(request)),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}

/// Decodes the operations in a batch, one after another.
struct Decoder<'r> {
    account: &'r Arc<str>,
    /// The whole batch, whose memory the bodies of the operations share.
    body: &'r Bytes,
    rules: RequestRules,
    /// The headers of the operation that was read last.
    headers: Vec<HeaderLine<'r>>,
    /// The previous target and its resource, if that was the set of entities of a table: inserts
    /// have the same target.
    last_set: Option<(&'r str, TableName, QueryOptions)>,
    /// The head of the change that was decoded last, if that was an insert which any other body
    /// could have followed.
    last_insert: Option<&'r [u8]>,
}

impl<'r> Decoder<'r> {
    const fn of(request: &'r RequestParts<'r>) -> Self {
        Self {
            account: request.account,
            body: &request.body,
            rules: request.rules,
            headers: Vec::new(),
            last_set: None,
            last_insert: None,
        }
    }

    /// Notes the change that was decoded last.
    fn keep(&mut self, text: &RequestText<'r>, change: &Change) {
        let has_checksum = self.headers.iter().any(|line| line.is(&CONTENT_MD5));
        let is_insert = matches!(change, Change::Insert(_));
        self.last_insert = text.head.filter(|_| is_insert && !has_checksum);
    }

    /// The insert in a part, if it differs from the change that was decoded last in its body only.
    fn same_insert(
        &self,
        part: &Part<'r>,
        last: Option<&Change>,
    ) -> Option<insert_entity::Request> {
        let (Some(Change::Insert(last)), Some(head)) = (last, self.last_insert) else {
            return None;
        };
        let body = http_message::body_behind(head, part.content)?;
        part.may_be_http().then(|| insert_entity::Request {
            table: last.table.clone(),
            entity: EntityBody::from_bytes(self.body.slice_ref(body)),
            ..*last
        })
    }

    /// Reads the request in a part.
    fn read(&mut self, part: &Part<'r>) -> Result<RequestText<'r>, ServiceError> {
        if !part.may_be_http() {
            return Err(malformed());
        }
        http_message::read_request(part.content, &mut self.headers).map_err(|_| malformed())
    }

    /// The `Content-ID` of the operation that was read last.
    // SERVICE: a name in the head of the part, instead of that of the operation, is not echoed.
    // That of a query is not, either: assumed.
    fn content_id(&self) -> Option<Bytes> {
        let mut headers = self.headers.iter();
        let line = headers.find(|line| line.is(&CONTENT_ID))?;
        Some(self.body.slice_ref(line.value))
    }

    /// Decodes the operation that was read last as if it were a request of its own. A batch
    /// contains only operations on entities.
    fn decode(&mut self, text: &RequestText<'r>) -> Result<Operation, ServiceError> {
        let (resource, options) = self.address(text.target)?;
        let request = RequestParts {
            account: self.account,
            options: &options,
            headers: RequestHeaders::Part(&self.headers),
            body: self.body.slice_ref(text.body),
            rules: self.rules,
        };
        Operation::of(&text.method, resource, request)
    }

    /// The resource that a target addresses, and its options.
    fn address(&mut self, target: &'r str) -> Result<(ResourcePath, QueryOptions), ServiceError> {
        if let Some((last, table, options)) = &self.last_set
            && *last == target
        {
            return Ok((ResourcePath::EntitySet(table.clone()), options.clone()));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let resource = ResourcePath::parse(below_account(path, self.account))?;
        let options = QueryOptions::parse(query);
        match &resource {
            ResourcePath::EntitySet(table) => {
                let options = options?;
                self.last_set = Some((target, table.clone(), options.clone()));
                Ok((resource, options))
            }
            ResourcePath::Entity(..) => Ok((resource, options?)),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}

/// The boundary of the changes in a part, or `None` for a part that is itself an operation.
fn change_set(part: &Part<'_>) -> Result<Option<String>, ServiceError> {
    match multipart::boundary(part.content_type().unwrap_or_default()) {
        Ok(boundary) => Ok(Some(boundary)),
        Err(MultipartError::OtherType) => Ok(None),
        Err(_) => Err(malformed()),
    }
}

/// The path below the account, of a URL or of a path with or without the account's segment.
// SERVICE: scheme and host of a URL in a batch are not looked at: clients behind a proxy name
// another one. The account may be its secondary, which was seen for queries, and is assumed for
// changes.
fn below_account<'a>(target: &'a str, account: &str) -> &'a str {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            rest.split_once('/').map_or("", |(_, path)| path)
        }
        _ => target,
    };
    match path.trim_start_matches('/').split_once('/') {
        Some((segment, rest))
            if segment.strip_suffix("-secondary").unwrap_or(segment) == account =>
        {
            rest
        }
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

/// The most parts that are looked at, for the sake of a bound. All but the first are refused
/// anyway.
const PARTS_MAX: usize = BATCH_CHANGES_MAX;

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::Prefer;

    pub(in super::super) fn received(
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Received, ServiceError> {
        let mut headers = http::HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        Received::decode(&RequestParts {
            account: &"acct".into(),
            options: &QueryOptions::default(),
            headers: RequestHeaders::Alone(&headers),
            body: body.into(),
            rules: RequestRules::default(),
        })
    }

    fn decode(body: &str) -> Result<Received, ServiceError> {
        received("multipart/mixed; boundary=b", body.to_owned())
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
                ..
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
                content_ids: Vec::new(),
                refusal: None,
                surplus: 0
            }
        );
        for (content_type, code) in [
            ("multipart/mixed", ErrorCode::InvalidInput),
            ("application/json", ErrorCode::MediaTypeNotSupported),
            ("", ErrorCode::MediaTypeNotSupported),
        ] {
            let error = received(content_type, whole.clone()).unwrap_err();
            assert_eq!(error.code(), &code, "{content_type}");
        }
    }

    #[test]
    fn the_names_of_changes_are_those_in_the_heads_of_their_requests() {
        let insert = |header: &str| {
            format!("POST /people HTTP/1.1\nContent-Type: application/json\n{header}\n{{}}")
        };
        let (one, other) = (insert("Content-ID: 1\n"), insert("content-id:  b c \n"));
        let none = insert("");
        for (requests, expected) in [
            (vec![&none, &none], &[][..]),
            (
                vec![&one, &one, &none, &none],
                &[Some("1"), Some("1"), None, None],
            ),
            (vec![&none, &none, &other], &[None, None, Some("b c")]),
        ] {
            let requests: Vec<_> = requests.into_iter().map(String::as_str).collect();
            let Ok(Received::Changes { content_ids, .. }) =
                decode(&(change_set(&requests) + "--b--"))
            else {
                panic!("changes");
            };
            let expected: Vec<_> = expected.iter().map(|id| id.map(Bytes::from)).collect();
            assert_eq!(content_ids, expected);
        }
    }

    #[test]
    fn an_insert_that_differs_in_its_body_only_is_decoded_on_its_own() {
        let insert = |header: &str, body: &str| {
            format!("POST /people HTTP/1.1\nContent-Type: application/json\n{header}\n{body}")
        };
        let plain = |body: &str| insert("", body);
        let bodies = |requests: &[&str]| match decode(&(change_set(requests) + "--b--")) {
            Ok(Received::Changes {
                changes, refusal, ..
            }) => {
                let body = |change: &Change| match change {
                    Change::Insert(request) => {
                        let body = request.entity.as_bytes().to_vec();
                        (String::from_utf8(body).unwrap(), request.prefer)
                    }
                    other => panic!("{other:?}"),
                };
                let bodies: Vec<_> = changes.iter().map(body).collect();
                (bodies, refusal.map(|refusal| refusal.index))
            }
            other => panic!("{other:?}"),
        };
        let unspecified = |body: &str| (body.to_owned(), Prefer::Unspecified);
        assert_eq!(
            bodies(&[&plain("{}"), &plain("{ }\n\n"), &plain(""), &plain("{}")]),
            (["{}", "{ }", "", "{}"].map(unspecified).to_vec(), None)
        );
        let preferring = insert("Prefer: return-no-content\n", "{}");
        assert_eq!(
            bodies(&[&plain("{}"), &preferring, &preferring]),
            (
                vec![
                    unspecified("{}"),
                    ("{}".to_owned(), Prefer::ReturnNoContent),
                    ("{}".to_owned(), Prefer::ReturnNoContent)
                ],
                None
            )
        );
        // The checksum of `{}`, which is not that of another body.
        let checked = |body: &str| insert("Content-MD5: mZFLkyvTelC5g8XnyQrpOw==\n", body);
        let (checked, other) = (checked("{}"), checked("{ }"));
        assert_eq!(bodies(&[&checked, &checked, &other]).1, Some(2));
        // After a refusal, parts are still read.
        let refused = bodies(&[&plain("{}"), "PUT /people HTTP/1.1", &plain("{}")]);
        assert_eq!(refused, (vec![unspecified("{}")], Some(1)));
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(
            bytes: Vec<u8>,
            text in "(--[bc](--)?\r?\n|Content-Type: (application/http|multipart/mixed; boundary=[bc])\r?\n|\n|(GET|PUT) /people[(]PartitionKey='p',RowKey='r'[)] HTTP/1.1\n|[a: {}'-]){0,30}--b--",
        ) {
            for body in [bytes, text.into_bytes()] {
                let _ = received("multipart/mixed; boundary=b", body);
            }
        }
    }
}
