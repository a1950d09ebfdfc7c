//! What stands in front of the names of a flattened struct. Copied about with columns, hence without an allocation.

use std::borrow::Cow;

/// The prefixes of nested structs, outermost first. Empty for what is not flattened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix([&'static str; DEPTH_MAX]);

impl Prefix {
    /// Of what is not flattened.
    pub const ROOT: Self = Self([""; DEPTH_MAX]);

    /// With the prefix of a struct within; `None` when it lies too deep.
    pub(super) const fn checked_then(self, text: &'static str) -> Option<Self> {
        if text.is_empty() {
            return Some(self);
        }
        let [a, b, c] = self.0;
        match (a.is_empty(), b.is_empty(), c.is_empty()) {
            (true, ..) => Some(Self([text, "", ""])),
            (false, true, _) => Some(Self([a, text, ""])),
            (false, false, true) => Some(Self([a, b, text])),
            (false, false, false) => None,
        }
    }

    /// With the prefix of a struct within. What would lie too deep has been refused at compile time.
    #[must_use]
    pub const fn then(self, text: &'static str) -> Self {
        match self.checked_then(text) {
            Some(prefix) => prefix,
            None => self,
        }
    }

    pub(super) const fn parts(&self) -> &[&'static str; DEPTH_MAX] {
        &self.0
    }

    /// The whole name of a property.
    pub(crate) fn name(self, name: &'static str) -> Cow<'static, str> {
        if self == Self::ROOT {
            return Cow::Borrowed(name);
        }
        let mut text = self.0.concat();
        text.push_str(name);
        Cow::Owned(text)
    }
}

/// How many structs with a prefix may lie within each other.
pub(super) const DEPTH_MAX: usize = 3;
