//! The encrypted properties of an entity, in the body of a request and in a response.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use tablesdk_protocol::filter::Filter;
use tablesdk_protocol::wire::json::{EntityWriter, JsonEntity, RawProperty, read_entity};
use tablesdk_protocol::{EntityKey, Guid, KeyKind, Value, ValueRef};

use super::envelope::{
    Cell, DataKey, EncryptionProblem, LOOKUP_BYTES, decrypt, encrypt, is_lookup, key_id, lookup,
};
use super::keyring::Keys;
use super::marked::Marked;
use super::older::{self, OlderEntity, Unreadable};
use crate::entity::{EntityError, EntityProblem, Schema, write_values};

/// Encrypts and decrypts the properties of the entities of one type in one table, with the keys
/// that were loaded.
pub(crate) struct Cipher {
    keys: Arc<Keys>,
    /// In lower case.
    table: String,
    marked: Marked,
    /// The entities of a response that older SDKs encrypted; `None` for a keyring that does not
    /// read them.
    older: Option<OlderEntities>,
}

/// Entities that older SDKs encrypted, by their metadata.
pub(super) type OlderEntities = HashMap<String, Result<OlderEntity, Unreadable>>;

impl Cipher {
    pub(super) fn new(keys: Arc<Keys>, table: &str, marked: Marked, reads_older: bool) -> Self {
        Self {
            keys,
            table: table.to_ascii_lowercase(),
            marked,
            older: reads_older.then(OlderEntities::new),
        }
    }

    /// The same with keys that were loaded since, and those of entities of older SDKs.
    pub(super) fn with_keys(self, keys: Arc<Keys>, older: Option<OlderEntities>) -> Self {
        Self {
            keys,
            older,
            ..self
        }
    }

    pub(super) const fn marked(&self) -> &Marked {
        &self.marked
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
        let keys = (key.partition_key().as_str(), key.row_key().as_str());
        let mut values = Vec::new();
        let mut lookups = Vec::new();
        for property in plain.properties() {
            let name = property.name();
            let Some(value) = property.to_value()? else {
                continue;
            };
            if self.is_older(name) {
                return Err(EncryptionProblem::OlderIsReadOnly.of(name));
            }
            if !self.marked.has(keys, name) {
                // What was read of the entity before is written anew.
                if self.marked.name_of_lookup(name).is_none() {
                    values.push((name.to_owned(), value));
                }
                continue;
            }
            let value = value.as_ref();
            let cell = self.cell(keys, name);
            let current = self.keys.current();
            let envelope = encrypt(current, cell, &value).map_err(|problem| problem.of(name))?;
            values.push((name.to_owned(), Value::Binary(envelope)));
            let new_lookup = || lookup(current, &self.table, name, &value).to_vec();
            if let Some(lookup) = self.marked.lookup(name) {
                values.push((lookup.to_owned(), Value::Binary(new_lookup())));
            } else if let Some(lookup) = self.marked.unknown_lookup(name)
                && plain.property(&lookup).is_some()
            {
                lookups.push((lookup, Value::Binary(new_lookup())));
            }
        }
        // A second property that was read would be that of another value.
        for (name, lookup) in lookups {
            match values.iter_mut().find(|(known, _)| *known == name) {
                Some((_, value)) if is_lookup_value(value) => *value = lookup,
                _ => {}
            }
        }
        write_values(key, &values)
    }

