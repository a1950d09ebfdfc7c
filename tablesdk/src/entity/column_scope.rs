//! Where a column belongs: what stands in front of the names of a flattened struct, and which rows
//! of several kinds have it. Copied about with columns, hence without an allocation.

use std::borrow::Cow;

use tablesdk_protocol::filter::Filter as Tree;

use super::variants::VariantRows;

/// The prefixes of nested structs, outermost first, empty for what is not flattened; and the rows,
/// where not all have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnScope {
    texts: [&'static str; DEPTH_MAX],
    rows: Option<VariantRows>,
}

impl ColumnScope {
    /// The scope of a column that is not flattened.
    pub const ROOT: Self = Self {
        texts: [""; DEPTH_MAX],
        rows: None,
    };

    /// Restricts the scope to these rows, in place of the rows that it had.
    #[must_use]
    pub const fn of_rows(mut self, rows: Option<VariantRows>) -> Self {
        self.rows = rows;
        self
    }

    /// The rows that have it, where not all do.
    pub(crate) const fn rows(&self) -> Option<&VariantRows> {
        self.rows.as_ref()
    }

    /// With the prefix of a struct within; `None` when it lies too deep.
    pub(super) const fn checked_then(self, text: &'static str) -> Option<Self> {
        if text.is_empty() {
            return Some(self);
        }
        let [a, b, c] = self.texts;
        let texts = match (a.is_empty(), b.is_empty(), c.is_empty()) {
            (true, ..) => [text, "", ""],
            (false, true, _) => [a, text, ""],
            (false, false, true) => [a, b, text],
            (false, false, false) => return None,
        };
        Some(Self { texts, ..self })
    }

    /// With the prefix of a struct within. What would lie too deep has been refused at compile
    /// time.
    #[must_use]
    pub const fn then(self, text: &'static str) -> Self {
        match self.checked_then(text) {
            Some(scope) => scope,
            None => self,
        }
    }

    /// The condition, restricted to the rows that have the column.
    pub(crate) fn within_rows(self, tree: Tree) -> Tree {
        match self.rows().and_then(VariantRows::condition) {
            Some(rows) => rows.and(tree),
            None => tree,
        }
    }

    pub(super) const fn parts(&self) -> &[&'static str; DEPTH_MAX] {
        &self.texts
    }

    /// Returns true if names have no prefix.
    pub(crate) const fn is_empty(&self) -> bool {
        let [outermost, ..] = self.texts;
        outermost.is_empty()
    }

    /// The whole name of a property.
    pub(crate) fn name(self, name: &'static str) -> Cow<'static, str> {
        if self.is_empty() {
            return Cow::Borrowed(name);
        }
        let mut text = self.texts.concat();
        text.push_str(name);
        Cow::Owned(text)
    }
}

/// How many structs with a prefix may lie within each other.
pub(super) const DEPTH_MAX: usize = 3;
