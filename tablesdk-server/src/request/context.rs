//! The facts of one request: its id, account and endpoint, the time, and the values that its
//! response echoes.
//!
//! This module adds the common headers to every response, and the body to every error. It knows
//! neither credentials nor operations. See
//! <https://learn.microsoft.com/rest/api/storageservices/common-rest-api-response-headers> for the
//! headers.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use tablesdk_protocol::auth::SharedKey;
use tablesdk_protocol::auth::sas::SignedSas;
use tablesdk_protocol::header::{
    DATA_SERVICE_ID, PREFERENCE_APPLIED, X_HTTP_METHOD, X_MS_CLIENT_REQUEST_ID, X_MS_ERROR_CODE,
    X_MS_REQUEST_ID, X_MS_VERSION,
};
use tablesdk_protocol::limits::{CLIENT_REQUEST_ID_BYTES_MAX, OPERATION_SECONDS_MAX};
use tablesdk_protocol::operation::{Prefer, QueryOptions};
use tablesdk_protocol::wire::error_body;
use tablesdk_protocol::wire::json::MetadataLevel;
use tablesdk_protocol::{CorsRule, Endpoint, ErrorCode, Guid, ServiceError, Timestamp};

use crate::flavor::Flavor;
use crate::request::address::{Address, Location};
use crate::request::connection::Connection;
use crate::request::cors::Cors;
use crate::request::entity_counts::EntityCounts;
use crate::request::memory::RequestMemory;
use crate::time::time_limit::Timer;

/// The facts of a request, before anything is checked.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each with a name"
)]
pub(crate) struct Context {
    address: Address,
    /// The key of the account, for a request that gets a user delegation key.
    pub(crate) account_key: Option<Box<SharedKey>>,
    client_request_id: Option<HeaderValue>,
    /// The CORS headers of the response.
    pub(crate) cors: Cors,
    /// The CORS rules of the account, if they were read with what the request asks for.
    pub(crate) cors_rules: OnceLock<Arc<[CorsRule]>>,
    /// Counts the entities that the request reads, for the journal of a test.
    pub(crate) entity_counts: Option<Arc<EntityCounts>>,
    /// The service that the server behaves like.
    pub(crate) flavor: Flavor,
    /// The form of an error's body.
    error_format: ErrorFormat,
    /// The partition key before which the page of a query ends, as a test demands.
    pub(crate) page_end: Option<Arc<str>>,
    /// True if the protocol version of the request cannot be read.
    has_malformed_version: bool,
    /// True if the request is a GET.
    is_get: bool,
    /// `$select`, with its blanks and commas.
    select_text: Option<Box<str>>,
    /// Which preference a write has, and whether it is a POST.
    preference: Option<(Prefer, bool)>,
    /// True if the log contains the keys of entities.
    pub(crate) logs_entity_keys: bool,
    /// True if each request is logged at the level INFO, and not at DEBUG.
    pub(crate) logs_requests_at_info: bool,
    /// True if `ServerBusy` names a time to wait: a database that is started again, or fails over,
    /// needs some seconds.
    pub(crate) names_retry_after: bool,
    /// `None` for a request without a socket.
    memory: Option<Arc<RequestMemory>>,
    /// The time of the request.
    pub(crate) now: Timestamp,
    /// The time of the client's clock, if that is another one.
    pub(crate) client_time: Option<Timestamp>,
    /// True if the response has the date of the server's clock. Otherwise the socket adds that of
    /// the system, if there is a socket.
    pub(crate) is_dated: bool,
    /// The address of the client; `None` without a socket.
    pub(crate) peer: Option<IpAddr>,
    /// The id that the server gave the request.
    pub(crate) request_id: Guid,
    /// How long the operation may take.
    pub(crate) timeout: Duration,
    /// The timer of the runtime, if it is known to have one.
    pub(crate) timer: Timer,
    version: Option<HeaderValue>,
}

