//! The response to a batch: the responses to its operations, each encoded and decoded as if it were a request of its own.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response as HttpResponse, StatusCode, header};

use super::Request;
use crate::operation::MalformedResponse;
use crate::types::header::{DATA_SERVICE_ID, DATA_SERVICE_VERSION, PREFERENCE_APPLIED};
use crate::types::limits::BATCH_CHANGES_MAX;
use crate::types::{Guid, ServiceError};
use crate::wire::multipart::{self, Part};
use crate::wire::{error_body, http_message};

/// 202, with the responses to the operations, each in the form of a response to a request of its own.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a batch ends in one of these ways")]
pub enum Response {
    /// The changes were applied. One response for each, in order.
    Changed(Vec<HttpResponse<Bytes>>),
    /// The response to the query: found or refused.
    Queried(HttpResponse<Bytes>),
    /// A change was refused, and none was applied. The response to that one, for [`Refusal::read`].
    Refused(HttpResponse<Bytes>),
}

impl Response {
    /// The HTTP response. The boundaries are made of `id`. The responses in `more` go to what followed the set of changes.
    pub fn encode(self, id: Guid, more: Vec<HttpResponse<Bytes>>) -> HttpResponse<Bytes> {
        let batch = format!("batchresponse_{id}");
        let change_set = format!("changesetresponse_{id}");
        let mut body = Vec::new();
        let write = |body: &mut Vec<u8>, boundary: &str, part, order: &[HeaderName]| {
            multipart::start_http(body, boundary);
            http_message::write_response(body, &with_common_headers(part), order);
        };
        let changes = match self {
            Self::Changed(parts) => Some(parts),
            Self::Refused(part) => Some(vec![part]),
            Self::Queried(part) => {
                write(&mut body, &batch, part, &QUERY_RESPONSE_HEADERS);
                None
            }
        };
        if let Some(changes) = changes {
            multipart::start_multipart(&mut body, &batch, &change_set);
            for part in changes {
                write(&mut body, &change_set, part, &RESPONSE_HEADERS);
            }
            multipart::end(&mut body, &change_set);
        }
        for part in more {
            write(&mut body, &batch, part, &RESPONSE_HEADERS);
        }
        multipart::end(&mut body, &batch);

        let mut response = HttpResponse::new(body.into());
        *response.status_mut() = StatusCode::ACCEPTED;
        let content_type = HeaderValue::from_str(&multipart::content_type(&batch))
            .expect("a boundary made of a GUID is ASCII");
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response
    }

    /// Reads the HTTP response of a success.
    ///
    /// # Errors
    ///
    /// When it cannot be split into parts, or has another number of responses than the request has operations.
    // SERVICE: Cosmos DB ends some lines with CR LF and some with LF.
    pub fn decode(
        response: &HttpResponse<Bytes>,
        request: &Request,
    ) -> Result<Self, MalformedResponse> {
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let boundary = multipart::boundary(content_type.unwrap_or_default())
            .map_err(|_| lacks("the boundary of its parts"))?;
        let parts = |body, boundary: &str| {
            multipart::parts(body, boundary, PARTS_MAX).map_err(|_| lacks("readable parts"))
        };
        let read = |part: &Part| {
            http_message::read_response(&part.content).map_err(|_| lacks("readable answers"))
        };
        let outer = parts(response.body(), &boundary)?;
        let first = outer.first().ok_or_else(|| lacks("any part"))?;
        let Request::Changes(changes) = request else {
            return Ok(Self::Queried(read(first)?));
        };
        let answers = match multipart::boundary(first.content_type().unwrap_or_default()) {
            Ok(boundary) => parts(&first.content, &boundary)?,
            Err(_) => vec![first.clone()],
        };
        let mut answers: Vec<_> = answers.iter().map(read).collect::<Result<_, _>>()?;
        let refused = answers
            .iter()
            .position(|answer| !answer.status().is_success());
        if let Some(refused) = refused {
            return Ok(Self::Refused(answers.swap_remove(refused)));
        }
        if answers.len() != changes.len() {
            return Err(lacks("an answer to each change"));
        }
        Ok(Self::Changed(answers))
    }
}

/// What is wrong with which operation of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an error and its place")]
pub struct Refusal {
    /// Counts from 0. As another server reports it, which may be out of range.
    pub index: usize,
    /// The error, without the index.
    pub error: ServiceError,
}

impl Refusal {
    /// The error as it is on the wire, with the index in front of its message.
    pub fn to_error(&self) -> ServiceError {
        let (index, message) = (self.index, self.error.message());
        ServiceError::new(self.error.code().clone(), format!("{index}:{message}"))
            .with_status(self.error.status())
    }

