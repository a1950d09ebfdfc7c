//! Instants and days of the calendar libraries, as `Edm.DateTime`.
//!
//! A day is its midnight in UTC. What names no instant, such as a local time without a zone, is no
//! property.

use std::fmt::Display;

use tablesdk_protocol::wire::json::RawProperty;
use tablesdk_protocol::{EdmType, Timestamp, Value, ValueRef};

use super::{PropertyValue, ValueError};

/// Two conversions, to and from nanoseconds since 1970 in UTC. Finer than 100 ns is cut off; the
/// service stores 100 ns.
macro_rules! instant {
    ($type:ty, $name:literal, |$instant:ident| $nanos:expr, |$back:ident| $from:expr) => {
        impl PropertyValue for $type {
            const EDM_TYPE: EdmType = EdmType::DateTime;

            fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
                let $instant = self;
                stored(i64::try_from($nanos.div_euclid(NANOS_PER_TICK)).ok(), self)
            }

            fn from_value(value: Value) -> Result<Self, ValueError> {
                let timestamp = Timestamp::from_value(value)?;
                let $back = i128::from(timestamp.unix_ticks()) * NANOS_PER_TICK;
                let instant: Option<Self> = $from;
                instant.ok_or_else(|| beyond(timestamp, $name))
            }

            fn from_json(property: &RawProperty<'_>) -> Option<Self> {
                let timestamp = Timestamp::from_json(property)?;
                Self::from_value(Value::DateTime(timestamp)).ok()
            }
        }

        ordered!($type);
    };
}

/// Two conversions, to and from days since 1970.
macro_rules! day {
    ($type:ty, $name:literal, |$day:ident| $days:expr, |$back:ident| $from:expr) => {
        impl PropertyValue for $type {
            const EDM_TYPE: EdmType = EdmType::DateTime;

            fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
                let $day = self;
                let days: Option<i64> = $days;
                stored(days.and_then(|days| days.checked_mul(TICKS_PER_DAY)), self)
            }

            fn from_value(value: Value) -> Result<Self, ValueError> {
                let timestamp = Timestamp::from_value(value)?;
                let ticks = timestamp.unix_ticks();
                if ticks % TICKS_PER_DAY != 0 {
                    return Err(ValueError::unreadable(
                        timestamp,
                        "a date alone is stored as midnight in UTC",
                    ));
                }
                let $back = ticks / TICKS_PER_DAY;
                let day: Option<Self> = $from;
                day.ok_or_else(|| beyond(timestamp, $name))
            }
        }

        ordered!($type);
    };
}

#[cfg(feature = "time")]
instant!(
    time::OffsetDateTime,
    "a time::OffsetDateTime",
    |at| at.unix_timestamp_nanos(),
    |nanos| Self::from_unix_timestamp_nanos(nanos).ok()
);
#[cfg(feature = "time")]
day!(
    time::Date,
    "a time::Date",
    |day| Some(i64::from(day.to_julian_day()) - i64::from(JULIAN_DAY_OF_1970)),
    |days| i32::try_from(days)
        .ok()
        .and_then(|days| Self::from_julian_day(days + JULIAN_DAY_OF_1970).ok())
);
#[cfg(feature = "time")]
const JULIAN_DAY_OF_1970: i32 = 2_440_588;

#[cfg(feature = "chrono")]
instant!(
    chrono::DateTime<chrono::Utc>,
    "a chrono::DateTime",
    |at| i128::from(at.timestamp()) * NANOS_PER_SECOND + i128::from(at.timestamp_subsec_nanos()),
    |nanos| {
        let seconds = i64::try_from(nanos.div_euclid(NANOS_PER_SECOND)).ok();
        let rest = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).ok();
        seconds
            .zip(rest)
            .and_then(|(seconds, rest)| Self::from_timestamp(seconds, rest))
    }
);
#[cfg(feature = "chrono")]
day!(
    chrono::NaiveDate,
    "a chrono::NaiveDate",
    |day| Some(i64::from(chrono::Datelike::num_days_from_ce(day)) - DAYS_BEFORE_1970),
    |days| i32::try_from(days + DAYS_BEFORE_1970)
        .ok()
        .and_then(Self::from_num_days_from_ce_opt)
);
/// The days from the first day of year 1, which counts as day 1.
#[cfg(feature = "chrono")]
const DAYS_BEFORE_1970: i64 = 719_163;

#[cfg(feature = "jiff")]
instant!(
    jiff::Timestamp,
    "a jiff::Timestamp",
    |at| at.as_nanosecond(),
    |nanos| Self::from_nanosecond(nanos).ok()
);
#[cfg(feature = "jiff")]
day!(
    jiff::civil::Date,
    "a jiff::civil::Date",
    |day| day
        .since((jiff::Unit::Day, JIFF_1970))
        .ok()
        .map(|span| span.get_days().into()),
    |days| jiff::Span::new()
        .try_days(days)
        .ok()
        .and_then(|span| JIFF_1970.checked_add(span).ok())
);
#[cfg(feature = "jiff")]
const JIFF_1970: jiff::civil::Date = jiff::civil::date(1970, 1, 1);

