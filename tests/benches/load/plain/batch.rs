//! Entity group transactions: a request with a change set, and the response to it.

use std::fmt::Write as _;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode, Uri, header};
use http_body_util::Full;
use memchr::memmem::Finder;

use super::store::{Change, Precondition};

/// The response to a batch, whose changes `apply` makes.
pub(super) async fn respond<A, F>(
    head: &Parts,
    body: &[u8],
    apply: A,
) -> Result<Response<Full<Bytes>>, StatusCode>
where
    A: FnOnce(Vec<Change>) -> F,
    F: Future<Output = Result<Vec<Option<String>>, StatusCode>>,
{
    let content_type = head.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let body = std::str::from_utf8(body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let changes = changes(content_type.unwrap_or_default(), body);
    let outcome = apply(changes.ok_or(StatusCode::BAD_REQUEST)??).await;
    let mut text =
        "--batchresponse_b\r\nContent-Type: multipart/mixed; boundary=changesetresponse_c\r\n\r\n"
            .to_owned();
    match outcome {
        Ok(etags) => {
            for etag in etags {
                text += PART;
                text += "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\n";
                if let Some(etag) = etag {
                    let _ = write!(text, "ETag: {etag}\r\n");
                }
                text += "\r\n\r\n";
            }
        }
        Err(status) => {
            text += PART;
            let _ = write!(text, "HTTP/1.1 {status}\r\n\r\n\r\n");
        }
    }
    text += "--changesetresponse_c--\r\n--batchresponse_b--\r\n";
    let response = Response::builder()
        .status(StatusCode::ACCEPTED)
        .header(
            header::CONTENT_TYPE,
            "multipart/mixed; boundary=batchresponse_b",
        )
        .header("x-ms-version", super::VERSION)
        .body(Full::new(text.into()));
    response.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

/// The changes of the only change set; `None` if the body is malformed.
fn changes(content_type: &str, body: &str) -> Option<Result<Vec<Change>, StatusCode>> {
    let outer = parts(content_type, body)?.next()?;
    let (head, set) = outer.split_once("\r\n\r\n")?;
    let content_type = header_of(head, "content-type")?;
    let changes: Option<Vec<_>> = parts(content_type, set)?.map(change).collect();
    Some(changes?.into_iter().collect())
}

fn change(part: &str) -> Option<Result<Change, StatusCode>> {
    let (_, request) = part.split_once("\r\n\r\n")?;
    let (head, body) = request.split_once("\r\n\r\n")?;
    let mut line = head.lines().next()?.split(' ');
    let (method, uri) = (line.next()?, line.next()?);
    let uri: Uri = uri.parse().ok()?;
    let precondition = header_of(head, "if-match").map(Precondition::of);
    let change = super::resource(uri.path())
        .and_then(|(table, key)| Change::new(method, table, key, precondition, body.as_bytes()));
    Some(change)
}

/// The parts between the delimiters of a multipart body.
fn parts<'a>(content_type: &str, body: &'a str) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
    let (_, boundary) = content_type.split_once("boundary=")?;
    let delimiter = format!("--{}", boundary.trim_matches('"'));
    let finder = Finder::new(&delimiter).into_owned();
    let mut rest = body.get(finder.find(body.as_bytes())? + delimiter.len()..)?;
    Some(std::iter::from_fn(move || {
        let (part, after) = rest.split_at_checked(finder.find(rest.as_bytes())?)?;
        rest = after.get(delimiter.len()..)?;
        Some(part)
    }))
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

const PART: &str = "--changesetresponse_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
