//! Evaluates a filter for an entity, or for the name of a table.
//!
//! A filter is compiled once per query: each property that it names gets a slot, one pass over an entity fills the slots, and the
//! terms read only the slots. So the cost per entity is the sum of the sizes of entity and filter, never their product.
//!
//! The logic is two-valued: a comparison with a missing property is false, and `not` makes it true. The protocol crate defines how
//! a value compares with a literal. See
//! <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities>.

use std::cmp::Ordering;
use std::{mem, slice};

use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::{Value, ValueRef};

/// A filter made ready to be evaluated many times.
#[derive(Debug)]
pub(crate) struct CompiledFilter<'f> {
    steps: Vec<Step<'f>>,
    /// The properties that are looked at, each once, short names first: most names of other properties then differ at a
    /// glance. A slot is a place in this list.
    names: Vec<&'f str>,
    cost: u64,
    /// Empty between two evaluations; keeps its room.
    slots: Vec<Option<ValueRef<'static>>>,
}

impl<'f> CompiledFilter<'f> {
    /// Makes a filter ready.
    pub(crate) fn new(filter: &'f Filter) -> Self {
        let mut names: Vec<&str> = Vec::new();
        filter.fold(|filter, _: Vec<()>| match filter {
            Filter::Comparison(comparison) => names.push(&comparison.property),
            Filter::Property(name) => names.push(name),
            _ => {}
        });
        names.sort_unstable_by(|a, b| compare_names(a.as_bytes(), b.as_bytes()));
        names.dedup();
        let steps = steps(filter, &names);
        Self {
            cost: steps.iter().map(cost).fold(0, u64::saturating_add),
            steps,
            names,
            slots: Vec::new(),
        }
    }

    /// The most that one evaluation costs, in the unit of [`Work`](super::Work).
    pub(crate) const fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether the filter holds for the values that `fill` sets.
    pub(crate) fn holds<'v, E>(
        &mut self,
        fill: impl FnOnce(&mut Values<'_, 'v>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut slots = emptied(mem::take(&mut self.slots));
        slots.resize(self.names.len(), None);
        let mut values = Values {
            names: &self.names,
            missing: slots.len(),
            slots,
        };
        let filled = fill(&mut values);
        let holds = value_of(&self.steps, &values.slots);
        self.slots = emptied(values.slots);
        filled.map(|()| holds)
    }
}

/// The values that a filter reads. The caller sets them from an entity or a table.
pub(crate) struct Values<'s, 'v> {
    names: &'s [&'s str],
    slots: Vec<Option<ValueRef<'v>>>,
    missing: usize,
}

impl<'v> Values<'_, 'v> {
    /// Sets the value of a property, if the filter looks at it.
    pub(crate) fn set(&mut self, name: &str, value: ValueRef<'v>) {
        if let Some(slot) = self.slot(name.as_bytes()) {
            self.fill(slot, value);
        }
    }

    /// The slot of a property, if the filter looks at it.
    pub(crate) fn slot(&self, name: &[u8]) -> Option<usize> {
        let order = |known: &&str| compare_names(known.as_bytes(), name);
        self.names.binary_search_by(order).ok()
    }

    /// Sets the value of a slot.
    pub(crate) fn fill(&mut self, slot: usize, value: ValueRef<'v>) {
        if let Some(place) = self.slots.get_mut(slot)
            && place.replace(value).is_none()
        {
            self.missing -= 1;
        }
    }

    /// Whether every value is set that is looked at.
    pub(crate) const fn is_complete(&self) -> bool {
        self.missing == 0
    }
}

/// One step on the way to the value of a filter.
#[derive(Debug)]
enum Step<'f> {
    /// The value is that of a comparison.
    Compare {
        slot: usize,
        operator: ComparisonOperator,
        literal: &'f Value,
    },
    /// The value is this.
    Constant(bool),
    /// The value is the opposite.
    Invert,
    /// The value is whether the property is a Boolean that is true.
    IsTrue { slot: usize },
    /// Where the value is this, the steps before `to` change nothing.
    SkipIf { value: bool, to: usize },
}

/// The steps of a filter, in order. How deep it is nested takes no stack, here and when they are taken.
fn steps<'f>(filter: &'f Filter, names: &[&str]) -> Vec<Step<'f>> {
    let mut steps = Vec::new();
    let mut open = Vec::new();
    let mut current = Unfinished::new(filter, names, &mut steps);
    loop {
        if let Some(term) = current.rest.next() {
            if let (true, Some(value)) = (current.has_value, current.decided_by) {
                current.skips.push(steps.len());
                steps.push(Step::SkipIf { value, to: 0 });
            }
            current.has_value = true;
            let term = Unfinished::new(term, names, &mut steps);
            open.push(mem::replace(&mut current, term));
            continue;
        }
        if let Filter::Not(_) = current.filter {
            steps.push(Step::Invert);
        }
        let end = steps.len();
        for place in current.skips {
            if let Some(Step::SkipIf { to, .. }) = steps.get_mut(place) {
                *to = end;
            }
        }
        match open.pop() {
            Some(parent) => current = parent,
            None => return steps,
        }
    }
}