fn stored(ticks: Option<i64>, shown: impl Display) -> Result<ValueRef<'static>, ValueError> {
    match ticks.map(Timestamp::from_unix_ticks) {
        Some(Ok(timestamp)) => Ok(ValueRef::DateTime(timestamp)),
        Some(Err(_)) | None => Err(ValueError::out_of_range(
            shown,
            "Edm.DateTime is from 1601 to 9999",
        )),
    }
}

fn beyond(timestamp: Timestamp, name: &str) -> ValueError {
    ValueError::unreadable(timestamp, format_args!("{name} does not reach so far"))
}

const NANOS_PER_TICK: i128 = 100;
#[cfg(feature = "chrono")]
const NANOS_PER_SECOND: i128 = 1_000_000_000;
const TICKS_PER_DAY: i64 = 24 * 60 * 60 * 10_000_000;

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn ticks(text: &str) -> Value {
        Value::DateTime(text.parse().unwrap())
    }

    #[track_caller]
    fn assert_same<T: PropertyValue + PartialEq + Debug>(value: &T, text: &str) {
        assert_eq!(value.to_value().unwrap().into_value(), ticks(text));
        assert_eq!(T::from_value(ticks(text)).as_ref(), Ok(value));
    }

    #[track_caller]
    fn assert_refused<T: PropertyValue + Debug>(value: &T, shown: &str) {
        let error = value.to_value().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("the value {shown}"))
                && error.ends_with("Edm.DateTime is from 1601 to 9999"),
            "{error}"
        );
    }

    #[track_caller]
    fn assert_no_day<T: PropertyValue + Debug>() {
        let error = T::from_value(ticks("2024-03-15T00:00:00.0000001Z")).unwrap_err();
        let words = "cannot be read: a date alone is stored as midnight in UTC";
        assert!(error.to_string().ends_with(words), "{error}");
    }

    const EARLIEST: &str = "1601-01-01T00:00:00Z";
    const EXACT: &str = "2024-03-15T10:20:30.1234567Z";

    #[cfg(feature = "time")]
    #[test]
    fn the_time_crate() {
        use time::macros::{date, datetime};
        assert_same(&datetime!(2024-03-15 10:20:30.1234567 UTC), EXACT);
        assert_same(&datetime!(1601-01-01 00:00 UTC), EARLIEST);
        assert_same(
            &datetime!(9999-12-31 23:59:59.9999999 UTC),
            "9999-12-31T23:59:59.9999999Z",
        );
        assert_refused(&datetime!(1600-12-31 23:59:59 UTC), "1600-12-31");
        assert_same(&date!(2024 - 02 - 29), "2024-02-29T00:00:00Z");
        assert_same(&date!(1601 - 01 - 01), EARLIEST);
        assert_refused(&date!(1600 - 12 - 31), "1600-12-31");
        assert_no_day::<time::Date>();
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn the_chrono_crate() {
        use chrono::{DateTime, NaiveDate, Utc};
        let instant = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        assert_same(&instant(EXACT), EXACT);
        assert_same(&instant(EARLIEST), EARLIEST);
        assert_refused(&DateTime::<Utc>::MAX_UTC, "+262142");
        assert_refused(&instant("1600-12-31T23:59:59Z"), "1600-12-31");
        let day = |y, m, d| NaiveDate::from_ymd_opt(y, m, d).unwrap();
        assert_same(&day(2024, 2, 29), "2024-02-29T00:00:00Z");
        assert_same(&day(9999, 12, 31), "9999-12-31T00:00:00Z");
        assert_refused(&day(10_000, 1, 1), "+10000-01-01");
        assert_no_day::<NaiveDate>();
    }

    #[cfg(feature = "jiff")]
    #[test]
    fn the_jiff_crate() {
        use jiff::Timestamp;
        use jiff::civil::{Date, date};
        let instant = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_same(&instant(EXACT), EXACT);
        assert_same(&instant(EARLIEST), EARLIEST);
        assert_refused(&instant("1600-12-31T23:59:59Z"), "1600-12-31");
        assert_same(&date(2024, 2, 29), "2024-02-29T00:00:00Z");
        assert_same(&date(9999, 12, 31), "9999-12-31T00:00:00Z");
        assert_refused(&date(1600, 12, 31), "1600-12-31");
        assert_no_day::<Date>();
        let error = Timestamp::from_value(ticks("9999-12-31T23:59:59Z")).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("a jiff::Timestamp does not reach so far")
        );
    }
}
