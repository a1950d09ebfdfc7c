//! The response to a batch, as a server writes it: the responses to its operations, each as the
//! response to a request of its own.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response as HttpResponse, StatusCode, header};

use crate::operation::Prefer;
use crate::path::{Endpoint, KeyLiteral};
use crate::types::header::{
    CONTENT_ID, DATA_SERVICE_ID, DATA_SERVICE_VERSION, PREFERENCE_APPLIED, spelling,
};
use crate::types::{ETag, EntityKey, Guid, PartitionKey, TableName};
use crate::wire::json::MetadataLevel;
use crate::wire::{http_message, multipart};

/// The response to a query in a batch.
pub fn query_response(id: Guid, response: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    let batch = batch_boundary(id);
    let mut body = Vec::new();
    write_part(&mut body, &batch, response, &QUERY_RESPONSE_HEADERS);
    end(&batch, body, Vec::new())
}

/// The response to changes of which one was refused: that response, and those to what followed the
/// set of changes.
pub fn refusal_response(
    id: Guid,
    response: HttpResponse<Bytes>,
    more: Vec<HttpResponse<Bytes>>,
) -> HttpResponse<Bytes> {
    let (batch, change_set) = (batch_boundary(id), change_set_boundary(id));
    let mut body = Vec::new();
    multipart::start_multipart(&mut body, &batch, &change_set);
    write_part(&mut body, &change_set, response, &RESPONSE_HEADERS);
    multipart::end(&mut body, &change_set);
    end(&batch, body, more)
}

/// The responses to changes that were all applied, in their order. They are written one after
/// another into the body of the whole response.
#[derive(Debug)]
pub struct ChangeResponses {
    body: Vec<u8>,
    batch: String,
    change_set: String,
    /// The head of each part, and the first line of a response without content.
    no_content: Vec<u8>,
    /// The head of each part, and the first line of a response with content.
    created: Vec<u8>,
    /// The headers that each response has.
    common: Vec<u8>,
    /// The client's name for the next operation.
    content_id: Option<Bytes>,
    /// Memory for the URL of an entity.
    location: String,
    /// The first of the last inserts that differ in their row keys.
    first: Option<FirstInsert>,
}

/// The response to an insert that does not return the entity. Others to the same partition repeat
/// it, with another row key.
#[derive(Debug)]
struct FirstInsert {
    table: TableName,
    partition_key: PartitionKey,
    etag: ETag,
    /// Where it is in the body: what is before the first row key, between the two, and after.
    parts: [Range<usize>; 3],
}

impl FirstInsert {
    fn is_like(&self, table: &TableName, key: &EntityKey, etag: &ETag) -> bool {
        // The URL has the name as the request spells it.
        self.table.as_str() == table.as_str()
            && self.partition_key == *key.partition_key()
            && self.etag == *etag
    }
}

impl ChangeResponses {
    /// Starts the response with that id, which will have so many responses.
    pub fn new(id: Guid, changes: usize) -> Self {
        let (batch, change_set) = (batch_boundary(id), change_set_boundary(id));
        let start = |status_line: &str| {
            let mut part = Vec::new();
            multipart::start_http(&mut part, &change_set);
            push(&mut part, &[status_line, "\r\n"]);
            part
        };
        let mut common = Vec::new();
        for (name, value) in &COMMON_HEADERS {
            push(&mut common, &[spelling(name), ": ", value, "\r\n"]);
        }
        let (no_content, created) = (start(NO_CONTENT), start(CREATED));
        let mut body = Vec::with_capacity((created.len() + PART_BYTES) * changes + FRAME_BYTES);
        multipart::start_multipart(&mut body, &batch, &change_set);
        Self {
            body,
            batch,
            change_set,
            no_content,
            created,
            common,
            content_id: None,
            location: String::new(),
            first: None,
        }
    }

    /// Says what the client calls the operation of the next response.
    pub fn name_next(&mut self, content_id: Option<Bytes>) {
        self.content_id = content_id;
    }

    /// The response to a delete.
    pub fn deleted(&mut self) {
        self.start(false);
        self.header(&DATA_SERVICE_VERSION, OLD_VERSION);
        self.end_head(&[]);
    }

    /// The response to an update.
    pub fn updated(&mut self, etag: &ETag) {
        self.start(false);
        self.header(&DATA_SERVICE_VERSION, OLD_VERSION);
        self.header(&header::ETAG, etag.as_str());
        self.end_head(&[]);
    }

    /// The response to an insert with that preference, with the entity as JSON of that level if it
    /// comes back.
    pub fn inserted(
        &mut self,
        endpoint: &Endpoint,
        (table, key): (&TableName, &EntityKey),
        etag: &ETag,
        prefer: Prefer,
        content: Option<(MetadataLevel, &[u8])>,
    ) {
        if prefer == Prefer::ReturnNoContent && content.is_none() && self.content_id.is_none() {
            return self.inserted_silently(endpoint, (table, key), etag);
        }
        self.insert(endpoint, (table, key), etag, prefer, content);
    }

