//! Tests that need a manual clock, a storage that fails or waits, the log, or options of the
//! builder.
//!
//! The rules of the service are in `tests/conformance`, its bytes in `tests/wire`.

mod access;
mod batches;
mod front_page;
mod log;
#[cfg(feature = "network")]
mod memory;
mod paging;
mod queries;
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
use crate::flavor::Flavor;
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

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(future)
}

impl Client {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// A client of a service with these options.
    fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::on(MemoryStorage::default(), change)
    }

    fn on(storage: impl Storage + 'static, change: impl FnOnce(&mut Options)) -> Self {
        let key = SharedKey::new("acct", "c2VjcmV0").unwrap();
        let clock = ManualClock::new(NOW);
        let mut options = Options {
            accounts: vec![
                SharedKey::new("acct", "b3RoZXI=").unwrap(),
                key.clone(),
                SharedKey::new("second", "c2VjcmV0").unwrap(),
            ],
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            client_clock: None,
            socket_clock: None,
            flavor: Flavor::default(),
            logs_entity_keys: true,
            logs_requests_at_info: true,
            paging: Paging::default(),
            storage: StorageOptions::Memory,
            table_name_hold: Duration::ZERO,
            tokens: Tokens::default(),
        };
        change(&mut options);
        let service = Service::with_storage(options, Box::new(storage)).unwrap();
        Self {
            service,
            key,
            clock,
        }
    }

    /// Creates the table `people`.
    fn and_table(self) -> Self {
        let created = self.send("POST", "Tables", &[], r#"{"TableName":"people"}"#);
        assert_eq!(created.status(), 201);
        self
    }

    fn with_table() -> Self {
        Self::new().and_table()
    }

    /// Inserts an entity with the property `v`.
    fn insert(&self, partition_key: &str, row_key: &str, v: usize) {
        let entity =
            format!(r#"{{"PartitionKey":"{partition_key}","RowKey":"{row_key}","v":{v}}}"#);
        let inserted = self.send("POST", "people", &[], &entity);
        assert_eq!(inserted.status(), 201);
    }

    /// Sends a request below the account, signed.
    fn send(
        &self,
        method: &str,
        resource: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Bytes> {
        self.call(self.signed(method, &format!("/acct/{resource}"), headers, body))
    }

    fn signed(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Request<Bytes> {
        let mut request = self.request(method, path, headers, body);
        self.sign(&mut request, Scheme::SharedKey);
        request
    }

    /// A request that is not signed. The given headers replace the usual ones; an empty value
    /// removes a header.
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
        let account = self.key.account();
        let (method, uri) = (request.method(), request.uri());
        let text = string_to_sign(scheme, account, method, uri, request.headers());
        let signature = self.key.sign(&text);
        let value = format!("{} {account}:{}", scheme.as_str(), signature.expose());
        let value = HeaderValue::from_str(&value).unwrap();
        request.headers_mut().insert("authorization", value);
    }

    fn call(&self, request: Request<Bytes>) -> Response<Bytes> {
        wait_for(self.service.call(request))
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

const NOW: &str = "2024-03-15T10:20:30Z";
