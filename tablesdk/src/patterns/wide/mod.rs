//! Wide entities: structs and maps with more properties, or more bytes, than the service stores in
//! one entity.
//!
//! An entity of the service has at most 252 properties and 1 MiB. A wide entity is stored as up to
//! 99 of them in one partition, and is written and read as a whole: 24,848 properties, or up to 99
//! MiB. Each property still has at most 64 KiB; a larger value is several properties, such as a
//! [`Chunked`](crate::chunked::Chunked).
//!
//! A struct is marked `#[table(wide)]`. It is then written and read by the verbs of
//! [`table.wide()`](crate::TableClient::wide), and those of a table do not compile for it. A map is
//! a [`DynamicEntity`](crate::DynamicEntity).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = tablesdk_server::TableServer::start().await?;
//! # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
//! # let table = service.table("Sensors");
//! # table.create_table().await?;
//! use tablesdk::{DynamicEntity, TableEntity};
//!
//! #[derive(Debug, PartialEq, TableEntity)]
//! #[table(wide, partition_key = "{author}", row_key = "{title}")]
//! struct Report {
//!     author: String,
//!     title: String,
//!     summary: String,
//!     pages: i32,
//!     // … and very many others
//! }
//!
//! let reports = table.wide::<Report>();
//! let report = Report { author: "ann".into(), title: "2024".into(), summary: "…".into(), pages: 812 };
//! reports.insert(&report).await?;
//!
//! let mut found = reports.get(Report::key("ann", "2024")).await?.expect("was inserted");
//! found.pages += 1;
//! reports.replace(&mut found).await?;
//! let pages = reports.select(Report::key("ann", "2024"), |r| r.pages).await?;
//! assert_eq!(pages, Some(813));
//!
//! // A map of 1,000 properties, in four entities of the service.
//! let readings = (0..1_000).map(|sensor| (format!("S{sensor:04}"), 18.5));
//! let map = DynamicEntity::new("house", "2024-03-15").with_properties(readings.collect());
//! table.wide().insert(&map).await?;
//! assert_eq!(table.query::<DynamicEntity>().partition("house").count().await?, 4);
//! let found = table.wide::<DynamicEntity>().get(("house", "2024-03-15")).await?;
//! assert_eq!(found.expect("was inserted").properties().len(), 1_000);
//! # Ok(())
//! # }
//! ```
//!
//! # What a reader sees
//!
//! The head is an entity under the entity's own key. It has the first properties, in the order of
//! their names, and names a version. Its siblings, in the order of the row keys directly after it,
//! have the others; their row keys contain the version. A write makes a new version, and never
//! changes one.
//!
//! * A reader gets all of one version, or an error: never properties of two. If a sibling is
//!   missing, another client replaced the entity while it was read, and the client reads it again.
//!   An entity without a sibling that its head names is an error of
//!   [`ErrorKind::Data`](crate::ErrorKind::Data). It can still be replaced and deleted.
//! * Conditional writes compare the ETag of the head, which each write changes.
//! * If a response was lost, the version shows whether the write was carried out. The result is
//!   [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) only where that cannot be
//!   read, or where another client has written the entity since.
//!
//! # Requests
//!
//! A write is one entity group transaction if all of it fits: 100 changes and 4 MiB as they are
//! sent (2 MiB on Cosmos DB). Binary values take a third more there. The transaction has the head,
//! the siblings, and a delete for each sibling of the version before.
//!
//! A larger entity takes several transactions. Those before the last write siblings of the new
//! version, which no head names yet. The last one writes the head, and deletes the siblings of the
//! version before: up to it readers see the old version, and after it the new one. A write that
//! another client preceded deletes its siblings again: an insert of an entity that exists is
//! rejected by the last transaction. All of them share the [deadline](WideAction::deadline) of the
//! call.
//!
//! A write whose program ended in between, or that met its deadline there, leaves siblings.
//! [`clean_up_siblings`](WideTable::clean_up_siblings) finds and deletes them: the first of the
//! transactions also stores an [intent](crate::guide::stored_forms#wide-entities), which each
//! further one changes, and the last one deletes. A clean-up deletes an intent that is old together
//! with its siblings. A writer that is still running is then refused and fails, however late its
//! request arrives. So no clean-up deletes siblings that a head names.
//!
//! | | requests |
//! |---|---|
//! | `insert`, `replace`, `delete_stored` | 1, or 1 for each 4 MiB |
//! | `upsert_replace`, `modify`, `delete` | the same, and a read of the head, or of the entity |
//! | `get` | 1 for each page of 4 MiB |
//! | `select` | 1, and 1 for each sibling that has selected properties |
//! | `clean_up_siblings` | 1, and 2 for each intent |
//!
//! # Limits
//!
//! * No filters, indexes, copies, patches and merges: each property is in one of several entities.
//! * Row keys have at most 492 UTF-16 units if the entity has siblings. Another entity of the
//!   partition must not have a row key that is that of a wide entity followed by `!`.
//! * Other verbs see head and siblings as the entities that they are. A program that writes or
//!   deletes a head by itself leaves siblings that no clean-up finds.
//! * Entities whose row keys are that of a wide entity followed by a space are between its head and
//!   its siblings. `get` reads them, too: choose other keys if there are many.

mod call;
mod entity;
mod intent;
mod layout;
mod read;
mod stream;
mod table;
mod write;

pub use entity::WideEntity;
pub use table::{StoredWide, WideAction, WideTable};
