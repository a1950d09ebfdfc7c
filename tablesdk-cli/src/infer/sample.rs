//! The entities of which the structs are inferred, without what inference does not look at. This
//! file knows nothing of Rust.

use std::collections::{BTreeSet, HashSet};

use tablesdk::{DynamicEntity, Error, TableClient, Value};

use super::names::TypeName;
use super::{Module, Unreadable};
use crate::own::{INDEX, RESERVED};
use crate::sampling::{self, Gather};
use crate::schema::Schema;

/// Entities of one table.
///
/// ```
/// use tablesdk::DynamicEntity;
/// use tablesdk_cli::infer::Sample;
///
/// let mut sample = Sample::default();
/// for id in ["empid_000223", "empid_000224", "empid_001017"] {
///     sample.add(&DynamicEntity::new("Sales", id).with("Age", 36));
/// }
/// let module = sample.module("Employees", None)?.to_string();
/// assert!(module.contains("row_key = \"empid_{empid:06}\""), "{module}");
/// assert!(module.contains("pub age: i32"), "{module}");
/// # Ok::<(), tablesdk_cli::infer::Unreadable>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sample {
    entities: Vec<DynamicEntity>,
    schema: Schema,
    /// The bytes of the entities, about.
    bytes: usize,
    left_out: LeftOut,
    /// The names in entries of indexes.
    indexes: BTreeSet<String>,
    is_complete: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            entities: Vec::new(),
            schema: Schema::default(),
            bytes: 0,
            left_out: LeftOut::default(),
            indexes: BTreeSet::new(),
            is_complete: true,
        }
    }
}

/// How many entities were seen that no struct has, because the client stores them for purposes of
/// its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Entities whose row key begins with `~tablesdk.`, such as steps of an outbox. Queries do not
    /// return them.
    pub reserved: u64,
    /// Entries of indexes.
    pub index_entries: u64,
    /// Parts of wide entities.
    pub wide: u64,
}

impl Sample {
    /// Reads entities of a table, at most this number: the first ones, and a part from behind all
    /// keys that begin as these do.
    ///
    /// # Errors
    ///
    /// When a request fails.
    pub async fn read(table: &TableClient, count: usize) -> Result<Self, Error> {
        let (sample, is_complete) = sampling::read(table, count).await?;
        Ok(Self {
            is_complete,
            ..sample
        })
    }

    /// Adds an entity, or counts it as left out.
    pub fn add(&mut self, entity: &DynamicEntity) {
        let has = |name| entity.properties().get(name).is_some();
        if entity.row_key().starts_with(RESERVED) {
            self.left_out.reserved += 1;
        } else if has(INDEX) {
            self.left_out.index_entries += 1;
            let index = entity.properties().read(INDEX).ok();
            let is_room = self.indexes.len() < INDEXES_MAX;
            self.indexes.extend(index.filter(|_| is_room));
        } else if has("TablesdkVersion") {
            self.left_out.wide += 1;
        } else {
            self.schema.add(entity);
            let reduced = reduced(entity);
            self.bytes += bytes(&reduced);
            self.entities.push(reduced);
        }
    }

    /// The number of entities, without those that were left out.
    pub const fn len(&self) -> usize {
        self.entities.len()
    }

    /// Returns true if there is nothing to infer from.
    pub const fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Returns true if more entities would take too much memory: the sample takes about 256 MiB.
    pub const fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// Returns true if the reads covered all entities of the table.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The number of partitions that the entities are in.
    pub fn partitions(&self) -> usize {
        let partitions = self.entities.iter().map(DynamicEntity::partition_key);
        partitions.collect::<HashSet<_>>().len()
    }

    /// The common schema of the entities, by their whole values.
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The entities that were left out.
    pub const fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The module that reads these entities. Its struct, or its enum, has this name, or one by the
    /// table.
    ///
    /// # Errors
    ///
    /// When the module does not read one of them, which is a defect of this function.
    pub fn module(&self, table: &str, name: Option<TypeName>) -> Result<Module, Unreadable> {
        let module = Module::infer(table, name, &self.entities, &self.indexes);
        for entity in &self.entities {
            module.check(entity)?;
        }
        Ok(module)
    }
}

impl Gather for Sample {
    fn gather(&mut self, entity: &DynamicEntity) {
        self.add(entity);
    }

    fn gathered(&self) -> usize {
        self.len()
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }
}

/// The memory that a reduced entity takes, about.
fn bytes(entity: &DynamicEntity) -> usize {
    let keys = entity.partition_key().len() + entity.row_key().len();
    let properties = entity.properties().iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.len(),
            _ => 0,
        };
        size_of::<(String, Value)>() + name.len() + text
    });
    size_of::<DynamicEntity>() + keys + properties.sum::<usize>()
}

/// The entity with its types, short strings and numbers: what a module depends on. A sample with
/// photos takes no more memory than one without.
fn reduced(entity: &DynamicEntity) -> DynamicEntity {
    let mut reduced = DynamicEntity::new(entity.partition_key(), entity.row_key());
    for (name, value) in entity.properties().iter() {
        if name.starts_with("Tablesdk") {
            continue;
        }
        let value = match value {
            Value::Binary(_) => Value::Binary(Vec::new()),
            Value::String(text) => Value::String(text.chars().take(TEXT_MAX).collect()),
            other => other.clone(),
        };
        reduced.properties_mut().set(name, value);
    }
    reduced
}

/// The entities of a sample take no more memory, about.
const BYTES_MAX: usize = 256 << 20;

/// An entity of few properties has no more indexes.
const INDEXES_MAX: usize = 16;

/// The number of characters of a string that are kept. A string that has them all may have been
/// longer.
pub(super) const TEXT_MAX: usize = 64;
