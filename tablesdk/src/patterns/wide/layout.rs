//! How a wide entity is divided into entities of the service, and put together again.
//!
//! The properties are in the order of their names. The head has the first of them, and each sibling
//! those that follow. The head lists the first name of each sibling, so it shows which sibling has
//! a property. Nothing else depends on the type of the entity: a struct may get fields, and another
//! program may read it without the struct.

use bytes::Bytes;
use tablesdk_protocol::limits::{ENTITY_BYTES_MAX, PROPERTIES_MAX};
use tablesdk_protocol::wire::json::SYSTEM_PROPERTIES;
use tablesdk_protocol::{ETag, EdmType, EntityKey, KeyError, Timestamp, Value, ValueRef};

use super::entity::{PARTS, SIBLINGS_MAX, VERSION, WideEntity};
use super::read::WideContent;
use crate::entity::{
    EntityError, EntityProblem, ValueError, entity_bytes, property_bytes, whole_values, write_whole,
};
use crate::random::random_id;

/// The properties of a wide entity, divided into parts. The first part is the head.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) key: EntityKey,
    values: Vec<Vec<(String, Value)>>,
    /// The first names of the siblings.
    names: String,
}

/// The entities of one version, ready to be written.
pub(super) struct Encoded {
    pub(super) head: Bytes,
    pub(super) siblings: Vec<(EntityKey, Bytes)>,
    pub(super) version: String,
}

/// The head as it is known: its ETag, its version, and its siblings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Head {
    pub(super) etag: ETag,
    /// Absent of an entity that was not written as a wide one.
    pub(super) version: Option<String>,
    pub(super) siblings: Vec<EntityKey>,
    /// The first names of the siblings.
    names: Vec<String>,
}

/// An entity of the service as it was read.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: EntityKey,
    pub(super) etag: ETag,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) values: Vec<(String, Value)>,
}

impl Parts {
    /// Divides the properties of an entity.
    pub(super) fn of<E: WideEntity>(entity: &E) -> Result<Self, EntityError> {
        let key = entity.entity_key()?;
        let mut values = whole_values(|writer| entity.write(writer))?;
        values.sort_by(|(one, _), (other, _)| one.cmp(other));
        if let Some((name, _)) = values.iter().find(|(name, _)| is_own(name)) {
            let error =
                ValueError::unwritable("a wide entity has a property of its own under its name");
            return Err(EntityProblem::Value {
                property: name.clone(),
                error,
            }
            .into());
        }
        let mut names = String::new();
        let starts = loop {
            let starts = starts(&key, &values, &names)?;
            if starts.len() > SIBLINGS_MAX {
                let parts = starts.len() + 1;
                return Err(EntityProblem::TooWide {
                    parts,
                    max: SIBLINGS_MAX + 1,
                }
                .into());
            }
            let listed = names_at(&values, &starts);
            // The list of names takes bytes of the head itself.
            if listed.len() <= names.len() {
                names = listed;
                break starts;
            }
            names = listed;
        };
        let mut parts = Vec::new();
        for start in starts.into_iter().rev() {
            parts.push(values.split_off(start));
        }
        parts.push(values);
        parts.reverse();
        let this = Self {
            key,
            values: parts,
            names,
        };
        // A row key that is too long is reported before anything is sent.
        let version = String::new();
        this.siblings(&version).map_err(EntityError::from)?;
        Ok(this)
    }

    /// The entities of a new version.
    pub(super) fn encode(&self) -> Result<Encoded, EntityError> {
        let version = format!("{:016x}", random_id());
        let keys = self.siblings(&version)?;
        let own = [(VERSION, text(&version)), (PARTS, text(&self.names))];
        // Without siblings, there is no list.
        let own = own.into_iter().take(if keys.is_empty() { 1 } else { 2 });
        let mut parts = self.values.iter();
        let of_head = parts.next().into_iter().flatten();
        let head = write_whole(&self.key, own.chain(of_head.map(borrowed)));
        let siblings = keys.into_iter().zip(parts).map(|(key, values)| {
            let own = [(VERSION, text(&version))].into_iter();
            let body = write_whole(&key, own.chain(values.iter().map(borrowed)));
            (key, body)
        });
        Ok(Encoded {
            head,
            siblings: siblings.collect(),
            version,
        })
    }

    /// The keys of the siblings of a version.
    fn siblings(&self, version: &str) -> Result<Vec<EntityKey>, KeyError> {
        siblings(&self.key, version, self.values.len() - 1)
    }

    /// The entity as it is read with that head.
    pub(super) fn found(&self, head: Head) -> WideContent {
        let row = Row {
            key: self.key.clone(),
            etag: head.etag.clone(),
            timestamp: head.etag.timestamp(),
            values: self.values.iter().flatten().cloned().collect(),
        };
        WideContent::new(row, head)
    }

    /// The head of that version.
    pub(super) fn head(&self, encoded: &Encoded, etag: ETag) -> Head {
        let siblings = encoded.siblings.iter().map(|(key, _)| key.clone());
        Head {
            etag,
            version: Some(encoded.version.clone()),
            siblings: siblings.collect(),
            names: listed(&self.names),
        }
    }
}

