//! The types of a part of a key, and their texts: the types of Rust and of the calendar libraries.
//!
//! Other programs read the same keys, so that every text is one that a person can read, too. What
//! stands around a part in a key is the template's business.

use tablesdk_protocol::{Guid, Timestamp, Value, ValueRef};

use crate::entity::{PropertyValue, ValueError};

/// The type of a key field, or of a part of a key that is made by a template.
///
/// | type | text | width |
/// |---|---|---|
/// | `String` | as it is | |
/// | `u8`, `u16`, `u32`, `u64` | decimal, with zeros in front | 3, 5, 10, 20 |
/// | `i8`, `i16`, `i32`, `i64` | the same with one digit more; of a negative number `-`, then its distance from the least | 4, 6, 11, 20 |
/// | `bool` | `0` or `1` | 1 |
/// | [`Guid`], `uuid::Uuid` | lower case, with hyphens | 36 |
/// | [`Timestamp`], and the instants of `time`, `chrono`, `jiff` | `2024-03-15T10:20:30.1234567Z` | 28 |
/// | the days of `time`, `chrono`, `jiff` | `2024-03-15` | 10 |
/// | [`Desc<T>`](crate::key::Desc) | so that the greatest comes first | that of its numbers |
/// | [`Shard<N>`](crate::key::Shard) | decimal, with zeros in front | that of `N - 1` |
/// | [`Escaped<T>`](crate::key::Escaped) | with `=2F` for what a key cannot hold | |
///
/// Texts of a fixed width sort as their values do. A `String` sorts by its UTF-16 code units, as
/// everything in a table. An instant finer than 100 ns is cut to what the service stores. Where a
/// template pads a number, as in `{id:06}`, it has so many digits instead: a number that is
/// negative or has more is an error.
///
/// A newtype, or an enum that keeps every text, gets it by `#[derive(PropertyValue)]`. A type of
/// your own:
///
/// ```
/// use tablesdk::entity::ValueError;
/// use tablesdk::key::KeyPart;
///
/// struct Country([u8; 2]);
///
/// impl KeyPart for Country {
///     const WIDTH: Option<usize> = Some(2);
///
///     fn to_key(&self) -> Result<String, ValueError> {
///         Ok(self.0.iter().copied().map(char::from).collect())
///     }
///
///     fn from_key(text: &str) -> Result<Self, ValueError> {
///         match text.as_bytes() {
///             &[a, b] => Ok(Self([a, b])),
///             _ => Err(ValueError::unreadable(text, "a country has two letters")),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "not a type of key",
    note = "a key is a string, an integer, a date, a Guid or a bool; a newtype of one, or an enum that keeps every string, derives `tablesdk::PropertyValue`",
    note = "types of other crates need a feature of `tablesdk`: `uuid` for `uuid::Uuid`, and `chrono`, `jiff` or `time` for the instants and days of that crate",
    note = "every entity has its key: no part of it is an `Option`"
)]
pub trait KeyPart: Sized {
    /// How many UTF-16 units the text has, where it always has as many; `None` where that depends
    /// on the value. In a template, a part of variable width that is not the last needs a separator
    /// behind it.
    const WIDTH: Option<usize> = None;

    /// True if the texts order the other way round: the greatest value has the least text.
    const DESCENDING: bool = false;

    /// The text of the key.
    ///
    /// # Errors
    ///
    /// When the value has no text that can be a key.
    fn to_key(&self) -> Result<String, ValueError>;

    /// Reads the text of a key back.
    ///
    /// # Errors
    ///
    /// Why the text is no key of this type.
    fn from_key(text: &str) -> Result<Self, ValueError>;

    /// The text where a separator follows. One that contains the separator is refused, unless this
    /// finds another.
    ///
    /// # Errors
    ///
    /// As [`to_key`](Self::to_key).
    fn to_key_before(&self, separator: &str) -> Result<String, ValueError> {
        let _ = separator;
        self.to_key()
    }
}

