//! Which Rust types are which EDM types. Nothing is lost on the way, or it is an error.

use std::borrow::Cow;

use tablesdk_protocol::{EdmType, Guid, Timestamp, Value, ValueRef};

use super::ValueError;

/// A type that can be stored as the value of a property.
///
/// | Rust | EDM |
/// |---|---|
/// | `String` | `Edm.String` |
/// | `bool` | `Edm.Boolean` |
/// | `i32`, `i16`, `i8`, `u16`, `u8` | `Edm.Int32` |
/// | `i64`, `u32` | `Edm.Int64` |
/// | `f64` | `Edm.Double` |
/// | `Vec<u8>`, `bytes::Bytes` | `Edm.Binary` |
/// | [`Guid`] | `Edm.Guid` |
/// | [`Timestamp`], `time::OffsetDateTime` | `Edm.DateTime` |
///
/// Reading is strict: a stored Int32 is read into an `i64` or `u32` if it fits; any other difference in type is an error.
///
/// A type of your own maps itself onto one of the eight:
///
/// ```
/// use tablesdk::{EdmType, PropertyValue, Value, ValueError, ValueRef};
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
    note = "the types are String, bool, i8 to i64, u8 to u32, f64, Vec<u8>, Guid, Timestamp, OffsetDateTime and Option of these",
    note = "implement `tablesdk::PropertyValue` for a type of your own"
)]
pub trait PropertyValue: Sized {
    /// The type it is stored as.
    const EDM_TYPE: EdmType;

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
}

macro_rules! property_value {
    ($type:ty, $edm_type:ident, $self:ident => $to:expr, $value:ident => $from:expr) => {
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
        }
    };
}

property_value!(String, String, self => Cow::Borrowed(self), text => text);
property_value!(bool, Boolean, self => *self, value => value);
property_value!(f64, Double, self => *self, value => value);
property_value!(i32, Int32, self => *self, value => value);
property_value!(Guid, Guid, self => *self, value => value);
property_value!(Timestamp, DateTime, self => *self, value => value);
property_value!(Vec<u8>, Binary, self => Cow::Borrowed(self), bytes => bytes);
property_value!(bytes::Bytes, Binary, self => Cow::Borrowed(self), bytes => bytes.into());

macro_rules! narrow_integer {
    ($type:ty, $range:literal) => {
        property_value!($type, Int32, self => (*self).into(), value => {
            <$type>::try_from(value).map_err(|_| ValueError::OutOfRange { rule: $range })?
        });
    };
}

narrow_integer!(i8, "an i8 is from -128 to 127");
narrow_integer!(i16, "an i16 is from -32768 to 32767");
narrow_integer!(u8, "a u8 is from 0 to 255");
narrow_integer!(u16, "a u16 is from 0 to 65535");

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
}

impl PropertyValue for u32 {
    const EDM_TYPE: EdmType = EdmType::Int64;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Int64((*self).into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let rule = "a u32 is from 0 to 4294967295";
        Self::try_from(i64::from_value(value)?).map_err(|_| ValueError::OutOfRange { rule })
    }
}

/// Finer than 100 ns is cut off; the service stores 100 ns.
#[cfg(feature = "time")]
impl PropertyValue for time::OffsetDateTime {
    const EDM_TYPE: EdmType = EdmType::DateTime;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        match Timestamp::try_from(*self) {
            Ok(timestamp) => Ok(ValueRef::DateTime(timestamp)),
            Err(_) => Err(ValueError::OutOfRange {
                rule: "Edm.DateTime is from 1601 to 9999",
            }),
        }
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        Timestamp::from_value(value).map(Self::from)
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

    fn read<T: PropertyValue>(value: impl Into<Value>) -> Result<T, ValueError> {
        T::from_value(value.into())
    }

    #[test]
    fn small_integers_are_checked_and_never_cut() {
        assert_eq!(read::<u8>(255), Ok(255));
        assert!(matches!(
            read::<u8>(256),
            Err(ValueError::OutOfRange { .. })
        ));
        assert!(matches!(read::<u8>(-1), Err(ValueError::OutOfRange { .. })));
        assert_eq!(read::<i16>(-32_768), Ok(i16::MIN));
        assert!(matches!(
            read::<u32>(-1),
            Err(ValueError::OutOfRange { .. })
        ));
        assert_eq!(read::<u32>(4_294_967_295_i64), Ok(u32::MAX));
    }

    #[test]
    fn int32_widens_and_nothing_else_converts() {
        assert_eq!(read::<i64>(5), Ok(5));
        let expected = ValueError::WrongType {
            expected: EdmType::Int32,
            found: EdmType::Int64,
        };
        assert_eq!(read::<i32>(5_i64), Err(expected));
        assert_eq!(
            read::<f64>(5).unwrap_err().to_string(),
            "expected Edm.Double, found Edm.Int32"
        );
        assert!(read::<String>(5).is_err());
    }

    #[cfg(feature = "time")]
    #[test]
    fn a_date_keeps_its_100_ns_and_its_range() {
        use time::macros::datetime;
        let at = datetime!(2024-03-15 10:20:30.1234567 UTC);
        let value = at.to_value().unwrap().into_value();
        assert_eq!(read::<time::OffsetDateTime>(value), Ok(at));
        let too_early = datetime!(1600-12-31 23:59:59 UTC);
        assert!(matches!(
            too_early.to_value(),
            Err(ValueError::OutOfRange { .. })
        ));
    }
}
