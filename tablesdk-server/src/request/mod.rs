//! The parts of a request that are the same for every operation: address, authentication, CORS,
//! memory, log and metrics.
//!
//! This room knows neither sockets nor what an operation means.

pub(crate) mod address;
pub(crate) mod auth;
pub(crate) mod connection;
pub(crate) mod context;
pub(crate) mod cors;
pub(crate) mod entity_counts;
pub(crate) mod handler;
pub(crate) mod log;
#[cfg_attr(not(feature = "network"), path = "memory_unlimited.rs")]
pub(crate) mod memory;
pub(crate) mod metrics;
