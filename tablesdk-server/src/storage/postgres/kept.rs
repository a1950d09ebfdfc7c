//! Connections that the database closes while no request uses them, and their log.
//!
//! No request fails by that, because it opens another connection. So the log has one line when the
//! database begins to close idle connections, and one when it keeps them again, however many there
//! are.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::errors;

/// A record of idle connections that the database closed. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptConnections(Arc<Mutex<ConnectionRecord>>);

#[derive(Debug, Default)]
struct ConnectionRecord {
    /// Why the last connection ended.
    cause: Option<Arc<str>>,
    /// The least time after which an idle connection was closed; `None` while the database keeps
    /// them.
    closed_after: Option<Duration>,
    /// True if the line about closed connections waits for a cause: a connection counts as closed a
    /// moment before its end is noted.
    awaits_cause: bool,
}

impl KeptConnections {
    /// Notes a connection that is about to be used again, after so much time. Returns whether it is
    /// still open.
    pub(super) fn is_kept(&self, is_closed: bool, idle: Duration) -> bool {
        let mut state = self.lock();
        match state.closed_after {
            None if is_closed => {
                state.closed_after = Some(idle);
                match &state.cause {
                    Some(cause) => warn_of_closed(cause),
                    None => state.awaits_cause = true,
                }
            }
            Some(least) if is_closed => state.closed_after = Some(least.min(idle)),
            // One that is open since a shorter time shows nothing.
            Some(least) if idle > least => {
                state.closed_after = None;
                tracing::warn!("the database keeps connections that no request uses again");
            }
            _ => {}
        }
        !is_closed
    }

    fn ended(&self, end: Result<(), Error>) {
        let mut state = self.lock();
        if let Err(error) = end {
            let cause = errors::describe(&error);
            tracing::debug!(%cause, "a connection to the database ended");
            state.cause = Some(cause);
        }
        if mem::take(&mut state.awaits_cause) {
            warn_of_closed(state.cause.as_deref().unwrap_or("connection closed"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionRecord> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn_of_closed(cause: &str) {
    tracing::warn!(
        cause,
        "the database closes connections that no request uses: requests open new ones"
    );
}

/// Connects to the database. The one of the pool logs each connection that ends.
pub(super) struct Connector {
    pub(super) tls: MakeRustlsConnect,
    pub(super) kept: KeptConnections,
}

type Connected = Result<(Client, JoinHandle<()>), Error>;

impl Connect for Connector {
    fn connect(
        &self,
        config: &Config,
    ) -> std::pin::Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        let (config, kept) = (config.clone(), self.kept.clone());
        Box::pin(async move {
            let (client, connection) = config.connect(self.tls.clone()).await?;
            let task = tokio::spawn(async move { kept.ended(connection.await) });
            Ok((client, task))
        })
    }
}
