//! Properties that must hold for any bytes, target by target: reading gives a value or an error, a
//! value that was read prints as something that reads as the same value, and no error is long or
//! contains a secret.
//!
//! The checks do not depend on the source of the bytes: the fuzzer generates them, and the test
//! `corpus` replays those that the fuzzer found.

use std::borrow::Cow;
use std::fmt::{Debug, Display};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Request};
use serde_json::Value as Json;
use tablesdk::TableServiceClient;
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::SignedSas;
use tablesdk_protocol::continuation::{decode_token, encode_token};
use tablesdk_protocol::filter::{Filter, FilterSyntax};
use tablesdk_protocol::limits::{FILTER_BYTES_MAX, PROPERTIES_MAX};
use tablesdk_protocol::operation::batch::{self, Received};
use tablesdk_protocol::operation::{
    EntityBody, EntityInput, Operation, QueryOptions, ReceivedRequest, RequestRules,
};
use tablesdk_protocol::wire::json::{
    EntityFormat, EntityHead, EntityStyle, EntityWriter, JsonError, MetadataLevel, StoredProperty,
    read_entity, read_page, read_page_by, read_table_name, read_tables, write_stored_property,
};
use tablesdk_protocol::wire::{error_body, http_message, multipart, xml};
use tablesdk_protocol::{
    ETag, Endpoint, Guid, ResourcePath, ServiceError, Timestamp, Value, ValueRef,
    check_property_name,
};

/// A check of some bytes.
pub type Check = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Check); 8] = [
    ("batch", batch),
    ("connection_string", connection_string),
    ("filter", filter),
    ("json", json),
    ("sas", sas),
    ("text", text),
    ("url", url),
    ("xml", xml),
];

/// A message to a caller: of bounded length, however long the input.
fn assert_short(error: &impl Display) {
    let bytes = error.to_string().len();
    assert!(bytes <= FILTER_BYTES_MAX + 200, "{bytes} bytes of message");
}

fn assert_same<T: Debug>(left: &T, right: &T) {
    // As `Debug`, which distinguishes -0.0 from 0.0, and in which NaN equals NaN.
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

fn endpoint() -> Endpoint {
    "http://127.0.0.1:10002/acct"
        .parse()
        .expect("a valid endpoint")
}

fn received(method: Method, resource: ResourcePath, options: QueryOptions) -> ReceivedRequest {
    ReceivedRequest {
        account: "acct".into(),
        method,
        resource,
        options,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        rules: RequestRules::default(),
    }
}

/// A request as the server would read it.
fn receive(request: Request<Bytes>) -> Result<ReceivedRequest, ServiceError> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().strip_prefix("/acct");
    let resource = ResourcePath::parse(path.expect("the endpoint's path"))?;
    let options = QueryOptions::parse(head.uri.query().unwrap_or_default())?;
    Ok(ReceivedRequest {
        headers: head.headers,
        body,
        ..received(head.method, resource, options)
    })
}

/// A request that was encoded, as the server decodes it.
fn decode_again(request: Request<Bytes>) -> Result<Operation, ServiceError> {
    Operation::decode(receive(request).expect("a readable URL"))
}

