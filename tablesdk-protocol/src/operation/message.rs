//! The parts that the requests and responses of all operations share.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};

use super::QueryOptions;
use super::headers::RequestHeaders;
use super::{DATA_SERVICE_VERSION, JSON, XML};
use crate::filter::{Filter, FilterSyntax, ParseFilterError};
use crate::path::{Endpoint, ResourcePath};
use crate::types::header as name;
use crate::types::text::whole_number;
use crate::types::{ETag, ErrorCode, ServiceError};
use crate::wire::json::MetadataLevel;

/// A request as the server has it once it knows the account and has read the URL.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The account, whose name the operations of a batch may repeat.
    pub account: Arc<str>,
    /// The method on the wire.
    pub method: Method,
    /// The resource that the path addresses.
    pub resource: ResourcePath,
    /// The decoded query.
    pub options: QueryOptions,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// The rules by which the server decodes requests.
    pub rules: RequestRules,
}

/// The rules by which a server decodes requests, where the kinds of servers differ. The default is
/// Azure Table storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a server sets each rule")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent rules, each with a name"
)]
pub struct RequestRules {
    /// `PATCH`, alone and in a batch. Without it, a merge is a `POST` with `X-HTTP-Method`.
    pub accepts_patch: bool,
    /// A `$top` above 1,000 is refused. Otherwise it counts as 1,000.
    pub refuses_large_top: bool,
    /// Which filters are read.
    pub filter_syntax: FilterSyntax,
    /// `$format` is ignored, and the metadata is minimal if the request has it.
    pub ignores_format: bool,
    /// Blanks in `$select` are a part of the names. Otherwise they are ignored.
    pub keeps_blanks_of_select: bool,
    /// More than five CORS rules are refused.
    pub limits_cors_rules: bool,
}

impl Default for RequestRules {
    fn default() -> Self {
        Self {
            accepts_patch: true,
            refuses_large_top: true,
            filter_syntax: FilterSyntax::Service,
            ignores_format: false,
            keeps_blanks_of_select: false,
            limits_cors_rules: true,
        }
    }
}

/// The parts of a request that an operation reads, whether the request came alone or in a batch.
pub(super) struct RequestParts<'r> {
    pub(super) account: &'r Arc<str>,
    pub(super) options: &'r QueryOptions,
    pub(super) headers: RequestHeaders<'r>,
    pub(super) body: Bytes,
    pub(super) rules: RequestRules,
}

