//! Which properties of an entity are encrypted: those that its type marks, or, of an entity without
//! a type, those that the resolver of the keyring names. This module knows no keys.

use std::any::Any;
use std::sync::Arc;

use super::Keyring;
use super::keyring::Resolver;
use crate::entity::Schema;
use crate::entity::encrypted::{EncryptedName, lookup_name};
use crate::error::Error;
use crate::pipeline::Table;

/// The properties that are encrypted.
#[derive(Clone)]
pub(super) enum Marked {
    ByType(Vec<EncryptedName>),
    ByResolver(Arc<Resolver>),
}

impl Marked {
    /// The encrypted properties of the entities that a client reads by a schema; `None` where none
    /// is encrypted.
    pub(super) fn of(schema: &Schema, table: &Table) -> Option<Self> {
        if schema.encrypts() {
            return Some(Self::ByType(schema.encrypted_names()));
        }
        let resolver = keyring_of(table)?.resolver_of_dynamic()?;
        Some(Self::ByResolver(Arc::clone(resolver)))
    }

    /// Returns true if the property of an entity with these keys is encrypted.
    pub(super) fn has(&self, (partition_key, row_key): (&str, &str), name: &str) -> bool {
        match self {
            Self::ByType(names) => names.iter().any(|marked| marked.name == name),
            Self::ByResolver(resolver) => resolver(partition_key, row_key, name),
        }
    }

    /// The name of the second property, by which a type finds equal values of a property.
    pub(super) fn lookup(&self, name: &str) -> Option<&str> {
        let Self::ByType(names) = self else {
            return None;
        };
        let marked = names.iter().find(|marked| marked.name == name)?;
        marked.lookup.as_deref()
    }

    /// The name of the property whose equal values a property finds.
    pub(super) fn name_of_lookup(&self, lookup: &str) -> Option<&str> {
        let Self::ByType(names) = self else {
            return None;
        };
        let mut names = names.iter();
        let marked = names.find(|marked| marked.lookup.as_deref() == Some(lookup))?;
        Some(&marked.name)
    }

    /// The name under which a type may have stored a second property. A resolver does not know
    /// which properties have one.
    pub(super) fn unknown_lookup(&self, name: &str) -> Option<String> {
        matches!(self, Self::ByResolver(_)).then(|| lookup_name(name))
    }

    /// Returns true if one of the properties may be encrypted.
    pub(super) fn may_have_one_of(&self, selected: &[String]) -> bool {
        match self {
            Self::ByType(names) => names.iter().any(|marked| selected.contains(&marked.name)),
            Self::ByResolver(_) => true,
        }
    }
}

/// Refuses to write entities in another way than the resolver of the client encrypts them for:
/// those without a type, and those of an enum, which may have a variant without one.
pub(crate) fn check_not_resolved(schema: &Schema, table: &Table) -> Result<(), Error> {
    let is_typed = !schema.properties().is_empty() || schema.partition_key().is_some();
    let is_resolved = keyring_of(table).is_some_and(|it| it.resolver_of_dynamic().is_some());
    if is_resolved && (!is_typed || schema.has_variants()) {
        let entity = schema.entity();
        return Err(Error::input(format!(
            "`{entity}` cannot be moved, wide, or in a step by a client whose keyring has a resolver: its properties are encrypted for one table and one key"
        )));
    }
    Ok(())
}

/// The keyring of a client.
pub(super) fn keyring_of(table: &Table) -> Option<&Keyring> {
    let extra = table.pipeline.extra.as_deref()?;
    (extra as &dyn Any).downcast_ref()
}