impl Context {
    /// Reads the facts from the head of a request and the options of its query string. Malformed
    /// values are omitted.
    pub(crate) fn new(
        head: &Parts,
        options: Option<&QueryOptions>,
        connection: &Connection,
        address: Address,
        request_id: Guid,
        now: Timestamp,
    ) -> Self {
        let headers = &head.headers;
        let version = match headers.get(X_MS_VERSION) {
            Some(version) => Some(version.clone()),
            None => options.and_then(|options| version_of_sas(head, options)),
        };
        let version = version.filter(is_version);
        Self {
            address,
            account_key: None,
            client_request_id: headers
                .get(X_MS_CLIENT_REQUEST_ID)
                .filter(|id| is_client_request_id(id))
                .cloned(),
            cors: Cors::default(),
            cors_rules: OnceLock::new(),
            entity_counts: None,
            page_end: None,
            flavor: Flavor::default(),
            error_format: ErrorFormat::of(options, headers),
            has_malformed_version: version.is_none() && headers.contains_key(X_MS_VERSION),
            is_get: head.method == Method::GET,
            select_text: options.and_then(|options| options.get("$select").map(Into::into)),
            preference: preference(head),
            logs_entity_keys: true,
            logs_requests_at_info: false,
            names_retry_after: false,
            memory: connection.memory.clone(),
            now,
            client_time: None,
            is_dated: false,
            peer: connection.peer,
            request_id,
            timeout: options
                .and_then(|options| options.timeout().ok())
                .unwrap_or(Duration::from_secs(OPERATION_SECONDS_MAX)),
            timer: Timer::Unknown,
            version,
        }
    }

    /// The account that the URL names. It may not exist.
    pub(crate) fn account(&self) -> &str {
        &self.address.account
    }

    /// The same, to be shared.
    pub(crate) const fn shared_account(&self) -> &Arc<str> {
        &self.address.account
    }

