//! One history: random operations on one server, each answer compared with the oracle's.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Map, Value as Json, json};
use tablesdk::{ETag, Timestamp};

use crate::filter::Filter;
use crate::oracle::{Condition, KEYS, Key, NAMES, Oracle, Properties, Row, Write};
use crate::server::{Answer, Server, encode};
use crate::value::Val;

/// Runs that many operations, and tells how many were answered as the oracle says: all, or it panics.
pub(crate) async fn run(seed: u64, operations: usize) -> usize {
    let mut history = History {
        rng: Rng::with_seed(seed),
        server: Server::new(),
        oracle: Oracle::default(),
        etags: vec!["W/\"datetime'2021-09-21T01%3A04%3A37Z'\"".to_owned()],
        last_write: Timestamp::MIN,
    };
    for _ in 0..operations {
        match history.rng.u8(..100) {
            0..=1 => history.create_table().await,
            2 if history.rng.u8(..8) == 0 => history.delete_table().await,
            3 => history.list_tables().await,
            4..=15 => history.get().await,
            16..=35 => history.query().await,
            _ => history.write().await,
        }
    }
    operations
}

struct History {
    rng: Rng,
    server: Server,
    oracle: Oracle,
    /// ETags that were once good, and one that never was.
    etags: Vec<String>,
    last_write: Timestamp,
}

