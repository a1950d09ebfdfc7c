//! The columns that a patch can set.

use super::Column;
use super::select::sealed;
use crate::entity::Field;

/// A column that a patch can set.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column that a patch of `{E}` can set",
    label = "not a column of a property",
    note = "a patch sets a property as a whole: use `modify` for what is stored as JSON, and insert another entity for another key"
)]
#[doc(hidden)]
#[expect(unnameable_types, reason = "only this crate implements it")]
pub trait SetColumn<E>: sealed::Sealed {
    /// The type of its values.
    type Value;
    /// The type of its field.
    type Field: Field<Value = Self::Value>;

    fn into_column(self) -> Column<E, Self::Field>;
}

impl<E, F: Field> SetColumn<E> for Column<E, F> {
    type Value = F::Value;
    type Field = F;

    fn into_column(self) -> Self {
        self
    }
}
