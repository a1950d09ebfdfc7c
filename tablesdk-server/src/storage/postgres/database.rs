//! A database: its connections, the statements that may be sent twice, and whether it can be
//! reached.

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

use super::kept::{Connector, KeptConnections};
use super::schema::{self, Unprepared};
use super::{PostgresOptions, errors, keys, options, statements, tls};
use crate::storage::StorageError;
use crate::storage::shared::{FetchedRecord, ReadRecords, Records};

/// The connections to a database.
pub(super) struct Database {
    pool: Pool,
    /// Set when the tables of this version exist.
    prepared: OnceCell<()>,
    /// Its hosts, for messages.
    hosts: String,
    /// True if the last attempt to reach the database failed.
    is_down: AtomicBool,
    /// True if the last request waited for a connection in vain.
    is_exhausted: AtomicBool,
}

impl Database {
    /// The database with this URL. Connects when it is needed.
    ///
    /// # Errors
    ///
    /// When the URL is malformed, or names a file that cannot be read.
    pub(super) fn new(options: &PostgresOptions) -> io::Result<Self> {
        let config = options.config()?;
        let tls = tls::connector(options.root_certificate().as_deref())?;
        let recycling_method = RecyclingMethod::Fast;
        let hosts = options::hosts(&config);
        let kept = KeptConnections::default();
        let connector = Connector {
            tls,
            kept: kept.clone(),
        };
        let manager = Manager::from_connect(config, connector, ManagerConfig { recycling_method });
        // Before the pool looks itself, which logs each connection that was closed.
        let pre_recycle = Hook::sync_fn(move |client: &mut ClientWrapper, metrics| {
            let is_kept = kept.is_kept(client.is_closed(), metrics.last_used());
            let closed = || HookError::message("it is closed");
            is_kept.then_some(()).ok_or_else(closed)
        });
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
            .pre_recycle(pre_recycle)
            // The connection that was in use last is the one that was not lost since.
            .queue_mode(QueueMode::Lifo)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self {
            pool,
            prepared: OnceCell::new(),
            hosts,
            is_down: AtomicBool::new(false),
            is_exhausted: AtomicBool::new(false),
        })
    }

    /// A connection to a database whose tables exist.
    pub(super) async fn client(&self) -> Result<InUse, StorageError> {
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
            Err(PoolError::Timeout(TimeoutType::Wait)) => {
                let count = self.pool.status().max_size;
                self.exhausted(&format!("all {count} connections to it were in use"))
            }
            Err(
                PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)),
            ) => self.unavailable(self.at_hosts(&errors::describe(&error))),
            Err(error) => self.unavailable(self.at_hosts(&error.to_string())),
        })
    }

    /// Notes that the database responds.
    pub(super) fn is_available(&self) {
        if self.is_down.load(Ordering::Relaxed) && self.is_down.swap(false, Ordering::Relaxed) {
            tracing::warn!("the database is available again");
        }
    }

    /// The error of a request that waited in vain. Logs the first one in a row.
    pub(super) fn exhausted(&self, why: &str) -> StorageError {
        let cause = format!("{why} for {} s", WAIT_MAX.as_secs());
        if !self.is_exhausted.swap(true, Ordering::Relaxed) {
            tracing::warn!(%cause, "a request waited for the database in vain");
        }
        StorageError::Unavailable {
            cause: cause.into(),
        }
    }

    fn at_hosts(&self, cause: &str) -> Arc<str> {
        format!("{}: {cause}", self.hosts).into()
    }

    /// The error of a database that cannot be used now. Logs the first one in a row.
    pub(super) fn unavailable(&self, cause: Arc<str>) -> StorageError {
        if !self.is_down.swap(true, Ordering::Relaxed) {
            tracing::warn!(%cause, "the database is not available");
        }
        StorageError::Unavailable { cause }
    }

    /// Sends a statement that may be sent twice, and does so if the connection was lost, or other
    /// transactions were in its way.
    pub(super) async fn query(
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

    /// How many connections there are, how many of them no request uses, and how many requests wait
    /// for one.
    pub(super) fn status(&self) -> deadpool_postgres::Status {
        self.pool.status()
    }
}

impl ReadRecords for Database {
    async fn records(&self, keys: Vec<Vec<u8>>) -> Records {
        let keys: Vec<_> = keys.iter().map(|key| keys::stored(key)).collect();
        let rows = self.query(statements::KEYS, &[&keys]).await?;
        // Each row is dropped as soon as its record is copied.
        rows.into_iter().map(|row| record(&row)).collect()
    }
}

/// A connection from the pool. One whose statement has not ended is closed, so that the next
/// statement does not wait for it.
pub(super) struct InUse(Option<Client>);

impl InUse {
    /// Gives the connection back: its statement has ended.
    pub(super) fn release(mut self) {
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

/// The record of a single key.
pub(super) fn record(row: &Row) -> Result<FetchedRecord, StorageError> {
    Ok(FetchedRecord {
        key: keys::read(get(row, 0)?)?,
        version: get(row, 1)?,
        record: get::<Option<&[u8]>>(row, 2)?.map(Bytes::copy_from_slice),
    })
}

pub(super) fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, StorageError> {
    row.try_get(column)
        .map_err(|_| StorageError::corrupt("row of the database"))
}

/// How long a request waits for a connection, or for the reads before it.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a new connection may take, with all hosts of the URL.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a statement may take. The database ends it earlier: see [`statements::SETTINGS`].
pub(super) const STATEMENT_MAX: Duration = Duration::from_secs(15);

/// How often a statement is sent that other transactions are in the way of.
const ATTEMPTS_MAX: u32 = 10;

pub(super) const LATE: &str = "it did not respond in time";
