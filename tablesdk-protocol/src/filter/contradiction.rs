//! Filters that no entity can match, because their bounds exclude each other.
//!
//! The judgement is sound and not complete: it compares the bounds of one property with each other,
//! in the order of the service, and knows nothing of what is stored.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem;

use super::{Comparison, ComparisonOperator, Filter};
use crate::types::Value;

impl Filter {
    /// The property whose bounds exclude each other, so that no entity matches the filter; `None`
    /// where an entity may match.
    ///
    /// Literals are compared in the order of the service, those of one type with each other. An
    /// `or` has no such property unless all of its terms have one, and a `not` has none.
    ///
    /// ```
    /// use tablesdk_protocol::filter::Filter;
    ///
    /// let filter: Filter = "PartitionKey eq 'Sales' and RowKey ge 'b' and RowKey lt 'a'".parse()?;
    /// assert_eq!(filter.contradiction(), Some("RowKey"));
    ///
    /// let filter: Filter = "RowKey ge 'a' and RowKey lt 'b'".parse()?;
    /// assert_eq!(filter.contradiction(), None);
    /// # Ok::<(), tablesdk_protocol::filter::ParseFilterError>(())
    /// ```
    pub fn contradiction(&self) -> Option<&str> {
        self.fold(|filter, terms: Vec<Option<&str>>| match filter {
            Self::And(_) => {
                let of_term = terms.into_iter().flatten().next();
                of_term.or_else(|| of_bounds(filter.terms()))
            }
            Self::Or(_) => {
                let all: Option<Vec<_>> = terms.into_iter().collect();
                all.and_then(|all| all.first().copied())
            }
            _ => None,
        })
    }
}

/// The property whose bounds in a conjunction exclude each other.
fn of_bounds(terms: &[Filter]) -> Option<&str> {
    let mut bounds: BTreeMap<_, Bounds<'_>> = BTreeMap::new();
    for term in terms {
        if let Filter::Comparison(comparison) = term {
            // A literal of another type is in another order.
            let literal = mem::discriminant(&comparison.literal);
            let types = bounds.entry(comparison.property.as_str()).or_default();
            match types.0.iter_mut().find(|(known, _)| *known == literal) {
                Some((_, range)) => range.add(comparison),
                None => {
                    let mut range = Range::default();
                    range.add(comparison);
                    types.0.push((literal, range));
                }
            }
        }
    }
    let mut bounds = bounds.into_iter();
    let is_empty = |bounds: &Bounds<'_>| bounds.0.iter().any(|(_, range)| range.is_empty());
    let excluded = bounds.find(|(_, bounds)| is_empty(bounds));
    excluded.map(|(property, _)| property)
}

/// The range of each type of literal.
#[derive(Default)]
struct Bounds<'f>(Vec<(mem::Discriminant<Value>, Range<'f>)>);

/// The literals between which a property is.
#[derive(Default)]
struct Range<'f> {
    lower: Option<Bound<'f>>,
    upper: Option<Bound<'f>>,
    excluded: Vec<&'f Value>,
}

#[derive(Clone, Copy)]
struct Bound<'f> {
    literal: &'f Value,
    is_strict: bool,
}

impl<'f> Range<'f> {
    fn add(&mut self, comparison: &'f Comparison) {
        use ComparisonOperator as Is;
        let literal = &comparison.literal;
        // A NaN is in no order.
        if order(literal, literal).is_none() {
            return;
        }
        let is_strict = matches!(comparison.operator, Is::GreaterThan | Is::LessThan);
        let bound = Bound { literal, is_strict };
        match comparison.operator {
            Is::Equal => {
                self.rise(bound);
                self.fall(bound);
            }
            Is::GreaterThan | Is::GreaterThanOrEqual => self.rise(bound),
            Is::LessThan | Is::LessThanOrEqual => self.fall(bound),
            Is::NotEqual => self.excluded.push(literal),
        }
    }

