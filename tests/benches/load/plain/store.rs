//! The tables: entities as `serde_json` has read them, in the order of their keys.

use std::collections::BTreeMap;
use std::time::SystemTime;

use http::{HeaderMap, Method, StatusCode};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use tablesdk_protocol::Timestamp;

use super::properties::Properties;

/// Partition key and row key.
pub(super) type Key = (String, String);
pub(super) type Table = BTreeMap<Key, Entity>;

/// All tables by name.
#[derive(Default)]
pub(super) struct Tables(BTreeMap<String, Table>);

/// An entity with its keys, as it was sent, and when it was written.
pub(super) struct Entity {
    pub(super) properties: Properties,
    timestamp: Timestamp,
}

impl Entity {
    pub(super) fn etag(&self) -> String {
        etag(&self.timestamp.to_string())
    }
}

/// As responses have it.
impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let timestamp = self.timestamp.to_string();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("odata.etag", &etag(&timestamp))?;
        for (name, value) in self.properties.iter() {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("Timestamp@odata.type", "Edm.DateTime")?;
        map.serialize_entry("Timestamp", &timestamp)?;
        map.end()
    }
}

/// One change of an entity.
pub(super) struct Change {
    table: String,
    key: Key,
    kind: Kind,
    precondition: Option<Precondition>,
}

enum Kind {
    Delete,
    Insert(Properties),
    Merge(Properties),
    Replace(Properties),
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
        table: String,
        key: Option<Key>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Self, StatusCode> {
        let precondition = super::precondition(headers);
        Self::new(method.as_str(), table, key, precondition, body)
    }

    pub(super) fn new(
        method: &str,
        table: String,
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
            (None, Kind::Insert(properties)) => {
                let key = |name| properties.get(name).and_then(Value::as_str);
                let keys = key("PartitionKey").zip(key("RowKey"));
                let (partition, row) = keys.ok_or(StatusCode::BAD_REQUEST)?;
                (partition.to_owned(), row.to_owned())
            }
            _ => return Err(StatusCode::BAD_REQUEST),
        };
        Ok(Self {
            table,
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
        for change in &changes {
            self.check(change)?;
        }
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let etag = etag(&now.to_string());
        let mut etags = Vec::with_capacity(changes.len());
        for change in changes {
            let logged = log
                .is_some()
                .then(|| (change.table.clone(), change.key.clone()));
            let is_deleted = matches!(change.kind, Kind::Delete);
            self.apply(change, now)?;
            etags.push((!is_deleted).then(|| etag.clone()));
            if let (Some(log), Some((table, key))) = (&mut log, logged) {
                let entity = self.table(&table)?.get(&key);
                let line = serde_json::to_writer(&mut **log, &(&table, &key, entity));
                line.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
                log.push(b'\n');
            }
        }
        Ok(etags)
    }

    /// An error if a change cannot be applied. No entity occurs twice in a batch, so that the
    /// changes before it do not matter.
    fn check(&self, change: &Change) -> Result<(), StatusCode> {
        let stored = self.table(&change.table)?.get(&change.key);
        match (&change.kind, &change.precondition, stored) {
            (Kind::Insert(_), _, Some(_)) => Err(StatusCode::CONFLICT),
            (Kind::Delete, _, None) | (_, Some(_), None) => Err(StatusCode::NOT_FOUND),
            (_, Some(Precondition::ETag(etag)), Some(stored)) if *etag != stored.etag() => {
                Err(StatusCode::PRECONDITION_FAILED)
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, change: Change, timestamp: Timestamp) -> Result<(), StatusCode> {
        let table = self.0.get_mut(&change.table).ok_or(StatusCode::NOT_FOUND)?;
        let (partition, row) = &change.key;
        let mut properties = match change.kind {
            Kind::Delete => {
                table.remove(&change.key);
                return Ok(());
            }
            Kind::Merge(changed) => {
                if let Some(stored) = table.get_mut(&change.key) {
                    stored.properties.merge(changed);
                    stored.timestamp = timestamp;
                    return Ok(());
                }
                changed
            }
            Kind::Insert(properties) | Kind::Replace(properties) => properties,
        };
        for (name, key) in [("PartitionKey", partition), ("RowKey", row)] {
            if properties.get(name).is_none() {
                properties.set(name.to_owned(), Value::from(key.as_str()));
            }
        }
        let entity = Entity {
            properties,
            timestamp,
        };
        table.insert(change.key, entity);
        Ok(())
    }
}

fn etag(timestamp: &str) -> String {
    format!("W/\"datetime'{}'\"", timestamp.replace(':', "%3A"))
}