impl RequestParts<'_> {
    /// `$top`, from 0 to 1,000.
    pub(super) fn top(&self) -> Result<Option<usize>, ServiceError> {
        if self.rules.refuses_large_top {
            self.options.top()
        } else {
            self.options.capped_top()
        }
    }

    /// `$filter`; an empty one counts as absent.
    pub(super) fn filter(&self) -> Result<Option<Filter>, ServiceError> {
        let syntax = self.rules.filter_syntax;
        let Some(text) = self.filter_text() else {
            return Ok(None);
        };
        Filter::read(text, syntax).map(Some).map_err(|error| {
            let message: String = match syntax {
                FilterSyntax::Azurite => {
                    "The query condition specified in the request is invalid.".into()
                }
                _ if error.is_unsupported() => return ErrorCode::NotImplemented.into(),
                FilterSyntax::CosmosDb => "Request url is invalid.".into(),
                _ => error.service_message(text),
            };
            ServiceError::new(ErrorCode::InvalidInput, message)
        })
    }

    /// Why the service refuses a filter that this server accepts.
    pub(super) fn filter_refusal(&self) -> Option<ParseFilterError> {
        if self.rules.filter_syntax != FilterSyntax::Azurite {
            return None;
        }
        Filter::read(self.filter_text()?, FilterSyntax::Service).err()
    }

    fn filter_text(&self) -> Option<&str> {
        let text = self.options.get("$filter");
        text.filter(|text| !text.trim().is_empty())
    }

    /// The level of metadata that `$format`, or else `Accept`, asks for, in a version that has
    /// JSON.
    pub(super) fn metadata_level(&self) -> Result<MetadataLevel, ServiceError> {
        let level = self.accepted_level()?;
        self.require_version_with_json()?;
        Ok(level)
    }

    /// The level of metadata that `$format`, or else `Accept`, asks for.
    pub(super) fn accepted_level(&self) -> Result<MetadataLevel, ServiceError> {
        match self.options.get("$format") {
            Some(_) if self.rules.ignores_format => Ok(MetadataLevel::Minimal),
            Some(format) => MetadataLevel::from_accept(format),
            None => {
                if let Some(text) = self.headers.only_text(header::ACCEPT) {
                    return MetadataLevel::from_accept(text);
                }
                let mut texts = self.headers.texts(header::ACCEPT);
                match (texts.next(), texts.next()) {
                    (None, _) => MetadataLevel::from_accept(""),
                    (Some(text), None) => MetadataLevel::from_accept(text),
                    (Some(first), Some(second)) => {
                        let texts: Vec<_> = [first, second].into_iter().chain(texts).collect();
                        MetadataLevel::from_accept(&texts.join(","))
                    }
                }
            }
        }
    }

    /// The names in `$select`, as [`QueryOptions::select`] reads them.
    pub(super) fn select(&self) -> Result<Option<Vec<String>>, ServiceError> {
        let names = self.options.select(self.rules.keeps_blanks_of_select)?;
        // The first version of OData has no projection.
        if names.is_some() && data_service_version(self.headers) == Some(1) {
            return Err(ErrorCode::InvalidInput.into());
        }
        Ok(names)
    }

    /// Refuses JSON in the versions that do not have it. A request without versions speaks the
    /// newest ones.
    fn require_version_with_json(&self) -> Result<(), ServiceError> {
        let version = self.headers.first(name::X_MS_VERSION);
        // SERVICE: the Go client sends empty versions with the changes of a batch, and they are the
        // same as none.
        let version = version.filter(|version| !version.is_empty());
        // Dates of this form compare as strings. Other forms are refused elsewhere.
        let is_older = version.is_some_and(|version| version < FIRST_VERSION_WITH_JSON);
        if is_older || data_service_version(self.headers).is_some_and(|version| version < 3) {
            return Err(ErrorCode::JsonFormatNotSupported.into());
        }
        Ok(())
    }

    /// Refuses a body of another type than JSON.
    pub(super) fn require_json(&self) -> Result<(), ServiceError> {
        let content_type = self.headers.text(header::CONTENT_TYPE);
        let media_type = content_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default();
        if media_type.trim().eq_ignore_ascii_case(JSON) {
            self.require_version_with_json()
        } else {
            Err(ErrorCode::MediaTypeNotSupported.into())
        }
    }
}

/// The major version of OData that the client speaks: the newest that it reads, or else the one
/// that the request has.
fn data_service_version(headers: RequestHeaders<'_>) -> Option<u32> {
    let newest = headers.first(name::MAX_DATA_SERVICE_VERSION);
    let version = newest.or_else(|| headers.first(name::DATA_SERVICE_VERSION))?;
    if version == DATA_SERVICE_VERSION.as_bytes() {
        return Some(3);
    }
    let (major, _) = name::text(version)?.trim().split_once('.')?;
    whole_number(major)
}

/// The `Prefer` header of a request: a response with the created entity or table, or without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the Prefer header has these values, or is absent"
)]
pub enum Prefer {
    /// No header: the service returns the content.
    #[default]
    Unspecified,
    /// `return-content`.
    ReturnContent,
    /// `return-no-content`.
    ReturnNoContent,
}