    /// The ids of the keys of an entity's properties.
    pub(crate) fn key_ids(&self, entity: &JsonEntity<'_>, ids: &mut BTreeSet<Guid>) {
        for property in entity.properties() {
            // A resolver needs keys, which the response may not contain.
            let is_marked = match &self.marked {
                Marked::ByType(_) => self.marked.has(("", ""), property.name()),
                Marked::ByResolver(_) => true,
            };
            if is_marked
                && let Ok(Some(Value::Binary(envelope))) = property.to_value()
                && let Ok(id) = key_id(&envelope)
            {
                ids.insert(id);
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
        let keys = match key {
            Some(key) => (key.partition_key().as_str(), key.row_key().as_str()),
            None => {
                let partition = text(KeyKind::PartitionKey).or(partition);
                (
                    partition.unwrap_or_default(),
                    text(KeyKind::RowKey).unwrap_or_default(),
                )
            }
        };
        let older = self.older_of(entity, keys)?;
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
            if self.marked.name_of_lookup(name).is_some() || self.is_older(name) {
                continue;
            }
            let Some(value) = member.to_value_ref()? else {
                continue;
            };
            let older = older.as_ref().filter(|(_, names)| names.contains(name));
            if !self.marked.has(keys, name) {
                if older.is_some() {
                    return Err(EncryptionProblem::OlderIsNotMarked.of(name));
                }
                json.property(name, &value);
                continue;
            }
            let (value, key) = self.open_value(entity, keys, name, &value, older)?;
            if let Some(lookup) = self.marked.lookup(name) {
                let found = entity.property(lookup).map(RawProperty::to_value);
                let found = found.transpose()?.flatten();
                let is_right = found.is_none_or(|found| match (found, key) {
                    (Value::Binary(bytes), Some(key)) => {
                        is_lookup(key, &self.table, name, &value.as_ref(), &bytes)
                    }
                    _ => false,
                });
                if !is_right {
                    let lookup = lookup.to_owned();
                    return Err(EncryptionProblem::OtherLookup { lookup }.of(name));
                }
            }
            json.property(name, &value.as_ref());
        }
        Ok(json.finish())
    }

    /// The key of an entity that an older SDK encrypted, and the names of its properties.
    fn older_of(
        &self,
        entity: &JsonEntity<'_>,
        keys: (&str, &str),
    ) -> Result<Option<(&OlderEntity, BTreeSet<String>)>, EntityError> {
        let (Some(known), Some(metadata)) = (&self.older, older::metadata(entity)) else {
            return Ok(None);
        };
        let open = || {
            let Ok(Some(Value::String(metadata))) = metadata.to_value() else {
                return Err(Unreadable);
            };
            let names = entity.property(older::NAMES).map(RawProperty::to_value);
            let Some(Ok(Some(Value::Binary(names)))) = names else {
                return Err(Unreadable);
            };
            let Some(older) = known.get(&metadata) else {
                return Ok(None);
            };
            let older = older.as_ref().map_err(|unreadable| *unreadable)?;
            Ok(Some((older, older.names(keys, &names)?)))
        };
        match open() {
            Ok(Some(older)) => Ok(Some(older)),
            Ok(None) => Err(EncryptionProblem::OlderIsUnread.of(older::METADATA)),
            Err(Unreadable) => Err(EncryptionProblem::Older.of(older::METADATA)),
        }
    }

    /// The value of a property, and the key that encrypted it in our form.
    fn open_value(
        &self,
        entity: &JsonEntity<'_>,
        keys: (&str, &str),
        name: &str,
        value: &ValueRef<'_>,
        older: Option<&(&OlderEntity, BTreeSet<String>)>,
    ) -> Result<(Value, Option<&DataKey>), EntityError> {
        let ValueRef::Binary(envelope) = value else {
            return Err(EncryptionProblem::Plain.of(name));
        };
        let id = key_id(envelope);
        let known = id.as_ref().ok().and_then(|id| self.keys.find(*id));
        match (known, older, id) {
            // It was written anew, and the names of the older SDK are still there.
            (Some(key), ..) => {
                let value = decrypt(key, self.cell(keys, name), envelope);
                let value = value.map_err(|problem| problem.of(name))?;
                Ok((value, Some(key)))
            }
            (None, Some((older, _)), _) => {
                let text = older.value(keys, name, envelope);
                let text = text.map_err(|_| EncryptionProblem::Older.of(older::METADATA))?;
                Ok((Value::String(text), None))
            }
            (None, None, _) if self.older.is_none() && older::metadata(entity).is_some() => {
                Err(EncryptionProblem::OlderIsOff.of(name))
            }
            (None, None, Ok(id)) => Err(EncryptionProblem::UnknownKey { id }.of(name)),
            (None, None, Err(problem)) => Err(problem.of(name)),
        }
    }

    /// Returns true if the property describes an entity of an older SDK.
    fn is_older(&self, name: &str) -> bool {
        self.older.is_some() && [older::METADATA, older::NAMES].contains(&name)
    }

    fn cell<'c>(
        &'c self,
        (partition_key, row_key): (&'c str, &'c str),
        property: &'c str,
    ) -> Cell<'c> {
        Cell {
            table: &self.table,
            partition_key,
            row_key,
            property,
        }
    }
}

/// Returns true if the value may be that of a second property.
fn is_lookup_value(value: &Value) -> bool {
    matches!(value, Value::Binary(bytes) if bytes.len() == LOOKUP_BYTES)
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