    /// The account's URL as the client wrote it, for the URLs in a response.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.address.endpoint()
    }

    /// The location of the account that the URL names.
    pub(crate) const fn location(&self) -> Location {
        self.address.location
    }

    /// Notes that the client is authenticated: from now on, the account is charged for the memory
    /// of the request.
    pub(crate) fn is_authenticated(&self) {
        if let Some(memory) = &self.memory {
            memory.belongs_to(self.shared_account());
        }
    }

    /// Reserves memory for a response before it is made. Only for requests that change nothing.
    ///
    /// # Errors
    ///
    /// `ServerBusy` when none is available for some time.
    pub(crate) async fn reserve_response(&self, bytes: usize) -> Result<(), ServiceError> {
        match &self.memory {
            // Few responses wait, so the future is not a part of that of each request.
            Some(memory) => Box::pin(memory.reserve_response(bytes)).await,
            None => Ok(()),
        }
    }

    /// Reserves memory for a response of this size, if it is available at once.
    pub(crate) fn try_reserve_response(&self, bytes: usize) -> bool {
        let memory = self.memory.as_ref();
        memory.is_none_or(|memory| memory.try_reserve_response(bytes))
    }

    /// Returns true if the reserved memory of a response could be increased to this size at once.
    pub(crate) fn response_may_grow(&self, bytes: usize) -> bool {
        let memory = self.memory.as_ref();
        memory.is_none_or(|memory| memory.try_resize_response(bytes))
    }

    /// `$select` as the request has it, if the flavor repeats it.
    pub(crate) fn select_text(&self) -> Option<&str> {
        self.select_text
            .as_deref()
            .filter(|_| self.flavor.has_front_end())
    }

    /// The id that the client gave the request, if it is well-formed.
    pub(crate) const fn client_request_id(&self) -> Option<&HeaderValue> {
        self.client_request_id.as_ref()
    }

    /// The path below the account, percent-encoded.
    pub(crate) fn resource(&self) -> &str {
        self.address.resource()
    }

    /// The protocol version of the request, such as `2019-02-02`.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_ref()?.to_str().ok()
    }

    /// Refuses a version that is not a date, or that the flavor does not know. All others are
    /// treated the same.
    pub(crate) fn check_version(&self, headers: &HeaderMap) -> Result<(), ServiceError> {
        let version = self.version.as_ref().map(HeaderValue::as_bytes);
        let is_known = version.is_some_and(|version| self.flavor.knows_version(version));
        // The version of a signature is not checked.
        if is_known || !headers.contains_key(X_MS_VERSION) {
            return Ok(());
        }
        Err(ErrorCode::InvalidHeaderValue.into())
    }

    /// Adds the headers that every response has.
    pub(crate) fn finish(&self, mut response: Response<Bytes>) -> Response<Bytes> {
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        let is_empty = response.status() == StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        // SERVICE: operations whose bodies are XML have none of these.
        if self.error_format != ErrorFormat::Xml {
            if is_empty {
                self.name_preference(headers, false);
            }
            if !is_error {
                self.add_common(headers, header::CACHE_CONTROL, NO_CACHE);
            }
            let no_sniff = const { HeaderValue::from_static("nosniff") };
            self.add_common(headers, header::X_CONTENT_TYPE_OPTIONS, no_sniff);
        }
        if self.flavor.has_gateway() {
            finish_of_cosmos_db(&mut response);
        }
        let headers = response.headers_mut();
        self.name_server(headers);
        let own_version = self.flavor.own_version().map(HeaderValue::from_static);
        if let Some(version) = own_version.or_else(|| self.version.clone()) {
            self.add_common(headers, X_MS_VERSION, version);
        }
        if let Some(id) = &self.client_request_id {
            self.add_common(headers, X_MS_CLIENT_REQUEST_ID, id.clone());
        }
        self.cors.apply(headers);
        response
    }

    /// The response to a request that an operation refused.
    // SERVICE: such a response has its code only in the body, unless it is XML.
    pub(crate) fn refusal(&self, error: &ServiceError) -> Response<Bytes> {
        let form = self.error_form(error);
        let mut response = self.error_response(error, form);
        if self.flavor.repeats_error_codes() || form == ErrorFormat::Xml {
            self.name_code(&mut response, error);
        }
        match form {
            ErrorFormat::Xml => self.name_reason(&mut response, error),
            ErrorFormat::Unversioned => {}
            _ if self.flavor.has_front_end() && is_of_reader(error.code()) => {}
            _ => {
                let headers = response.headers_mut();
                self.add_common(headers, header::CACHE_CONTROL, NO_CACHE);
                // SERVICE: recorded for tables and entities that exist, for missing keys, and for
                // the names of tables.
                self.name_preference(headers, true);
            }
        }
        self.finish(response)
    }

    /// The response to a refused operation of a batch, without the headers of the whole response.
    pub(crate) fn part_refusal(&self, error: &ServiceError) -> Response<Bytes> {
        let form = if self.flavor.has_gateway() {
            ErrorFormat::Json(MetadataLevel::Full)
        } else {
            self.error_format.or_json()
        };
        let mut response = self.error_response(error, form);
        // SERVICE: recorded for a missing table.
        if !(self.flavor.has_front_end() && *error.code() == ErrorCode::TableNotFound) {
            let headers = response.headers_mut();
            headers.insert(header::CACHE_CONTROL, NO_CACHE);
        }
        if form == ErrorFormat::Xml {
            self.name_code(&mut response, error);
        }
        response
    }

    /// The form of an error of the whole request.
    fn error_form(&self, error: &ServiceError) -> ErrorFormat {
        if self.flavor.has_gateway() {
            return ErrorFormat::Json(self.level_of_cosmos_db(error));
        }
        if !self.flavor.has_front_end() {
            return self.error_format.or_json();
        }
        if self.has_malformed_version && *error.code() == ErrorCode::InvalidHeaderValue {
            return ErrorFormat::Unversioned;
        }
        self.error_format
    }

    /// The metadata of an error of Cosmos DB: all, but for an error of what reads data, and for a
    /// few others.
    // SERVICE: recorded for 400, 404 and 429 of a read, for 409, and for a signature with keys.
    fn level_of_cosmos_db(&self, error: &ServiceError) -> MetadataLevel {
        let has_accepted_level = self.is_get
            || matches!(
                error.status(),
                StatusCode::CONFLICT | StatusCode::NOT_IMPLEMENTED
            );
        match self.error_format.or_json() {
            ErrorFormat::Json(level) if has_accepted_level => level,
            _ => MetadataLevel::Full,
        }
    }

    /// Names the preference of a write that is a POST, or of one that is not.
    fn name_preference(&self, headers: &mut HeaderMap, of_post: bool) {
        if let Some((preference, is_post)) = self.preference
            && is_post == of_post
            && let Some(preference) = preference.as_str()
            && self.flavor.has_front_end()
        {
            headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(preference));
        }
    }

    /// Sends the message of an error as the reason in the first line.
    fn name_reason(&self, response: &mut Response<Bytes>, error: &ServiceError) {
        if self.flavor.has_front_end() {
            let reason = Reason(error.message().to_owned().into());
            response.extensions_mut().insert(reason);
        }
    }

    /// The response to a request that could not be authenticated.
    // SERVICE: the front end sends these. It repeats the code in a header, and echoes neither the
    // version nor the client's id.
    pub(crate) fn unauthenticated(&self, error: &ServiceError) -> Response<Bytes> {
        if self.flavor.has_gateway() {
            // SERVICE: assumed to be as any other error, and to have the challenge.
            let mut response = self.refusal(error);
            challenge(&mut response, error);
            return response;
        }
        let form = match self.error_form(error) {
            ErrorFormat::Any => ErrorFormat::Xml,
            form => form,
        };
        let mut response = self.error_response(error, form);
        if let ErrorFormat::Json(_) = form {
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        if form != ErrorFormat::Unversioned {
            self.name_code(&mut response, error);
        }
        self.name_reason(&mut response, error);
        challenge(&mut response, error);
        let headers = response.headers_mut();
        self.name_server(headers);
        self.cors.apply_to_refusal(headers);
        response
    }

    fn error_response(&self, error: &ServiceError, format: ErrorFormat) -> Response<Bytes> {
        let without_code;
        let error = if self.flavor.omits_code(error) {
            let message = error.message().to_owned();
            without_code = ServiceError::new(ErrorCode::Other(String::new()), message)
                .with_status(error.status());
            &without_code
        } else {
            error
        };
        let (form, request_id) = (self.flavor.error_form(), self.request_id.to_string());
        let (content_type, body) = match format {
            ErrorFormat::Json(level) => (
                level.content_type(),
                error_body::write(error, form, &request_id, self.now),
            ),
            ErrorFormat::Xml => (XML, error_body::write_xml(error, &request_id, self.now)),
            ErrorFormat::Any => (
                "application/xml;charset=utf-8",
                error_body::write_data_xml(error, &request_id, self.now),
            ),
            ErrorFormat::Unversioned => (
                XML,
                error_body::write_unversioned_xml(error, &request_id, self.now),
            ),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = error.status();
        let content_type = HeaderValue::from_static(content_type);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        if self.names_retry_after && *error.code() == ErrorCode::ServerBusy {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    }

    fn name_server(&self, headers: &mut HeaderMap) {
        let server = if self.flavor.has_gateway() {
            const { HeaderValue::from_static(COSMOS_DB_SERVER) }
        } else {
            const { HeaderValue::from_static(SERVER) }
        };
        headers.insert(header::SERVER, server);
        if let Ok(id) = HeaderValue::from_bytes(&self.request_id.to_ascii()) {
            headers.insert(X_MS_REQUEST_ID, id);
        }
        if self.is_dated
            && let Ok(date) = HeaderValue::from_str(&self.now.to_http_date())
        {
            headers.insert(header::DATE, date);
        }
    }

    fn name_code(&self, response: &mut Response<Bytes>, error: &ServiceError) {
        if let Ok(code) = HeaderValue::from_str(error.code().as_str())
            && !self.flavor.omits_code(error)
        {
            self.add_common(response.headers_mut(), X_MS_ERROR_CODE, code);
        }
    }

    /// Adds a header that a client does not need, unless the flavor has none of them.
    fn add_common(&self, headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
        if self.flavor.has_common_headers() {
            headers.insert(name, value);
        }
    }
}

/// The text after the status in the first line of a response, instead of the usual phrase.
#[derive(Clone, Debug)]
pub(crate) struct Reason(pub(crate) Cow<'static, str>);

impl Reason {
    /// That of Cosmos DB.
    pub(crate) const OK: Self = Self(Cow::Borrowed("Ok"));
}

/// The form of an error's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorFormat {
    /// JSON with the metadata that the request accepts.
    Json(MetadataLevel),
    /// For operations whose bodies are XML, and of the front end.
    Xml,
    /// For an operation on tables or entities that accepts any form.
    Any,
    /// For a request whose protocol version cannot be read.
    Unversioned,
}

impl ErrorFormat {
    /// JSON, where the request accepts any form.
    fn or_json(self) -> Self {
        match self {
            Self::Any => Self::Json(MetadataLevel::default()),
            format => format,
        }
    }

    /// The form that the operations read from the request; minimal metadata where they would refuse
    /// it.
    fn of(options: Option<&QueryOptions>, headers: &HeaderMap) -> Self {
        let option = |name| options.and_then(|options| options.get(name));
        if matches!(
            option("comp"),
            Some("acl" | "properties" | "stats" | "userdelegationkey")
        ) {
            return Self::Xml;
        }
        let accept = headers.get(header::ACCEPT);
        let accept = option("$format")
            .or_else(|| accept.and_then(|accept| accept.to_str().ok()))
            .unwrap_or_default();
        match accept.trim() {
            XML => return Self::Xml,
            "" | "*/*" => return Self::Any,
            _ => {}
        }
        Self::Json(MetadataLevel::from_accept(accept).unwrap_or_default())
    }
}

/// Says how to authenticate, if the request was not authenticated at all.
fn challenge(response: &mut Response<Bytes>, error: &ServiceError) {
    if error.status() == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static(CHALLENGE);
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
}

/// Gives a response the headers and the first line of Cosmos DB.
fn finish_of_cosmos_db(response: &mut Response<Bytes>) {
    if response.status() == StatusCode::OK {
        response.extensions_mut().insert(Reason::OK);
    }
    let headers = response.headers_mut();
    headers.remove(DATA_SERVICE_ID);
    let content_type = headers.get(header::CONTENT_TYPE);
    let mut levels = [
        MetadataLevel::Minimal,
        MetadataLevel::None,
        MetadataLevel::Full,
    ]
    .into_iter();
    if let Some(level) =
        levels.find(|level| content_type.is_some_and(|text| text == level.content_type()))
    {
        let content_type = HeaderValue::from_static(level.accept());
        headers.insert(header::CONTENT_TYPE, content_type);
    }
}

/// Gives every request an id of its own, in the form of a GUID.
#[derive(Debug)]
pub(crate) struct RequestIds {
    /// Distinguishes the requests of this server from those of another server.
    prefix: u64,
    count: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        // The keys of a hasher are random. That is enough: an id only has to differ from those in
        // the logs of another server, and nothing depends on it being unpredictable.
        Self {
            prefix: RandomState::new().hash_one(()),
            count: AtomicU64::new(0),
        }
    }

    pub(crate) fn next(&self) -> Guid {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        Guid::from_bytes((u128::from(self.prefix) << 64 | u128::from(count)).to_be_bytes())
    }
}

/// Returns true if an error is found while the parts of a request are read. Such a response may be
/// cached.
// SERVICE: recorded for filters, names of properties and conditions.
const fn is_of_reader(code: &ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ConditionNotMet | ErrorCode::InvalidInput | ErrorCode::PropertyNameInvalid
    )
}

