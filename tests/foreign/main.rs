//! Values of every type, between our client and the official ones for Go, Java, Python and
//! JavaScript, over our server: our client reads the values that they write, they read the values
//! that our client writes, and they write the values that they read, with the same EDM type and the
//! same value. `limits.rs` lists the values that a client cannot represent; the tests check that
//! the list is current. The other files have programs in Python beside our client, which know the
//! documented stored forms: those of indexes, index entities, an outbox, encrypted properties,
//! series, wide entities, values in chunks, expiry, leases, sequences and counters.
//!
//! Each client is one process for a whole test. These tests are ignored unless they are asked for,
//! because they need the clients: `tests/interop/install.sh` installs them, and
//! `tests/interop/run.sh` runs the tests.

mod child;
mod chunks;
mod counters;
mod edges;
mod encryption;
#[path = "../client/entities/every_type.rs"]
mod every_type;
mod expiry;
mod form;
mod index_entities;
mod indexes;
mod leases;
mod limits;
mod outbox;
mod series;
mod tokens;
mod wide;

use fastrand::Rng;
use harness::{Subject, seeded};
use tablesdk::{DynamicEntity, TableClient, Value};

use crate::child::{Answer, Child};
use crate::every_type::{Every, random};
use crate::form::{Form, Outcome, Properties};
use crate::limits::{Expected, LIMITS};

/// A client that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Java,
    Python,
    JavaScript,
    Go,
}

/// How it goes about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As the language has it.
    Plain,
    /// In an object that has the EDM type beside the value.
    Typed,
}

/// The direction of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// It writes, we read.
    Write,
    /// We write, it reads.
    Read,
    /// We write, it reads, and writes what it read under another key; we read that.
    Copy,
}

pub(crate) type Way = (Verb, Mode);

const WAYS: [Way; 6] = [
    (Verb::Write, Mode::Plain),
    (Verb::Write, Mode::Typed),
    (Verb::Read, Mode::Plain),
    (Verb::Read, Mode::Typed),
    (Verb::Copy, Mode::Plain),
    (Verb::Copy, Mode::Typed),
];

#[tokio::test]
#[ignore = "needs the Java client: tests/interop/run.sh"]
async fn java_reads_and_writes_the_same_values() {
    understand_each_other(Client::Java).await;
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_and_writes_the_same_values() {
    understand_each_other(Client::Python).await;
}

#[tokio::test]
#[ignore = "needs the JavaScript client: tests/interop/run.sh"]
async fn javascript_reads_and_writes_the_same_values() {
    understand_each_other(Client::JavaScript).await;
}

#[tokio::test]
#[ignore = "needs the Go client: tests/interop/run.sh"]
async fn go_reads_and_writes_the_same_values() {
    understand_each_other(Client::Go).await;
}

#[tokio::test]
async fn edge_values_are_read_back() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    for (index, value) in edges::values().enumerate() {
        let row = index.to_string();
        let entity = DynamicEntity::new("p", &row).with("V", value.clone());
        table.insert(&entity).await.unwrap();
        let read = table.get::<DynamicEntity>(("p", row.as_str())).await;
        let read = Form::properties(read.unwrap().unwrap().properties().iter());
        assert_eq!(read, Form::properties([("V", &value)]));
    }
}

/// A limit that changes nothing would hide a bug.
#[test]
fn every_limit_changes_its_example() {
    for limit in LIMITS {
        let value = (limit.example)();
        let expected = (limit.becomes)(&value);
        let expected = expected.unwrap_or_else(|| panic!("{} is no example of itself", limit.what));
        assert_ne!(expected, Expected::Told(Form::of(&value)), "{}", limit.what);
    }
}

async fn understand_each_other(client: Client) {
    let subject = Subject::over_http().await;
    let child = Child::start(client, &subject);
    let mut run = Run {
        client,
        child,
        table: subject.table().await,
        rows: 0,
        wrong: Vec::new(),
    };
    let examples = LIMITS.iter().filter(|limit| limit.client == client);
    let values = edges::values().chain(examples.map(|limit| (limit.example)()));
    let one = |name: &str, value: Option<Value>| [(name.to_owned(), value)];
    let mut properties: Vec<_> = values.map(|value| one("V", Some(value))).collect();
    properties.push(one("V", None));
    let lost = limits::lost_names(client).iter();
    properties.extend(lost.map(|name| one(name, Some(Value::from("lost")))));
    let mut rng = seeded();
    for way in WAYS {
        for properties in &properties {
            run.goes(way, properties, None).await;
        }
        for _ in 0..30 {
            run.every(way, &mut rng).await;
        }
    }
    let (wrong, rows) = (run.wrong, run.rows);
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{count} of {rows} went wrong:\n{}",
        wrong.join("\n")
    );
}

struct Run {
    client: Client,
    child: Child,
    table: TableClient,
    rows: usize,
    /// All deviations. The run collects them, so that the author of a new type sees all of them at
    /// once.
    wrong: Vec<String>,
}

impl Run {
    /// A struct of ours, with a field of every type.
    async fn every(&mut self, way: Way, rng: &mut Rng) {
        let every = random(rng, self.rows);
        let dynamic = DynamicEntity::from_entity(&every).unwrap();
        let properties = dynamic.properties().iter();
        let properties = properties.map(|(name, value)| (name.to_owned(), Some(value.clone())));
        let mut properties: Vec<_> = properties.collect();
        if every.perhaps.is_none() {
            properties.push(("perhaps".to_owned(), None));
        }
        self.goes(way, &properties, Some(&every)).await;
    }

    async fn goes(
        &mut self,
        (verb, mode): Way,
        properties: &[(String, Option<Value>)],
        every: Option<&Every>,
    ) {
        let row = format!("{:04}", self.rows);
        self.rows += 1;
        let present = properties
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)));
        let sent = Form::properties(present.clone());
        let expected = limits::expected(self.client, (verb, mode), present.clone());
        let shown = format!("{:?} {verb:?} {mode:?}", self.client);

        if verb != Verb::Write {
            if let Some(every) = every {
                let mut every = every.clone();
                every.row.clone_from(&row);
                self.table.insert(&every).await.unwrap();
            } else {
                let owned = present.map(|(name, value)| (name.to_owned(), value.clone()));
                let entity = DynamicEntity::new("p", &row).with_properties(owned.collect());
                self.table.insert(&entity).await.unwrap();
            }
        }
        let (answer, row) = match verb {
            Verb::Write => (self.child.write(mode, &row, properties).await, row),
            Verb::Read => (self.child.read(mode, &row).await, row),
            Verb::Copy => {
                let to = format!("{row}c");
                (self.child.copy(mode, &row, &to).await, to)
            }
        };
        let got: Outcome = match answer {
            Answer::Properties(properties) => Ok(properties),
            Answer::Done => Ok(self.stored(&row).await),
            Answer::Refused(status, code) => Err((status, code)),
        };
        if got != expected {
            let difference = form::difference(&got, &expected);
            self.wrong.push(format!("{shown} {row}{difference}"));
            return;
        }
        let unchanged = expected.as_ref() == Ok(&sent);
        if let (true, Some(every)) = (unchanged && verb != Verb::Read, every) {
            let read = self.table.get(Every::key("p", row.as_str())).await.unwrap();
            let expected = Every {
                row,
                ..every.clone()
            };
            assert_eq!(*read.unwrap(), expected, "{shown}");
        }
    }

    async fn stored(&self, row: &str) -> Properties {
        let read = self.table.get::<DynamicEntity>(("p", row)).await.unwrap();
        Form::properties(read.unwrap().properties().iter())
    }
}
