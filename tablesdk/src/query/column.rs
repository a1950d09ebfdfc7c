//! Typed handles to properties, for filters and projections.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;

use tablesdk_protocol::Value;
use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};
use tablesdk_protocol::wire::json::JsonEntity;

use super::Literal;
use super::mixed_integers;
use super::ranges::LiteralRange;
use crate::entity::field_codec::field;
use crate::entity::key::{KeyAccess, KeyTemplate};
use crate::entity::{
    ColumnScope, EntityError, Field, FieldAccess, Ordered, PropertyReader, PropertyValue as _,
    Text, ValueError, VariantRows,
};

use crate::filter::{Filter, FilterError, end_of_prefix};
use crate::value_error::MissingSlot;

/// A column of entity `E` whose field is of type `F`.
///
/// A column compares with literals of its own type only; anything else does not compile. The
/// operators for greater and less exist for types whose stored form keeps their order
/// ([`Ordered`]).
///
/// # What is absent
///
/// The service stores no nulls: a `None` is an absent property. An absent property satisfies no
/// comparison, not even `ne`, and therefore satisfies every negated comparison: `!e.email.eq("x")`
/// includes entities without an email; `e.email.ne("x")` excludes them. There is no direct test for
/// absence. For a column whose values are all ordered, `!e.age.ge(i32::MIN)` is such a test. A
/// filter ignores a field's default and its aliases: it compares what is stored under the field's
/// own name.
///
/// ```
/// use tablesdk::TableEntity;
///
/// #[derive(TableEntity)]
/// struct Person {
///     #[table(partition_key)]
///     country: String,
///     #[table(row_key)]
///     id: String,
///     age: i32,
///     email: Option<String>,
/// }
///
/// let e = Person::columns();
/// assert_eq!(e.age.name(), "age");
/// for (filter, text) in [
///     (e.country.eq("UK"), "PartitionKey eq 'UK'"),
///     (e.age.is_in([30, 40]), "age eq 30 or age eq 40"),
///     (e.age.gt(30) & e.age.le(40), "age gt 30 and age le 40"),
///     (e.age.between(30..), "age ge 30"),
///     (e.email.starts_with("ada@"), "email ge 'ada@' and email lt 'adaA'"),
///     (!e.email.eq("ada@example.org"), "not (email eq 'ada@example.org')"),
/// ] {
///     assert_eq!(filter.to_string(), text);
/// }
/// ```
// `F` is the type of the field and not of its value: `Column<Employee, Option<String>>` compares
// with strings and, when selected, yields an `Option<String>`.
pub struct Column<E, F> {
    scope: ColumnScope,
    name: &'static str,
    aliases: &'static [&'static str],
    mixed_integers: bool,
    /// The template and the access of the key, where the column is a key.
    key: Option<(KeyTemplate, KeyAccess<F>)>,
    part_of_key: bool,
    /// The column is that of a slot which the series does not have. Each use of it is an error.
    missing: Option<MissingSlot>,
    entity: PhantomData<fn() -> (E, F)>,
}

impl<E, F> Column<E, F> {
    /// The column that is stored under that name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            scope: ColumnScope::ROOT,
            name,
            aliases: &[],
            mixed_integers: false,
            key: None,
            part_of_key: false,
            missing: None,
            entity: PhantomData,
        }
    }

    /// The name under which the column is stored.
    pub fn name(self) -> Cow<'static, str> {
        self.scope.name(self.name)
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn scope(mut self, scope: ColumnScope) -> Self {
        self.scope = scope;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// The column of a field marked `mixed_integers`.
    #[doc(hidden)]
    #[must_use]
    pub const fn mixed_integers(mut self) -> Self {
        self.mixed_integers = true;
        self
    }

    /// The column of a key that is one field alone.
    #[doc(hidden)]
    #[must_use]
    pub const fn key(mut self, template: KeyTemplate, access: KeyAccess<F>) -> Self {
        self.key = Some((template, access));
        self
    }

    /// The column of a part of a key that is stored as a property, too.
    #[doc(hidden)]
    #[must_use]
    pub const fn part_of_key(mut self) -> Self {
        self.part_of_key = true;
        self
    }

    pub(crate) const fn missing(mut self, slot: MissingSlot) -> Self {
        self.missing = Some(slot);
        self
    }

    pub(crate) const fn missing_slot(&self) -> Option<MissingSlot> {
        self.missing
    }

    /// Returns true if writing the column would change the identity of the entity.
    pub(crate) const fn is_of_key(self) -> bool {
        self.key.is_some() || self.part_of_key
    }
}