/// The preference of a write, and whether it is a POST that creates something.
fn preference(head: &Parts) -> Option<(Prefer, bool)> {
    let preference = Prefer::of(&head.headers);
    if preference == Prefer::Unspecified {
        return None;
    }
    let tunnelled = head.headers.get(X_HTTP_METHOD);
    let method = tunnelled.map_or(head.method.as_str().as_bytes(), HeaderValue::as_bytes);
    (method != b"DELETE").then_some((preference, method == b"POST"))
}

/// The version that a shared access signature requests, if no header does.
fn version_of_sas(head: &Parts, options: &QueryOptions) -> Option<HeaderValue> {
    if !SignedSas::is_in(head.uri.query().unwrap_or_default()) {
        return None;
    }
    let version = options.get("api-version").or_else(|| options.get("sv"))?;
    HeaderValue::from_str(version).ok()
}

/// At most 1 KiB of visible ASCII.
fn is_client_request_id(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    !id.is_empty() && id.len() <= CLIENT_REQUEST_ID_BYTES_MAX && id.iter().all(u8::is_ascii_graphic)
}

/// `YYYY-MM-DD`.
fn is_version(version: &HeaderValue) -> bool {
    // The version that most clients send.
    version == "2019-02-02"
        || version
            .to_str()
            .is_ok_and(|version| version.len() == 10 && version.parse::<Timestamp>().is_ok())
}

