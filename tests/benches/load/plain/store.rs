//! The tables: entities as `serde_json` has read them, in the order of their keys.

use std::collections::BTreeMap;
use std::time::SystemTime;

use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value};
use tablesdk_protocol::Timestamp;

/// Partition key and row key.
pub(super) type Key = (String, String);
pub(super) type Entity = Map<String, Value>;
pub(super) type Table = BTreeMap<Key, Entity>;

/// All tables by name.
#[derive(Default)]
pub(super) struct Tables(BTreeMap<String, Table>);

/// One change of an entity.
pub(super) struct Change {
    table: String,
    key: Key,
    kind: Kind,
    precondition: Option<Precondition>,
}

enum Kind {
    Delete,
    Insert(Entity),
    Merge(Entity),
    Replace(Entity),
}

/// The value of `If-Match`.
pub(super) enum Precondition {
    Any,
    ETag(String),
}

impl Precondition {
    pub(super) fn of(value: &str) -> Self {
        match value {
            "*" => Self::Any,
            etag => Self::ETag(etag.to_owned()),
        }
    }
}

impl Change {
    /// The change that a request asks for.
    pub(super) fn of(
        method: &Method,
        table: &str,
        key: Option<Key>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Self, StatusCode> {
        Self::new(
            method.as_str(),
            table,
            key,
            super::precondition(headers),
            body,
        )
    }

    pub(super) fn new(
        method: &str,
        table: &str,
        key: Option<Key>,
        precondition: Option<Precondition>,
        body: &[u8],
    ) -> Result<Self, StatusCode> {
        let kind = match method {
            "DELETE" => Kind::Delete,
            "POST" => Kind::Insert(super::parse(body)?),
            "PUT" => Kind::Replace(super::parse(body)?),
            "PATCH" | "MERGE" => Kind::Merge(super::parse(body)?),
            _ => return Err(StatusCode::METHOD_NOT_ALLOWED),
        };
        let key = match (key, &kind) {
            (Some(key), _) => key,
            (None, Kind::Insert(entity)) => {
                let key = |name| entity.get(name).and_then(Value::as_str).map(str::to_owned);
                let keys = key("PartitionKey").zip(key("RowKey"));
                keys.ok_or(StatusCode::BAD_REQUEST)?
            }
            _ => return Err(StatusCode::BAD_REQUEST),
        };
        Ok(Self {
            table: table.to_owned(),
            key,
            kind,
            precondition,
        })
    }
}

impl Tables {
    pub(super) fn create(&mut self, name: String) -> Result<(), StatusCode> {
        if self.0.contains_key(&name) {
            return Err(StatusCode::CONFLICT);
        }
        self.0.insert(name, Table::new());
        Ok(())
    }

    pub(super) fn delete(&mut self, name: &str) -> Result<(), StatusCode> {
        let table = self.0.remove(name);
        table.map(drop).ok_or(StatusCode::NOT_FOUND)
    }

    pub(super) fn table(&self, name: &str) -> Result<&Table, StatusCode> {
        self.0.get(name).ok_or(StatusCode::NOT_FOUND)
    }

    /// Applies all changes, or none of them and returns the status of the first that fails. Returns
    /// the ETags, and appends a line for each change to `log`.
    pub(super) fn apply_all(
        &mut self,
        changes: Vec<Change>,
        mut log: Option<&mut Vec<u8>>,
    ) -> Result<Vec<Option<String>>, StatusCode> {
        let mut etags = Vec::with_capacity(changes.len());
        let mut undo = Vec::with_capacity(changes.len());
        for change in changes {
            let (name, key) = (change.table.clone(), change.key.clone());
            let applied = self.apply(change);
            let (etag, before) = match applied {
                Ok(applied) => applied,
                Err(status) => {
                    self.restore(undo);
                    return Err(status);
                }
            };
            if let Some(log) = &mut log {
                let entity = self.0.get(&name).and_then(|table| table.get(&key));
                if serde_json::to_writer(&mut **log, &(&name, &key, entity)).is_err() {
                    return Err(StatusCode::INTERNAL_SERVER_ERROR);
                }
                log.push(b'\n');
            }
            etags.push(etag);
            undo.push((name, key, before));
        }
        Ok(etags)
    }

    /// Applies a change. Returns the new ETag and the entity as it was.
    fn apply(&mut self, change: Change) -> Result<(Option<String>, Option<Entity>), StatusCode> {
        let table = self.0.get_mut(&change.table).ok_or(StatusCode::NOT_FOUND)?;
        let stored = table.get(&change.key);
        match (&change.precondition, stored) {
            (Some(_), None) => return Err(StatusCode::NOT_FOUND),
            (Some(Precondition::ETag(expected)), Some(stored))
                if etag(stored) != Some(expected) =>
            {
                return Err(StatusCode::PRECONDITION_FAILED);
            }
            _ => {}
        }
        let key = change.key;
        let entity = match change.kind {
            Kind::Delete => {
                let before = table.remove(&key).ok_or(StatusCode::NOT_FOUND)?;
                return Ok((None, Some(before)));
            }
            Kind::Insert(_) if stored.is_some() => return Err(StatusCode::CONFLICT),
            Kind::Insert(entity) | Kind::Replace(entity) => entity,
            Kind::Merge(changed) => {
                let mut entity = stored.cloned().unwrap_or_default();
                entity.extend(changed);
                entity
            }
        };
        let (entity, etag) = stamped(entity, &key);
        let before = table.insert(key, entity);
        Ok((Some(etag), before))
    }

    fn restore(&mut self, undo: Vec<(String, Key, Option<Entity>)>) {
        for (name, key, before) in undo.into_iter().rev() {
            if let Some(table) = self.0.get_mut(&name) {
                match before {
                    Some(entity) => table.insert(key, entity),
                    None => table.remove(&key),
                };
            }
        }
    }
}

/// The entity with its keys, the time and an ETag.
fn stamped(mut entity: Entity, (partition, row): &Key) -> (Entity, String) {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    let now = now.to_string();
    let etag = format!("W/\"datetime'{}'\"", now.replace(':', "%3A"));
    for (name, key) in [("PartitionKey", partition), ("RowKey", row)] {
        if !entity.contains_key(name) {
            entity.insert(name.to_owned(), Value::String(key.clone()));
        }
    }
    for (name, value) in [
        ("Timestamp@odata.type", "Edm.DateTime".to_owned()),
        ("Timestamp", now),
        ("odata.etag", etag.clone()),
    ] {
        entity.insert(name.to_owned(), Value::String(value));
    }
    (entity, etag)
}

pub(super) fn etag(entity: &Entity) -> Option<&str> {
    entity.get("odata.etag").and_then(Value::as_str)
}
