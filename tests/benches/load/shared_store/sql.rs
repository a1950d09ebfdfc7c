//! The SQL statements of the server's storage, sent without a server: what a request costs at
//! least.
//!
//! The statements are read from the source of the server, so they are always those that it sends.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use crate::measure::Measurement;
use crate::workload::Operation;

/// Connections to a database with a table that a server has filled.
pub(super) struct Sql {
    connections: Vec<Arc<Connection>>,
    keys: Arc<Keys>,
}

struct Connection {
    client: Client,
    keys: Statement,
    keys_and_range: Statement,
    commit: Statement,
}

/// The keys and records that the statements read and write.
struct Keys {
    /// That of the record of the table, which each request reads.
    table: Vec<u8>,
    table_version: i64,
    /// That of the service properties of the account, which has none. Each read has it, for the
    /// rules of CORS.
    properties: Vec<u8>,
    /// The keys of the entities.
    entities: Vec<Vec<u8>>,
    /// The beginning of these keys: the kind of the key and the id of the table.
    prefix: Vec<u8>,
    /// The record of each new entity.
    record: Vec<u8>,
    /// Counts the requests and the new entities, over all rounds.
    next: AtomicUsize,
    version: AtomicI64,
}

impl Sql {
    /// So many connections with the settings of a server.
    pub(super) async fn connect(url: &str, connections: usize) -> Result<Self, Box<dyn Error>> {
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(SOURCE))?;
        let statement = |name| statement(&source, name);
        let settings = settings(&source)?;
        let mut open = Vec::new();
        for _ in 0..connections {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute(&settings).await?;
            open.push(Arc::new(Connection {
                keys: client.prepare(&statement("KEYS")?).await?,
                keys_and_range: client.prepare(&statement("KEYS_AND_RANGE")?).await?,
                commit: client.prepare(&statement("COMMIT")?).await?,
                client,
            }));
        }
        let connection = open.first().ok_or("there is no connection")?;
        let keys = Arc::new(Keys::of(&connection.client).await?);
        Ok(Self {
            connections: open,
            keys,
        })
    }

    /// The median size of a stored entity, in bytes.
    pub(super) fn record_bytes(&self) -> usize {
        self.keys.record.len()
    }

    /// Does over so many connections what a server does for an operation, until the time is up.
    pub(super) async fn run(
        &self,
        operation: Operation,
        connections: usize,
        time: Duration,
    ) -> Result<Measurement, Box<dyn Error>> {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for connection in self.connections.iter().take(connections) {
            let (connection, keys) = (Arc::clone(connection), Arc::clone(&self.keys));
            tasks.spawn(async move {
                let mut latencies = Vec::new();
                let mut now = Instant::now();
                while now < started + time {
                    let began = Instant::now();
                    let done = connection.carry_out(operation, &keys).await;
                    done.map_err(|error| error.to_string())?;
                    now = Instant::now();
                    latencies.push(now - began);
                }
                Ok::<_, String>(latencies)
            });
        }
        let mut latencies = Vec::new();
        while let Some(result) = tasks.join_next().await {
            latencies.extend(result??);
        }
        Ok(Measurement::of(latencies, started.elapsed()))
    }
}

impl Keys {
    /// The keys of the only table in the database.
    async fn of(client: &Client) -> Result<Self, Box<dyn Error>> {
        let all = "SELECT key, version, record FROM tablesdk_records \
            WHERE get_byte(key, 0) = ascii($1) AND record IS NOT NULL ORDER BY key";
        let tables = client.query(all, &[&"t"]).await?;
        let [table] = tables.as_slice() else {
            return Err(format!("there are {} tables in place of one", tables.len()).into());
        };
        let entities = client.query(all, &[&"e"]).await?;
        let entity = entities.get(entities.len() / 2).ok_or("no entities")?;
        let prefix = entity.get::<_, &[u8]>(0).get(..PREFIX_BYTES);
        // Up to the name of the table.
        let account = table.get::<_, &[u8]>(0).split(|byte| *byte == 0).next();
        let account = account.and_then(|key| key.strip_prefix(b"t"));
        Ok(Self {
            properties: [b"p", account.ok_or("a short key")?].concat(),
            table: table.get(0),
            table_version: table.get(1),
            prefix: prefix.ok_or("a short key")?.to_vec(),
            record: entity.get(2),
            entities: entities.iter().map(|row| row.get(0)).collect(),
            next: AtomicUsize::new(0),
            version: AtomicI64::new(entity.get(1)),
        })
    }

