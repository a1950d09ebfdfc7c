//! The common parts of writes: one change, an entity group transaction, ambiguous outcomes, and
//! markers.

pub(crate) mod ambiguous_write;
pub(crate) mod batch_request;
mod carry_out;
pub(crate) mod change;
pub(crate) mod changed_only;
pub(crate) mod clean_up_markers;
pub(crate) mod commit;
pub(crate) mod encoded;
pub(crate) mod exactly_once;
pub(crate) mod keep_marker;
pub(crate) mod own_copies;
pub(crate) mod response;
pub(crate) mod row_keys;
pub(crate) mod unmodelled;
