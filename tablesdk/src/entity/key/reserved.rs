//! The keys of what the client stores for purposes of its own.

/// Whether an entity with this row key is not one of the program. Queries do not return it.
pub(crate) fn is_reserved(row_key: &str) -> bool {
    // It sorts after letters and digits.
    row_key.starts_with("~tablesdk.")
}
