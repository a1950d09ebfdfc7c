//! Evaluates a filter for an entity, or for the name of a table.
//!
//! A filter is compiled once per query: each property that it names gets a slot, one pass over an
//! entity fills the slots, and the terms read only the slots. So the cost per entity is the sum of
//! the sizes of entity and filter, never their product, but for terms that compare two properties,
//! which only the flavor Azurite has.
//!
//! The logic is two-valued: a comparison with a missing property is false, and `not` makes it true.
//! The protocol crate defines how a value compares with a literal. See
//! <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities>.

use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::{Value, ValueRef, compare_utf16};

use super::slots::{Slots, Values};

/// A filter made ready to be evaluated many times.
#[derive(Debug)]
pub(crate) struct CompiledFilter<'f> {
    steps: Vec<Step<'f>>,
    slots: Slots<'f>,
    cost: u64,
}

impl<'f> CompiledFilter<'f> {
    /// Makes a filter ready that consists of these terms, which all have to hold.
    pub(crate) fn new(terms: &[&'f Filter]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for term in terms {
            term.fold(|filter, _: Vec<()>| match filter {
                Filter::Comparison(comparison) => names.push(&comparison.property),
                Filter::Properties(comparison) => {
                    names.push(&comparison.left);
                    names.extend(comparison.right.as_deref());
                }
                Filter::Property(name) => names.push(name),
                _ => {}
            });
        }
        let slots = Slots::new(names);
        let steps = steps(terms, &slots);
        Self {
            cost: steps.iter().map(cost).fold(0, u64::saturating_add),
            steps,
            slots,
        }
    }

    /// The most that one evaluation costs, in the unit of [`ScanBudget`](super::ScanBudget),
    /// without the bytes that it copies.
    pub(crate) const fn cost(&self) -> u64 {
        self.cost
    }

    /// Evaluates the filter for the values that `fill` sets. Returns true if it holds, and the
    /// number of bytes that were copied.
    #[inline]
    pub(crate) fn holds<'v, E>(
        &mut self,
        fill: impl FnOnce(&mut Values<'_, 'v>) -> Result<(), E>,
    ) -> Result<(bool, usize), E> {
        self.slots.with(fill, |slots| evaluate(&self.steps, slots))
    }
}

/// A step of the evaluation. The value after the last step is the value of the filter.
#[derive(Debug)]
struct Step<'f> {
    test: Test<'f>,
    /// If the value is this after the step, it is also the value after the step at this index,
    /// where evaluation continues.
    skip: Option<(bool, usize)>,
}

/// How a step makes the next value.
#[derive(Debug)]
enum Test<'f> {
    /// The result of a comparison.
    Compare {
        slot: usize,
        operator: ComparisonOperator,
        literal: &'f Value,
    },
    /// The result of a comparison of two properties.
    CompareProperties {
        left: usize,
        operator: ComparisonOperator,
        /// No slot, for `null`.
        right: usize,
    },
    Constant(bool),
    /// The opposite of the value before.
    Invert,
    /// True if the property is a Boolean that is true.
    IsTrue {
        slot: usize,
    },
}

/// The steps of the terms of a filter. Neither this nor the evaluation uses recursion, so that a
/// deeply nested filter needs no stack.
fn steps<'f>(terms: &[&'f Filter], slots: &Slots<'_>) -> Vec<Step<'f>> {
    let slot = |name: &str| slots.slot(name).unwrap_or(usize::MAX);
    let mut steps: Vec<Step<'f>> = Vec::new();
    let mut ends = Vec::with_capacity(terms.len());
    for term in terms {
        ends.push(add_steps(term, slot, &mut steps));
    }
    let last = ends.pop();
    join(&mut steps, &ends, false, last.unwrap_or_default());
    steps
}

/// Adds the steps of a filter. Returns the index of the last one.
fn add_steps<'f>(
    filter: &'f Filter,
    slot: impl Fn(&str) -> usize,
    steps: &mut Vec<Step<'f>>,
) -> usize {
    filter.fold(|filter, mut ends: Vec<usize>| {
        let is_or = matches!(filter, Filter::Or(_));
        let test = match filter {
            Filter::And(_) | Filter::Or(_) => {
                let Some(last) = ends.pop() else {
                    return push(steps, Test::Constant(!is_or));
                };
                join(steps, &ends, is_or, last);
                return last;
            }
            Filter::Comparison(comparison) => Test::Compare {
                slot: slot(&comparison.property),
                operator: comparison.operator,
                literal: &comparison.literal,
            },
            Filter::Constant(value) => Test::Constant(*value),
            Filter::Not(_) => Test::Invert,
            Filter::Properties(comparison) => Test::CompareProperties {
                left: slot(&comparison.left),
                operator: comparison.operator,
                right: comparison.right.as_deref().map_or(usize::MAX, &slot),
            },
            Filter::Property(name) => Test::IsTrue { slot: slot(name) },
        };
        push(steps, test)
    })
}

