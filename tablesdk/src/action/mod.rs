//! The verbs of the clients as values: options are chained, `.await` runs them. One file per operation of the service.

mod create_table;
mod delete_entity;
mod delete_table;
mod get_entity;
mod insert_entity;
mod query_entities;
mod query_tables;
mod update_entity;

pub use create_table::{CreateTable, CreateTableIfMissing};
pub use delete_entity::DeleteEntity;
pub use delete_table::DeleteTable;
pub use get_entity::GetEntity;
pub use insert_entity::InsertEntity;
pub use query_entities::QueryEntities;
pub use query_tables::QueryTables;
pub use update_entity::{ReplaceStored, WriteEntity};

use std::pin::Pin;

use bytes::Bytes;
use tablesdk_protocol::EntityKey;

use crate::Error;
use crate::entity::{TableEntity, write_entity};

/// The running form of an action.
pub type ActionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// An entity ready to be sent.
#[derive(Clone, Debug)]
struct EncodedEntity {
    key: EntityKey,
    body: Bytes,
}

impl EncodedEntity {
    fn new<E: TableEntity>(operation: &'static str, entity: &E) -> Result<Self, Error> {
        let refused = |error| Error::input(error).with_operation(operation);
        let key = entity.entity_key().map_err(refused)?;
        match write_entity(entity, &key) {
            Ok(body) => Ok(Self { key, body }),
            Err(error) => Err(refused(error).with_key(&key)),
        }
    }
}
