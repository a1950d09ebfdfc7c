//! The response to a batch, as a client reads it.

use bytes::Bytes;
use http::{Response as HttpResponse, header};

use crate::operation::MalformedResponse;
use crate::types::header::text;
use crate::types::limits::BATCH_CHANGES_MAX;
use crate::types::{ETag, ErrorCode, ServiceError};
use crate::wire::error_body;
use crate::wire::http_message::{self, ResponseLines, ResponseText};
use crate::wire::multipart::{self, Part};

/// 202, with the responses to the operations.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a batch ends in one of these ways")]
pub enum Response {
    /// The changes were applied. The `ETag` of the response to each, in order, if it has one.
    Changed(Vec<Option<ETag>>),
    /// The response to the query: found or refused.
    Queried(HttpResponse<Bytes>),
    /// A change was refused, and none was applied. The response to that one, for [`Refusal::read`].
    Refused(HttpResponse<Bytes>),
}

impl Response {
    /// Reads the HTTP response of a success, to so many changes.
    ///
    /// # Errors
    ///
    /// When it cannot be split into parts, or has another number of responses.
    // SERVICE: Cosmos DB ends some lines with CR LF and some with LF.
    pub fn decode_changes(
        response: &HttpResponse<Bytes>,
        changes: usize,
    ) -> Result<Self, MalformedResponse> {
        let outer = outer_parts(response)?;
        let first = outer.first().ok_or_else(|| lacks("any part"))?;
        let inner = match multipart::boundary(first.content_type().unwrap_or_default()) {
            Ok(boundary) => parts(first.content, &boundary)?,
            Err(_) => vec![*first],
        };
        let mut lines = ResponseLines::default();
        let mut etags = Vec::with_capacity(inner.len());
        let mut refused = None;
        for part in &inner {
            let answer = read(part, &mut lines)?;
            if refused.is_none() && !answer.status.is_success() {
                refused = Some(answer.to_response(&lines.headers));
            }
            let etag = lines.headers.iter().find(|line| line.is(&header::ETAG));
            let etag = etag.and_then(|line| text(line.value));
            etags.push(etag.filter(|etag| !etag.is_empty()).map(ETag::of));
        }
        match refused {
            Some(refused) => Ok(Self::Refused(refused)),
            None if etags.len() == changes => Ok(Self::Changed(etags)),
            None => Err(lacks("an answer to each change")),
        }
    }

    /// Reads the HTTP response of a success, to a query.
    ///
    /// # Errors
    ///
    /// When it cannot be split into parts.
    pub fn decode_query(response: &HttpResponse<Bytes>) -> Result<Self, MalformedResponse> {
        let parts = outer_parts(response)?;
        let part = parts.first().ok_or_else(|| lacks("any part"))?;
        let mut lines = ResponseLines::default();
        let answer = read(part, &mut lines)?;
        Ok(Self::Queried(answer.to_response(&lines.headers)))
    }
}

fn outer_parts(response: &HttpResponse<Bytes>) -> Result<Vec<Part<'_>>, MalformedResponse> {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let boundary = multipart::boundary(content_type.unwrap_or_default())
        .map_err(|_| lacks("the boundary of its parts"))?;
    parts(response.body(), &boundary)
}

fn parts<'t>(body: &'t [u8], boundary: &str) -> Result<Vec<Part<'t>>, MalformedResponse> {
    multipart::parts(body, boundary, PARTS_MAX).map_err(|_| lacks("readable parts"))
}

fn read<'t>(
    part: &Part<'t>,
    lines: &mut ResponseLines<'t>,
) -> Result<ResponseText<'t>, MalformedResponse> {
    http_message::read_response(part.content, lines).map_err(|_| lacks("readable answers"))
}

/// The error of one operation of a batch, and the index of the operation.
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
        let (index, error) = read_indexed(answer);
        let index = index.unwrap_or_default();
        Self { index, error }
    }

    /// Reads the response of Cosmos DB that refuses an operation. The error of an operation has an
    /// index there. Only that of a missing table has none, and the code of a missing entity: it
    /// gets the code that Azure Table storage has.
    pub fn read_from_cosmos_db(answer: &HttpResponse<Bytes>) -> Self {
        let (index, error) = read_indexed(answer);
        let error = match (index, error.code()) {
            (None, ErrorCode::ResourceNotFound) => ErrorCode::TableNotFound.into(),
            _ => error,
        };
        let index = index.unwrap_or_default();
        Self { index, error }
    }
}

/// The index in front of the message of an error, and the error without it.
fn read_indexed(answer: &HttpResponse<Bytes>) -> (Option<usize>, ServiceError) {
    let error = error_body::read(answer.status(), answer.headers(), answer.body());
    let prefix = error.message().split_once(':');
    let indexed = prefix.and_then(|(index, message)| Some((index.parse().ok()?, message)));
    match indexed {
        Some((index, message)) => {
            let error = ServiceError::new(error.code().clone(), message.to_owned())
                .with_status(error.status());
            (Some(index), error)
        }
        None => (None, error),
    }
}

const fn lacks(what: &'static str) -> MalformedResponse {
    MalformedResponse { what }
}

