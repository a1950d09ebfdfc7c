//! How a pattern takes part in the verbs. Knows no pattern.
//!
//! * A [`Ride`] goes along with the change of one entity, or with a batch. Its [`Layer`] wraps the
//!   request that commits the change, and [counts](count) the requests that it adds.
//! * An [`Extend`] takes part in all reads and writes of a type: it changes how queries are sent,
//!   how content is read, and which entities count as missing.

pub(crate) mod count;
pub(crate) mod extension;
pub(crate) mod ride;
mod table_of;

#[cfg(doc)]
use {extension::Extend, ride::Layer, ride::Ride};
