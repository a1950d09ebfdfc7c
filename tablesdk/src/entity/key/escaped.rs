//! Any text as a key: what a key cannot hold is written in hexadecimal.

use std::fmt::Write as _;

use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::part::KeyPart;
use crate::entity::{PropertyValue, ValueError};

/// A part of a key that may hold any text: what the service forbids in keys is escaped.
///
/// `/ \ # ?`, controls and `=` itself become `=` and two hexadecimal digits in upper case for each
/// byte in UTF-8, such as `=2F` for `/`; so do the characters of a separator that follows in a
/// template. Reading turns them back. The order of such keys is not that of the texts, and other
/// programs must know of the escape; hence it is opted into.
///
/// In a template, `{path:escaped}` makes the same keys, and the field stays a `String`: see
/// [key templates](derive@crate::TableEntity#key-templates).
///
/// ```
/// use tablesdk::key::Escaped;
/// use tablesdk::{TableEntity, WritableEntity};
///
/// #[derive(TableEntity)]
/// #[table(partition_key = "{host}", row_key = "{path}_{version:03}")]
/// struct Document {
///     host: String,
///     path: Escaped<String>,
///     version: u32,
/// }
///
/// let document = Document { host: "example.org".into(), path: "docs/read_me".into(), version: 2 };
/// assert_eq!(document.entity_key()?.row_key().as_str(), "docs=2Fread=5Fme_002");
/// # Ok::<(), tablesdk::entity::EntityError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a newtype that is made by hand")]
pub struct Escaped<T>(pub T);

impl<T> From<T> for Escaped<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl From<&str> for Escaped<String> {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<T: KeyPart> KeyPart for Escaped<T> {
    fn to_key(&self) -> Result<String, ValueError> {
        self.to_key_before("")
    }

    fn from_key(text: &str) -> Result<Self, ValueError> {
        T::from_key(&unescaped(text)?).map(Self)
    }

    fn to_key_before(&self, separator: &str) -> Result<String, ValueError> {
        Ok(escape(&self.0.to_key()?, separator))
    }
}

/// As a property it is stored as what it holds, without an escape.
impl<T: PropertyValue> PropertyValue for Escaped<T> {
    const EDM_TYPE: EdmType = T::EDM_TYPE;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        self.0.to_value()
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        T::from_value(value).map(Self)
    }
}

pub(crate) fn escape(text: &str, separator: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let forbidden = matches!(character, '/' | '\\' | '#' | '?' | '=') || character.is_control();
        if forbidden || separator.contains(character) {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a String does not fail.
                let _ = write!(escaped, "={byte:02X}");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

pub(crate) fn unescaped(text: &str) -> Result<String, ValueError> {
    unescape(text).ok_or_else(|| {
        ValueError::unreadable(
            text,
            "in an escaped key, = is followed by two hexadecimal digits in upper case, which are UTF-8",
        )
    })
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'=' {
            let (&[high, low], after) = after.split_first_chunk::<2>()?;
            bytes.push(hexadecimal(high)? << 4 | hexadecimal(low)?);
            rest = after;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

const fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
