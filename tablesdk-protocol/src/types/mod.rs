//! The values that all other modules share: property values, keys, names, timestamps, limits and
//! errors.
//!
//! They do not know how they are transmitted.

mod clock;
mod error_code;
mod etag;
mod guid;
pub mod header;
mod key;
pub mod limits;
mod name;
pub(crate) mod order;
mod serialize;
mod service_properties;
mod service_stats;
mod short_string;
pub(crate) mod text;
mod timestamp;
mod value;

pub use clock::Clock;
pub use error_code::{ErrorCode, ServiceError};
pub use etag::{ETag, IfMatch, ParseETagError};
pub use guid::{Guid, ParseGuidError};
pub use key::{EntityKey, KeyError, KeyKind, KeyProblem, PartitionKey, RowKey};
pub use name::{
    PropertyNameProblem, TableName, TableNameError, TableNameProblem, check_property_name,
};
pub(crate) use name::{check_property_characters, continues_property_name, starts_property_name};
pub use order::compare_utf16;
pub use service_properties::{
    CorsRule, Logging, Metrics, ServiceProperties, ServicePropertiesError,
};
pub use service_stats::{GeoReplicationStatus, ServiceStats};
pub use short_string::ShortString;
pub(crate) use timestamp::{FRACTION, FRACTION_BYTES, PrintedTimestamp};
pub use timestamp::{ParseTimestampError, Timestamp, TimestampRangeError};
pub(crate) use value::compare_double_to_integer;
pub use value::{EdmType, UnknownEdmTypeError, Value, ValueRef};
