//! The indexes of an entity: how an entry is made of the entity, and which entries a stored entity has.
//!
//! An entry is an entity of its own. Knows nothing of how entries are written.

use bytes::Bytes;
use tablesdk_protocol::EntityKey;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};

use super::writer::write;
use super::{EntityError, PropertyReader, PropertyWriter, Schema, TableEntity, WritableEntity};

/// An entry of an index: the properties of an entity under another row key, or under two other keys. What
/// [`#[table(index(…))]`](derive@crate::TableEntity#index) generates is one.
///
/// It is read like an entity, and written with the entity.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entry of an index",
    label = "not an entry",
    note = "the derive makes the type of the entries: `#[table(index(ByEmail, row_key = \"email_{{email}}\", unique))]`"
)]
pub trait IndexEntry: TableEntity {
    /// The type of the entities that have entries.
    type Entity: WritableEntity;

    #[doc(hidden)]
    const IS_UNIQUE: bool;

    /// The parts of the partition key, and those of the row key.
    #[doc(hidden)]
    const KEY_PARTS: [&'static [EntryKeyPart]; 2];

    /// The key of the entry of an entity; `None` where a field that is a part of it has no value.
    #[doc(hidden)]
    fn entry_key(entity: &Self::Entity) -> Result<Option<EntityKey>, EntityError>;

    /// Writes the properties of the entry of an entity.
    #[doc(hidden)]
    fn write_entry(
        entity: &Self::Entity,
        writer: &mut PropertyWriter<'_>,
    ) -> Result<(), EntityError>;

    /// The key of the entity that has this entry.
    ///
    /// # Errors
    ///
    /// When a part of the key has a value that cannot be in one: another program wrote the entry.
    fn key_of_entity(&self) -> Result<EntityKey, EntityError>;
}

/// A part of the key of an entry.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct EntryKeyPart {
    /// What holds its value in the entity: a property, or the key that the value is a part of.
    pub(crate) property: &'static str,
    /// Whether it can be given as a range.
    pub(crate) has_ranges: bool,
}

impl EntryKeyPart {
    pub const fn new(property: &'static str, has_ranges: bool) -> Self {
        Self {
            property,
            has_ranges,
        }
    }
}

/// An entity without indexes: each write of it is complete by itself. What derives [`TableEntity`] without
/// [`#[table(index(…))]`](derive@crate::TableEntity#index) is one.
#[diagnostic::on_unimplemented(
    message = "this write does not know which entries of the indexes of `{Self}` are stale",
    label = "this type has indexes",
    note = "use `insert`, `modify`, or `get` and then `replace` or `delete_stored`: they know what was stored",
    note = "a type whose `WritableEntity` is written by hand also implements `Standalone`"
)]
pub trait Standalone: WritableEntity {}

/// Refuses at compile time to write some properties of an entity with indexes, or of an entry.
pub(crate) const fn check_standalone<E: TableEntity>() {
    assert!(
        E::IS_STANDALONE,
        "this write does not know which entries of indexes are stale: use `modify`, or get the entity and then use `replace` or `delete_stored`"
    );
}

/// Refuses at compile time to delete an entry alone.
pub(crate) const fn check_no_entry<E: TableEntity>() {
    assert!(
        E::IS_STANDALONE || !E::INDEXES.is_empty(),
        "an entry of an index is deleted together with its entity: get the entity with `.follow()`, and use `delete_stored`"
    );
}

/// Refuses at compile time to read entries in other partitions as if they were the entities.
pub(crate) const fn check_verified<E: TableEntity>(is_unverified: bool) {
    assert!(
        is_unverified || !E::SCHEMA.is_elsewhere(),
        "an entry in another partition than its entity may be out of date: add `.follow()`, which reads the entities, or `.unverified()`"
    );
}

