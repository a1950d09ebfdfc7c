//! Errors of property values: of conversions and of literals.

use std::fmt::{Debug, Display};

use tablesdk_protocol::EdmType;

/// The error of the value of a property.
///
/// ```
/// use tablesdk::entity::ValueError;
/// use tablesdk::{PropertyValue, Value};
///
/// let error = u8::from_value(Value::Int32(300)).unwrap_err();
/// assert!(matches!(error, ValueError::OutOfRange { .. }));
/// let error = u8::from_value(Value::from("7")).unwrap_err();
/// assert_eq!(error.to_string(), "expected Edm.Int32, found Edm.String");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The value lies outside what the type on the other side can hold.
    #[error("the value {value} is out of range: {rule}")]
    OutOfRange {
        /// The value.
        value: String,
        /// The range.
        rule: &'static str,
    },
    /// The text or bytes exceed 64 KiB.
    #[error("the value is too large: {rule}; {WAYS_OUT}")]
    TooLarge {
        /// The limit.
        rule: &'static str,
    },
    /// The stored value is of the right type, but none that the field's type has.
    #[error("the value {value} cannot be read: {reason}")]
    Unreadable {
        /// The stored value.
        value: String,
        /// Why not.
        reason: String,
    },
    /// The value is none that can be stored.
    #[error("the value cannot be stored: {reason}")]
    Unwritable {
        /// Why not.
        reason: String,
    },
    /// The stored value is of another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The type of the field.
        expected: EdmType,
        /// The type of the stored value.
        found: EdmType,
    },
}

impl ValueError {
    /// The value lies outside of a range.
    pub fn out_of_range(value: impl Display, rule: &'static str) -> Self {
        Self::OutOfRange {
            value: shortened(&value.to_string()),
            rule,
        }
    }

    /// The stored value is none that the field's type has.
    pub fn unreadable(value: impl Debug, reason: impl Display) -> Self {
        Self::Unreadable {
            value: shortened(&format!("{value:?}")),
            reason: reason.to_string(),
        }
    }

    /// The value is none that can be stored.
    pub fn unwritable(reason: impl Display) -> Self {
        Self::Unwritable {
            reason: reason.to_string(),
        }
    }
}

impl ValueError {
    /// The same error of a value that must not be shown.
    pub(crate) fn without_value(self) -> Self {
        const VALUE: &str = "(not shown)";
        match self {
            Self::OutOfRange { rule, .. } => Self::out_of_range(VALUE, rule),
            Self::Unreadable { .. } => Self::Unreadable {
                value: VALUE.to_owned(),
                reason: SECRET.to_owned(),
            },
            Self::Unwritable { .. } => Self::unwritable(SECRET),
            Self::TooLarge { .. } | Self::WrongType { .. } => self,
        }
    }
}

const SECRET: &str = "the reason is not shown, because the property is encrypted";

/// For values that fit into no property.
const WAYS_OUT: &str = "a `Chunked` field takes up to 1 MiB, a struct marked `wide` has several such fields, and `Objects` puts a larger value into an object store";

/// A slot that a series does not have.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("there is no slot {slot}: the series has the slots 0 to {}", slots - 1)]
pub(crate) struct MissingSlot {
    pub(crate) slot: usize,
    pub(crate) slots: usize,
}

/// A value may be 64 KiB of text; so much shows which one it is.
pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_MAX).chain(['…']).collect()
}

const SHOWN_MAX: usize = 80;
