#![doc = include_str!("../README.md")]

pub mod action;
pub mod query;
pub mod transport;

mod clock;
mod connection_string;
mod credential;
mod entity;
mod error;
mod pipeline;
mod service_client;
mod table_client;

pub use clock::SystemClock;
pub use credential::{Credential, Sas};
pub use entity::{
    EntityError, EntityProblem, Field, IntoEntityKey, Key, KeyOf, KeyPart, Partition,
    PropertyReader, PropertySchema, PropertyValue, PropertyWriter, Schema, Stored, TableEntity,
    ValueError,
};
pub use error::{Error, ErrorKind};
pub use service_client::{Builder, TableServiceClient};
pub use table_client::TableClient;
#[cfg(feature = "derive")]
pub use tablesdk_derive::TableEntity;
pub use tablesdk_protocol::auth::{InvalidKeyError, SharedKey};
pub use tablesdk_protocol::{
    Clock, Delivery, ETag, EdmType, Endpoint, EntityKey, ErrorCode, Guid, KeyError, KeyPartName,
    KeyProblem, PartitionKey, RowKey, Timestamp, Transport, TransportError, TransportFuture, Value,
    ValueRef,
};

/// What the code that the derive generates is made of. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::entity::{
        EntityError, FieldAccess, Key, KeyAccess, Partition, PropertyReader, PropertyWriter,
        Schema, Slot, entity_key, field, key_part,
    };
    pub use crate::query::Column;
    pub use tablesdk_protocol::EntityKey;
}

/// Runs the program in the workspace's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;