/// Joins terms that end at these steps and at a last one: a term with this value decides, so that
/// the terms after it are skipped.
fn join(steps: &mut [Step<'_>], ends: &[usize], decisive: bool, last: usize) {
    for end in ends {
        if let Some(step) = steps.get_mut(*end) {
            step.skip = Some((decisive, last));
        }
    }
}

fn push<'f>(steps: &mut Vec<Step<'f>>, test: Test<'f>) -> usize {
    steps.push(Step { test, skip: None });
    steps.len() - 1
}

#[inline]
fn evaluate(steps: &[Step<'_>], slots: &[Option<ValueRef<'_>>]) -> bool {
    let stored = |slot: usize| slots.get(slot).and_then(Option::as_ref);
    let mut value = true;
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        value = match step.test {
            Test::Compare {
                slot,
                operator,
                literal,
            } => stored(slot).is_some_and(|stored| compare(stored, operator, literal)),
            Test::CompareProperties {
                left,
                operator,
                right,
            } => compare_slots(stored(left), operator, stored(right)),
            Test::Constant(constant) => constant,
            Test::Invert => !value,
            Test::IsTrue { slot } => stored(slot) == Some(&ValueRef::Boolean(true)),
        };
        let mut skip = step.skip;
        while let Some((decisive, to)) = skip
            && value == decisive
        {
            at = to;
            // The step that it continues after may skip again.
            skip = steps.get(at).and_then(|step| step.skip);
        }
        at += 1;
    }
    value
}

#[inline]
fn compare(value: &ValueRef<'_>, operator: ComparisonOperator, literal: &Value) -> bool {
    match value.compare_to_literal(literal) {
        Some(ordering) => operator.matches(ordering),
        // SERVICE: assumed, as IEEE 754 has it: a NaN differs from everything, itself included.
        None => operator == ComparisonOperator::NotEqual,
    }
}

/// Apart from the comparison with literals, which has to be fast.
#[cold]
fn compare_slots(
    left: Option<&ValueRef<'_>>,
    operator: ComparisonOperator,
    right: Option<&ValueRef<'_>>,
) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => compare_properties(left, operator, right),
        (None, None) => operator == ComparisonOperator::Equal,
        _ => false,
    }
}

/// As Azurite compares them: numbers as those of JavaScript. Values of other types that differ are
/// not equal, and in no order.
fn compare_properties(
    left: &ValueRef<'_>,
    operator: ComparisonOperator,
    right: &ValueRef<'_>,
) -> bool {
    let number = |value: &ValueRef<'_>| match value {
        ValueRef::Double(value) => Some(*value),
        ValueRef::Int32(value) => Some(f64::from(*value)),
        #[expect(clippy::cast_precision_loss, reason = "as in JavaScript")]
        ValueRef::Int64(value) => Some(*value as f64),
        _ => None,
    };
    let ordering = match (left, right) {
        (ValueRef::Binary(left), ValueRef::Binary(right)) => Some(left.cmp(right)),
        (ValueRef::Boolean(left), ValueRef::Boolean(right)) => Some(left.cmp(right)),
        (ValueRef::DateTime(left), ValueRef::DateTime(right)) => Some(left.cmp(right)),
        (ValueRef::Guid(left), ValueRef::Guid(right)) => Some(left.cmp(right)),
        (ValueRef::Int64(left), ValueRef::Int64(right)) => Some(left.cmp(right)),
        (ValueRef::String(left), ValueRef::String(right)) => Some(compare_utf16(left, right)),
        _ => number(left)
            .zip(number(right))
            .and_then(|(left, right)| left.partial_cmp(&right)),
    };
    match ordering {
        Some(ordering) => operator.matches(ordering),
        None => operator == ComparisonOperator::NotEqual,
    }
}

fn cost(step: &Step<'_>) -> u64 {
    let literal = match step.test {
        Test::Compare { literal, .. } => literal_cost(literal),
        Test::CompareProperties { .. } => PROPERTIES_COST,
        _ => 0,
    };
    TERM_COST + literal + step.skip.map_or(0, |_| TERM_COST)
}

