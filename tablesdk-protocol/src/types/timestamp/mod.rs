//! Instants of the service: 100 ns resolution, from 1601 to 9999, in UTC.
//!
//! Prints as the service does: up to seven fractional digits, trailing zeros trimmed. Deliberately
//! has no "now": the time enters through [`Clock`](crate::types::Clock).
//!
//! See
//! <https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model>.

mod parse;
mod printed;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

pub(crate) use printed::{FRACTION, FRACTION_BYTES, PrintedTimestamp};

/// A point in time as `Edm.DateTime` holds it: a count of 100 ns steps, from [`Timestamp::MIN`] to
/// [`Timestamp::MAX`].
///
/// ```
/// # use tablesdk_protocol::Timestamp;
/// let at: Timestamp = "2021-01-19T17:08:02.4069790Z".parse()?;
/// assert_eq!(at.to_string(), "2021-01-19T17:08:02.406979Z");
/// # Ok::<(), tablesdk_protocol::ParseTimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// 100 ns steps since 1970-01-01T00:00:00Z.
    ticks: i64,
}

impl Timestamp {
    /// 1601-01-01T00:00:00Z, the earliest instant the service stores.
    pub const MIN: Self = Self {
        ticks: -11_644_473_600 * TICKS_PER_SECOND,
    };
    /// 9999-12-31T23:59:59.9999999Z, the latest instant the service stores.
    pub const MAX: Self = Self {
        ticks: 253_402_300_800 * TICKS_PER_SECOND - 1,
    };
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Self = Self { ticks: 0 };

    /// The instant that many 100 ns steps after 1970-01-01T00:00:00Z (before it, when negative).
    ///
    /// # Errors
    ///
    /// When the instant lies outside [`Timestamp::MIN`]..=[`Timestamp::MAX`].
    #[inline]
    pub const fn from_unix_ticks(ticks: i64) -> Result<Self, TimestampRangeError> {
        if ticks < Self::MIN.ticks || ticks > Self::MAX.ticks {
            return Err(TimestampRangeError);
        }
        Ok(Self { ticks })
    }

    /// 100 ns steps since 1970-01-01T00:00:00Z.
    pub const fn unix_ticks(self) -> i64 {
        self.ticks
    }