impl<E, F: Field> Column<E, F> {
    /// Equal to the literal.
    #[doc(alias = "equals")]
    pub fn eq(&self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::Equal, literal)
    }

    /// Not equal to the literal. An absent property does not match.
    #[doc(alias("not_equals", "is_some"))]
    pub fn ne(&self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::NotEqual, literal)
    }

    /// Equal to one of the literals. An empty list matches nothing.
    #[doc(alias("any_of", "one_of"))]
    pub fn is_in<L: Literal<F::Value>>(self, literals: impl IntoIterator<Item = L>) -> Filter<E> {
        let everywhere = self.scope(self.scope.of_rows(None));
        let any = literals
            .into_iter()
            .map(|literal| everywhere.eq(literal))
            .reduce(|a, b| a | b);
        let any = any.unwrap_or_else(|| Filter::new(Ok(Tree::Constant(false))));
        Filter::new(any.into_tree().map(|tree| self.scope.within_rows(tree)))
    }

    fn compare(self, operator: ComparisonOperator, literal: impl Literal<F::Value>) -> Filter<E> {
        if let Some(reason) = F::Value::INCOMPARABLE {
            return self.incomparable(reason.into());
        }
        match literal.into_value().and_then(|value| self.stored(value)) {
            Ok(value) => self.filter(self.tree(operator, value)),
            Err(error) => self.refused(error),
        }
    }

    /// The value as it is compared with: a key is a text, whatever its field is.
    fn stored(self, value: Value) -> Result<Value, ValueError> {
        let Some((_, key)) = self.key else {
            return Ok(value);
        };
        match F::from_value(Some(value))? {
            Some(field) => key.text(&field).map(Value::String),
            None => Err(ValueError::unwritable("a key is never absent")),
        }
    }
}

#[cfg(feature = "encryption")]
impl<E, F: Field> Column<E, F> {}

impl<E, F> Column<E, F> {
    /// The condition, for the rows that have the column.
    pub(crate) fn filter(self, tree: Tree) -> Filter<E> {
        match self.missing {
            Some(slot) => self.incomparable(slot.to_string().into()),
            None => Filter::new(Ok(self.scope.within_rows(tree))),
        }
    }

    fn incomparable(self, reason: Cow<'static, str>) -> Filter<E> {
        let property = self.name().into_owned();
        Filter::new(Err(FilterError::Incomparable { property, reason }))
    }

    pub(crate) fn refused(self, error: ValueError) -> Filter<E> {
        Filter::new(Err(FilterError::Literal {
            property: self.name().into_owned(),
            error,
        }))
    }

    fn tree(self, operator: ComparisonOperator, value: Value) -> Tree {
        let operator = match self.key {
            Some((_, key)) if key.is_descending() => mirrored(operator),
            _ => operator,
        };
        match value {
            Value::Int64(value) if self.mixed_integers => {
                mixed_integers::comparison(self.name(), operator, value)
            }
            value => Tree::comparison(self.name(), operator, value),
        }
    }
}

/// The operator for the string forms of keys whose order is the reverse of the order of their
/// values.
const fn mirrored(operator: ComparisonOperator) -> ComparisonOperator {
    use ComparisonOperator::{
        Equal, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, NotEqual,
    };
    match operator {
        Equal => Equal,
        GreaterThan => LessThan,
        GreaterThanOrEqual => LessThanOrEqual,
        LessThan => GreaterThan,
        LessThanOrEqual => GreaterThanOrEqual,
        NotEqual => NotEqual,
    }
}

impl<E, F: Field> Column<E, F> {
    /// Greater than the literal.
    pub fn gt(&self, literal: impl Literal<F::Value>) -> Filter<E>
    where
        F::Value: Ordered,
    {
        self.compare(ComparisonOperator::GreaterThan, literal)
    }

    /// Greater than the literal, or equal to it.
    pub fn ge(&self, literal: impl Literal<F::Value>) -> Filter<E>
    where
        F::Value: Ordered,
    {
        self.compare(ComparisonOperator::GreaterThanOrEqual, literal)
    }

    /// Less than the literal.
    pub fn lt(&self, literal: impl Literal<F::Value>) -> Filter<E>
    where
        F::Value: Ordered,
    {
        self.compare(ComparisonOperator::LessThan, literal)
    }

    /// Less than the literal, or equal to it.
    pub fn le(&self, literal: impl Literal<F::Value>) -> Filter<E>
    where
        F::Value: Ordered,
    {
        self.compare(ComparisonOperator::LessThanOrEqual, literal)
    }

    /// Within the range, such as `18..65`. An open end adds no condition, and `..` adds none at
    /// all.
    ///
    /// ```
    /// use tablesdk::query::Column;
    ///
    /// let age = Column::<(), i32>::new("Age");
    /// assert_eq!(age.between(18..65).to_string(), "Age ge 18 and Age lt 65");
    /// assert_eq!(age.between(..=65).to_string(), "Age le 65");
    /// ```
    pub fn between(self, range: impl LiteralRange<F::Value>) -> Filter<E>
    where
        F::Value: Ordered,
    {
        use ComparisonOperator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let bounds = range.into_bounds().and_then(|(from, to)| {
            let stored = |end: Bound<Value>| {
                Ok(match end {
                    Bound::Excluded(value) => Bound::Excluded(self.stored(value)?),
                    Bound::Included(value) => Bound::Included(self.stored(value)?),
                    Bound::Unbounded => Bound::Unbounded,
                })
            };
            Ok((stored(from)?, stored(to)?))
        });
        let (from, to) = match bounds {
            Ok(bounds) => bounds,
            Err(error) => return self.refused(error),
        };
        let from = match from {
            Bound::Excluded(value) => Some((GreaterThan, value)),
            Bound::Included(value) => Some((GreaterThanOrEqual, value)),
            Bound::Unbounded => None,
        };
        let to = match to {
            Bound::Excluded(value) => Some((LessThan, value)),
            Bound::Included(value) => Some((LessThanOrEqual, value)),
            Bound::Unbounded => None,
        };
        let both = [from, to].into_iter().flatten();
        let both = both.map(|(operator, value)| self.tree(operator, value));
        self.filter(both.reduce(Tree::and).unwrap_or(Tree::Constant(true)))
    }
}

