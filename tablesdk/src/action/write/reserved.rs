//! Which entities this client stores for purposes of its own, next to those of the program.

use super::exactly_once::is_marker;
use crate::entity::expiry;

/// The prefix of the row keys of the outbox. It sorts after letters and digits.
pub(in crate::action) const OUTBOX: &str = "~tablesdk.outbox.";

/// Whether an entity with this row key is not one of the program. Queries do not return it.
pub(in crate::action) fn is_reserved(row_key: &str) -> bool {
    row_key.starts_with(OUTBOX) || row_key.starts_with(expiry::PREFIX) || is_marker(row_key)
}