/// The path and the query of a URL.
pub fn url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let resource = ResourcePath::parse(path);
    let options = QueryOptions::parse(query);
    if let Err(error) = &resource {
        assert_short(error);
    }
    let assert_graphic = |printed: &str| {
        let is_graphic = printed.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(is_graphic, "{printed}");
    };
    if let Ok(resource) = &resource {
        let printed = resource.to_string();
        assert_eq!(ResourcePath::parse(&printed).as_ref(), Ok(resource));
        assert_graphic(&printed);
    }
    if let Ok(options) = &options {
        let printed = options.to_string();
        let query = printed.strip_prefix('?').unwrap_or_default();
        assert_eq!(QueryOptions::parse(query).as_ref(), Ok(options));
        assert_graphic(&printed);
    }
    let (Ok(resource), Ok(options)) = (resource, options) else {
        return;
    };
    for method in [Method::GET, Method::DELETE, Method::POST, Method::PUT] {
        match Operation::decode(received(method, resource.clone(), options.clone())) {
            Err(error) => assert_short(&error),
            Ok(Operation::QueryEntities(mut request)) => {
                // What a client asks for is always minimal.
                request.level = MetadataLevel::Minimal;
                let filter = request.filter.as_ref();
                if filter.map_or(0, |filter| filter.to_string().len()) <= 10_000 {
                    let again = decode_again(request.encode(&endpoint()));
                    assert_same(&again, &Ok(Operation::QueryEntities(request)));
                }
            }
            Ok(Operation::GetEntity(mut request)) => {
                request.level = MetadataLevel::Minimal;
                let again = decode_again(request.encode(&endpoint()));
                assert_same(&again, &Ok(Operation::GetEntity(request)));
            }
            Ok(_) => {}
        }
    }
}

/// A `$filter`.
pub fn filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(filter) = Filter::read(text, FilterSyntax::Azurite) {
        let printed = filter.to_string();
        if printed.len() <= FILTER_BYTES_MAX {
            let again = Filter::read(&printed, FilterSyntax::Azurite);
            assert_eq!(form(&again.expect("what was printed reads")), form(&filter));
        }
    }
    if let Err(error) = Filter::read(text, FilterSyntax::Service) {
        assert!(error.service_message(text).len() <= text.len() + 1000);
    }
    let filter = match text.parse::<Filter>() {
        Ok(filter) => filter,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset()), "{error}");
            assert!(error.to_string().len() < 200);
            return;
        }
    };
    let printed = filter.to_string();
    // `not a` prints with parentheses, and numbers with all their digits.
    assert!(printed.len() <= 400 * (text.len() + 8));
    if printed.len() <= FILTER_BYTES_MAX {
        let again: Filter = printed.parse().expect("what was printed reads");
        assert_eq!(form(&again), form(&filter), "{printed}");
        assert_eq!(again.to_string(), printed);
    }
    let clone = filter.clone();
    assert_eq!(form(&clone), form(&filter));
    // A double may be NaN, which differs from itself.
    if !printed.contains("NaN") {
        assert_eq!(clone, filter);
    }
    assert_ne!(!clone, filter);
}

/// The tree as it is.
fn form(filter: &Filter) -> String {
    let mut form = String::new();
    let mut open = vec![(filter, 0)];
    while let Some((filter, depth)) = open.pop() {
        let kind = match filter {
            Filter::And(_) => "all",
            Filter::Comparison(comparison) => &format!("{comparison:?}"),
            Filter::Constant(true) => "true",
            Filter::Constant(false) => "false",
            Filter::Not(_) => "not",
            Filter::Or(_) => "any",
            Filter::Properties(comparison) => &format!("{comparison:?}"),
            Filter::Property(name) => &format!("is {name}"),
        };
        form.push_str(&format!("{depth} {kind}\n"));
        open.extend(filter.terms().iter().map(|term| (term, depth + 1)));
    }
    form
}

/// The properties of each entity of a page, and whether the page has no error.
fn page_by(data: &[u8], lists: bool) -> (Vec<Vec<String>>, bool) {
    let mut entities = Vec::new();
    let read = read_page_by::<_, JsonError>(
        data,
        lists,
        |mut entity| {
            let mut properties = Vec::new();
            while let Some(property) = entity.next_property() {
                properties.push(format!("{property:?}"));
            }
            properties
        },
        |entity| {
            entities.push(entity);
            Ok(())
        },
    );
    (entities, read.is_ok())
}

