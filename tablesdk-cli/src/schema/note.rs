//! The remarkable facts about a property, with advice.

use std::fmt;

use tablesdk::{EdmType, Value};

use super::property::{Property, TypeOfProperty};

/// Something remarkable about a property.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// It has values of several types: that of most of them, and the others.
    SeveralTypes(EdmType, Vec<EdmType>),
    /// It has integers that a double cannot hold.
    BeyondDouble,
    /// No two entities have the same value, so that it could have a unique index.
    UniqueIndex,
    /// Only entities of this kind have it.
    OnlyKind(String),
}

impl Note {
    /// The notes about a property of this number of entities.
    pub(super) fn all(property: &Property, entities: u64) -> Vec<Self> {
        let notes = [
            several_types(property),
            is_beyond_double(property).then_some(Self::BeyondDouble),
            is_unique(property, entities).then_some(Self::UniqueIndex),
        ];
        notes.into_iter().flatten().collect()
    }

    /// Returns true if a program fails that does not know of it.
    pub const fn is_warning(&self) -> bool {
        matches!(self, Self::SeveralTypes(..) | Self::BeyondDouble)
    }

    /// The advice to a programmer.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::SeveralTypes(..) => {
                "A filter compares a property with a literal of one type, and skips entities in which the property has another type. \
                 Write it with one type, and store the others again."
            }
            Self::BeyondDouble => {
                "JavaScript and other programs that read numbers as doubles lose digits of integers beyond 9,007,199,254,740,992. \
                 Read them as text or as 64-bit integers."
            }
            Self::UniqueIndex => {
                "No two entities of the sample have the same value. A unique index finds an entity by it with one point read: \
                 #[table(index(…, unique))]."
            }
            Self::OnlyKind(_) => "Entities of other kinds lack it.",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralTypes(most, others) => {
                let others: Vec<_> = others.iter().map(|it| short(*it)).collect();
                let (count, most) = (words(others.len() + 1), short(*most));
                write!(
                    f,
                    "{count} types: a filter on {most} skips {}",
                    others.join(", ")
                )
            }
            Self::BeyondDouble => f.write_str("beyond 2⁵³: JavaScript loses digits"),
            Self::UniqueIndex => f.write_str("could be a unique index"),
            Self::OnlyKind(kind) => write!(f, "only {kind}"),
        }
    }
}

/// The name of a type without `Edm.`.
pub(super) fn short(edm_type: EdmType) -> &'static str {
    let name = edm_type.as_str();
    name.strip_prefix("Edm.").unwrap_or(name)
}

const fn words(count: usize) -> &'static str {
    match count {
        2 => "two",
        3 => "three",
        _ => "several",
    }
}

fn several_types(property: &Property) -> Option<Note> {
    let mut types: Vec<_> = property.types().iter().collect();
    types.sort_by_key(|it| std::cmp::Reverse(it.entities()));
    let (most, others) = types.split_first()?;
    let others: Vec<_> = others.iter().map(|it| it.edm_type()).collect();
    (!others.is_empty()).then(|| Note::SeveralTypes(most.edm_type(), others))
}

fn is_beyond_double(property: &Property) -> bool {
    let is_beyond = |value: &Value| match value {
        Value::Int64(value) => value.unsigned_abs() > DOUBLE_MAX,
        _ => false,
    };
    let mut types = property.types().iter();
    types.any(|it| is_beyond(it.smallest()) || is_beyond(it.largest()))
}

/// Returns true if a property looks like an identifier: one type with short values, all of them
/// different, in most entities.
fn is_unique(property: &Property, entities: u64) -> bool {
    let is_identifier = |it: &TypeOfProperty| {
        let edm_type = it.edm_type();
        let can_be = matches!(
            edm_type,
            EdmType::Guid | EdmType::Int32 | EdmType::Int64 | EdmType::String
        );
        can_be && it.bytes_max() <= IDENTIFIER_BYTES_MAX && it.bytes_min() > EMPTY_BYTES
    };
    let is_key = matches!(property.name(), "PartitionKey" | "RowKey");
    let count = property.entities();
    !is_key
        && matches!(property.types(), [one] if is_identifier(one))
        && count >= CERTAIN
        && 2 * count >= entities
        && property.is_all_distinct()
}

/// The largest integer up to which a double holds all of them.
const DOUBLE_MAX: u64 = 1 << 53;
/// A text of 128 characters, as the service counts it.
const IDENTIFIER_BYTES_MAX: usize = 4 + 2 * 128;
/// An int of 4 bytes is a value, and a text of 4 bytes is empty.
const EMPTY_BYTES: usize = 3;
/// So many values that differ are no coincidence.
const CERTAIN: u64 = 10;
