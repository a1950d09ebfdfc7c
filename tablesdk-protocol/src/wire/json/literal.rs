//! A literal of a filter, and how stored values compare with it.
//!
//! A server writes each value in one form only, so most values compare with a literal as their
//! bytes do, and numbers of usual lengths are read digit by digit. What is left, such as a string
//! with escapes, is read first. No comparison takes longer than the literal is long.

use std::cmp::Ordering;

use super::stored_value::StoredValue;
use super::value::write_value;
use crate::types::order::{compare_from, mismatch};
use crate::types::{EdmType, Value, compare_double_to_integer};

/// A literal, prepared to be compared with many stored values.
#[derive(Clone, Debug)]
pub struct StoredLiteral<'f> {
    value: &'f Value,
    /// The literal as it would be stored; empty where no bytes are compared.
    json: Vec<u8>,
}

impl<'f> StoredLiteral<'f> {
    /// Prepares a literal.
    pub fn new(value: &'f Value) -> Self {
        let mut json = Vec::new();
        if !matches!(value, Value::Double(_) | Value::Int32(_) | Value::Int64(_)) {
            write_value(&mut json, &value.as_ref());
        }
        Self { value, json }
    }

    /// The literal.
    pub const fn value(&self) -> &'f Value {
        self.value
    }

    /// How a stored value compares with the literal: as
    /// [`ValueRef::compare_to_literal`](crate::ValueRef::compare_to_literal) has it. `None` if the
    /// value must be read to know. The bytes after the ones that decide are not checked.
    #[inline]
    pub fn compare(&self, stored: StoredValue<'_>) -> Option<Ordering> {
        match (stored.annotation(), stored.json()) {
            (None, json @ [b'-' | b'0'..=b'9', ..]) => self.compare_number(json),
            _ => self.compare_other(stored),
        }
    }

    #[inline(never)]
    fn compare_other(&self, stored: StoredValue<'_>) -> Option<Ordering> {
        let json = stored.json();
        let edm_type = match (stored.annotation(), json) {
            (Some(edm_type), _) => edm_type,
            (None, [b'"', ..]) => EdmType::String,
            (None, b"true" | b"false") => EdmType::Boolean,
            _ => return None,
        };
        match (self.value, edm_type) {
            (Value::String(literal), EdmType::String) => self.compare_text(literal, json),
            // "false" comes before "true".
            (Value::Boolean(_), EdmType::Boolean) => Some(json.cmp(&self.json)),
            (Value::Int32(literal), EdmType::Int64) => {
                Some(long_integer(json)?.cmp(&i64::from(*literal)))
            }
            (Value::Int64(literal), EdmType::Int64) => Some(long_integer(json)?.cmp(literal)),
            (Value::DateTime(_), EdmType::DateTime) => self.compare_times(json),
            (Value::Guid(_), EdmType::Guid) => {
                (json.len() == self.json.len()).then(|| json.cmp(&self.json))
            }
            (Value::Binary(_), EdmType::Binary) => Some(compare_base64(json, &self.json)),
            // A number that is none, or infinite.
            (_, EdmType::Double) => None,
            _ => Some(Ordering::Less),
        }
    }

    #[inline]
    fn compare_number(&self, json: &[u8]) -> Option<Ordering> {
        let (is_negative, digits) = split_sign(json);
        let Some(whole) = whole_number(digits) else {
            return self.compare_double(is_negative, double(digits)?);
        };
        let whole = if is_negative { -whole } else { whole };
        let whole = i32::try_from(whole).ok()?;
        Some(match self.value {
            Value::Int32(literal) => whole.cmp(literal),
            _ => Ordering::Less,
        })
    }

    #[inline(never)]
    fn compare_double(&self, is_negative: bool, value: f64) -> Option<Ordering> {
        let value = if is_negative { -value } else { value };
        match self.value {
            Value::Int32(literal) => value.partial_cmp(&f64::from(*literal)),
            Value::Int64(literal) => compare_double_to_integer(value, *literal),
            Value::Double(literal) => value.partial_cmp(literal),
            _ => Some(Ordering::Less),
        }
    }

    /// Strings compare up to the first byte in which they differ, if no escape comes before it.
    fn compare_text(&self, literal: &str, json: &[u8]) -> Option<Ordering> {
        let [b'"', stored @ .., b'"'] = json else {
            return None;
        };
        if self.json.len() != literal.len() + 2 {
            return (json == self.json).then_some(Ordering::Equal);
        }
        let at = mismatch(stored, literal.as_bytes());
        if let Some(b'"' | b'\\') = stored.get(at) {
            return None;
        }
        Some(compare_from(at, stored, literal.as_bytes()))
    }

    /// The digits stand where they weigh the same. Zeros at the end of a fraction are not written,
    /// so that a time which is the beginning of another one is before it.
    fn compare_times(&self, json: &[u8]) -> Option<Ordering> {
        let literal = self.json.strip_suffix(TIME_END)?;
        Some(json.strip_suffix(TIME_END)?.cmp(literal))
    }
}

