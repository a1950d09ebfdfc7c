//! Writes of one entity by a single request.

use serde_json::{Map, Value as Json, json};
use tablesdk::{ETag, Timestamp};

use super::read::assert_row;
use super::{History, path};
use crate::oracle::{Condition, Key, Properties, Row, Write};
use crate::server::{Ask, Response};

impl History {
    pub(super) async fn write(&mut self) {
        let (table, key) = (self.table(), self.key());
        let write = self.random_write(table, &key);
        let ask = self.ask(table, &key, &write);
        let response = self.server.send(&ask).await;
        match self.oracle.decide(table, &key, &write) {
            Err(refusal) => assert_eq!(response.refusal(), Some(refusal), "{write:?} {key:?}"),
            Ok(properties) => {
                let last = self.last_write;
                self.written(&response, (table, &key, &write), properties, last);
            }
        }
    }

    /// Applies a write that the oracle accepts. Its ETag must be later than `last`.
    pub(super) fn written(
        &mut self,
        response: &Response,
        (table, key, write): (&str, &Key, &Write),
        properties: Option<Properties>,
        last: Timestamp,
    ) {
        assert_eq!(response.refusal(), None, "{write:?} {key:?}");
        let row = properties.map(|properties| {
            let etag = response.header("etag");
            let etag = etag.expect("a response to a write has an ETag");
            let written = ETag::from_opaque(&*etag).timestamp().unwrap();
            assert!(written > last, "{written} after {last}");
            self.last_write = self.last_write.max(written);
            self.etags.push(etag.clone());
            Row { properties, etag }
        });
        if let (201, Some(row)) = (response.status, &row) {
            assert_row(&response.body, key, row);
        }
        self.oracle.apply(table, key, row);
    }

    /// A random write of that entity. About half of them can succeed.
    pub(super) fn random_write(&mut self, table: &str, key: &Key) -> Write {
        let condition = match self.rng.u8(..4) {
            0 => Condition::Any,
            1 => Condition::ETag(self.etags[self.rng.usize(..self.etags.len())].clone()),
            _ => match self.oracle.row(table, key) {
                Ok(row) => Condition::ETag(row.etag.clone()),
                Err(_) => Condition::Any,
            },
        };
        match self.rng.u8(..10) {
            0..=3 => Write::Insert(self.properties()),
            4 => Write::Delete(condition),
            other => Write::Update {
                merge: other % 2 == 0,
                condition: (other < 8).then_some(condition),
                properties: self.properties(),
            },
        }
    }

    /// The request for a write, in one of the spellings that clients use.
    pub(super) fn ask(&mut self, table: &str, key: &Key, write: &Write) -> Ask {
        let ask = match write {
            Write::Delete(_) => Ask::new("DELETE", path(table, key)),
            Write::Insert(properties) => {
                let mut body = self.body(properties);
                let (partition_key, row_key) = key.texts();
                body.insert("RowKey".to_owned(), json!(row_key));
                body.insert("PartitionKey".to_owned(), json!(partition_key));
                let ask = Ask::new("POST", format!("/{table}")).json(body);
                let is_quiet = self.rng.bool();
                if is_quiet {
                    ask.header("prefer", "return-no-content")
                } else {
                    ask
                }
            }
            Write::Update {
                merge, properties, ..
            } => {
                let body = self.body(properties);
                let (method, tunnel) = match (merge, self.rng.u8(..3)) {
                    (true, 0) => ("PATCH", None),
                    (true, 1) => ("MERGE", None),
                    (true, _) => ("POST", Some("MERGE")),
                    (false, 0) => ("POST", Some("PUT")),
                    (false, _) => ("PUT", None),
                };
                let ask = Ask::new(method, path(table, key)).json(body);
                match tunnel {
                    Some(method) => ask.header("x-http-method", method),
                    None => ask,
                }
            }
        };
        match write.condition() {
            Some(Condition::Any) => ask.header("if-match", "*"),
            Some(Condition::ETag(etag)) => ask.header("if-match", etag),
            None => ask,
        }
    }

    /// Adds, in some bodies, members that the service ignores.
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
}
