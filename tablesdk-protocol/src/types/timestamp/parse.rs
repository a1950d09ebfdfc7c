//! Reads instants: the form in which the service prints them fast, and every other one.

use super::{Civil, ParseTimestampError, Timestamp};
use crate::types::text::Cursor;

/// Reads an instant in any of its forms.
pub(super) fn any(text: &str) -> Result<Timestamp, ParseTimestampError> {
    let mut cursor = Cursor::new(text);
    let mut offset_minutes = 0;
    let civil = (|| {
        let year = cursor.digits(4)?;
        cursor.literal("-").then_some(())?;
        let month = cursor.digits(2)?;
        cursor.literal("-").then_some(())?;
        let day = cursor.digits(2)?;
        let mut civil = Civil {
            year,
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            fraction: 0,
        };
        if cursor.is_at_end() {
            return Some(civil);
        }
        cursor.literal("T").then_some(())?;
        civil.hour = cursor.digits(2)?;
        cursor.literal(":").then_some(())?;
        civil.minute = cursor.digits(2)?;
        if cursor.literal(":") {
            civil.second = cursor.digits(2)?;
            if cursor.literal(".") {
                civil.fraction = fraction(&mut cursor)?;
            }
        }
        if !cursor.literal("Z") && !cursor.is_at_end() {
            let west = cursor.literal("-");
            (west || cursor.literal("+")).then_some(())?;
            let hours = i64::from(cursor.digits(2)?);
            cursor.literal(":").then_some(())?;
            let minutes = i64::from(cursor.digits(2)?);
            (hours < 24 && minutes < 60).then_some(())?;
            offset_minutes = if west {
                -(hours * 60 + minutes)
            } else {
                hours * 60 + minutes
            };
        }
        cursor.is_at_end().then_some(civil)
    })();
    civil
        .ok_or(ParseTimestampError::Form)?
        .to_timestamp(offset_minutes)
}

/// Reads the form in which the service prints an instant, without looking for others.
pub(super) fn printed(text: &str) -> Option<Civil> {
    let (head, rest) = text.as_bytes().split_first_chunk::<19>()?;
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let mut is_form = separators
        .iter()
        .all(|(place, byte)| head.get(*place) == Some(byte));
    let mut digit = |place: usize| {
        let digit = head.get(place).map_or(0, |byte| byte.wrapping_sub(b'0'));
        is_form &= digit < 10;
        u32::from(digit)
    };
    let mut number = |place| digit(place) * 10 + digit(place + 1);
    let civil = Civil {
        year: number(0) * 100 + number(2),
        month: number(5),
        day: number(8),
        hour: number(11),
        minute: number(14),
        second: number(17),
        fraction: printed_fraction(rest)?,
    };
    is_form.then_some(civil)
}

/// Up to seven digits behind a point, and the `Z` at the end.
fn printed_fraction(text: &[u8]) -> Option<u32> {
    let digits = match text {
        [b'Z'] => return Some(0),
        [b'.', digits @ .., b'Z'] if (1..=7).contains(&digits.len()) => digits,
        _ => return None,
    };
    let mut value = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    let absent = 7 - u32::try_from(digits.len()).ok()?;
    Some(value * 10_u32.pow(absent))
}

/// One to any number of digits; those after the seventh are dropped.
// SERVICE: recordings of nine digits agree with cutting, and do not exclude rounding. Cutting keeps
// the order and never moves an instant into the future.
fn fraction(cursor: &mut Cursor<'_>) -> Option<u32> {
    let digits = cursor.take_while(|byte| byte.is_ascii_digit());
    if digits.is_empty() {
        return None;
    }
    let ticks = digits.bytes().chain(std::iter::repeat(b'0')).take(7);
    Some(ticks.fold(0, |value, byte| value * 10 + u32::from(byte - b'0')))
}
