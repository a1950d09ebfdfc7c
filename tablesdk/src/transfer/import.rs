//! `import`: writes records into tables. Neighbours of one partition are written together, and several batches are in flight at a
//! time.
//!
//! Entities arrive in any order, and progress can only be reported as "all records up to here". Therefore, the batches are awaited
//! in the order in which they were packed, and no two batches in flight contain the same entity. The later record of an entity
//! wins.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::mem;

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use tablesdk_protocol::limits::{BATCH_CHANGES_MAX, REQUEST_BODY_BYTES_MAX};
use tablesdk_protocol::{EntityKey, TableName};

use super::Record;
use crate::TableServiceClient;
use crate::entity::{DynamicEntity, WritableEntity as _, write_entity};
use crate::error::Error;
use crate::pipeline::spawn;

/// What an import does with an entity that exists already. There is no default: each is what some people expect.
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// # table.insert(&Employee::new("Sales", "1", "Ada")).await?;
/// use tablesdk::transfer::{ImportMode, Record};
///
/// let line = br#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Name":"Grace"}}"#;
/// let mut import = service.import(ImportMode::Insert);
/// import.push(Record::read_line(line)?).await?;
/// assert!(import.finish().await.unwrap_err().is_conflict(), "there is one already");
///
/// let mut import = service.import(ImportMode::UpsertReplace);
/// import.push(Record::read_line(line)?).await?;
/// import.finish().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImportMode {
    /// It is an error. An import that was cut off cannot be repeated, but for the records that are
    /// [skipped](Import::skip).
    Insert,
    /// The record is merged into it: properties that only the stored entity has stay.
    UpsertMerge,
    /// The record replaces it.
    UpsertReplace,
}

/// Writes records into tables. See [`TableServiceClient::import`].
///
/// Requests run in tasks of their own, so that none of them waits for the next record; dropping the import gives them up. Needs a
/// tokio runtime. Memory is bounded by [`concurrency`](Self::concurrency) batches of 4 MiB.
///
/// Dropping the future of a push leaves open whether its record was taken: the import takes no more then, and another may go
/// on from [`stored`](Self::stored).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::start().await?;
/// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
/// # let table = service.table("Rows");
/// # table.create_table().await?;
/// use tablesdk::transfer::{ImportMode, Record};
///
/// let lines = [
///     r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"1","Name":"Ada"}}"#,
///     r#"{"table":"Employees","entity":{"PartitionKey":"Sales","RowKey":"2","Name":"Grace"}}"#,
/// ];
/// let mut import = service.import(ImportMode::UpsertReplace).concurrency(4).batch_size(50);
/// for line in lines {
///     import.push(Record::read_line(line.as_bytes())?).await?;
/// }
/// import.flush().await?;
/// assert_eq!(import.stored(), 2, "a later import may skip so many");
/// assert_eq!(import.finish().await?.entities, 2);
/// # Ok(())
/// # }
/// ```
#[must_use = "an import does nothing until records are pushed, and is done when finished"]
pub struct Import {
    service: TableServiceClient,
    mode: ImportMode,
    concurrency: usize,
    batch_size: usize,
    create_tables: bool,
    skip: u64,
    /// How many records were pushed.
    pushed: u64,
    /// How many of them, from the first, are in the service.
    stored: u64,
    counted: Counted,
    /// What the last record said, if it was pushed.
    is_ended: bool,
    /// Tables that exist, in lower case.
    known: HashSet<String>,
    packing: Option<Packet>,
    /// The keys of what is on its way, in that order.
    keys: VecDeque<(String, HashSet<EntityKey>)>,
    on_their_way: FuturesOrdered<BoxFuture<'static, Result<u64, Error>>>,
    has_failed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    tables: u64,
    entities: u64,
    /// Since the first record of the file, of which an import may take several.
    file_tables: u64,
    file_entities: u64,
}

/// What came of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// How many tables were named, skipped ones included.
    pub tables: u64,
    /// How many entities there were, skipped ones included.
    pub entities: u64,
    /// Whether the last record was that of an export's end, and counted what came. Else the file may have been cut.
    pub is_complete: bool,
}

/// Entities of one partition that are written together.
struct Packet {
    table: String,
    entities: Vec<DynamicEntity>,
    keys: HashSet<EntityKey>,
    partition: String,
    bytes: usize,
    /// How many records were pushed when the last of them was.
    pushed: u64,
}

impl Import {
    pub(crate) fn new(service: TableServiceClient, mode: ImportMode) -> Self {
        Self {
            service,
            mode,
            concurrency: CONCURRENCY,
            batch_size: BATCH_CHANGES_MAX,
            create_tables: true,
            skip: 0,
            pushed: 0,
            stored: 0,
            counted: Counted::default(),
            is_ended: false,
            known: HashSet::new(),
            packing: None,
            keys: VecDeque::new(),
            on_their_way: FuturesOrdered::new(),
            has_failed: false,
        }
    }

