//! Which entities this client stores for purposes of its own, next to those of the program.

use super::exactly_once::is_marker;
use crate::entity::expiry;

/// The prefix of the row keys of the outbox. It sorts after letters and digits.
pub(in crate::action) const OUTBOX: &str = "~tablesdk.outbox.";

/// The prefix of the row keys of the intents of wide entities.
pub(in crate::action) const WIDE: &str = "~tablesdk.wide.";
/// Sorts after the row keys of all intents, which go on with a version.
pub(in crate::action) const WIDE_END: &str = "~tablesdk.wide.~";

/// Whether an entity with this row key is not one of the program. Queries do not return it.
pub(in crate::action) fn is_reserved(row_key: &str) -> bool {
    let prefixes = [OUTBOX, WIDE, expiry::PREFIX];
    prefixes.iter().any(|prefix| row_key.starts_with(prefix)) || is_marker(row_key)
}
