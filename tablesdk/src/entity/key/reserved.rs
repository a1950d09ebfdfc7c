//! The keys of what the client stores for purposes of its own.

/// Returns true if an entity with this row key belongs to the client, and not to the program.
/// Queries do not return it.
pub(crate) fn is_reserved(row_key: &str) -> bool {
    // It sorts after letters and digits.
    row_key.starts_with("~tablesdk.")
}
