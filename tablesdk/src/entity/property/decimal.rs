//! Decimals as strings: as other programs write them, and in a form that keeps the order.
//!
//! The plain form keeps the scale: `1.50` is read back as `1.50`. Equal numbers may therefore be
//! stored as different strings, and strings of different lengths do not sort as their numbers do,
//! so filters cannot compare it.
//!
//! The ordered form has a fixed width: 29 digits, a point, 28 digits. A negative number has a `-`
//! in front, which sorts before all digits, and each of its digits is subtracted from 9, so that
//! the greater magnitude comes first. Equal numbers have one string.

use rust_decimal::Decimal;
use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::{PropertyValue, ValueError, wrong_type};

/// The string that .NET, Java and Python write for a decimal, such as `1.50`. Keeps the scale.
impl PropertyValue for Decimal {
    const EDM_TYPE: EdmType = EdmType::String;

    const INCOMPARABLE: Option<&'static str> = Some(
        "it is a decimal, and equal decimals may be stored as different strings, such as 1.5 and 1.50; store it with `#[table(with = \"tablesdk::entity::ordered_decimal\")]`, or filter by another property",
    );

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        let mut decimal = *self;
        if decimal.is_zero() {
            // A zero with a sign exists in few other libraries.
            decimal.set_sign_positive(true);
        }
        Ok(ValueRef::String(decimal.to_string().into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let text = match value {
            Value::String(text) => text,
            other => return Err(wrong_type::<Self>(&other)),
        };
        parse(&text).ok_or_else(|| {
            ValueError::unreadable(
                text,
                "a Decimal is stored as digits with a point, such as -12.50, with at most 28 digits after the point and a magnitude of 2^96 - 1",
            )
        })
    }
}

/// Reads what `decimal.ToString` of .NET, `BigDecimal.toString` and `toPlainString` of Java, and
/// `str` of Python's `Decimal` write, with the invariant culture: an exponent and a plus sign are
/// accepted, a comma and spaces are not. Nothing is rounded.
fn parse(text: &str) -> Option<Decimal> {
    let (negative, number) = match text.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, exponent) = match number.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = format!("{whole}{fraction}");
    if all_digits.is_empty() || !all_digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let mut digits = all_digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return decimal(0, scale.clamp(0, SCALE_MAX));
    }
    if scale < 0 {
        let zeros = usize::try_from(scale.unsigned_abs()).ok()?;
        if zeros >= DIGITS_MAX {
            return None;
        }
        digits.extend(std::iter::repeat_n('0', zeros));
    }
    let mut scale = scale.max(0);
    loop {
        let mantissa = digits.parse::<i128>().ok();
        let mantissa = mantissa.filter(|_| digits.len() <= DIGITS_MAX && scale <= SCALE_MAX);
        if let Some(mut decimal) = mantissa.and_then(|mantissa| decimal(mantissa, scale)) {
            decimal.set_sign_negative(negative);
            return Some(decimal);
        }
        // Zeros at the end that a `Decimal` cannot hold are not kept. Any other digit would be.
        if scale == 0 || digits.pop() != Some('0') {
            return None;
        }
        scale -= 1;
    }
}

fn decimal(mantissa: i128, scale: i64) -> Option<Decimal> {
    Decimal::try_from_i128_with_scale(mantissa, u32::try_from(scale).ok()?).ok()
}

/// The digits of 2^96 - 1, the greatest mantissa.
const DIGITS_MAX: usize = 29;
const SCALE_MAX: i64 = 28;

with_module!(
    /// A `rust_decimal::Decimal` in a form that filters can compare:
    /// `#[table(with = "tablesdk::entity::ordered_decimal")]`.
    ///
    /// The string has 58 or 59 characters and sorts as the numbers do. It does not keep the scale:
    /// `1.50` is read back as `1.5`, because equal numbers need one string for `eq`. Other programs
    /// can parse it if it is not negative, but do not write it, so a plain `1.5` is not read.
    /// `select` yields a [`Property`](crate::entity::ordered_decimal::Property). For an
    /// `Option<Decimal>` write `#[table(with = "tablesdk::entity::ordered_decimal::option")]`.
    ///
    /// ```
    /// use rust_decimal::Decimal;
    /// use tablesdk::{DynamicEntity, TableEntity, Value};
    ///
    /// #[derive(TableEntity)]
    /// struct Product {
    ///     #[table(partition_key)]
    ///     shop: String,
    ///     #[table(row_key)]
    ///     id: String,
    ///     /// As other programs write it.
    ///     price: Decimal,
    ///     /// As filters need it.
    ///     #[table(with = "tablesdk::entity::ordered_decimal")]
    ///     weight: Decimal,
    /// }
    ///
    /// let price = Decimal::new(150, 2);
    /// let product = Product { shop: "a".into(), id: "1".into(), price, weight: price };
    /// let entity = DynamicEntity::from_entity(&product)?;
    /// assert_eq!(entity.properties().get("price"), Some(&Value::from("1.50")));
    /// assert_eq!(entity.to_entity::<Product>()?.price.to_string(), "1.50");
    ///
    /// let filter = Product::columns().weight.lt(Decimal::ONE).to_string();
    /// assert_eq!(filter, "weight lt '00000000000000000000000000001.0000000000000000000000000000'");
    /// # Ok::<(), tablesdk::entity::EntityError>(())
    /// ```
    ordered_decimal, Decimal, String, use[Decimal, decode, encode, wrong_type],
    /// A `Decimal` that is stored as a string that keeps the order.
    |decimal| Ok(ValueRef::String(encode(decimal.normalize()).into())),
    |value| {
        let text = match value {
            Value::String(text) => text,
            other => return Err(wrong_type::<Self>(&other)),
        };
        // Only what encodes to the same string again is one of ours.
        match decode(&text) {
            Some(decimal) if encode(decimal) == text => Ok(decimal),
            _ => Err(ValueError::unreadable(
                text,
                "an ordered Decimal is stored as 29 digits, a point and 28 digits, after a `-` if negative and then each subtracted from 9; without `with`, a Decimal is read as other programs write it",
            )),
        }
    }
);

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