/// The indexes at which siblings start, if the names of the siblings are that long.
fn starts(
    key: &EntityKey,
    values: &[(String, Value)],
    names: &str,
) -> Result<Vec<usize>, EntityError> {
    let of = |name, value: &ValueRef<'_>| {
        property_bytes(name, value).map_err(|error| EntityProblem::Value {
            property: name.to_owned(),
            error,
        })
    };
    let version = of(VERSION, &text("0123456789abcdef"))?;
    let (mut count, mut bytes) = (1, entity_bytes(key) + version);
    if !names.is_empty() {
        count += 1;
        bytes += of(PARTS, &text(names))?;
    }
    let sibling = entity_bytes(key) + SUFFIX_UNITS * 2 + version;
    let mut starts = Vec::new();
    for (index, (name, value)) in values.iter().enumerate() {
        let more = of(name, &value.as_ref())?;
        if count == PROPERTIES_MAX || bytes + more > ENTITY_BYTES_MAX {
            starts.push(index);
            (count, bytes) = (1, sibling);
        }
        count += 1;
        bytes += more;
    }
    Ok(starts)
}

fn names_at(values: &[(String, Value)], starts: &[usize]) -> String {
    let names = starts.iter().filter_map(|start| values.get(*start));
    let names: Vec<_> = names.map(|(name, _)| name.as_str()).collect();
    names.join(",")
}

fn listed(names: &str) -> Vec<String> {
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

impl Head {
    /// The head of an entity that is not written yet.
    pub(super) const fn unwritten(etag: ETag) -> Self {
        Self {
            etag,
            version: None,
            siblings: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Takes what a head says of its siblings from its properties.
    pub(super) fn take(row: &mut Row) -> Result<Self, EntityError> {
        let mut own = [(VERSION, None), (PARTS, None)];
        for (name, found) in &mut own {
            let index = row.values.iter().position(|(known, _)| known == name);
            if let Some(index) = index {
                let (name, value) = row.values.remove(index);
                *found = Some(text_of(name, value)?);
            }
        }
        let [(_, version), (_, names)] = own;
        let names = listed(&names.unwrap_or_default());
        let siblings = match &version {
            Some(version) => siblings(&row.key, version, names.len()).map_err(EntityError::from)?,
            None => Vec::new(),
        };
        Ok(Self {
            etag: row.etag.clone(),
            version,
            siblings,
            names,
        })
    }

    /// The parts that have the properties of these names, in order; 0 is the head.
    pub(super) fn parts_of(&self, names: &[String]) -> Vec<usize> {
        let names = names
            .iter()
            .filter(|name| !SYSTEM_PROPERTIES.contains(&name.as_str()));
        let of = |name: &String| self.names.partition_point(|first| first <= name);
        let mut parts: Vec<_> = names.map(of).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The error of a sibling that does not exist.
    pub(super) fn missing(&self, part: usize) -> EntityError {
        EntityProblem::MissingPart {
            part: part + 1,
            parts: self.siblings.len() + 1,
            version: self.version.clone().unwrap_or_default(),
        }
        .into()
    }
}

impl Row {
    /// Returns true if the entity is a sibling, of any version.
    pub(super) fn is_sibling(&self) -> bool {
        let version = self.values.iter().find(|(name, _)| name == VERSION);
        let Some((_, Value::String(version))) = version else {
            return false;
        };
        let row_key = self.key.row_key().as_str();
        let base = row_key
            .len()
            .checked_sub(version.len() + SUFFIX_UNITS - VERSION_UNITS);
        base.and_then(|base| row_key.get(base..))
            .is_some_and(|suffix| suffix.starts_with(&format!("{SEPARATOR}{version}{SEPARATOR}")))
    }
}

/// The keys of siblings.
fn siblings(key: &EntityKey, version: &str, count: usize) -> Result<Vec<EntityKey>, KeyError> {
    let start = sibling_start(key.row_key().as_str(), version);
    let keys = (1..=count)
        .map(|part| EntityKey::new(key.partition_key().as_str(), format!("{start}{part:02}")));
    keys.collect()
}

/// The start of the row keys of the siblings of a version.
pub(super) fn sibling_start(row_key: &str, version: &str) -> String {
    format!("{row_key}{SEPARATOR}{version}{SEPARATOR}")
}

/// Returns true if the client itself stores a property under the name.
pub(super) fn is_own(name: &str) -> bool {
    name == VERSION || name == PARTS
}

pub(super) fn text(text: &str) -> ValueRef<'_> {
    ValueRef::String(text.into())
}

fn borrowed((name, value): &(String, Value)) -> (&str, ValueRef<'_>) {
    (name, value.as_ref())
}

fn text_of(property: String, value: Value) -> Result<String, EntityError> {
    match value {
        Value::String(text) => Ok(text),
        value => {
            let error = ValueError::WrongType {
                expected: EdmType::String,
                found: value.edm_type(),
            };
            Err(EntityProblem::Value { property, error }.into())
        }
    }
}

/// Sorts before all other characters of a key but the space. So hardly another entity is between a
/// head and its siblings.
pub(super) const SEPARATOR: char = '!';
/// Sorts after the separator.
pub(super) const AFTER_SEPARATOR: char = '"';
const VERSION_UNITS: usize = 16;
/// The length of the end of a sibling's row key, after the row key of the head: two separators, the
/// version and two digits.
const SUFFIX_UNITS: usize = 1 + VERSION_UNITS + 1 + 2;
