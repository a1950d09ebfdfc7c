//! The common schema of the entities of a table that were looked at. This module knows no requests.
//!
//! Its memory is bounded, however many entities there are: each part says by what.

mod count;
mod note;
mod partitions;
mod property;
mod sizes;
mod spread;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use tablesdk::{DynamicEntity, EdmType};
use tablesdk_protocol::ValueRef;

use crate::own::RESERVED;
use crate::sampling::Gather;

pub use self::count::Count;
pub use self::note::Note;
use self::partitions::Partitions;
pub use self::property::{Property, TypeOfProperty};
pub use self::sizes::{Largest, Sizes};

/// The properties of entities.
///
/// ```
/// use tablesdk::DynamicEntity;
/// use tablesdk_cli::schema::Schema;
///
/// let mut schema = Schema::default();
/// for age in [36, 45] {
///     schema.add(&DynamicEntity::new("Sales", age.to_string()).with("Age", age));
/// }
/// let [_, _, age] = schema.properties() else {
///     panic!("the keys are properties, too");
/// };
/// assert_eq!((age.name(), age.types()[0].entities()), ("Age", 2));
/// ```
#[derive(Clone, Debug)]
pub struct Schema {
    entities: u64,
    partitions: Partitions,
    properties: Vec<Property>,
    /// The position of each property.
    positions: HashMap<String, usize>,
    left_out: u64,
    sizes: Sizes,
    hasher: RandomState,
    /// How many more different values can be told apart.
    room: usize,
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            entities: 0,
            partitions: Partitions::default(),
            properties: Vec::new(),
            positions: HashMap::new(),
            left_out: 0,
            sizes: Sizes::default(),
            hasher: RandomState::new(),
            room: count::ROOM,
        }
    }
}

impl Schema {
    /// Looks at one more entity.
    pub fn add(&mut self, entity: &DynamicEntity) {
        self.entities += 1;
        let (partition, row) = (entity.partition_key(), entity.row_key());
        let hash = self.hasher.hash_one(partition);
        self.partitions.note(partition, hash);
        self.sizes.note(entity);
        let key = |text| ValueRef::String(Cow::Borrowed(text));
        self.note("PartitionKey", &key(partition));
        self.note("RowKey", &key(row));
        for (name, value) in entity.properties().iter() {
            self.note(name, &value.as_ref());
        }
    }

    fn note(&mut self, name: &str, value: &ValueRef<'_>) {
        let next = self.properties.len();
        let position = match self.positions.get(name) {
            Some(position) => *position,
            None if next == PROPERTIES_MAX => {
                self.left_out += 1;
                return;
            }
            None => {
                self.positions.insert(name.to_owned(), next);
                self.properties.push(Property::new(name));
                next
            }
        };
        let hash = self.hash(value);
        if let Some(property) = self.properties.get_mut(position) {
            property.note(value, hash, &mut self.room);
        }
    }

    /// The hash of a value of any type.
    fn hash(&self, value: &ValueRef<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        value.edm_type().as_str().hash(&mut hasher);
        match value {
            ValueRef::Binary(bytes) => bytes.hash(&mut hasher),
            ValueRef::Boolean(value) => value.hash(&mut hasher),
            ValueRef::DateTime(value) => value.hash(&mut hasher),
            ValueRef::Double(value) => value.to_bits().hash(&mut hasher),
            ValueRef::Guid(value) => value.hash(&mut hasher),
            ValueRef::Int32(value) => value.hash(&mut hasher),
            ValueRef::Int64(value) => value.hash(&mut hasher),
            ValueRef::String(text) => text.hash(&mut hasher),
        }
        hasher.finish()
    }

    /// How many entities were looked at.
    pub const fn entities(&self) -> u64 {
        self.entities
    }

    /// How many partitions they are in: exactly up to 100,000.
    pub fn partitions(&self) -> Count {
        self.partitions.count()
    }

    /// The partition with most of the entities, and their number.
    pub fn largest_partition(&self) -> Option<(&str, u64)> {
        self.partitions.largest()
    }

    /// Returns true if one of at least three partitions has most of the entities.
    pub fn has_hot_partition(&self) -> bool {
        let is_most = |(_, count)| 2 * count > self.entities;
        self.partitions().at_least() >= HOT_OF && self.largest_partition().is_some_and(is_most)
    }

    /// The keys, and the properties in the order in which they were seen first: at most 10,000.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }

    /// How many values of further properties were left out.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The sizes of the entities.
    pub const fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The remarkable facts about a property.
    pub fn notes(&self, property: &Property) -> Vec<Note> {
        Note::all(property, self.entities)
    }
}

impl Gather for Schema {
    /// Leaves out what no query returns.
    fn gather(&mut self, entity: &DynamicEntity) {
        if !entity.row_key().starts_with(RESERVED) {
            self.add(entity);
        }
    }

    fn gathered(&self) -> usize {
        usize::try_from(self.entities).unwrap_or(usize::MAX)
    }
}

/// The name of a type without `Edm.`.
pub fn short_name(edm_type: EdmType) -> &'static str {
    note::short(edm_type)
}