/// Comparing with a string or bytes takes at most time linear in the length of the literal.
fn literal_cost(literal: &Value) -> u64 {
    let bytes = match literal {
        Value::Binary(bytes) => bytes.len(),
        Value::String(text) => text.len(),
        _ => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The approximate cost of a term.
const TERM_COST: u64 = 10;
/// The cost of a comparison of two properties, whose lengths are not known before.
const PROPERTIES_COST: u64 = 10_000;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

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
        let mut filter = CompiledFilter::new(&[filter]);
        let mut holds = |properties: &[(&str, Value)]| {
            let holds = filter.holds(|values| {
                for (name, value) in properties {
                    values.set(name, value.as_ref());
                }
                Ok::<_, Infallible>(())
            });
            holds.unwrap().0
        };
        let first = holds(&properties);
        // Nothing of one entity is left when the next one comes.
        let without = holds(&[]);
        assert_eq!((holds(&properties), holds(&[])), (first, without));
        first
    }

    const OPERATORS: [ComparisonOperator; 6] = [
        ComparisonOperator::Equal,
        ComparisonOperator::NotEqual,
        ComparisonOperator::LessThan,
        ComparisonOperator::LessThanOrEqual,
        ComparisonOperator::GreaterThan,
        ComparisonOperator::GreaterThanOrEqual,
    ];

    /// The operators, in the order eq, ne, lt, le, gt, ge, that hold between a property and a
    /// literal.
    fn operators(property: &str, literal: impl Into<Value>) -> String {
        let literal = literal.into();
        OPERATORS
            .into_iter()
            .filter(|operator| holds(&Filter::comparison(property, *operator, literal.clone())))
            .map(ComparisonOperator::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn properties_compare_the_same_from_both_sides() {
        let values = [
            Value::from(39),
            Value::from(39_i64),
            Value::from(39.0),
            Value::from(40.5),
            Value::from("39"),
            Value::from(f64::NAN),
            Value::from(true),
        ];
        let is_number = |value: &Value| !matches!(value, Value::String(_) | Value::Boolean(_));
        for left in &values {
            for right in &values {
                let holds = |left: &Value, operator: ComparisonOperator, right: &Value| {
                    compare_properties(&left.as_ref(), operator, &right.as_ref())
                };
                for operator in OPERATORS {
                    let flipped = holds(right, operator.flipped(), left);
                    assert_eq!(
                        holds(left, operator, right),
                        flipped,
                        "{left:?} {operator} {right:?}"
                    );
                }
                let is_equal = holds(left, ComparisonOperator::Equal, right);
                assert_ne!(is_equal, holds(left, ComparisonOperator::NotEqual, right));
                if !is_number(left) && is_number(right) {
                    assert!(!is_equal, "{left:?} {right:?}");
                }
            }
        }
        let (int, double) = (values[0].as_ref(), values[2].as_ref());
        assert!(compare_properties(&int, ComparisonOperator::Equal, &double));
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

    #[test]
    fn all_terms_have_to_hold() {
        for bits in 0..8 {
            let terms = [0, 1, 2].map(|term| {
                let value = Filter::Constant(bits & (1 << term) != 0);
                value.clone().and(value).or(Filter::Constant(false))
            });
            let mut filter = CompiledFilter::new(&terms.each_ref());
            let holds = filter.holds(|_| Ok::<_, Infallible>(()));
            assert_eq!(holds, Ok((bits == 7, 0)), "{terms:?}");
        }
    }

    #[test]
    fn skipped_terms_do_not_change_the_value() {
        for shape in [
            "0 and 1 or 2 and (3 or 4) and 5",
            "0 or (1 and (2 or (3 and (4 or 5))))",
            "(((0 and 1) or 2) and 3 or 4) and 5",
            "not (0 or 1 and not (2 or 3)) or not (4 and 5)",
        ] {
            for bits in 0..64 {
                let constant = |text: String, term: u32| {
                    let value = bits & (1 << term) != 0;
                    text.replace(&term.to_string(), &value.to_string())
                };
                let text = (0..6).fold(shape.to_owned(), constant);
                let filter: Filter = text.parse().unwrap();
                let expected = filter.fold(|filter, terms: Vec<bool>| match filter {
                    Filter::And(_) => terms.iter().all(|term| *term),
                    Filter::Constant(value) => *value,
                    Filter::Not(_) => terms == [false],
                    _ => terms.contains(&true),
                });
                assert_eq!(holds(&filter), expected, "{text}");
            }
        }
    }
}
