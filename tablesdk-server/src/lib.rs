//! An Azure Table storage server, in memory, with a data directory, or over a PostgreSQL database:
//! inside a test, or standalone for clients of any language.
//!
//! # In process
//!
//! A server starts on a free port with a random account key, and stops when it is dropped:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tablesdk_server::TableServer;
//!
//! let server = TableServer::start().await?;
//! let connection_string = server.connection_string(); // for the client under test
//! # assert!(connection_string.contains("TableEndpoint=http://127.0.0.1:"));
//! # Ok(())
//! # }
//! ```
//!
//! [`TableServer::in_process`] needs no socket: with `tablesdk`, a client of it is
//! `TableServiceClient::in_process(&server)`. Any code sends requests through
//! [`TableServer::transport`]. This also works while tokio's time is paused.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use bytes::Bytes;
//! use tablesdk_server::{TableServer, Transport as _};
//!
//! let server = TableServer::in_process();
//! let request = http::Request::get(format!("{}/Tables", server.endpoint())).body(Bytes::new())?;
//! let response = server.transport().send(request).await?;
//! assert!(response.status().is_client_error()); // it is not signed
//! # Ok(())
//! # }
//! ```
//!
//! There is no global state: servers share nothing, run on the caller's runtime, read no
//! environment variables and install no global handlers.
//!
//! # Accounts
//!
//! A URL names its account in the path, `http://127.0.0.1:10002/acct/people`, or in the host name,
//! as the service does: `http://acct.table.localhost:10002/people`. Every host name is accepted
//! whose first label is the name of an account of the server. A client that does not resolve names
//! below `localhost` by itself needs an entry in its hosts file. With the suffix `-secondary` after
//! its name, an account is read-only.
//!
//! # Log
//!
//! Each request is an event of [`tracing`] with the target `tablesdk_server::request`: the
//! operation, the kind of credential, the response, the duration, and the reason of a refusal. Its
//! level is DEBUG, and that of the program INFO ([`TableServerBuilder::log_requests_at_info`]); a
//! response with an error of the server is ERROR. Events contain no account keys, signatures or
//! tokens. They contain the keys of entities, unless
//! [`TableServerBuilder::log_without_entity_keys`] is set. Without a subscriber, they cost nothing.
//!
//! # Testing a client
//!
//! [`testing`] has faults, a journal of the requests, and a clock that a test moves.
//! [`TableServer::snapshot`] keeps all tables, [`TableServer::dump`] shows them.
//! [`TableServerBuilder`] reproduces behavior that otherwise occurs only in production: small and
//! empty [pages](TableServerBuilder::empty_pages), queries that run out of
//! [time](TableServerBuilder::max_query_time), names of deleted tables that stay
//! [reserved](TableServerBuilder::deleted_table_name_hold). With a
//! [flavor](TableServerBuilder::flavor), the server behaves like another service. The [guide to
//! testing](https://docs.rs/tablesdk/latest/tablesdk/guide/testing/) of `tablesdk` shows how to use
//! it.
//!
//! # Features
//!
//! <!-- features -->
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `cli` | yes | The program `tablesdk-server`. A test depends on the library with `default-features = false`. |
//! | `mimalloc` | yes | For the program: an allocator that is faster than the system's. |
//! | `durable` | with `cli` | Tables in a data directory: `TableServerBuilder::data`, `DataDirectory`. |
//! | `network` | with `cli` | The defence against a hostile network: budgets for the memory of requests and responses, and idle connections that are closed when new ones need their slots. A server of a test needs none. |
//! | `postgres` | with `cli` | Tables in a PostgreSQL database that several servers share: `TableServerBuilder::postgres`. |
//! | `tls` | with `cli` | HTTPS: `TableServerBuilder::tls`. |
//! | `jemalloc` | no | For the program on Linux and macOS, instead of `mimalloc`: an allocator that takes less memory. It needs `make` to build. |
//!
//! <!-- end of features -->
//!
//! # Standalone
//!
//! `cargo install tablesdk-server && tablesdk-server` listens on port 10002 with the well-known
//! development account; see `tablesdk-server --help`.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "durable")]
mod data_directory;
mod engine;
mod flavor;
mod http;
mod request;
mod server;
mod service;
mod storage;
pub mod testing;
mod time;

#[cfg(feature = "durable")]
pub use data_directory::{CheckReport, DataDirectory, Progress, verify_backup};
#[cfg(feature = "tls")]
pub use http::tls_identity::TlsIdentity;
pub use request::auth::{TokenAction, TokenGrant, TokenRefusal, TokenVerifier};
pub use server::{EachRequest, RunWithFault, ServerSnapshot, TableServer, TableServerBuilder};
#[cfg(feature = "durable")]
pub use storage::Durability;
// The types of the public API, so that a test needs only this crate. They are the same types as in
// `tablesdk`.
pub use tablesdk_protocol::auth::{InvalidKeyError, SharedKey};
pub use tablesdk_protocol::{
    Clock, EntityKey, ErrorCode, Guid, InProcessServer, ParseTimestampError, Timestamp,
    TimestampRangeError, Transport, TransportError, TransportFuture,
};