/// Entities of one kind have 252 properties at most.
const PROPERTIES_MAX: usize = 10_000;
/// The fewest partitions of which one can be hot: of two, one is the larger by chance.
const HOT_OF: usize = 3;

#[cfg(test)]
mod tests {
    use tablesdk::Value;

    use super::*;

    #[test]
    fn each_type_of_a_property_has_its_own_numbers() {
        let mut schema = Schema::default();
        let mixed = [Value::Int32(7), Value::Int32(-1), Value::String("ä".into())];
        for (row, value) in mixed.into_iter().enumerate() {
            let mut entity = DynamicEntity::new("Sales", row.to_string());
            entity.properties_mut().set("Age", value);
            schema.add(&entity);
        }
        schema.add(&DynamicEntity::new("Other", "0").with("Note", ""));
        assert_eq!(schema.entities(), 4);
        assert_eq!(schema.partitions(), Count::Exactly(2));
        assert_eq!(schema.largest_partition(), Some(("Sales", 3)));
        let properties = schema.properties().iter();
        let names: Vec<_> = properties.map(Property::name).collect();
        assert_eq!(names, ["PartitionKey", "RowKey", "Age", "Note"]);
        let [_, _, age, _] = schema.properties() else {
            panic!("there are four");
        };
        let types: Vec<_> = age
            .types()
            .iter()
            .map(|it| {
                (
                    it.entities(),
                    it.smallest().clone(),
                    it.largest().clone(),
                    it.bytes_max(),
                )
            })
            .collect();
        let text = Value::String("ä".into());
        assert_eq!(
            types,
            [
                (2, Value::Int32(-1), Value::Int32(7), 4),
                (1, text.clone(), text, 6)
            ]
        );
        assert_eq!((age.entities(), age.distinct()), (3, Count::Exactly(3)));
        assert_eq!(age.histogram(), Some([1, 0, 0, 0, 0, 0, 0, 1]));
    }

    #[test]
    fn of_a_long_value_the_beginning_is_kept() {
        let mut schema = Schema::default();
        for (row, byte) in [1, 3, 2].into_iter().enumerate() {
            let text = "xyz"
                .get(..usize::from(byte))
                .expect("it is shorter")
                .repeat(10_000);
            let entity = DynamicEntity::new("p", row.to_string()).with("Text", text);
            schema.add(&entity.with("Photo", vec![byte; 60_000]));
        }
        let [_, _, text, photo] = schema.properties() else {
            panic!("there are four");
        };
        let [text, photo] = [text, photo].map(|it| it.types().first().expect("it has one"));
        assert_eq!(*text.smallest(), Value::String("x".repeat(256)));
        let Value::String(largest) = text.largest() else {
            panic!("it is text");
        };
        assert!(largest.starts_with("xyz") && largest.len() == 256);
        assert!(text.is_smallest_cut() && text.is_largest_cut());
        assert_eq!(*photo.largest(), Value::Binary(vec![3; 256]));
        assert_eq!((photo.bytes_min(), photo.bytes_max()), (60_004, 60_004));
        let row = schema
            .properties()
            .first()
            .and_then(|it| it.types().first());
        assert!(row.is_some_and(|it| !it.is_smallest_cut()));
    }

    #[test]
    fn what_is_remarkable_is_noted() {
        let mut schema = Schema::default();
        for number in 0..20 {
            let mut entity = DynamicEntity::new("p", number.to_string())
                .with("Email", format!("{number}@contoso.com"))
                .with("Text", "x".repeat(129 + number))
                .with("Name", format!("{}", number % 19))
                .with("Badge", (1_i64 << 53) + i64::from(number == 7));
            let salary = match number {
                0 => Value::Int32(1),
                _ => Value::Double(0.5),
            };
            entity.properties_mut().set("Salary", salary);
            if number < 9 {
                entity.properties_mut().set("Rare", Value::Int32(9 - 1));
            }
            schema.add(&entity);
        }
        let notes = schema.properties().iter().flat_map(|property| {
            let notes = schema.notes(property).into_iter();
            notes.map(|note| format!("{}: {note}", property.name()))
        });
        let mut notes: Vec<_> = notes.collect();
        notes.sort();
        assert_eq!(
            notes,
            [
                "Badge: beyond 2⁵³: JavaScript loses digits",
                "Email: could be a unique index",
                "Salary: two types: a filter on Double skips Int32",
            ]
        );
        assert!(!schema.has_hot_partition());
        for partition in ["a", "b", "c"] {
            schema.add(&DynamicEntity::new(partition, ""));
        }
        assert!(schema.has_hot_partition());
    }

    #[test]
    fn properties_beyond_the_bound_are_counted() {
        let mut schema = Schema::default();
        for row in 0..101 {
            let mut entity = DynamicEntity::new("p", row.to_string());
            for number in 0..100 {
                let name = format!("P{row}_{number}");
                entity.properties_mut().set(name, Value::Boolean(true));
            }
            schema.add(&entity);
        }
        assert_eq!(schema.properties().len(), PROPERTIES_MAX);
        assert_eq!(schema.left_out(), 102);
    }
}
