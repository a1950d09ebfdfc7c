//! One history: random operations on one server, each response compared with the oracle's.

mod batch;
mod read;
mod write;

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Value as Json, json};
use tablesdk::Timestamp;

use crate::oracle::{KEYS, Key, NAMES, Oracle, Properties};
use crate::server::{Ask, Server, encode};
use crate::value::Val;

/// Runs that many operations. Panics if a response differs from the oracle's.
pub(crate) async fn run(seed: u64, operations: usize, server: Server) {
    let mut history = History {
        rng: Rng::with_seed(seed),
        server,
        oracle: Oracle::default(),
        etags: vec!["W/\"datetime'2021-09-21T01%3A04%3A37Z'\"".to_owned()],
        last_write: Timestamp::MIN,
    };
    for _ in 0..operations {
        match history.rng.u8(..100) {
            0..=1 if history.rng.u8(..4) == 0 && history.server.is_persistent() => {
                if history.rng.bool() {
                    history.server.crash();
                } else {
                    history.server.open_again();
                }
            }
            0..=1 => history.create_table().await,
            2 if history.rng.u8(..8) == 0 => history.delete_table().await,
            3 => history.list_tables().await,
            4..=15 => history.get().await,
            16..=35 => history.query().await,
            36..=49 => history.batch().await,
            50..=51 => history.batch_of_a_query().await,
            _ => history.write().await,
        }
    }
}

struct History {
    rng: Rng,
    server: Server,
    oracle: Oracle,
    /// ETags that were current at some time, and one that never was.
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
        let ask = Ask::new("POST", "/Tables".to_owned()).json(json!({ "TableName": name }));
        let response = self.server.send(&ask).await;
        let expected = self.oracle.create_table(name);
        assert_eq!(response.refusal(), expected.err(), "create {name}");
    }

    async fn delete_table(&mut self) {
        let name = self.table();
        let ask = Ask::new("DELETE", format!("/Tables('{name}')"));
        let response = self.server.send(&ask).await;
        let expected = self.oracle.delete_table(name);
        assert_eq!(response.refusal(), expected.err(), "delete {name}");
    }

    async fn list_tables(&mut self) {
        let top = self.rng.usize(1..4);
        let mut names = Vec::new();
        let mut next = String::new();
        loop {
            let path = format!("/Tables?$top={top}{next}");
            let response = self.server.send(&Ask::new("GET", path)).await;
            assert_eq!(response.refusal(), None);
            let page = response.body["value"].as_array().unwrap();
            assert!(page.len() <= top);
            let name = |table: &Json| table["TableName"].as_str().unwrap().to_owned();
            names.extend(page.iter().map(name));
            match response.header("x-ms-continuation-NextTableName") {
                Some(token) => next = format!("&NextTableName={}", encode(&token)),
                None => break,
            }
        }
        assert_eq!(names, self.oracle.tables());
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
