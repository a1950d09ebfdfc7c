#![doc = include_str!("../README.md")]
#![doc = include_str!("docs/front_page.md")]

pub mod action;
pub mod guide;
pub mod query;
pub mod sas;
pub mod service;
pub mod transfer;
pub mod transport;

mod backend;
mod clock;
mod connection_string;
mod credential;
mod current_state;
mod entity;
mod error;
mod pipeline;
mod service_client;
mod table_client;

pub use backend::Backend;
pub use clock::SystemClock;
pub use credential::{
    AccessToken, Credential, EntraId, Sas, TokenCredential, TokenError, TokenFuture, TokenRequest,
};
pub use current_state::{CurrentEntity, CurrentState};
pub use entity::{
    Desc, DynamicColumn, DynamicColumns, DynamicEntity, DynamicSelection, EntityError,
    EntityProblem, EntityType, EntityVariant, Escaped, Field, IntoEntityKey, IntoKeyPart, Key,
    KeyNumber, KeyOf, KeyPart, KeyRange, KeyTemplate, Ordered, Ordinal, Partition, Properties,
    PropertiesIntoIter, PropertyReader, PropertySchema, PropertyValue, PropertyWriter, RowRange,
    Schema, Shard, Stored, TableEntity, TableProperties, Text, ValueError, WritableEntity,
};
pub use error::{Error, ErrorKind};
pub use pipeline::{OperationReport, RetryPolicy};
pub use service_client::{TableServiceClient, TableServiceClientBuilder};
pub use table_client::TableClient;
#[cfg(feature = "derive")]
#[doc = include_str!("docs/property_value.md")]
pub use tablesdk_derive::PropertyValue;
#[cfg(feature = "derive")]
#[doc = include_str!("docs/table_entity.md")]
#[doc = include_str!("docs/entity_type.md")]
pub use tablesdk_derive::TableEntity;
#[cfg(feature = "derive")]
#[doc = include_str!("docs/table_properties.md")]
pub use tablesdk_derive::TableProperties;
pub use tablesdk_protocol::auth::{InvalidKeyError, SharedKey};
pub use tablesdk_protocol::wire::json::PropertyError;
pub use tablesdk_protocol::{
    Clock, Delivery, ETag, EdmType, Endpoint, EntityKey, ErrorCode, Guid, InvalidEndpointError,
    KeyError, KeyPartName, KeyProblem, ParseGuidError, ParseTimestampError, PartitionKey, RowKey,
    Timestamp, TimestampRangeError, Transport, TransportError, TransportFuture,
    UnknownEdmTypeError, Value, ValueRef,
};

/// What the code that the derive generates is made of. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::entity::{
        By, DefaultField, ETagAccess, ETagField, EntityError, EntityType, EntityVariant, Field,
        FieldAccess, IntoKeyPart, JsonField, Key, KeyAccess, KeyPiece, KeyRange, KeyReader,
        KeyTemplate, KeyWriter, OtherVariant, Partition, Prefix, PropertyReader, PropertyWriter,
        RestAccess, RestField, RowRange, Rows, Schema, SchemaPart, Slot, TableProperties,
        ValueError, VariantAccess, VariantRows, VariantSchema, check_other, default_of, entity_key,
        etag_field, field, json_field, key_number, key_part, projected_variant, rest_field,
        schema_of, string, text_ref, upgrade, variant, with_field, with_from_value, with_to_value,
    };
    pub use crate::query::{Column, Filter, JsonColumn, KeyPartColumn};
    pub use std::string::String;
    pub use tablesdk_protocol::wire::json::RawProperty;
    pub use tablesdk_protocol::{
        ETag, EdmType, EntityKey, KeyPartName, Timestamp, Value, ValueRef,
    };
}

/// Runs the program in the workspace's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;
