//! Partition key and row key: what is a key, and *the* order of keys, used by everything that sorts
//! or ranges over them.
//!
//! See
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model#system-properties>.

use std::cmp::Ordering;
use std::fmt;

use crate::types::compare_utf16;
use crate::types::limits::KEY_UNITS_MAX;

/// The partition key and the row key of an entity, which together identify it within its table.
///
/// Ordered as the service returns entities: by partition key, then by row key, each by UTF-16 code
/// units.
///
/// ```
/// # use tablesdk_protocol::EntityKey;
/// let key = EntityKey::new("Sales", "empid_000223")?;
/// assert_eq!(key.partition_key().as_str(), "Sales");
/// assert!(EntityKey::new("a/b", "").is_err());
/// # Ok::<(), tablesdk_protocol::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    partition_key: PartitionKey,
    row_key: RowKey,
}

impl EntityKey {
    /// A key from partition key and row key; either may be empty.
    ///
    /// # Errors
    ///
    /// When a string breaks a rule of [`PartitionKey::new`].
    pub fn new(
        partition_key: impl Into<String>,
        row_key: impl Into<String>,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            partition_key: PartitionKey::new(partition_key)?,
            row_key: RowKey::new(row_key)?,
        })
    }

    /// A key from its two parts.
    pub const fn from_parts(partition_key: PartitionKey, row_key: RowKey) -> Self {
        Self {
            partition_key,
            row_key,
        }
    }

    /// The partition the entity belongs to.
    pub const fn partition_key(&self) -> &PartitionKey {
        &self.partition_key
    }

    /// The row key, which identifies the entity within its partition.
    pub const fn row_key(&self) -> &RowKey {
        &self.row_key
    }
}

impl fmt::Debug for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints `("Sales", "empid_000223")`.
impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "({:?}, {:?})",
            self.partition_key.as_str(),
            self.row_key.as_str()
        )
    }
}

macro_rules! key_text {
    ($(#[$doc:meta])* $name:ident, $part:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// Checks the string against the service's rules for keys: at most 512 UTF-16 units,
            /// none of `/ \ # ?`, no control character (U+0000 to U+001F, U+007F to U+009F). It may
            /// be empty.
            ///
            /// # Errors
            ///
            /// When a rule is broken. The service would return `OutOfRangeInput` for a forbidden
            /// character and `PropertyValueTooLarge` for a string that is too long.
            pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
                let text = text.into();
                match problem_of(&text) {
                    Some(problem) => Err(KeyError { part: $part, text, problem }),
                    None => Ok(Self(text)),
                }
            }

            /// The string of the key.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The string of the key, owned.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                compare_utf16(&self.0, &other.0)
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

key_text! {
    /// The partition key of an entity, checked. Ordered by UTF-16 code units.
    PartitionKey, KeyKind::PartitionKey
}

key_text! {
    /// The row key of an entity, checked. Ordered by UTF-16 code units.
    RowKey, KeyKind::RowKey
}

/// Which of the two parts of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a key has these two parts")]
pub enum KeyKind {
    /// The partition key.
    PartitionKey,
    /// The row key.
    RowKey,
}

impl KeyKind {
    /// The name of the property that holds this part on the wire.
    pub const fn property(self) -> &'static str {
        match self {
            Self::PartitionKey => "PartitionKey",
            Self::RowKey => "RowKey",
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PartitionKey => "partition key",
            Self::RowKey => "row key",
        })
    }
}

/// A string that cannot be a key: which part, the string, and the rule that it breaks.
///
/// ```
/// # use tablesdk_protocol::{EntityKey, KeyKind, KeyProblem};
/// let error = EntityKey::new("Sales", "a/b").unwrap_err();
/// assert_eq!(error.part(), KeyKind::RowKey);
/// assert!(matches!(error.problem(), KeyProblem::ForbiddenCharacter { character: '/', .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} {}: {problem}", Excerpt(text))]
pub struct KeyError {
    part: KeyKind,
    text: String,
    problem: KeyProblem,
}