impl Prefer {
    /// The value of the `Prefer` and `Preference-Applied` headers.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Unspecified => None,
            Self::ReturnContent => Some("return-content"),
            Self::ReturnNoContent => Some("return-no-content"),
        }
    }

    /// Reads the header of a request that came alone.
    pub fn of(headers: &HeaderMap) -> Self {
        Self::from_headers(RequestHeaders::Alone(headers))
    }

    /// Reads the header: a list in any number of parts, whose items have parameters and any case.
    /// The first of two items that contradict each other holds. Preferences that the service does
    /// not know are no error, as RFC 7240 wants it.
    pub(super) fn from_headers(headers: RequestHeaders<'_>) -> Self {
        match headers.first(name::PREFER) {
            None => return Self::Unspecified,
            Some(b"return-content") => return Self::ReturnContent,
            Some(b"return-no-content") => return Self::ReturnNoContent,
            Some(_) => {}
        }
        let lists = headers.texts(name::PREFER);
        let mut preferences = lists.flat_map(|list| list.split(','));
        let known = preferences.find_map(|preference| {
            let preference = preference.split(';').next()?.trim();
            [Self::ReturnContent, Self::ReturnNoContent]
                .into_iter()
                .find(|known| {
                    let known = known.as_str();
                    known.is_some_and(|known| preference.eq_ignore_ascii_case(known))
                })
        });
        known.unwrap_or_default()
    }
}

/// A request without a body: method, URL, and the headers that all operations have.
pub(super) fn request(
    method: Method,
    endpoint: &Endpoint,
    resource: &ResourcePath,
    options: &QueryOptions,
) -> Request<Bytes> {
    request_to(method, endpoint.join(format_args!("{resource}{options}")))
}

/// A request to a URL, with the headers that all operations have.
pub(super) fn request_to(method: Method, uri: Uri) -> Request<Bytes> {
    const ACCEPT: HeaderValue = HeaderValue::from_static(MetadataLevel::Minimal.accept());
    let mut request = bare(method, uri, ACCEPT);
    let version = HeaderValue::from_static(DATA_SERVICE_VERSION);
    let headers = request.headers_mut();
    headers.insert(name::DATA_SERVICE_VERSION, version);
    request
}

/// A request whose response is XML. `path` needs no escaping.
pub(super) fn xml_request(
    method: Method,
    endpoint: &Endpoint,
    path: &str,
    options: &QueryOptions,
) -> Request<Bytes> {
    let uri = endpoint.join(format_args!("{path}{options}"));
    bare(method, uri, HeaderValue::from_static(XML))
}

fn bare(method: Method, uri: Uri, accept: HeaderValue) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    request.headers_mut().insert(header::ACCEPT, accept);
    request
}

/// Adds a body of JSON.
pub(super) fn with_json(request: Request<Bytes>, body: Bytes) -> Request<Bytes> {
    with_body(request, HeaderValue::from_static(JSON), body)
}

/// Adds a body of XML.
pub(super) fn with_xml(request: Request<Bytes>, body: Bytes) -> Request<Bytes> {
    with_body(request, HeaderValue::from_static(XML), body)
}

/// Adds a body of that type.
pub(super) fn with_body(
    mut request: Request<Bytes>,
    content_type: HeaderValue,
    body: Bytes,
) -> Request<Bytes> {
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    *request.body_mut() = body;
    request
}

/// A response with a body of JSON or XML, or without a body.
#[derive(Clone, Debug)]
pub(super) struct Answer(Response<Bytes>);

impl Answer {
    pub(super) fn json(status: http::StatusCode, level: MetadataLevel, body: Bytes) -> Self {
        // Checked when this is compiled.
        let content_type = match level {
            MetadataLevel::None => {
                const { HeaderValue::from_static(MetadataLevel::None.content_type()) }
            }
            MetadataLevel::Minimal => {
                const { HeaderValue::from_static(MetadataLevel::Minimal.content_type()) }
            }
            MetadataLevel::Full => {
                const { HeaderValue::from_static(MetadataLevel::Full.content_type()) }
            }
        };
        Self::new(status, body).with_type(content_type)
    }

    pub(super) fn xml(status: http::StatusCode, body: Bytes) -> Self {
        Self::new(status, body).with_type(const { HeaderValue::from_static(XML) })
    }

    pub(super) fn empty() -> Self {
        Self::new(http::StatusCode::NO_CONTENT, Bytes::new())
    }

    fn new(status: http::StatusCode, body: Bytes) -> Self {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        // With those that every response has, so that they are not moved when the server adds
        // these.
        *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
        Self(response)
    }

    fn with_type(mut self, content_type: HeaderValue) -> Self {
        let headers = self.0.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        self
    }

