//! Indexes and copies: their entries are written with the entities, lead to them, and are repaired.

mod across_partitions;
pub(crate) mod attach;
pub(crate) mod copy;
pub(crate) mod entries;
pub(crate) mod entry;
mod event;
mod follow;
pub(crate) mod indexes;
mod part;
mod read;
mod repair;
pub(crate) mod rider;
mod taken;
pub(crate) mod unverified;

pub use copy::CopyOf;
pub use entry::IndexEntry;
pub use follow::{FollowEntries, FollowEntry, UnverifiedEntry};
pub use repair::{IndexConflict, Repair, RepairReport};
