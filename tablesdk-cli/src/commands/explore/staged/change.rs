//! One staged change of an entity.

use std::collections::BTreeSet;

use tablesdk::{DynamicEntity, ETag, Properties, Value};
use tablesdk_cli::lines::entity_json;
use tablesdk_cli::own::renewed;

use crate::room::change_bytes;

/// The entity that a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) table: String,
    pub(crate) partition: String,
    pub(crate) row: String,
}

impl Target {
    pub(crate) fn new(
        table: impl Into<String>,
        partition: impl Into<String>,
        row: impl Into<String>,
    ) -> Self {
        Self {
            table: table.into(),
            partition: partition.into(),
            row: row.into(),
        }
    }

    fn of(table: &str, entity: &DynamicEntity) -> Self {
        Self::new(table, entity.partition_key(), entity.row_key())
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.is_of(&other.table, &other.partition, &other.row)
    }

    pub(crate) fn is_of(&self, table: &str, partition: &str, row: &str) -> bool {
        self.row == row && self.partition == partition && self.table.eq_ignore_ascii_case(table)
    }
}

/// The write of a staged change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    Insert(DynamicEntity),
    /// The changed properties alone.
    Merge(DynamicEntity, ETag),
    Replace(DynamicEntity, ETag),
    Delete(ETag),
}

/// The version that a change rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Base {
    pub(crate) etag: ETag,
    pub(crate) entity: DynamicEntity,
}

impl Base {
    pub(crate) const fn new(etag: ETag, entity: DynamicEntity) -> Self {
        Self { etag, entity }
    }
}

/// A change of one entity, under the ETag of the version that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) target: Target,
    pub(crate) write: Write,
    /// The version that was read. A delete of a selected row does not have it.
    pub(crate) base: Option<DynamicEntity>,
    /// The repairs of other entities that are needed afterwards, if the change is forced.
    pub(crate) mends: BTreeSet<String>,
}

impl Change {
    pub(crate) fn insert(table: &str, entity: DynamicEntity) -> Self {
        Self {
            target: Target::of(table, &entity),
            write: Write::Insert(written(entity)),
            base: None,
            mends: BTreeSet::new(),
        }
    }

    pub(crate) const fn delete(target: Target, etag: ETag, base: Option<DynamicEntity>) -> Self {
        Self {
            target,
            write: Write::Delete(etag),
            base,
            mends: BTreeSet::new(),
        }
    }

    /// Deletes the entity as it was read.
    pub(crate) fn delete_of(table: &str, base: Base) -> Self {
        Self::delete(
            Target::of(table, &base.entity),
            base.etag,
            Some(base.entity),
        )
    }

    /// Replaces all properties.
    pub(crate) fn replace(table: &str, entity: DynamicEntity, base: Base) -> Self {
        Self {
            target: Target::of(table, &entity),
            write: Write::Replace(written(entity), base.etag),
            base: Some(base.entity),
            mends: BTreeSet::new(),
        }
    }

    /// Merges the properties that differ. If one was removed, no merge can say so, and the change
    /// is a replace. `None` if nothing differs.
    pub(crate) fn edit(table: &str, entity: DynamicEntity, base: Base) -> Option<Self> {
        let difference = Difference::of(base.entity.properties(), entity.properties());
        if difference.is_empty() {
            return None;
        }
        if !difference.removed.is_empty() {
            return Some(Self::replace(table, entity, base));
        }
        let changed = entity.with_properties(difference.set.into_iter().collect());
        let changed = without_time(changed);
        Some(Self {
            target: Target::of(table, &changed),
            write: Write::Merge(changed, base.etag),
            base: Some(base.entity),
            mends: BTreeSet::new(),
        })
    }

