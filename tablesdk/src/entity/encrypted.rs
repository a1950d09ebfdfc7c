//! Which properties of a type are encrypted: known at compile time, so that other types cost
//! nothing. This module knows neither keys nor how a property is encrypted.

use tablesdk_protocol::limits::PROPERTY_NAME_UNITS_MAX;

use super::attached::Facts;
use super::column_scope::ColumnScope;
use super::entity_type::refuse;
use super::schema::{PropertySchema, SchemaPart, hash_of, hash_on};
use super::{EntityError, EntityProblem, Schema, TableEntity};

/// The encryption of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    No,
    Yes,
    /// A second property shows which values are equal.
    WithLookup,
}

/// A name under which a type has an encrypted property.
#[derive(Clone, Debug)]
pub(crate) struct EncryptedName {
    pub(crate) name: String,
    /// The name of the property with which the service finds equal values.
    #[cfg_attr(
        not(feature = "encryption"),
        expect(dead_code, reason = "no other pattern needs it")
    )]
    pub(crate) lookup: Option<String>,
}

/// The schema of a type with encrypted properties.
pub(crate) const fn encrypted<E: TableEntity>() -> Option<&'static Schema> {
    const {
        // The variants of an enum are checked by themselves.
        if !E::SCHEMA.has_variants() {
            check_no_plain_text(E::FACTS, &E::SCHEMA);
        }
        E::SCHEMA.check_encryption();
    }
    let schema = const { &E::SCHEMA };
    if schema.encrypts() {
        Some(schema)
    } else {
        None
    }
}

/// Refuses at compile time a type with encrypted properties, with which other entities are written.
pub(super) const fn check_no_plain_text(facts: Facts, schema: &Schema) {
    assert!(
        !facts.has_riders || !schema.encrypts(),
        "a type with encrypted properties has no indexes, no copies, and no buckets of `expires`: their entries would need keys of their own"
    );
}

/// The error of an entity of that type without the values of its encrypted properties.
pub(crate) fn without_secrets<E: TableEntity>(error: EntityError) -> EntityError {
    match encrypted::<E>() {
        Some(schema) => schema.without_secrets(error),
        None => error,
    }
}

/// Refuses at compile time to write an entity in another way than its properties are encrypted for.
pub(crate) const fn check_not_encrypted<E: TableEntity>() {
    assert!(
        !E::SCHEMA.encrypts(),
        "a type with encrypted properties cannot be moved, and cannot be a copy or in a step: they are encrypted for one table and one key; insert the entity there, and delete it here"
    );
}

/// Refuses at compile time to convert between an entity and its properties: one of the two would
/// hold plain text, the other encrypted values.
pub(crate) const fn check_convertible<E: TableEntity>() {
    assert!(
        !E::SCHEMA.encrypts(),
        "a type with encrypted properties cannot be converted to or from a dynamic entity: the dynamic entity is stored as it is, and would be stored in plain text"
    );
}

/// The name of the property that shows which values of another are equal.
pub(crate) fn lookup_name(name: &str) -> String {
    format!("{name}{LOOKUP_SUFFIX}")
}

#[expect(
    clippy::indexing_slicing,
    reason = "at compile time, and within the bounds by the conditions of the loops"
)]
impl Schema {
    /// Refuses at compile time what the derive cannot see of encrypted properties.
    #[doc(hidden)]
    #[track_caller]
    pub const fn check_encryption(&self) {
        if self.encrypts() {
            if !cfg!(feature = "encryption") {
                refuse(&[
                    "`#[table(encrypt)]` needs the feature `encryption` of `tablesdk`: enable it with `features = [\"encryption\"]`",
                ]);
            }
            self.check_encrypted(self, ColumnScope::ROOT);
        }
    }

    /// Returns true if a property is encrypted. The properties of an enum are those of all
    /// variants, and the properties of a struct with older versions are those of all versions.
    pub(crate) const fn encrypts(&self) -> bool {
        let mut index = 0;
        while index < self.parts.len() {
            let encrypts = match &self.parts[index] {
                SchemaPart::Group(_, group) => group.encrypts(),
                SchemaPart::Property(property) => property.is_encrypted(),
            };
            if encrypts {
                return true;
            }
            index += 1;
        }
        let mut index = 0;
        while let Some(other) = self.other_type(index) {
            if other.encrypts() {
                return true;
            }
            index += 1;
        }
        false
    }