impl History {
    fn table(&mut self) -> &'static str {
        ["people", "People", "things", "others"][self.rng.usize(..4)]
    }

    fn key(&mut self) -> Key {
        let mut key = || KEYS[self.rng.usize(..KEYS.len())];
        Key::new(key(), key())
    }

    fn properties(&mut self) -> Properties {
        let mut properties = BTreeMap::new();
        for name in NAMES {
            if name != "Missing" && self.rng.u8(..3) > 0 {
                properties.insert(name.to_owned(), Val::random(&mut self.rng));
            }
        }
        properties
    }

    async fn create_table(&mut self) {
        let name = self.table();
        let answer = self
            .server
            .send("POST", "/Tables", &[], Some(&json!({ "TableName": name })))
            .await;
        let expected = self.oracle.create_table(name);
        assert_eq!(answer.refusal(), expected.err(), "create {name}");
    }

    async fn delete_table(&mut self) {
        let name = self.table();
        let answer = self
            .server
            .send("DELETE", &format!("/Tables('{name}')"), &[], None)
            .await;
        let expected = self.oracle.delete_table(name);
        assert_eq!(answer.refusal(), expected.err(), "delete {name}");
    }

    async fn list_tables(&mut self) {
        let top = self.rng.usize(1..4);
        let mut names = Vec::new();
        let mut next = String::new();
        loop {
            let path = format!("/Tables?$top={top}{next}");
            let answer = self.server.send("GET", &path, &[], None).await;
            assert_eq!(answer.refusal(), None);
            let page = answer.body["value"].as_array().unwrap();
            assert!(page.len() <= top);
            names.extend(
                page.iter()
                    .map(|table| table["TableName"].as_str().unwrap().to_owned()),
            );
            match answer.header("x-ms-continuation-NextTableName") {
                Some(token) => next = format!("&NextTableName={}", encode(&token)),
                None => break,
            }
        }
        assert_eq!(names, self.oracle.tables());
    }

    async fn get(&mut self) {
        let (table, key) = (self.table(), self.key());
        let answer = self.server.send("GET", &path(table, &key), &[], None).await;
        match self.oracle.row(table, &key) {
            Err(refusal) => assert_eq!(answer.refusal(), Some(refusal), "get {key:?}"),
            Ok(row) => {
                assert_eq!(answer.header("etag").as_ref(), Some(&row.etag));
                assert_row(&answer.body, &key, row);
            }
        }
    }

    async fn write(&mut self) {
        let (table, key) = (self.table(), self.key());
        let condition = match self.rng.u8(..4) {
            0 => Condition::Any,
            1 => Condition::ETag(self.etags[self.rng.usize(..self.etags.len())].clone()),
            _ => match self.oracle.row(table, &key) {
                Ok(row) => Condition::ETag(row.etag.clone()),
                Err(_) => Condition::Any,
            },
        };
        let write = match self.rng.u8(..10) {
            0..=3 => Write::Insert(self.properties()),
            4 => Write::Delete(condition),
            other => Write::Update {
                merge: other % 2 == 0,
                condition: (other < 8).then_some(condition),
                properties: self.properties(),
            },
        };
        let answer = self.send_write(table, &key, &write).await;
        match self.oracle.decide(table, &key, &write) {
            Err(refusal) => assert_eq!(answer.refusal(), Some(refusal), "{write:?} {key:?}"),
            Ok(None) => {
                assert_eq!(answer.refusal(), None, "{write:?} {key:?}");
                self.oracle.apply(table, &key, None);
            }
            Ok(Some(properties)) => {
                assert_eq!(answer.refusal(), None, "{write:?} {key:?}");
                let etag = answer.header("etag").unwrap();
                let written = ETag::from_opaque(&*etag).timestamp().unwrap();
                assert!(
                    written > self.last_write,
                    "{written} after {}",
                    self.last_write
                );
                self.last_write = written;
                self.etags.push(etag.clone());
                let row = Row { properties, etag };
                if answer.status == 201 {
                    assert_row(&answer.body, &key, &row);
                }
                self.oracle.apply(table, &key, Some(row));
            }
        }
    }

    async fn send_write(&mut self, table: &str, key: &Key, write: &Write) -> Answer {
        let mut headers = Vec::new();
        let if_match = match write {
            Write::Delete(condition)
            | Write::Update {
                condition: Some(condition),
                ..
            } => Some(condition),
            _ => None,
        };
        match if_match {
            Some(Condition::Any) => headers.push(("if-match", "*")),
            Some(Condition::ETag(etag)) => headers.push(("if-match", etag)),
            None => {}
        }
        match write {
            Write::Delete(_) => {
                self.server
                    .send("DELETE", &path(table, key), &headers, None)
                    .await
            }
            Write::Insert(properties) => {
                let mut body = self.body(properties);
                let (partition_key, row_key) = key.texts();
                body.insert("RowKey".to_owned(), json!(row_key));
                body.insert("PartitionKey".to_owned(), json!(partition_key));
                if self.rng.bool() {
                    headers.push(("prefer", "return-no-content"));
                }
                let path = format!("/{table}");
                self.server
                    .send("POST", &path, &headers, Some(&body.into()))
                    .await
            }
            Write::Update {
                merge, properties, ..
            } => {
                let body = self.body(properties).into();
                let (method, tunnel) = match (merge, self.rng.u8(..3)) {
                    (true, 0) => ("PATCH", None),
                    (true, 1) => ("MERGE", None),
                    (true, _) => ("POST", Some("MERGE")),
                    (false, 0) => ("POST", Some("PUT")),
                    (false, _) => ("PUT", None),
                };
                headers.extend(tunnel.map(|method| ("x-http-method", method)));
                self.server
                    .send(method, &path(table, key), &headers, Some(&body))
                    .await
            }
        }
    }

    /// What else a body may hold without meaning anything is there sometimes.
    fn body(&mut self, properties: &Properties) -> Map<String, Json> {
        let mut body = Map::new();
        for (name, value) in properties {
            value.write(name, &mut body, &mut self.rng);
        }
        if self.rng.u8(..4) == 0 {
            body.insert("Missing".to_owned(), Json::Null);
            body.insert("odata.etag".to_owned(), json!("W/\"x\""));
            body.insert("Timestamp".to_owned(), json!("2020-01-01T00:00:00Z"));
        }
        body
    }

    async fn query(&mut self) {
        let table = self.table();
        let filter = Filter::random(&mut self.rng, 3);
        let text = filter.text(&mut self.rng);
        let select: Option<Vec<&str>> = (self.rng.u8(..3) == 0).then(|| {
            let all = ["PartitionKey", "RowKey", "a", "Count", "Missing"];
            all.into_iter().filter(|_| self.rng.bool()).collect()
        });
        let select = select.filter(|names| !names.is_empty());
        let top = self.rng.usize(1..20);
        let mut query = format!("/{table}()?$filter={}&$top={top}", encode(&text));
        if let Some(names) = &select {
            query += &format!("&$select={}", encode(&names.join(",")));
        }
        let expected: Vec<(&Key, &Row)> = match self.oracle.rows(table) {
            Err(refusal) => {
                let answer = self.server.send("GET", &query, &[], None).await;
                assert_eq!(answer.refusal(), Some(refusal));
                return;
            }
            Ok(rows) => rows
                .iter()
                .filter(|(key, row)| filter.holds(&|name| property(key, row, name)))
                .collect(),
        };
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let answer = self
                .server
                .send("GET", &format!("{query}{next}"), &[], None)
                .await;
            assert_eq!(answer.refusal(), None, "{text}");
            let page = answer.body["value"].as_array().unwrap();
            assert!(page.len() <= top, "{text}");
            found.extend(page.iter().cloned());
            let Some(partition) = answer.header("x-ms-continuation-NextPartitionKey") else {
                break;
            };
            next = format!("&NextPartitionKey={}", encode(&partition));
            if let Some(row) = answer.header("x-ms-continuation-NextRowKey") {
                next += &format!("&NextRowKey={}", encode(&row));
            }
        }
        assert_eq!(found.len(), expected.len(), "{text}");
        for (found, (key, row)) in found.iter().zip(expected) {
            match &select {
                None => assert_row(found, key, row),
                Some(names) => {
                    let read = read(found);
                    let mut members: Vec<_> = read.keys().map(String::as_str).collect();
                    let mut wanted = names.clone();
                    members.sort_unstable();
                    wanted.sort_unstable();
                    assert_eq!(members, wanted, "{text}");
                    for name in names {
                        assert_same(
                            read[*name].as_ref(),
                            property(key, row, name).as_ref(),
                            name,
                        );
                    }
                }
            }
        }
    }
}