/// An index of the entities `E`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Index<E> {
    schema: &'static Schema,
    is_unique: bool,
    key_parts: [&'static [EntryKeyPart]; 2],
    entry_key: fn(&E) -> Result<Option<EntityKey>, EntityError>,
    write_entry: fn(&E, &mut PropertyWriter<'_>) -> Result<(), EntityError>,
    read_owner: fn(&JsonEntity<'_>) -> Result<EntityKey, EntityError>,
}

impl<E> Index<E> {
    /// The index with these entries.
    pub const fn of<I: IndexEntry<Entity = E>>() -> Self {
        Self {
            schema: const { &I::SCHEMA },
            is_unique: I::IS_UNIQUE,
            key_parts: I::KEY_PARTS,
            entry_key: I::entry_key,
            write_entry: I::write_entry,
            read_owner: |entry| I::read(&mut PropertyReader::new(entry, None))?.key_of_entity(),
        }
    }

    /// The key of the entry of an entity.
    pub(crate) fn entry_key(&self, entity: &E) -> Result<Option<EntityKey>, EntityError> {
        (self.entry_key)(entity)
    }

    /// The entry of an entity, as it is sent.
    pub(crate) fn write_entry(&self, entity: &E, key: &EntityKey) -> Result<Bytes, EntityError> {
        write(key, |writer| (self.write_entry)(entity, writer))
    }
}

/// What an entity under a key of an index is.
pub(crate) enum Owner {
    /// The entry of this entity.
    Entity(EntityKey),
    /// An entry of the index that cannot be read.
    Damaged,
    /// An entity of another type.
    NoEntry,
}

/// The entry with a key, of an entity.
pub(crate) enum EntryOf {
    /// As it is sent.
    Entry(Bytes),
    /// The entity has no entry with that key.
    None,
    /// The entity cannot be read, or its entry cannot be written.
    Unknown,
}

/// An index, for code that does not know the type of its entities.
pub(crate) trait AnyIndex: Send + Sync {
    /// The name of the type of its entries.
    fn name(&self) -> &'static str;

    /// The schema of its entries.
    fn schema(&self) -> &'static Schema;

    /// Whether two entities of a partition never have an entry with the same key.
    fn is_unique(&self) -> bool;

    /// The parts of the partition key of its entries, and those of the row key.
    fn key_parts(&self) -> [&'static [EntryKeyPart]; 2];

    /// Whether the entries are in other partitions than their entities.
    fn is_elsewhere(&self) -> bool {
        self.schema().is_elsewhere()
    }

    /// What an entity under a key of this index is.
    fn owner_of(&self, entry: &Bytes) -> Owner;

    /// The entry with that key of an entity.
    fn entry_of(&self, entity: &Bytes, entry: &EntityKey) -> EntryOf;
}

impl<E: TableEntity> AnyIndex for Index<E> {
    fn name(&self) -> &'static str {
        self.schema.entity()
    }

    fn schema(&self) -> &'static Schema {
        self.schema
    }

    fn is_unique(&self) -> bool {
        self.is_unique
    }

    fn key_parts(&self) -> [&'static [EntryKeyPart]; 2] {
        self.key_parts
    }

    fn owner_of(&self, entry: &Bytes) -> Owner {
        let Ok(entry) = read_entity(entry) else {
            return Owner::Damaged;
        };
        let entity_type = self.schema.entity_type();
        let is_entry = entity_type.is_none_or(|entity_type| {
            let found = entry.text(entity_type.property()).ok().flatten();
            found == Some(entity_type.name())
        });
        if !is_entry {
            return Owner::NoEntry;
        }
        let owner = (self.read_owner)(&entry);
        owner.map_or(Owner::Damaged, Owner::Entity)
    }

    fn entry_of(&self, entity: &Bytes, entry: &EntityKey) -> EntryOf {
        let Ok(entity) = read_entity(entity) else {
            return EntryOf::Unknown;
        };
        let Ok(entity) = E::read(&mut PropertyReader::new(&entity, None)) else {
            return EntryOf::Unknown;
        };
        match self.entry_key(&entity) {
            Ok(Some(key)) if key == *entry => self
                .write_entry(&entity, &key)
                .map_or(EntryOf::Unknown, EntryOf::Entry),
            // What cannot be a key is not stored.
            Ok(_) | Err(_) => EntryOf::None,
        }
    }
}

/// The keys of the entries that a stored entity has, in the order of its indexes. Empty for an entity without indexes.
#[derive(Clone, Default)]
pub(crate) struct EntryKeys(Vec<Option<EntityKey>>);

impl EntryKeys {
    pub(crate) fn of<E: TableEntity>(entity: &E) -> Self {
        // What cannot be a key is not stored.
        let key = |index: &Index<E>| index.entry_key(entity).ok().flatten();
        Self(E::INDEXES.iter().map(key).collect())
    }

    pub(crate) fn contains(&self, key: &EntityKey) -> bool {
        self.0.iter().flatten().any(|known| known == key)
    }

    /// The key of the entry in an index.
    pub(crate) fn get(&self, index: usize) -> Option<&EntityKey> {
        self.0.get(index)?.as_ref()
    }
}
