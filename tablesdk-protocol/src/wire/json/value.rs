//! One value as JSON: how it prints, and what a JSON scalar means with and without its type annotation.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::PropertyProblem;
use crate::{EdmType, ParseTimestampError, Timestamp, Value, ValueRef};

/// A JSON value, as far as a property can hold one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Boolean(bool),
    /// A number without a fraction or exponent, within i64.
    Integer(i64),
    /// A number without a fraction or exponent, beyond i64.
    BigInteger(u64),
    Float(f64),
    Text(Cow<'a, str>),
    /// An array or object, which no property can hold.
    Nested,
}

/// Prints the value.
pub(super) fn write_value(out: &mut Vec<u8>, value: &ValueRef<'_>) {
    match value {
        ValueRef::Binary(bytes) => write_string(out, &STANDARD.encode(bytes)),
        ValueRef::Boolean(true) => out.extend_from_slice(b"true"),
        ValueRef::Boolean(false) => out.extend_from_slice(b"false"),
        ValueRef::DateTime(value) => write_string(out, &value.to_string()),
        ValueRef::Double(value) => out.extend_from_slice(double(*value).as_bytes()),
        ValueRef::Guid(value) => write_string(out, &value.to_string()),
        ValueRef::Int32(value) => out.extend_from_slice(value.to_string().as_bytes()),
        ValueRef::Int64(value) => write_string(out, &value.to_string()),
        ValueRef::String(text) => write_string(out, text),
    }
}

/// Prints a text in quotes, escaped.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a text to memory cannot fail");
}

/// The shortest text that reads back as the same number, always with a point or an exponent, as .NET prints it:
/// `5.0`, `1E+300`, `1.5E-07`, and the names of the values that are no numbers in quotes.
fn double(value: f64) -> String {
    if value.is_nan() {
        return "\"NaN\"".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "\"Infinity\"".to_owned()
        } else {
            "\"-Infinity\"".to_owned()
        };
    }
    let magnitude = value.abs();
    if value == 0.0 || (1e-4..1e15).contains(&magnitude) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mut text = mantissa.to_owned();
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    write!(text, "E{sign}{digits:0>2}").expect("writing to a String cannot fail");
    text
}

impl Scalar<'_> {
    /// The value that this JSON is, given its annotation; `None` for null.
    ///
    /// An integer beyond Int32 without an annotation is an Int64.
    pub(super) fn to_value(
        &self,
        annotation: Option<EdmType>,
    ) -> Result<Option<Value>, PropertyProblem> {
        let mismatch = |edm_type| PropertyProblem::Mismatch { edm_type };
        Ok(Some(match (self, annotation) {
            (Self::Null, _) => return Ok(None),
            (Self::Nested, _) => return Err(PropertyProblem::Nested),
            (Self::Boolean(value), None | Some(EdmType::Boolean)) => Value::Boolean(*value),
            (Self::Integer(value), None) => match i32::try_from(*value) {
                Ok(value) => Value::Int32(value),
                Err(_) => Value::Int64(*value),
            },
            (Self::Integer(value), Some(edm_type @ EdmType::Int32)) => {
                Value::Int32(i32::try_from(*value).map_err(|_| mismatch(edm_type))?)
            }
            (Self::Integer(value), Some(EdmType::Int64)) => Value::Int64(*value),
            #[expect(clippy::cast_precision_loss, reason = "a double was asked for")]
            (Self::Integer(value), Some(EdmType::Double)) => Value::Double(*value as f64),
            (Self::BigInteger(_), None) => return Err(PropertyProblem::IntegerOutOfRange),
            #[expect(clippy::cast_precision_loss, reason = "a double was asked for")]
            (Self::BigInteger(value), Some(EdmType::Double)) => Value::Double(*value as f64),
            (Self::Float(value), None | Some(EdmType::Double)) => Value::Double(*value),
            (Self::Text(text), None | Some(EdmType::String)) => {
                Value::String(text.clone().into_owned())
            }
            (Self::Text(text), Some(edm_type)) => parse_text(text, edm_type)?,
            (_, Some(edm_type)) => return Err(mismatch(edm_type)),
        }))
    }

    /// Whether an integer lacks the annotation that one beyond Int32 needs.
    pub(super) fn is_unannotated_big_integer(&self, annotation: Option<EdmType>) -> bool {
        annotation.is_none()
            && match self {
                Self::Integer(value) => i32::try_from(*value).is_err(),
                Self::BigInteger(_) => true,
                _ => false,
            }
    }
}

fn parse_text(text: &str, edm_type: EdmType) -> Result<Value, PropertyProblem> {
    let mismatch = || PropertyProblem::Mismatch { edm_type };
    Ok(match edm_type {
        EdmType::Binary => Value::Binary(STANDARD.decode(text).map_err(|_| mismatch())?),
        EdmType::Boolean => match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => return Err(mismatch()),
        },
        EdmType::DateTime => match text.parse::<Timestamp>() {
            Ok(value) => Value::DateTime(value),
            Err(ParseTimestampError::Range(_)) => return Err(PropertyProblem::DateOutOfRange),
            Err(ParseTimestampError::Form) => return Err(mismatch()),
        },
        EdmType::Double => Value::Double(parse_double(text).ok_or_else(mismatch)?),
        EdmType::Guid => Value::Guid(text.parse().map_err(|_| mismatch())?),
        EdmType::Int32 => Value::Int32(text.parse().map_err(|_| mismatch())?),
        EdmType::Int64 => Value::Int64(text.parse().map_err(|_| mismatch())?),
        EdmType::String => Value::String(text.to_owned()),
    })
}

/// The three names, or a number that does not overflow. Rust itself would read more spellings.
fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(f64::INFINITY),
        "-Infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let is_number = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if !is_number {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn doubles_print_as_the_service_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5.0, "5.0"),
            (3.1, "3.1"),
            (1e300, "1E+300"),
            (-1.5e-7, "-1.5E-07"),
            (0.0001, "0.0001"),
            (0.00001, "1E-05"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (1e15, "1E+15"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(double(value), text);
        }
    }

    proptest! {
        #[test]
        fn doubles_read_back_exactly(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let read: f64 = serde_json::from_str(&double(value)).unwrap();
            prop_assert_eq!(read.to_bits(), bits);
            prop_assert!(double(value).contains(['.', 'E']));
            prop_assert_eq!(parse_double(&double(value)).map(f64::to_bits), Some(bits));
        }
    }

    #[test]
    fn other_spellings_of_doubles_are_refused() {
        for text in [
            "",
            "inf",
            "nan",
            "infinity",
            "+Infinity",
            "1.797693134862316e308",
            "0x1",
            "1,5",
        ] {
            assert_eq!(parse_double(text), None, "{text}");
        }
    }
}
