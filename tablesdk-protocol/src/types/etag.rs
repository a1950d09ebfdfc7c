//! ETags and the conditions that name them.
//!
//! A client treats an ETag as opaque. The service forms it from the entity's timestamp, which is
//! how this server forms it, too. See
//! <https://learn.microsoft.com/rest/api/storageservices/update-entity2>.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::types::PrintedTimestamp;
use crate::types::Timestamp;

/// The version of an entity, such as `W/"datetime'2021-09-21T01%3A04%3A37.9678478Z'"`. Changes with
/// every write.
///
/// ```
/// # use tablesdk_protocol::ETag;
/// let etag = ETag::from_opaque("W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"");
/// assert!(etag.is_well_formed());
/// let written = etag.timestamp().expect("it has the service's usual form");
/// assert_eq!(written.to_string(), "2021-09-21T01:04:37.9678478Z");
/// ```
#[derive(Clone)]
pub struct ETag(Repr);

/// ETags of the service's usual form have at most as many bytes as are held in place: each entity
/// of a page has one.
#[derive(Clone)]
enum Repr {
    InPlace { len: u8, bytes: [u8; IN_PLACE_MAX] },
    Heap(Box<str>),
}

const IN_PLACE_MAX: usize = "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"".len();

impl ETag {
    /// `*`, the condition that any version satisfies: a write with it needs an entity that exists,
    /// whatever its version. It is the ETag of no entity, and is not parsed from a string.
    ///
    /// ```
    /// # use tablesdk_protocol::ETag;
    /// assert_eq!(ETag::ANY.as_str(), "*");
    /// assert!("*".parse::<ETag>().is_err());
    /// ```
    pub const ANY: Self = {
        let mut bytes = [0; IN_PLACE_MAX];
        bytes[0] = b'*';
        Self(Repr::InPlace { len: 1, bytes })
    };

    /// The ETag that the service gives an entity written at that time.
    pub fn from_timestamp(timestamp: Timestamp) -> Self {
        Self::from_printed(&timestamp.print())
    }

    /// The ETag that Cosmos DB gives an entity written at that time: with all seven digits of a
    /// fraction.
    pub fn from_padded_timestamp(timestamp: Timestamp) -> Self {
        Self::from_text(timestamp.to_padded_string().as_bytes())
    }

    pub(crate) fn from_printed(timestamp: &PrintedTimestamp) -> Self {
        Self::from_text(timestamp.as_bytes())
    }

    fn from_text(text: &[u8]) -> Self {
        // Their colons are encoded.
        let hour = text.get(..13).unwrap_or_default();
        let minute = text.get(14..16).unwrap_or_default();
        let second = text.get(17..).unwrap_or_default();
        let parts: [&[u8]; 7] = [
            b"W/\"datetime'",
            hour,
            b"%3A",
            minute,
            b"%3A",
            second,
            b"'\"",
        ];
        let (mut bytes, mut len) = ([0; IN_PLACE_MAX], 0);
        for part in parts {
            if let Some(place) = bytes.get_mut(usize::from(len)..usize::from(len) + part.len()) {
                place.copy_from_slice(part);
                len += u8::try_from(part.len()).unwrap_or_default();
            }
        }
        Self(Repr::InPlace { len, bytes })
    }

    /// The weak ETag with that text between its quotes.
    pub(crate) fn weak(inner: &str) -> Self {
        Self::concat(&["W/\"", inner, "\""])
    }

    /// Takes the string as the service sent it, without parsing it.
    pub fn from_opaque(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.len() > IN_PLACE_MAX {
            return Self(Repr::Heap(text.into()));
        }
        Self::of(&text)
    }

    pub(crate) fn of(text: &str) -> Self {
        Self::concat(&[text])
    }

    fn concat(parts: &[&str]) -> Self {
        let mut bytes = [0; IN_PLACE_MAX];
        let mut len = 0;
        for part in parts {
            let end = len + part.len();
            match bytes.get_mut(len..end) {
                Some(place) => place.copy_from_slice(part.as_bytes()),
                None => return Self(Repr::Heap(parts.concat().into())),
            }
            len = end;
        }
        match u8::try_from(len) {
            Ok(len) => Self(Repr::InPlace { len, bytes }),
            Err(_) => Self(Repr::Heap(parts.concat().into())),
        }
    }