    fn rise(&mut self, bound: Bound<'f>) {
        if self
            .lower
            .is_none_or(|it| bound.is_beyond(it, Ordering::Greater))
        {
            self.lower = Some(bound);
        }
    }

    fn fall(&mut self, bound: Bound<'f>) {
        if self
            .upper
            .is_none_or(|it| bound.is_beyond(it, Ordering::Less))
        {
            self.upper = Some(bound);
        }
    }

    fn is_empty(&self) -> bool {
        let Some((lower, upper)) = self.lower.zip(self.upper) else {
            return false;
        };
        match order(lower.literal, upper.literal) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => {
                let is_this =
                    |literal: &&Value| order(literal, lower.literal) == Some(Ordering::Equal);
                lower.is_strict || upper.is_strict || self.excluded.iter().any(is_this)
            }
            _ => false,
        }
    }
}

impl Bound<'_> {
    /// Returns true if this bound excludes more than the other, in that direction.
    fn is_beyond(self, other: Self, direction: Ordering) -> bool {
        let order = order(self.literal, other.literal);
        order == Some(direction) || order == Some(Ordering::Equal) && self.is_strict
    }
}

/// The order of two literals of one type.
fn order(one: &Value, other: &Value) -> Option<Ordering> {
    one.as_ref().compare_to_literal(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_exclude_each_other_are_found() {
        for (filter, expected) in [
            ("RowKey gt 'a' and RowKey lt 'a'", Some("RowKey")),
            ("RowKey ge 'a' and RowKey lt 'a'", Some("RowKey")),
            ("RowKey ge 'a' and RowKey le 'a'", None),
            (
                "RowKey ge 'a' and RowKey le 'a' and RowKey ne 'a'",
                Some("RowKey"),
            ),
            (
                "RowKey gt 'a' and RowKey ge 'a' and RowKey le 'a'",
                Some("RowKey"),
            ),
            ("RowKey eq 'a' and RowKey eq 'b'", Some("RowKey")),
            ("RowKey eq 'a' and RowKey eq 'a'", None),
            ("PartitionKey eq 'a' and RowKey eq 'b'", None),
            // The order of strings is that of their code units: 10 is before 9.
            ("RowKey ge '9' and RowKey lt '10'", Some("RowKey")),
            ("Age ge 9 and Age lt 10", None),
            ("Age ge 9L and Age lt 5L", Some("Age")),
            // Literals of other types are in other orders.
            ("Age ge 9 and Age lt 5L", None),
            ("Age ge 9 and Age lt '5'", None),
            ("Ratio ge NaN and Ratio lt NaN", None),
            ("Ratio gt 0.5 and Ratio lt 0.25", Some("Ratio")),
            ("Paid eq true and Paid eq false", Some("Paid")),
            ("RowKey eq 'a' or RowKey eq 'b'", None),
            ("Age gt 3 or (RowKey gt 'b' and RowKey lt 'a')", None),
            (
                "(Age gt 3 and Age lt 2) or (RowKey gt 'b' and RowKey lt 'a')",
                Some("Age"),
            ),
            ("not (RowKey gt 'b' and RowKey lt 'a')", None),
            (
                "PartitionKey eq 'a' and (RowKey eq 'b' and RowKey eq 'c')",
                Some("RowKey"),
            ),
            ("Age gt 3", None),
        ] {
            let parsed: Filter = filter.parse().unwrap();
            assert_eq!(parsed.contradiction(), expected, "{filter}");
        }
    }

    #[test]
    fn a_long_and_deep_filter_is_judged_without_a_stack() {
        let many: Vec<_> = (0..4_000).map(|at| format!("Age ge {at}")).collect();
        let many: Filter = format!("{} and Age lt 3999", many.join(" and "))
            .parse()
            .unwrap();
        assert_eq!(many.contradiction(), Some("Age"));
        let mut deep = many;
        for _ in 0..10_000 {
            deep = Filter::Constant(true).and(Filter::Property("a".to_owned()).or(deep));
        }
        assert_eq!(deep.contradiction(), None);
    }
}
