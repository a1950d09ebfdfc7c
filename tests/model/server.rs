//! The server under test, spoken to with requests that are put together by hand.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value as Json;
use tablesdk::{SharedKey, Timestamp, Transport as _};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::{InProcess, TableServer};

pub(crate) struct Server {
    /// Keeps it running.
    server: TableServer,
    transport: InProcess,
    key: SharedKey,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Json,
}

impl Answer {
    /// Status and code, when it is a refusal.
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
        let server = TableServer::in_process();
        Self {
            transport: server.transport(),
            key: server.credential(),
            server,
        }
    }

    /// Sends a request to a path below the account.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Json>,
    ) -> Answer {
        let body = body.map(Json::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server.endpoint()))
            .header("accept", "application/json;odata=minimalmetadata")
            .header("x-ms-version", "2019-02-02");
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
        let mut request = request
            .header("x-ms-date", now.to_http_date())
            .body(Bytes::from(body))
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
        let body = if body.is_empty() {
            Json::Null
        } else {
            serde_json::from_slice(&body).unwrap()
        };
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }
}

/// Percent-encodes everything but letters and digits; some quotes stay, as some clients leave them.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\'' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