    /// The response to an insert that does not return the entity.
    fn inserted_silently(
        &mut self,
        endpoint: &Endpoint,
        (table, key): (&TableName, &EntityKey),
        etag: &ETag,
    ) {
        let row_key = KeyLiteral(key.row_key().as_str());
        if let Some(first) = &self.first
            && first.is_like(table, key, etag)
        {
            self.location.clear();
            let written = row_key.write(&mut self.location);
            written.expect("writing to memory cannot fail");
            let [before, between, after] = &first.parts;
            self.body.extend_from_within(before.clone());
            self.body.extend_from_slice(self.location.as_bytes());
            self.body.extend_from_within(between.clone());
            self.body.extend_from_slice(self.location.as_bytes());
            self.body.extend_from_within(after.clone());
            return;
        }
        let start = self.body.len();
        let entity = (table, key);
        let ends = self.insert(endpoint, entity, etag, Prefer::ReturnNoContent, None);
        let row_key_bytes = row_key.to_string().len();
        // Behind it is a parenthesis.
        let [first, second] = ends.map(|end| end - 1);
        self.first = Some(FirstInsert {
            table: table.clone(),
            partition_key: key.partition_key().clone(),
            etag: etag.clone(),
            parts: [
                start..first - row_key_bytes,
                first..second - row_key_bytes,
                second..self.body.len(),
            ],
        });
    }

    /// Writes the response to an insert. Returns where the URLs of the entity end.
    fn insert(
        &mut self,
        endpoint: &Endpoint,
        (table, key): (&TableName, &EntityKey),
        etag: &ETag,
        prefer: Prefer,
        content: Option<(MetadataLevel, &[u8])>,
    ) -> [usize; 2] {
        self.start(content.is_some());
        if let Some(applied) = prefer.as_str() {
            self.header(&PREFERENCE_APPLIED, applied);
        }
        self.header(&DATA_SERVICE_VERSION, NEW_VERSION);
        if let Some((level, _)) = content {
            self.header(&header::CONTENT_TYPE, level.content_type());
        }
        let mut location = std::mem::take(&mut self.location);
        location.clear();
        endpoint.write_entity_url(&mut location, table, Some(key));
        self.header(&header::LOCATION, &location);
        let location_end = self.body.len() - LINE_END.len();
        if prefer == Prefer::ReturnNoContent {
            self.header(&DATA_SERVICE_ID, &location);
        }
        let id_end = self.body.len() - LINE_END.len();
        self.location = location;
        self.header(&header::ETAG, etag.as_str());
        self.end_head(content.map_or(&[], |(_, content)| content));
        [location_end, id_end]
    }

    /// The whole response, with the responses to what followed the set of changes.
    pub fn into_response(mut self, more: Vec<HttpResponse<Bytes>>) -> HttpResponse<Bytes> {
        multipart::end(&mut self.body, &self.change_set);
        end(&self.batch, self.body, more)
    }

    fn start(&mut self, has_content: bool) {
        let line = if has_content {
            &self.created
        } else {
            &self.no_content
        };
        self.body.extend_from_slice(line);
        if let Some(id) = self.content_id.take() {
            for bytes in [spelling(&CONTENT_ID).as_bytes(), b": ", &id, b"\r\n"] {
                self.body.extend_from_slice(bytes);
            }
        }
        self.body.extend_from_slice(&self.common);
    }

    fn header(&mut self, name: &HeaderName, value: &str) {
        push(&mut self.body, &[spelling(name), ": ", value, LINE_END]);
    }

    fn end_head(&mut self, body: &[u8]) {
        for bytes in [b"\r\n", body, b"\r\n"] {
            self.body.extend_from_slice(bytes);
        }
    }
}

/// Ends a line.
const LINE_END: &str = "\r\n";

