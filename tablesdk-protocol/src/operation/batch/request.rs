//! The request of a batch: the operations in it, each as the request that is sent alone.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request as HttpRequest, header};

use crate::operation::change::{ChangeText, EntityChange};
use crate::operation::message;
use crate::operation::update_entity::MergeMethod;
use crate::operation::{MalformedResponse, QueryOptions};
use crate::operation::{delete_entity, get_entity, insert_entity, query_entities, update_entity};
use crate::path::{Endpoint, ResourcePath};
use crate::types::header::DATA_SERVICE_VERSION;
use crate::types::{ETag, Guid, TableName};
use crate::wire::{http_message, multipart};

/// `POST /$batch`.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a batch is one or the other")]
pub enum Request {
    /// Changes that happen together or not at all: 1 to 100, in one partition, each of another
    /// entity.
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
    /// The HTTP request. The boundaries are made of `id`, which must be no part of any entity: a
    /// random one is not.
    pub fn encode(&self, endpoint: &Endpoint, id: Guid) -> HttpRequest<Bytes> {
        match self {
            Self::Changes(changes) => encode_changes(changes, endpoint, id, MergeMethod::Patch),
            Self::Query(query) => {
                let batch = batch_boundary(id);
                let mut body = Vec::new();
                multipart::start_http(&mut body, &batch);
                let query = query.encode(endpoint);
                http_message::write_request(&mut body, &query, &QUERY_HEADERS);
                encode_body(endpoint, &batch, body)
            }
        }
    }
}

/// The HTTP request of changes, as [`Request::encode`] makes it.
///
/// # Panics
///
/// When a condition holds a character that no header can.
pub fn encode_changes<'c>(
    changes: impl IntoIterator<Item = &'c Change, IntoIter: Clone>,
    endpoint: &Endpoint,
    id: Guid,
    merge: MergeMethod,
) -> HttpRequest<Bytes> {
    let (batch, change_set) = (batch_boundary(id), format!("changeset_{id}"));
    let mut part = Vec::new();
    multipart::start_http(&mut part, &change_set);
    let changes = changes.into_iter().map(Change::as_change);
    let sizes = changes.clone().map(|change| {
        let url = endpoint.as_str().len() + change.table.as_str().len();
        part.len() + url + change.text_bytes()
    });
    let mut body = Vec::with_capacity(sizes.sum::<usize>() + FRAME_BYTES);
    let mut text = ChangeText::new(endpoint, merge);
    multipart::start_multipart(&mut body, &batch, &change_set);
    for change in changes {
        body.extend_from_slice(&part);
        change.write(&mut body, &mut text);
    }
    multipart::end(&mut body, &change_set);
    body.extend_from_slice(b"\r\n");
    encode_body(endpoint, &batch, body)
}

fn batch_boundary(id: Guid) -> String {
    format!("batch_{id}")
}

fn encode_body(endpoint: &Endpoint, batch: &str, mut body: Vec<u8>) -> HttpRequest<Bytes> {
    multipart::end(&mut body, batch);
    let options = QueryOptions::default();
    let request = message::request(Method::POST, endpoint, &ResourcePath::Batch, &options);
    let content_type = HeaderValue::try_from(multipart::content_type(batch));
    let content_type = content_type.expect("a boundary is made of visible ASCII");
    message::with_body(request, content_type, body.into())
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
        self.as_change().to_request(endpoint)
    }

    /// The new ETag of the entity, of the one that the response to the change has; `None` for a
    /// delete.
    ///
    /// # Errors
    ///
    /// When the response must have one.
    pub fn new_etag(&self, of_response: Option<ETag>) -> Result<Option<ETag>, MalformedResponse> {
        match self {
            Self::Delete(_) => Ok(None),
            Self::Insert(_) | Self::Update(_) => match of_response {
                Some(etag) => Ok(Some(etag)),
                None => Err(MalformedResponse::without_etag()),
            },
        }
    }

    const fn as_change(&self) -> EntityChange<'_> {
        match self {
            Self::Delete(request) => request.as_change(),
            Self::Insert(request) => request.as_change(),
            Self::Update(request) => request.as_change(),
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
}

/// In the order in which clients of the service write them.
static QUERY_HEADERS: [HeaderName; 2] = [header::ACCEPT, DATA_SERVICE_VERSION];

/// As many bytes as the lines around the changes take.
const FRAME_BYTES: usize = 300;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::batch::Received;
    use crate::operation::batch::received::tests::received;
    use crate::operation::update_entity::{Mode, merge_by_post};
    use crate::operation::{EntityBody, Prefer};
    use crate::types::header::{PREFER, X_HTTP_METHOD};
    use crate::types::{EntityKey, IfMatch, ServiceError};
    use crate::wire::json::MetadataLevel;

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
        received(content_type, request.body().clone())
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
            filter_refusal: None,
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
            prop_assert_eq!(decoded, Ok(Received::Changes { changes, content_ids: Vec::new(), refusal: None, surplus: 0 }));
        }

        #[test]
        fn a_change_in_a_batch_is_the_request_that_is_sent_alone(
            changes in prop::collection::vec(change(), 1..5),
            endpoint in prop::sample::select(&ENDPOINTS),
            merge in prop::sample::select(&[MergeMethod::Patch, MergeMethod::Post]),
        ) {
            let (endpoint, id) = (endpoint.parse().unwrap(), Guid::default());
            let mut expected = Vec::new();
            multipart::start_multipart(&mut expected, &batch_boundary(id), &format!("changeset_{id}"));
            for change in &changes {
                multipart::start_http(&mut expected, &format!("changeset_{id}"));
                let mut alone = change.encode(&endpoint);
                if merge == MergeMethod::Post {
                    merge_by_post(&mut alone);
                }
                let order = [
                    header::ACCEPT,
                    header::CONTENT_TYPE,
                    DATA_SERVICE_VERSION,
                    PREFER,
                    header::IF_MATCH,
                    X_HTTP_METHOD,
                ];
                http_message::write_request(&mut expected, &alone, &order);
            }
            multipart::end(&mut expected, &format!("changeset_{id}"));
            expected.extend_from_slice(b"\r\n");
            multipart::end(&mut expected, &batch_boundary(id));
            let encoded = encode_changes(&changes, &endpoint, id, merge);
            prop_assert_eq!(encoded.body(), &expected);
        }
    }
}
