//! Raw signed requests through the whole service, at a time that stands still: what each operation answers when it
//! succeeds, and for every error the code.
//!
//! Goes through none of the protocol's own encoders but the signature's, so that bytes are bytes of the wire.

mod access;
mod addressing;
mod batch;
mod cors;
mod entities;
mod log;
mod negotiation;
mod paging;
mod queries;
mod routes;
mod settings;
mod signatures;
#[cfg(feature = "durable")]
mod slow_disk;
mod tables;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use tablesdk_protocol::auth::{Scheme, SharedKey, string_to_sign};
use tablesdk_protocol::{Clock, Timestamp};

use crate::engine::Paging;
use crate::request::auth::Tokens;
use crate::service::{Options, Service};
use crate::storage::{MemoryStorage, Storage, StorageOptions};
use crate::time::monotonic_clock::tests::ManualClock;

/// A service with the account `acct`, and a client with the key of the account.
struct Client {
    service: Service,
    key: SharedKey,
    clock: Arc<ManualClock>,
}

impl Client {
    fn new() -> Self {
        Self::holding_names(Duration::ZERO)
    }

    /// Whose tables hold their names for so long when they are deleted.
    fn holding_names(table_name_hold: Duration) -> Self {
        Self::with(table_name_hold, Tokens::default(), Paging::default())
    }

    /// Who takes tokens like that.
    fn taking(tokens: Tokens) -> Self {
        Self::with(Duration::ZERO, tokens, Paging::default())
    }

    /// Whose pages end like that.
    fn with_paging(paging: Paging) -> Self {
        Self::with(Duration::ZERO, Tokens::default(), paging)
    }

    fn with(table_name_hold: Duration, tokens: Tokens, paging: Paging) -> Self {
        let storage = Box::new(MemoryStorage::default());
        Self::with_storage(table_name_hold, tokens, paging, storage)
    }

    fn with_storage(
        table_name_hold: Duration,
        tokens: Tokens,
        paging: Paging,
        storage: Box<dyn Storage>,
    ) -> Self {
        let key = SharedKey::new("acct", "c2VjcmV0").unwrap();
        let clock = ManualClock::new(NOW);
        let options = Options {
            accounts: vec![
                SharedKey::new("acct", "b3RoZXI=").unwrap(),
                key.clone(),
                SharedKey::new("second", "c2VjcmV0").unwrap(),
            ],
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            paging,
            storage: StorageOptions::Memory,
            table_name_hold,
            tokens,
        };
        let service = Service::with_storage(options, storage).unwrap();
        Self {
            service,
            key,
            clock,
        }
    }

    /// With a table, `people`.
    fn with_table() -> Self {
        Self::new().and_table()
    }

    fn and_table(self) -> Self {
        let client = self;
        let created = client.send("POST", "Tables", &[], r#"{"TableName":"people"}"#);
        assert_eq!(created.status(), 201);
        client
    }

    /// Sends a request below the account, signed.
    fn send(
        &self,
        method: &str,
        resource: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Bytes> {
        let mut request = self.request(method, &format!("/acct/{resource}"), headers, body);
        self.sign(&mut request, Scheme::SharedKey);
        self.call(request)
    }

    /// A request that is not signed yet. Headers that are given come in the place of the usual ones; an empty one is left
    /// out.
    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Request<Bytes> {
        let mut request = Request::new(Bytes::copy_from_slice(body.as_bytes()));
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = path.parse().unwrap();
        let date = self.clock.now().to_http_date();
        let json = if body.is_empty() {
            ""
        } else {
            "application/json"
        };
        let usual = [
            ("host", "127.0.0.1:10002"),
            ("accept", "application/json;odata=nometadata"),
            ("content-type", json),
            ("x-ms-date", &date),
            ("x-ms-version", "2019-02-02"),
        ];
        for (name, value) in usual.into_iter().chain(headers.iter().copied()) {
            let name: HeaderName = name.parse().unwrap();
            if value.is_empty() {
                request.headers_mut().remove(name);
            } else {
                let value = HeaderValue::from_str(value).unwrap();
                request.headers_mut().insert(name, value);
            }
        }
        request
    }

    fn sign(&self, request: &mut Request<Bytes>, scheme: Scheme) {
        let text = string_to_sign(
            scheme,
            "acct",
            request.method(),
            request.uri(),
            request.headers(),
        );
        let signature = self.key.sign(&text);
        let value = format!("{} acct:{}", scheme.as_str(), signature.expose());
        let value = HeaderValue::from_str(&value).unwrap();
        request.headers_mut().insert("authorization", value);
    }

    fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        runtime.block_on(self.service.call(request))
    }

    fn advance(&self, seconds: u64) {
        let duration = Duration::from_secs(seconds);
        self.clock.set(self.clock.now().saturating_add(duration));
    }
}

fn body(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

fn header<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    Some(response.headers().get(name)?.to_str().unwrap())
}

/// Status and code of an error, in JSON or XML; the code is empty for a success.
fn status_and_code(response: &Response<Bytes>) -> (u16, &str) {
    let json = body(response).split_once(r#"{"odata.error":{"code":""#);
    let xml = body(response).split_once("<m:code>");
    let code = json
        .or(xml)
        .and_then(|(_, rest)| rest.split(['"', '<']).next());
    (response.status().as_u16(), code.unwrap_or_default())
}

/// The ETag of what is written at that time.
fn etag(time: &str) -> String {
    let timestamp: Timestamp = time.parse().unwrap();
    format!(
        "W/\"datetime'{}'\"",
        timestamp.to_string().replace(':', "%3A")
    )
}

const NOW: &str = "2024-03-15T10:20:30Z";