/// Reads an integer in quotes, of a few digits.
#[inline]
fn long_integer(json: &[u8]) -> Option<i64> {
    let [b'"', text @ .., b'"'] = json else {
        return None;
    };
    let (is_negative, digits) = split_sign(text);
    let whole = whole_number(digits)?;
    Some(if is_negative { -whole } else { whole })
}

#[inline]
const fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    }
}

/// Reads a number that consists of digits alone, of which there are so few that every number fits.
#[inline]
fn whole_number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > WHOLE_DIGITS_MAX {
        return None;
    }
    let mut number = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(number)
}

/// Reads digits with a point between them. Both the digits and the power of ten are whole numbers
/// that a double is exactly, so that their quotient is the nearest one.
#[inline(never)]
fn double(text: &[u8]) -> Option<f64> {
    if text.len() > DOUBLE_DIGITS_MAX + 1 {
        return None;
    }
    let point = text.iter().position(|byte| *byte == b'.')?;
    let (whole, fraction) = (text.get(..point)?, text.get(point + 1..)?);
    let power = 10_i64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits = whole_number(whole)? * power + whole_number(fraction)?;
    #[expect(clippy::cast_precision_loss, reason = "fifteen digits are exact")]
    Some(digits as f64 / power as f64)
}

/// Compares bytes by their base64, which has as many bits of each character: the first one that
/// differs decides, and the end comes before all of them.
fn compare_base64(a: &[u8], b: &[u8]) -> Ordering {
    let at = mismatch(a, b);
    let value = |text: &[u8]| text.get(at).map(|character| sextet(*character));
    value(a).cmp(&value(b))
}

/// The place of a character in the alphabet of base64; before all of them for the padding and for
/// the closing quote.
const fn sextet(character: u8) -> u8 {
    match character {
        b'A'..=b'Z' => character - b'A' + 1,
        b'a'..=b'z' => character - b'a' + 27,
        b'0'..=b'9' => character - b'0' + 53,
        b'+' => 63,
        b'/' => 64,
        _ => 0,
    }
}

/// The end of each stored time.
const TIME_END: &[u8] = b"Z\"";

/// Whole numbers of so many digits are less than 2^63.
const WHOLE_DIGITS_MAX: usize = 18;