    /// Reads the response that refuses an operation.
    // SERVICE: the index is sometimes missing where there is one operation only.
    pub fn read(answer: &HttpResponse<Bytes>) -> Self {
        let error = error_body::read(answer.status(), answer.headers(), answer.body());
        let prefix = error.message().split_once(':');
        let indexed = prefix.and_then(|(index, message)| Some((index.parse().ok()?, message)));
        match indexed {
            Some((index, message)) => Self {
                index,
                error: ServiceError::new(error.code().clone(), message.to_owned())
                    .with_status(error.status()),
            },
            None => Self { index: 0, error },
        }
    }
}

/// Adds what a response has that stands alone, where it comes from the front of the server.
fn with_common_headers(mut part: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    // SERVICE: the response to an update or a delete has an older version than the others.
    let headers = part.headers();
    let version =
        if headers.contains_key(header::LOCATION) || headers.contains_key(header::CONTENT_TYPE) {
            "3.0;"
        } else {
            "1.0;"
        };
    let common = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
        (DATA_SERVICE_VERSION, version),
    ];
    for (name, value) in common {
        let value = HeaderValue::from_static(value);
        part.headers_mut().insert(name, value);
    }
    part
}

const fn lacks(what: &'static str) -> MalformedResponse {
    MalformedResponse { what }
}