    /// The instant 100 ns later; [`Timestamp::MAX`] stays.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.ticks == Self::MAX.ticks {
            self
        } else {
            Self {
                ticks: self.ticks + 1,
            }
        }
    }

    /// This instant moved into the future, cut to whole 100 ns and at [`Timestamp::MAX`].
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let ticks = i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX);
        Self {
            ticks: self.ticks.saturating_add(ticks).min(Self::MAX.ticks),
        }
    }

    /// This instant moved into the past, cut to whole 100 ns and at [`Timestamp::MIN`].
    ///
    /// ```
    /// # use tablesdk_protocol::Timestamp;
    /// use std::time::Duration;
    ///
    /// let now: Timestamp = "2024-03-01T00:00:00Z".parse()?;
    /// let yesterday = now.saturating_sub(Duration::from_secs(24 * 3600));
    /// assert_eq!(yesterday.to_string(), "2024-02-29T00:00:00Z");
    /// # Ok::<(), tablesdk_protocol::ParseTimestampError>(())
    /// ```
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let ticks = i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX);
        Self {
            ticks: self.ticks.saturating_sub(ticks).max(Self::MIN.ticks),
        }
    }

    /// The time since an earlier instant; `None` if that is a later one.
    /// [`abs_diff`](Self::abs_diff) does not ask which comes first.
    ///
    /// ```
    /// # use tablesdk_protocol::Timestamp;
    /// use std::time::Duration;
    ///
    /// let written: Timestamp = "2024-03-15T10:20:30Z".parse()?;
    /// let now: Timestamp = "2024-03-15T10:20:32.5Z".parse()?;
    /// assert_eq!(now.duration_since(written), Some(Duration::from_millis(2500)));
    /// assert_eq!(written.duration_since(now), None);
    /// # Ok::<(), tablesdk_protocol::ParseTimestampError>(())
    /// ```
    pub fn duration_since(self, earlier: Self) -> Option<Duration> {
        (self >= earlier).then(|| self.abs_diff(earlier))
    }

    /// The time between two instants, whichever comes first.
    pub fn abs_diff(self, other: Self) -> Duration {
        let ticks = self.ticks.abs_diff(other.ticks);
        let seconds = ticks / TICKS_PER_SECOND.unsigned_abs();
        let rest = ticks % TICKS_PER_SECOND.unsigned_abs();
        Duration::from_secs(seconds) + Duration::from_nanos(rest * 100)
    }

    /// The date in the form of the HTTP headers `Date` and `x-ms-date`, such as
    /// `Fri, 15 Mar 2024 10:20:30 GMT`.
    pub fn to_http_date(self) -> String {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = self.civil();
        let days = self.ticks.div_euclid(TICKS_PER_DAY);
        // 1970-01-01 was a Thursday.
        let weekday = name_of(&WEEKDAYS, days.rem_euclid(7));
        let month = name_of(&MONTHS, i64::from(month) - 1);
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
    }

    /// Reads the HTTP date form that [`Timestamp::to_http_date`] prints. The weekday is not
    /// compared with the date.
    ///
    /// # Errors
    ///
    /// When the string has another form, or names no day of the calendar.
    pub fn parse_http_date(text: &str) -> Result<Self, ParseTimestampError> {
        // `httpdate` also reads obsolete formats, and neither reads nor prints the years before
        // 1970.
        let form = ParseTimestampError::Form;
        let text: &[u8; HTTP_DATE_BYTES] = text.as_bytes().try_into().map_err(|_| form)?;
        // Each request has one, so all of it is matched at once.
        #[rustfmt::skip]
        let [
            w1, w2, w3, b',', b' ', d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ',
            h1, h2, b':', n1, n2, b':', s1, s2, b' ', b'G', b'M', b'T',
        ] = *text
        else {
            return Err(form);
        };
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0, |number, digit| {
                digit
                    .is_ascii_digit()
                    .then(|| number * 10 + u32::from(digit - b'0'))
            })
        };
        let place =
            |names: &[&str], name: [u8; 3]| names.iter().position(|known| known.as_bytes() == name);
        place(&WEEKDAYS, [w1, w2, w3]).ok_or(form)?;
        let civil = (|| {
            Some(Civil {
                year: number(&[y1, y2, y3, y4])?,
                month: u32::try_from(place(&MONTHS, [m1, m2, m3])?).ok()? + 1,
                day: number(&[d1, d2])?,
                hour: number(&[h1, h2])?,
                minute: number(&[n1, n2])?,
                second: number(&[s1, s2])?,
                fraction: 0,
            })
        })();
        civil.ok_or(form)?.to_timestamp(0)
    }

    /// Prints with all seven fractional digits, as access policies and older backends spell an
    /// instant.
    pub fn to_padded_string(self) -> String {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            fraction,
        } = self.civil();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }

    /// The string that `Display` shows. It is made without `format!`, because each entity of a
    /// response has two timestamps.
    pub(crate) fn print(self) -> PrintedTimestamp {
        let mut printed = PrintedTimestamp::default();
        printed.set(self);
        printed
    }

    fn civil(self) -> Civil {
        let (year, month, day) = civil_from_days(self.ticks.div_euclid(TICKS_PER_DAY));
        let in_day = self.ticks.rem_euclid(TICKS_PER_DAY);
        let part = |value: i64| u32::try_from(value).unwrap_or_default();
        let seconds = part(in_day / TICKS_PER_SECOND);
        Civil {
            year,
            month,
            day,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            fraction: part(in_day % TICKS_PER_SECOND),
        }
    }
}

