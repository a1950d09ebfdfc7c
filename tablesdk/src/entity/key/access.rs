//! Access of generated code to a field that is a part of a key, behind one function for each way in
//! which the part is written.

#![expect(clippy::missing_errors_doc, reason = "called by generated code alone")]

use tablesdk_protocol::EntityKey;

use super::desc::{self, Desc};
use super::escaped::{escape, unescaped};
use super::part::{KeyNumber, KeyPart};
use crate::entity::{EntityError, ValueError};

/// Access to a field that is a part of a key.
#[derive(Debug)]
pub struct KeyAccess<P> {
    digits: usize,
    width: Option<usize>,
    descending: bool,
    write: fn(&P, usize, &str) -> Result<String, ValueError>,
    read: fn(&str, usize) -> Result<P, ValueError>,
}

impl<P> Clone for KeyAccess<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for KeyAccess<P> {}

/// Access to a part of type `P`.
pub const fn key_part<P: KeyPart>() -> KeyAccess<P> {
    KeyAccess {
        digits: 0,
        width: P::WIDTH,
        descending: P::DESCENDING,
        write: |value, _, separator| value.to_key_before(separator),
        read: |text, _| P::from_key(text),
    }
}

/// Access to a part of which the greatest value comes first, with the string of a [`Desc`].
pub const fn key_desc<P: KeyNumber>() -> KeyAccess<P> {
    KeyAccess {
        digits: 0,
        width: Desc::<P>::WIDTH,
        descending: Desc::<P>::DESCENDING,
        write: |value, _, _| desc::to_key(value),
        read: |text, _| desc::from_key(text),
    }
}

/// Access to a part that may hold any string, with the string of an [`Escaped`](super::Escaped).
pub const fn key_escaped<P: KeyPart>() -> KeyAccess<P> {
    KeyAccess {
        digits: 0,
        width: None,
        descending: false,
        write: |value, _, separator| Ok(escape(&value.to_key()?, separator)),
        read: |text, _| P::from_key(&unescaped(text)?),
    }
}

/// Access to a number that is padded with zeros.
pub const fn key_number<P: KeyNumber>(digits: usize) -> KeyAccess<P> {
    KeyAccess {
        digits,
        width: Some(digits),
        descending: false,
        write: |value, digits, _| {
            let number = value.to_number()?.checked_sub(zero::<P>());
            let number = number.ok_or_else(|| {
                ValueError::unwritable("a number that is padded with zeros is not negative")
            })?;
            let text = format!("{number:0digits$}");
            if text.len() > digits {
                return Err(ValueError::out_of_range(
                    number,
                    "it has more digits than its template gives it",
                ));
            }
            Ok(text)
        },
        read: |text, digits| {
            let is_padded = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| is_padded);
            let number = number.and_then(|number| number.checked_add(zero::<P>()));
            number
                .and_then(|number| P::from_number(number).ok())
                .ok_or_else(|| {
                    ValueError::unreadable(
                        text,
                        format_args!("it is no number of {digits} digits that the field can hold"),
                    )
                })
        },
    }
}

/// The number of the value 0.
const fn zero<P: KeyNumber>() -> u64 {
    const {
        match P::ZERO {
            Some(zero) => zero,
            None => panic!("only integers can be padded with zeros: write `{{field}}`"),
        }
    }
}

impl<P> KeyAccess<P> {
    /// The width of the part, for its template.
    pub const fn width(self) -> Option<usize> {
        self.width
    }

    pub(crate) const fn is_descending(self) -> bool {
        self.descending
    }

    /// The text of a key that is this part alone.
    pub(crate) fn text(self, value: &P) -> Result<String, ValueError> {
        self.text_before(value, "")
    }

    /// The text where a separator follows.
    pub(super) fn text_before(self, value: &P, separator: &str) -> Result<String, ValueError> {
        (self.write)(value, self.digits, separator)
    }

    /// Reads the text back.
    pub(super) fn read(self, text: &str) -> Result<P, ValueError> {
        (self.read)(text, self.digits)
    }
}

/// The key of an entity with these texts.
pub fn entity_key(
    partition_key: Result<String, EntityError>,
    row_key: Result<String, EntityError>,
) -> Result<EntityKey, EntityError> {
    Ok(EntityKey::new(partition_key?, row_key?)?)
}