/// In the order in which the service writes them.
static RESPONSE_HEADERS: [HeaderName; 8] = [
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

/// The maximum number of parts that are read of a response.
const PARTS_MAX: usize = BATCH_CHANGES_MAX;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::batch::{Change, Query};
    use crate::operation::{Prefer, delete_entity, get_entity, insert_entity, update_entity};
    use crate::types::{ETag, EntityKey, ErrorCode, IfMatch, TableName};
    use crate::wire::json::MetadataLevel;

    fn id() -> Guid {
        "8a3dec7d-5a14-41b6-b4a0-a3bdb3db1b24".parse().unwrap()
    }

    fn etag() -> ETag {
        ETag::from_opaque("W/\"datetime'2021-09-21T00%3A53%3A42.0078278Z'\"")
    }

    fn inserted(prefer: Prefer) -> HttpResponse<Bytes> {
        let response = insert_entity::Response {
            etag: etag(),
            content: (prefer != Prefer::ReturnNoContent).then(|| Bytes::from_static(b"{\"a\":1}")),
        };
        let location = "https://acct.table.core.windows.net/people(PartitionKey='003',RowKey='x')";
        response.encode(prefer, MetadataLevel::Minimal, location.to_owned())
    }

    fn updated() -> HttpResponse<Bytes> {
        update_entity::Response { etag: etag() }.encode()
    }

    fn refused(status: u16, content_type: &'static str, body: &'static str) -> HttpResponse<Bytes> {
        let mut response = HttpResponse::new(Bytes::from_static(body.as_bytes()));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        let content_type = HeaderValue::from_static(content_type);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response
    }

    /// That many deletes.
    fn request(changes: usize) -> Request {
        let delete = Change::Delete(delete_entity::Request {
            table: TableName::new("people").unwrap(),
            key: EntityKey::new("p", "r").unwrap(),
            if_match: IfMatch::Any,
        });
        Request::Changes(vec![delete; changes])
    }

    fn query() -> Request {
        Request::Query(Query::Entity(get_entity::Request {
            table: TableName::new("people").unwrap(),
            key: EntityKey::new("p", "r").unwrap(),
            select: None,
            level: MetadataLevel::Minimal,
        }))
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
        let response = Response::Changed(vec![
            inserted(Prefer::ReturnNoContent),
            delete_entity::Response.encode(),
            updated(),
            inserted(Prefer::Unspecified),
        ]);
        assert_eq!(
            text(&response.encode(id(), Vec::new())),
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
            text(&Response::Refused(refusal).encode(id(), vec![surplus])),
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
            text(&Response::Queried(found).encode(id(), Vec::new())),
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

    fn with_body(body: &str) -> HttpResponse<Bytes> {
        let mut response = HttpResponse::new(Bytes::copy_from_slice(body.as_bytes()));
        let content_type = HeaderValue::from_static("multipart/mixed; boundary=batchresponse_b");
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
        response
    }

    fn refusal(body: &str) -> Refusal {
        match Response::decode(&with_body(body), &request(2)) {
            Ok(Response::Refused(answer)) => Refusal::read(&answer),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_the_mixed_line_ends_of_cosmos() {
        let body = "--batchresponse_b\nContent-Type: multipart/mixed; boundary=changesetresponse_c\n\n--changesetresponse_c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\nHTTP/1.1 404 Not Found\r\nContent-Type: application/json;odata=minimalmetadata\r\n\r\n{\"odata.error\":{\"code\":\"ResourceNotFound\",\"message\":{\"lang\":\"en-us\",\"value\":\"1:The specified resource does not exist.\\nRequestID:x\\n\"}}}\n--changesetresponse_c--\n--batchresponse_b--\r\n";
        let refusal = refusal(body);
        assert_eq!(refusal.index, 1);
        assert_eq!(refusal.error.code(), &ErrorCode::ResourceNotFound);
        assert_eq!(refusal.error.status(), StatusCode::NOT_FOUND);

        let body = "--batchresponse_b\r\nContent-Type: multipart/mixed; boundary=changesetresponse_c\r\n\r\n--changesetresponse_c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\nHTTP/1.1 204 No Content\r\netag: W/\"1\"\r\n\r\n\n--changesetresponse_c\nContent-Type: application/http\n\nHTTP/1.1 204 No Content\r\n\n--changesetresponse_c--\n--batchresponse_b--\r\n";
        match Response::decode(&with_body(body), &request(2)) {
            Ok(Response::Changed(answers)) => {
                let etag = update_entity::Response::decode(&answers[0]).unwrap().etag;
                assert_eq!(etag.as_str(), "W/\"1\"");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_refusal_without_an_index_or_a_body_is_read() {
        let body = |status: &str, message: &str| {
            format!(
                "--batchresponse_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {status}\r\n\r\n{message}\r\n--c--\r\n--batchresponse_b--\r\n"
            )
        };
        let json = |message: &str| {
            format!(
                r#"{{"odata.error":{{"code":"X","message":{{"lang":"en-US","value":"{message}"}}}}}}"#
            )
        };
        for (message, index, rest) in [
            ("7:Not: good.", 7, "Not: good."),
            ("99:", 99, ""),
            ("Not: good.", 0, "Not: good."),
            ("-1:Not", 0, "-1:Not"),
            (
                "99999999999999999999999:Not",
                0,
                "99999999999999999999999:Not",
            ),
        ] {
            let refusal = refusal(&body("400 Bad Request", &json(message)));
            assert_eq!((refusal.index, refusal.error.message()), (index, rest));
        }
        let refusal = refusal(&body("413 Request Entity Too Large", ""));
        assert_eq!(refusal.index, 0);
        assert_eq!(refusal.error.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn a_refusal_is_read_back_as_it_was_written() {
        let error = ServiceError::from(ErrorCode::UpdateConditionNotSatisfied);
        let refusal = Refusal { index: 3, error };
        let now = "2024-03-15T10:20:30Z".parse().unwrap();
        let body = error_body::write(&refusal.to_error(), "id", now);
        let mut answer = HttpResponse::new(body.into());
        *answer.status_mut() = StatusCode::PRECONDITION_FAILED;
        assert_eq!(Refusal::read(&answer), refusal);
    }

    #[test]
    fn another_number_of_responses_is_malformed() {
        let encoded = |count| {
            let response = Response::Changed(std::iter::repeat_with(updated).take(count).collect());
            response.encode(id(), Vec::new())
        };
        assert!(Response::decode(&encoded(2), &request(2)).is_ok());
        assert!(Response::decode(&encoded(1), &request(2)).is_err());
        assert!(Response::decode(&encoded(3), &request(2)).is_err());
        for body in [
            "",
            "--batchresponse_b--",
            "--batchresponse_b\r\n\r\nx\r\n--batchresponse_b--",
        ] {
            assert!(Response::decode(&with_body(body), &request(1)).is_err());
            assert!(Response::decode(&with_body(body), &query()).is_err());
        }
    }

    proptest! {
        #[test]
        fn answers_are_read_back_as_they_were_written(
            kinds in prop::collection::vec(0..4, 1..5),
            is_query: bool,
        ) {
            let answers: Vec<_> = kinds.iter().map(|kind| match kind {
                0 => updated(),
                1 => delete_entity::Response.encode(),
                2 => inserted(Prefer::ReturnContent),
                _ => inserted(Prefer::ReturnNoContent),
            }).collect();
            let (response, request, answers) = if is_query {
                let answer = refused(404, "a/b", "{}");
                (Response::Queried(answer.clone()), query(), vec![answer])
            } else {
                (Response::Changed(answers.clone()), request(answers.len()), answers)
            };
            let decoded = match Response::decode(&response.encode(id(), Vec::new()), &request) {
                Ok(Response::Changed(decoded)) => decoded,
                Ok(Response::Queried(decoded)) => vec![decoded],
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(decoded.len(), answers.len());
            for (decoded, answer) in decoded.iter().zip(answers) {
                prop_assert_eq!(decoded.status(), answer.status());
                prop_assert_eq!(decoded.body(), answer.body());
                for (name, value) in answer.headers() {
                    prop_assert_eq!(decoded.headers().get(name), Some(value));
                }
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>, text in "(--batchresponse_b(--)?\r?\n|HTTP/1.1 [0-9]{0,3}|\n|[a: {}-]){0,20}") {
            for body in [Bytes::from(bytes), Bytes::from(text)] {
                let mut response = with_body("");
                *response.body_mut() = body;
                let _ = Response::decode(&response, &request(1));
                let _ = Response::decode(&response, &query());
            }
        }
    }
}
