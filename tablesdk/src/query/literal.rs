//! What a column can be compared with: values of its own type, and texts and bytes without a copy; and ranges of them.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use tablesdk_protocol::Value;

use crate::entity::key::{Desc, Escaped};
#[cfg(feature = "decimal")]
use crate::entity::ordered_decimal;
use crate::entity::{IntoProperty, PropertyValue, ValueError, u64_as_int64};
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
    note = "the service compares values of one type; give a value of type `{T}`",
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

/// A column that is given by its name takes values of any type.
impl<T: IntoProperty> Literal<Value> for T {
    const SEAL: Seal = Seal;

    fn into_value(self) -> Result<Value, ValueError> {
        let absent = "an absent property satisfies no comparison: give a value";
        let value = self.into_property()?;
        value.ok_or_else(|| ValueError::unwritable(absent))
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

/// A range of literals that a column of type `T` can be compared with: any of Rust's.
#[diagnostic::on_unimplemented(
    message = "a column of type `{T}` cannot be compared with `{Self}`",
    label = "not a range of literals of the column's type",
    note = "give a range of values of type `{T}`, such as `from..to`, `from..=to` or `from..`"
)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait LiteralRange<T> {
    /// Where the range begins and ends.
    ///
    /// # Errors
    ///
    /// When the stored type cannot hold a literal.
    fn into_bounds(self) -> Result<(Bound<Value>, Bound<Value>), ValueError>;
}

macro_rules! range {
    ($($range:ident $self:ident => $from:expr, $to:expr;)+) => {
        $(impl<T, L: Literal<T>> LiteralRange<T> for $range<L> {
            fn into_bounds($self) -> Result<(Bound<Value>, Bound<Value>), ValueError> {
                Ok(($from, $to))
            }
        })+
    };
}

range! {
    Range self => Bound::Included(self.start.into_value()?), Bound::Excluded(self.end.into_value()?);
    RangeFrom self => Bound::Included(self.start.into_value()?), Bound::Unbounded;
    RangeTo self => Bound::Unbounded, Bound::Excluded(self.end.into_value()?);
    RangeToInclusive self => Bound::Unbounded, Bound::Included(self.end.into_value()?);
}

impl<T, L: Literal<T>> LiteralRange<T> for RangeInclusive<L> {
    fn into_bounds(self) -> Result<(Bound<Value>, Bound<Value>), ValueError> {
        let (from, to) = self.into_inner();
        Ok((
            Bound::Included(from.into_value()?),
            Bound::Included(to.into_value()?),
        ))
    }
}

impl<T> LiteralRange<T> for RangeFull {
    fn into_bounds(self) -> Result<(Bound<Value>, Bound<Value>), ValueError> {
        Ok((Bound::Unbounded, Bound::Unbounded))
    }
}

/// Ends of any kind, such as one that excludes where it begins.
impl<T, L: Literal<T>> LiteralRange<T> for (Bound<L>, Bound<L>) {
    fn into_bounds(self) -> Result<(Bound<Value>, Bound<Value>), ValueError> {
        let bound = |bound: Bound<L>| {
            Ok(match bound {
                Bound::Excluded(literal) => Bound::Excluded(literal.into_value()?),
                Bound::Included(literal) => Bound::Included(literal.into_value()?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        Ok((bound(self.0)?, bound(self.1)?))
    }
}
