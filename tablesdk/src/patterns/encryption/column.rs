//! The column of a field that is encrypted.

#[cfg(feature = "encryption")]
use tablesdk_protocol::Value;
#[cfg(feature = "encryption")]
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::wire::json::JsonEntity;

#[cfg(feature = "encryption")]
use super::literal::encrypted_literal;
#[cfg(feature = "encryption")]
use crate::entity::encrypted::lookup_name;

use crate::entity::{EntityError, Field};
#[cfg(feature = "encryption")]
use crate::filter::Filter;
use crate::query::select::sealed;
use crate::query::{Column, SetColumn, column, incomparable, opaque_column};

/// A column of entity `E` whose field is encrypted. It can be selected and patched. The service
/// sees bytes, so it cannot be compared with; with `encrypt(eq)`, `EQ` is `true`, and equal values
/// can be found.
///
/// [`#[table(encrypt)]`](derive@crate::TableEntity#encrypt) has an example.
pub struct EncryptedColumn<E, F, const EQ: bool = false>(Column<E, F>);

opaque_column!(impl[E, F, const EQ: bool] EncryptedColumn<E, F, EQ>);
column!(EncryptedColumn, Field, EQ);

impl<E, F, const EQ: bool> sealed::Sealed for EncryptedColumn<E, F, EQ> {}

impl<E, F: Field, const EQ: bool> EncryptedColumn<E, F, EQ> {
    fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        self.0.read(entity)
    }
}

#[cfg(feature = "encryption")]
impl<E, F: Field> EncryptedColumn<E, F, true> {
    /// Equal to the literal. Entities that were written before the field was marked `encrypt(eq)`
    /// do not match.
    pub fn eq(&self, literal: impl crate::query::Literal<F::Value>) -> Filter<E> {
        match literal.into_value() {
            Ok(value) => {
                let name = lookup_name(&self.name());
                // The filter contains no form of the literal that can be read before it is sent.
                let value = Value::Binary(encrypted_literal(&value));
                let equal = Tree::comparison(name, ComparisonOperator::Equal, value);
                self.0.filter(equal)
            }
            Err(error) => self.0.refused(error.without_value()),
        }
    }

    /// Equal to one of the literals. An empty list matches nothing.
    pub fn is_in<L: crate::query::Literal<F::Value>>(
        self,
        literals: impl IntoIterator<Item = L>,
    ) -> Filter<E> {
        let any = literals.into_iter().map(|literal| self.eq(literal));
        let any = any.reduce(|a, b| a | b);
        any.unwrap_or_else(|| Filter::new(Ok(Tree::Constant(false))))
    }
}

impl<E, F: Field, const EQ: bool> SetColumn<E> for EncryptedColumn<E, F, EQ> {
    type Value = F::Value;
    type Field = F;

    fn into_column(self) -> Column<E, F> {
        self.0
    }
}

/// Never implemented. The comparison methods exist so that the compiler can explain why an
/// encrypted column cannot be compared.
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
