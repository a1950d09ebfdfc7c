//! The numbers that Rust has and the service has not: each in the nearest EDM type that holds it
//! and keeps its order.

use tablesdk_protocol::{EdmType, Value, ValueRef};

use super::{PropertyValue, ValueError, wrong_type};

macro_rules! narrow_integer {
    ($($type:ty, $range:literal;)+) => {
        $(impl PropertyValue for $type {
            const EDM_TYPE: EdmType = EdmType::Int32;

            fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
                Ok(ValueRef::Int32((*self).into()))
            }

            fn from_value(value: Value) -> Result<Self, ValueError> {
                let value = i32::from_value(value)?;
                Self::try_from(value).map_err(|_| ValueError::out_of_range(value, $range))
            }
        }

        ordered!($type);)+
    };
}

narrow_integer! {
    i8, "an i8 is from -128 to 127";
    i16, "an i16 is from -32768 to 32767";
    u8, "a u8 is from 0 to 255";
    u16, "a u16 is from 0 to 65535";
}

impl PropertyValue for u32 {
    const EDM_TYPE: EdmType = EdmType::Int64;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Int64((*self).into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let value = i64::from_value(value)?;
        Self::try_from(value)
            .map_err(|_| ValueError::out_of_range(value, "a u32 is from 0 to 4294967295"))
    }
}

ordered!(u32);

/// Twenty digits, zeros in front: no integer of the service holds a `u64`, and texts of one length
/// order as their numbers.
impl PropertyValue for u64 {
    const EDM_TYPE: EdmType = EdmType::String;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::String(format!("{self:020}").into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let text = match value {
            Value::String(text) => text,
            other => return Err(wrong_type::<Self>(&other)),
        };
        let is_ours = text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(value) if is_ours => Ok(value),
            _ => Err(ValueError::unreadable(
                text,
                "a u64 is stored as 20 digits, at most 18446744073709551615",
            )),
        }
    }
}

// No EDM type holds a `u64`, and filters compare strings unit by unit: at a fixed width that is the
// order of the numbers.
ordered!(u64);

with_module!(
    /// A `u64` as an Int64, which other programs store for it:
    /// `#[table(with = "tablesdk::entity::u64_as_int64")]`.
    ///
    /// A number above 2⁶³ − 1 is not stored, and a negative number is not read: both are errors.
    /// Filters compare with a `u64`, and `select` yields a
    /// [`Property`](crate::entity::u64_as_int64::Property). For an `Option<u64>` write
    /// `#[table(with = "tablesdk::entity::u64_as_int64::option")]`.
    ///
    /// ```
    /// use tablesdk::{DynamicEntity, TableEntity, Value};
    ///
    /// #[derive(TableEntity)]
    /// struct File {
    ///     #[table(partition_key)]
    ///     directory: String,
    ///     #[table(row_key)]
    ///     name: String,
    ///     #[table(with = "tablesdk::entity::u64_as_int64")]
    ///     size: u64,
    ///     #[table(with = "tablesdk::entity::u64_as_int64::option")]
    ///     owner: Option<u64>,
    /// }
    ///
    /// let file = File { directory: "etc".into(), name: "hosts".into(), size: 4096, owner: None };
    /// let entity = DynamicEntity::from_entity(&file)?;
    /// assert_eq!(entity.properties().get("size"), Some(&Value::Int64(4096)));
    /// assert_eq!(entity.to_entity::<File>()?.size, 4096);
    /// assert_eq!(File::columns().size.ge(1024_u64).to_string(), "size ge 1024L");
    ///
    /// let error = DynamicEntity::from_entity(&File { size: u64::MAX, ..file }).unwrap_err();
    /// assert!(error.to_string().contains("the value 18446744073709551615 is out of range"));
    /// # Ok::<(), tablesdk::entity::EntityError>(())
    /// ```
    u64_as_int64, u64, Int64, use[],
    /// A `u64` that is stored as an Int64.
    |value| i64::try_from(value)
        .map(ValueRef::Int64)
        .map_err(|_| ValueError::out_of_range(value, "an Int64 is at most 9223372036854775807")),
    |value| {
        let value = i64::from_value(value)?;
        u64::try_from(value).map_err(|_| ValueError::out_of_range(value, "a u64 is not negative"))
    }
);