/// A value with a number, counted from 0 for the least value of its type.
/// [`Desc`](crate::key::Desc) counts the same values from the other end, and a template can pad an
/// integer with zeros, as in `{id:06}`.
///
/// ```
/// use tablesdk::entity::ValueError;
/// use tablesdk::key::{KeyNumber, KeyPart};
///
/// /// Months since January 1970, as `1970-01`.
/// struct Month(u32);
///
/// impl KeyPart for Month {
///     const WIDTH: Option<usize> = Some(7);
///
///     fn to_key(&self) -> Result<String, ValueError> {
///         Ok(format!("{:04}-{:02}", 1970 + self.0 / 12, 1 + self.0 % 12))
///     }
///
///     fn from_key(text: &str) -> Result<Self, ValueError> {
///         let unreadable = || ValueError::unreadable(text, "a month is YYYY-MM");
///         let (year, month) = text.split_once('-').ok_or_else(unreadable)?;
///         let year: u32 = year.parse().map_err(|_| unreadable())?;
///         let month: u32 = month.parse().map_err(|_| unreadable())?;
///         match (year, month) {
///             (1970..=9999, 1..=12) => Ok(Self((year - 1970) * 12 + month - 1)),
///             _ => Err(unreadable()),
///         }
///     }
/// }
///
/// /// So `Desc<Month>` is a part of a key, and puts the last month first.
/// impl KeyNumber for Month {
///     const LAST: u64 = 8030 * 12 - 1;
///
///     fn to_number(&self) -> Result<u64, ValueError> {
///         Ok(self.0.into())
///     }
///
///     fn from_number(number: u64) -> Result<Self, ValueError> {
///         let month = u32::try_from(number).ok().filter(|_| number <= Self::LAST);
///         month.map(Self).ok_or_else(|| ValueError::unreadable(number, "there is no such month"))
///     }
/// }
///
/// use tablesdk::key::Desc;
/// assert!(Desc(Month(651)).to_key()? < Desc(Month(650)).to_key()?);
/// # Ok::<(), ValueError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number, so a key can neither count it backwards nor pad it with zeros",
    label = "neither an integer nor a date",
    note = "`{{field:desc}}` and `Desc` are for integers, instants and days, and newtypes of them",
    note = "`{{field:06}}` is for integers and newtypes of them; for other types write `{{field}}`"
)]
pub trait KeyNumber: KeyPart {
    /// The number of the last value.
    const LAST: u64;

    /// The number of the value 0 of an integer. Types without it cannot be padded with zeros.
    const ZERO: Option<u64> = None;

    /// The number of this value.
    ///
    /// # Errors
    ///
    /// When the value has no text that can be a key.
    fn to_number(&self) -> Result<u64, ValueError>;

    /// The value with that number.
    ///
    /// # Errors
    ///
    /// When there is none.
    fn from_number(number: u64) -> Result<Self, ValueError>;
}

impl KeyPart for String {
    fn to_key(&self) -> Result<String, ValueError> {
        Ok(self.clone())
    }

    fn from_key(text: &str) -> Result<Self, ValueError> {
        Ok(text.to_owned())
    }
}

macro_rules! unsigned {
    ($($type:ty, $width:literal, $form:literal;)+) => {
        $(impl KeyPart for $type {
            const WIDTH: Option<usize> = Some($width);

            fn to_key(&self) -> Result<String, ValueError> {
                Ok(format!("{self:0width$}", width = $width))
            }

            fn from_key(text: &str) -> Result<Self, ValueError> {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                match text.parse() {
                    Ok(value) if digits && text.len() == $width => Ok(value),
                    _ => Err(ValueError::unreadable(text, $form)),
                }
            }
        }

        impl KeyNumber for $type {
            // Not `From`, which is no function of a constant.
            const LAST: u64 = <$type>::MAX as u64;
            const ZERO: Option<u64> = Some(0);

            fn to_number(&self) -> Result<u64, ValueError> {
                Ok((*self).into())
            }

            fn from_number(number: u64) -> Result<Self, ValueError> {
                Self::try_from(number).map_err(|_| ValueError::unreadable(number, $form))
            }
        })+
    };
}

