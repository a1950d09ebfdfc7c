//! The indexes and copies of an entity: how an entry is made of the entity, and which entries a
//! stored entity has.
//!
//! An entry is an entity of its own. Knows nothing of how entries are written.

use bytes::Bytes;
use tablesdk_protocol::wire::json::{JsonEntity, read_entity};
use tablesdk_protocol::{EntityKey, TableName};

use crate::entity::{
    EntityError, EntityProblem, PropertyReader, PropertyWriter, Schema, Stored, TableEntity,
    WritableEntity, write,
};
use crate::error::Error;

/// An entry of an index: the properties of an entity under another row key, or under two other
/// keys. What [`#[table(index(…))]`](derive@crate::TableEntity#index) generates is one.
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
    /// The source of its value in the entity: a property, or the key that the value is a part of.
    pub(crate) property: &'static str,
    /// True if the part can be given as a range.
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

/// An entity with indexes or copies.
#[doc(hidden)]
pub trait Indexed: TableEntity {
    /// Those whose entries are written together with the entity.
    const INDEXES: &'static [Index<Self>];
}

/// An index of the entities `E`, or their copies of one type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Index<E> {
    schema: &'static Schema,
    kind: Kind,
    /// The name under which the copies are stored.
    mark: &'static str,
    keys: fn(&E) -> Vec<EntityKey>,
    entries: fn(&E, &str) -> Result<Vec<Entry>, EntityError>,
    owner: fn(&JsonEntity<'_>, &str) -> Owner,
    /// The value as it is read after a write, where what is derived may depend on the difference.
    as_stored: fn(&E) -> Option<E>,
}

/// The kind of entities that are derived from an entity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Entries of an index.
    Index {
        is_unique: bool,
        key_parts: [&'static [EntryKeyPart]; 2],
    },
    /// Entities that are copies.
    Copies,
    /// Parts of other entities.
    Part,
    /// Entries by which expired entities are found.
    Expiry,
}

/// An entry of an index or a copy, as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: EntityKey,
    pub(crate) body: Bytes,
    /// The properties that a part of an entity does not have.
    pub(crate) absent: Vec<String>,
}

impl<E> Index<E> {
    /// The index with these entries.
    pub const fn of<I: IndexEntry<Entity = E>>() -> Self {
        let kind = Kind::Index {
            is_unique: I::IS_UNIQUE,
            key_parts: I::KEY_PARTS,
        };
        Self::new(
            const { &I::SCHEMA },
            kind,
            "",
            // What cannot be a key is not stored.
            |entity| I::entry_key(entity).ok().flatten().into_iter().collect(),
            |entity, _| {
                let Some(key) = I::entry_key(entity)? else {
                    return Ok(Vec::new());
                };
                let body = write(&key, |writer| I::write_entry(entity, writer))?;
                let absent = Vec::new();
                Ok(vec![Entry { key, body, absent }])
            },
            |entry, _| owner::<I>(entry),
            |_| None,
        )
    }

    pub(crate) const fn new(
        schema: &'static Schema,
        kind: Kind,
        mark: &'static str,
        keys: fn(&E) -> Vec<EntityKey>,
        entries: fn(&E, &str) -> Result<Vec<Entry>, EntityError>,
        owner: fn(&JsonEntity<'_>, &str) -> Owner,
        as_stored: fn(&E) -> Option<E>,
    ) -> Self {
        Self {
            schema,
            kind,
            mark,
            keys,
            entries,
            owner,
            as_stored,
        }
    }

    /// The entries of an entity that is written.
    pub(crate) fn entries(&self, entity: &E) -> Result<Vec<Entry>, EntityError> {
        let stored = (self.as_stored)(entity);
        (self.entries)(stored.as_ref().unwrap_or(entity), self.mark).map_err(|error| {
            let problem = match self.kind {
                Kind::Index { .. } | Kind::Expiry => EntityProblem::of_entry,
                Kind::Copies | Kind::Part => EntityProblem::of_copy,
            };
            problem(self.schema.entity(), error).into()
        })
    }
}

/// The entity that has an entry.
fn owner<I: IndexEntry>(entry: &JsonEntity<'_>) -> Owner {
    let is_entry = I::SCHEMA.entity_type().is_none_or(|entity_type| {
        let found = entry.text(entity_type.property()).ok().flatten();
        found == Some(entity_type.name())
    });
    if !is_entry {
        return Owner::NoEntry;
    }
    let entry = I::read(&mut PropertyReader::new(entry, None));
    let key = entry.and_then(|entry| entry.key_of_entity());
    key.map_or(Owner::Damaged, Owner::Entity)
}

/// The owner of an entity that is stored under a key of an index.
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

    fn kind(&self) -> Kind;

