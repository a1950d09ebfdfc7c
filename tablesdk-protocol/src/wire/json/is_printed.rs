//! Which texts are exactly what a server prints for some value.
//!
//! Only what is seen at a glance: for some printed texts, the answer is no. A number is one as JSON
//! spells it.

use crate::types::Timestamp;

/// Returns true for an Int32.
#[inline]
pub(super) fn int32(number: &str) -> bool {
    is_integer(number, INT32_DIGITS)
}

/// Returns true for an Int64.
#[inline]
pub(super) fn int64(text: &str) -> bool {
    is_integer(text, INT64_DIGITS)
}

/// Returns true for a Double: a number whose digits are few enough that no other one is as short.
#[inline]
pub(super) fn double(number: &str) -> bool {
    let digits = number.as_bytes();
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    let Some(point) = digits.iter().position(|byte| *byte == b'.') else {
        return false;
    };
    let Some((whole, [_, fraction @ ..])) = digits.split_at_checked(point) else {
        return false;
    };
    let is_shortest = match fraction {
        [b'0'] => true,
        [.., b'0'] => false,
        // With more zeros, it is printed with an exponent.
        [b'0', b'0', b'0', b'0', ..] => whole != b"0",
        _ => true,
    };
    is_shortest && digits.len() <= 1 + DOUBLE_DIGITS && fraction.iter().all(u8::is_ascii_digit)
}

/// Returns true for a date and time.
#[inline]
pub(super) fn date_time(text: &str) -> bool {
    let is_shortest = match text.as_bytes() {
        [.., b'0', b'Z'] => text.len() == TIME_BYTES,
        [.., b'Z'] => {
            text.len() == TIME_BYTES || (TIME_BYTES + 2..=TIME_BYTES_MAX).contains(&text.len())
        }
        _ => false,
    };
    is_shortest && text.parse::<Timestamp>().is_ok()
}

/// Returns true for a GUID.
#[inline]
pub(super) fn guid(text: &str) -> bool {
    let Ok(text) = <&[u8; GUID_BYTES]>::try_from(text.as_bytes()) else {
        return false;
    };
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10 || byte.wrapping_sub(b'a') < 6;
    // Without an early end, so that many bytes are looked at together.
    let others = text
        .iter()
        .fold(0, |others, byte| others + u8::from(!is_digit(*byte)));
    others == 4
        && [8, 13, 18, 23]
            .iter()
            .all(|place| text.get(*place) == Some(&b'-'))
}

/// Returns true for an integer of so many digits, or fewer.
#[inline]
fn is_integer(text: &str, digits_max: usize) -> bool {
    let digits = text.as_bytes();
    match digits {
        b"0" => true,
        [b'1'..=b'9', rest @ ..] | [b'-', b'1'..=b'9', rest @ ..] => {
            rest.len() < digits_max && rest.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// A number of so many digits is an Int32.
const INT32_DIGITS: usize = 9;
/// A number of so many digits is an Int64.
const INT64_DIGITS: usize = 18;
/// Two numbers of so many digits are two Doubles.
const DOUBLE_DIGITS: usize = 15;
/// The length of a printed time without a fraction.
const TIME_BYTES: usize = "2021-01-19T17:08:02Z".len();
/// The length of a printed time with all digits of a fraction.
const TIME_BYTES_MAX: usize = "2021-01-19T17:08:02.4069791Z".len();
/// The length of a printed GUID.
const GUID_BYTES: usize = 36;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{EdmType, ValueRef};
    use crate::wire::json::value::{parse_text, write_value};

    /// Asserts that a text which is accepted is what the value of that text prints as.
    fn check(
        text: &str,
        edm_type: EdmType,
        is_printed: fn(&str) -> bool,
    ) -> Result<bool, TestCaseError> {
        if !is_printed(text) {
            return Ok(false);
        }
        let mut printed = Vec::new();
        write_value(&mut printed, &parse_text(text, edm_type).unwrap());
        let printed = String::from_utf8(printed).unwrap();
        prop_assert_eq!(printed.trim_matches('"'), text);
        Ok(true)
    }

    proptest! {
        #[test]
        fn what_is_printed_prints_so(
            number in "-?(0|[1-9][0-9]{0,20})",
            fraction in "-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,17})?([eE][0-9]{1,2})?",
            small in "-?(0|[1-9])\\.0{0,6}[0-9]{1,10}",
            time in "(20[0-9]{2}|1[67]00)-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9])T[012][0-9]:[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,8})?)?(Z|\\+01:00)?",
            guid in "[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            any in ".{0,40}",
        ) {
            for text in [&number, &fraction, &small, &time, &guid, &any] {
                check(text, EdmType::Int32, int32)?;
                check(text, EdmType::Int64, int64)?;
                check(text, EdmType::DateTime, date_time)?;
                check(text, EdmType::Guid, super::guid)?;
            }
            // As JSON spells it.
            for text in [&number, &fraction, &small] {
                check(text, EdmType::Double, double)?;
            }
        }

        #[test]
        fn what_a_server_prints_is_mostly_seen(ticks in 0..20_000_000_000_000_000_i64, cents in -100_000_i32..100_000, number: i32) {
            let time = Timestamp::from_unix_ticks(ticks).unwrap();
            prop_assert!(date_time(&time.to_string()));
            let mut printed = Vec::new();
            write_value(&mut printed, &ValueRef::Double(f64::from(cents) / 100.0));
            prop_assert!(double(std::str::from_utf8(&printed).unwrap()));
            prop_assert!(int64(&number.to_string()));
            prop_assert!(int32(&(number / 10).to_string()));
        }
    }
}
