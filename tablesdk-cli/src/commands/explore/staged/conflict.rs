//! A change whose entity is not as it was read: the versions side by side, and what becomes of the
//! change.

use std::collections::HashSet;

use tablesdk::{DynamicEntity, ETag, Properties, Value};
use tablesdk_cli::lines::entity_json;

use super::change::{Base, Change, Difference, Write, same};

/// The entity as it is stored now.
#[derive(Clone, Debug)]
pub(crate) enum Now {
    Missing,
    Present(Box<Version>),
    /// It could not be read, for this reason.
    Unread(String),
}

/// A stored version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    pub(crate) etag: ETag,
    pub(crate) entity: DynamicEntity,
}

/// The resolution of a change whose entity has another version now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// The difference is applied to the stored version.
    Apply,
    /// The stored version stays.
    Keep,
    /// The stored version becomes exactly what was wanted.
    Replace,
}

impl Now {
    pub(crate) fn entity(&self) -> Option<&DynamicEntity> {
        match self {
            Self::Present(version) => Some(&version.entity),
            Self::Missing | Self::Unread(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Present(version) => entity_json(&version.entity).len(),
            Self::Unread(text) => text.len(),
            Self::Missing => 0,
        }
    }
}

impl Change {
    /// The change that carries out the decision; `None` if there is none.
    pub(crate) fn resolved(&self, now: &Now, how: Resolution) -> Option<Self> {
        let table = &self.target.table;
        let change = match (how, now, self.wanted()) {
            (Resolution::Keep, ..)
            | (_, Now::Unread(_), _)
            | (_, Now::Missing, None)
            | (Resolution::Apply, Now::Missing, _) => None,
            (Resolution::Replace, Now::Missing, Some(wanted)) => Some(Self::insert(table, wanted)),
            (_, Now::Present(version), None) => {
                let (target, etag) = (self.target.clone(), version.etag.clone());
                Some(Self::delete(target, etag, Some(version.entity.clone())))
            }
            (Resolution::Replace, Now::Present(version), Some(wanted)) => {
                Some(Self::replace(table, wanted, version.base()))
            }
            (Resolution::Apply, Now::Present(version), Some(_)) => {
                let applied = self.difference().applied_to(&version.entity);
                Self::edit(table, applied, version.base())
            }
        };
        change.map(|change| Self {
            mends: self.mends.clone(),
            ..change
        })
    }

    /// Returns true if the stored entity is as the change wants it.
    pub(crate) fn is_stored_in(&self, now: &Now) -> bool {
        match (now, self.sent(), &self.write) {
            (Now::Missing, None, _) => true,
            (Now::Present(version), Some(sent), Write::Merge(..)) => {
                let stored = version.entity.properties();
                let mut sent = sent.properties().iter();
                sent.all(|(name, value)| stored.get(name).is_some_and(|it| same(it, value)))
            }
            (Now::Present(version), Some(sent), _) => {
                Difference::of(version.entity.properties(), sent.properties()).is_empty()
            }
            _ => false,
        }
    }
}

impl Version {
    fn base(&self) -> Base {
        Base::new(self.etag.clone(), self.entity.clone())
    }
}

impl Difference {
    fn applied_to(self, entity: &DynamicEntity) -> DynamicEntity {
        let mut entity = entity.clone();
        for (name, value) in self.set {
            entity.properties_mut().set(name, value);
        }
        for name in self.removed {
            entity.properties_mut().remove(&name);
        }
        entity
    }
}

/// One property in the versions of an entity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row<'v> {
    pub(crate) name: &'v str,
    /// As it was read; without a version that was read, as it is stored.
    pub(crate) base: Option<&'v Value>,
    pub(crate) now: Cell<'v>,
    pub(crate) yours: Cell<'v>,
}

/// A value, and whether it differs from that of the version that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell<'v> {
    pub(crate) value: Option<&'v Value>,
    pub(crate) is_changed: bool,
}

