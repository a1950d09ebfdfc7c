//! The values of properties: the eight EDM types, and their order as the service defines it.
//!
//! Knows nothing of JSON or of filters; both are built on it. See
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model#property-types>.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::types::limits::{BINARY_BYTES_MAX, STRING_UNITS_MAX};
use crate::types::{Guid, Timestamp, compare_utf16};

/// The type of a property. The service knows these eight and no others.
///
/// ```
/// # use tablesdk_protocol::EdmType;
/// assert_eq!(EdmType::Int64.as_str(), "Edm.Int64");
/// assert_eq!("Edm.Guid".parse(), Ok(EdmType::Guid));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the service's type system is complete with these eight"
)]
pub enum EdmType {
    /// Bytes, at most 64 KiB.
    Binary,
    /// True or false.
    Boolean,
    /// An instant with 100 ns resolution, in UTC, from 1601 to 9999.
    DateTime,
    /// A 64-bit floating point number, NaN and the infinities included.
    Double,
    /// A 128-bit identifier.
    Guid,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// Text, at most 64 KiB in UTF-16.
    String,
}

impl EdmType {
    /// The name on the wire, such as `Edm.Int64`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Binary => "Edm.Binary",
            Self::Boolean => "Edm.Boolean",
            Self::DateTime => "Edm.DateTime",
            Self::Double => "Edm.Double",
            Self::Guid => "Edm.Guid",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::String => "Edm.String",
        }
    }
}

impl fmt::Display for EdmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EdmType {
    type Err = UnknownEdmTypeError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "Edm.Binary" => Self::Binary,
            "Edm.Boolean" => Self::Boolean,
            "Edm.DateTime" => Self::DateTime,
            "Edm.Double" => Self::Double,
            "Edm.Guid" => Self::Guid,
            "Edm.Int32" => Self::Int32,
            "Edm.Int64" => Self::Int64,
            "Edm.String" => Self::String,
            _ => return Err(UnknownEdmTypeError),
        })
    }
}

/// The name is not one of the eight EDM types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not one of the eight EDM types")]
pub struct UnknownEdmTypeError;

/// The value of a property, with its EDM type.
///
/// ```
/// # use tablesdk_protocol::{EdmType, Value};
/// assert_eq!(Value::from(5).edm_type(), EdmType::Int32);
/// assert_eq!(Value::from(5_i64).edm_type(), EdmType::Int64);
/// assert_eq!(Value::from("five").edm_type(), EdmType::String);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the service's type system is complete with these eight"
)]
pub enum Value {
    /// `Edm.Binary`.
    Binary(Vec<u8>),
    /// `Edm.Boolean`.
    Boolean(bool),
    /// `Edm.DateTime`.
    DateTime(Timestamp),
    /// `Edm.Double`.
    Double(f64),
    /// `Edm.Guid`.
    Guid(Guid),
    /// `Edm.Int32`.
    Int32(i32),
    /// `Edm.Int64`.
    Int64(i64),
    /// `Edm.String`.
    String(String),
}

impl Value {
    /// The type of this value.
    pub const fn edm_type(&self) -> EdmType {
        match self {
            Self::Binary(_) => EdmType::Binary,
            Self::Boolean(_) => EdmType::Boolean,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Double(_) => EdmType::Double,
            Self::Guid(_) => EdmType::Guid,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::String(_) => EdmType::String,
        }
    }

    /// The same value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Binary(bytes) => ValueRef::Binary(Cow::Borrowed(bytes)),
            Self::Boolean(value) => ValueRef::Boolean(*value),
            Self::DateTime(value) => ValueRef::DateTime(*value),
            Self::Double(value) => ValueRef::Double(*value),
            Self::Guid(value) => ValueRef::Guid(*value),
            Self::Int32(value) => ValueRef::Int32(*value),
            Self::Int64(value) => ValueRef::Int64(*value),
            Self::String(text) => ValueRef::String(Cow::Borrowed(text)),
        }
    }
}

