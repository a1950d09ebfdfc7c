//! Conditions on a column that is given by its name. The values say the type.

use std::ops::Bound;

use tablesdk_protocol::filter::{ComparisonOperator, Filter as Tree};

use super::ranges::{PropertyRange, present};
use crate::entity::{DynamicColumn, IntoProperty};
use crate::filter::{Filter, starting_with};

macro_rules! comparison {
    ($(#[doc = $doc:literal] $name:ident $operator:ident;)+) => {
        $(#[doc = $doc]
        pub fn $name(self, value: impl IntoProperty) -> Filter<E> {
            let value = present(value);
            self.condition(|name| {
                Ok(Tree::comparison(name, ComparisonOperator::$operator, value?))
            })
        })+
    };
}

impl<E> DynamicColumn<E> {
    comparison! {
        /// Equal to the value.
        eq Equal;
        /// Not equal to the value, but present.
        ne NotEqual;
        /// Greater than the value.
        gt GreaterThan;
        /// Greater than the value, or equal to it.
        ge GreaterThanOrEqual;
        /// Less than the value.
        lt LessThan;
        /// Less than the value, or equal to it.
        le LessThanOrEqual;
    }

    /// Within the range, such as `18..65`. An open end adds no condition, and `..` adds none at
    /// all.
    pub fn between(self, range: impl PropertyRange) -> Filter<E> {
        use ComparisonOperator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let bounds = range.into_bounds();
        self.condition(|name| {
            let (from, to) = bounds?;
            let compare = |operator, value| Some(Tree::comparison(name, operator, value));
            let from = match from {
                Bound::Excluded(value) => compare(GreaterThan, value),
                Bound::Included(value) => compare(GreaterThanOrEqual, value),
                Bound::Unbounded => None,
            };
            let to = match to {
                Bound::Excluded(value) => compare(LessThan, value),
                Bound::Included(value) => compare(LessThanOrEqual, value),
                Bound::Unbounded => None,
            };
            let both = [from, to].into_iter().flatten().reduce(Tree::and);
            Ok(both.unwrap_or(Tree::Constant(true)))
        })
    }

    /// Equal to one of the values. An empty list matches nothing.
    pub fn is_in<V: IntoProperty>(self, values: impl IntoIterator<Item = V>) -> Filter<E> {
        self.condition(|name| {
            let mut any = None;
            for value in values {
                let value = present(value)?;
                let equal = Tree::comparison(name, ComparisonOperator::Equal, value);
                any = Some(match any {
                    Some(others) => Tree::or(others, equal),
                    None => equal,
                });
            }
            Ok(any.unwrap_or(Tree::Constant(false)))
        })
    }

    /// A string that starts with the prefix: a half-open range, for which the service can seek in a
    /// key. Every string starts with the empty prefix, but an absent property does not match.
    pub fn starts_with(self, prefix: &str) -> Filter<E> {
        self.condition(|name| Ok(starting_with(name, prefix)))
    }
}
