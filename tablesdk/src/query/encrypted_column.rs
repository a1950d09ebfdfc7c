//! The column of a field that is encrypted.

use tablesdk_protocol::wire::json::JsonEntity;

use super::Column;
use super::opaque_column::{incomparable, opaque_column};
use super::select::sealed;
use crate::entity::{EntityError, Field};
#[cfg(feature = "encryption")]
use crate::filter::Filter;

/// A column of entity `E` whose field is encrypted. It can be selected and patched. The service sees bytes, so it cannot
/// be compared with; with `encrypt(eq)`, `EQ` is `true`, and equal values can be found.
///
/// [`#[table(encrypt)]`](derive@crate::TableEntity#encrypt) has an example.
pub struct EncryptedColumn<E, F, const EQ: bool = false>(Column<E, F>);

opaque_column!(impl[E, F, const EQ: bool] EncryptedColumn<E, F, EQ>);

impl<E, F: Field, const EQ: bool> EncryptedColumn<E, F, EQ> {
    pub(super) fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        self.0.read(entity)
    }
}

#[cfg(feature = "encryption")]
impl<E, F: Field> EncryptedColumn<E, F, true> {
    /// Equal to the literal. Entities that were written before the field was marked `encrypt(eq)` do not match.
    pub fn eq(&self, literal: impl super::Literal<F::Value>) -> Filter<E> {
        self.0.eq_encrypted(literal)
    }

    /// Equal to one of the literals. An empty list matches nothing.
    pub fn is_in<L: super::Literal<F::Value>>(
        self,
        literals: impl IntoIterator<Item = L>,
    ) -> Filter<E> {
        let any = literals.into_iter().map(|literal| self.eq(literal));
        let any = any.reduce(|a, b| a | b);
        any.unwrap_or_else(|| Filter::new(Ok(tablesdk_protocol::filter::Filter::Constant(false))))
    }
}

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

impl<E, F: Field, const EQ: bool> SetColumn<E> for EncryptedColumn<E, F, EQ> {
    type Value = F::Value;
    type Field = F;

    fn into_column(self) -> Column<E, F> {
        self.0
    }
}

/// What a column would need to be compared with. None that is encrypted has it; the methods are there to say so.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a column that is encrypted cannot be compared",
    label = "encrypted",
    note = "the service sees bytes: filter by another property, and compare this one in the program",
    note = "to find equal values, mark the field `#[table(encrypt(eq))]`, and use `eq`: the service then sees which entities have equal values"
)]
#[expect(unnameable_types, reason = "only this crate implements it")]
pub trait ComparableEncrypted {}

incomparable!(EncryptedColumn[false]: ComparableEncrypted, eq is_in);
incomparable!(EncryptedColumn[EQ]: ComparableEncrypted, ne gt ge lt le between starts_with);