    /// The string, quotes included.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::InPlace { .. } => {
                std::str::from_utf8(self.as_bytes()).expect("made of whole strings")
            }
            Repr::Heap(text) => text,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::InPlace { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Heap(text) => text.as_bytes(),
        }
    }

    /// The timestamp inside an ETag of the service's usual form; `None` for any other.
    pub fn timestamp(&self) -> Option<Timestamp> {
        let weak = ["W/\"datetime'", "w/\"datetime'"];
        let inner = weak
            .iter()
            .find_map(|start| self.as_str().strip_prefix(start))?;
        let inner = inner.strip_suffix("'\"")?;
        usual_timestamp(inner)
            .or_else(|| percent_decode_str(inner).decode_utf8().ok()?.parse().ok())
    }

    /// Returns true if the string is a single ETag of the form that the service reads: weak and
    /// quoted.
    pub fn is_well_formed(&self) -> bool {
        let inner = ["W/\"", "w/\""]
            .iter()
            .find_map(|prefix| self.as_str().strip_prefix(prefix));
        let Some(inner) = inner.and_then(|rest| rest.strip_suffix('"')) else {
            return false;
        };
        let mut escaped = false;
        for c in inner.chars() {
            match c {
                '"' if !escaped => return false,
                _ => escaped = c == '\\' && !escaped,
            }
        }
        // A closing quote that is escaped closes nothing.
        !escaped
    }
}

/// A timestamp whose colons alone are encoded, as the service writes it. It is decoded in place.
fn usual_timestamp(text: &str) -> Option<Timestamp> {
    let (hour, minute) = (text.get(..13)?, text.get(16..18)?);
    let second = text.get(21..)?;
    if text.get(13..16)? != "%3A" || text.get(18..21)? != "%3A" {
        return None;
    }
    ETag::concat(&[hour, ":", minute, ":", second])
        .as_str()
        .parse()
        .ok()
}

/// Reads an ETag from outside, such as the one in the `If-Match` header of a request: one ETag,
/// weak or strong, in double quotes.
///
/// The string stays as it is. `*` is no ETag, and neither is a list of several. The ETags of the
/// service are weak; it refuses a strong one.
///
/// ```
/// # use tablesdk_protocol::ETag;
/// let etag: ETag = "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"".parse()?;
/// assert_eq!(etag.as_str(), "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\"");
///
/// for refused in ["*", "0x8D", "W/\"1\", W/\"2\""] {
///     assert!(refused.parse::<ETag>().is_err());
/// }
/// # Ok::<(), tablesdk_protocol::ParseETagError>(())
/// ```
impl FromStr for ETag {
    type Err = ParseETagError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Around the value of a header, white space means nothing.
        let text = text.trim_matches([' ', '\t']);
        if text == "*" {
            return Err(ParseETagError::Any);
        }
        let quoted = text.strip_prefix("W/").or_else(|| text.strip_prefix("w/"));
        let inner = quoted.unwrap_or(text).strip_prefix('"');
        let inner = inner.and_then(|inner| inner.split_once('"'));
        let (inner, rest) = inner.ok_or(ParseETagError::Unquoted)?;
        if rest.trim_start().starts_with(',') {
            return Err(ParseETagError::List);
        }
        if !rest.is_empty() {
            return Err(ParseETagError::Unquoted);
        }
        // The quote that ends it has been found already.
        match inner.chars().find(|it| !it.is_ascii_graphic()) {
            Some(character) => Err(ParseETagError::Character(character)),
            None => Ok(Self::of(text)),
        }
    }
}

/// A string that is not an ETag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseETagError {
    /// `*`, the condition that every version satisfies.
    #[error(
        "`*` is not an ETag, but the condition that any version satisfies: a program that means it uses `ETag::ANY`"
    )]
    Any,
    /// A character that an ETag cannot have.
    #[error("an ETag cannot contain the character {0:?}")]
    Character(char),
    /// Several ETags.
    #[error("a write has the condition of one ETag, and this is a list of several")]
    List,
    /// No string in double quotes.
    #[error(
        "an ETag is one string in double quotes, which belong to it, such as `W/\"datetime'2024-03-15T10%3A20%3A30.1234567Z'\"`"
    )]
    Unquoted,
}

impl PartialEq for ETag {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ETag {}

impl Hash for ETag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The condition of a write on an entity that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has these two conditions"
)]
pub enum IfMatch {
    /// Any version: the write is unconditional.
    Any,
    /// That version and no other.
    ETag(ETag),
}

