//! The oracle: tables as plain maps, and the response to each operation by the service's rules.

use std::collections::BTreeMap;

use crate::value::Val;

/// The entities of a table, in the order of the UTF-16 units of their keys.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// By lower-cased name; in addition to the entities, the name as it was created.
    tables: BTreeMap<String, (String, BTreeMap<Key, Row>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    units: (Vec<u16>, Vec<u16>),
}

impl Key {
    pub(crate) fn new(partition_key: &str, row_key: &str) -> Self {
        Self {
            units: (
                partition_key.encode_utf16().collect(),
                row_key.encode_utf16().collect(),
            ),
        }
    }

    pub(crate) fn texts(&self) -> (String, String) {
        let text = |units: &[u16]| String::from_utf16(units).unwrap();
        (text(&self.units.0), text(&self.units.1))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) properties: Properties,
    /// The ETag that the service gave it.
    pub(crate) etag: String,
}

pub(crate) type Properties = BTreeMap<String, Val>;

/// A write on one entity.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Delete(Condition),
    Insert(Properties),
    Update {
        merge: bool,
        condition: Option<Condition>,
        properties: Properties,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Any,
    ETag(String),
}

impl Write {
    /// The condition that the stored entity has to meet.
    pub(crate) const fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Delete(condition) => Some(condition),
            Self::Insert(_) => None,
            Self::Update { condition, .. } => condition.as_ref(),
        }
    }
}

/// Status and code of a refusal.
pub(crate) type Refusal = (u16, &'static str);

impl Oracle {
    pub(crate) fn create_table(&mut self, name: &str) -> Result<(), Refusal> {
        let key = name.to_lowercase();
        if self.tables.contains_key(&key) {
            return Err((409, "TableAlreadyExists"));
        }
        self.tables.insert(key, (name.to_owned(), BTreeMap::new()));
        Ok(())
    }

    pub(crate) fn delete_table(&mut self, name: &str) -> Result<(), Refusal> {
        match self.tables.remove(&name.to_lowercase()) {
            Some(_) => Ok(()),
            None => Err((404, "ResourceNotFound")),
        }
    }

    /// The names as they were created, in the order of the lower-cased ones.
    pub(crate) fn tables(&self) -> Vec<String> {
        self.tables.values().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn rows(&self, table: &str) -> Result<&BTreeMap<Key, Row>, Refusal> {
        match self.tables.get(&table.to_lowercase()) {
            Some((_, rows)) => Ok(rows),
            None => Err((404, "TableNotFound")),
        }
    }

    pub(crate) fn row(&self, table: &str, key: &Key) -> Result<&Row, Refusal> {
        self.rows(table)?.get(key).ok_or((404, "ResourceNotFound"))
    }

    /// The entity after the write, or the refusal of the write; `None` if the entity is deleted.
    pub(crate) fn decide(
        &self,
        table: &str,
        key: &Key,
        write: &Write,
    ) -> Result<Option<Properties>, Refusal> {
        let stored = self.rows(table)?.get(key);
        if stored.is_some() && matches!(write, Write::Insert(_)) {
            return Err((409, "EntityAlreadyExists"));
        }
        if let Some(condition) = write.condition() {
            let stored = stored.ok_or((404, "ResourceNotFound"))?;
            if matches!(condition, Condition::ETag(etag) if *etag != stored.etag) {
                return Err((412, "UpdateConditionNotSatisfied"));
            }
        }
        Ok(match write {
            Write::Delete(_) => None,
            Write::Update {
                merge: true,
                properties,
                ..
            } => {
                let mut merged = stored.map(|row| row.properties.clone()).unwrap_or_default();
                merged.extend(properties.clone());
                Some(merged)
            }
            Write::Insert(properties) | Write::Update { properties, .. } => {
                Some(properties.clone())
            }
        })
    }

    /// The entities after an entity group transaction, or its first refused change with the
    /// refusal.
    pub(crate) fn decide_batch(
        &self,
        changes: &[(&str, &Key, &Write)],
    ) -> Result<Vec<Option<Properties>>, (usize, Refusal)> {
        let (first_table, first_key, _) = changes[0];
        let mut outcomes = Vec::new();
        for (index, &(table, key, write)) in changes.iter().enumerate() {
            let other_table = table.to_lowercase() != first_table.to_lowercase();
            let earlier = &changes[..index];
            let outcome = if other_table || key.units.0 != first_key.units.0 {
                Err((400, "CommandsInBatchActOnDifferentPartitions"))
            } else if earlier.iter().any(|&(_, other, _)| other == key) {
                Err((400, "InvalidDuplicateRow"))
            } else {
                self.decide(table, key, write)
            };
            outcomes.push(outcome.map_err(|refusal| (index, refusal))?);
        }
        Ok(outcomes)
    }

    pub(crate) fn apply(&mut self, table: &str, key: &Key, row: Option<Row>) {
        let (_, rows) = self
            .tables
            .get_mut(&table.to_lowercase())
            .expect("the write was decided on it");
        match row {
            Some(row) => rows.insert(key.clone(), row),
            None => rows.remove(key),
        };
    }
}

/// Few keys, so that operations meet the same entity again. Each key is a special case.
pub(crate) const KEYS: [&str; 9] = [
    "", "a", "B", "O'Brien", "a,b)('=", "100%+&", "é", "😀", "\u{E000}",
];
/// Row keys that batches write to.
pub(crate) const BATCH_ROWS: [&str; 6] = ["", "a", "B", "O'Brien", "a,b)('=", "😀"];
pub(crate) const NAMES: [&str; 6] = ["a", "b", "Count", "größe", "Missing", "_"];