unsigned! {
    u8, 3, "a u8 in a key has 3 digits, at most 255";
    u16, 5, "a u16 in a key has 5 digits, at most 65535";
    u32, 10, "a u32 in a key has 10 digits, at most 4294967295";
    u64, 20, "a u64 in a key has 20 digits, at most 18446744073709551615";
}

macro_rules! signed {
    ($($type:ty, $unsigned:ty, $width:literal, $form:literal;)+) => {
        $(impl KeyPart for $type {
            const WIDTH: Option<usize> = Some($width);

            fn to_key(&self) -> Result<String, ValueError> {
                Ok(if *self < 0 {
                    format!("-{:0width$}", self.abs_diff(Self::MIN), width = $width - 1)
                } else {
                    format!("{self:0width$}", width = $width)
                })
            }

            fn from_key(text: &str) -> Result<Self, ValueError> {
                let value = match text.strip_prefix('-') {
                    Some(rest) => {
                        let distance = rest.parse::<$unsigned>().ok();
                        distance.and_then(|distance| Self::MIN.checked_add_unsigned(distance))
                    }
                    None => text.parse().ok(),
                };
                // One text for each value: no other number of zeros, no sign that is not ours.
                match value.map(|value| (value, value.to_key())) {
                    Some((value, Ok(own))) if own == text => Ok(value),
                    _ => Err(ValueError::unreadable(text, $form)),
                }
            }
        }

        impl KeyNumber for $type {
            const LAST: u64 = <$unsigned>::MAX as u64;
            const ZERO: Option<u64> = Some(<$type>::MIN.unsigned_abs() as u64);

            fn to_number(&self) -> Result<u64, ValueError> {
                Ok(self.abs_diff(Self::MIN).into())
            }

            fn from_number(number: u64) -> Result<Self, ValueError> {
                let distance = <$unsigned>::try_from(number).ok();
                distance
                    .and_then(|distance| Self::MIN.checked_add_unsigned(distance))
                    .ok_or_else(|| ValueError::unreadable(number, $form))
            }
        })+
    };
}

signed! {
    i8, u8, 4, "an i8 in a key has 4 digits, or - and 3";
    i16, u16, 6, "an i16 in a key has 6 digits, or - and 5";
    i32, u32, 11, "an i32 in a key has 11 digits, or - and 10";
    i64, u64, 20, "an i64 in a key has 20 digits, or - and 19";
}

impl KeyPart for bool {
    const WIDTH: Option<usize> = Some(1);

    fn to_key(&self) -> Result<String, ValueError> {
        Ok(u8::from(*self).to_string())
    }

    fn from_key(text: &str) -> Result<Self, ValueError> {
        match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(ValueError::unreadable(text, "a bool in a key is 0 or 1")),
        }
    }
}

macro_rules! guid {
    ($type:ty) => {
        impl KeyPart for $type {
            const WIDTH: Option<usize> = Some(36);

            fn to_key(&self) -> Result<String, ValueError> {
                Ok(match self.to_value()? {
                    ValueRef::Guid(guid) => guid.to_string(),
                    other => return Err(not_own(&other)),
                })
            }

            fn from_key(text: &str) -> Result<Self, ValueError> {
                match text.parse::<Guid>() {
                    // One text for each value: no upper case.
                    Ok(guid) if guid.to_string() == text => Self::from_value(Value::Guid(guid)),
                    _ => Err(ValueError::unreadable(
                        text,
                        "a Guid in a key has 32 hexadecimal digits in lower case, and four hyphens",
                    )),
                }
            }
        }
    };
}

guid!(Guid);
#[cfg(feature = "uuid")]
guid!(uuid::Uuid);