    /// The method of the request.
    pub(crate) const fn verb(&self) -> &'static str {
        match self.write {
            Write::Insert(_) => "POST",
            Write::Merge(..) => "MERGE",
            Write::Replace(..) => "PUT",
            Write::Delete(_) => "DELETE",
        }
    }

    /// The change in a word.
    pub(crate) const fn name(&self) -> &'static str {
        match self.write {
            Write::Insert(_) => "insert",
            Write::Merge(..) => "merge",
            Write::Replace(..) => "replace",
            Write::Delete(_) => "delete",
        }
    }

    /// The version that must be stored. An insert has none.
    pub(crate) const fn etag(&self) -> Option<&ETag> {
        match &self.write {
            Write::Insert(_) => None,
            Write::Merge(_, etag) | Write::Replace(_, etag) | Write::Delete(etag) => Some(etag),
        }
    }

    /// The entity in the request; a delete has none.
    pub(crate) const fn sent(&self) -> Option<&DynamicEntity> {
        match &self.write {
            Write::Insert(entity) | Write::Merge(entity, _) | Write::Replace(entity, _) => {
                Some(entity)
            }
            Write::Delete(_) => None,
        }
    }

    /// The entity as it is to be. `None` for a delete.
    pub(crate) fn wanted(&self) -> Option<DynamicEntity> {
        let sent = self.sent()?;
        let (Write::Merge(..), Some(base)) = (&self.write, &self.base) else {
            return Some(sent.clone());
        };
        let mut wanted = base.clone();
        for (name, value) in sent.properties().iter() {
            wanted.properties_mut().set(name, value.clone());
        }
        Some(wanted)
    }

    /// The changes to the version that was read.
    pub(crate) fn difference(&self) -> Difference {
        let none = Properties::new();
        let base = self.base.as_ref().map_or(&none, DynamicEntity::properties);
        match (&self.write, self.sent()) {
            (Write::Merge(..), Some(sent)) => Difference {
                set: owned(sent.properties().iter()),
                removed: Vec::new(),
            },
            (_, Some(sent)) => Difference::of(base, sent.properties()),
            (_, None) => Difference::default(),
        }
    }

    /// How many bytes it adds to a request.
    pub(crate) fn request_bytes(&self) -> usize {
        change_bytes(self.sent())
    }

    /// About as many bytes as it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let base = self.base.as_ref();
        self.request_bytes() + base.map_or(0, |base| entity_json(base).len())
    }
}

/// The difference between two versions of an entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Difference {
    pub(crate) set: Vec<(String, Value)>,
    pub(crate) removed: Vec<String>,
}

impl Difference {
    pub(crate) fn of(old: &Properties, new: &Properties) -> Self {
        let is_other = |name: &str, value: &Value| !old.get(name).is_some_and(|it| same(it, value));
        let set = new.iter().filter(|(name, value)| is_other(name, value));
        let removed = old.iter().filter(|(name, _)| new.get(name).is_none());
        Self {
            set: owned(set),
            removed: removed.map(|(name, _)| name.to_owned()).collect(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    /// The effect on a property; `None` if it stays as it is.
    pub(crate) fn of_property(&self, name: &str) -> Option<Becomes<'_>> {
        if self.removed.iter().any(|it| it == name) {
            return Some(Becomes::Absent);
        }
        let mut set = self.set.iter();
        set.find_map(|(it, value)| (it == name).then_some(Becomes::Value(value)))
    }

    /// The names of what it changes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let set = self.set.iter().map(|(name, _)| name.as_str());
        set.chain(self.removed.iter().map(String::as_str))
    }
}

/// The state of a property after a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Becomes<'v> {
    Value(&'v Value),
    Absent,
}

/// The entity as one that replaces all properties.
fn written(entity: DynamicEntity) -> DynamicEntity {
    renewed(without_time(entity))
}

/// The time of the version that was read is no part of a request.
fn without_time(mut entity: DynamicEntity) -> DynamicEntity {
    let new = DynamicEntity::new(entity.partition_key(), entity.row_key());
    new.with_properties(std::mem::replace(
        entity.properties_mut(),
        Properties::new(),
    ))
}

fn owned<'v>(properties: impl Iterator<Item = (&'v str, &'v Value)>) -> Vec<(String, Value)> {
    properties
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// Returns true if two values are equal, numbers bit by bit: a NaN equals itself.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{etag, ken, merge};
    use super::*;

    #[test]
    fn a_merge_contains_only_what_differs() {
        let change = merge();
        let Write::Merge(sent, _) = &change.write else {
            panic!("nothing was removed");
        };
        let names: Vec<_> = sent.properties().iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Salary"]);
        assert_eq!(change.wanted(), Some(ken(58_500.0)));
    }

    #[test]
    fn an_edit_that_changes_nothing_is_none_also_with_a_nan() {
        let nan = ken(f64::NAN);
        assert_eq!(
            Change::edit("Employees", nan.clone(), Base::new(etag(1), nan)),
            None
        );
    }

    #[test]
    fn a_property_that_is_removed_makes_it_a_replace() {
        let mut less = ken(58_500.0);
        less.properties_mut().remove("Email");
        let base = Base::new(etag(1), ken(57_000.0));
        let change = Change::edit("Employees", less.clone(), base).expect("it differs");
        assert_eq!(change.write, Write::Replace(less, etag(1)));
        let difference = change.difference();
        assert_eq!(difference.names().collect::<Vec<_>>(), ["Salary", "Email"]);
        let salary = 58_500.0.into();
        let becomes = difference.of_property("Salary");
        assert_eq!(becomes, Some(Becomes::Value(&salary)));
        assert_eq!(difference.of_property("Email"), Some(Becomes::Absent));
        assert_eq!(difference.of_property("Age"), None);
    }
}
