//! The type of the field that reads a property, and what is said about it. This file knows nothing
//! of keys.

use std::collections::BTreeSet;

use tablesdk::{DynamicEntity, EdmType, Value};
use tablesdk_protocol::check_property_name;

use super::columns::Column;
use super::sample::TEXT_MAX;
use crate::schema::{Property, TypeOfProperty};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    Plain(EdmType),
    /// Int32 in some entities and Int64 in others.
    MixedIntegers,
    /// Int32 in some entities and Double in others, as programs in JavaScript write numbers.
    Number,
}

impl FieldType {
    /// The type that reads all values of the property. `None` if no field does.
    pub(super) fn of(property: &Property) -> Option<Self> {
        check_property_name(property.name()).ok()?;
        let types = property.types().iter().map(TypeOfProperty::edm_type);
        let mut types: Vec<_> = types.collect();
        types.sort_by_key(|edm_type| edm_type.as_str());
        match types.as_slice() {
            [one] => Some(Self::Plain(*one)),
            [EdmType::Int32, EdmType::Int64] => Some(Self::MixedIntegers),
            [EdmType::Double, EdmType::Int32] => Some(Self::Number),
            _ => None,
        }
    }

    pub(super) const fn rust(self) -> &'static str {
        match self {
            Self::Plain(EdmType::Binary) => "Vec<u8>",
            Self::Plain(EdmType::Boolean) => "bool",
            Self::Plain(EdmType::DateTime) => "Timestamp",
            Self::Plain(EdmType::Double) => "f64",
            Self::Plain(EdmType::Guid) => "Guid",
            Self::Plain(EdmType::Int32) => "i32",
            Self::Plain(EdmType::Int64) | Self::MixedIntegers => "i64",
            Self::Number => "Number",
            Self::Plain(_) => "String",
        }
    }

    /// Returns true if a field of this type reads the value.
    pub(super) fn reads(self, value: &Value) -> bool {
        match self {
            Self::Plain(edm_type) => value.edm_type() == edm_type,
            Self::MixedIntegers => matches!(value, Value::Int32(_) | Value::Int64(_)),
            Self::Number => matches!(value, Value::Int32(_) | Value::Double(_)),
        }
    }
}

/// The number of entities that have a property.
pub(super) fn count(property: &Property) -> u64 {
    property.types().iter().map(TypeOfProperty::entities).sum()
}

/// The smallest and the largest value, if they say something.
pub(super) fn range(property: &Property) -> Option<String> {
    let ranges = property.types().iter().map(|of_type| {
        let (smallest, largest) = (text(of_type.smallest())?, text(of_type.largest())?);
        Some(match (of_type.entities(), smallest == largest) {
            (1, _) => smallest,
            (_, true) => format!("always {smallest}"),
            (_, false) => format!("{smallest} to {largest}"),
        })
    });
    let ranges = ranges.collect::<Option<Vec<_>>>()?;
    let types = property.types().iter().map(|it| it.edm_type().as_str());
    let texts = ranges.iter().zip(types);
    Some(match ranges.as_slice() {
        [one] => one.clone(),
        _ => {
            let texts = texts.map(|(range, edm_type)| format!("`{edm_type}` {range}"));
            texts.collect::<Vec<_>>().join(", ")
        }
    })
}

/// A number or an instant.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::DateTime(value) => Some(value.to_string()),
        Value::Double(value) => Some(format!("{value:?}")),
        Value::Int32(value) => Some(value.to_string()),
        Value::Int64(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The key that a property repeats, in words. Strings that are cut do not equal it.
pub(super) fn same_as_key(entities: &[&DynamicEntity], column: &Column<'_>) -> Option<String> {
    let is_same = |key: fn(&DynamicEntity) -> &str| {
        column.values.iter().all(|(entity, value)| {
            let key = entities.get(*entity).map(|it| key(it));
            let Value::String(value) = value else {
                return false;
            };
            key == Some(value) && value.chars().count() < TEXT_MAX
        })
    };
    if is_same(DynamicEntity::partition_key) {
        return Some("the same as the partition key".to_owned());
    }
    is_same(DynamicEntity::row_key).then(|| "the same as the row key".to_owned())
}

/// The strings of a property, if they are few and harmless in a comment.
pub(super) fn values(column: &Column<'_>) -> Option<String> {
    let mut seen = BTreeSet::new();
    for (_, value) in &column.values {
        let Value::String(value) = value else {
            return None;
        };
        seen.insert(value.as_str());
        if seen.len() > VALUES_MAX || !is_word(value) {
            return None;
        }
    }
    let seen: Vec<_> = seen.iter().map(|value| format!("`{value}`")).collect();
    match seen.as_slice() {
        [one] if column.values.len() > 1 => Some(format!("always {one}")),
        _ if column.values.len() >= 2 * seen.len() => Some(seen.join(", ")),
        _ => None,
    }
}

fn is_word(value: &str) -> bool {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.');
    !value.is_empty() && value.len() <= VALUE_MAX && value.chars().all(is_harmless)
}

/// More are hardly the names of something.
const VALUES_MAX: usize = 6;
const VALUE_MAX: usize = 24;
