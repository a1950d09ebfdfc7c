//! What the entities of a table have in common, by those that were looked at. This module knows no requests.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use tablesdk::{DynamicEntity, EdmType, Value};

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
#[derive(Clone, Debug, Default)]
pub struct Schema {
    entities: u64,
    partitions: HashSet<String>,
    properties: Vec<Property>,
    /// The position of each property.
    positions: HashMap<String, usize>,
}

/// A property, with a part for each of its types.
#[derive(Clone, Debug)]
pub struct Property {
    name: String,
    types: Vec<TypeOfProperty>,
}

/// The values of one type that a property has.
#[derive(Clone, Debug)]
pub struct TypeOfProperty {
    entities: u64,
    smallest: Value,
    largest: Value,
    bytes: u64,
    bytes_max: usize,
}

impl Schema {
    /// Looks at one more entity.
    pub fn add(&mut self, entity: &DynamicEntity) {
        self.entities += 1;
        if !self.partitions.contains(entity.partition_key()) {
            self.partitions.insert(entity.partition_key().to_owned());
        }
        let key = |text: &str| Value::String(text.to_owned());
        self.note("PartitionKey", &key(entity.partition_key()));
        self.note("RowKey", &key(entity.row_key()));
        for (name, value) in entity.properties().iter() {
            self.note(name, value);
        }
    }

    fn note(&mut self, name: &str, value: &Value) {
        let next = self.properties.len();
        let position = match self.positions.get(name) {
            Some(position) => *position,
            None => {
                self.positions.insert(name.to_owned(), next);
                self.properties.push(Property {
                    name: name.to_owned(),
                    types: Vec::new(),
                });
                next
            }
        };
        if let Some(property) = self.properties.get_mut(position) {
            property.note(value);
        }
    }

    /// How many entities were looked at.
    pub const fn entities(&self) -> u64 {
        self.entities
    }

    /// How many partitions they are in.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The keys, and the properties in the order in which they were seen first.
    pub fn properties(&self) -> &[Property] {
        &self.properties
    }
}

impl Property {
    fn note(&mut self, value: &Value) {
        let bytes = value.as_ref().counted_bytes();
        let mut types = self.types.iter_mut();
        let known = types.find(|it| it.edm_type() == value.edm_type());
        if let Some(of_type) = known {
            of_type.entities += 1;
            of_type.bytes += bytes as u64;
            of_type.bytes_max = of_type.bytes_max.max(bytes);
            if compare(value, &of_type.smallest) == Ordering::Less {
                of_type.smallest = value.clone();
            }
            if compare(value, &of_type.largest) == Ordering::Greater {
                of_type.largest = value.clone();
            }
            return;
        }
        self.types.push(TypeOfProperty {
            entities: 1,
            smallest: value.clone(),
            largest: value.clone(),
            bytes: bytes as u64,
            bytes_max: bytes,
        });
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types, in the order in which they were seen first. Most properties have one.
    pub fn types(&self) -> &[TypeOfProperty] {
        &self.types
    }
}

impl TypeOfProperty {
    /// The type.
    pub const fn edm_type(&self) -> EdmType {
        self.smallest.edm_type()
    }

    /// How many entities have the property with this type.
    pub const fn entities(&self) -> u64 {
        self.entities
    }

    /// The smallest value, as the service compares values of the type.
    pub const fn smallest(&self) -> &Value {
        &self.smallest
    }

    /// The largest value.
    pub const fn largest(&self) -> &Value {
        &self.largest
    }

    /// The bytes that a value takes in the service, on average.
    pub const fn bytes_mean(&self) -> u64 {
        self.bytes / self.entities
    }

    /// The bytes of the value that takes most.
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

/// Compares two values of one type as the service does. A NaN has a place, too.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Double(one), Value::Double(other)) => one.total_cmp(other),
        _ => {
            let order = one.as_ref().compare_to_literal(other);
            order.unwrap_or(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!((schema.entities(), schema.partitions()), (4, 2));
        let properties = schema.properties().iter();
        let names: Vec<_> = properties.map(Property::name).collect();
        assert_eq!(names, ["PartitionKey", "RowKey", "Age", "Note"]);
        let types = schema.properties()[2].types().iter();
        let types: Vec<_> = types
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
    }
}