/// A value that may borrow its text or bytes: what is written and filtered without a copy.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the service's type system is complete with these eight"
)]
pub enum ValueRef<'a> {
    /// `Edm.Binary`.
    Binary(Cow<'a, [u8]>),
    /// `Edm.Boolean`.
    Boolean(bool),
    /// `Edm.DateTime`.
    DateTime(Timestamp),
    /// `Edm.Double`.
    Double(f64),
    /// `Edm.Guid`.
    Guid(Guid),
    /// `Edm.Int32`.
    Int32(i32),
    /// `Edm.Int64`.
    Int64(i64),
    /// `Edm.String`.
    String(Cow<'a, str>),
}

impl ValueRef<'_> {
    /// The type of this value.
    pub const fn edm_type(&self) -> EdmType {
        match self {
            Self::Binary(_) => EdmType::Binary,
            Self::Boolean(_) => EdmType::Boolean,
            Self::DateTime(_) => EdmType::DateTime,
            Self::Double(_) => EdmType::Double,
            Self::Guid(_) => EdmType::Guid,
            Self::Int32(_) => EdmType::Int32,
            Self::Int64(_) => EdmType::Int64,
            Self::String(_) => EdmType::String,
        }
    }

    /// The bytes that the service counts for the value in the size of an entity. Text takes two for
    /// each UTF-16 code unit.
    pub fn counted_bytes(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.len() + 4,
            Self::Boolean(_) => 1,
            Self::DateTime(_) | Self::Double(_) | Self::Int64(_) => 8,
            Self::Guid(_) => 16,
            Self::Int32(_) => 4,
            Self::String(text) => text.encode_utf16().count() * 2 + 4,
        }
    }

    /// Returns true if the value exceeds the 64 KiB that one property may hold.
    pub(crate) fn is_too_large(&self) -> bool {
        match self {
            Self::Binary(bytes) => bytes.len() > BINARY_BYTES_MAX,
            // A text has no more UTF-16 units than bytes.
            Self::String(text) => {
                text.len() > STRING_UNITS_MAX && text.encode_utf16().count() > STRING_UNITS_MAX
            }
            _ => false,
        }
    }

    /// The same value, owning its text or bytes.
    pub fn into_value(self) -> Value {
        match self {
            Self::Binary(bytes) => Value::Binary(bytes.into_owned()),
            Self::Boolean(value) => Value::Boolean(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Double(value) => Value::Double(value),
            Self::Guid(value) => Value::Guid(value),
            Self::Int32(value) => Value::Int32(value),
            Self::Int64(value) => Value::Int64(value),
            Self::String(text) => Value::String(text.into_owned()),
        }
    }

    /// How this stored value compares with a literal of a filter.
    ///
    /// * Text compares by UTF-16 code units, binary by bytes, false before true, a GUID as it is
    ///   printed.
    /// * An integer literal is promoted to the wider type of the property, never the other way.
    /// * A value of another type is *less* than any literal.
    /// * A NaN on either side compares with nothing: `None`.
    // SERVICE: types that differ, and the promotion of integers, as observed by a community stub's
    // tests.
    #[inline]
    pub fn compare_to_literal(&self, literal: &Value) -> Option<Ordering> {
        Some(match (self, literal) {
            (Self::Binary(a), Value::Binary(b)) => a.as_ref().cmp(b),
            (Self::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Self::DateTime(a), Value::DateTime(b)) => a.cmp(b),
            (Self::Double(a), Value::Double(b)) => return a.partial_cmp(b),
            (Self::Double(a), Value::Int32(b)) => return a.partial_cmp(&f64::from(*b)),
            (Self::Double(a), Value::Int64(b)) => return compare_double_to_integer(*a, *b),
            (Self::Guid(a), Value::Guid(b)) => a.cmp(b),
            (Self::Int32(a), Value::Int32(b)) => a.cmp(b),
            (Self::Int64(a), Value::Int32(b)) => a.cmp(&i64::from(*b)),
            (Self::Int64(a), Value::Int64(b)) => a.cmp(b),
            (Self::String(a), Value::String(b)) => compare_utf16(a, b),
            _ => Ordering::Less,
        })
    }
}

/// Exact, where a cast of the integer would round above 2^53.
pub(crate) fn compare_double_to_integer(double: f64, integer: i64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double >= BEYOND_I64 {
        return Some(Ordering::Greater);
    }
    if double < -BEYOND_I64 {
        return Some(Ordering::Less);
    }
    let whole = double.trunc();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within the range of i64"
    )]
    let as_integer = whole as i64;
    Some(
        as_integer
            .cmp(&integer)
            .then_with(|| double.partial_cmp(&whole).unwrap_or(Ordering::Equal)),
    )
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::DateTime(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<Guid> for Value {
    fn from(value: Guid) -> Self {
        Self::Guid(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int64(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Self::Binary(value)
    }
}

/// 2^63: every double at or above it is beyond i64, and so is every one below its negative.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(property: impl Into<Value>, literal: impl Into<Value>) -> Option<Ordering> {
        property.into().as_ref().compare_to_literal(&literal.into())
    }

    #[test]
    fn integer_literals_are_promoted_to_the_property_and_never_back() {
        assert_eq!(compare(3_i64, 3), Some(Ordering::Equal));
        assert_eq!(compare(3.0, 3), Some(Ordering::Equal));
        assert_eq!(compare(3.0, 3_i64), Some(Ordering::Equal));
        assert_eq!(compare(3, 3_i64), Some(Ordering::Less));
        assert_eq!(compare(3_i64, 3.0), Some(Ordering::Less));
    }

    #[test]
    fn another_type_is_less_than_the_literal() {
        assert_eq!(compare(3, "3"), Some(Ordering::Less));
        assert_eq!(compare(3, true), Some(Ordering::Less));
        assert_eq!(compare("3", 3), Some(Ordering::Less));
    }

    #[test]
    fn nan_compares_with_nothing() {
        assert_eq!(compare(f64::NAN, f64::NAN), None);
        assert_eq!(compare(f64::NAN, 3_i64), None);
        assert_eq!(compare(3.0, f64::NAN), None);
    }

    #[test]
    fn doubles_and_big_integers_compare_exactly() {
        assert_eq!(
            compare(9_007_199_254_740_992.0, 9_007_199_254_740_993_i64),
            Some(Ordering::Less)
        );
        assert_eq!(
            compare(9_223_372_036_854_775_808.0, i64::MAX),
            Some(Ordering::Greater)
        );
        assert_eq!(
            compare(-9_223_372_036_854_775_808.0, i64::MIN),
            Some(Ordering::Equal)
        );
        assert_eq!(compare(f64::NEG_INFINITY, i64::MIN), Some(Ordering::Less));
        assert_eq!(compare(-0.5, 0_i64), Some(Ordering::Less));
        assert_eq!(compare(0.5, 0_i64), Some(Ordering::Greater));
    }

    #[test]
    fn strings_order_surrogates_before_the_private_use_area() {
        assert_eq!(compare("\u{1F600}", "\u{E000}"), Some(Ordering::Less));
        assert_eq!(compare("a", "B"), Some(Ordering::Greater));
        assert_eq!(compare("a", "ab"), Some(Ordering::Less));
    }
}
