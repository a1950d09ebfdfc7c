//! Indexes and copies: entities that are written together with another one, and lead to it.
//!
//! `#[table(index(…))]` and `#[table(copy(…))]` of the [derive](derive@crate::TableEntity#index)
//! turn them on. Their entries are written by the verbs of the entity, in the same transaction
//! where they are in its partition; [`follow`](crate::action::GetEntity::follow) reads the entities
//! of entries, and [`repair`](crate::TableClient::repair) mends what other programs left. [The
//! guide to indexes](crate::guide::indexes) is the page about it.

mod across_partitions;
pub(crate) mod attach;
pub(crate) mod copy;
pub(crate) mod entries;
pub(crate) mod entry;
mod event;
mod follow;
pub(crate) mod indexes;
mod parallel;
mod part;
mod read;
mod repair;
mod reservation;
pub(crate) mod rider;
mod table;
mod taken;
mod ticket;
mod unique;
pub(crate) mod unverified;

pub use copy::CopyOf;
pub use entry::IndexEntry;
pub use follow::{FollowEntries, FollowEntry, UnverifiedEntry};
pub use repair::{IndexConflict, Repair, RepairReport};
