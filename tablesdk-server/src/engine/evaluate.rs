//! Whether a filter holds for an entity, or for a table's name.
//!
//! Two-valued: a comparison with a missing property is false, and `not` makes it true. How a value compares with a literal
//! is the protocol's business. See
//! <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities>.

use std::{mem, slice};

use tablesdk_protocol::ValueRef;
use tablesdk_protocol::filter::{Comparison, ComparisonOperator, Filter};

/// Whether the filter holds, given what looks up the value of a property. How deep it is nested takes no stack.
pub(crate) fn matches<'v>(
    filter: &Filter,
    property: &impl Fn(&str) -> Option<ValueRef<'v>>,
) -> bool {
    // The filters that wait for the value of a term, and the terms behind it.
    let mut open: Vec<(&Filter, slice::Iter<'_, Filter>)> = Vec::new();
    let mut current = (filter, filter.terms().iter());
    let mut value = start(filter, property);
    loop {
        let (filter, terms) = &mut current;
        let is_decided = match filter {
            Filter::And(_) => !value,
            Filter::Or(_) => value,
            _ => false,
        };
        if !is_decided && let Some(term) = terms.next() {
            open.push(mem::replace(&mut current, (term, term.terms().iter())));
            value = start(term, property);
            continue;
        }
        if let Filter::Not(_) = filter {
            value = !value;
        }
        match open.pop() {
            Some(parent) => current = parent,
            None => return value,
        }
    }
}

/// The value of a filter before that of any of its terms is known.
fn start<'v>(filter: &Filter, property: &impl Fn(&str) -> Option<ValueRef<'v>>) -> bool {
    match filter {
        Filter::And(_) | Filter::Not(_) => true,
        Filter::Comparison(comparison) => {
            property(&comparison.property).is_some_and(|value| compare(&value, comparison))
        }
        Filter::Constant(value) => *value,
        Filter::Or(_) => false,
        Filter::Property(name) => property(name) == Some(ValueRef::Boolean(true)),
    }
}

fn compare(value: &ValueRef<'_>, comparison: &Comparison) -> bool {
    match value.compare_to_literal(&comparison.literal) {
        Some(ordering) => comparison.operator.matches(ordering),
        // SERVICE: assumed, as IEEE 754 has it: a NaN differs from everything, itself included.
        None => comparison.operator == ComparisonOperator::NotEqual,
    }
}

#[cfg(test)]
mod tests {
    use tablesdk_protocol::Value;

    use super::*;

    fn holds(filter: &Filter) -> bool {
        let properties = [
            ("age", Value::from(39)),
            ("big", Value::from(39_i64)),
            ("married", Value::from(true)),
            ("name", Value::from("é")),
            ("ratio", Value::from(f64::NAN)),
            ("single", Value::from(false)),
        ];
        let property = |name: &str| {
            let found = properties.iter().find(|(stored, _)| *stored == name);
            found.map(|(_, value)| value.as_ref())
        };
        matches(filter, &property)
    }

    /// The operators, in the order eq, ne, lt, le, gt, ge, that hold between a property and a literal.
    fn operators(property: &str, literal: impl Into<Value>) -> String {
        let literal = literal.into();
        [
            ComparisonOperator::Equal,
            ComparisonOperator::NotEqual,
            ComparisonOperator::LessThan,
            ComparisonOperator::LessThanOrEqual,
            ComparisonOperator::GreaterThan,
            ComparisonOperator::GreaterThanOrEqual,
        ]
        .into_iter()
        .filter(|operator| holds(&Filter::comparison(property, *operator, literal.clone())))
        .map(ComparisonOperator::as_str)
        .collect::<Vec<_>>()
        .join(" ")
    }

    #[test]
    fn comparisons_hold_as_the_service_defines_them() {
        for (property, literal, expected) in [
            ("age", Value::from(39), "eq le ge"),
            ("age", Value::from(40), "ne lt le"),
            ("age", Value::from(38), "ne gt ge"),
            ("big", Value::from(39), "eq le ge"),
            ("age", Value::from(39_i64), "ne lt le"),
            ("age", Value::from("39"), "ne lt le"),
            ("name", Value::from("é"), "eq le ge"),
            ("name", Value::from("E"), "ne gt ge"),
            ("married", Value::from(false), "ne gt ge"),
            ("ratio", Value::from(1.0), "ne"),
            ("ratio", Value::from(f64::NAN), "ne"),
            ("Age", Value::from(39), ""),
            ("missing", Value::from(""), ""),
        ] {
            assert_eq!(
                operators(property, literal.clone()),
                expected,
                "{property} and {literal:?}"
            );
        }
    }

    #[test]
    fn logic_has_two_values() {
        let missing = || Filter::comparison("missing", ComparisonOperator::Equal, 1);
        let yes = || Filter::Constant(true);
        let no = || Filter::Constant(false);
        for (filter, expected) in [
            (!missing(), true),
            (yes().and(yes()), true),
            (yes().and(no()), false),
            (no().or(yes()), true),
            (no().or(no()), false),
            (!yes(), false),
            (Filter::Property("married".to_owned()), true),
            (Filter::Property("single".to_owned()), false),
            (Filter::Property("age".to_owned()), false),
            (Filter::Property("missing".to_owned()), false),
            (!Filter::Property("age".to_owned()), true),
            (!!yes(), true),
            (!(yes().and(no().or(!no()))), false),
            (!(yes().and(no().or(!yes()))).or(no()), true),
            (Filter::And(vec![]), true),
            (Filter::Or(vec![]), false),
        ] {
            assert_eq!(holds(&filter), expected, "{filter:?}");
        }
    }
}