    /// An entity, not in the order of the table.
    fn next_entity(&self) -> Option<&Vec<u8>> {
        let place = self.next.fetch_add(1, Ordering::Relaxed).wrapping_mul(7919);
        self.entities.get(place % self.entities.len())
    }

    /// The keys of new entities, in their order.
    fn new_entities(&self, count: usize) -> Vec<Vec<u8>> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let key = |number| {
            [
                &self.prefix,
                &b"new\0"[..],
                format!("sql{number:010}").as_bytes(),
            ]
            .concat()
        };
        (first..first + count).map(key).collect()
    }

    /// The partition of an entity: where it starts, and before which key it ends.
    fn next_partition(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut start = self.next_entity()?.clone();
        let separator = start
            .iter()
            .skip(PREFIX_BYTES)
            .position(|byte| *byte == 0)?;
        start.truncate(PREFIX_BYTES + separator + 1);
        let mut end = start.clone();
        *end.last_mut()? += 1;
        Some((start, end))
    }
}

impl Connection {
    async fn carry_out(&self, operation: Operation, keys: &Keys) -> Result<(), Box<dyn Error>> {
        match operation {
            Operation::PointRead => {
                let entity = keys.next_entity().ok_or("no entities")?;
                let single = [&keys.table, entity, &keys.properties];
                let rows = self.client.query(&self.keys, &[&&single[..]]).await?;
                expect(read_rows(&rows)?, 2)
            }
            Operation::Insert => self.insert(keys, 1).await,
            Operation::Batch => self.insert(keys, 100).await,
            Operation::Page => {
                let (start, end) = keys.next_partition().ok_or("no partition")?;
                let single = vec![&keys.table, &keys.properties];
                let parameters: [&(dyn ToSql + Sync); 5] =
                    [&single, &start, &end, &1001_i64, &RANGE_BYTES_MAX];
                let rows = self.client.query(&self.keys_and_range, &parameters).await?;
                expect(read_rows(&rows)?, 1001)
            }
            _ => Err(format!("{} is not measured", operation.name()).into()),
        }
    }

    /// Inserts entities on the condition that the table is unchanged. The server presumes that they
    /// do not exist.
    async fn insert(&self, keys: &Keys, count: usize) -> Result<(), Box<dyn Error>> {
        let new = keys.new_entities(count);
        let expected = vec![None::<i64>; count];
        let records = vec![keys.record.as_slice(); count];
        let version = keys.version.fetch_add(1, Ordering::Relaxed) + 1;
        let read = (vec![&keys.table], vec![keys.table_version]);
        let parameters: [&(dyn ToSql + Sync); 6] =
            [&new, &expected, &records, &version, &read.0, &read.1];
        self.client.execute(&self.commit, &parameters).await?;
        Ok(())
    }
}

/// Borrows the values of all rows, as a program does that uses them. Returns the number of rows.
fn read_rows(rows: &[Row]) -> Result<usize, tokio_postgres::Error> {
    for row in rows {
        let (_key, _version): (&[u8], Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let _record: Option<&[u8]> = row.try_get(2)?;
    }
    Ok(rows.len())
}

fn expect(count: usize, expected: usize) -> Result<(), Box<dyn Error>> {
    if count == expected {
        return Ok(());
    }
    Err(format!("{count} records in place of {expected}").into())
}

/// The text of a constant in the server's source, as the compiler reads it.
fn statement(source: &str, name: &str) -> Result<String, Box<dyn Error>> {
    let text = source
        .split_once(&format!("const {name}: &str ="))
        .and_then(|(_, rest)| rest.split('"').nth(1));
    let text = text.ok_or_else(|| format!("the server has no statement {name}"))?;
    // A backslash joins a line with the next one, without its indentation.
    let lines = text.split("\\\n").enumerate();
    Ok(lines
        .map(|(number, line)| if number == 0 { line } else { line.trim_start() })
        .collect())
}

/// The settings of the server's connections.
fn settings(source: &str) -> Result<String, Box<dyn Error>> {
    let list = source
        .split_once("const SETTINGS: ")
        .and_then(|(_, rest)| rest.split_once("];"));
    let (list, _) = list.ok_or("the server has no settings")?;
    let settings: Vec<_> = list.split('"').skip(1).step_by(2).collect();
    Ok(settings.join("; "))
}

/// From the directory of the package of the tests.
const SOURCE: &str = "../tablesdk-server/src/storage/postgres/statements.rs";

/// The kind of a key and the id of its table.
const PREFIX_BYTES: usize = 9;
/// More than a page of these entities has.
const RANGE_BYTES_MAX: i64 = 2 * 1024 * 1024;
