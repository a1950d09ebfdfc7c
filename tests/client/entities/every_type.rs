//! A struct with a field of every Rust type that maps to a property, and random values of that
//! struct.

use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use rust_decimal::Decimal;
use tablesdk::{Guid, PropertyValue, TableEntity, Timestamp};
use time::OffsetDateTime;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, PropertyValue)]
pub(crate) enum Colour {
    Red,
    Green,
    Blue,
}

#[derive(Debug, Clone, PartialEq, PropertyValue)]
pub(crate) struct Name(pub(crate) String);

#[derive(Debug, Clone, PartialEq, TableEntity)]
pub(crate) struct Every {
    #[table(partition_key)]
    pub(crate) partition: String,
    #[table(row_key)]
    pub(crate) row: String,
    pub(crate) string: String,
    pub(crate) boolean: bool,
    pub(crate) i8: i8,
    pub(crate) i16: i16,
    pub(crate) i32: i32,
    pub(crate) i64: i64,
    pub(crate) u8: u8,
    pub(crate) u16: u16,
    pub(crate) u32: u32,
    pub(crate) u64: u64,
    pub(crate) f32: f32,
    pub(crate) f64: f64,
    pub(crate) vec: Vec<u8>,
    pub(crate) bytes: Bytes,
    pub(crate) guid: Guid,
    pub(crate) uuid: Uuid,
    /// Not `timestamp`, which the JavaScript client takes for the system's.
    pub(crate) ticks: Timestamp,
    pub(crate) time: OffsetDateTime,
    pub(crate) time_date: time::Date,
    pub(crate) chrono: chrono::DateTime<chrono::Utc>,
    pub(crate) chrono_date: chrono::NaiveDate,
    pub(crate) jiff: jiff::Timestamp,
    pub(crate) jiff_date: jiff::civil::Date,
    pub(crate) duration: Duration,
    pub(crate) decimal: Decimal,
    #[table(with = "tablesdk::entity::ordered_decimal")]
    pub(crate) ordered_decimal: Decimal,
    #[table(with = "tablesdk::entity::u64_as_int64")]
    pub(crate) u64_as_int64: u64,
    #[table(with = "tablesdk::entity::u64_as_int64::option")]
    pub(crate) perhaps_int64: Option<u64>,
    pub(crate) name: Name,
    pub(crate) colour: Colour,
    pub(crate) perhaps: Option<u64>,
    #[table(json)]
    pub(crate) json: Vec<Option<f64>>,
}

/// A number of any magnitude, the ends and zero often.
pub(crate) fn bits(rng: &mut Rng) -> u64 {
    match rng.u8(..8) {
        0 => 0,
        1 => u64::MAX,
        2 => i64::MAX.unsigned_abs(),
        3 => i64::MIN.unsigned_abs(),
        _ => rng.u64(..) >> rng.u32(..64),
    }
}

pub(crate) fn text(rng: &mut Rng) -> String {
    let letters = [
        'a', 'b', '\'', '"', '\\', '\n', 'é', '\u{D7FF}', '\u{E000}', '😀', '\u{0}', ' ',
    ];
    (0..rng.usize(..6))
        .map(|_| letters[rng.usize(..letters.len())])
        .collect()
}

/// An instant of the service, those at the ends often; not beyond the last day that every library
/// reaches.
fn instant(rng: &mut Rng) -> Timestamp {
    let last: Timestamp = "9999-12-30T00:00:00Z".parse().unwrap();
    let ticks = match rng.u8(..5) {
        0 => Timestamp::MIN.unix_ticks(),
        1 => last.unix_ticks(),
        _ => rng.i64(Timestamp::MIN.unix_ticks()..last.unix_ticks()),
    };
    Timestamp::from_unix_ticks(ticks).unwrap()
}

/// By the standard format, which none of the tested conversions uses.
fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "any bits will do"
)]
pub(crate) fn random(rng: &mut Rng, row: usize) -> Every {
    let at = instant(rng);
    let at_text = at.to_string();
    let day_text = at_text.get(..10).unwrap().to_owned();
    let (year, rest) = day_text.split_once('-').unwrap();
    let (month, day) = rest.split_once('-').unwrap();
    let month = time::Month::try_from(parsed::<u8>(month)).unwrap();
    let doubles = [
        0.0,
        1.5,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5.0,
        1e21,
    ];
    let double = |rng: &mut Rng| match rng.u8(..3) {
        0 => f64::from_bits(rng.u64(..)),
        _ => doubles[rng.usize(..doubles.len())],
    };
    // A NaN is equal to nothing, and has a test of its own; as have zeros with a sign.
    let number = |value: f64| if value.is_nan() { 0.5 } else { value };
    let decimal = |rng: &mut Rng| {
        let [low, mid, high] = [bits(rng), bits(rng), bits(rng)].map(|bits| bits as u32);
        Decimal::from_parts(low, mid, high, rng.bool(), rng.u32(..29))
    };
    Every {
        partition: "p".into(),
        row: format!("{row:04}"),
        string: text(rng),
        boolean: rng.bool(),
        i8: bits(rng) as i8,
        i16: bits(rng) as i16,
        i32: bits(rng) as i32,
        i64: bits(rng) as i64,
        u8: bits(rng) as u8,
        u16: bits(rng) as u16,
        u32: bits(rng) as u32,
        u64: bits(rng),
        f32: number(f64::from(double(rng) as f32)) as f32 + 0.0,
        f64: number(double(rng)),
        vec: (0..rng.usize(..5)).map(|_| rng.u8(..)).collect(),
        bytes: (0..rng.usize(..5)).map(|_| rng.u8(..)).collect(),
        guid: Guid::from_bytes(rng.u128(..).to_be_bytes()),
        uuid: Uuid::from_u128(rng.u128(..)),
        ticks: at,
        time: OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.unix_ticks()) * 100).unwrap(),
        time_date: time::Date::from_calendar_date(parsed(year), month, parsed(day)).unwrap(),
        chrono: parsed(&at_text),
        chrono_date: parsed(&day_text),
        jiff: parsed(&at_text),
        jiff_date: parsed(&day_text),
        duration: Duration::from_nanos(bits(rng) >> 1),
        decimal: decimal(rng),
        ordered_decimal: decimal(rng),
        u64_as_int64: bits(rng) >> 1,
        perhaps_int64: rng.bool().then(|| bits(rng) >> 1),
        name: Name(text(rng)),
        colour: [Colour::Red, Colour::Green, Colour::Blue][rng.usize(..3)],
        perhaps: rng.bool().then(|| bits(rng)),
        json: (0..rng.usize(..3))
            .map(|_| rng.bool().then(|| rng.f64()))
            .collect(),
    }
}
