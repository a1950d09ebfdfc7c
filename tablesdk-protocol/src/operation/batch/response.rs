//! The answer to a batch: the answers to its operations, each encoded and decoded as if it stood alone.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response as HttpResponse, StatusCode, header};

use super::Request;
use crate::limits::BATCH_CHANGES_MAX;
use crate::operation::MalformedResponse;
use crate::wire::header::{DATA_SERVICE_ID, DATA_SERVICE_VERSION, PREFERENCE_APPLIED};
use crate::wire::multipart::{self, Part};
use crate::wire::{error_body, http_message};
use crate::{Guid, ServiceError};

/// 202, with the answers to the operations, each as an answer of its own: what encodes and decodes one that stands alone
/// does so with these.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a batch ends in one of these ways")]
pub enum Response {
    /// The changes were carried out. One answer for each, in order.
    Changed(Vec<HttpResponse<Bytes>>),
    /// The answer to the query: found or refused.
    Queried(HttpResponse<Bytes>),
    /// A change was refused, and none was carried out. The answer to that one, for [`Refusal::read`].
    Refused(HttpResponse<Bytes>),
}

impl Response {
    /// The HTTP answer. The boundaries are made of `id`. The answers in `more` go to what followed the set of changes.
    pub fn encode(self, id: Guid, more: Vec<HttpResponse<Bytes>>) -> HttpResponse<Bytes> {
        let batch = format!("batchresponse_{id}");
        let change_set = format!("changesetresponse_{id}");
        let mut body = Vec::new();
        let write = |body: &mut Vec<u8>, boundary: &str, part, order: &[HeaderName]| {
            multipart::start_http(body, boundary);
            http_message::write_response(body, &with_common_headers(part), order);
        };
        let changes = match self {
            Self::Changed(parts) => parts,
            Self::Refused(part) => vec![part],
            Self::Queried(part) => {
                write(&mut body, &batch, part, &QUERY_RESPONSE_HEADERS);
                Vec::new()
            }
        };
        if !changes.is_empty() {
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

    /// Reads the HTTP answer of a success.
    ///
    /// # Errors
    ///
    /// When it cannot be taken apart, or has another number of answers than the request has operations.
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
    /// Counts from 0. What another server says it is, which may be none of ours.
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

    /// Reads the answer that refuses an operation.
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

/// Adds what an answer has that stands alone, where it comes from the front of the server.
fn with_common_headers(mut part: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
    // SERVICE: an answer to an update or a delete is older than the others.
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

/// The most parts that an answer is read to, for the sake of a bound.
const PARTS_MAX: usize = BATCH_CHANGES_MAX;
