//! Literals that a column can be compared with: values of its own type, and strings and bytes
//! without a copy.

use tablesdk_protocol::Value;

use crate::entity::key::{Desc, Escaped};
#[cfg(feature = "decimal")]
use crate::entity::ordered_decimal;
use crate::entity::{PropertyValue, ValueError, u64_as_int64};
use crate::sealed::Seal;

/// A literal that a column of type `T` can be compared with.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use tablesdk::query::{Filter, Literal};
///
/// // What any column of texts takes.
/// fn is_called(name: impl Literal<String>) -> Filter<Employee> {
///     Employee::columns().name.eq(name)
/// }
/// assert_eq!(is_called("Ada").to_string(), "Name eq 'Ada'");
/// assert_eq!(is_called(String::from("O'Neil")).to_string(), "Name eq 'O''Neil'");
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a column of type `{T}` cannot be compared with `{Self}`",
    label = "a literal of another type than the column",
    note = "the service compares values of one type; give a value of type `{T}` (an `f64` is written `50000.0`)",
    note = "an absent property, the `None` of a field, matches no comparison: unwrap an `Option` first"
)]
pub trait Literal<T> {
    #[doc(hidden)]
    const SEAL: Seal;

    /// The literal as the filter holds it.
    ///
    /// # Errors
    ///
    /// When the stored type cannot hold it.
    fn into_value(self) -> Result<Value, ValueError>;
}

impl<T: PropertyValue> Literal<T> for T {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(self.to_value()?.into_value())
    }
}

impl<T: PropertyValue> Literal<T> for &T {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(self.to_value()?.into_value())
    }
}

impl<T: PropertyValue> Literal<Desc<T>> for T {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(self.to_value()?.into_value())
    }
}

impl<T: PropertyValue> Literal<Escaped<T>> for T {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(self.to_value()?.into_value())
    }
}

#[cfg(feature = "decimal")]
impl Literal<ordered_decimal::Property> for rust_decimal::Decimal {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(ordered_decimal::Property(self).to_value()?.into_value())
    }
}

#[cfg(feature = "decimal")]
impl Literal<ordered_decimal::Property> for &rust_decimal::Decimal {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(ordered_decimal::Property(*self).to_value()?.into_value())
    }
}

impl Literal<u64_as_int64::Property> for u64 {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(u64_as_int64::Property(self).to_value()?.into_value())
    }
}

impl Literal<u64_as_int64::Property> for &u64 {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(u64_as_int64::Property(*self).to_value()?.into_value())
    }
}

impl Literal<String> for &str {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(Value::from(self))
    }
}

impl Literal<Escaped<String>> for &str {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(Value::from(self))
    }
}

impl Literal<Vec<u8>> for &[u8] {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        Ok(Value::Binary(self.to_owned()))
    }
}
