//! Records in a database that speaks PostgreSQL's protocol, which any number of servers share.
//!
//! Each round trip is one statement outside a transaction block, so it is a transaction of its own: nothing stays open between two
//! of them, and a server that stops leaves no lock behind. Replication, fail-over and backups are those of the database. See
//! `docs/shared-database.md`. This module knows neither tables nor entities.

mod errors;
mod keys;
mod options;
mod schema;
mod statements;
mod tls;

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::{
    Client, ClientWrapper, Hook, HookError, Manager, ManagerConfig, Pool, PoolError, QueueMode,
    RecyclingMethod, Runtime, TimeoutType, Timeouts,
};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub(crate) use options::PostgresOptions;

use super::shared::{
    Committed, ConditionalBatch, Connections, Fetched, FetchedRecord, GroupedReads, Removed,
    RoundTrip, SharedStorage, Wanted,
};
use super::{StorageError, Write};
use schema::Unprepared;

/// The records of a database.
pub(crate) struct PostgresStorage {
    pool: Pool,
    reads: GroupedReads,
    /// Set when the tables of this version exist.
    prepared: OnceCell<()>,
    /// Its hosts, for messages.
    hosts: String,
    /// Whether the last attempt to reach the database failed.
    is_down: AtomicBool,
    /// Whether the last request waited for a connection in vain.
    is_exhausted: AtomicBool,
}

impl PostgresStorage {
    /// The records of the database with this URL. Connects when they are needed.
    ///
    /// # Errors
    ///
    /// When the URL is malformed, or names a file that cannot be read.
    pub(crate) fn new(options: &PostgresOptions) -> io::Result<Self> {
        let config = options.config()?;
        let tls = tls::connector(options.root_certificate().as_deref())?;
        let recycling_method = RecyclingMethod::Fast;
        let hosts = options::hosts(&config);
        let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method });
        let post_create = Hook::async_fn(|client, _| {
            Box::pin(async move {
                let configured = timeout(CONNECT_MAX, configure(client)).await;
                let configured = configured.map_err(|_| HookError::message(LATE))?;
                configured.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(options.connections_max.get())
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(WAIT_MAX),
                create: Some(CONNECT_MAX),
                recycle: Some(CONNECT_MAX),
            })
            .post_create(post_create)
            // The connection that was in use last is the one that was not lost since.
            .queue_mode(QueueMode::Lifo)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self {
            pool,
            reads: GroupedReads::new(READS_MAX.min(options.connections_max.get()), WAIT_MAX),
            prepared: OnceCell::new(),
            hosts,
            is_down: AtomicBool::new(false),
            is_exhausted: AtomicBool::new(false),
        })
    }

    /// A connection to a database whose tables exist.
    async fn client(&self) -> Result<InUse, StorageError> {
        let client = self.connect().await?;
        let prepare = async || match timeout(STATEMENT_MAX, schema::prepare(&client)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Unprepared::Lost(lost))) => Err(self.unavailable(lost.cause)),
            Ok(Err(Unprepared::Failed(error))) => Err(error),
            Err(_) => Err(self.unavailable(LATE.into())),
        };
        self.prepared.get_or_try_init(prepare).await?;
        Ok(client)
    }

    async fn connect(&self) -> Result<InUse, StorageError> {
        Err(match self.pool.get().await {
            Ok(client) => {
                if self.is_exhausted.load(Ordering::Relaxed) {
                    self.is_exhausted.store(false, Ordering::Relaxed);
                }
                return Ok(InUse(Some(client)));
            }
            Err(PoolError::Timeout(TimeoutType::Wait)) => self.exhausted(),
            Err(
                PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)),
            ) => self.unavailable(self.at_hosts(&errors::describe(&error))),
            Err(error) => self.unavailable(self.at_hosts(&error.to_string())),
        })
    }

    /// Notes that the database responds.
    fn is_available(&self) {
        if self.is_down.load(Ordering::Relaxed) && self.is_down.swap(false, Ordering::Relaxed) {
            tracing::warn!("the database is available again");
        }
    }

    /// The error of a request that had no connection. Logs the first one in a row.
    fn exhausted(&self) -> StorageError {
        let count = self.pool.status().max_size;
        let seconds = WAIT_MAX.as_secs();
        let cause = format!("all {count} connections to it were in use for {seconds} s");
        if !self.is_exhausted.swap(true, Ordering::Relaxed) {
            tracing::warn!(%cause, "a request did not get a connection to the database");
        }
        StorageError::Unavailable {
            cause: cause.into(),
        }
    }

    fn at_hosts(&self, cause: &str) -> Arc<str> {
        format!("{}: {cause}", self.hosts).into()
    }

    /// The error of a database that cannot be used now. Logs the first one in a row.
    fn unavailable(&self, cause: Arc<str>) -> StorageError {
        if !self.is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(%cause, "the database is not available");
        }
        StorageError::Unavailable { cause }
    }

    /// Sends a statement that may be sent twice, and does so if the connection was lost, or other transactions were in its way.
    async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        let mut attempts = 1;
        loop {
            let client = self.client().await?;
            let sent = async {
                let statement = client.prepare_cached(statement).await?;
                client.query(&statement, parameters).await
            };
            match timeout(STATEMENT_MAX, sent).await {
                Ok(Ok(rows)) => {
                    client.release();
                    self.is_available();
                    return Ok(rows);
                }
                Ok(Err(error)) if errors::is_conflict(&error) => {
                    client.release();
                    if attempts == ATTEMPTS_MAX {
                        return Err(StorageError::Contended);
                    }
                }
                Ok(Err(error)) => {
                    let lost = errors::lost(&error)?;
                    if attempts > 1 || !lost.may_be_retried() {
                        return Err(self.unavailable(lost.cause));
                    }
                }
                Err(_) => return Err(self.unavailable(LATE.into())),
            }
            attempts += 1;
        }
    }

    /// The records under single keys.
    async fn records(&self, keys: Vec<Vec<u8>>) -> Result<Vec<FetchedRecord>, StorageError> {
        let keys: Vec<_> = keys.iter().map(|key| keys::stored(key)).collect();
        let rows = self.query(statements::KEYS, &[&keys]).await?;
        rows.iter().map(record).collect()
    }

    async fn commit(&self, batch: ConditionalBatch) -> Result<Committed, StorageError> {
        let (mut keys, mut expected, mut records) = (Vec::new(), Vec::new(), Vec::new());
        for (write, version) in &batch.writes {
            let (key, record) = match write {
                Write::Delete(key) => (key, None),
                Write::Put(key, record) => (key, Some(record.as_slice())),
            };
            keys.push(keys::stored(key));
            expected.push(*version);
            records.push(record);
        }
        let (read_keys, read_versions): (Vec<_>, Vec<_>) = batch
            .reads
            .iter()
            .map(|(key, version)| (keys::stored(key), *version))
            .unzip();
        let client = self.client().await?;
        let prepared = timeout(STATEMENT_MAX, client.prepare_cached(statements::COMMIT)).await;
        let statement = match prepared {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) => return Err(self.unavailable(errors::lost(&error)?.cause)),
            Err(_) => return Err(self.unavailable(LATE.into())),
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
                self.is_available();
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
            return Err(self.unavailable(lost.cause));
        }
        Err(StorageError::UnknownOutcome { cause: lost.cause })
    }
}

