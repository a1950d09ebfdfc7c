//! The server under test, and requests to it that are written by hand.

use std::fs;

use bytes::Bytes;
use harness::directory::copy_directory;
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value as Json;
use tablesdk::transport::Transport as _;
use tablesdk::{SharedKey, Timestamp};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::{Durability, InProcess, TableServer};
use tempfile::TempDir;

/// The data directory, within the temporary one.
const TABLES: &str = "tables";

pub(crate) struct Server {
    /// `None` only during a restart.
    server: Option<TableServer>,
    directory: Option<TempDir>,
    transport: InProcess,
    key: SharedKey,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Json,
}

impl Response {
    /// Status and code of a refusal.
    pub(crate) fn refusal(&self) -> Option<(u16, &str)> {
        if StatusCode::from_u16(self.status).unwrap().is_success() {
            return None;
        }
        Some((
            self.status,
            self.body["odata.error"]["code"].as_str().unwrap(),
        ))
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::start(None)
    }

    /// A server with its tables in a data directory.
    pub(crate) fn in_a_directory() -> Self {
        Self::start(Some(tempfile::tempdir().unwrap()))
    }

    fn start(directory: Option<TempDir>) -> Self {
        let mut builder = TableServer::builder();
        if let Some(directory) = &directory {
            builder = builder.data(directory.path().join(TABLES), Durability::Relaxed);
        }
        let server = builder.in_process().unwrap();
        Self {
            transport: server.transport(),
            key: server.credential(),
            server: Some(server),
            directory,
        }
    }

    pub(crate) const fn is_in_a_directory(&self) -> bool {
        self.directory.is_some()
    }

    /// Ends the server, and starts another one with the same data directory.
    pub(crate) fn open_again(&mut self) {
        self.server = None;
        *self = Self::start(self.directory.take());
    }

    /// Ends the server as a crash would: what it has not written by now is lost. Starts another one with the remaining files.
    pub(crate) fn crash(&mut self) {
        let directory = self.directory.as_ref().expect("it has a directory").path();
        let (tables, left) = (directory.join(TABLES), directory.join("left"));
        copy_directory(&tables, &left);
        // The orderly end has no effect on the copy.
        self.server = None;
        fs::remove_dir_all(&tables).unwrap();
        fs::rename(&left, &tables).unwrap();
        self.open_again();
    }

    fn endpoint(&self) -> &str {
        let server = self.server.as_ref();
        server.expect("there is a server").endpoint()
    }

    pub(crate) fn account(&self) -> &str {
        self.key.account()
    }

    /// Sends a request, and reads the response's JSON.
    pub(crate) async fn send(&self, ask: &Ask) -> Response {
        let (status, headers, body) = self.send_as_is(ask).await;
        let body = if body.is_empty() {
            Json::Null
        } else {
            serde_json::from_slice(&body).unwrap()
        };
        Response {
            status,
            headers,
            body,
        }
    }

    pub(crate) async fn send_as_is(&self, ask: &Ask) -> (u16, HeaderMap, Bytes) {
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{}{}", self.endpoint(), ask.path))
            .header("accept", "application/json;odata=minimalmetadata")
            .header("x-ms-version", "2019-02-02");
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        let mut content = Bytes::new();
        if let Some((content_type, body)) = &ask.body {
            request = request.header("content-type", *content_type);
            content = Bytes::from(body.clone());
        }
        let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
        let mut request = request
            .header("x-ms-date", now.to_http_date())
            .body(content)
            .unwrap();
        let account = self.key.account();
        let (method, uri) = (request.method(), request.uri());
        let text = string_to_sign(Scheme::SharedKey, account, method, uri, request.headers());
        let authorization = format!("SharedKey {account}:{}", self.key.sign(&text).expose());
        request
            .headers_mut()
            .insert("authorization", authorization.parse().unwrap());
        let response = self.transport.send(request).await.unwrap();
        let (head, body) = response.into_parts();
        (head.status.as_u16(), head.headers, body)
    }
}

/// A request, on its own or in a batch: method, path below the account, headers, and a body with its type.
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<(&'static str, String)>,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: String) -> Self {
        Self {
            method,
            path,
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, content_type: &'static str, text: String) -> Self {
        self.body = Some((content_type, text));
        self
    }

    pub(crate) fn json(self, body: impl Into<Json>) -> Self {
        self.body("application/json", body.into().to_string())
    }
}

/// Percent-encodes all bytes except letters, digits and quotes, which some clients leave as they are.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\'' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