    /// The noun for the index in messages.
    fn noun(&self) -> &'static str {
        match self.kind() {
            Kind::Index { .. } | Kind::Expiry => "index",
            Kind::Copies | Kind::Part => "copy",
        }
    }

    /// The name of one of its entries in messages.
    fn label(&self) -> String {
        match self.kind() {
            Kind::Index { .. } | Kind::Expiry => format!("entry in the index {}", self.name()),
            Kind::Copies | Kind::Part => format!("copy {}", self.name()),
        }
    }

    /// Returns true if an entry may belong to another entity than the one that should have it.
    fn is_unique(&self) -> bool {
        match self.kind() {
            Kind::Index { is_unique, .. } => is_unique,
            Kind::Copies => true,
            Kind::Part | Kind::Expiry => false,
        }
    }

    /// Returns true if the derived copy is a part of an entity that belongs to no other.
    fn is_part(&self) -> bool {
        matches!(self.kind(), Kind::Part)
    }

    /// Returns true if expired entities are found by the entries. Queries do not read these
    /// entries.
    fn is_expiry(&self) -> bool {
        matches!(self.kind(), Kind::Expiry)
    }

    /// The parts of the partition key of its entries, and those of the row key.
    fn key_parts(&self) -> [&'static [EntryKeyPart]; 2] {
        match self.kind() {
            Kind::Index { key_parts, .. } => key_parts,
            Kind::Copies | Kind::Part | Kind::Expiry => [&[], &[]],
        }
    }

    /// The filter for the copies among the entities of their type.
    fn marked(&self) -> Option<String>;

    /// Returns true if the entries are in other partitions than their entities, or in another
    /// table: no transaction writes both.
    fn is_elsewhere(&self) -> bool {
        self.schema().is_elsewhere()
    }

    /// Returns true if an entry is reserved before its entity is written.
    fn is_reserved(&self) -> bool {
        self.is_elsewhere() && self.is_unique()
    }

    /// The table of the entries of entities in a table.
    fn table_of(&self, entities: &TableName) -> Result<TableName, Error> {
        let Some(form) = self.schema().table() else {
            return Ok(entities.clone());
        };
        let entities = entities.as_str();
        if form.named(entities).is_some() {
            let (table, index) = (entities.to_owned(), self.name());
            return Err(Error::input(TableOfEntries { table, index }));
        }
        TableName::new(form.other(entities)).map_err(Error::input)
    }

    /// The owner of an entity that is stored under a key of this index.
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

    fn kind(&self) -> Kind {
        self.kind
    }

    fn marked(&self) -> Option<String> {
        let is_copy = matches!(self.kind, Kind::Copies);
        is_copy.then(|| {
            format!(
                "{} eq '{}'",
                super::copy::MARK,
                self.mark.replace('\'', "''")
            )
        })
    }

    fn owner_of(&self, entry: &Bytes) -> Owner {
        read_entity(entry).map_or(Owner::Damaged, |entry| (self.owner)(&entry, self.mark))
    }

    fn entry_of(&self, entity: &Bytes, entry: &EntityKey) -> EntryOf {
        let Ok(entity) = read_entity(entity) else {
            return EntryOf::Unknown;
        };
        let Ok(entity) = E::read(&mut PropertyReader::new(&entity, None)) else {
            return EntryOf::Unknown;
        };
        if !(self.keys)(&entity).contains(entry) {
            return EntryOf::None;
        }
        let entries = (self.entries)(&entity, self.mark).unwrap_or_default();
        let found = entries.into_iter().find(|found| found.key == *entry);
        found.map_or(EntryOf::Unknown, |found| EntryOf::Entry(found.body))
    }
}

/// Entities would be in a table for entries.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "a table with the name {table} is for entries of the index {index}: entities are in a table with another name"
)]
struct TableOfEntries {
    table: String,
    index: &'static str,
}

/// Returns true if the stored entity has the entry with that key.
pub(crate) fn has_entry<E>(entity: &Stored<E>, entry: &EntityKey) -> bool {
    let entries = entity.memory().get::<EntryKeys>();
    entries.is_some_and(|entries| entries.iter().any(|key| key == entry))
}

/// Returns true if the stored entity has the entry with that key in the index. Indexes in other
/// tables may have entries with the same key.
pub(super) fn has_entry_in<I: IndexEntry>(entity: &Stored<I::Entity>, entry: &EntityKey) -> bool {
    let entries = entity.memory().get::<EntryKeys>();
    entries.is_some_and(|entries| {
        let mut entries = entries.by_index();
        entries.any(|(index, key)| index.name() == I::SCHEMA.entity() && key == entry)
    })
}

/// The keys of the entries that a stored entity has, each with the position of its index.
#[derive(Clone)]
pub(crate) struct EntryKeys {
    keys: Vec<(usize, EntityKey)>,
    /// The index at a position.
    index: fn(usize) -> Option<&'static dyn AnyIndex>,
}

impl EntryKeys {
    /// The keys of the entries of an entity that was read.
    pub(crate) fn of<E: Indexed>(entity: &E) -> Self {
        Self::all(|index: &Index<E>| (index.keys)(entity))
    }

    /// The keys of the entries of an entity that was written.
    pub(crate) fn of_written<E: Indexed>(entity: &E) -> Self {
        Self::all(|index: &Index<E>| {
            let stored = (index.as_stored)(entity);
            (index.keys)(stored.as_ref().unwrap_or(entity))
        })
    }

    fn all<E: Indexed>(keys: impl Fn(&Index<E>) -> Vec<EntityKey>) -> Self {
        let indexes = E::INDEXES.iter().enumerate();
        let keys = indexes.flat_map(|(position, index)| {
            let keys = keys(index).into_iter();
            keys.map(move |key| (position, key))
        });
        Self {
            keys: keys.collect(),
            index: |position| E::INDEXES.get(position).map(|index| index as _),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &EntityKey> {
        self.keys.iter().map(|(_, key)| key)
    }

    /// The keys, each with its index.
    pub(super) fn by_index(&self) -> impl Iterator<Item = (&'static dyn AnyIndex, &EntityKey)> {
        let keys = self.keys.iter();
        keys.filter_map(|(position, key)| Some(((self.index)(*position)?, key)))
    }

    /// The keys of the entries in an index.
    pub(crate) fn of_index(&self, index: usize) -> impl Iterator<Item = &EntityKey> {
        let of_index = self
            .keys
            .iter()
            .filter(move |(position, _)| *position == index);
        of_index.map(|(_, key)| key)
    }
}
