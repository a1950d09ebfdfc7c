#![doc = include_str!("../README.md")]

pub mod auth;
pub mod continuation;
pub mod filter;
pub mod header;
pub mod limits;
pub mod operation;
pub mod wire;

mod access_policy;
mod clock;
mod endpoint;
mod error_code;
mod etag;
mod guid;
mod key;
mod name;
mod path;
mod service_properties;
mod service_stats;
mod text;
mod timestamp;
mod transport;
mod value;

pub use access_policy::{
    AccessPolicy, SignedIdentifier, SignedIdentifierError, check_signed_identifiers,
};
pub use clock::Clock;
pub use endpoint::{Endpoint, InvalidEndpointError};
pub use error_code::{ErrorCode, ServiceError};
pub use etag::{ETag, IfMatch};
pub use guid::{Guid, ParseGuidError};
pub use key::{EntityKey, KeyError, KeyPartName, KeyProblem, PartitionKey, RowKey};
pub use name::{
    PropertyNameProblem, TableName, TableNameError, TableNameProblem, check_property_name,
};
pub use path::ResourcePath;
pub use service_properties::{
    CorsRule, Logging, Metrics, ServiceProperties, ServicePropertiesError,
};
pub use service_stats::{GeoReplicationStatus, ServiceStats};
pub use timestamp::{ParseTimestampError, Timestamp, TimestampRangeError};
pub use transport::{Delivery, Transport, TransportError, TransportFuture};
pub use value::{EdmType, UnknownEdmTypeError, Value, ValueRef, compare_utf16};
