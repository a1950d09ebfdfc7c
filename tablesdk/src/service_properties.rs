//! Properties of an account beside its tables: logging, metrics, CORS rules, and the state of its
//! secondary.
//!
//! Read and set with [`properties`](crate::TableServiceClient::properties),
//! [`set_properties`](crate::TableServiceClient::set_properties) and
//! [`stats`](crate::TableServiceClient::stats). Cosmos DB has none of it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = tablesdk_server::TableServer::start().await?;
//! # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
//! use tablesdk::service_properties::{GeoReplicationStatus, Metrics, ServiceProperties};
//!
//! // What is not named stays as it is.
//! let hourly = Metrics::enabled().include_apis().retain_days(30);
//! service.set_properties(ServiceProperties::default().with_hour_metrics(hourly)).await?;
//! let now = service.properties().await?;
//! assert_eq!(now.hour_metrics.and_then(|metrics| metrics.retention_days), Some(30));
//!
//! assert_eq!(service.stats().await?.status, GeoReplicationStatus::Live);
//! # Ok(())
//! # }
//! ```

pub use tablesdk_protocol::{
    CorsRule, GeoReplicationStatus, Logging, Metrics, ServiceProperties, ServiceStats,
};
