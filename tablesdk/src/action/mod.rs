//! The verbs of the clients as values: options are chained, `.await` runs them. One file per
//! operation of the service.
//!
//! Nothing is sent before the `.await`. Input that breaks a rule is kept, and reported by the
//! `.await`, so that no call in the chain returns a `Result`. An action copies what it needs of an
//! entity when it is made: the entity may change before the action runs.
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
//! [`clean_up_markers`](crate::TableClient::clean_up_markers) and [`drop_before`](crate::rolling::RollingTable::drop_before) for each
//! request, [`create_table().wait(…)`](CreateTable::wait) for each
//! attempt to create the table, and
//! [`delete_all`](QueryEntities::delete_all) and [`bulk`](crate::TableClient::bulk) for each page and each batch,
//! and [`move_to`](crate::TableClient::move_to), [`clean_up_expired`](crate::TableClient::clean_up_expired) and [`drain`](crate::outbox::Outbox::drain) for
//! each request.

#[macro_use]
pub(crate) mod macros;

pub(crate) mod batch;
pub(crate) mod bulk;
mod create_table;
mod delete_entity;
mod delete_table;
pub(crate) mod extend;
pub(crate) mod future;
pub(crate) mod get_entity;
mod get_table;
pub(crate) mod insert_entity;
pub(crate) mod many;
pub(crate) mod modify;
pub(crate) mod patch;
pub(crate) mod query;
pub(crate) mod query_entities;
mod query_tables;
pub(crate) mod refusal;
mod service_properties;
mod service_stats;
mod simple;
mod table_acl;
pub(crate) mod transaction;
pub(crate) mod update_entity;
mod user_delegation_key;
pub(crate) mod write;

pub use crate::error::{ClosureError, CurrentEntity, CurrentState};
pub use crate::pipeline::OperationReport;
pub use batch::{Batch, BatchResult};
pub use bulk::{
    Bulk, BulkEntity, BulkError, BulkFailure, BulkProgress, BulkReport, BulkStandalone, DeleteAll,
    ModifyAll,
};
pub use create_table::CreateTable;
pub use delete_entity::DeleteEntity;
pub use future::ActionFuture;
pub use get_entity::{GetEntity, ResolveEntity};
pub use insert_entity::InsertEntity;
pub use many::GetMany;
pub use modify::{Modified, Modify};
pub use patch::{Patch, PatchProperties};
pub use query::merged::Merged;
pub use query::parallel::ParallelQuery;
pub use query_entities::QueryEntities;
pub use query_tables::QueryTables;
pub use simple::Action;
pub use transaction::{RunTransaction, Transaction};
pub use update_entity::Write;
pub use user_delegation_key::GetUserDelegationKey;
pub use write::clean_up_markers::CleanUpMarkers;

pub(crate) use delete_table::delete_table;
pub(crate) use get_entity::{found_after, get_now};
pub(crate) use get_table::table_exists;
pub(crate) use service_properties::{get_properties, set_properties};
pub(crate) use service_stats::get_stats;
pub(crate) use table_acl::{get_access_policy, set_access_policy};