/// Prints `2021-01-19T17:08:02.406979Z`: up to seven fractional digits, none of them a trailing
/// zero.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.print().as_str())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads ISO 8601: `YYYY-MM-DD`, optionally followed by `Thh:mm[:ss[.fraction]]` and `Z` or an
/// offset `±hh:mm`. Without an offset the time is UTC.
impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(civil) = parse::printed(text) {
            return civil.to_timestamp(0);
        }
        parse::any(text)
    }
}

/// Cut to whole 100 ns.
impl TryFrom<SystemTime> for Timestamp {
    type Error = TimestampRangeError;

    fn try_from(time: SystemTime) -> Result<Self, Self::Error> {
        let ticks = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos() / 100).map_err(|_| TimestampRangeError)?,
            Err(before) => -i128::try_from(before.duration().as_nanos().div_ceil(100))
                .map_err(|_| TimestampRangeError)?,
        };
        Self::from_unix_ticks(i64::try_from(ticks).map_err(|_| TimestampRangeError)?)
    }
}

/// Cut to whole 100 ns.
#[cfg(feature = "time")]
impl TryFrom<time::OffsetDateTime> for Timestamp {
    type Error = TimestampRangeError;

    fn try_from(time: time::OffsetDateTime) -> Result<Self, Self::Error> {
        let ticks = time.unix_timestamp_nanos().div_euclid(100);
        Self::from_unix_ticks(i64::try_from(ticks).map_err(|_| TimestampRangeError)?)
    }
}

#[cfg(feature = "time")]
impl From<Timestamp> for time::OffsetDateTime {
    fn from(timestamp: Timestamp) -> Self {
        Self::from_unix_timestamp_nanos(i128::from(timestamp.ticks) * 100)
            .expect("every timestamp lies within the years of OffsetDateTime")
    }
}

/// The instant lies outside the years 1601 to 9999 that the service stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the instant lies outside 1601-01-01T00:00:00Z to 9999-12-31T23:59:59.9999999Z")]
pub struct TimestampRangeError;

/// The reason why a string is not a [`Timestamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseTimestampError {
    /// The string is not a date and time, or names a day or time that does not exist.
    #[error("not a date and time such as 2024-03-15T10:20:30.1234567Z")]
    Form,
    /// The instant lies outside the years 1601 to 9999.
    #[error(transparent)]
    Range(#[from] TimestampRangeError),
}

/// Fields of the proleptic Gregorian calendar, in UTC.
struct Civil {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    /// In 100 ns.
    fraction: u32,
}

impl Civil {
    fn to_timestamp(&self, offset_minutes: i64) -> Result<Timestamp, ParseTimestampError> {
        let month_ok = (1..=12).contains(&self.month);
        if !month_ok || self.day < 1 || self.day > days_in_month(self.year, self.month) {
            return Err(ParseTimestampError::Form);
        }
        if self.hour > 23 || self.minute > 59 || self.second > 59 {
            return Err(ParseTimestampError::Form);
        }
        let seconds = days_from_civil(self.year, self.month, self.day) * 86_400
            + i64::from(self.hour * 3600 + self.minute * 60 + self.second)
            - offset_minutes * 60;
        let ticks = seconds * TICKS_PER_SECOND + i64::from(self.fraction);
        Ok(Timestamp::from_unix_ticks(ticks)?)
    }
}

