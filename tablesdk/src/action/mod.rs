//! The verbs of the clients as values: options are chained, `.await` runs them. One file per operation of the service.
//!
//! Nothing is sent before the `.await`. Input that breaks a rule is kept, and reported by the `.await`, so that no call in the
//! chain returns a `Result`. An action copies what it needs of an entity when it is made: the entity may change before the action
//! runs.
//!
//! ```
#![doc = include_str!("../docs/employees.md")]
//! let ada = Employee::new("Sales", "1", "Ada");
//! let insert = table.insert(&ada); // not yet
//! let insert = insert.exactly_once(); // an option
//! insert.await?; // now
//!
//! let nowhere = service.table("no table's name").insert(&ada);
//! assert_eq!(nowhere.await.unwrap_err().kind(), tablesdk::ErrorKind::Input);
//! # Ok(())
//! # }
//! ```
//!
//! Queries have no `.await` of their own: a method chooses the form of the result, such as [`stream`](QueryEntities::stream),
//! [`collect`](QueryEntities::collect) or [`count`](QueryEntities::count).
//!
//! # Options of a single call
//!
//! Each action and query has the methods `deadline` and `retry`, which replace the [policy](crate::RetryPolicy) of the client for this
//! call:
//!
//! ```
#![doc = include_str!("../docs/employees.md")]
//! use std::time::Duration;
//! use tablesdk::RetryPolicy;
//!
//! let ada = Employee::new("Sales", "1", "Ada");
//! table.insert(&ada).deadline(Duration::from_secs(2)).await?;
//! let sales = table.query::<Employee>().partition("Sales").retry(RetryPolicy::none());
//! assert_eq!(sales.count().await?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! The deadline covers all requests of an action, such as the rounds of [`modify`](crate::TableClient::modify) and the requests of
//! `exactly_once`. Some actions are several operations, each of which has the whole deadline and all attempts: a query or a list
//! of tables for each page, [`get_many`](crate::TableClient::get_many) for each entity,
//! [`sweep_markers`](crate::TableClient::sweep_markers) and [`drop_before`](crate::rolling::RollingTable::drop_before) for each
//! request, [`create_table().wait(…)`](CreateTable::wait) for each
//! attempt to create the table, and
//! [`delete_all`](QueryEntities::delete_all) and [`bulk`](crate::TableClient::bulk) for each page and each batch,
//! and [`move_to`](crate::TableClient::move_to), [`remove_expired`](crate::TableClient::remove_expired) and [`drain`](Outbox::drain) for
//! each request.

#[macro_use]
mod macros;

mod batch;
mod bulk;
mod create_table;
mod delete_entity;
mod delete_table;
mod encryption;
mod expiry;
mod get_entity;
mod get_table;
mod index;
mod insert_entity;
mod many;
mod modify;
mod moves;
mod outbox;
mod patch;
mod query;
mod query_entities;
mod query_tables;

mod service_properties;
mod service_stats;
mod simple;
mod table_acl;
mod transaction;
mod update_entity;
pub(crate) mod wide;
mod write;

pub use crate::error::{ClosureError, CurrentEntity, CurrentState};
pub use crate::pipeline::OperationReport;
pub use batch::{Batch, BatchResult};
pub use bulk::{
    Bulk, BulkEntity, BulkError, BulkFailure, BulkProgress, BulkReport, DeleteAll, MoveAll,
};
pub use create_table::CreateTable;
pub use delete_entity::DeleteEntity;
pub use expiry::{ExpiryReport, RemoveExpired};
pub use get_entity::{GetEntity, ResolveEntity};
pub use index::follow::{FollowEntries, FollowEntry, UnverifiedEntry};
pub use index::repair::{IndexConflict, Repair, RepairReport};
pub use insert_entity::InsertEntity;
pub use many::GetMany;
pub use modify::{Modified, Modify};
pub use moves::MoveEntity;
pub use outbox::drain::{DrainOutbox, DrainReport, Outbox};
#[cfg(feature = "json")]
pub use outbox::message::{Message, Received};
pub use outbox::poisoned::PoisonedStep;
pub use outbox::step::Step;
pub use patch::{Patch, PatchProperties};
pub use query::merged::Merged;
pub use query::parallel::ParallelQuery;
pub use query_entities::QueryEntities;
pub use query_tables::QueryTables;
pub use simple::Action;
pub use transaction::{RunTransaction, Transaction};
pub use update_entity::{UpdateEntity, WriteEntity};
pub use write::sweep_markers::SweepMarkers;