/// The properties of the versions: first those that somebody changed.
pub(crate) fn rows<'v>(
    base: Option<&'v DynamicEntity>,
    now: Option<&'v DynamicEntity>,
    yours: Option<&'v DynamicEntity>,
) -> Vec<Row<'v>> {
    let mut seen = HashSet::new();
    let versions = [base, now, yours].into_iter().flatten();
    let names = versions.flat_map(|it| it.properties().iter().map(|(name, _)| name));
    let names = names.filter(|name| seen.insert(*name));
    let of = |version: Option<&'v DynamicEntity>, name| {
        version
            .map(DynamicEntity::properties)
            .and_then(|it: &Properties| it.get(name))
    };
    let mut rows: Vec<_> = names
        .map(|name| {
            let before = of(base.or(now), name);
            let cell = |version| {
                let value = of(version, name);
                let is_changed = match (before, value) {
                    (Some(before), Some(value)) => !same(before, value),
                    (before, value) => before.is_some() != value.is_some(),
                };
                Cell { value, is_changed }
            };
            Row {
                name,
                base: before,
                now: cell(now),
                yours: cell(yours),
            }
        })
        .collect();
    rows.sort_by_key(|row| !(row.now.is_changed || row.yours.is_changed));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::{etag, ken, merge};
    use super::*;

    fn stored() -> Now {
        let entity = ken(57_000.0)
            .with("Email", "ken@contoso.com")
            .with("Age", 23);
        Now::Present(Box::new(Version {
            etag: etag(9),
            entity,
        }))
    }

    #[test]
    fn what_was_changed_is_applied_to_the_version_that_is_stored_now() {
        let change = merge()
            .resolved(&stored(), Resolution::Apply)
            .expect("the salary differs");
        assert_eq!(
            (change.verb(), change.etag().cloned()),
            ("MERGE", Some(etag(9)))
        );
        let wanted = change.wanted().expect("it is no delete");
        let expected = ken(58_500.0)
            .with("Email", "ken@contoso.com")
            .with("Age", 23);
        assert_eq!(wanted, expected);
    }

    #[test]
    fn a_removal_is_applied_as_a_replace_of_the_stored_version() {
        let mut less = ken(57_000.0);
        less.properties_mut().remove("Email");
        let base = Base::new(etag(1), ken(57_000.0));
        let change = Change::edit("Employees", less, base).expect("it differs");
        let applied = change
            .resolved(&stored(), Resolution::Apply)
            .expect("the stored version has the property");
        assert_eq!(applied.verb(), "PUT");
        let wanted = applied.wanted().expect("it is no delete");
        let names: Vec<_> = wanted.properties().iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Salary", "Age"], "what another client added stays");
    }

    #[test]
    fn all_is_replaced_with_mine_under_the_new_version() {
        let change = merge()
            .resolved(&stored(), Resolution::Replace)
            .expect("it can be replaced");
        assert_eq!(
            (change.verb(), change.etag().cloned()),
            ("PUT", Some(etag(9)))
        );
        assert_eq!(change.wanted(), Some(ken(58_500.0)));
    }

    #[test]
    fn an_entity_that_is_gone_is_inserted_or_left() {
        let change = merge();
        assert_eq!(change.resolved(&Now::Missing, Resolution::Apply), None);
        assert_eq!(change.resolved(&Now::Missing, Resolution::Keep), None);
        let insert = change.resolved(&Now::Missing, Resolution::Replace);
        assert_eq!(insert, Some(Change::insert("Employees", ken(58_500.0))));
    }

    #[test]
    fn a_delete_is_applied_to_the_stored_version() {
        let delete = Change::delete(merge().target, etag(1), None);
        let again = delete.resolved(&stored(), Resolution::Apply);
        let again = again.expect("it is there");
        assert_eq!(
            (again.verb(), again.etag().cloned()),
            ("DELETE", Some(etag(9)))
        );
    }

    #[test]
    fn the_versions_stand_side_by_side_with_what_was_changed_first() {
        let (change, now) = (merge(), stored());
        let wanted = change.wanted();
        let rows = rows(change.base.as_ref(), now.entity(), wanted.as_ref());
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.name, row.now.is_changed, row.yours.is_changed))
            .collect();
        assert_eq!(
            told,
            [
                ("Salary", false, true),
                ("Email", true, false),
                ("Age", true, false)
            ]
        );
    }

    #[test]
    fn a_merge_is_stored_when_its_properties_are() {
        assert!(!merge().is_stored_in(&stored()));
        let applied = merge().resolved(&stored(), Resolution::Apply);
        let wanted = applied.and_then(|it| it.wanted()).expect("it applies");
        let now = Now::Present(Box::new(Version {
            etag: etag(10),
            entity: wanted,
        }));
        assert!(merge().is_stored_in(&now));
    }
}