/// An entity, or a page of them, and the names of tables.
pub fn json(data: &[u8]) {
    let read = read_entity(data);
    if let Ok(Json::Object(members)) = serde_json::from_slice(data) {
        // Another reader of JSON reads the same.
        assert!(!matches!(read, Err(JsonError::Malformed(_))), "{read:?}");
        let entity = read.as_ref().ok().filter(|entity| !entity.has_duplicates());
        for member in entity.iter().flat_map(|entity| entity.members()) {
            let (Some(found), Ok(value)) = (members.get(member.name()), member.to_value()) else {
                continue;
            };
            match (found, value) {
                (Json::Null, value) => assert_eq!(value, None),
                (Json::String(found), Some(Value::String(value))) => assert_eq!(*found, value),
                (Json::Number(found), Some(Value::Double(value))) => {
                    assert_eq!(found.as_f64(), Some(value));
                }
                (Json::Number(found), Some(Value::Int64(value))) => {
                    assert_eq!(found.as_i64(), Some(value));
                }
                (Json::Number(found), Some(Value::Int32(value))) => {
                    assert!(value == 0 || found.as_i64() == Some(value.into()));
                }
                (Json::Bool(found), value) => assert_eq!(value, Some(Value::Boolean(*found))),
                (_, value) => {
                    assert!(!matches!(value, None | Some(Value::Boolean(_))) || found.is_string());
                }
            }
        }
    }
    if read.is_err() {
        assert!(read_table_name(data).is_err());
    }
    let _ = read_tables(data);
    let _ = read_page::<JsonError>(data, |entity| {
        for property in entity.properties() {
            let _ = property.to_value();
        }
        Ok(())
    });
    // Members one by one, or all in a list.
    assert_eq!(page_by(data, false), page_by(data, true));
    if let Some(property) = StoredProperty::read(data) {
        let _ = property.value();
    }
    let error = error_body::read(http::StatusCode::BAD_REQUEST, &HeaderMap::new(), data);
    let _ = error.to_string();

    let body = EntityBody::from_bytes(Bytes::copy_from_slice(data));
    match body.read() {
        Err(error) => assert_short(&error),
        Ok(mut input) => {
            let key = input.take_key();
            if let Err(error) = &key {
                assert_short(error);
            }
            match input.into_properties() {
                Err(error) => assert_short(&error),
                Ok(properties) => written_properties_read_back(&owned(properties)),
            }
        }
    }
}

fn owned(properties: Vec<(Cow<'_, str>, ValueRef<'_>)>) -> Vec<(String, Value)> {
    let properties = properties.into_iter();
    properties
        .map(|(name, value)| (name.into_owned(), value.into_value()))
        .collect()
}

/// As a client writes them, and as a server answers.
fn written_properties_read_back(properties: &[(String, Value)]) {
    assert!(properties.len() <= PROPERTIES_MAX);
    let mut writer = EntityWriter::new();
    for (name, value) in properties {
        assert_eq!(check_property_name(name), Ok(()));
        writer.property(name, &value.as_ref());
    }
    let body = EntityBody::from_bytes(writer.finish());
    let again = body.read().and_then(EntityInput::into_properties);
    assert_same(&again.map(owned), &Ok(properties.to_vec()));

    let endpoint = endpoint();
    for level in [MetadataLevel::Minimal, MetadataLevel::Full] {
        let format = EntityFormat {
            level,
            endpoint: &endpoint,
            account: "acct",
            table: "people",
            select: None,
            select_text: None,
            style: EntityStyle::default(),
        };
        let head = EntityHead {
            partition_key: "p'",
            row_key: "é",
            timestamp: Timestamp::UNIX_EPOCH,
        };
        let mut stored = Vec::new();
        let mut pieces = Vec::new();
        for (name, value) in properties {
            let mut piece = Vec::new();
            write_stored_property(&mut piece, name, &value.as_ref());
            stored.extend_from_slice(&piece);
            let property = StoredProperty::read(&piece).expect("it was written");
            let read = property.value().map(ValueRef::into_value);
            assert_eq!(property.name(), name.as_bytes());
            assert_same(&read, &Some(value.clone()));
            pieces.push(piece);
        }
        let stored_properties = || {
            let pieces = pieces.iter();
            pieces.map(|piece| StoredProperty::read(piece).ok_or(()))
        };
        let mut page = format.page();
        let added = page.entity(head, &stored, stored_properties());
        assert_eq!(added, Ok(()));
        let select: Vec<_> = properties.iter().map(|(name, _)| name.clone()).collect();
        let selected = EntityFormat {
            select: Some(&select),
            ..format
        };
        let selected = selected.single(head, &[], stored_properties());
        let selected = selected.expect("no property is damaged");
        let selected = read_entity(&selected).expect("an answer is JSON");
        assert_eq!(selected.properties().count(), properties.len());
        let mut count = 0;
        read_page::<JsonError>(&page.finish(), |entity| {
            let read = entity.properties().map(|property| {
                let value = property.to_value().expect("an answer is readable");
                let value = value.expect("no answer has nulls");
                (property.name().to_owned(), value)
            });
            assert_same(&read.collect::<Vec<_>>(), &properties.to_vec());
            assert_eq!(entity.text("RowKey"), Ok(Some("é")));
            count += 1;
            Ok(())
        })
        .expect("an answer is JSON");
        assert_eq!(count, 1);
    }
}