pub(crate) use delete_table::delete_table;
pub(crate) use get_entity::{found_after, get_now};
pub(crate) use get_table::table_exists;
pub(crate) use service_properties::{get_properties, set_properties};
pub(crate) use service_stats::get_stats;
pub(crate) use table_acl::{get_access_policy, set_access_policy};

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::HeaderValue;
use tablesdk_protocol::limits::URL_BYTES_MAX;
use tablesdk_protocol::{EntityKey, IfMatch};

use self::encryption::Encryption;
use self::index::changes::EntryChanges;
use crate::entity::encrypted::encrypted;
use crate::entity::{Stored, TableEntity, WritableEntity, write_stamped};
use crate::error::Error;

/// The running form of an action.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use std::future::IntoFuture;
/// use tablesdk::ETag;
/// use tablesdk::action::ActionFuture;
///
/// // Verbs of different types, together.
/// let grace = Employee::new("Sales", "2", "Grace");
/// let writes: Vec<ActionFuture<'_, ETag>> = vec![
///     table.upsert_replace(&grace).into_future(),
///     table.patch(Employee::key("Sales", "1")).set(|e| e.name, "Ada Lovelace").into_future(),
/// ];
/// let etags = futures::future::try_join_all(writes).await?;
/// # assert_eq!(etags.len(), 2);
/// # Ok(())
/// # }
/// ```
pub type ActionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// An entity ready to be sent.
#[derive(Clone)]
struct EncodedEntity {
    key: EntityKey,
    body: Bytes,
    /// What becomes of its entries in indexes; nothing for an entity without indexes.
    entries: EntryChanges,
    encryption: Encryption,
}

/// Without the values, which are private.
impl fmt::Debug for EncodedEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedEntity")
            .field("key", &self.key)
            .field("bytes", &self.body.len())
            .field("entries", &self.entries)
            .field("encryption", &self.encryption)
            .finish()
    }
}

impl EncodedEntity {
    /// Nothing but a key: of what is to be deleted.
    const fn of_key(key: EntityKey) -> Self {
        Self::standalone(key, Bytes::new())
    }

    /// An entity without indexes.
    const fn standalone(key: EntityKey, body: Bytes) -> Self {
        Self {
            key,
            body,
            entries: EntryChanges::NONE,
            encryption: Encryption::None,
        }
    }

    /// An entity without indexes, or properties of one.
    fn standalone_of<E: TableEntity>(key: EntityKey, body: Bytes) -> Self {
        Self {
            encryption: Encryption::of(encrypted::<E>()),
            ..Self::standalone(key, body)
        }
    }

    /// What was read, to be deleted.
    fn of_stored<E: TableEntity>(entity: &Stored<E>) -> Self {
        Self {
            entries: EntryChanges::removed(entity),
            ..Self::of_key(entity.key().clone())
        }
    }

    /// An entity of which it is not known with what it was read.
    fn new<E: WritableEntity>(operation: &'static str, entity: &E) -> Result<Self, Error> {
        let refused = |error| refused(operation, error);
        let key = entity.entity_key().map_err(refused)?;
        let encoded = write_stamped(entity, &key, None).and_then(|body| {
            let entries = EntryChanges::inserted(entity)?;
            Ok((body, entries))
        });
        match encoded {
            Ok((body, entries)) => Ok(Self {
                entries,
                ..Self::standalone_of::<E>(key, body)
            }),
            Err(error) => Err(refused(error).with_key(&key)),
        }
    }
}

/// An error of the input of an operation.
fn refused(operation: &'static str, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::input(error).with_operation(operation)
}

/// An error of the response to the request of an operation.
fn malformed(operation: &'static str, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::response(error).with_operation(operation)
}

/// Refuses the URL of a query that is longer than the service reads.
fn check_url(operation: &'static str, bytes: usize) -> Result<(), Error> {
    if bytes > URL_BYTES_MAX {
        return Err(refused(operation, UrlTooLong { bytes }));
    }
    Ok(())
}

/// Refuses an ETag that cannot be sent: it need not come from the service.
fn check_condition(operation: &'static str, if_match: &IfMatch) -> Result<(), Error> {
    match HeaderValue::from_str(if_match.as_str()) {
        Ok(_) => Ok(()),
        Err(_) => Err(refused(operation, UnsendableETag)),
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the URL would have {bytes} bytes, and the service reads {URL_BYTES_MAX}: the filter is too long"
)]
struct UrlTooLong {
    bytes: usize,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the ETag holds characters that no header can")]
struct UnsendableETag;