/// A filter of whose terms some have their steps.
struct Unfinished<'f> {
    filter: &'f Filter,
    rest: slice::Iter<'f, Filter>,
    /// Whether a term has its steps.
    has_value: bool,
    /// The value of a term that makes the others needless.
    decided_by: Option<bool>,
    /// The steps that skip the rest.
    skips: Vec<usize>,
}

impl<'f> Unfinished<'f> {
    /// Begins with a filter. One without terms has its step at once.
    fn new(filter: &'f Filter, names: &[&str], steps: &mut Vec<Step<'f>>) -> Self {
        let slot = |name: &str| {
            let order = |known: &&str| compare_names(known.as_bytes(), name.as_bytes());
            names.binary_search_by(order).unwrap_or(usize::MAX)
        };
        let mut decided_by = None;
        match filter {
            Filter::And(terms) | Filter::Or(terms) => {
                let is_or = matches!(filter, Filter::Or(_));
                decided_by = Some(is_or);
                if terms.is_empty() {
                    steps.push(Step::Constant(!is_or));
                }
            }
            Filter::Comparison(comparison) => steps.push(Step::Compare {
                slot: slot(&comparison.property),
                operator: comparison.operator,
                literal: &comparison.literal,
            }),
            Filter::Constant(value) => steps.push(Step::Constant(*value)),
            Filter::Not(_) => {}
            Filter::Property(name) => steps.push(Step::IsTrue { slot: slot(name) }),
        }
        Self {
            filter,
            rest: filter.terms().iter(),
            has_value: false,
            decided_by,
            skips: Vec::new(),
        }
    }
}

/// Takes the steps.
fn value_of(steps: &[Step<'_>], slots: &[Option<ValueRef<'_>>]) -> bool {
    let stored = |slot: usize| slots.get(slot).and_then(Option::as_ref);
    let mut value = true;
    let mut next = 0;
    while let Some(step) = steps.get(next) {
        next += 1;
        match step {
            Step::Compare {
                slot,
                operator,
                literal,
            } => {
                value = stored(*slot).is_some_and(|stored| compare(stored, *operator, literal));
            }
            Step::Constant(constant) => value = *constant,
            Step::Invert => value = !value,
            Step::IsTrue { slot } => value = stored(*slot) == Some(&ValueRef::Boolean(true)),
            Step::SkipIf { value: skips, to } => {
                if value == *skips {
                    // Always forward, so that the walk ends.
                    next = next.max(*to);
                }
            }
        }
    }
    value
}

fn compare(value: &ValueRef<'_>, operator: ComparisonOperator, literal: &Value) -> bool {
    match value.compare_to_literal(literal) {
        Some(ordering) => operator.matches(ordering),
        // SERVICE: assumed, as IEEE 754 has it: a NaN differs from everything, itself included.
        None => operator == ComparisonOperator::NotEqual,
    }
}

fn cost(step: &Step<'_>) -> u64 {
    match step {
        Step::Compare { literal, .. } => TERM_COST + literal_cost(literal),
        _ => TERM_COST,
    }
}

fn compare_names(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Comparing with a text or bytes takes as long as they agree, which is at most as long as the literal is.
fn literal_cost(literal: &Value) -> u64 {
    let bytes = match literal {
        Value::Binary(bytes) => bytes.len(),
        Value::String(text) => text.len(),
        _ => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The same room for values of another lifetime. The standard library collects a vector that it takes apart in place.
fn emptied<'b>(mut slots: Vec<Option<ValueRef<'_>>>) -> Vec<Option<ValueRef<'b>>> {
    slots.clear();
    slots.into_iter().map(|_| None).collect()
}

/// What a term costs, roughly.
const TERM_COST: u64 = 10;

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
        let mut filter = CompiledFilter::new(filter);
        let mut holds = |properties: &[(&str, Value)]| {
            let holds = filter.holds(|values| {
                for (name, value) in properties {
                    values.set(name, value.as_ref());
                }
                Ok::<_, Infallible>(())
            });
            holds.unwrap()
        };
        let first = holds(&properties);
        // Nothing of one entity is left when the next one comes.
        let without = holds(&[]);
        assert_eq!((holds(&properties), holds(&[])), (first, without));
        first
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