fn path(table: &str, key: &Key) -> String {
    let (partition_key, row_key) = key.texts();
    let quoted = |text: String| encode(&text.replace('\'', "''"));
    format!(
        "/{table}(PartitionKey='{}',RowKey='{}')",
        quoted(partition_key),
        quoted(row_key)
    )
}

fn property(key: &Key, row: &Row, name: &str) -> Option<Val> {
    let (partition_key, row_key) = key.texts();
    match name {
        "PartitionKey" => Some(Val::Text(partition_key)),
        "RowKey" => Some(Val::Text(row_key)),
        name => row.properties.get(name).cloned(),
    }
}

/// The members of an entity, without metadata and timestamp; `None` for a null.
fn read(entity: &Json) -> BTreeMap<String, Option<Val>> {
    let members = entity.as_object().unwrap();
    let properties = members
        .iter()
        .filter(|(name, _)| !name.contains('.') && *name != "Timestamp");
    properties
        .map(|(name, value)| {
            let edm_type = members
                .get(&format!("{name}@odata.type"))
                .map(|name| name.as_str().unwrap());
            let value = (!value.is_null()).then(|| Val::read(value, edm_type));
            (name.clone(), value)
        })
        .collect()
}

fn assert_row(entity: &Json, key: &Key, row: &Row) {
    assert_eq!(entity["odata.etag"].as_str(), Some(&*row.etag));
    let timestamp: Timestamp = entity["Timestamp"].as_str().unwrap().parse().unwrap();
    assert_eq!(ETag::from_timestamp(timestamp).as_str(), row.etag);
    let read = read(entity);
    assert_eq!(read.len(), row.properties.len() + 2, "{entity}");
    for (name, value) in &read {
        assert_same(value.as_ref(), property(key, row, name).as_ref(), name);
    }
}

fn assert_same(found: Option<&Val>, expected: Option<&Val>, name: &str) {
    let same = match (found, expected) {
        (Some(found), Some(expected)) => found.is_same(expected),
        (None, None) => true,
        _ => false,
    };
    assert!(same, "{name}: found {found:?}, expected {expected:?}");
}
