//! `Edm.Guid`: sixteen bytes, printed and read, nothing else. Generating one is the caller's
//! business.

use std::fmt;
use std::str::FromStr;

/// A 128-bit identifier, printed lower-case in the form 8-4-4-4-12.
///
/// Ordered as the service orders it: by the bytes in the order they are printed.
///
/// ```
/// # use tablesdk_protocol::Guid;
/// let guid: Guid = "C9DA6455-213D-42C9-9A79-3E9149A57833".parse()?;
/// assert_eq!(guid.to_string(), "c9da6455-213d-42c9-9a79-3e9149a57833");
/// # Ok::<(), tablesdk_protocol::ParseGuidError>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
// A `Value` is no larger for it, and is not moved byte by byte.
#[repr(align(8))]
pub struct Guid([u8; 16]);

impl Guid {
    /// The identifier with these bytes, in the order they are printed.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, in the order they are printed.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The string that `Display` shows, as ASCII.
    pub fn to_ascii(self) -> [u8; 36] {
        let digit = |number: u8| {
            let digit = DIGITS.get(usize::from(number & 0xF));
            digit.copied().unwrap_or_default()
        };
        let mut text = [b'-'; 36];
        for (byte, place) in self.0.iter().zip(PLACES) {
            if let Some([high, low]) = text.get_mut(place..place + 2) {
                *high = digit(byte >> 4);
                *low = digit(*byte);
            }
        }
        text
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
/// Where the digits of each byte are in the string.
const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_ascii();
        f.write_str(std::str::from_utf8(&text).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text: &[u8; 36] = text.as_bytes().try_into().map_err(|_| ParseGuidError)?;
        let mut is_guid = [8, 13, 18, 23]
            .iter()
            .all(|place| text.get(*place) == Some(&b'-'));
        let mut bytes = [0; 16];
        for (byte, place) in bytes.iter_mut().zip(PLACES) {
            if let Some([high, low]) = text.get(place..place + 2) {
                let (high, low) = (hex_digit(*high), hex_digit(*low));
                is_guid &= high < 16 && low < 16;
                *byte = high << 4 | low;
            }
        }
        is_guid.then_some(Self(bytes)).ok_or(ParseGuidError)
    }
}

/// The value of a hexadecimal digit; of anything else 16 or more.
#[inline]
const fn hex_digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => 16,
    }
}

/// The string is not a GUID of the form 8-4-4-4-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a GUID such as c9da6455-213d-42c9-9a79-3e9149a57833")]
pub struct ParseGuidError;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refuses_other_spellings() {
        for text in [
            "",
            "c9da6455213d42c99a793e9149a57833",
            "{c9da6455-213d-42c9-9a79-3e9149a57833}",
            "c9da6455-213d-42c9-9a79-3e9149a5783",
            "c9da6455-213d-42c9-9a79-3e9149a5783g",
            "c9da6455-213d-42c9-9a793-e9149a57833",
            "c9da6455-213d-42c9-9a79-3e9149a578é",
        ] {
            assert_eq!(text.parse::<Guid>(), Err(ParseGuidError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_prints(bytes: [u8; 16]) {
            let guid = Guid::from_bytes(bytes);
            prop_assert_eq!(guid.to_string().parse(), Ok(guid));
            prop_assert_eq!(guid.to_string().to_uppercase().parse(), Ok(guid));
        }
    }
}
