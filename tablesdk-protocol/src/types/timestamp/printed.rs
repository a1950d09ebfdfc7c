//! The string of a timestamp, made without an allocation and, in part, from the one before.

use super::{Civil, TICKS_PER_SECOND, Timestamp};

/// The string of a timestamp, without an allocation.
#[derive(Clone, Debug)]
pub(crate) struct PrintedTimestamp {
    /// With all seven fractional digits. A `Z` stands also behind those that are part of the
    /// string.
    bytes: [u8; PADDED_BYTES],
    length: usize,
    /// The time of the bytes without the fraction, in ticks.
    second: i64,
}

/// The length of a timestamp with all seven fractional digits.
const PADDED_BYTES: usize = "2021-01-19T17:08:02.4069790Z".len();

/// Where the point before the fraction is.
pub(crate) const FRACTION: usize = "2021-01-19T17:08:02".len();
/// The length of a point and seven digits.
pub(crate) const FRACTION_BYTES: usize = 8;

impl PrintedTimestamp {
    /// Prints another timestamp. Only the fraction is printed anew if it is in the same second, as
    /// that of an entity beside the one before often is.
    pub(crate) fn set(&mut self, timestamp: Timestamp) {
        if !self.is_in_second_of(timestamp) {
            let civil = timestamp.civil();
            self.second = timestamp.ticks - i64::from(civil.fraction);
            self.set_second(&civil);
        }
        let fraction = u64::try_from(timestamp.ticks - self.second).unwrap_or_default();
        let mut digits = eight_digits(fraction);
        digits[0] = b'.';
        self.bytes[FRACTION..FRACTION + FRACTION_BYTES].copy_from_slice(&digits);
        self.length = PADDED_BYTES;
        if digits[7] == b'0' {
            self.trim();
        }
    }

    fn set_second(&mut self, civil: &Civil) {
        self.put(0, civil.year / 100);
        self.put(2, civil.year);
        self.put(5, civil.month);
        self.put(8, civil.day);
        self.put(11, civil.hour);
        self.put(14, civil.minute);
        self.put(17, civil.second);
    }

    /// Prints the last two digits of a number at an index.
    fn put(&mut self, index: usize, number: u32) {
        if let Some(place) = self.bytes.get_mut(index..index + 2) {
            place.copy_from_slice(&[last_digit(number / 10), last_digit(number)]);
        }
    }

    /// Removes the zeros at the end of the fraction, and the point before nothing.
    fn trim(&mut self) {
        let [digits @ .., _] = &self.bytes;
        let last = digits.iter().rposition(|byte| *byte != b'0');
        let last = last.unwrap_or_default();
        let is_whole = digits.get(last) == Some(&b'.');
        self.length = last + if is_whole { 1 } else { 2 };
        if let Some(place) = self.bytes.get_mut(self.length - 1) {
            *place = b'Z';
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns true if another timestamp differs in the fraction alone, if at all.
    pub(crate) fn is_in_second_of(&self, timestamp: Timestamp) -> bool {
        (0..TICKS_PER_SECOND).contains(&timestamp.ticks.wrapping_sub(self.second))
    }

    /// The fraction with its point; `None` if it has fewer than seven digits.
    pub(crate) fn whole_fraction(&self) -> Option<[u8; FRACTION_BYTES]> {
        let fraction = self.bytes.get(FRACTION..FRACTION + FRACTION_BYTES)?;
        (self.length == PADDED_BYTES).then(|| fraction.try_into().ok())?
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("digits and separators are ASCII")
    }
}

impl Default for PrintedTimestamp {
    fn default() -> Self {
        Self {
            bytes: *b"0000-00-00T00:00:00.0000000Z",
            length: PADDED_BYTES,
            second: i64::MIN,
        }
    }
}

fn last_digit(number: u32) -> u8 {
    b'0' + u8::try_from(number % 10).unwrap_or_default()
}

/// A number as eight digits, all made at once: halves of four digits, then quarters of two, then
/// the digits. So they are stored at once, too, and the processor need not wait to read them
/// together.
const fn eight_digits(number: u64) -> [u8; 8] {
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    // Less than 10,000, so this is a division by 100; and then, less than 100, by 10.
    let hundreds = (halves * 10_486) >> 20 & 0x7F_0000_007F;
    let quarters = hundreds | (halves - hundreds * 100) << 16;
    let tens = (quarters * 103) >> 10 & 0xF_000F_000F_000F;
    let digits = tens | (quarters - tens * 10) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn eight_digits_are_those_of_the_number(number in 0..100_000_000_u64) {
            prop_assert_eq!(eight_digits(number).to_vec(), format!("{number:08}").into_bytes());
        }

        #[test]
        fn prints_after_another_timestamp_as_alone(
            seconds in prop::collection::vec(-3..3_i64, 2..8),
            fractions in prop::collection::vec(prop_oneof![
                0..TICKS_PER_SECOND,
                (0..100_i64).prop_map(|part| part * 100_000),
            ], 8),
        ) {
            let mut printed = PrintedTimestamp::default();
            for (second, fraction) in seconds.into_iter().zip(fractions) {
                let timestamp = Timestamp::from_unix_ticks(second * TICKS_PER_SECOND + fraction).unwrap();
                printed.set(timestamp);
                let nanos = i128::from(timestamp.ticks) * 100;
                let time = time::OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap();
                let rfc3339 = time.format(&time::format_description::well_known::Rfc3339).unwrap();
                prop_assert_eq!(printed.as_str(), rfc3339);
            }
        }
    }
}