/// A connection from the pool. One whose statement has not ended is closed, so that the next statement does not wait for it.
struct InUse(Option<Client>);

impl InUse {
    /// Gives the connection back: its statement has ended.
    fn release(mut self) {
        drop(self.0.take());
    }
}

impl Deref for InUse {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        let client = self.0.as_deref();
        client.expect("the connection is taken only when this ends")
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        drop(self.0.take().map(Client::take));
    }
}

/// Changes the settings of a new connection.
async fn configure(client: &ClientWrapper) -> Result<(), tokio_postgres::Error> {
    for setting in statements::SETTINGS {
        match client.batch_execute(setting).await {
            Err(error) if error.as_db_error().is_none() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl SharedStorage for PostgresStorage {
    fn fetch(&self, wanted: Wanted) -> RoundTrip<'_, Fetched> {
        Box::pin(async move {
            let Some(range) = wanted.range else {
                let records = self.reads.read(wanted.keys, |keys| self.records(keys));
                return Ok(Fetched {
                    records: records.await?,
                    ..Fetched::default()
                });
            };
            let keys: Vec<_> = wanted.keys.iter().map(|key| keys::stored(key)).collect();
            let (start, end) = (keys::stored(&range.start), keys::stored(&range.end));
            let records_max = i64::try_from(range.records_max).unwrap_or(i64::MAX);
            let parameters: [&(dyn ToSql + Sync); 5] =
                [&keys, &start, &end, &records_max, &RANGE_BYTES_MAX];
            let rows = self.query(statements::KEYS_AND_RANGE, &parameters).await?;
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
            let rows = self.query(statements::REMOVE, &parameters).await?;
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
            let rows = self.query(statements::SWEEP, &[]).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
            Ok(count >= statements::SWEEP_MAX)
        })
    }

    fn part_bytes_max(&self) -> usize {
        // As rows and as records.
        2 * usize::try_from(RANGE_BYTES_MAX).unwrap_or(usize::MAX)
    }

    fn probe(&self) -> RoundTrip<'_, ()> {
        Box::pin(async move {
            let rows = self.query(statements::PROBE, &[]).await?;
            let is_read_only = rows.first().map(|row| get::<&str>(row, 0)).transpose()?;
            if is_read_only == Some("on") {
                let cause = "the database is read-only".into();
                return Err(self.unavailable(cause));
            }
            Ok(())
        })
    }

    fn connections(&self) -> Connections {
        let status = self.pool.status();
        Connections {
            open: status.size,
            idle: status.available,
            waiting: status.waiting,
        }
    }
}

/// Whether a row belongs to the range that was asked for.
fn is_of_range(row: &Row) -> Result<bool, StorageError> {
    get::<Option<i64>>(row, 1).map(|version| version.is_none())
}

/// The record of a single key.
fn record(row: &Row) -> Result<FetchedRecord, StorageError> {
    Ok(FetchedRecord {
        key: keys::read(get(row, 0)?)?,
        version: get(row, 1)?,
        record: get::<Option<&[u8]>>(row, 2)?.map(Bytes::copy_from_slice),
    })
}

fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, StorageError> {
    row.try_get(column)
        .map_err(|_| StorageError::corrupt("row of the database"))
}

/// How many statements read single records at the same time. More of them would have fewer records each, at the same cost.
const READS_MAX: usize = 8;

/// How long a request waits for a connection.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a new connection may take, with all hosts of the URL.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a statement may take. The database ends it earlier: see [`statements::SETTINGS`].
const STATEMENT_MAX: Duration = Duration::from_secs(15);

/// A part of a range has about so many bytes: a page of entities of usual size is one part.
const RANGE_BYTES_MAX: i64 = 2 * 1024 * 1024;

/// How often a statement is sent that other transactions are in the way of.
const ATTEMPTS_MAX: u32 = 10;

const LATE: &str = "it did not respond in time";
