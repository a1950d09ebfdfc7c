//! An Azure Table storage server, in memory or in a folder: inside a test, or standalone for clients of any language.
//!
//! # In process
//!
//! A server starts on a free port, with an account key of its own, and stops when it is dropped:
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
//! [`TableServer::in_process`] needs no socket: requests reach it through [`TableServer::transport`], also while tokio's
//! time is paused.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use bytes::Bytes;
//! use tablesdk_server::{TableServer, Transport as _};
//!
//! let server = TableServer::in_process();
//! let request = http::Request::get(format!("{}/Tables", server.endpoint())).body(Bytes::new())?;
//! let answer = server.transport().send(request).await?;
//! assert!(answer.status().is_client_error()); // it is not signed
//! # Ok(())
//! # }
//! ```
//!
//! There is no global state: servers share nothing, run on the caller's runtime, read no environment and install nothing.
//!
//! # Accounts
//!
//! A URL names its account by the path, `http://127.0.0.1:10002/acct/people`, or by the host, as the service does:
//! `http://acct.table.localhost:10002/people`. Any host will do whose first label is the name of an account here; clients that
//! do not resolve names below `localhost` by themselves need an entry in their hosts file. With `-secondary` behind its name, an
//! account can be read and not written.
//!
//! # Log
//!
//! Each request is an event of [`tracing`] with the target `tablesdk_server::request`: what was asked by which kind of credential,
//! how it was answered, how long that took, and why it was refused, if it was. Events hold no keys, signatures and
//! tokens. Where nobody subscribes, they cost nothing.
//!
//! # Testing a client
//!
//! [`Builder`] makes happen what else happens in production alone: small and empty [pages](Builder::empty_pages), queries that
//! run out of [time](Builder::max_query_time), names of deleted tables that stay [taken](Builder::deleted_table_name_hold). The
//! [guide to testing](https://docs.rs/tablesdk/latest/tablesdk/guide/testing/) of `tablesdk` puts it together.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `cli` | yes | the program `tablesdk-server`; a test depends on the library with `default-features = false` |
//! | `durable` | with `cli` | tables in a folder: `Builder::data`, `DataFolder` |
//! | `jemalloc` | no | for the program: an allocator that gives freed memory back to the system; building it takes `make` and a C compiler |
//! | `tls` | with `cli` | HTTPS: `Builder::tls` |
//!
//! # Standalone
//!
//! `cargo install tablesdk-server && tablesdk-server` listens on port 10002 with the well-known development account; see
//! `tablesdk-server --help`.

mod access;
mod address;
mod builder;
mod clock;
mod connection;
mod context;
mod cors;
#[cfg(feature = "durable")]
mod data_folder;
mod engine;
mod handler;
mod http;
mod memory;
mod metrics;
mod request_log;
mod server;
mod service;
mod stamp;
mod storage;
mod sweep;
mod time_limit;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "durable")]
mod transfer;

pub use access::{TokenAction, TokenGrant, TokenRefusal, TokenVerifier};
pub use builder::Builder;
#[cfg(feature = "durable")]
pub use data_folder::{CheckReport, DataFolder, Progress, Transferred, verify_backup};
pub use server::{InProcess, TableServer};
#[cfg(feature = "durable")]
pub use storage::Durability;
#[cfg(feature = "tls")]
pub use tls::TlsIdentity;
// What the interface is made of, so that a test needs no more than this crate: the same types as in `tablesdk`.
pub use tablesdk_protocol::auth::{InvalidKeyError, SharedKey};
pub use tablesdk_protocol::{
    Clock, ParseTimestampError, Timestamp, TimestampRangeError, Transport, TransportError,
    TransportFuture,
};