impl<E, F: Field> Column<E, F> {
    /// Starts with the prefix: a half-open range, for which the service can seek in a key. Every
    /// string starts with the empty prefix, but an absent property does not match.
    ///
    /// ```
    /// use tablesdk::query::Column;
    ///
    /// let name = Column::<(), String>::new("Name");
    /// assert_eq!(name.starts_with("abc").to_string(), "Name ge 'abc' and Name lt 'abd'");
    /// ```
    #[doc(alias("contains", "ends_with", "prefix", "like"))]
    pub fn starts_with(self, prefix: &str) -> Filter<E>
    where
        F::Value: Text,
    {
        let from = self.tree(ComparisonOperator::GreaterThanOrEqual, Value::from(prefix));
        self.filter(match end_of_prefix(prefix) {
            Some(end) => from.and(self.tree(ComparisonOperator::LessThan, Value::from(end))),
            None => from,
        })
    }
}

impl<E, F: Field> Column<E, F> {
    pub(crate) fn read(self, entity: &JsonEntity<'_>) -> Result<F, EntityError> {
        // A response has the timestamp without its type.
        if self.name == "Timestamp" && self.scope.is_empty() {
            return field::<F>().read_timestamp(&PropertyReader::new(entity, None));
        }
        if let Some((template, key)) = self.key {
            return template.read_only_part(entity, key);
        }
        self.read_property(field::<F>(), entity)
    }
}

impl<E, F> Column<E, F> {
    pub(crate) const fn rows(&self) -> Option<&VariantRows> {
        self.scope.rows()
    }

    /// The names that a query requests to read the column, with the aliases.
    pub(crate) fn names(self) -> Vec<String> {
        self.all_names().map(Cow::into_owned).collect()
    }

    /// Reads the value under the first of the names that has one.
    pub(super) fn read_property(
        self,
        access: FieldAccess<F>,
        entity: &JsonEntity<'_>,
    ) -> Result<F, EntityError> {
        for name in self.all_names() {
            let property = entity.property(&name);
            if let Some(property) = property.filter(|property| !property.is_null()) {
                return access.read(&name, Some(property));
            }
        }
        access.read(&self.name(), None)
    }

    fn all_names(self) -> impl Iterator<Item = Cow<'static, str>> {
        let names = [self.name].into_iter().chain(self.aliases.iter().copied());
        names.map(move |name| self.scope.name(name))
    }
}

impl<E, F> Clone for Column<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, F> Copy for Column<E, F> {}

impl<E, F> fmt::Debug for Column<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_both_widths_are_compared_right() {
        let mixed = Column::<(), i64>::new("A").mixed_integers();
        let large = 3_000_000_000_i64;
        for (filter, printed) in [
            (mixed.eq(5), "A eq 5"),
            (mixed.between(-5..=5), "A ge -5 and A le 5"),
            (mixed.eq(large), "A eq 3000000000L and A gt 2147483647"),
            (mixed.ne(large), "A ne 3000000000L or A le 2147483647"),
            (mixed.gt(large), "A gt 3000000000L and A gt 2147483647"),
            (mixed.le(large), "A le 3000000000L or A le 2147483647"),
            (mixed.ge(-large), "A ge -3000000000L or A ge -2147483648"),
            (mixed.lt(-large), "A lt -3000000000L and A lt -2147483648"),
        ] {
            assert_eq!(filter.to_string(), printed);
        }
        let ordinary = Column::<(), i64>::new("A");
        assert_eq!(ordinary.eq(5).to_string(), "A eq 5L");
    }

    #[test]
    fn literals_print_with_the_type_of_their_column() {
        let small = Column::<(), i32>::new("A");
        let big = Column::<(), Option<i64>>::new("B");
        let double = Column::<(), f64>::new("C");
        assert_eq!(small.is_in([1, 2]).to_string(), "A eq 1 or A eq 2");
        assert_eq!(big.ge(5).to_string(), "B ge 5L");
        assert_eq!(double.lt(5.0).to_string(), "C lt 5.0");
        let none: [i32; 0] = [];
        assert_eq!(small.is_in(none).to_string(), "false");
        assert_eq!(
            (!(small.gt(1) & big.ne(2))).to_string(),
            "not (A gt 1 and B ne 2L)"
        );
    }
}
