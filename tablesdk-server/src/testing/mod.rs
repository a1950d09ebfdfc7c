//! The test kit of a server: faults, a journal of the requests, a clock that a test moves,
//! partition maps, and snapshots.
//!
//! Everything starts at a [`TableServer`](crate::TableServer):
//! [`faults`](crate::TableServer::faults), [`journal`](crate::TableServer::journal),
//! [`clock`](crate::TableServer::clock) and [`partitions`](crate::TableServer::partitions). It
//! works in process and over HTTP alike, and with each storage. A server that uses nothing of it
//! pays nothing for it.

mod clock;
mod cost;
mod draw;
mod fault;
mod faults;
mod journal;
pub(crate) mod json;
mod kit;
mod lint;
mod op;
mod partition_map;
mod partitions;
mod place;
mod request;
mod rule;
mod throttle;

pub(crate) use clock::ClockMark;
pub use clock::VirtualClock;
pub use cost::Cost;
pub use fault::Fault;
pub(crate) use fault::{Application, Reaction};
pub(crate) use faults::Cleared;
pub use faults::{Faults, InjectedFault};
pub use journal::{Journal, RecordedRequest, RecordedRequests};
pub(crate) use kit::{Detached, InFlight, Observed, TestKit};
pub use lint::{Lint, LintKind};
pub use op::{Op, UnknownOpError};
pub use partitions::{PartitionRange, Partitions};
pub use request::{RequestedEntity, RequestedQuery};
pub use rule::FaultRule;
pub use throttle::Throttle;

pub use crate::flavor::Flavor;
/// How a query finds its entities.
pub use tablesdk_protocol::filter::AccessClass;