/// A batch: the first line is its `Content-Type`.
pub fn batch(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let content_type = lines.next().unwrap_or_default();
    let body = Bytes::copy_from_slice(lines.next().unwrap_or_default());
    if let Ok(text) = std::str::from_utf8(content_type)
        && let Ok(boundary) = multipart::boundary(text)
        && let Ok(parts) = multipart::parts(&body, &boundary, 100)
    {
        assert!(parts.len() <= 100);
        let content: usize = parts.iter().map(|part| part.content.len()).sum();
        assert!(content <= body.len());
        for part in &parts {
            let _ = http_message::read_response(
                part.content,
                &mut http_message::ResponseLines::default(),
            );
        }
    }
    let Ok(content_type) = HeaderValue::from_bytes(content_type) else {
        return;
    };
    let mut request = received(Method::POST, ResourcePath::Batch, QueryOptions::default());
    request.headers.insert(CONTENT_TYPE, content_type);
    request.body = body;
    let Some(request) = batch_that_is_carried_out(Operation::decode(request)) else {
        return;
    };
    let id = Guid::from_bytes([0x5A; 16]);
    // No body may contain the boundary; a client sees to it by making up the id.
    if data.windows(8).any(|window| window == b"5a5a5a5a") {
        return;
    }
    let first = request.encode(&endpoint(), id);
    let again = batch_that_is_carried_out(decode_again(first.clone()));
    let again = again.unwrap_or_else(|| panic!("refused: {:?}", first.body()));
    let second = again.encode(&endpoint(), id);
    assert_eq!(first.body(), second.body());
    assert_eq!(first.headers(), second.headers());
}

/// The batch, unless it or a part of it is refused.
fn batch_that_is_carried_out(read: Result<Operation, ServiceError>) -> Option<batch::Request> {
    match read {
        Ok(Operation::Batch(Received::Changes {
            changes,
            refusal,
            surplus,
            ..
        })) => {
            assert!(changes.len() <= 100);
            if let Some(refusal) = &refusal {
                assert_short(&refusal.to_error());
            }
            let is_whole = refusal.is_none() && surplus == 0;
            is_whole.then_some(batch::Request::Changes(changes))
        }
        Ok(Operation::Batch(Received::Query(Ok(query)))) => Some(batch::Request::Query(query)),
        Ok(Operation::Batch(Received::Query(Err(error)))) | Err(error) => {
            assert_short(&error);
            None
        }
        Ok(_) => unreachable!("a batch is a batch"),
    }
}

/// Stored access policies, service properties and statistics.
pub fn xml(data: &[u8]) {
    document(data, xml::read_signed_identifiers, |it| {
        xml::write_signed_identifiers(it)
    });
    document(
        data,
        xml::read_service_properties,
        xml::write_service_properties,
    );
    document(data, xml::read_service_stats, xml::write_service_stats);
}