impl KeyError {
    /// Which part of the key is wrong.
    pub const fn part(&self) -> KeyKind {
        self.part
    }

    /// The refused text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rule it breaks.
    pub const fn problem(&self) -> KeyProblem {
        self.problem
    }
}

/// The rule that a refused key breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyProblem {
    /// The string holds a character that the service forbids in keys.
    #[error(
        "the character {character:?} at byte {offset} is forbidden in keys, as are / \\ # ? and controls"
    )]
    ForbiddenCharacter {
        /// The first forbidden character.
        character: char,
        /// Where it stands, in bytes.
        offset: usize,
    },
    /// The string is longer than 512 UTF-16 units.
    #[error("{units} UTF-16 units are more than the {KEY_UNITS_MAX} that a key may have")]
    TooLong {
        /// The length in UTF-16 units.
        units: usize,
    },
}

fn problem_of(text: &str) -> Option<KeyProblem> {
    // Nearly every key.
    let is_plain =
        |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'/' | b'\\' | b'#' | b'?');
    if text.len() <= KEY_UNITS_MAX && text.bytes().all(is_plain) {
        return None;
    }
    let forbidden = |c: &(usize, char)| matches!(c.1, '/' | '\\' | '#' | '?') || c.1.is_control();
    if let Some((offset, character)) = text.char_indices().find(forbidden) {
        return Some(KeyProblem::ForbiddenCharacter { character, offset });
    }
    // A text has no more UTF-16 units than bytes.
    if text.len() > KEY_UNITS_MAX {
        let units = text.encode_utf16().count();
        if units > KEY_UNITS_MAX {
            return Some(KeyProblem::TooLong { units });
        }
    }
    None
}

/// Quotes a string, truncated if it is long, so that an error message stays readable.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARACTERS_MAX: usize = 64;
        match self
            .0
            .char_indices()
            .nth(CHARACTERS_MAX)
            .and_then(|(end, _)| self.0.get(..end))
        {
            Some(start) => write!(f, "{start:?}…"),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_service_are_accepted() {
        for text in [
            "",
            "a b",
            "O'Brien",
            "a,b)(=&+%\"@:$!*{}",
            "café",
            "😀",
            "\u{A0}",
        ] {
            assert!(PartitionKey::new(text).is_ok(), "{text:?}");
        }
        assert!(RowKey::new("é".repeat(512)).is_ok());
    }

    #[test]
    fn names_the_forbidden_character() {
        for text in [
            "a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u{7F}b", "a\u{9F}b", "a\0b",
        ] {
            let error = RowKey::new(text).unwrap_err();
            assert!(
                matches!(
                    error.problem(),
                    KeyProblem::ForbiddenCharacter { offset: 1, .. }
                ),
                "{text:?}"
            );
        }
        assert_eq!(
            RowKey::new("2024/03").unwrap_err().to_string(),
            "row key \"2024/03\": the character '/' at byte 4 is forbidden in keys, as are / \\ # ? and controls"
        );
    }

    #[test]
    fn counts_utf16_units() {
        assert!(PartitionKey::new("😀".repeat(256)).is_ok());
        let error = PartitionKey::new("😀".repeat(257)).unwrap_err();
        assert_eq!(error.problem(), KeyProblem::TooLong { units: 514 });
        assert!(error.to_string().len() < 400, "{error}");
    }

    #[test]
    fn orders_by_partition_then_row() {
        let key = |p, r| EntityKey::new(p, r).unwrap();
        let mut keys = [
            key("b", "a"),
            key("a", "\u{E000}"),
            key("a", "😀"),
            key("a", ""),
        ];
        keys.sort();
        assert_eq!(
            keys,
            [
                key("a", ""),
                key("a", "😀"),
                key("a", "\u{E000}"),
                key("b", "a")
            ]
        );
    }
}
