//! One of many writers: it owns a partition, and records the acknowledged state of each of its
//! entities.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::Value as Json;
use tablesdk::Timestamp;

use crate::process::{BATCH, JSON, Server, batch, timestamp};

pub(crate) struct Writer {
    partition: String,
    rng: Rng,
    /// The entities: properties `a` and `b`, by row key.
    rows: Rows,
    /// The entities if the last write, which has no response, was applied.
    perhaps: Option<Rows>,
    latest: Timestamp,
    next_value: i32,
}

type Rows = BTreeMap<String, (Option<i32>, Option<i32>)>;

impl Writer {
    pub(crate) fn new(number: usize, rng: Rng) -> Self {
        Self {
            partition: format!("w{number:03}"),
            rng,
            rows: Rows::new(),
            perhaps: None,
            latest: Timestamp::MIN,
            next_value: 0,
        }
    }

    /// The time of the latest acknowledged write.
    pub(crate) const fn latest(&self) -> Timestamp {
        self.latest
    }

    /// Writes something. Returns whether the server responded.
    pub(crate) async fn write(&mut self, server: &Server) -> bool {
        let mut rows = self.rows.clone();
        let sent = if self.rng.u8(..4) == 0 {
            let body = self.batch(&mut rows);
            let response = server.send("POST /$batch", &[BATCH], &body).await;
            if let Ok(response) = &response {
                assert!(!response.body.contains("odata.error"), "{response:?}");
            }
            (response, 202)
        } else {
            let change = self.change(&mut rows, None);
            let line = format!("{} {}", change.method, change.path);
            let response = server.send(&line, &[change.header()], &change.body).await;
            (response, 204)
        };
        match sent {
            (Ok(response), expected) => {
                assert_eq!(response.status, expected, "{response:?}");
                if let Some(timestamp) = timestamp(&response) {
                    assert!(timestamp > self.latest);
                    self.latest = timestamp;
                }
                self.rows = rows;
                true
            }
            (Err(_), _) => {
                self.perhaps = Some(rows);
                false
            }
        }
    }

    /// Compares the stored entities with the acknowledged state.
    pub(crate) async fn check(&mut self, server: &Server, round: usize) {
        let line = format!(
            "GET /people()?$filter=PartitionKey%20eq%20%27{}%27",
            self.partition
        );
        let response = server.send(&line, &[], "").await.unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        let page: Json = serde_json::from_str(&response.body).unwrap();
        let number = |value: &Json| value.as_i64().map(|value| i32::try_from(value).unwrap());
        let entities = page["value"].as_array().unwrap().iter();
        let stored: Rows = entities
            .map(|entity| {
                let row = entity["RowKey"].as_str().unwrap().to_owned();
                (row, (number(&entity["a"]), number(&entity["b"])))
            })
            .collect();
        let perhaps = self.perhaps.take();
        assert!(
            stored == self.rows || Some(&stored) == perhaps.as_ref(),
            "round {round}, {}: stored {stored:?}, acknowledged {:?}, unanswered {perhaps:?}",
            self.partition,
            self.rows
        );
        self.rows = stored;
    }

    /// A batch of several changes, each of another entity.
    fn batch(&mut self, rows: &mut Rows) -> String {
        let first = self.rng.usize(..ROWS);
        let count = self.rng.usize(2..ROWS);
        batch((first..first + count).map(|row| {
            let change = self.change(rows, Some(format!("r{}", row % ROWS)));
            let (header, Change { method, path, body }) = (change.header(), &change);
            format!("{method} {path} HTTP/1.1\r\n{header}\r\n\r\n{body}")
        }))
    }

    /// A change of an entity, which is also applied to `rows`.
    fn change(&mut self, rows: &mut Rows, row: Option<String>) -> Change {
        let row = row.unwrap_or_else(|| format!("r{}", self.rng.usize(..ROWS)));
        let path = format!("/people(PartitionKey='{}',RowKey='{row}')", self.partition);
        self.next_value += 1;
        let value = self.next_value;
        let (method, body) = match self.rng.u8(..4) {
            0 if rows.remove(&row).is_some() => ("DELETE", String::new()),
            1 | 2 => {
                rows.entry(row).or_default().1 = Some(value);
                ("PATCH", format!(r#"{{"b":{value}}}"#))
            }
            _ => {
                rows.insert(row, (Some(value), None));
                // As long as entities are, so that the store has to write more than one file.
                let filler = "x".repeat(self.rng.usize(..4_000));
                ("PUT", format!(r#"{{"a":{value},"filler":"{filler}"}}"#))
            }
        };
        Change { method, path, body }
    }
}

struct Change {
    method: &'static str,
    path: String,
    body: String,
}

impl Change {
    fn header(&self) -> &'static str {
        if self.method == "DELETE" {
            "If-Match: *"
        } else {
            JSON
        }
    }
}

/// So few that each is written many times.
const ROWS: usize = 8;
