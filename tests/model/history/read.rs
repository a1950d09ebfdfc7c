//! Reads: one entity, and queries through all their pages.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tablesdk::{ETag, Timestamp};

use super::{History, path};
use crate::filter::Filter;
use crate::oracle::{Key, Row};
use crate::server::{Ask, Response, encode};
use crate::value::Val;

impl History {
    pub(super) async fn get(&mut self) {
        let (table, key) = (self.table(), self.key());
        let response = self.server.send(&Ask::new("GET", path(table, &key))).await;
        self.assert_found(&response, table, &key);
    }

    /// Compares the response to a read of one entity.
    pub(super) fn assert_found(&self, response: &Response, table: &str, key: &Key) {
        match self.oracle.row(table, key) {
            Err(refusal) => assert_eq!(response.refusal(), Some(refusal), "get {key:?}"),
            Ok(row) => {
                assert_eq!(response.header("etag").as_ref(), Some(&row.etag));
                assert_row(&response.body, key, row);
            }
        }
    }

    pub(super) async fn query(&mut self) {
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
                let response = self.server.send(&Ask::new("GET", query)).await;
                assert_eq!(response.refusal(), Some(refusal));
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
            let ask = Ask::new("GET", format!("{query}{next}"));
            let response = self.server.send(&ask).await;
            assert_eq!(response.refusal(), None, "{text}");
            let page = response.body["value"].as_array().unwrap();
            assert!(page.len() <= top, "{text}");
            found.extend(page.iter().cloned());
            let Some(partition) = response.header("x-ms-continuation-NextPartitionKey") else {
                break;
            };
            next = format!("&NextPartitionKey={}", encode(&partition));
            if let Some(row) = response.header("x-ms-continuation-NextRowKey") {
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
                        let expected = property(key, row, name);
                        assert_same(read[*name].as_ref(), expected.as_ref(), name);
                    }
                }
            }
        }
    }
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
    let is_property = |name: &str| !name.contains('.') && name != "Timestamp";
    let properties = members.iter().filter(|(name, _)| is_property(name));
    properties
        .map(|(name, value)| {
            let edm_type = members.get(&format!("{name}@odata.type"));
            let edm_type = edm_type.map(|name| name.as_str().unwrap());
            let value = (!value.is_null()).then(|| Val::read(value, edm_type));
            (name.clone(), value)
        })
        .collect()
}

pub(super) fn assert_row(entity: &Json, key: &Key, row: &Row) {
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
