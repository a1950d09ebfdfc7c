//! Records in a database that speaks PostgreSQL's protocol, which any number of servers share.
//!
//! Each round trip is one statement outside a transaction block, so it is a transaction of its own:
//! nothing stays open between two of them, and a server that stops leaves no lock behind.
//! Replication, fail-over and backups are those of the database. See `docs/shared-database.md`.
//! This module knows neither tables nor entities.

mod database;
mod errors;
mod kept;
mod keys;
mod options;
mod schema;
mod statements;
mod tls;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub(crate) use options::PostgresOptions;

use self::database::{Database, LATE, STATEMENT_MAX, WAIT_MAX, get, record};
use super::StorageError;
use super::shared::{
    Committed, ConditionalBatch, Connections, Fetched, FetchedRecord, GroupedReads,
    ReadRecords as _, Removed, RoundTrip, SharedStorage, Wanted,
};

/// The records of a database.
pub(crate) struct PostgresStorage {
    database: Arc<Database>,
    reads: Arc<GroupedReads<Database>>,
}

impl PostgresStorage {
    /// The records of the database with this URL. Connects when they are needed.
    ///
    /// # Errors
    ///
    /// When the URL is malformed, or names a file that cannot be read.
    pub(crate) fn new(options: &PostgresOptions) -> io::Result<Self> {
        let database = Arc::new(Database::new(options)?);
        let reads_max = READS_MAX.min(options.connections_max.get());
        Ok(Self {
            reads: GroupedReads::new(Arc::clone(&database), reads_max),
            database,
        })
    }

    /// The records under single keys.
    async fn records(&self, keys: Vec<Vec<u8>>) -> Result<Vec<FetchedRecord>, StorageError> {
        if keys.len() > GROUPED_KEYS_MAX {
            return self.database.records(keys).await;
        }
        let deadline = Instant::now() + WAIT_MAX;
        let records = self.reads.read(keys, deadline).await;
        records.unwrap_or_else(|| Err(self.database.exhausted("it did not respond to a read")))
    }

    async fn commit(&self, batch: ConditionalBatch) -> Result<Committed, StorageError> {
        let (mut keys, mut expected, mut records) = (Vec::new(), Vec::new(), Vec::new());
        for write in &batch.writes {
            keys.push(keys::stored(&write.key));
            expected.push(write.replaced);
            records.push(write.record.as_deref());
        }
        let (read_keys, read_versions): (Vec<_>, Vec<_>) = batch
            .reads
            .iter()
            .map(|(key, version)| (keys::stored(key), *version))
            .unzip();
        let client = self.database.client().await?;
        let prepared = timeout(STATEMENT_MAX, client.prepare_cached(statements::COMMIT)).await;
        let statement = match prepared {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) => return Err(self.database.unavailable(errors::lost(&error)?.cause)),
            Err(_) => return Err(self.database.unavailable(LATE.into())),
        };
        let parameters: [&(dyn ToSql + Sync); 6] = [
            &keys,
            &expected,
            &records,
            &batch.version,
            &read_keys,
            &read_versions,
        ];
        let error = match timeout(STATEMENT_MAX, client.execute(&statement, &parameters)).await {
            Ok(Ok(_)) => {
                client.release();
                self.database.is_available();
                return Ok(Committed::Done);
            }
            Ok(Err(error)) => error,
            Err(_) => {
                let cause = LATE.into();
                return Err(StorageError::UnknownOutcome { cause });
            }
        };
        if errors::is_conflict(&error) {
            client.release();
            return Ok(Committed::Conflict);
        }
        let lost = errors::lost(&error)?;
        if lost.had_no_effect {
            return Err(self.database.unavailable(lost.cause));
        }
        Err(StorageError::UnknownOutcome { cause: lost.cause })
    }
}

