//! Which Rust types are which EDM types. Nothing is lost on the way, or it is an error.
//!
//! Here are the types that are an EDM type as they stand; those that need an encoding or a check of
//! their own are in the files beside this one.

use std::borrow::Cow;

use tablesdk_protocol::wire::json::RawProperty;
use tablesdk_protocol::{EdmType, Guid, Timestamp, Value, ValueRef};

use super::ValueError;
use crate::sealed::Derived;

macro_rules! ordered {
    ($($type:ty),+) => {
        $(impl $crate::entity::Ordered for $type {
            const ORDERED: $crate::sealed::Derived = $crate::sealed::Derived;
        })+
    };
}

#[macro_use]
mod with;

#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
mod calendar;
#[cfg(feature = "decimal")]
mod decimal;
mod duration;
#[cfg(feature = "json")]
mod json;
mod number;

#[cfg(feature = "decimal")]
pub use decimal::ordered_decimal;
#[cfg(feature = "json")]
pub use json::Json;
pub use number::u64_as_int64;

/// A type that can be stored as the value of a property.
///
/// | Rust | EDM | |
/// |---|---|---|
/// | `String` | `Edm.String` | |
/// | `bool` | `Edm.Boolean` | |
/// | `i32`, `i16`, `i8`, `u16`, `u8` | `Edm.Int32` | the narrow ones checked on reading |
/// | `i64`, `u32` | `Edm.Int64` | `u32` checked on reading |
/// | `u64` | `Edm.String` | 20 digits, which keeps the order |
/// | `u64`, with [`u64_as_int64`](crate::entity::u64_as_int64) | `Edm.Int64` | up to 2⁶³ − 1, as other programs store it |
/// | `f64`, `f32` | `Edm.Double` | an `f32` takes only what it can hold; NaN and the infinities included |
/// | `Vec<u8>`, `bytes::Bytes` | `Edm.Binary` | |
/// | [`Guid`] | `Edm.Guid` | |
/// | `uuid::Uuid` | `Edm.Guid` | feature `uuid` |
/// | [`Timestamp`] | `Edm.DateTime` | 100 ns, years 1601 to 9999 |
/// | `time::OffsetDateTime`, `time::Date` | `Edm.DateTime` | feature `time`, on by default |
/// | `chrono::DateTime<Utc>`, `chrono::NaiveDate` | `Edm.DateTime` | feature `chrono` |
/// | `jiff::Timestamp`, `jiff::civil::Date` | `Edm.DateTime` | feature `jiff` |
/// | `std::time::Duration` | `Edm.Int64` | nanoseconds, up to 292 years |
/// | `rust_decimal::Decimal` | `Edm.String` | as other programs write it: `1.50`; filters cannot compare it; feature `decimal` |
/// | `Decimal`, with `ordered_decimal` | `Edm.String` | 59 characters, which keep the order |
/// | [`Json`](crate::entity::Json) | `Edm.String` | any type of serde; feature `json`, on by default |
///
/// Reading is strict: a stored Int32 is read into an `i64` or `u32` if it fits; any other
/// difference in type is an error. A date alone is stored as its midnight in UTC, and only a
/// midnight is read back into it. An instant finer than 100 ns is cut to what the service stores.
///
/// Newtypes and enums derive it: `#[derive(PropertyValue)]`.
///
/// A type of your own maps itself onto one of the eight:
///
/// ```
/// use tablesdk::entity::{ValueError, ValueRef};
/// use tablesdk::{EdmType, PropertyValue, Value};
///
/// struct Celsius(f64);
///
/// impl PropertyValue for Celsius {
///     const EDM_TYPE: EdmType = EdmType::Double;
///
///     fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
///         self.0.to_value()
///     }
///
///     fn from_value(value: Value) -> Result<Self, ValueError> {
///         f64::from_value(value).map(Self)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not one of the types that map onto an EDM type",
    note = "a newtype or an enum can be: add `#[derive(tablesdk::PropertyValue)]` to it",
    note = "types of other crates need a feature of `tablesdk`: `uuid` for `uuid::Uuid`, `decimal` for `rust_decimal::Decimal`, and `chrono`, `jiff` or `time` for the instants and days of that crate"
)]
pub trait PropertyValue: Sized {
    /// The type it is stored as.
    const EDM_TYPE: EdmType;

    /// Why filters cannot compare the type, if equal values may be stored as different ones.
    #[doc(hidden)]
    const INCOMPARABLE: Option<&'static str> = None;

    /// The value to store.
    ///
    /// # Errors
    ///
    /// When the stored type cannot hold it.
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError>;

    /// Reads the stored value back.
    ///
    /// # Errors
    ///
    /// When it is of another type, or does not fit.
    fn from_value(value: Value) -> Result<Self, ValueError>;

    /// Reads a value in the form in which the service writes the type, as
    /// [`from_value`](Self::from_value) would. `None` leaves it to that function.
    #[doc(hidden)]
    fn from_json(property: &RawProperty<'_>) -> Option<Self> {
        let _ = property;
        None
    }
}