/// The maximum number of parts that are read of a response.
const PARTS_MAX: usize = BATCH_CHANGES_MAX;

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};
    use proptest::prelude::*;

    use super::*;
    use crate::operation::Prefer;
    use crate::operation::batch::{ChangeResponses, query_response, refusal_response};
    use crate::types::{EntityKey, Guid, TableName, Timestamp};
    use crate::wire::error_body::ErrorForm;
    use crate::wire::json::MetadataLevel;

    fn id() -> Guid {
        Guid::default()
    }

    fn etag() -> ETag {
        ETag::from_opaque("W/\"datetime'2021-09-21T00%3A53%3A42.0078278Z'\"")
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
        match Response::decode_changes(&with_body(body), 2) {
            Ok(Response::Refused(answer)) => Refusal::read(&answer),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn on_cosmos_db_an_error_without_an_index_is_that_of_a_missing_table() {
        for (message, expected) in [
            (
                "The specified resource does not exist.",
                ErrorCode::TableNotFound,
            ),
            (
                "0:The specified resource does not exist.",
                ErrorCode::ResourceNotFound,
            ),
        ] {
            let error = ServiceError::new(ErrorCode::ResourceNotFound, message);
            let body = error_body::write(&error, ErrorForm::Cosmos, "id", Timestamp::UNIX_EPOCH);
            let mut answer = HttpResponse::new(Bytes::from(body));
            *answer.status_mut() = StatusCode::NOT_FOUND;
            let refusal = Refusal::read_from_cosmos_db(&answer);
            assert_eq!(refusal.error.code(), &expected, "{message}");
            assert_eq!(refusal.error.status(), StatusCode::NOT_FOUND);
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
        match Response::decode_changes(&with_body(body), 2) {
            Ok(Response::Changed(etags)) => {
                assert_eq!(etags, [Some(ETag::from_opaque("W/\"1\"")), None]);
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
        let body = error_body::write(&refusal.to_error(), ErrorForm::Storage, "id", now);
        let mut answer = HttpResponse::new(body.into());
        *answer.status_mut() = StatusCode::PRECONDITION_FAILED;
        assert_eq!(Refusal::read(&answer), refusal);
    }

    #[test]
    fn another_number_of_responses_is_malformed() {
        let encoded = |count| {
            let mut responses = ChangeResponses::new(id(), count);
            (0..count).for_each(|_| responses.updated(&etag()));
            responses.into_response(Vec::new())
        };
        assert!(Response::decode_changes(&encoded(2), 2).is_ok());
        assert!(Response::decode_changes(&encoded(1), 2).is_err());
        assert!(Response::decode_changes(&encoded(3), 2).is_err());
        for body in [
            "",
            "--batchresponse_b--",
            "--batchresponse_b\r\n\r\nx\r\n--batchresponse_b--",
        ] {
            assert!(Response::decode_changes(&with_body(body), 1).is_err());
            assert!(Response::decode_query(&with_body(body)).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_etags_of_changes_are_read_back(kinds in prop::collection::vec(0..4, 1..5)) {
            let endpoint = "https://acct.table.core.windows.net".parse().unwrap();
            let table = TableName::new("people").unwrap();
            let key = EntityKey::new("003", "x").unwrap();
            let mut responses = ChangeResponses::new(id(), kinds.len());
            for kind in &kinds {
                let (prefer, content) = match kind {
                    2 => (Prefer::ReturnNoContent, None),
                    _ => (Prefer::ReturnContent, Some((MetadataLevel::Minimal, &b"{\"a\":1}"[..]))),
                };
                match kind {
                    0 => responses.deleted(),
                    1 => responses.updated(&etag()),
                    _ => responses.inserted(&endpoint, (&table, &key), &etag(), prefer, content),
                }
            }
            let response = responses.into_response(Vec::new());
            let Ok(Response::Changed(etags)) = Response::decode_changes(&response, kinds.len()) else {
                panic!("{response:?}");
            };
            let expected: Vec<_> = kinds.iter().map(|kind| (*kind > 0).then(etag)).collect();
            prop_assert_eq!(etags, expected);
        }

        #[test]
        fn a_whole_response_is_read_back(
            status in 200..600_u16,
            etag in prop::option::of("[!-~]{1,9}"),
            body in "([ -~]|\r\n|\n){0,60}[!-~]",
            is_query: bool,
        ) {
            let mut answer = HttpResponse::new(Bytes::from(body));
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            if let Some(etag) = etag {
                answer.headers_mut().insert(header::ETAG, etag.parse().unwrap());
            }
            let decoded = if is_query {
                Response::decode_query(&query_response(id(), answer.clone()))
            } else {
                Response::decode_changes(&refusal_response(id(), answer.clone(), Vec::new()), 1)
            };
            match decoded {
                Ok(Response::Queried(decoded) | Response::Refused(decoded)) => {
                    prop_assert_eq!(decoded.status(), answer.status());
                    prop_assert_eq!(decoded.body(), answer.body());
                    prop_assert_eq!(decoded.headers().get(header::ETAG), answer.headers().get(header::ETAG));
                }
                Ok(Response::Changed(etags)) => {
                    prop_assert!(!is_query && answer.status().is_success());
                    let etag = answer.headers().get(header::ETAG).map(|etag| etag.to_str().unwrap());
                    prop_assert_eq!(etags, [etag.map(ETag::from_opaque)]);
                }
                Err(error) => panic!("{error}"),
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes: Vec<u8>, text in "(--batchresponse_b(--)?\r?\n|HTTP/1.1 [0-9]{0,3}|\n|[a: {}-]){0,20}") {
            for body in [Bytes::from(bytes), Bytes::from(text)] {
                let mut response = with_body("");
                *response.body_mut() = body;
                let _ = Response::decode_changes(&response, 1);
                let _ = Response::decode_query(&response);
            }
        }
    }
}