/// In seconds.
const RETRY_AFTER: &str = "1";

const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

const XML: &str = "application/xml";

/// The service's challenge to clients without a token. This server has no such authority, in any
/// tenant.
const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize resource_id=https://storage.azure.com";

/// The service's own value, then ours.
const SERVER: &str = concat!(
    "Windows-Azure-Table/1.0 tablesdk-server/",
    env!("CARGO_PKG_VERSION")
);

const COSMOS_DB_SERVER: &str = concat!(
    "Microsoft-HTTPAPI/2.0 tablesdk-server/",
    env!("CARGO_PKG_VERSION")
);

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn context(uri: &str, headers: &[(&'static str, &str)]) -> Context {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let address = Address::of(&head, false, |_| None);
        let options = QueryOptions::parse(head.uri.query().unwrap_or_default()).ok();
        let now = Timestamp::UNIX_EPOCH;
        let connection = Connection::default();
        Context::new(
            &head,
            options.as_ref(),
            &connection,
            address,
            Guid::default(),
            now,
        )
    }

    #[test]
    fn only_well_formed_values_are_echoed() {
        let long = "x".repeat(1025);
        for (id, is_echoed) in [("a-1", true), ("a b", false), (&*long, false), ("", false)] {
            let context = context("/", &[("x-ms-client-request-id", id)]);
            assert_eq!(context.client_request_id.is_some(), is_echoed, "{id:.20}");
        }
        for (version, is_version) in [
            ("2019-02-02", true),
            ("2999-12-31", true),
            ("2019-13-01", false),
            ("2019-2-2", false),
            ("latest", false),
            ("", false),
        ] {
            let headers = [("x-ms-version", version)];
            let context = context("/", &headers);
            assert_eq!(context.version().is_some(), is_version, "{version}");
            let mut headers = HeaderMap::new();
            headers.insert(X_MS_VERSION, version.parse().unwrap());
            assert_eq!(context.check_version(&headers).is_ok(), is_version);
        }
    }

    #[test]
    fn ids_differ() {
        let ids = RequestIds::new();
        assert_ne!(ids.next(), ids.next());
        assert_ne!(RequestIds::new().next(), ids.next());
    }
}