/// The condition of that ETag, which of [`ETag::ANY`] is `Any`.
impl From<&ETag> for IfMatch {
    fn from(etag: &ETag) -> Self {
        if *etag == ETag::ANY {
            Self::Any
        } else {
            Self::ETag(etag.clone())
        }
    }
}

impl IfMatch {
    /// The string of the `If-Match` header.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::ETag(etag) => etag.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn has_the_form_of_the_service_and_gives_its_timestamp_back() {
        let at: Timestamp = "2021-09-21T01:04:37.9678478Z".parse().unwrap();
        let etag = ETag::from_timestamp(at);
        assert_eq!(
            etag.as_str(),
            "W/\"datetime'2021-09-21T01%3A04%3A37.9678478Z'\""
        );
        assert_eq!(etag.timestamp(), Some(at));
        assert!(etag.is_well_formed());
        assert_eq!(ETag::from_opaque("W/\"0x8D\"").timestamp(), None);
    }

    proptest! {
        #[test]
        fn its_timestamp_is_the_one_that_is_decoded(
            text in "2021-09-21T0[0-9](%3A|%3a|:|%)[0-5][0-9](%3A|:)[0-5][0-9](\\.[0-9]{0,9})?(Z|%5A)?",
        ) {
            let etag = ETag::from_opaque(format!("W/\"datetime'{text}'\""));
            let decoded = percent_decode_str(&text).decode_utf8().unwrap().parse().ok();
            prop_assert_eq!(etag.timestamp(), decoded);
        }

        #[test]
        fn any_string_is_kept(text in ".{0,80}", other in ".{0,80}") {
            for text in [text.as_str(), &text.repeat(2), &format!("W/\"{text}\"")] {
                let etag = ETag::from_opaque(text);
                prop_assert_eq!(etag.as_str(), text);
                prop_assert_eq!(etag.to_string(), text);
                prop_assert_eq!(&etag, &etag.clone());
                prop_assert_eq!(etag == ETag::from_opaque(other.as_str()), text == other);
            }
            let weak = ETag::weak(&text);
            prop_assert_eq!(weak.as_str(), format!("W/\"{text}\""));
        }
    }

    #[test]
    fn any_is_the_condition_that_every_version_satisfies() {
        assert_eq!(ETag::ANY, ETag::from_opaque("*"));
        assert_eq!(IfMatch::from(&ETag::ANY), IfMatch::Any);
        assert_eq!(
            (ETag::ANY.is_well_formed(), ETag::ANY.timestamp()),
            (false, None)
        );
        let quoted = ETag::from_opaque("W/\"*\"");
        assert_eq!(IfMatch::from(&quoted), IfMatch::ETag(quoted));
    }

    #[test]
    fn one_etag_of_a_header_is_parsed_as_it_is() {
        for text in [
            "W/\"\"",
            "\"x\"",
            "w/\"x\"",
            "W/\"datetime'2021%3A'\"",
            "\"a\\b,c\"",
        ] {
            assert_eq!(text.parse(), Ok(ETag::from_opaque(text)));
            assert_eq!(format!(" {text}\t").parse(), Ok(ETag::from_opaque(text)));
        }
        for (text, error) in [
            ("*", ParseETagError::Any),
            (" * ", ParseETagError::Any),
            ("", ParseETagError::Unquoted),
            ("x", ParseETagError::Unquoted),
            ("\"*", ParseETagError::Unquoted),
            ("W/x", ParseETagError::Unquoted),
            ("W/ \"x\"", ParseETagError::Unquoted),
            ("\"x\"y", ParseETagError::Unquoted),
            ("\"x\",\"y\"", ParseETagError::List),
            ("W/\"x\" , *", ParseETagError::List),
            ("\"a b\"", ParseETagError::Character(' ')),
            ("\"a\r\nb\"", ParseETagError::Character('\r')),
            ("\"\u{e9}\"", ParseETagError::Character('\u{e9}')),
        ] {
            assert_eq!(text.parse::<ETag>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn only_one_weak_quoted_tag_is_well_formed() {
        for text in ["W/\"\"", "w/\"x\"", "W/\"0x8D\"", "W/\"a\\\"b\""] {
            assert!(ETag::from_opaque(text).is_well_formed(), "{text}");
        }
        for text in [
            "",
            "test",
            "\"x\"",
            "W/x",
            "W/\"x",
            "W/\"x\",W/\"y\"",
            "W/\"a\\\"",
            "W/\"",
        ] {
            assert!(!ETag::from_opaque(text).is_well_formed(), "{text}");
        }
    }
}