fn days_in_month(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01. Counts years from March, so that the leap day comes last; eras are 400
/// years long.
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The reverse of [`days_from_civil`], by the algorithm of Neri and Schneider ("Euclidean affine
/// functions and their application to calendar algorithms", 2022): each response prints several
/// timestamps. Years begin in March, so that the leap day is the last one.
fn civil_from_days(days: i64) -> (u32, u32, u32) {
    // All days from the year 0 on are positive.
    let days = u32::try_from(days + 719_468).unwrap_or_default();
    let in_centuries = 4 * days + 3;
    let century = in_centuries / 146_097;
    // The upper half of the product is the year of the century, the lower one the day of the year.
    let product = 2_939_745 * u64::from((in_centuries % 146_097) | 3);
    let (upper, lower) = (product >> 32, product & 0xFFFF_FFFF);
    let part = |value: u64| u32::try_from(value).unwrap_or_default();
    let day_of_year = part(lower / 2_939_745 / 4);
    let in_months = 2141 * day_of_year + 197_913;
    let (month, day) = (in_months >> 16, (in_months & 0xFFFF) / 2141 + 1);
    let year = 100 * century + part(upper);
    if day_of_year >= 306 {
        (year + 1, month - 12, day)
    } else {
        (year, month, day)
    }
}

fn name_of(names: &[&'static str], index: i64) -> &'static str {
    usize::try_from(index)
        .ok()
        .and_then(|index| names.get(index))
        .copied()
        .unwrap_or_default()
}

const TICKS_PER_SECOND: i64 = 10_000_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;
/// The length of an HTTP date.
const HTTP_DATE_BYTES: usize = "Tue, 19 Jan 2021 17:08:02 GMT".len();
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_day_has_its_date() {
        let day_of = |timestamp: Timestamp| timestamp.ticks.div_euclid(TICKS_PER_DAY);
        for day in day_of(Timestamp::MIN)..=day_of(Timestamp::MAX) {
            let (year, month, number) = civil_from_days(day);
            assert!((1..=12).contains(&month) && (1..=31).contains(&number));
            assert_eq!(days_from_civil(year, month, number), day);
        }
    }

    #[test]
    fn instants_move_and_are_apart() {
        let second = Duration::from_secs(1);
        let at = Timestamp::UNIX_EPOCH;
        for (earlier, later, apart) in [
            (at, at, Some(Duration::ZERO)),
            (at.saturating_sub(second), at, Some(second)),
            (at, at.saturating_add(second), Some(second)),
            (at, at.next(), Some(Duration::from_nanos(100))),
            (at.next(), at, None),
            (
                Timestamp::MIN.saturating_sub(second),
                Timestamp::MIN,
                Some(Duration::ZERO),
            ),
            (
                at.saturating_sub(Duration::MAX),
                Timestamp::MIN,
                Some(Duration::ZERO),
            ),
        ] {
            assert_eq!(later.duration_since(earlier), apart, "{earlier} {later}");
        }
        assert_eq!(at.saturating_sub(Duration::from_nanos(99)), at);
    }

    #[test]
    fn trims_trailing_zeros_of_the_fraction() {
        for (text, printed) in [
            (
                "2021-01-19T17:08:02.4069790Z",
                "2021-01-19T17:08:02.406979Z",
            ),
            ("2020-01-01T01:02:00.0000000Z", "2020-01-01T01:02:00Z"),
            (
                "2021-09-21T01:04:37.9678478Z",
                "2021-09-21T01:04:37.9678478Z",
            ),
            (
                "2021-09-21T01:04:37.0000001Z",
                "2021-09-21T01:04:37.0000001Z",
            ),
            ("2008-07-10T00:00:00", "2008-07-10T00:00:00Z"),
            ("2008-07-10", "2008-07-10T00:00:00Z"),
            ("2008-07-10T00:00", "2008-07-10T00:00:00Z"),
            ("2008-07-10T02:00:00+02:00", "2008-07-10T00:00:00Z"),
            ("2008-07-09T23:30:00-00:30", "2008-07-10T00:00:00Z"),
            ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
            (
                "9999-12-31T23:59:59.9999999Z",
                "9999-12-31T23:59:59.9999999Z",
            ),
            (
                "2024-02-29T12:00:00.12345678Z",
                "2024-02-29T12:00:00.1234567Z",
            ),
        ] {
            assert_eq!(
                text.parse::<Timestamp>().unwrap().to_string(),
                printed,
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_timestamps_are_refused() {
        for text in [
            "",
            "2008",
            "2008-07",
            "2008-7-10",
            "2008-07-10T",
            "2008-07-10T1",
            "2008-13-01",
            "2023-02-29",
            "1900-02-29",
            "2008-07-10T24:00:00Z",
            "2008-07-10T00:60:00Z",
            "2008-07-10T00:00:60Z",
            "2008-07-10T00:00:00.Z",
            "2008-07-10T00:00:00ZZ",
            "2008-07-10T00:00:00+0200",
            "2008-07-10 00:00:00Z",
            "２008-07-10",
            "2008-07-10T00:00:00Z ",
        ] {
            assert_eq!(
                text.parse::<Timestamp>(),
                Err(ParseTimestampError::Form),
                "{text}"
            );
        }
        for text in [
            "0001-01-01T00:00:00Z",
            "1600-12-31T23:59:59.9999999Z",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(
                text.parse::<Timestamp>(),
                Err(ParseTimestampError::Range(TimestampRangeError)),
                "{text}"
            );
        }
    }

    #[test]
    fn prints_and_reads_http_dates() {
        let at: Timestamp = "2024-03-15T10:20:30Z".parse().unwrap();
        assert_eq!(at.to_http_date(), "Fri, 15 Mar 2024 10:20:30 GMT");
        assert_eq!(
            Timestamp::parse_http_date("Fri, 15 Mar 2024 10:20:30 GMT"),
            Ok(at)
        );
        for text in [
            "",
            "Fri, 15 Mar 2024 10:20:30",
            "Fri, 32 Mar 2024 10:20:30 GMT",
            "15 Mar 2024",
            "Fri, 15 Mar 2024 10:20 GMT",
            "Fri, 15 Mar 2024 10:20+01 GMT",
            "Fri, 5 Mar 2024 10:20:30 GMT",
            "Fri, 15 Mar 24 10:20:30 GMT",
            "Fri, 15  Mar 2024 10:20:30 GMT",
            "Fri, 15 Mar 2024 10:20:30 GMT ",
            "Fry, 15 Mar 2024 10:20:30 GMT",
        ] {
            assert!(Timestamp::parse_http_date(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_time_crate(ticks in Timestamp::MIN.ticks..=Timestamp::MAX.ticks) {
            let ours = Timestamp::from_unix_ticks(ticks).unwrap();
            let theirs = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(ticks) * 100).unwrap();
            prop_assert_eq!(ours.to_string().parse::<Timestamp>(), Ok(ours));
            prop_assert_eq!(ours.to_padded_string().parse::<Timestamp>(), Ok(ours));
            let rfc3339 = theirs.format(&time::format_description::well_known::Rfc3339).unwrap();
            prop_assert_eq!(ours.to_string(), rfc3339);
            let whole = Timestamp::from_unix_ticks(ticks.div_euclid(TICKS_PER_SECOND) * TICKS_PER_SECOND).unwrap();
            prop_assert_eq!(Timestamp::parse_http_date(&ours.to_http_date()), Ok(whole));
            // RFC 2822 begins with the year 1900.
            if theirs.year() >= 1900 {
                let http = theirs.format(&time::format_description::well_known::Rfc2822).unwrap();
                prop_assert_eq!(ours.to_http_date(), http.replace("+0000", "GMT"));
            }
        }

        #[test]
        fn the_printed_form_is_read_as_any(
            ticks in Timestamp::MIN.ticks..=Timestamp::MAX.ticks,
            padded: bool,
            at: prop::sample::Index,
            byte in prop_oneof![2 => prop::sample::select(b"0123456789:-.TZ+/ ".to_vec()), 1 => any::<u8>()],
            more in "[0-9]{0,3}Z?",
        ) {
            let instant = Timestamp::from_unix_ticks(ticks).unwrap();
            let printed = if padded { instant.to_padded_string() } else { instant.to_string() };
            let mut changed = printed.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = byte;
            let changed = String::from_utf8_lossy(&changed).into_owned();
            for text in [printed.clone(), changed, format!("{printed}{more}"), printed.replace('Z', &more)] {
                prop_assert_eq!(text.parse::<Timestamp>(), parse::any(&text), "{}", text);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in ".{0,40}") {
            let _ = text.parse::<Timestamp>();
            let _ = Timestamp::parse_http_date(&text);
        }
    }
}
