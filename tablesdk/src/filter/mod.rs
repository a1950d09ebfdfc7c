//! A filter over one entity's columns. A literal that cannot be stored is kept as an error, and
//! reported when awaited.

mod key_range;

pub(crate) use key_range::{end_of_prefix, row_key_range, rows_in_partition, starting_with};

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, Not};

pub use tablesdk_protocol::filter::AccessClass;
use tablesdk_protocol::filter::{Filter as Tree, ParseFilterError};
use tablesdk_protocol::{PropertyNameProblem, check_property_name};

use crate::value_error::ValueError;

/// A condition on entities of type `E`, made of comparisons of its columns with `&`, `|` and `!`.
///
/// Prints as OData, with the parentheses that precedence needs.
///
/// ```
/// use tablesdk::TableEntity;
///
/// #[derive(TableEntity)]
/// struct Reading {
///     #[table(partition_key)]
///     station: String,
///     #[table(row_key)]
///     at: String,
///     celsius: f64,
///     raining: bool,
/// }
///
/// let r = Reading::columns();
/// let filter = (r.celsius.lt(0.0) | r.raining.eq(true)) & r.station.eq("O'Hare");
/// assert_eq!(filter.to_string(), "(celsius lt 0.0 or raining eq true) and PartitionKey eq 'O''Hare'");
/// ```
#[must_use = "a filter does nothing until a query has it"]
pub struct Filter<E> {
    tree: Result<Tree, FilterError>,
    entity: PhantomData<fn() -> E>,
}

impl<E> Filter<E> {
    pub(crate) const fn new(tree: Result<Tree, FilterError>) -> Self {
        Self {
            tree,
            entity: PhantomData,
        }
    }

    /// A condition on a property of any name, as long as it is one that a property can have.
    pub(crate) fn named(name: String, condition: impl FnOnce(String) -> Tree) -> Self {
        Self::new(match check_property_name(&name) {
            Ok(()) => Ok(condition(name)),
            Err(problem) => Err(FilterError::Name { name, problem }),
        })
    }

    pub(crate) fn into_tree(self) -> Result<Tree, FilterError> {
        self.tree
    }

    fn combine(self, other: Self, join: impl FnOnce(Tree, Tree) -> Tree) -> Self {
        Self::new(match (self.tree, other.tree) {
            (Ok(left), Ok(right)) => Ok(join(left, right)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        })
    }
}

impl<E> BitAnd for Filter<E> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.combine(other, Tree::and)
    }
}

impl<E> BitOr for Filter<E> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.combine(other, Tree::or)
    }
}

impl<E> Not for Filter<E> {
    type Output = Self;

    fn not(self) -> Self {
        Self::new(self.tree.map(|tree| !tree))
    }
}

impl<E> Clone for Filter<E> {
    fn clone(&self) -> Self {
        Self::new(self.tree.clone())
    }
}

impl<E> fmt::Display for Filter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tree {
            Ok(tree) => fmt::Display::fmt(tree, f),
            Err(error) => write!(f, "[{error}]"),
        }
    }
}

impl<E> fmt::Debug for Filter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a filter cannot be sent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("the filter compares {property:?}: {reason}")]
    Incomparable {
        property: String,
        reason: Cow<'static, str>,
    },
    #[error("the filter compares {property:?} with a literal that cannot be stored: {error}")]
    Literal { property: String, error: ValueError },
    #[error("the filter compares {name:?}, which is not the name of a property: {problem}")]
    Name {
        name: String,
        problem: PropertyNameProblem,
    },
    #[error("the OData filter {text:?} cannot be read: {error}")]
    OData {
        text: String,
        error: ParseFilterError,
    },
}
