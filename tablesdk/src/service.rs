//! What an account keeps beside its tables: logging, metrics, CORS rules, and how far its secondary is.
//!
//! Read and set with [`properties`](crate::TableServiceClient::properties),
//! [`set_properties`](crate::TableServiceClient::set_properties) and [`stats`](crate::TableServiceClient::stats). Cosmos DB has none of it.

pub use tablesdk_protocol::{
    CorsRule, GeoReplicationStatus, Logging, Metrics, ServiceProperties, ServicePropertiesError,
    ServiceStats,
};
