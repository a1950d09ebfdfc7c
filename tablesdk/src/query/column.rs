//! Typed handles to properties: what filters and projections are written with.

use std::fmt;
use std::marker::PhantomData;

use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

use super::filter::FilterError;
use super::{Filter, Literal};
use crate::entity::Field;

/// A column of entity `E` whose field is of type `F`.
///
/// A column compares with literals of its own type only; anything else does not compile. An entity that lacks the
/// property matches no comparison at all, `ne` included: this is how the service compares.
pub struct Column<E, F> {
    name: &'static str,
    entity: PhantomData<fn() -> (E, F)>,
}

impl<E, F> Column<E, F> {
    /// The column that is stored under that name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            entity: PhantomData,
        }
    }

    /// The name under which the column is stored.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<E, F: Field> Column<E, F> {
    /// Equal to the literal.
    pub fn eq(self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::Equal, literal)
    }

    /// Not equal to the literal, but present.
    pub fn ne(self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::NotEqual, literal)
    }

    /// Greater than the literal.
    pub fn gt(self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::GreaterThan, literal)
    }

    /// Greater than the literal, or equal to it.
    pub fn ge(self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::GreaterThanOrEqual, literal)
    }

    /// Less than the literal.
    pub fn lt(self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::LessThan, literal)
    }

    /// Less than the literal, or equal to it.
    pub fn le(self, literal: impl Literal<F::Value>) -> Filter<E> {
        self.compare(ComparisonOperator::LessThanOrEqual, literal)
    }

    /// Equal to one of the literals. Of none, nothing is.
    pub fn is_in<L: Literal<F::Value>>(self, literals: impl IntoIterator<Item = L>) -> Filter<E> {
        let any = literals
            .into_iter()
            .map(|literal| self.eq(literal))
            .reduce(|a, b| a | b);
        any.unwrap_or_else(|| Filter::new(Ok(Tree::Constant(false))))
    }

    fn compare(self, operator: ComparisonOperator, literal: impl Literal<F::Value>) -> Filter<E> {
        Filter::new(match literal.into_value() {
            Ok(value) => Ok(Tree::comparison(self.name, operator, value)),
            Err(error) => Err(FilterError::Literal {
                property: self.name.to_owned(),
                error,
            }),
        })
    }
}

impl<E, F: Field<Value = String>> Column<E, F> {
    /// Starts with the prefix: a half-open range, which the service can seek on a key. Every text starts with the empty
    /// prefix, but an absent property does not.
    ///
    /// ```
    /// use tablesdk::query::Column;
    ///
    /// let name = Column::<(), String>::new("Name");
    /// assert_eq!(name.starts_with("abc").to_string(), "Name ge 'abc' and Name lt 'abd'");
    /// ```
    pub fn starts_with(self, prefix: &str) -> Filter<E> {
        let from = self.ge(prefix);
        match end_of_prefix(prefix) {
            Some(end) => from & self.lt(end.as_str()),
            None => from,
        }
    }
}

/// The least text that is greater than every text with that prefix; `None` when there is none.
///
/// The order is that of UTF-16 units: characters above U+FFFF come between U+D7FF and U+E000.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{D7FF}' => '\u{10000}',
            '\u{10FFFF}' => '\u{E000}',
            '\u{FFFF}' => continue,
            last => char::from_u32(u32::from(last) + 1)?,
        };
        end.push(next);
        return Some(end);
    }
    None
}

impl<E, F> Clone for Column<E, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, F> Copy for Column<E, F> {}

impl<E, F> fmt::Debug for Column<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::compare_utf16;

    use super::*;

    #[test]
    fn the_end_of_a_prefix_follows_the_order_of_utf16() {
        for (prefix, end) in [
            ("", None),
            ("abc", Some("abd")),
            ("a\u{D7FF}", Some("a\u{10000}")),
            ("a\u{10FFFF}", Some("a\u{E000}")),
            ("a\u{FFFF}", Some("b")),
            ("\u{FFFF}\u{FFFF}", None),
        ] {
            assert_eq!(end_of_prefix(prefix).as_deref(), end, "{prefix:?}");
            if let Some(end) = end {
                let longest = format!("{prefix}\u{FFFF}\u{FFFF}");
                assert!(compare_utf16(&longest, end).is_lt(), "{prefix:?}");
            }
        }
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