fn push(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

pub(super) fn batch_boundary(id: Guid) -> String {
    format!("batchresponse_{id}")
}

pub(super) fn change_set_boundary(id: Guid) -> String {
    format!("changesetresponse_{id}")
}

/// Ends the body, after the responses in `more`.
fn end(batch: &str, mut body: Vec<u8>, more: Vec<HttpResponse<Bytes>>) -> HttpResponse<Bytes> {
    for part in more {
        write_part(&mut body, batch, part, &RESPONSE_HEADERS);
    }
    multipart::end(&mut body, batch);
    accepted(batch, body)
}

/// The whole response with this body.
pub(super) fn accepted(batch: &str, body: Vec<u8>) -> HttpResponse<Bytes> {
    let mut response = HttpResponse::new(body.into());
    *response.status_mut() = StatusCode::ACCEPTED;
    let content_type = HeaderValue::try_from(multipart::content_type(batch))
        .expect("a boundary made of a GUID is ASCII");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Writes a response of any kind.
fn write_part(body: &mut Vec<u8>, boundary: &str, part: HttpResponse<Bytes>, order: &[HeaderName]) {
    multipart::start_http(body, boundary);
    http_message::write_response(body, &with_common_headers(part), order);
}

/// Adds the headers that a response to a request of its own gets from the service.
fn with_common_headers(mut part: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    let headers = part.headers();
    let is_new =
        headers.contains_key(header::LOCATION) || headers.contains_key(header::CONTENT_TYPE);
    let version = if is_new { NEW_VERSION } else { OLD_VERSION };
    let is_refusal = part.status().is_client_error() || part.status().is_server_error();
    let headers = part.headers_mut();
    for (name, value) in &COMMON_HEADERS {
        // A refusal says itself whether it is cached.
        if is_refusal && *name == header::CACHE_CONTROL {
            continue;
        }
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(DATA_SERVICE_VERSION, HeaderValue::from_static(version));
    part
}

/// In the order in which the service writes them.
static RESPONSE_HEADERS: [HeaderName; 9] = [
    CONTENT_ID,
    header::X_CONTENT_TYPE_OPTIONS,
    header::CACHE_CONTROL,
    PREFERENCE_APPLIED,
    DATA_SERVICE_VERSION,
    header::CONTENT_TYPE,
    header::LOCATION,
    DATA_SERVICE_ID,
    header::ETAG,
];

/// In the order in which the service writes them for a query.
static QUERY_RESPONSE_HEADERS: [HeaderName; 5] = [
    DATA_SERVICE_VERSION,
    header::CONTENT_TYPE,
    header::X_CONTENT_TYPE_OPTIONS,
    header::CACHE_CONTROL,
    header::ETAG,
];

static COMMON_HEADERS: [(HeaderName, &str); 2] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-cache"),
];

const CREATED: &str = "HTTP/1.1 201 Created";
const NO_CONTENT: &str = "HTTP/1.1 204 No Content";

// SERVICE: the response to an update or a delete has an older version than the others.
const OLD_VERSION: &str = "1.0;";
const NEW_VERSION: &str = "3.0;";

/// About as many bytes as the response to an insert takes.
const PART_BYTES: usize = 480;

/// As many bytes as the lines around the responses take.
const FRAME_BYTES: usize = 300;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::{EntityBody, delete_entity, get_entity, insert_entity, update_entity};

    const CONTENT: (MetadataLevel, &[u8]) = (MetadataLevel::Minimal, b"{\"a\":1}");

    fn id() -> Guid {
        "8a3dec7d-5a14-41b6-b4a0-a3bdb3db1b24".parse().unwrap()
    }

    fn etag() -> ETag {
        ETag::from_opaque("W/\"datetime'2021-09-21T00%3A53%3A42.0078278Z'\"")
    }

    fn inserted(
        responses: &mut ChangeResponses,
        prefer: Prefer,
        content: Option<(MetadataLevel, &[u8])>,
    ) {
        let endpoint = "https://acct.table.core.windows.net".parse().unwrap();
        let table = TableName::new("people").unwrap();
        let key = EntityKey::new("003", "x").unwrap();
        responses.inserted(&endpoint, (&table, &key), &etag(), prefer, content);
    }

    fn refused(status: u16, content_type: &'static str, body: &'static str) -> HttpResponse<Bytes> {
        let mut response = HttpResponse::new(Bytes::from_static(body.as_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        let content_type = HeaderValue::from_static(content_type);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        let no_cache = HeaderValue::from_static("no-cache");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, no_cache);
        response
    }

    fn text(response: &HttpResponse<Bytes>) -> String {
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "multipart/mixed; boundary=batchresponse_8a3dec7d-5a14-41b6-b4a0-a3bdb3db1b24"
        );
        let text = String::from_utf8(response.body().to_vec()).unwrap();
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        text.replace("\r\n", "\n")
            .replace("_8a3dec7d-5a14-41b6-b4a0-a3bdb3db1b24", "_ID")
    }

    #[test]
    fn responses_to_changes_have_the_bytes_of_the_service() {
        let mut responses = ChangeResponses::new(id(), 4);
        inserted(&mut responses, Prefer::ReturnNoContent, None);
        responses.deleted();
        responses.updated(&etag());
        inserted(&mut responses, Prefer::Unspecified, Some(CONTENT));
        assert_eq!(
            text(&responses.into_response(Vec::new())),
            r#"--batchresponse_ID
Content-Type: multipart/mixed; boundary=changesetresponse_ID

--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-no-content
DataServiceVersion: 3.0;
Location: https://acct.table.core.windows.net/people(PartitionKey='003',RowKey='x')
DataServiceId: https://acct.table.core.windows.net/people(PartitionKey='003',RowKey='x')
ETag: W/"datetime'2021-09-21T00%3A53%3A42.0078278Z'"


--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;


--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 204 No Content
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 1.0;
ETag: W/"datetime'2021-09-21T00%3A53%3A42.0078278Z'"


--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 201 Created
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
Location: https://acct.table.core.windows.net/people(PartitionKey='003',RowKey='x')
ETag: W/"datetime'2021-09-21T00%3A53%3A42.0078278Z'"

{"a":1}
--changesetresponse_ID--
--batchresponse_ID--
"#
        );
    }

    #[test]
    fn a_refusal_and_a_query_have_the_bytes_of_the_service() {
        let json = MetadataLevel::Minimal.content_type();
        let mut refusal = refused(409, json, "{\"odata.error\":{}}");
        let prefer = HeaderValue::from_static("return-no-content");
        refusal.headers_mut().insert(PREFERENCE_APPLIED, prefer);
        let surplus = refused(400, json, "{}");
        assert_eq!(
            text(&refusal_response(id(), refusal, vec![surplus])),
            r#"--batchresponse_ID
Content-Type: multipart/mixed; boundary=changesetresponse_ID

--changesetresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 409 Conflict
X-Content-Type-Options: nosniff
Cache-Control: no-cache
Preference-Applied: return-no-content
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8

{"odata.error":{}}
--changesetresponse_ID--
--batchresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 400 Bad Request
X-Content-Type-Options: nosniff
Cache-Control: no-cache
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8

{}
--batchresponse_ID--
"#
        );
        let found = get_entity::Response {
            etag: Some(etag()),
            content: Bytes::from_static(b"{\"a\":1}"),
        };
        let found = found.encode(MetadataLevel::Minimal);
        assert_eq!(
            text(&query_response(id(), found)),
            r#"--batchresponse_ID
Content-Type: application/http
Content-Transfer-Encoding: binary

HTTP/1.1 200 OK
DataServiceVersion: 3.0;
Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8
X-Content-Type-Options: nosniff
Cache-Control: no-cache
ETag: W/"datetime'2021-09-21T00%3A53%3A42.0078278Z'"

{"a":1}
--batchresponse_ID--
"#
        );
    }

    proptest! {
        #[test]
        fn a_response_in_a_batch_is_the_one_to_a_request_that_comes_alone(
            kinds in prop::collection::vec((0..5, prop::bool::weighted(0.3), 0..2_usize, 0..2_usize, "[a-z '(),=%&+-]{0,9}"), 1..9),
            prefer in prop::sample::select(&[Prefer::Unspecified, Prefer::ReturnContent, Prefer::ReturnNoContent]),
            level in prop::sample::select(&[MetadataLevel::None, MetadataLevel::Minimal, MetadataLevel::Full]),
            partition in "[^/\\\\#?\\p{Cc}]{0,9}",
        ) {
            let endpoint: Endpoint = "http://127.0.0.1:10002/acct".parse().unwrap();
            let change_set = change_set_boundary(id());
            let mut expected = Vec::new();
            multipart::start_multipart(&mut expected, &batch_boundary(id()), &change_set);
            let mut responses = ChangeResponses::new(id(), kinds.len());
            for (kind, has_content, table, other, row) in kinds {
                let table = TableName::new(["people", "People"][table]).unwrap();
                let partition = [partition.as_str(), "p"][other];
                let key = EntityKey::new(partition, row).unwrap();
                let content = has_content.then_some(CONTENT.1);
                let alone = match kind {
                    0 => {
                        responses.deleted();
                        delete_entity::Response.encode()
                    }
                    1 => {
                        responses.updated(&etag());
                        update_entity::Response { etag: etag() }.encode()
                    }
                    _ => {
                        let part = content.map(|content| (level, content));
                        responses.inserted(&endpoint, (&table, &key), &etag(), prefer, part);
                        let entity = EntityBody::from_bytes(Bytes::new());
                        let request = insert_entity::Request { table: table.clone(), entity, prefer, level };
                        let content = content.map(Bytes::from_static);
                        insert_entity::Response { etag: etag(), content }.encode(&request, &endpoint, &key)
                    }
                };
                write_part(&mut expected, &change_set, alone, &RESPONSE_HEADERS);
            }
            multipart::end(&mut expected, &change_set);
            multipart::end(&mut expected, &batch_boundary(id()));
            let written = responses.into_response(Vec::new());
            prop_assert_eq!(written.body(), &expected);
        }
    }
}
