//! A property of entities, with a part for each of its types.

use std::cmp::Ordering;

use tablesdk::{EdmType, Value};
use tablesdk_protocol::ValueRef;

use super::count::{Count, Distinct};
use super::spread::{PARTS, Spread};

/// A property, with a part for each of its types.
#[derive(Clone, Debug)]
pub struct Property {
    name: String,
    types: Vec<TypeOfProperty>,
    distinct: Distinct,
    numbers: Spread,
    instants: Spread,
}

/// The values of one type that a property has.
#[derive(Clone, Debug)]
pub struct TypeOfProperty {
    entities: u64,
    smallest: Beginning,
    largest: Beginning,
    bytes: u64,
    bytes_min: usize,
    bytes_max: usize,
}

/// A value, or the beginning of a long one.
#[derive(Clone, Debug)]
struct Beginning {
    value: Value,
    is_cut: bool,
}

impl Property {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            types: Vec::new(),
            distinct: Distinct::default(),
            numbers: Spread::default(),
            instants: Spread::default(),
        }
    }

    /// Notes a value, by a hash of it as well.
    pub(super) fn note(&mut self, value: &ValueRef<'_>, hash: u64, room: &mut usize) {
        self.distinct.note(hash, room);
        match value {
            #[expect(clippy::cast_precision_loss, reason = "a bar is less precise")]
            ValueRef::DateTime(value) => self.instants.note(value.unix_ticks() as f64),
            ValueRef::Double(value) => self.numbers.note(*value),
            ValueRef::Int32(value) => self.numbers.note(f64::from(*value)),
            #[expect(clippy::cast_precision_loss, reason = "a bar is less precise")]
            ValueRef::Int64(value) => self.numbers.note(*value as f64),
            _ => {}
        }
        let mut types = self.types.iter_mut();
        match types.find(|it| it.edm_type() == value.edm_type()) {
            Some(known) => known.note(value),
            None => self.types.push(TypeOfProperty::new(value)),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types, in the order in which they were seen first. Most properties have one.
    pub fn types(&self) -> &[TypeOfProperty] {
        &self.types
    }

    /// How many entities have the property.
    pub fn entities(&self) -> u64 {
        self.types.iter().map(TypeOfProperty::entities).sum()
    }

    /// How many different values it has: exactly up to 10,000, and up to a million of all
    /// properties together.
    pub fn distinct(&self) -> Count {
        self.distinct.count()
    }

    /// Returns true if all entities are known to have different values.
    pub fn is_all_distinct(&self) -> bool {
        matches!(self.distinct(), Count::Exactly(count) if count as u64 == self.entities())
    }

    /// How many values are in each eighth between the smallest and the largest: numbers, or
    /// instants if there are more of them. Of more than 512 values, one close to the edge of an
    /// eighth may be counted in the next.
    pub fn histogram(&self) -> Option<[u64; PARTS]> {
        if self.instants.count() > self.numbers.count() {
            self.instants.parts()
        } else {
            self.numbers.parts()
        }
    }
}

impl TypeOfProperty {
    fn new(value: &ValueRef<'_>) -> Self {
        let bytes = value.counted_bytes();
        Self {
            entities: 1,
            smallest: Beginning::of(value),
            largest: Beginning::of(value),
            bytes: bytes as u64,
            bytes_min: bytes,
            bytes_max: bytes,
        }
    }

    fn note(&mut self, value: &ValueRef<'_>) {
        let bytes = value.counted_bytes();
        self.entities += 1;
        self.bytes += bytes as u64;
        self.bytes_min = self.bytes_min.min(bytes);
        self.bytes_max = self.bytes_max.max(bytes);
        if compare(value, &self.smallest.value) == Ordering::Less {
            self.smallest = Beginning::of(value);
        }
        if compare(value, &self.largest.value) == Ordering::Greater {
            self.largest = Beginning::of(value);
        }
    }

    /// The type.
    pub const fn edm_type(&self) -> EdmType {
        self.smallest.value.edm_type()
    }

    /// How many entities have the property with this type.
    pub const fn entities(&self) -> u64 {
        self.entities
    }

    /// The smallest value, as the service compares values of the type; of a long one its first 256
    /// characters or bytes.
    pub const fn smallest(&self) -> &Value {
        &self.smallest.value
    }

    /// The largest value, or its beginning.
    pub const fn largest(&self) -> &Value {
        &self.largest.value
    }

    /// Returns true if the smallest value is longer than the known part.
    pub const fn is_smallest_cut(&self) -> bool {
        self.smallest.is_cut
    }

    /// Returns true if the largest value is longer than the known part.
    pub const fn is_largest_cut(&self) -> bool {
        self.largest.is_cut
    }

    /// The bytes that a value takes in the service, on average.
    pub const fn bytes_mean(&self) -> u64 {
        self.bytes / self.entities
    }

    /// The bytes of the value that takes least.
    pub const fn bytes_min(&self) -> usize {
        self.bytes_min
    }

    /// The bytes of the value that takes most.
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

impl Beginning {
    fn of(value: &ValueRef<'_>) -> Self {
        let value = match value {
            ValueRef::String(text) => {
                let beginning: String = text.chars().take(BEGINNING).collect();
                let is_cut = beginning.len() < text.len();
                return Self {
                    value: Value::String(beginning),
                    is_cut,
                };
            }
            ValueRef::Binary(bytes) => {
                let beginning: Vec<_> = bytes.iter().take(BEGINNING).copied().collect();
                let is_cut = beginning.len() < bytes.len();
                return Self {
                    value: Value::Binary(beginning),
                    is_cut,
                };
            }
            other => other.clone().into_value(),
        };
        Self {
            value,
            is_cut: false,
        }
    }
}

/// Compares two values of one type as the service does. A NaN has a place, too.
fn compare(one: &ValueRef<'_>, other: &Value) -> Ordering {
    match (one, other) {
        (ValueRef::Double(one), Value::Double(other)) => one.total_cmp(other),
        _ => one.compare_to_literal(other).unwrap_or(Ordering::Equal),
    }
}

/// The characters or bytes that are kept of a long value. They suffice to recognize its form.
const BEGINNING: usize = 256;