macro_rules! property_value {
    ($type:ty, $edm_type:ident, $self:ident => $to:expr, $value:ident => $from:expr, $json:ident => $from_json:expr) => {
        impl PropertyValue for $type {
            const EDM_TYPE: EdmType = EdmType::$edm_type;

            fn to_value(&$self) -> Result<ValueRef<'_>, ValueError> {
                Ok(ValueRef::$edm_type($to))
            }

            fn from_value(value: Value) -> Result<Self, ValueError> {
                match value {
                    Value::$edm_type($value) => Ok($from),
                    other => Err(wrong_type::<Self>(&other)),
                }
            }

            fn from_json($json: &RawProperty<'_>) -> Option<Self> {
                $from_json
            }
        }
    };
}

property_value!(String, String, self => Cow::Borrowed(self), text => text, json => json.string().map(str::to_owned));
property_value!(bool, Boolean, self => *self, value => value, json => json.boolean());
property_value!(f64, Double, self => *self, value => value, json => json.double());
property_value!(i32, Int32, self => *self, value => value, json => json.int32());
property_value!(Guid, Guid, self => *self, value => value, json => json.text_of(EdmType::Guid)?.parse().ok());
property_value!(Timestamp, DateTime, self => *self, value => value, json => json.text_of(EdmType::DateTime)?.parse().ok());
property_value!(Vec<u8>, Binary, self => Cow::Borrowed(self), bytes => bytes, _json => None);
property_value!(bytes::Bytes, Binary, self => Cow::Borrowed(self), bytes => bytes.into(), _json => None);

/// A value whose order is the order of what is stored for it, so that the service can compare with
/// it: `gt`, `ge`, `lt`, `le` and ranges.
///
/// A newtype of an ordered type is ordered: `#[derive(PropertyValue)]` implements this trait for
/// it, and no other code can. An enum is not ordered, because its strings do not order as its
/// variants do.
///
/// ```
/// use tablesdk::entity::Ordered;
/// use tablesdk::{PropertyValue, TableEntity};
///
/// # #[derive(TableEntity)]
/// # struct Reading { #[table(partition_key)] station: String, #[table(row_key)] at: String, body: Celsius }
/// // Stored as a Double: a newtype has the order of what is within.
/// #[derive(PropertyValue)]
/// struct Celsius(f64);
///
/// fn is_ordered<T: Ordered>() {}
/// is_ordered::<Celsius>();
/// assert_eq!(Reading::columns().body.ge(Celsius(38.0)).to_string(), "body ge 38.0");
/// ```
#[diagnostic::on_unimplemented(
    message = "the service cannot tell which of two values of type `{Self}` is greater",
    label = "can be compared for equality only",
    note = "use `eq`, `ne` or `is_in`; numbers, strings, times and newtypes of them are ordered",
    note = "filters compare a `rust_decimal::Decimal` only with `#[table(with = \"tablesdk::entity::ordered_decimal\")]`"
)]
pub trait Ordered: PropertyValue {
    #[doc(hidden)]
    const ORDERED: Derived;
}

/// A value that is stored as the text that it is, so that a prefix of it means something.
///
/// ```
/// use tablesdk::{PropertyValue, TableEntity};
///
/// // A newtype of a text is one, too.
/// #[derive(PropertyValue)]
/// struct Sku(String);
///
/// #[derive(TableEntity)]
/// struct Item {
///     #[table(partition_key)]
///     order: String,
///     #[table(row_key)]
///     line: String,
///     sku: Sku,
/// }
///
/// assert_eq!(Item::columns().sku.starts_with("AB").to_string(), "sku ge 'AB' and sku lt 'AC'");
/// ```
#[diagnostic::on_unimplemented(
    message = "a value of type `{Self}` does not start with a string",
    label = "not a string",
    note = "`starts_with` is for columns of `String` and of newtypes of it"
)]
pub trait Text: Ordered {
    #[doc(hidden)]
    const TEXT: Derived;
}

impl Text for String {
    const TEXT: Derived = Derived;
}

ordered!(
    String,
    f64,
    i32,
    i64,
    Guid,
    Timestamp,
    Vec<u8>,
    bytes::Bytes
);

#[cfg(feature = "uuid")]
property_value!(uuid::Uuid, Guid, self => Guid::from_bytes(self.into_bytes()), value => Self::from_bytes(value.to_bytes()), json => Guid::from_json(json).map(|value| Self::from_bytes(value.to_bytes())));
#[cfg(feature = "uuid")]
ordered!(uuid::Uuid);

/// Int32 widens, since other clients store small numbers so.
impl PropertyValue for i64 {
    const EDM_TYPE: EdmType = EdmType::Int64;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Int64(*self))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        match value {
            Value::Int64(value) => Ok(value),
            Value::Int32(value) => Ok(value.into()),
            other => Err(wrong_type::<Self>(&other)),
        }
    }

    fn from_json(property: &RawProperty<'_>) -> Option<Self> {
        property.int64()
    }
}

fn wrong_type<T: PropertyValue>(found: &Value) -> ValueError {
    ValueError::WrongType {
        expected: T::EDM_TYPE,
        found: found.edm_type(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int32_widens_and_nothing_else_converts() {
        assert_eq!(i64::from_value(Value::Int32(5)), Ok(5));
        let expected = ValueError::WrongType {
            expected: EdmType::Int32,
            found: EdmType::Int64,
        };
        assert_eq!(i32::from_value(Value::Int64(5)), Err(expected));
        assert_eq!(
            f64::from_value(Value::Int32(5)).unwrap_err().to_string(),
            "expected Edm.Double, found Edm.Int32"
        );
        assert!(String::from_value(Value::Int32(5)).is_err());
    }
}
