//! What writes have in common: one change, an entity group transaction, ambiguous outcomes, and markers.

pub(super) mod ambiguous_write;
pub(super) mod batch_request;
pub(super) mod change;
pub(super) mod changed_only;
pub(super) mod exactly_once;
pub(super) mod own_copies;
pub(super) mod reserved;
pub(super) mod sweep_markers;
pub(super) mod together;
pub(super) mod unmodelled;
