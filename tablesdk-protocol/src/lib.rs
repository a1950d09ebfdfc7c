#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod auth;
pub mod filter;
pub mod operation;
mod path;
mod transport;
mod types;
pub mod wire;

pub use auth::{AccessPolicy, SignedIdentifier, SignedIdentifierError, check_signed_identifiers};
pub use path::continuation;
pub use path::{Endpoint, InvalidEndpointError, ResourcePath};
pub use transport::{Delivery, InProcessServer, Transport, TransportError, TransportFuture};
pub use types::{
    Clock, CorsRule, ETag, EdmType, EntityKey, ErrorCode, GeoReplicationStatus, Guid, IfMatch,
    KeyError, KeyKind, KeyProblem, Logging, Metrics, ParseETagError, ParseGuidError,
    ParseTimestampError, PartitionKey, PropertyNameProblem, RowKey, ServiceError,
    ServiceProperties, ServicePropertiesError, ServiceStats, ShortString, TableName,
    TableNameError, TableNameProblem, Timestamp, TimestampRangeError, UnknownEdmTypeError, Value,
    ValueRef, check_property_name, compare_utf16, header, limits,
};
