//! The `$filter` language: a tree, its string form, and back.
//!
//! This module knows nothing of entities: the code that evaluates the tree decides which entities a
//! filter matches. These words are reserved: `and`, `or`, `not`, the six operators, `null`, `NaN`,
//! `INF`, and `true` and `false` in any case. A property with such a name can be in the tree, but
//! its string form is parsed as something else or not at all.
//!
//! See <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities>.

use std::cmp::Ordering;
use std::mem;
use std::ops;

use crate::types::Value;

mod access_class;
mod contradiction;
mod error;
mod lexer;
mod parser;
mod print;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;

pub use access_class::AccessClass;
pub use error::{Operand, ParseFilterError, ParseFilterErrorKind};
pub use print::Literal;
pub use syntax::FilterSyntax;

/// A condition on entities.
///
/// ```
/// use tablesdk_protocol::filter::{ComparisonOperator, Filter};
///
/// let sales = Filter::comparison("PartitionKey", ComparisonOperator::Equal, "Sales");
/// let adult = Filter::comparison("Age", ComparisonOperator::GreaterThanOrEqual, 18);
/// let filter = sales.and(adult.or(!Filter::Property("Minor".to_owned())));
/// assert_eq!(filter.to_string(), "PartitionKey eq 'Sales' and (Age ge 18 or not (Minor))");
/// assert_eq!(filter.to_string().parse(), Ok(filter));
/// ```
///
/// The nesting depth of a filter costs memory but no stack: a filter is parsed, printed, compared,
/// cloned and dropped without recursion. Code that walks one with [`Filter::fold`] or
/// [`Filter::terms`] needs no recursion either.
// Clients that combine filters two at a time nest one level for each term. In a debug build,
// recursion overflows the stack of a runtime's thread near a hundred levels, and a derived `Clone`
// one of 2 MiB at 4,000; a filter of 64 KiB has up to 16,000.
#[expect(
    clippy::exhaustive_enums,
    reason = "complete: who evaluates or prints a filter handles every form"
)]
pub enum Filter {
    /// All of these. Two terms or more, none of them an `And`, as [`Filter::and`] and the parser
    /// build it.
    And(Vec<Self>),
    /// A property against a literal.
    Comparison(Comparison),
    /// Every entity, or none.
    Constant(bool),
    /// The opposite.
    Not(Box<Self>),
    /// At least one of these. Two terms or more, none of them an `Or`, as [`Filter::or`] and the
    /// parser build it.
    Or(Vec<Self>),
    /// A property against another one, or against `null`: of [`FilterSyntax::Azurite`] only.
    Properties(PropertyComparison),
    /// A bare property: true only where it is a Boolean that is true.
    Property(String),
}

impl Filter {
    /// The property, the operator and the literal, in this order.
    pub fn comparison(
        property: impl Into<String>,
        operator: ComparisonOperator,
        literal: impl Into<Value>,
    ) -> Self {
        Self::Comparison(Comparison {
            property: property.into(),
            operator,
            literal: literal.into(),
        })
    }

    /// True where both are.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        let mut terms = match &mut self {
            Self::And(terms) => mem::take(terms),
            _ => vec![self],
        };
        match &mut other {
            Self::And(others) => terms.append(others),
            _ => terms.push(other),
        }
        Self::And(terms)
    }

    /// True where at least one is.
    #[must_use]
    pub fn or(mut self, mut other: Self) -> Self {
        let mut terms = match &mut self {
            Self::Or(terms) => mem::take(terms),
            _ => vec![self],
        };
        match &mut other {
            Self::Or(others) => terms.append(others),
            _ => terms.push(other),
        }
        Self::Or(terms)
    }
}

impl ops::Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}

/// A property against a literal, the property on the left. Built by [`Filter::comparison`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The name of the property.
    pub property: String,
    /// How the two are compared.
    pub operator: ComparisonOperator,
    /// The value with which the property is compared.
    pub literal: Value,
}

/// A property against another one, or against `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PropertyComparison {
    /// The name of the property on the left.
    pub left: String,
    /// How the two are compared.
    pub operator: ComparisonOperator,
    /// The name of the property on the right. `None` for `null`, which compares as a property that
    /// is missing.
    pub right: Option<String>,
}

/// How a property is compared with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the service knows these six operators"
)]
pub enum ComparisonOperator {
    /// `eq`.
    Equal,
    /// `gt`.
    GreaterThan,
    /// `ge`.
    GreaterThanOrEqual,
    /// `lt`.
    LessThan,
    /// `le`.
    LessThanOrEqual,
    /// `ne`.
    NotEqual,
}

impl ComparisonOperator {
    /// The word in the string of a filter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "eq",
            Self::GreaterThan => "gt",
            Self::GreaterThanOrEqual => "ge",
            Self::LessThan => "lt",
            Self::LessThanOrEqual => "le",
            Self::NotEqual => "ne",
        }
    }

    /// The operator that says the same with the two sides exchanged.
    #[must_use]
    pub const fn flipped(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::GreaterThan => Self::LessThan,
            Self::GreaterThanOrEqual => Self::LessThanOrEqual,
            Self::LessThan => Self::GreaterThan,
            Self::LessThanOrEqual => Self::GreaterThanOrEqual,
            Self::NotEqual => Self::NotEqual,
        }
    }

    /// Returns true if the operator holds for a property with this ordering relative to the
    /// literal.
    #[inline]
    pub const fn matches(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::GreaterThan => ordering.is_gt(),
            Self::GreaterThanOrEqual => ordering.is_ge(),
            Self::LessThan => ordering.is_lt(),
            Self::LessThanOrEqual => ordering.is_le(),
            Self::NotEqual => ordering.is_ne(),
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        OPERATORS
            .into_iter()
            .find(|operator| operator.as_str() == word)
    }
}

const OPERATORS: [ComparisonOperator; 6] = [
    ComparisonOperator::Equal,
    ComparisonOperator::GreaterThan,
    ComparisonOperator::GreaterThanOrEqual,
    ComparisonOperator::LessThan,
    ComparisonOperator::LessThanOrEqual,
    ComparisonOperator::NotEqual,
];