impl SharedStorage for PostgresStorage {
    fn fetch(&self, wanted: Wanted) -> RoundTrip<'_, Fetched> {
        Box::pin(async move {
            let Some(range) = wanted.range else {
                return Ok(Fetched {
                    records: self.records(wanted.keys).await?,
                    ..Fetched::default()
                });
            };
            let keys: Vec<_> = wanted.keys.iter().map(|key| keys::stored(key)).collect();
            let (start, end) = (keys::stored(&range.start), keys::stored(&range.end));
            let records_max = i64::try_from(range.records_max).unwrap_or(i64::MAX);
            let parameters: [&(dyn ToSql + Sync); 5] =
                [&keys, &start, &end, &records_max, &RANGE_BYTES_MAX];
            let rows = self
                .database
                .query(statements::KEYS_AND_RANGE, &parameters)
                .await?;
            let mut fetched = Fetched::default();
            let mut bytes = 0;
            for row in &rows {
                if is_of_range(row)? {
                    let (key, stored): (&[u8], &[u8]) = (get(row, 0)?, get(row, 2)?);
                    bytes += stored.len();
                    let key = keys::read(key)?.into();
                    fetched.range.push((key, Bytes::copy_from_slice(stored)));
                } else {
                    fetched.records.push(record(row)?);
                }
            }
            fetched.range.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            // One that was left out has more than so many bytes before it.
            fetched.is_through = fetched.range.len() < range.records_max
                && i64::try_from(bytes).is_ok_and(|bytes| bytes < RANGE_BYTES_MAX);
            Ok(fetched)
        })
    }

    fn commit(&self, batch: ConditionalBatch) -> RoundTrip<'_, Committed> {
        Box::pin(self.commit(batch))
    }

    fn remove(&self, start: Vec<u8>, end: Vec<u8>, records_max: usize) -> RoundTrip<'_, Removed> {
        Box::pin(async move {
            let (start, end) = (keys::stored(&start), keys::stored(&end));
            let records_max = i64::try_from(records_max).unwrap_or(i64::MAX);
            let parameters: [&(dyn ToSql + Sync); 3] = [&start, &end, &records_max];
            let rows = self.database.query(statements::REMOVE, &parameters).await?;
            let keys = rows.iter().map(|row| get::<&[u8]>(row, 0));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            Ok(match keys.into_iter().max() {
                Some(last) => Removed::Until(keys::read(last)?),
                None => Removed::All,
            })
        })
    }

    fn sweep(&self) -> RoundTrip<'_, bool> {
        Box::pin(async move {
            let rows = self.database.query(statements::SWEEP, &[]).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
            Ok(count >= statements::SWEEP_MAX)
        })
    }

    fn part_bytes_max(&self) -> usize {
        // As rows and as records, beside those of the part before it.
        3 * usize::try_from(RANGE_BYTES_MAX).unwrap_or(usize::MAX)
    }

    fn probe(&self) -> RoundTrip<'_, ()> {
        Box::pin(async move {
            let rows = self.database.query(statements::PROBE, &[]).await?;
            let is_read_only = rows.first().map(|row| get::<&str>(row, 0)).transpose()?;
            if is_read_only == Some("on") {
                let cause = "the database is read-only".into();
                return Err(self.database.unavailable(cause));
            }
            Ok(())
        })
    }

    fn connections(&self) -> Connections {
        let status = self.database.status();
        Connections {
            open: status.size,
            idle: status.available,
            waiting: status.waiting + self.reads.waiting(),
        }
    }
}

/// Returns true if a row belongs to the requested range.
fn is_of_range(row: &Row) -> Result<bool, StorageError> {
    get::<Option<i64>>(row, 1).map(|version| version.is_none())
}

/// How many statements read single records at the same time. More of them would have fewer records
/// each, at the same cost.
const READS_MAX: usize = 8;

/// A read of more keys has a statement of its own.
const GROUPED_KEYS_MAX: usize = 8;

/// A part of a range has about so many bytes: a page of entities of usual size is one part.
const RANGE_BYTES_MAX: i64 = 2 * 1024 * 1024;
