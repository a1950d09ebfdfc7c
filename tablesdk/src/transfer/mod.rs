//! Export and import of whole tables: the entities of an account as records, and records as entities of an account.
//!
//! [`TableServiceClient::export`](crate::TableServiceClient::export) reads all tables, or the named ones, page by page, and returns
//! after each page the position to resume from. [`TableServiceClient::import`](crate::TableServiceClient::import) takes the
//! records, packs neighbours of one partition into batches, and has several batches in flight at a time. Between the two, a
//! [`Record`] is a line of JSON, or goes directly from one account to another: this module opens no file. Every endpoint that the
//! client supports can be either end.
//!
//! An export is not a snapshot: what is written while it runs may or may not be in it. Each page is what the service returned, so
//! an entity that does not change meanwhile is in the export once. Stored access policies, the properties of the service, and the
//! markers of `exactly_once` are not in it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use futures::TryStreamExt as _;
//! # use tablesdk::{DynamicEntity, TableServiceClient};
//! # let (old, new) = (tablesdk_server::TableServer::start().await?, tablesdk_server::TableServer::start().await?);
//! # let old = TableServiceClient::from_connection_string(&old.connection_string())?;
//! # let new_service = TableServiceClient::from_connection_string(&new.connection_string())?;
//! # old.table("Employees").create_table().await?;
//! # old.table("Employees").insert(&DynamicEntity::new("Sales", "1")).await?;
//! # let new = new_service;
//! use tablesdk::transfer::{ImportMode, Record};
//!
//! // Out of one account, as lines of text …
//! let mut file = Vec::new();
//! let mut export = old.export().stream();
//! while let Some(chunk) = export.try_next().await? {
//!     for record in &chunk.records {
//!         record.write_line(&mut file)?;
//!     }
//! }
//!
//! // … and into another.
//! let mut import = new.import(ImportMode::UpsertReplace);
//! for line in file.split_inclusive(|byte| *byte == b'\n') {
//!     import.push(Record::read_line(line)?).await?;
//! }
//! let report = import.finish().await?;
//! assert!(report.is_complete && report.entities == 1);
//! assert!(new.table("Employees").get::<DynamicEntity>(("Sales", "1")).await?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # The format of the lines
//!
//! ```text
//! {"format":"tablesdk","version":1}
//! {"table":"Employees"}
//! {"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Badge@odata.type":"Edm.Int64","Badge":"7"}}
//! {"end":{"tables":1,"entities":1}}
//! ```
//!
//! An entity is written as the service's own JSON has it, so that every EDM type survives; its `Timestamp` says when it was
//! last written, and is not imported, since the service sets it. Each line stands by itself: a file may be cut, sorted out
//! with line tools, and put together again, with new counts in the last line.

mod export;
mod import;
mod position;
mod record;

pub use export::{Chunk, Export};
pub use import::{Import, ImportMode, ImportReport};
pub use position::ExportPosition;
pub use record::Record;