    /// The maximum number of requests in flight at a time; 8 by default. Must not be 0.
    pub const fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests;
        self
    }

    /// The maximum number of entities of one partition in one request, from 1 to 100; 100 by default. With 1, no batches are sent,
    /// for services that do not support batches or misread them: Azurite 3.35 stores entities with a comma in the row key under
    /// another key when they come in a batch, and refuses strings with U+2028 or U+0085.
    pub const fn batch_size(mut self, entities: usize) -> Self {
        self.batch_size = entities;
        self
    }

    /// Whether tables that do not exist are created; they are by default. A shared access signature may not allow it.
    pub const fn create_tables(mut self, create: bool) -> Self {
        self.create_tables = create;
        self
    }

    /// Only counts that many records from the first, since an earlier import of the same records has
    /// [stored](Self::stored) them.
    pub const fn skip(mut self, records: u64) -> Self {
        self.skip = records;
        self
    }

    /// How many records, from the first, are in the service for sure, those that are skipped included: what
    /// [`skip`](Self::skip) takes to go on after a failure.
    pub const fn stored(&self) -> u64 {
        if self.stored < self.skip {
            self.skip
        } else {
            self.stored
        }
    }

    /// Takes a record. It waits for a request that is on its way, when there are enough of them, and creates tables.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// use tablesdk::DynamicEntity;
    /// use tablesdk::transfer::{ImportMode, Record};
    ///
    /// let mut import = service.import(ImportMode::Insert);
    /// for id in 0..250 {
    ///     let entity = DynamicEntity::new("Sales", format!("{id:06}"));
    ///     let table = "Employees".to_owned();
    ///     import.push(Record::Entity { table, entity }).await?;
    /// }
    /// import.flush().await?;
    /// assert_eq!(import.stored(), 250);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error of this record or of any earlier one: [`Error::key`] returns the entity that it is about. Errors of the service,
    /// such as `EntityAlreadyExists`; and [`ErrorKind::Input`](crate::ErrorKind::Input) when an entity cannot be stored, when the
    /// counts of the last record differ from those of the import, or when the concurrency or the batch size of the import is
    /// invalid. After an error, the import takes no more records.
    pub async fn push(&mut self, record: Record) -> Result<(), Error> {
        self.check()?;
        // Until it is sure that the record is not lost.
        self.has_failed = true;
        let pushed = self.take(record).await;
        self.ended(pushed)
    }

    /// Waits until all records that were pushed are in the service.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub async fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        let flushed = self.drain().await;
        self.ended(flushed)
    }

    /// Waits until all records are in the service, and returns the result.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub async fn finish(&mut self) -> Result<ImportReport, Error> {
        self.flush().await?;
        Ok(ImportReport {
            tables: self.counted.tables,
            entities: self.counted.entities,
            is_complete: self.is_ended,
        })
    }

    fn ended(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        self.has_failed = result.is_err();
        if self.has_failed {
            // Another import that goes on from here writes the same entities.
            self.on_their_way.clear();
        }
        result
    }

    fn check(&self) -> Result<(), Error> {
        if self.has_failed {
            return Err(refused(
                "an import that failed, or was dropped while it took a record, takes no more",
            ));
        }
        if self.concurrency == 0 {
            return Err(refused("nothing can be sent with a concurrency of 0"));
        }
        if !(1..=BATCH_CHANGES_MAX).contains(&self.batch_size) {
            return Err(refused(BatchSizeError {
                count: self.batch_size,
            }));
        }
        Ok(())
    }

    async fn take(&mut self, record: Record) -> Result<(), Error> {
        self.count(&record)?;
        let number = self.pushed + 1;
        if number > self.skip {
            match record {
                Record::Start | Record::End { .. } => {}
                Record::Table { name } => self.know(&name).await?,
                Record::Entity { table, entity } => {
                    self.know(&table).await?;
                    self.pack(table, entity, number).await?;
                }
            }
        }
        self.pushed = number;
        if self.packing.is_none() && self.on_their_way.is_empty() {
            self.stored = number;
        }
        Ok(())
    }

    /// Compares what the last record says with what came.
    fn count(&mut self, record: &Record) -> Result<(), Error> {
        let counted = &mut self.counted;
        match record {
            Record::Start => {
                self.is_ended = false;
                (counted.file_tables, counted.file_entities) = (0, 0);
            }
            _ if self.is_ended => {
                return Err(refused("a record after that of the end"));
            }
            Record::Table { .. } => {
                counted.tables += 1;
                counted.file_tables += 1;
            }
            Record::Entity { .. } => {
                counted.entities += 1;
                counted.file_entities += 1;
            }
            Record::End { tables, entities } => {
                let found = (counted.file_tables, counted.file_entities);
                if found != (*tables, *entities) {
                    return Err(refused(format!(
                        "the last record counts {tables} tables and {entities} entities, and {} tables and {} entities came",
                        found.0, found.1
                    )));
                }
                self.is_ended = true;
            }
        }
        Ok(())
    }

    /// Sees to it that a table exists.
    async fn know(&mut self, table: &str) -> Result<(), Error> {
        let name = TableName::new(table).map_err(refused)?.to_lowercase();
        if self.known.contains(&name) {
            return Ok(());
        }
        if self.create_tables {
            self.service
                .table(table)
                .create_table()
                .if_missing()
                .await?;
        }
        self.known.insert(name);
        Ok(())
    }

    async fn pack(
        &mut self,
        table: String,
        entity: DynamicEntity,
        number: u64,
    ) -> Result<(), Error> {
        let key = entity.entity_key().map_err(refused)?;
        let body = write_entity(&entity, &key).map_err(|error| refused(error).with_key(&key))?;
        let bytes = body.len() + overhead(&key);
        // One at a time, an entity may be as large as a request can be.
        let has_room = self.packing.as_ref().is_some_and(|packet| {
            packet.table == table
                && packet.partition == entity.partition_key()
                && packet.entities.len() < self.batch_size
                && packet.bytes + bytes <= BATCH_BYTES_MAX
                && !packet.keys.contains(&key)
        });
        if !has_room {
            self.send().await?;
        }
        let packet = self.packing.get_or_insert_with(|| Packet {
            partition: entity.partition_key().to_owned(),
            table,
            entities: Vec::new(),
            keys: HashSet::new(),
            bytes: 0,
            pushed: number,
        });
        packet.entities.push(entity);
        packet.keys.insert(key);
        packet.bytes += bytes;
        packet.pushed = number;
        Ok(())
    }

    /// Sends what was packed, once there is a place for it and nothing older about the same entities is on its way.
    async fn send(&mut self) -> Result<(), Error> {
        loop {
            let Some(packet) = &self.packing else {
                return Ok(());
            };
            let waits = self.on_their_way.len() >= self.concurrency
                || self.keys.iter().any(|(table, keys)| {
                    table.eq_ignore_ascii_case(&packet.table) && !keys.is_disjoint(&packet.keys)
                });
            if !waits {
                break;
            }
            match self.on_their_way.next().await {
                Some(arrived) => self.arrived(arrived)?,
                None => break,
            }
        }
        if let Some(mut packet) = self.packing.take() {
            let keys = mem::take(&mut packet.keys);
            self.keys.push_back((packet.table.clone(), keys));
            let sent = write(self.service.clone(), self.mode, packet);
            self.on_their_way.push_back(spawn(sent).boxed());
        }
        while let Some(Some(arrived)) = self.on_their_way.next().now_or_never() {
            self.arrived(arrived)?;
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), Error> {
        self.send().await?;
        while let Some(arrived) = self.on_their_way.next().await {
            self.arrived(arrived)?;
        }
        self.stored = self.pushed;
        Ok(())
    }

    fn arrived(&mut self, arrived: Result<u64, Error>) -> Result<(), Error> {
        self.keys.pop_front();
        self.stored = arrived?;
        Ok(())
    }
}

