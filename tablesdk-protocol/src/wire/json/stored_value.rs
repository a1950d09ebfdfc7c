//! The value of a property as a server keeps it, and how it is read.
//!
//! Takes no other form than the one that is written. For arbitrary bytes it returns `None` and does
//! not panic.

use std::borrow::Cow;

use memchr::memchr2;

use super::value::{is_integer, parse_json_double, parse_text};
use crate::types::{EdmType, ValueRef};

/// The value of a stored property. It is not read yet.
#[derive(Clone, Copy, Debug)]
pub struct StoredValue<'a> {
    annotation: Option<EdmType>,
    json: &'a [u8],
}

impl<'a> StoredValue<'a> {
    /// The value with this JSON, and the type that is written beside it, if any.
    #[inline]
    pub const fn new(annotation: Option<EdmType>, json: &'a [u8]) -> Self {
        Self { annotation, json }
    }

    /// The type, where it is written beside the value.
    #[inline]
    pub const fn annotation(&self) -> Option<EdmType> {
        self.annotation
    }

    /// The JSON.
    #[inline]
    pub const fn json(&self) -> &'a [u8] {
        self.json
    }

    /// Reads the value. A string without escapes is borrowed.
    pub fn read(&self) -> Option<ValueRef<'a>> {
        let (edm_type, text) = match (self.annotation, self.json) {
            (None, [b'"', text @ .., b'"']) => return self.string(text),
            (None, b"true") => return Some(ValueRef::Boolean(true)),
            (None, b"false") => return Some(ValueRef::Boolean(false)),
            (None, [b'-' | b'0'..=b'9', ..]) => {
                let number = std::str::from_utf8(self.json).ok()?;
                // An Int64 is a string, and a Double has a point or an exponent.
                return if is_integer(number) {
                    number.parse().ok().map(ValueRef::Int32)
                } else {
                    parse_json_double(number).map(ValueRef::Double)
                };
            }
            (Some(edm_type), [b'"', text @ .., b'"']) => (edm_type, text),
            _ => return None,
        };
        let (EdmType::Binary
        | EdmType::DateTime
        | EdmType::Double
        | EdmType::Guid
        | EdmType::Int64) = edm_type
        else {
            return None;
        };
        parse_text(std::str::from_utf8(text).ok()?, edm_type).ok()
    }

    fn string(&self, text: &'a [u8]) -> Option<ValueRef<'a>> {
        let string = match memchr2(b'"', b'\\', text) {
            None => Cow::Borrowed(std::str::from_utf8(text).ok()?),
            Some(_) => Cow::Owned(serde_json::from_slice(self.json).ok()?),
        };
        Some(ValueRef::String(string))
    }
}