fn document<T: Debug + PartialEq, E: Debug + Display + PartialEq, W: AsRef<[u8]>>(
    data: &[u8],
    read: impl Fn(&[u8]) -> Result<T, E>,
    write: impl Fn(&T) -> W,
) {
    match read(data) {
        Ok(document) => assert_eq!(read(write(&document).as_ref()), Ok(document)),
        Err(error) => assert_short(&error),
    }
}

/// The query of a shared access signature.
pub fn sas(data: &[u8]) {
    let Ok(query) = std::str::from_utf8(data) else {
        return;
    };
    let signed = match SignedSas::parse(query) {
        Ok(signed) => signed,
        Err(error) => {
            assert!(error.to_string().len() < 120, "{error}");
            return;
        }
    };
    let printed = signed.expose();
    let again = SignedSas::parse(&printed).expect("what was printed reads");
    assert_eq!(again.sas(), signed.sas());
    assert_eq!(*again.expose(), *printed);
    assert!(SignedSas::is_in(&printed));

    let sas = signed.into_sas();
    let lines = sas.string_to_sign("acct").matches('\n').count();
    assert!((8..=16).contains(&lines), "{lines} lines are signed");
    let key = SharedKey::new("acct", "c2VjcmV0").expect("a valid key");
    let other = SharedKey::new("acct", "b3RoZXI=").expect("a valid key");
    let signed = sas.sign(&key);
    let exposed = signed.expose();
    let (_, signature) = exposed.rsplit_once("sig=").expect("a signature");
    assert!(!format!("{signed:?}").contains(signature));
    let again = SignedSas::parse(&exposed).expect("what was printed reads");
    assert!(again.is_signed_by(&[other.clone(), key]));
    assert!(!again.is_signed_by(&[other]));
}

/// A connection string in which a percent sign and an S stand for a secret.
pub fn connection_string(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let text = text.replace("%S", SECRET);
    let Err(error) = TableServiceClient::from_connection_string(&text) else {
        return;
    };
    let mut shown = format!("{error} {error:?}");
    assert!(shown.len() < 2_000, "{shown}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        shown.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.len() < 4_000, "{shown}");
}

const SECRET: &str = "c2VjcmV0IHRoYXQgaXMgc2hvd24gdG8gbm9ib2R5";

/// The small grammars: instants, GUIDs, tokens, ETags, media types, multipart boundaries, HTTP
/// messages.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        assert_eq!(at.to_string().parse(), Ok(at));
        assert_eq!(at.to_padded_string().parse(), Ok(at));
        assert_eq!(ETag::from_timestamp(at).timestamp(), Some(at));
    }
    if let Ok(at) = Timestamp::parse_http_date(text) {
        assert_eq!(Timestamp::parse_http_date(&at.to_http_date()), Ok(at));
    }
    if let Ok(guid) = text.parse::<Guid>() {
        assert_eq!(guid.to_string(), text.to_ascii_lowercase());
    }
    if let Ok(key) = decode_token(text) {
        assert_eq!(encode_token(&key), text);
    }
    assert_eq!(decode_token(&encode_token(text)).as_deref(), Ok(text));
    let etag = ETag::from_opaque(text);
    let _ = (etag.timestamp(), etag.is_well_formed());
    if let Ok(etag) = text.parse::<ETag>() {
        assert_eq!(etag.as_str(), text.trim_matches([' ', '\t']));
        assert_eq!(etag.as_str().parse(), Ok(etag));
    }
    let _ = MetadataLevel::from_accept(text);
    if let Ok(boundary) = multipart::boundary(text) {
        assert!(!boundary.is_empty() && boundary.len() <= 200);
    }
    if let Ok(endpoint) = text.parse::<Endpoint>() {
        assert_eq!(endpoint.as_str().parse(), Ok(endpoint));
    }
    if let Ok(request) = http_message::read_request(data, &mut Vec::new()) {
        assert!(request.body.len() < text.len());
    }
}
