//! A decimal as a text that keeps its order, of a fixed width: 29 digits, a point, 28 digits.
//!
//! A negative one has a `-` in front, which comes before all digits, and each of its digits taken from 9, so that the
//! greater magnitude comes first. A number of zero or more reads as it is. How many zeros were written at the end is not
//! kept: `12.50` comes back as `12.5`, since equal numbers have one text, or no filter would find them.

use rust_decimal::Decimal;
use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::{PropertyValue, ValueError, wrong_type};

/// A text of 58 or 59 characters that keeps the order of the numbers. Comes back without zeros at the end.
impl PropertyValue for Decimal {
    const EDM_TYPE: EdmType = EdmType::String;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::String(encode(self.normalize()).into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let text = match value {
            Value::String(text) => text,
            other => return Err(wrong_type::<Self>(&other)),
        };
        // Only what encodes to the same text again is one of ours.
        match decode(&text) {
            Some(decimal) if encode(decimal) == text => Ok(decimal),
            _ => Err(ValueError::unreadable(
                text,
                "a Decimal is stored as 29 digits, a point and 28 digits, behind a `-` if negative and then each taken from 9",
            )),
        }
    }
}

ordered!(Decimal);

fn encode(decimal: Decimal) -> String {
    let magnitude = decimal.abs().to_string();
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((&magnitude, ""));
    let text = format!("{whole:0>WHOLE$}.{fraction:0<FRACTION$}");
    if decimal.is_sign_negative() && !decimal.is_zero() {
        format!("-{}", complement(&text))
    } else {
        text
    }
}

fn decode(text: &str) -> Option<Decimal> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, complement(digits)),
        None => (false, text.to_owned()),
    };
    let (whole, fraction) = digits.split_once('.')?;
    // Zeros count among the digits that a `Decimal` has room for.
    let (whole, fraction) = (
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    );
    let mut decimal = match fraction {
        "" => Decimal::from_str_exact(&format!("0{whole}")).ok()?,
        fraction => Decimal::from_str_exact(&format!("{whole}.{fraction}")).ok()?,
    };
    decimal.set_sign_negative(negative);
    Some(decimal.normalize())
}

/// Each digit taken from 9; what is no digit stays.
fn complement(text: &str) -> String {
    let digit = |c: char| match c.to_digit(10) {
        Some(digit) => char::from_digit(9 - digit, 10).unwrap_or(c),
        None => c,
    };
    text.chars().map(digit).collect()
}

const WHOLE: usize = 29;
const FRACTION: usize = 28;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tablesdk_protocol::compare_utf16;

    use super::*;

    fn any_decimal() -> impl Strategy<Value = Decimal> {
        (any::<[u32; 3]>(), any::<bool>(), 0..=28_u32, 0..96_u32).prop_map(
            |([low, mid, high], negative, scale, shift)| {
                // Small numbers as often as large ones.
                let bits =
                    (u128::from(high) << 64 | u128::from(mid) << 32 | u128::from(low)) >> shift;
                let part = |index: u32| u32::try_from(bits >> (32 * index) & 0xFFFF_FFFF).unwrap();
                Decimal::from_parts(part(0), part(1), part(2), negative, scale)
            },
        )
    }

    #[test]
    fn a_number_of_zero_or_more_reads_as_it_is() {
        for (decimal, text) in [
            (
                "12.50",
                "00000000000000000000000000012.5000000000000000000000000000",
            ),
            (
                "-12.5",
                "-99999999999999999999999999987.4999999999999999999999999999",
            ),
            (
                "-0.00",
                "00000000000000000000000000000.0000000000000000000000000000",
            ),
        ] {
            assert_eq!(encode(decimal.parse().unwrap()), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "12.5",
            "-12.5",
            "12,5",
            "-",
            ".",
            "-99999999999999999999999999999.9999999999999999999999999999",
        ] {
            let error = Decimal::from_value(Value::from(text)).unwrap_err();
            assert!(
                error.to_string().contains("a Decimal is stored as"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn texts_order_as_their_numbers_and_come_back(a in any_decimal(), b in any_decimal()) {
            let text = |decimal: Decimal| decimal.to_value().map(ValueRef::into_value).unwrap();
            let (Value::String(left), Value::String(right)) = (text(a), text(b)) else { panic!() };
            prop_assert_eq!(compare_utf16(&left, &right), a.cmp(&b));
            prop_assert_eq!(Decimal::from_value(Value::from(left)), Ok(a));
        }
    }
}
