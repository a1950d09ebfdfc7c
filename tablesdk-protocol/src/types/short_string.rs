//! Strings that need no memory of their own while they are short: each entity of a page has many of
//! them.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A string. Up to 22 bytes of it are held in place.
#[derive(Clone)]
pub struct ShortString(Repr);

#[derive(Clone)]
enum Repr {
    InPlace { len: u8, bytes: [u8; IN_PLACE_MAX] },
    Heap(Box<str>),
}

/// With the length and the variant, as large as a `String`.
const IN_PLACE_MAX: usize = 22;

impl ShortString {
    /// The string.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::InPlace { .. } => {
                std::str::from_utf8(self.as_bytes()).expect("made of a whole string")
            }
            Repr::Heap(text) => text,
        }
    }

    /// The bytes of the string.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::InPlace { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Heap(text) => text.as_bytes(),
        }
    }

    /// The string, with memory of its own.
    pub fn into_string(self) -> String {
        match self.0 {
            Repr::InPlace { .. } => self.as_str().to_owned(),
            Repr::Heap(text) => text.into(),
        }
    }

    #[inline]
    fn in_place(text: &str) -> Option<Self> {
        let mut bytes = [0; IN_PLACE_MAX];
        let len = u8::try_from(text.len()).ok()?;
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(Self(Repr::InPlace { len, bytes }))
    }
}

impl From<&str> for ShortString {
    #[inline]
    fn from(text: &str) -> Self {
        Self::in_place(text).unwrap_or_else(|| Self(Repr::Heap(text.into())))
    }
}

impl From<String> for ShortString {
    fn from(text: String) -> Self {
        Self::in_place(&text).unwrap_or_else(|| Self(Repr::Heap(text.into())))
    }
}

impl PartialEq for ShortString {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ShortString {}

impl PartialEq<str> for ShortString {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Hash for ShortString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ShortString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;
    use std::hash::RandomState;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_string_is_kept(text in "\\PC{0,30}", other in "[a-c]{0,2}|\\PC{20,24}") {
            let short = ShortString::from(text.as_str());
            prop_assert_eq!(short.as_str(), &text);
            prop_assert_eq!(&short, &ShortString::from(text.clone()));
            prop_assert_eq!(&short.clone().into_string(), &text);
            prop_assert_eq!((short.to_string(), format!("{short:?}")), (text.clone(), format!("{text:?}")));
            let hasher = RandomState::new();
            prop_assert_eq!(hasher.hash_one(&short), hasher.hash_one(&text));
            let another = ShortString::from(other.as_str());
            prop_assert_eq!(short == another, text == other);
            prop_assert_eq!(short == *other.as_str(), text == other);
        }
    }

    #[test]
    fn a_short_string_is_as_large_as_a_string() {
        assert_eq!(size_of::<ShortString>(), size_of::<String>());
    }
}
