//! Evaluates a filter for an entity, or for the name of a table.
//!
//! A filter is compiled once per query: each property that it names gets a slot, in which it is
//! looked for and read at most once per entity, when a term asks for it. So the cost per entity is
//! the sum of the sizes of entity and filter, never their product, but for terms that compare two
//! properties, which only the flavor Azurite has.
//!
//! The logic is two-valued: a comparison with a missing property is false, and `not` makes it true.
//! The protocol crate defines how a value compares with a literal. See
//! <https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities>.

use tablesdk_protocol::filter::{ComparisonOperator, Filter};
use tablesdk_protocol::wire::json::{SYSTEM_PROPERTIES, StoredLiteral};
use tablesdk_protocol::{Value, ValueRef, compare_utf16};

use super::entity_codec::Positions;
use super::slots::{Found, Slots, Values};
use super::view::EntityBytes;
use crate::storage::StorageError;

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
        let mut terms = terms.to_vec();
        // None of them has an effect, so that the first one may be the one that costs least.
        terms.sort_by_key(|term| term_cost(term));
        for term in &terms {
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
        let steps = steps(&terms, &slots);
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

    /// Evaluates the filter for a record, if that takes only comparisons with properties that are
    /// where they were in the entity before, and whose values need not be read.
    ///
    /// Properties are looked for in each term anew, which is faster than to remember what was
    /// found, unless there are many terms.
    #[inline]
    pub(super) fn glance(&self, record: &[u8]) -> Option<bool> {
        if self.steps.len() > GLANCE_STEPS_MAX {
            return None;
        }
        let properties = Positions::open(record).ok()?;
        // Most filters of properties are one comparison.
        if let [
            Step {
                test: Test::Compare(only),
                ..
            },
        ] = self.steps.as_slice()
        {
            return self.compares(only, properties);
        }
        let holds = evaluate(&self.steps, |test| match test {
            Test::Compare(comparison) => self.compares(comparison, properties).ok_or(()),
            _ => Err(()),
        });
        holds.ok()
    }

    /// The value of a comparison, if the property is where it was, and need not be read.
    #[inline]
    fn compares(&self, comparison: &Comparison<'_>, properties: Positions<'_>) -> Option<bool> {
        let stored = self.slots.glance(comparison.slot, properties)?;
        let ordering = comparison.literal.compare(stored)?;
        Some(comparison.operator.matches(ordering))
    }

    /// Evaluates the filter for an entity. Returns true if it holds, and the number of bytes that
    /// were copied.
    pub(super) fn holds(&mut self, entity: EntityBytes<'_>) -> Result<(bool, usize), StorageError> {
        let steps = &self.steps;
        self.slots.of_entity(entity, |values| {
            evaluate(steps, |test| test_values(test, values))
        })
    }

    /// Evaluates the filter for something that has one property alone.
    pub(super) fn holds_for(
        &mut self,
        name: &str,
        value: ValueRef<'_>,
    ) -> Result<bool, StorageError> {
        let steps = &self.steps;
        self.slots.of_property(name, value, |values| {
            evaluate(steps, |test| test_values(test, values))
        })
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
    Compare(Comparison<'f>),
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
}

/// The comparison of a property with a literal.
#[derive(Debug)]
struct Comparison<'f> {
    slot: usize,
    operator: ComparisonOperator,
    literal: StoredLiteral<'f>,
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
            Filter::Comparison(comparison) => Test::Compare(Comparison {
                slot: slot(&comparison.property),
                operator: comparison.operator,
                literal: StoredLiteral::new(&comparison.literal),
            }),
            Filter::Constant(value) => Test::Constant(*value),
            Filter::Not(_) => Test::Invert,
            Filter::Properties(comparison) => Test::CompareProperties {
                left: slot(&comparison.left),
                operator: comparison.operator,
                right: comparison.right.as_deref().map_or(usize::MAX, &slot),
            },
            Filter::Property(name) => Test::Compare(Comparison {
                slot: slot(name),
                operator: ComparisonOperator::Equal,
                literal: StoredLiteral::new(&Value::Boolean(true)),
            }),
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

/// The value of the filter, where `test` makes the value of a comparison.
#[inline]
fn evaluate<'t, 'f: 't, E>(
    steps: &'t [Step<'f>],
    mut test: impl FnMut(&'t Test<'f>) -> Result<bool, E>,
) -> Result<bool, E> {
    let mut value = true;
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        value = match &step.test {
            Test::Constant(constant) => *constant,
            Test::Invert => !value,
            comparison => test(comparison)?,
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
    Ok(value)
}

/// The value of a comparison.
fn test_values(test: &Test<'_>, values: &mut Values<'_, '_, '_>) -> Result<bool, StorageError> {
    match test {
        Test::Compare(comparison) => compare(values, comparison),
        Test::CompareProperties {
            left,
            operator,
            right,
        } => compare_slots(values, *left, *operator, *right),
        Test::Constant(_) | Test::Invert => Ok(false),
    }
}

fn compare(
    values: &mut Values<'_, '_, '_>,
    comparison: &Comparison<'_>,
) -> Result<bool, StorageError> {
    let ordering = match values.find(comparison.slot)? {
        Found::Absent => return Ok(false),
        Found::Read => None,
        Found::Stored(stored) => comparison.literal.compare(stored),
    };
    match ordering {
        Some(ordering) => Ok(comparison.operator.matches(ordering)),
        None => compare_read(values, comparison),
    }
}

/// The same for a value that has to be read.
fn compare_read(
    values: &mut Values<'_, '_, '_>,
    comparison: &Comparison<'_>,
) -> Result<bool, StorageError> {
    let literal = comparison.literal.value();
    let operator = comparison.operator;
    let value = values.read(comparison.slot)?;
    Ok(
        value.is_some_and(|value| match value.compare_to_literal(literal) {
            Some(ordering) => operator.matches(ordering),
            // SERVICE: assumed, as IEEE 754 has it: a NaN differs from everything, itself included.
            None => operator == ComparisonOperator::NotEqual,
        }),
    )
}

fn compare_slots(
    values: &mut Values<'_, '_, '_>,
    left: usize,
    operator: ComparisonOperator,
    right: usize,
) -> Result<bool, StorageError> {
    values.read(left)?;
    values.read(right)?;
    Ok(match (values.value(left), values.value(right)) {
        (Some(left), Some(right)) => compare_properties(left, operator, right),
        (None, None) => operator == ComparisonOperator::Equal,
        _ => false,
    })
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

/// About how much a term costs. Keys have to be read, and properties do not.
fn term_cost(term: &Filter) -> u64 {
    let own_cost = |filter: &Filter| match filter {
        Filter::Comparison(comparison) if SYSTEM_PROPERTIES.contains(&&*comparison.property) => {
            SYSTEM_COST + literal_cost(&comparison.literal)
        }
        Filter::Comparison(comparison) => TERM_COST + literal_cost(&comparison.literal),
        Filter::Properties(_) => PROPERTIES_COST,
        _ => 0,
    };
    term.fold(|filter, costs: Vec<u64>| {
        let own_cost = own_cost(filter);
        costs.into_iter().fold(own_cost, u64::saturating_add)
    })
}

fn cost(step: &Step<'_>) -> u64 {
    let literal = match &step.test {
        Test::Compare(comparison) => literal_cost(comparison.literal.value()),
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

/// A filter with more steps remembers where it found a property: its search may take as long as an
/// entity has properties.
const GLANCE_STEPS_MAX: usize = 16;

/// The approximate cost of a term.
const TERM_COST: u64 = 10;
/// The approximate cost of a comparison with a key or the timestamp.
const SYSTEM_COST: u64 = 100;
/// The cost of a comparison of two properties, whose lengths are not known before.
const PROPERTIES_COST: u64 = 10_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tablesdk_protocol::{EntityKey, Guid, Timestamp};

    use super::*;
    use crate::engine::entity_codec::{Properties, Record};
    use crate::engine::key_codec::{self, TableId};

    /// The key and the record of an entity.
    fn entity(properties: &[(&str, Value)]) -> (Vec<u8>, Vec<u8>) {
        let key = EntityKey::new("partition", "b").unwrap();
        let properties = properties.iter();
        let properties: Properties = properties
            .map(|(name, value)| (*name, value.as_ref()))
            .collect();
        (
            key_codec::entity_key(TableId(1), &key),
            properties.record(Timestamp::UNIX_EPOCH),
        )
    }

    fn evaluated(
        filter: &mut CompiledFilter<'_>,
        (key, record): &(Vec<u8>, Vec<u8>),
    ) -> Result<bool, StorageError> {
        let before = filter.glance(record);
        let (holds, _) = filter.holds(EntityBytes { key, record })?;
        assert!(before.is_none_or(|before| before == holds));
        // Now the properties are where they were.
        assert!(filter.glance(record).is_none_or(|after| after == holds));
        Ok(holds)
    }

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
        let mut holds =
            |properties: &[(&str, Value)]| evaluated(&mut filter, &entity(properties)).unwrap();
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
            let holds = evaluated(&mut filter, &entity(&[]));
            assert_eq!(holds, Ok(bits == 7), "{terms:?}");
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

    const NAMES: [&str; 6] = ["A", "B", "Count", "DepartmentOfStaff", "é", "A_1"];

    /// Few values of each type, so that they are often equal.
    fn value() -> impl Strategy<Value = Value> {
        let numbers = [-1, 0, 5, 12, 1_000_000_000];
        let numbers = || prop::sample::select(numbers.to_vec());
        let time = |ticks| Timestamp::from_unix_ticks(ticks).unwrap();
        let texts = ["", "a", "ab", "a\"", "a\\", "departments", "\u{E000}", "😀"];
        let doubles = [
            -1.0,
            0.0,
            -0.0,
            5.0,
            5.5,
            12.25,
            1e30,
            f64::NAN,
            f64::INFINITY,
        ];
        prop_oneof![
            numbers().prop_map(Value::Int32),
            numbers().prop_map(|number| Value::Int64(number.into())),
            numbers().prop_map(|number| Value::Int64(i64::from(number) << 33)),
            numbers().prop_map(move |number| Value::DateTime(time(number.into()))),
            prop::sample::select(doubles.to_vec()).prop_map(Value::Double),
            prop::sample::select(texts.to_vec()).prop_map(Value::from),
            Just(Value::String("x".repeat(300))),
            any::<bool>().prop_map(Value::Boolean),
            prop::collection::vec(0..2_u8, 0..4).prop_map(Value::Binary),
            (0..2_u8).prop_map(|byte| Value::Guid(Guid::from_bytes([byte; 16]))),
        ]
    }

    fn term() -> impl Strategy<Value = Filter> {
        let name = || prop::sample::select(&NAMES[..]);
        let key = prop::sample::select(&["PartitionKey", "RowKey"][..]);
        let operator = || prop::sample::select(&OPERATORS[..]);
        let time = prop_oneof![Just(Timestamp::UNIX_EPOCH), Just(Timestamp::MAX)];
        prop_oneof![
            8 => (name(), operator(), value())
                .prop_map(|(name, operator, value)| Filter::comparison(name, operator, value)),
            1 => (key, operator(), prop::sample::select(&["partition", "a", "b"][..]))
                .prop_map(|(name, operator, value)| Filter::comparison(name, operator, value)),
            1 => (operator(), time)
                .prop_map(|(operator, time)| Filter::comparison("Timestamp", operator, time)),
            1 => name().prop_map(|name| Filter::Property(name.to_owned())),
            1 => any::<bool>().prop_map(Filter::Constant),
        ]
    }

    fn filter() -> impl Strategy<Value = Filter> {
        term().prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(Filter::And),
                prop::collection::vec(inner.clone(), 1..4).prop_map(Filter::Or),
                inner.prop_map(|filter| !filter),
            ]
        })
    }

    fn properties() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
        let names = prop::sample::subsequence(&NAMES[..], 0..=NAMES.len()).prop_shuffle();
        (names, prop::collection::vec(value(), NAMES.len()))
            .prop_map(|(names, values)| names.into_iter().zip(values).collect())
    }

    /// The value of a filter for values that are all read.
    fn read_and_evaluated(filter: &Filter, properties: &BTreeMap<&str, Value>) -> bool {
        filter.fold(|filter, terms: Vec<bool>| match filter {
            Filter::And(_) => terms.iter().all(|term| *term),
            Filter::Or(_) => terms.contains(&true),
            Filter::Not(_) => terms == [false],
            Filter::Constant(value) => *value,
            Filter::Comparison(comparison) => {
                let stored = properties.get(&*comparison.property);
                stored.is_some_and(|value| {
                    match value.as_ref().compare_to_literal(&comparison.literal) {
                        Some(ordering) => comparison.operator.matches(ordering),
                        None => comparison.operator == ComparisonOperator::NotEqual,
                    }
                })
            }
            Filter::Property(name) => properties.get(&**name) == Some(&Value::Boolean(true)),
            Filter::Properties(_) => unreachable!("only literals are compared with"),
        })
    }

    fn with_system(properties: &[(&'static str, Value)]) -> BTreeMap<&'static str, Value> {
        let mut all: BTreeMap<_, _> = properties.iter().cloned().collect();
        all.insert("PartitionKey", Value::from("partition"));
        all.insert("RowKey", Value::from("b"));
        all.insert("Timestamp", Value::from(Timestamp::UNIX_EPOCH));
        all
    }

    /// The properties of a record, if it is one that a server writes for them.
    fn undamaged(record: &[u8]) -> Option<Vec<(&'static str, Value)>> {
        let read = Record::parse(record).ok()?;
        let values = read.values().map(|property| {
            let (name, value) = property.ok()?;
            let name = NAMES.iter().find(|known| **known == name)?;
            Some((*name, value.into_value()))
        });
        let properties: Vec<_> = values.collect::<Option<_>>()?;
        let names: BTreeMap<_, _> = properties.iter().cloned().collect();
        let is_whole = entity(&properties).1 == record && names.len() == properties.len();
        is_whole.then_some(properties)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_filter_holds_as_for_values_that_are_all_read(
            filters in prop::collection::vec(filter(), 1..4),
            entities in prop::collection::vec(properties(), 1..5),
            repeated in 1..3_usize,
        ) {
            let mut compiled = CompiledFilter::new(&filters.iter().collect::<Vec<_>>());
            for properties in entities.iter().flat_map(|entity| vec![entity; repeated]) {
                let all = with_system(properties);
                let expected = filters.iter().all(|filter| read_and_evaluated(filter, &all));
                let holds = evaluated(&mut compiled, &entity(properties));
                prop_assert_eq!(holds, Ok(expected), "{:?} and {:?}", &filters, properties);
            }
        }

        #[test]
        fn any_record_is_evaluated_or_refused(
            filter in filter(),
            properties in properties(),
            place: prop::sample::Index,
            byte: u8,
            end: prop::sample::Index,
            other: Vec<u8>,
        ) {
            let (key, record) = entity(&properties);
            let mut damaged = record.clone();
            damaged[place.index(record.len())] = byte;
            let mut cut = damaged.clone();
            cut.truncate(end.index(record.len()));
            let mut compiled = CompiledFilter::new(&[&filter]);
            for record in [&record, &damaged, &record, &cut, &other, &record] {
                let holds = evaluated(&mut compiled, &(key.clone(), record.clone()));
                if let Some(properties) = undamaged(record)
                    && record[1..9] == [0; 8]
                {
                    let all = with_system(&properties);
                    prop_assert_eq!(holds, Ok(read_and_evaluated(&filter, &all)));
                }
            }
        }
    }
}
