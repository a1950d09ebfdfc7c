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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime,
    Timeouts,
};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

pub(crate) use options::PostgresOptions;

use super::shared::{
    Committed, ConditionalBatch, Connections, Fetched, FetchedRecord, Removed, RoundTrip,
    SharedStorage, Wanted,
};
use super::{StorageError, Write};
use errors::Lost;

/// The records of a database.
pub(crate) struct PostgresStorage {
    pool: Pool,
    /// Set when the tables of this version exist.
    prepared: OnceCell<()>,
    /// Whether the last attempt to reach the database failed.
    is_down: AtomicBool,
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
        let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method });
        let configure = Hook::async_fn(|client, _| {
            Box::pin(async move {
                let limited = client.batch_execute(statements::TIME_LIMIT).await;
                limited.map_err(HookError::Backend)?;
                match client.batch_execute(statements::PLANNER).await {
                    Err(error) if error.as_db_error().is_none() => Err(HookError::Backend(error)),
                    _ => Ok(()),
                }
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
            .post_create(configure)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self {
            pool,
            prepared: OnceCell::new(),
            is_down: AtomicBool::new(false),
        })
    }

    /// A connection to a database whose tables exist.
    async fn client(&self) -> Result<Client, StorageError> {
        let client = self.connect().await?;
        self.prepared
            .get_or_try_init(|| schema::prepare(&client))
            .await?;
        Ok(client)
    }

    async fn connect(&self) -> Result<Client, StorageError> {
        match self.pool.get().await {
            Ok(client) => {
                if self.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!("the database is available again");
                }
                Ok(client)
            }
            Err(error) => Err(self.unavailable(match error {
                PoolError::Backend(error)
                | PoolError::PostCreateHook(HookError::Backend(error)) => errors::describe(&error),
                error => error.to_string().into(),
            })),
        }
    }

    /// The error of a database that cannot be used now. Logs the first one in a row.
    fn unavailable(&self, cause: Arc<str>) -> StorageError {
        if !self.is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(%cause, "the database is not available");
        }
        StorageError::Unavailable { cause }
    }

    /// Sends a statement that changes nothing, and once more if the connection was lost.
    async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StorageError> {
        let mut lost = match self.try_query(statement, parameters).await? {
            Ok(rows) => return Ok(rows),
            Err(lost) => lost,
        };
        if lost.may_be_retried() {
            lost = match self.try_query(statement, parameters).await? {
                Ok(rows) => return Ok(rows),
                Err(lost) => lost,
            };
        }
        Err(self.unavailable(lost.cause))
    }

    /// Sends a statement. The inner error is that of a connection that was lost or is of no use any more.
    async fn try_query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Result<Vec<Row>, Lost>, StorageError> {
        let client = self.client().await?;
        let sent = async {
            let statement = client.prepare_cached(statement).await?;
            client.query(&statement, parameters).await
        };
        let lost = match timeout(STATEMENT_MAX, sent).await {
            Ok(Ok(rows)) => return Ok(Ok(rows)),
            Ok(Err(error)) => errors::lost(&error)?,
            Err(_) => Lost::late(),
        };
        // The connection is not used again.
        drop(Client::take(client));
        Ok(Err(lost))
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
        let statement = timeout(STATEMENT_MAX, client.prepare_cached(statements::COMMIT)).await;
        let statement = match statement {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) => {
                let lost = errors::lost(&error)?;
                drop(Client::take(client));
                return Err(self.unavailable(lost.cause));
            }
            Err(_) => {
                drop(Client::take(client));
                return Err(self.unavailable(Lost::late().cause));
            }
        };
        let parameters: [&(dyn ToSql + Sync); 6] = [
            &keys,
            &expected,
            &records,
            &batch.version,
            &read_keys,
            &read_versions,
        ];
        let executed = timeout(STATEMENT_MAX, client.execute(&statement, &parameters)).await;
        let lost = match executed {
            Ok(Ok(_)) => return Ok(Committed::Done),
            Ok(Err(error)) if errors::is_conflict(&error) => return Ok(Committed::Conflict),
            Ok(Err(error)) => errors::lost(&error)?,
            Err(_) => Lost::late(),
        };
        drop(Client::take(client));
        if lost.had_no_effect {
            return Err(self.unavailable(lost.cause));
        }
        Err(StorageError::UnknownOutcome { cause: lost.cause })
    }
}

impl SharedStorage for PostgresStorage {
    fn fetch(&self, wanted: Wanted) -> RoundTrip<'_, Fetched> {
        Box::pin(async move {
            let keys: Vec<_> = wanted.keys.iter().map(|key| keys::stored(key)).collect();
            let Some(range) = wanted.range else {
                let rows = self.query(statements::KEYS, &[&keys]).await?;
                let records = rows.iter().map(record).collect::<Result<_, _>>()?;
                return Ok(Fetched {
                    records,
                    ..Fetched::default()
                });
            };
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
        // A part that is scanned, and the next one: as rows and as records.
        3 * usize::try_from(RANGE_BYTES_MAX).unwrap_or(usize::MAX)
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

/// How long a request waits for a connection.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a new connection may take, with all hosts of the URL.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a statement may take. The database ends it earlier: see [`statements::TIME_LIMIT`].
const STATEMENT_MAX: Duration = Duration::from_secs(15);

/// A part of a range has about so many bytes: as many as the largest page.
const RANGE_BYTES_MAX: i64 = 4 * 1024 * 1024;