/// Whole numbers of so many digits are less than 2^53.
const DOUBLE_DIGITS_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Guid, Timestamp};
    use crate::wire::json::{StoredProperty, write_stored_property};

    /// Values that are often equal, or differ late.
    fn value() -> impl Strategy<Value = Value> {
        let near = 17_000_000_000_000_000..17_000_000_020_000_000_i64;
        let far = Timestamp::MIN.unix_ticks()..=Timestamp::MAX.unix_ticks();
        let time = prop_oneof![near, far, Just(17_000_000_010_000_000)];
        let time = time.prop_map(|ticks| Timestamp::from_unix_ticks(ticks).unwrap());
        prop_oneof![
            prop::collection::vec(prop_oneof![Just(0), Just(0x10), any::<u8>()], 0..5)
                .prop_map(Value::Binary),
            any::<bool>().prop_map(Value::Boolean),
            time.prop_map(Value::DateTime),
            any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
            (-9999..9999_i32).prop_map(|number| Value::Double(f64::from(number) / 100.0)),
            (any::<i64>(), 0..20_i32).prop_map(|(number, power)| {
                #[expect(clippy::cast_precision_loss, reason = "any number will do")]
                Value::Double(number as f64 / 10_f64.powi(power))
            }),
            any::<u128>().prop_map(|bits| Value::Guid(Guid::from_bytes(bits.to_be_bytes()))),
            (0..3_u128).prop_map(|bits| Value::Guid(Guid::from_bytes(bits.to_be_bytes()))),
            prop_oneof![any::<i32>(), -3..3].prop_map(Value::Int32),
            prop_oneof![any::<i64>(), -3..3_i64].prop_map(Value::Int64),
            any::<String>().prop_map(Value::String),
            "[ab\"\\\\\u{1}é\u{E000}\u{FFFF}😀]{0,12}".prop_map(Value::String),
            "[ab]{6,12}".prop_map(Value::String),
        ]
    }

    fn agrees(stored: &Value, literal: &Value) {
        let mut json = Vec::new();
        write_stored_property(&mut json, "name", &stored.as_ref());
        let property = StoredProperty::read(&json).unwrap();
        let expected = stored.as_ref().compare_to_literal(literal);
        let compared = StoredLiteral::new(literal).compare(property.stored_value().unwrap());
        if let Some(compared) = compared {
            assert_eq!(Some(compared), expected, "{stored:?} and {literal:?}");
        }
        let is_read = match stored {
            Value::Double(_) => true,
            Value::Int64(number) => number.unsigned_abs() >= 10_u64.pow(18),
            Value::String(text) => json.len() != text.len() + 10,
            _ => false,
        };
        let is_plain = match literal {
            Value::String(text) => !text.contains(|c: char| c < ' ' || c == '"' || c == '\\'),
            _ => true,
        };
        assert!(
            compared.is_some() || is_read || !is_plain,
            "{stored:?} and {literal:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn stored_values_compare_as_their_values(stored in value(), literal in value()) {
            agrees(&stored, &literal);
            agrees(&stored, &stored);
        }

        #[test]
        fn values_of_one_type_compare_as_their_values(
            values in prop::collection::vec(value(), 2..12),
        ) {
            for stored in &values {
                for literal in &values {
                    agrees(stored, literal);
                }
            }
        }

        #[test]
        fn any_bytes_compare_or_not(json: Vec<u8>, text in "[-.0-9eE\"\\\\tZ]{0,24}", literal in value()) {
            let literal = StoredLiteral::new(&literal);
            for json in [&json[..], text.as_bytes()] {
                for annotation in [None, Some(EdmType::Binary), Some(EdmType::DateTime),
                    Some(EdmType::Double), Some(EdmType::Guid), Some(EdmType::Int64)] {
                    let _ = literal.compare(StoredValue::new(annotation, json));
                }
            }
        }

        #[test]
        fn numbers_are_read_as_by_the_standard_library(text in "[0-9]{0,19}[.]?[0-9]{0,19}") {
            if let Some(whole) = whole_number(text.as_bytes()) {
                prop_assert_eq!(text.parse(), Ok(whole));
            }
            if let Some(number) = double(text.as_bytes()) {
                prop_assert_eq!(number.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }
    }

    #[test]
    fn usual_numbers_are_compared_without_being_read() {
        for json in [
            "0",
            "39",
            "-1",
            "2147483647",
            "-2147483648",
            "101.25",
            "-0.5",
            "123456789012.345",
        ] {
            let property = format!(",\"a\":{json}");
            let property = StoredProperty::read(property.as_bytes()).unwrap();
            let literal = Value::Int32(5);
            assert!(
                StoredLiteral::new(&literal)
                    .compare(property.stored_value().unwrap())
                    .is_some(),
                "{json}"
            );
        }
        for json in [
            "",
            "-",
            ".5",
            "5.",
            "-.5",
            "1e5",
            "1.5E+07",
            "2147483648",
            "12345678901234.56",
        ] {
            let literal = Value::Int32(5);
            let stored = StoredValue::new(None, json.as_bytes());
            assert_eq!(StoredLiteral::new(&literal).compare(stored), None, "{json}");
        }
    }
}