/// Each digit subtracted from 9; other characters are unchanged.
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

    fn read(text: &str) -> Result<String, ValueError> {
        Decimal::from_value(Value::from(text)).map(|decimal| decimal.to_string())
    }

    #[test]
    fn decimals_of_other_programs_are_read_with_their_scale() {
        for (text, decimal) in [
            ("1.50", "1.50"),
            ("-0.10", "-0.10"),
            ("+01.50", "1.50"),
            ("007", "7"),
            (".5", "0.5"),
            ("5.", "5"),
            ("0.000", "0.000"),
            // BigDecimal.toString, Python's str, decimal.js.
            ("1E+3", "1000"),
            ("1.5E-7", "0.00000015"),
            ("-1.20e2", "-120"),
            ("1.2345e2", "123.45"),
            ("0E-10", "0.0000000000"),
            ("0E+40", "0"),
            // decimal.MaxValue and the smallest step.
            (
                "79228162514264337593543950335",
                "79228162514264337593543950335",
            ),
            (
                "0.0000000000000000000000000001",
                "0.0000000000000000000000000001",
            ),
            // Zeros that a `Decimal` has no room for.
            (
                "00000000000000000000000000012.5000000000000000000000000000",
                "12.500000000000000000000000000",
            ),
            (
                "10000000000000000000000000000.00",
                "10000000000000000000000000000",
            ),
        ] {
            assert_eq!(read(text).as_deref(), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn a_string_that_would_be_rounded_or_guessed_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "+-1",
            "1,50",
            "1 000",
            " 1",
            "1.5.0",
            "1e",
            "1e5.0",
            "1e+",
            "e5",
            "NaN",
            "Infinity",
            "0x10",
            "١",
            "79228162514264337593543950336",
            "0.00000000000000000000000000001",
            "1.00000000000000000000000000001",
            "1E+29",
            "1e9223372036854775807",
            "1e-9223372036854775808",
            // A negative number in the ordered form.
            "-99999999999999999999999999987.4999999999999999999999999999",
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("a Decimal is stored as digits"), "{error}");
        }
        let error = Decimal::from_value(Value::Double(1.5)).unwrap_err();
        assert_eq!(error.to_string(), "expected Edm.String, found Edm.Double");
    }

    #[test]
    fn an_ordered_number_of_zero_or_more_reads_as_it_is() {
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
    fn other_strings_are_not_ordered_decimals() {
        for text in [
            "",
            "12.5",
            "-12.5",
            "12,5",
            "-",
            ".",
            "-99999999999999999999999999999.9999999999999999999999999999",
        ] {
            let error = ordered_decimal::Property::from_value(Value::from(text)).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("an ordered Decimal is stored as"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_plain_form_keeps_number_and_scale(decimal in any_decimal()) {
            let text = decimal.to_value().map(ValueRef::into_value).unwrap();
            let read = Decimal::from_value(text).unwrap();
            prop_assert_eq!((read, read.scale()), (decimal, decimal.scale()));
        }

        #[test]
        fn ordered_strings_order_as_their_numbers(a in any_decimal(), b in any_decimal()) {
            let text = |decimal: Decimal| {
                let property = ordered_decimal::Property(decimal);
                property.to_value().map(ValueRef::into_value).unwrap()
            };
            let (Value::String(left), Value::String(right)) = (text(a), text(b)) else { panic!() };
            prop_assert_eq!(compare_utf16(&left, &right), a.cmp(&b));
            let read = ordered_decimal::Property::from_value(Value::from(left));
            prop_assert_eq!(read.map(|read| read.0), Ok(a));
        }

        #[test]
        fn no_negative_ordered_string_is_read_as_a_plain_number(decimal in any_decimal()) {
            prop_assume!(!decimal.is_zero());
            let mut negative = decimal;
            negative.set_sign_negative(true);
            prop_assert_eq!(parse(&encode(negative.normalize())), None);
        }
    }
}
