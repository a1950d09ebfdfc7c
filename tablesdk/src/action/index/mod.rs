//! Indexes: their entries are written with the entities, lead to them, and are repaired.

pub(super) mod changes;
mod elsewhere;
pub(super) mod entries;
pub(super) mod follow;
mod part;
mod read;
pub(super) mod repair;
