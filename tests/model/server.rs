//! The server under test, or several servers over one database, and requests to them that are
//! written by hand.

use std::fs;
use std::sync::Mutex;

use bytes::Bytes;
use fastrand::Rng;
use harness::directory::copy_directory;
use harness::postgres::{self, Database, Postgres};
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value as Json;
use tablesdk::transport::Transport as _;
use tablesdk::{SharedKey, Timestamp};
use tablesdk_protocol::auth::{Scheme, string_to_sign};
use tablesdk_server::{Durability, TableServer};
use tempfile::TempDir;

/// The data directory, within the temporary one.
const TABLES: &str = "tables";

/// The number of servers over one database.
const SERVERS: usize = 3;

pub(crate) struct Server {
    /// Each request goes to one of them. Empty only during a restart. Before what they need: they
    /// are dropped first.
    servers: Vec<TableServer>,
    tables: Tables,
    /// Selects the servers.
    rng: Mutex<Rng>,
    key: SharedKey,
}

/// Where the tables are.
enum Tables {
    Memory,
    Directory(TempDir),
    /// One of many in a cluster that is not killed.
    Database(Database),
    /// A cluster of its own.
    Cluster(Postgres),
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
        let code = self.body["odata.error"]["code"].as_str();
        Some((self.status, code.unwrap()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::start(Tables::Memory)
    }

    /// A server with its tables in a data directory.
    pub(crate) fn in_a_directory() -> Self {
        Self::start(Tables::Directory(tempfile::tempdir().unwrap()))
    }

    /// Several servers over one database. `None` if there is no PostgreSQL.
    pub(crate) fn over_a_database() -> Option<Self> {
        Some(Self::start(Tables::Database(postgres::database()?)))
    }

    /// Several servers over a database that crashes. `None` if there is no PostgreSQL.
    pub(crate) fn over_a_cluster() -> Option<Self> {
        Some(Self::start(Tables::Cluster(Postgres::start()?)))
    }

    fn start(tables: Tables) -> Self {
        // Servers over one database need the same key.
        let key = SharedKey::new("devstoreaccount1", "c2VjcmV0").unwrap();
        let server = || {
            let builder = TableServer::builder().account(key.clone());
            let builder = match &tables {
                Tables::Memory => builder,
                Tables::Directory(directory) => {
                    builder.data(directory.path().join(TABLES), Durability::Relaxed)
                }
                Tables::Database(database) => builder.postgres(database.url()),
                Tables::Cluster(cluster) => builder.postgres(cluster.url("postgres")),
            };
            builder.in_process().unwrap()
        };
        let count = match &tables {
            Tables::Memory | Tables::Directory(_) => 1,
            Tables::Database(_) | Tables::Cluster(_) => SERVERS,
        };
        let servers: Vec<_> = std::iter::repeat_with(server).take(count).collect();
        Self {
            key,
            servers,
            tables,
            rng: Mutex::new(Rng::with_seed(0)),
        }
    }

    /// Returns true if the tables outlive the server.
    pub(crate) const fn is_persistent(&self) -> bool {
        !matches!(self.tables, Tables::Memory)
    }

    /// Ends the servers, and starts others with the same tables.
    pub(crate) fn open_again(&mut self) {
        self.servers.clear();
        let tables = std::mem::replace(&mut self.tables, Tables::Memory);
        *self = Self::start(tables);
    }

    /// Ends the servers or their database as a crash would: what is not written by now is lost.
    /// Starts others with what is left.
    pub(crate) fn crash(&mut self) {
        match &self.tables {
            Tables::Memory | Tables::Database(_) => {}
            Tables::Directory(directory) => {
                let directory = directory.path();
                let (tables, left) = (directory.join(TABLES), directory.join("left"));
                copy_directory(&tables, &left);
                // The orderly end has no effect on the copy.
                self.servers.clear();
                fs::remove_dir_all(&tables).unwrap();
                fs::rename(&left, &tables).unwrap();
            }
            Tables::Cluster(cluster) => {
                cluster.kill();
                cluster.start_again();
            }
        }
        self.open_again();
    }

    /// One of the servers.
    fn server(&self) -> &TableServer {
        let mut rng = self.rng.lock().unwrap();
        rng.choice(&self.servers).expect("there is a server")
    }

    pub(crate) fn account(&self) -> &str {
        self.key.account()
    }

    /// Sends a request, and reads the response's JSON.
    pub(crate) async fn send(&self, ask: &Ask) -> Response {
        let (status, headers, body) = self.send_as_is(ask).await;
        let body = json(&body);
        Response {
            status,
            headers,
            body,
        }
    }

    pub(crate) async fn send_as_is(&self, ask: &Ask) -> (u16, HeaderMap, Bytes) {
        let server = self.server();
        let mut request = Request::builder()
            .method(ask.method)
            .uri(format!("{}{}", server.endpoint(), ask.path))
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
        let response = server.transport().send(request).await.unwrap();
        let (head, body) = response.into_parts();
        (head.status.as_u16(), head.headers, body)
    }
}

/// A body, which may be empty.
pub(crate) fn json(body: &[u8]) -> Json {
    match body {
        [] => Json::Null,
        body => serde_json::from_slice(body).unwrap(),
    }
}

/// A request, on its own or in a batch: method, path below the account, headers, and a body with
/// its type.
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

/// Percent-encodes all bytes except letters, digits and quotes, which some clients leave as they
/// are.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'\'' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