macro_rules! instant {
    ($type:ty) => {
        impl KeyPart for $type {
            const WIDTH: Option<usize> = Some(28);

            fn to_key(&self) -> Result<String, ValueError> {
                Ok(fixed(timestamp(self)?))
            }

            fn from_key(text: &str) -> Result<Self, ValueError> {
                match text.parse::<Timestamp>() {
                    Ok(timestamp) if fixed(timestamp) == text => {
                        Self::from_value(Value::DateTime(timestamp))
                    }
                    _ => Err(ValueError::unreadable(
                        text,
                        "an instant in a key has the form 2024-03-15T10:20:30.1234567Z",
                    )),
                }
            }
        }

        number_by_ticks!($type);
    };
}

#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
macro_rules! day {
    ($type:ty) => {
        impl KeyPart for $type {
            const WIDTH: Option<usize> = Some(10);

            fn to_key(&self) -> Result<String, ValueError> {
                let text = fixed(timestamp(self)?);
                Ok(text.chars().take(10).collect())
            }

            fn from_key(text: &str) -> Result<Self, ValueError> {
                match format!("{text}T00:00:00Z").parse::<Timestamp>() {
                    Ok(timestamp) if fixed(timestamp).starts_with(text) && text.len() == 10 => {
                        Self::from_value(Value::DateTime(timestamp))
                    }
                    _ => Err(ValueError::unreadable(
                        text,
                        "a day in a key has the form 2024-03-15",
                    )),
                }
            }
        }

        number_by_ticks!($type);
    };
}

/// Counted as .NET counts, in 100 ns steps from the year 1, so that a `Desc` is the *inverted
/// ticks* that other programs write.
macro_rules! number_by_ticks {
    ($type:ty) => {
        impl KeyNumber for $type {
            const LAST: u64 = LAST_TICK;

            fn to_number(&self) -> Result<u64, ValueError> {
                let ticks = timestamp(self)?.unix_ticks();
                TICKS_OF_1970
                    .checked_add_signed(ticks)
                    .ok_or_else(|| ValueError::unwritable("it lies before the year 1"))
            }

            fn from_number(number: u64) -> Result<Self, ValueError> {
                let ticks = i64::try_from(number).ok();
                let ticks = ticks.and_then(|ticks| ticks.checked_sub_unsigned(TICKS_OF_1970));
                match ticks.map(Timestamp::from_unix_ticks) {
                    Some(Ok(timestamp)) => Self::from_value(Value::DateTime(timestamp)),
                    _ => Err(ValueError::unreadable(
                        number,
                        "these ticks lie outside the years 1601 to 9999",
                    )),
                }
            }
        }
    };
}

instant!(Timestamp);
#[cfg(feature = "time")]
instant!(time::OffsetDateTime);
#[cfg(feature = "time")]
day!(time::Date);
#[cfg(feature = "chrono")]
instant!(chrono::DateTime<chrono::Utc>);
#[cfg(feature = "chrono")]
day!(chrono::NaiveDate);
#[cfg(feature = "jiff")]
instant!(jiff::Timestamp);
#[cfg(feature = "jiff")]
day!(jiff::civil::Date);

fn timestamp(value: &impl PropertyValue) -> Result<Timestamp, ValueError> {
    match value.to_value()? {
        ValueRef::DateTime(timestamp) => Ok(timestamp),
        other => Err(not_own(&other)),
    }
}

/// All seven digits of the fraction, zeros included.
fn fixed(timestamp: Timestamp) -> String {
    let text = timestamp.to_string();
    let text = text.trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{seconds}.{fraction:0<7}Z")
}

/// The error of storing a key part of this file as a property: such a part is stored as the value
/// from which its text is made.
fn not_own(value: &ValueRef<'_>) -> ValueError {
    ValueError::unwritable(format_args!("{} is no key", value.edm_type()))
}

/// 1970-01-01 in 100 ns steps from the year 1.
const TICKS_OF_1970: u64 = 621_355_968_000_000_000;
/// The last 100 ns of the year 9999.
const LAST_TICK: u64 = 3_155_378_975_999_999_999;