/// Every `f32` is a Double; a Double that is not an `f32` to the bit is refused, since it would be
/// rounded.
impl PropertyValue for f32 {
    const EDM_TYPE: EdmType = EdmType::Double;

    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Double((*self).into()))
    }

    fn from_value(value: Value) -> Result<Self, ValueError> {
        let double = f64::from_value(value)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what was cut is found by the way back"
        )]
        let single = double as Self;
        if double.is_nan() || f64::from(single).to_bits() == double.to_bits() {
            Ok(single)
        } else {
            Err(ValueError::out_of_range(
                double,
                "an f32 cannot hold it without rounding",
            ))
        }
    }
}

ordered!(f32);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tablesdk_protocol::compare_utf16;

    use super::*;

    fn read<T: PropertyValue>(value: impl Into<Value>) -> Result<T, ValueError> {
        T::from_value(value.into())
    }

    #[track_caller]
    fn assert_refused<T: PropertyValue + std::fmt::Debug>(value: impl Into<Value>, words: &str) {
        let error = read::<T>(value).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn small_integers_are_checked_and_never_cut() {
        assert_eq!(read::<u8>(255), Ok(255));
        assert_refused::<u8>(256, "the value 256 is out of range: a u8 is from 0 to 255");
        assert_refused::<u8>(-1, "the value -1 is out of range");
        assert_refused::<i8>(128, "an i8 is from -128 to 127");
        assert_refused::<u16>(65_536, "a u16 is from 0 to 65535");
        assert_eq!(read::<i16>(-32_768), Ok(i16::MIN));
        assert_refused::<u32>(-1, "the value -1 is out of range");
        assert_refused::<u32>(4_294_967_296_i64, "the value 4294967296 is out of range");
        assert_eq!(read::<u32>(4_294_967_295_i64), Ok(u32::MAX));
        assert_eq!(read::<u32>(7), Ok(7));
    }

    #[test]
    fn only_twenty_digits_are_a_u64() {
        assert_eq!(read::<u64>("00000000000000000005"), Ok(5));
        assert_eq!(read::<u64>("18446744073709551615"), Ok(u64::MAX));
        for text in [
            "",
            "5",
            "+0000000000000000005",
            "18446744073709551616",
            "0000000000000000000５",
        ] {
            assert_refused::<u64>(text, "a u64 is stored as 20 digits");
        }
        assert_refused::<u64>(5_i64, "expected Edm.String, found Edm.Int64");
    }

    #[test]
    fn a_double_is_never_rounded_to_an_f32() {
        assert_eq!(read::<f32>(0.5), Ok(0.5));
        assert_eq!(read::<f32>(f64::INFINITY), Ok(f32::INFINITY));
        assert!(read::<f32>(f64::NAN).unwrap().is_nan());
        assert_eq!(
            read::<f32>(-0.0).map(f32::to_bits),
            Ok((-0.0_f32).to_bits())
        );
        assert_refused::<f32>(0.1, "the value 0.1 is out of range: an f32 cannot hold it");
        assert_refused::<f32>(1e300, "an f32 cannot hold it");
    }

    proptest! {
        #[test]
        fn texts_of_u64_order_as_their_numbers(a: u64, b: u64) {
            let text = |number: u64| match number.to_value() {
                Ok(ValueRef::String(text)) => text.into_owned(),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(compare_utf16(&text(a), &text(b)), a.cmp(&b));
            prop_assert_eq!(read::<u64>(text(a)), Ok(a));
        }

        #[test]
        fn every_f32_comes_back_to_the_bit(bits: u32) {
            let single = f32::from_bits(bits);
            prop_assume!(!single.is_nan());
            let back = f32::from_value(single.to_value().unwrap().into_value());
            prop_assert_eq!(back.map(f32::to_bits), Ok(bits));
        }
    }
}