impl fmt::Debug for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Import")
            .field("service", &self.service)
            .field("mode", &self.mode)
            .field("pushed", &self.pushed)
            .field("stored", &self.stored())
            .finish_non_exhaustive()
    }
}

/// Writes entities of one partition, and says how many records were pushed with them.
async fn write(
    service: TableServiceClient,
    mode: ImportMode,
    packet: Packet,
) -> Result<u64, Error> {
    let table = service.table(packet.table);
    if let [entity] = packet.entities.as_slice() {
        match mode {
            ImportMode::Insert => drop(table.insert(entity).await?),
            ImportMode::UpsertMerge => drop(table.upsert_merge(entity).await?),
            ImportMode::UpsertReplace => drop(table.upsert_replace(entity).await?),
        }
        return Ok(packet.pushed);
    }
    let batch = packet
        .entities
        .iter()
        .fold(table.batch(packet.partition), |batch, entity| match mode {
            ImportMode::Insert => batch.insert(entity),
            ImportMode::UpsertMerge => batch.upsert_merge(entity),
            ImportMode::UpsertReplace => batch.upsert_replace(entity),
        });
    batch.await?;
    Ok(packet.pushed)
}

/// What a change takes in a batch beside its body, at most: both keys in the URL, where a byte takes three, and a quote twice
/// that, and the lines around it.
fn overhead(key: &EntityKey) -> usize {
    let keys = key.partition_key().as_str().len() + key.row_key().as_str().len();
    6 * keys + 2048
}

fn refused(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::input(problem).with_operation(OPERATION)
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a batch size of {count} is not from 1 to {BATCH_CHANGES_MAX}")]
struct BatchSizeError {
    count: usize,
}

const OPERATION: &str = "import";
const CONCURRENCY: usize = 8;
/// With room for what stands around the changes.
const BATCH_BYTES_MAX: usize = REQUEST_BODY_BYTES_MAX - 4096;
