//! The plain server: what an engineer would write in a day with hyper, `serde_json` and a
//! `BTreeMap`, as the peer of the server.
//!
//! It checks Shared Key signatures, reads the entity of a request, or of each part of a batch, out
//! of the body with `serde_json`, puts it in the map, and prints it with `serde_json`. It applies
//! entity group transactions together or not at all, and returns pages with continuation tokens.
//! Every other rule of the service is absent: it checks no name, type, size or version, and has one
//! level of metadata. With a data directory, it appends each change to a file, and concurrent
//! writes share an `fdatasync`; it does not read that file again.

mod auth;
mod batch;
mod log;
mod properties;
mod query;
mod store;

use std::error::Error;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::net::TcpListener;

use auth::Verifier;
use log::Log;
use store::{Change, Precondition, Tables};

/// Serves until the process ends. Prints a connection string when it accepts connections.
pub(crate) fn run(directory: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let server = Arc::new(Server {
        verifier: Verifier::new(ACCOUNT, KEY)?,
        tables: RwLock::default(),
        log: directory.map(Log::create).transpose()?,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut stdout = std::io::stdout();
        writeln!(
            stdout,
            "connection string: AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint=http://{address}/{ACCOUNT}"
        )?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = Arc::clone(&server);
            let service = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { server.respond(request).await }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

struct Server {
    verifier: Verifier,
    tables: RwLock<Tables>,
    log: Option<Log>,
}

/// A success: status, ETag and body.
type Success = (StatusCode, Option<String>, Bytes);

impl Server {
    async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let response = if self.verifier.accepts(&head) {
            self.handle(&head, &body).await
        } else {
            Err(StatusCode::FORBIDDEN)
        };
        Ok(response.unwrap_or_else(|status| {
            let mut response = Response::new(Full::default());
            *response.status_mut() = status;
            response
        }))
    }

    async fn handle(&self, head: &Parts, body: &[u8]) -> Result<Response<Full<Bytes>>, StatusCode> {
        let (resource, key) = resource(head.uri.path())?;
        if resource == "$batch" {
            let response = batch::respond(head, body, |changes| async {
                let (entities, durable) = self.change_all(changes)?;
                if let Some(durable) = durable {
                    durable.wait().await;
                }
                Ok(entities)
            });
            return response.await;
        }
        if head.method == Method::GET && key.is_none() {
            return query::respond(
                &self.read(),
                &resource,
                head.uri.query().unwrap_or_default(),
            );
        }
        let (status, etag, body) = match (&head.method, resource.as_str()) {
            (&Method::POST, "Tables") => self.create_table(body)?,
            (&Method::DELETE, table) if table.starts_with("Tables(") => self.delete_table(table)?,
            (&Method::GET, table) => self.get(table, &key.ok_or(StatusCode::BAD_REQUEST)?)?,
            _ => {
                let change = Change::of(&head.method, resource, key, &head.headers, body)?;
                let (mut outcomes, durable) = self.change_all(vec![change])?;
                if let Some(durable) = durable {
                    durable.wait().await;
                }
                let etag = outcomes.pop().flatten();
                (StatusCode::NO_CONTENT, etag, Bytes::new())
            }
        };
        let mut response = Response::builder().status(status);
        if let Some(etag) = etag {
            response = response.header(header::ETAG, etag);
        }
        if !body.is_empty() {
            response = response.header(header::CONTENT_TYPE, JSON);
        }
        let response = response.header("x-ms-version", VERSION);
        let response = response.body(Full::new(body));
        response.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn create_table(&self, body: &[u8]) -> Result<Success, StatusCode> {
        let body: Map<String, Value> = parse(body)?;
        let name = body.get("TableName").and_then(Value::as_str);
        self.write()
            .create(name.ok_or(StatusCode::BAD_REQUEST)?.to_owned())?;
        Ok((StatusCode::NO_CONTENT, None, Bytes::new()))
    }

    fn delete_table(&self, resource: &str) -> Result<Success, StatusCode> {
        let name = resource.split('\'').nth(1);
        self.write().delete(name.ok_or(StatusCode::BAD_REQUEST)?)?;
        Ok((StatusCode::NO_CONTENT, None, Bytes::new()))
    }

    fn get(&self, table: &str, key: &store::Key) -> Result<Success, StatusCode> {
        #[derive(Serialize)]
        struct Element<'a> {
            #[serde(rename = "odata.metadata")]
            metadata: String,
            #[serde(flatten)]
            entity: &'a store::Entity,
        }

        let tables = self.read();
        let entity = tables.table(table)?.get(key);
        let entity = entity.ok_or(StatusCode::NOT_FOUND)?;
        let etag = Some(entity.etag());
        let metadata = format!("{ACCOUNT}/$metadata#{table}/@Element");
        let body = serde_json::to_vec(&Element { metadata, entity });
        let body = body.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok((StatusCode::OK, etag, body.into()))
    }

    /// Applies changes together, and appends them to the log in the order in which they were
    /// applied.
    fn change_all(
        &self,
        changes: Vec<Change>,
    ) -> Result<(Vec<Option<String>>, Option<log::Durable>), StatusCode> {
        let mut lines = Vec::new();
        let mut tables = self.write();
        let etags = tables.apply_all(changes, self.log.is_some().then_some(&mut lines))?;
        let durable = self.log.as_ref().map(|log| log.append(&lines));
        Ok((etags, durable))
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of the table after the account, and the key of the entity, if the path has one.
fn resource(path: &str) -> Result<(String, Option<store::Key>), StatusCode> {
    let path = percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| StatusCode::BAD_REQUEST)?;
    let mut segments = path.trim_start_matches('/').splitn(2, '/');
    let resource = segments.nth(1).ok_or(StatusCode::NOT_FOUND)?;
    let Some((table, key)) = resource.split_once('(') else {
        return Ok((resource.to_owned(), None));
    };
    let Some(keys) = key.strip_prefix("PartitionKey='") else {
        // `people()`, or the name of a table in `Tables('people')`.
        let name = if key == ")" { table } else { resource };
        return Ok((name.to_owned(), None));
    };
    let keys = keys.strip_suffix("')").ok_or(StatusCode::BAD_REQUEST)?;
    let (partition, row) = keys
        .split_once("',RowKey='")
        .ok_or(StatusCode::BAD_REQUEST)?;
    let key = (partition.replace("''", "'"), row.replace("''", "'"));
    Ok((table.to_owned(), Some(key)))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, StatusCode> {
    serde_json::from_slice(body).map_err(|_| StatusCode::BAD_REQUEST)
}

fn precondition(headers: &HeaderMap) -> Option<Precondition> {
    let value = headers.get(header::IF_MATCH)?.to_str().ok()?;
    Some(Precondition::of(value))
}

const ACCOUNT: &str = "plain";
/// Base64 of the 32 bytes of "the key of the plain server ....".
const KEY: &str = "dGhlIGtleSBvZiB0aGUgcGxhaW4gc2VydmVyIC4uLi4=";
const JSON: &str = "application/json;odata=minimalmetadata";
const VERSION: &str = "2019-02-02";
