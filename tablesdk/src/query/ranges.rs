//! The ranges that a column can be compared with: of literals of its type, or of any properties if
//! the column is given by its name.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use tablesdk_protocol::Value;

use super::Literal;
use crate::entity::{IntoProperty, ValueError};

/// Where a range begins and ends.
pub(super) type Bounds = Result<(Bound<Value>, Bound<Value>), ValueError>;

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
    fn into_bounds(self) -> Bounds;
}

/// A range of values that a column can be compared with that is given by its name: any of Rust's.
#[diagnostic::on_unimplemented(
    message = "a column that is given by its name cannot be compared with `{Self}`",
    label = "not a range of properties",
    note = "give a range of values of one type, such as `from..to`, `from..=to` or `from..`"
)]
#[expect(
    unnameable_types,
    reason = "what cannot be named cannot be implemented"
)]
pub trait PropertyRange {
    /// Where the range begins and ends.
    ///
    /// # Errors
    ///
    /// When a property cannot hold a value, and for an absent one.
    fn into_bounds(self) -> Bounds;
}

/// The value that a column is compared with that is given by its name.
pub(super) fn present(value: impl IntoProperty) -> Result<Value, ValueError> {
    let absent = "an absent property satisfies no comparison: give a value";
    let value = value.into_property()?;
    value.ok_or_else(|| ValueError::unwritable(absent))
}

/// The bounded ranges of `L`, each bound made a value by `$value`.
macro_rules! ranges {
    (impl[$($generics:tt)*] $trait:ty, $value:path) => {
        impl<$($generics)*> $trait for Range<L> {
            fn into_bounds(self) -> Bounds {
                Ok((Bound::Included($value(self.start)?), Bound::Excluded($value(self.end)?)))
            }
        }

        impl<$($generics)*> $trait for RangeInclusive<L> {
            fn into_bounds(self) -> Bounds {
                let (from, to) = self.into_inner();
                Ok((Bound::Included($value(from)?), Bound::Included($value(to)?)))
            }
        }

        impl<$($generics)*> $trait for RangeFrom<L> {
            fn into_bounds(self) -> Bounds {
                Ok((Bound::Included($value(self.start)?), Bound::Unbounded))
            }
        }

        impl<$($generics)*> $trait for RangeTo<L> {
            fn into_bounds(self) -> Bounds {
                Ok((Bound::Unbounded, Bound::Excluded($value(self.end)?)))
            }
        }

        impl<$($generics)*> $trait for RangeToInclusive<L> {
            fn into_bounds(self) -> Bounds {
                Ok((Bound::Unbounded, Bound::Included($value(self.end)?)))
            }
        }

        /// Ends of any kind, such as one that excludes where it begins.
        impl<$($generics)*> $trait for (Bound<L>, Bound<L>) {
            fn into_bounds(self) -> Bounds {
                let bound = |bound: Bound<L>| {
                    Ok(match bound {
                        Bound::Excluded(end) => Bound::Excluded($value(end)?),
                        Bound::Included(end) => Bound::Included($value(end)?),
                        Bound::Unbounded => Bound::Unbounded,
                    })
                };
                Ok((bound(self.0)?, bound(self.1)?))
            }
        }
    };
}

ranges!(impl[T, L: Literal<T>] LiteralRange<T>, Literal::into_value);
ranges!(impl[L: IntoProperty] PropertyRange, present);

impl<T> LiteralRange<T> for RangeFull {
    fn into_bounds(self) -> Bounds {
        Ok((Bound::Unbounded, Bound::Unbounded))
    }
}

impl PropertyRange for RangeFull {
    fn into_bounds(self) -> Bounds {
        Ok((Bound::Unbounded, Bound::Unbounded))
    }
}