    /// Adds a header. A value that no header can hold is left out: all of ours are ASCII.
    pub(super) fn with(mut self, name: http::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.headers_mut().insert(name, value);
        }
        self
    }

    pub(super) fn with_etag(mut self, etag: &ETag) -> Self {
        if let Ok(value) = HeaderValue::from_bytes(etag.as_bytes()) {
            self.0.headers_mut().insert(header::ETAG, value);
        }
        self
    }

    /// The headers of what was created at that URL.
    pub(super) fn created(mut self, location: String, prefer: Prefer) -> Self {
        let headers = self.0.headers_mut();
        if let Ok(location) = HeaderValue::try_from(location) {
            if prefer == Prefer::ReturnNoContent {
                headers.insert(name::DATA_SERVICE_ID, location.clone());
            }
            headers.insert(header::LOCATION, location);
        }
        if let Some(applied) = prefer.as_str() {
            let applied = HeaderValue::from_static(applied);
            headers.insert(name::PREFERENCE_APPLIED, applied);
        }
        self
    }

    pub(super) fn into_response(self) -> Response<Bytes> {
        self.0
    }
}

/// Reads a header that must be there.
pub(super) fn require_etag(response: &Response<Bytes>) -> Result<ETag, MalformedResponse> {
    etag(response).ok_or(MalformedResponse::without_etag())
}

pub(super) fn etag(response: &Response<Bytes>) -> Option<ETag> {
    str_of(response, &header::ETAG).map(ETag::of)
}

/// Reads a header; an empty one counts as absent.
pub(super) fn text(response: &Response<Bytes>, name: &http::HeaderName) -> Option<String> {
    str_of(response, name).map(str::to_owned)
}

fn str_of<'r>(response: &'r Response<Bytes>, name: &http::HeaderName) -> Option<&'r str> {
    let value = response.headers().get(name)?.to_str().ok()?;
    (!value.is_empty()).then_some(value)
}

/// A success response that lacks a required part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response lacks {what}")]
pub struct MalformedResponse {
    pub(super) what: &'static str,
}

impl MalformedResponse {
    pub(super) const fn without_etag() -> Self {
        Self {
            what: "the ETag header",
        }
    }
}

/// As many headers as most responses have.
const HEADERS: usize = 12;

/// The version from which on the service speaks JSON.
const FIRST_VERSION_WITH_JSON: &[u8] = b"2013-08-15";

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = http::HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::new();
        headers.extend(pairs.map(|(name, value)| (Some(name), value)));
        headers
    }

    #[test]
    fn a_preference_is_found_in_every_form_of_the_header() {
        for (values, expected) in [
            (&[][..], Prefer::Unspecified),
            (&["return-content"], Prefer::ReturnContent),
            (&["Return-No-Content"], Prefer::ReturnNoContent),
            (
                &["respond-async, return-no-content"],
                Prefer::ReturnNoContent,
            ),
            (
                &["wait=5", "return-no-content; foo=\"bar\""],
                Prefer::ReturnNoContent,
            ),
            (&["return-content,return-no-content"], Prefer::ReturnContent),
            (&["", " ,; ,return-content ;a"], Prefer::ReturnContent),
            (&["return-contents"], Prefer::Unspecified),
            (&["return=minimal"], Prefer::Unspecified),
        ] {
            let pairs: Vec<_> = values.iter().map(|value| ("prefer", *value)).collect();
            assert_eq!(
                Prefer::from_headers(RequestHeaders::Alone(&headers(&pairs))),
                expected,
                "{values:?}"
            );
        }
    }

    #[test]
    fn the_newest_version_that_a_client_reads_counts() {
        for (pairs, expected) in [
            (&[][..], None),
            (&[("dataserviceversion", "3.0")][..], Some(3)),
            (&[("dataserviceversion", "1.0;NetFx")], Some(1)),
            (
                &[
                    ("dataserviceversion", "1.0"),
                    ("maxdataserviceversion", "3.0;NetFx"),
                ],
                Some(3),
            ),
            (&[("dataserviceversion", "latest")], None),
        ] {
            let headers = headers(pairs);
            let version = data_service_version(RequestHeaders::Alone(&headers));
            assert_eq!(version, expected, "{pairs:?}");
        }
    }
}