    /// The variants of an enum, and the older versions of a struct.
    const fn other_type(&self, index: usize) -> Option<&'static Self> {
        match (&self.dispatch, &self.entity_type) {
            (Some(dispatch), _) => dispatch.schema(index),
            (None, Some(entity_type)) if index < entity_type.older().len() => {
                Some(entity_type.older()[index])
            }
            _ => None,
        }
    }

    /// Refuses a name that is that of an encrypted property in one variant or version and not in
    /// another. Which of them an entity is shows a property that is not encrypted: who may write
    /// could turn one into the other.
    #[track_caller]
    const fn check_encrypted(&self, root: &Self, scope: ColumnScope) {
        let mut index = 0;
        while index < self.parts.len() {
            match &self.parts[index] {
                SchemaPart::Group(text, group) => {
                    group.check_encrypted(root, scope.then(text));
                }
                SchemaPart::Property(property) if property.is_encrypted() => {
                    let name = hash_of(scope, property.name);
                    let lookup = hash_on(name, LOOKUP_SUFFIX);
                    assert!(
                        !property.has_lookup() || lookup.1 <= PROPERTY_NAME_UNITS_MAX,
                        "the name of an encrypted property with `__eq` is longer than the 255 UTF-16 units of the service"
                    );
                    root.check_lookup_names(ColumnScope::ROOT, property, name.0, lookup.0);
                }
                SchemaPart::Property(_) => {}
            }
            index += 1;
        }
        let mut index = 0;
        while let Some(other) = self.other_type(index) {
            other.check_encrypted(root, scope);
            index += 1;
        }
    }

    #[track_caller]
    const fn check_lookup_names(
        &self,
        scope: ColumnScope,
        encrypted: &PropertySchema,
        name: u64,
        lookup: u64,
    ) {
        let mut index = 0;
        while index < self.parts.len() {
            match &self.parts[index] {
                SchemaPart::Group(text, group) => {
                    group.check_lookup_names(scope.then(text), encrypted, name, lookup);
                }
                SchemaPart::Property(other) => {
                    let (hash, _) = hash_of(scope, other.name);
                    if hash == name && !other.is_encrypted_as(encrypted) {
                        refuse(&[
                            "`",
                            self.entity(),
                            "` has the property `",
                            other.name,
                            "`, which another type that may be read in its place encrypts in another way: give one of them another name with `#[table(rename = \"…\")]`",
                        ]);
                    }
                    if hash == lookup && encrypted.has_lookup() {
                        refuse(&[
                            "`",
                            encrypted.name,
                            "` is marked `encrypt(eq)` and needs the property `",
                            other.name,
                            "`: give that one another name with `#[table(rename = \"…\")]`",
                        ]);
                    }
                }
            }
            index += 1;
        }
        let mut index = 0;
        while let Some(other) = self.other_type(index) {
            other.check_lookup_names(scope, encrypted, name, lookup);
            index += 1;
        }
    }

    /// The names of all encrypted properties, with their aliases.
    pub(crate) fn encrypted_names(&self) -> Vec<EncryptedName> {
        let mut names = Vec::new();
        self.add_encrypted(ColumnScope::ROOT, &mut names);
        names
    }

    #[cold]
    fn without_secrets(&self, error: EntityError) -> EntityError {
        match error.problem() {
            EntityProblem::Value {
                property,
                error: problem,
            } if self.encrypts_as(property) => {
                EntityProblem::value(property, problem.clone().without_value()).into()
            }
            _ => error,
        }
    }

    /// Returns true if the property of that name is encrypted.
    pub(crate) fn encrypts_as(&self, name: &str) -> bool {
        let names = self.encrypted_names();
        names.iter().any(|known| known.name == name)
    }

    fn add_encrypted(&self, scope: ColumnScope, names: &mut Vec<EncryptedName>) {
        for part in self.parts {
            match part {
                SchemaPart::Group(text, group) => group.add_encrypted(scope.then(text), names),
                SchemaPart::Property(property) if property.is_encrypted() => {
                    for name in [property.name].iter().chain(property.aliases) {
                        let name = scope.name(name).into_owned();
                        let lookup = property.has_lookup().then(|| lookup_name(&name));
                        names.push(EncryptedName { name, lookup });
                    }
                }
                SchemaPart::Property(_) => {}
            }
        }
        let mut index = 0;
        while let Some(other) = self.other_type(index) {
            other.add_encrypted(scope, names);
            index += 1;
        }
    }
}

const LOOKUP_SUFFIX: &str = "__eq";
