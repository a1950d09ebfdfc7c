//! The encrypted properties of an entity, in the body of a request and in a response.

use std::sync::Arc;

use bytes::Bytes;
use tablesdk_protocol::filter::Filter;
use tablesdk_protocol::wire::json::{EntityWriter, JsonEntity, RawProperty, read_entity};
use tablesdk_protocol::{EntityKey, Guid, KeyKind, Value, ValueRef};

use super::envelope::{
    Cell, DataKey, EncryptionProblem, decrypt, encrypt, is_lookup, key_id, lookup,
};
use super::keyring::Keys;
use crate::entity::encrypted::EncryptedName;
use crate::entity::{EntityError, EntityProblem, Schema, write_values};

/// Encrypts and decrypts the properties of the entities of one type in one table, with the keys
/// that were loaded.
pub(crate) struct Cipher {
    keys: Arc<Keys>,
    /// In lower case.
    table: String,
    names: Vec<EncryptedName>,
}

impl Cipher {
    pub(crate) fn new(keys: Arc<Keys>, table: &str, schema: &Schema) -> Self {
        Self {
            keys,
            table: table.to_ascii_lowercase(),
            names: schema.encrypted_names(),
        }
    }

    /// The same with keys that were loaded since.
    pub(crate) fn with_keys(self, keys: Arc<Keys>) -> Self {
        Self { keys, ..self }
    }

    fn named(&self, name: &str) -> Option<&EncryptedName> {
        self.names.iter().find(|encrypted| encrypted.name == name)
    }

    fn is_lookup(&self, name: &str) -> bool {
        let mut lookups = self.names.iter().filter_map(|name| name.lookup.as_deref());
        lookups.any(|lookup| lookup == name)
    }

    /// The name of the property whose equal values a property shows.
    pub(super) fn name_of_lookup(&self, lookup: &str) -> Option<&str> {
        let mut names = self.names.iter();
        let name = names.find(|name| name.lookup.as_deref() == Some(lookup))?;
        Some(&name.name)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &DataKey> {
        self.keys.all()
    }

    pub(super) fn current(&self) -> &DataKey {
        self.keys.current()
    }

    /// The lookup of a value under a key.
    pub(super) fn lookup_of(&self, key: &DataKey, property: &str, value: &ValueRef<'_>) -> Vec<u8> {
        lookup(key, &self.table, property, value).to_vec()
    }

    /// The body of an entity with its properties encrypted for that key.
    pub(super) fn encrypt(&self, key: &EntityKey, body: &[u8]) -> Result<Bytes, EntityError> {
        let plain = read_entity(body).map_err(|error| {
            let reason = error.to_string();
            EntityProblem::Unreadable { reason }
        })?;
        let mut values = Vec::new();
        for property in plain.properties() {
            let name = property.name();
            let Some(value) = property.to_value()? else {
                continue;
            };
            let Some(encrypted) = self.named(name) else {
                // What was read of the entity before is written anew.
                if !self.is_lookup(name) {
                    values.push((name.to_owned(), value));
                }
                continue;
            };
            let value = value.as_ref();
            let cell = self.cell(key.partition_key().as_str(), key.row_key().as_str(), name);
            let current = self.keys.current();
            let envelope = encrypt(current, cell, &value).map_err(|problem| problem.of(name))?;
            values.push((name.to_owned(), Value::Binary(envelope)));
            if let Some(name_of_lookup) = &encrypted.lookup {
                let lookup = lookup(current, &self.table, name, &value);
                values.push((name_of_lookup.clone(), Value::Binary(lookup.to_vec())));
            }
        }
        write_values(key, &values)
    }

    /// The ids of the keys of an entity's properties.
    pub(crate) fn key_ids(&self, entity: &JsonEntity<'_>, ids: &mut Vec<Guid>) {
        for encrypted in &self.names {
            let property = entity.property(&encrypted.name);
            let value = property.and_then(|property| property.to_value().ok()?);
            if let Some(Value::Binary(envelope)) = value
                && let Ok(id) = key_id(&envelope)
                && !ids.contains(&id)
            {
                ids.push(id);
            }
        }
    }

    /// An entity of a response with its properties decrypted. With a key, the entity must have been
    /// written under that key; otherwise under the one that it has, in the partition if the
    /// response does not contain it.
    pub(super) fn decrypt(
        &self,
        entity: &JsonEntity<'_>,
        key: Option<&EntityKey>,
        partition: Option<&str>,
    ) -> Result<Bytes, EntityError> {
        let text = |kind: KeyKind| entity.text(kind.property()).ok().flatten();
        let (partition_key, row_key) = match key {
            Some(key) => (key.partition_key().as_str(), key.row_key().as_str()),
            None => {
                let partition = text(KeyKind::PartitionKey).or(partition);
                (
                    partition.unwrap_or_default(),
                    text(KeyKind::RowKey).unwrap_or_default(),
                )
            }
        };
        let mut json = EntityWriter::new();
        if let Some(etag) = entity.etag() {
            json.property("odata.etag", &ValueRef::String(etag.as_str().into()));
        }
        for member in entity.members() {
            let name = member.name();
            if member.is_system() {
                if let Some(text) = entity.text(name)? {
                    json.property(name, &ValueRef::String(text.into()));
                }
                continue;
            }
            if self.is_lookup(name) {
                continue;
            }
            let Some(value) = member.to_value_ref()? else {
                continue;
            };
            let Some(encrypted) = self.named(name) else {
                json.property(name, &value);
                continue;
            };
            let cell = self.cell(partition_key, row_key, name);
            let (value, key) = self
                .open_value(cell, &value)
                .map_err(|problem| problem.of(name))?;
            if let Some(lookup) = &encrypted.lookup {
                let found = entity.property(lookup).map(RawProperty::to_value);
                let found = found.transpose()?.flatten();
                let is_right = found.is_none_or(|found| match found {
                    Value::Binary(bytes) => {
                        is_lookup(key, &self.table, name, &value.as_ref(), &bytes)
                    }
                    _ => false,
                });
                if !is_right {
                    let lookup = lookup.clone();
                    return Err(EncryptionProblem::OtherLookup { lookup }.of(name));
                }
            }
            json.property(name, &value.as_ref());
        }
        Ok(json.finish())
    }

    fn open_value(
        &self,
        cell: Cell<'_>,
        value: &ValueRef<'_>,
    ) -> Result<(Value, &DataKey), EncryptionProblem> {
        let ValueRef::Binary(envelope) = value else {
            return Err(EncryptionProblem::Plain);
        };
        let id = key_id(envelope)?;
        let key = self
            .keys
            .find(id)
            .ok_or(EncryptionProblem::UnknownKey { id })?;
        Ok((decrypt(key, cell, envelope)?, key))
    }

    fn cell<'c>(&'c self, partition_key: &'c str, row_key: &'c str, property: &'c str) -> Cell<'c> {
        Cell {
            table: &self.table,
            partition_key,
            row_key,
            property,
        }
    }
}

impl Schema {
    /// Returns true if a filter compares an encrypted property.
    pub(super) fn has_lookup_in(&self, filter: &Filter) -> bool {
        let names = self.encrypted_names();
        filter.fold(|filter, terms: Vec<bool>| match filter {
            Filter::Comparison(comparison) => names
                .iter()
                .any(|name| name.lookup.as_deref() == Some(comparison.property.as_str())),
            _ => terms.contains(&true),
        })
    }
}

impl EncryptionProblem {
    fn of(&self, property: &str) -> EntityError {
        let (property, reason) = (property.to_owned(), self.to_string());
        EntityProblem::Encryption { property, reason }.into()
    }
}
