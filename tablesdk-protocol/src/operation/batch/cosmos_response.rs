//! The response to a batch as Cosmos DB writes it: lines that end with LF or with CR LF, and parts
//! with few headers.
//!
//! With `⏎` for CR LF, and all other lines with LF:
//!
//! ```text
//! --batchresponse_X
//! Content-Type: multipart/mixed; boundary=changesetresponse_X⏎
//! ⏎
//! --changesetresponse_X
//! Content-Type: application/http
//! Content-Transfer-Encoding: binary
//!
//! HTTP/1.1 204 No Content⏎
//! Content-ID: 1⏎
//! ⏎
//! ⏎
//! --changesetresponse_X--
//! --batchresponse_X--⏎
//! ```
//!
//! The official client for .NET cannot read a response with other line ends.

use std::io::Write as _;

use bytes::Bytes;
use http::{HeaderName, Response as HttpResponse, header};

use super::response_writer::{accepted, batch_boundary, change_set_boundary};
use crate::types::Guid;
use crate::types::header::{
    CONTENT_ID, PREFERENCE_APPLIED, X_MS_CONTINUATION_NEXT_PARTITION_KEY,
    X_MS_CONTINUATION_NEXT_ROW_KEY,
};
use crate::wire::http_message;

/// The responses to changes, in their order, or the response to the one that was refused.
pub fn cosmos_changes_response(
    id: Guid,
    parts: impl IntoIterator<Item = HttpResponse<Bytes>>,
) -> HttpResponse<Bytes> {
    let (batch, change_set) = (batch_boundary(id), change_set_boundary(id));
    let mut body = Vec::new();
    let start = format!("--{batch}\nContent-Type: multipart/mixed; boundary={change_set}\r\n\r\n");
    body.extend_from_slice(start.as_bytes());
    for part in parts {
        write_part(&mut body, &change_set, part);
    }
    push_end(&mut body, &change_set, "\n");
    push_end(&mut body, &batch, "\r\n");
    accepted(&batch, body)
}

/// The response to a query.
// SERVICE: assumed to be as those of changes.
pub fn cosmos_query_response(id: Guid, part: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    let batch = batch_boundary(id);
    let mut body = Vec::new();
    write_part(&mut body, &batch, part);
    push_end(&mut body, &batch, "\r\n");
    accepted(&batch, body)
}

fn write_part(body: &mut Vec<u8>, boundary: &str, mut part: HttpResponse<Bytes>) {
    let start = format!(
        "--{boundary}\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
    );
    body.extend_from_slice(start.as_bytes());
    let mut headers = std::mem::take(part.headers_mut());
    for name in &HEADERS {
        if let Some(value) = headers.remove(name) {
            part.headers_mut().insert(name, value);
        }
    }
    // The line end after an error is the one before the boundary.
    let part = part.map(|body| body.slice(..body.trim_ascii_end().len()));
    http_message::write_response(body, &part, &HEADERS);
}

fn push_end(body: &mut Vec<u8>, boundary: &str, line_end: &str) {
    write!(body, "--{boundary}--{line_end}").expect("writing to memory cannot fail");
}

/// All headers of a part, in their order. Those of a continuation are in the response to a query.
static HEADERS: [HeaderName; 7] = [
    X_MS_CONTINUATION_NEXT_PARTITION_KEY,
    X_MS_CONTINUATION_NEXT_ROW_KEY,
    header::ETAG,
    PREFERENCE_APPLIED,
    header::LOCATION,
    header::CONTENT_TYPE,
    CONTENT_ID,
];

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};

    use super::*;

    fn part(
        status: StatusCode,
        headers: &[(&HeaderName, &'static str)],
        body: &'static str,
    ) -> HttpResponse<Bytes> {
        let mut part = HttpResponse::new(Bytes::from_static(body.as_bytes()));
        *part.status_mut() = status;
        for (name, value) in headers {
            let value = HeaderValue::from_static(value);
            part.headers_mut().insert(*name, value);
        }
        part
    }

    fn text(response: &HttpResponse<Bytes>) -> String {
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        let text = String::from_utf8(response.body().to_vec()).unwrap();
        text.replace(&format!("_{}", Guid::default()), "_X")
    }

    #[test]
    fn changes_have_the_bytes_of_cosmos_db() {
        let etag = "W/\"datetime'2021-04-07T20%3A40%3A53.3982216Z'\"";
        let location = "https://acct.table.cosmos.azure.com/people(PartitionKey='003',RowKey='x')";
        let inserted = [
            (&header::SERVER, "none"),
            (&CONTENT_ID, "1"),
            (&header::LOCATION, location),
            (&PREFERENCE_APPLIED, "return-no-content"),
            (&header::ETAG, etag),
        ];
        let echoed = [
            (&CONTENT_ID, "3"),
            (
                &header::CONTENT_TYPE,
                "application/json;odata=minimalmetadata",
            ),
            (&header::ETAG, etag),
        ];
        let response = cosmos_changes_response(
            Guid::default(),
            [
                part(StatusCode::NO_CONTENT, &inserted, ""),
                part(StatusCode::NO_CONTENT, &[(&CONTENT_ID, "2")], ""),
                part(StatusCode::CREATED, &echoed, "{\"a\":1}"),
            ],
        );
        assert_eq!(
            text(&response),
            "--batchresponse_X\nContent-Type: multipart/mixed; boundary=changesetresponse_X\r\n\r\n\
            --changesetresponse_X\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
            HTTP/1.1 204 No Content\r\n\
            ETag: W/\"datetime'2021-04-07T20%3A40%3A53.3982216Z'\"\r\n\
            Preference-Applied: return-no-content\r\n\
            Location: https://acct.table.cosmos.azure.com/people(PartitionKey='003',RowKey='x')\r\n\
            Content-ID: 1\r\n\r\n\r\n\
            --changesetresponse_X\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
            HTTP/1.1 204 No Content\r\nContent-ID: 2\r\n\r\n\r\n\
            --changesetresponse_X\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
            HTTP/1.1 201 Created\r\n\
            ETag: W/\"datetime'2021-04-07T20%3A40%3A53.3982216Z'\"\r\n\
            Content-Type: application/json;odata=minimalmetadata\r\n\
            Content-ID: 3\r\n\r\n\
            {\"a\":1}\r\n\
            --changesetresponse_X--\n--batchresponse_X--\r\n"
        );
    }

    #[test]
    fn a_refusal_and_a_query_have_the_bytes_of_cosmos_db() {
        let json = (&header::CONTENT_TYPE, "application/json;odata=fullmetadata");
        let refused = part(StatusCode::NOT_FOUND, &[json], "{\"odata.error\":{}}\r\n");
        let head = "Content-Type: application/http\nContent-Transfer-Encoding: binary\n\n\
            HTTP/1.1 404 Not Found\r\nContent-Type: application/json;odata=fullmetadata\r\n\r\n\
            {\"odata.error\":{}}\r\n";
        let response = cosmos_changes_response(Guid::default(), [refused.clone()]);
        assert_eq!(
            text(&response),
            format!(
                "--batchresponse_X\nContent-Type: multipart/mixed; boundary=changesetresponse_X\r\n\r\n\
                --changesetresponse_X\n{head}--changesetresponse_X--\n--batchresponse_X--\r\n"
            )
        );
        assert_eq!(
            text(&cosmos_query_response(Guid::default(), refused)),
            format!("--batchresponse_X\n{head}--batchresponse_X--\r\n")
        );
    }
}
