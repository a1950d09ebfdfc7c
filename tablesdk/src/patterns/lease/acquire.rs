//! Acquiring a lease: watching its entity, and taking it over.

use std::time::Duration;

use tablesdk_protocol::{ETag, EntityKey};
use tokio::time::{Instant, sleep};

use super::Lease;
use super::moment::Moment;
use super::stored::Tenure;
use crate::action::{found_after, get_now};
use crate::client::TableClient;
use crate::entity::{DynamicEntity, EntityError, Stored};
use crate::error::Error;
use crate::pipeline::Table;
use crate::random::random_guid;

/// Acquires a lease. See [`Lease::acquire`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::in_process();
/// # let service = tablesdk::TableServiceClient::in_process(&server);
/// # let table = service.table("Payroll");
/// # table.create_table().await?;
/// use std::time::Duration;
/// use tablesdk::lease::Lease;
///
/// let acquire = |holder: &str| Lease::acquire(&table, ("2024", "lock"), Duration::from_secs(60)).holder(holder);
/// let first = acquire("server 1").await?.expect("it is free");
///
/// // One look: it takes only a lease that is free.
/// assert!(acquire("server 2").wait(Duration::ZERO).await?.is_none());
///
/// // The first client has stopped. After 66 seconds, the second one takes the lease over.
/// drop(first);
/// let second = acquire("server 2").await?.expect("it was not renewed");
/// assert_eq!(second.token(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "actions do nothing until awaited"]
pub struct AcquireLease {
    table: Table,
    /// That of the lease, without the options of this call.
    client: TableClient,
    key: Result<EntityKey, EntityError>,
    duration: Duration,
    holder: String,
    wait: Option<Duration>,
}

impl AcquireLease {
    pub(super) fn new(
        client: &TableClient,
        key: Result<EntityKey, EntityError>,
        duration: Duration,
    ) -> Self {
        let client = client.for_pattern();
        Self {
            table: client.table().clone(),
            client,
            key,
            duration,
            holder: String::new(),
            wait: None,
        }
    }

    /// Says who holds the lease, for operators and for the error of a client that has lost it. It
    /// need not be unique.
    pub fn holder(mut self, name: impl Into<String>) -> Self {
        self.holder = name.into();
        self
    }

    /// Waits for the lease that long, also while its holder is alive, and not [until it is
    /// known](Lease::acquire) whether the holder is alive. [`Duration::ZERO`] is one look: it takes
    /// a lease that is free, and never one whose holder has stopped. [`Duration::MAX`] is no limit.
    ///
    /// Clients that wait read the entity up to eight times in a duration, and at least every 5
    /// seconds. They do not queue: any of them may be the next one.
    pub const fn wait(mut self, limit: Duration) -> Self {
        self.wait = Some(limit);
        self
    }

    async fn run(self) -> Result<Option<Lease>, Error> {
        let refused = |error: Error| error.with_operation(OPERATION);
        let key = self.key.clone();
        let key = key.map_err(|error| refused(Error::input(error)))?;
        if self.duration < Duration::from_millis(1) {
            let error = Error::input("the duration of a lease is at least one millisecond");
            return Err(refused(error).with_key(&key));
        }
        let table = TableClient::of(self.table.clone());
        let began = Instant::now();
        let mut watched: Option<(ETag, Instant)> = None;
        loop {
            let found = get_now(&self.table, &key).await?;
            let now = Instant::now();
            let holder = Tenure::of(OPERATION, found.as_ref())?;
            let time = holder.as_ref().map_or(Duration::ZERO, |it| it.duration);
            let since = match (&watched, &found) {
                (Some((etag, since)), Some(found)) if etag == found.etag() => *since,
                // The holder is alive.
                (Some(_), _) if self.wait.is_none() && !time.is_zero() => return Ok(None),
                // The monotonic clock alone: it is never too early.
                _ => now,
            };
            watched = found.as_ref().map(|found| (found.etag().clone(), since));
            let rest = time.saturating_add(time / 10).saturating_sub(now - since);
            if rest.is_zero() {
                let lease = self.take(&table, &key, found, holder).await?;
                if lease.is_some() || self.wait.is_none() {
                    return Ok(lease);
                }
                continue;
            }
            let limit = self
                .wait
                .map_or(rest, |wait| wait.saturating_sub(now - began));
            if limit.is_zero() {
                return Ok(None);
            }
            sleep(rest.min(limit).min(time / 8).min(LOOK)).await;
        }
    }

    /// Acquires a lease that is free or whose time is over. `None` if another client was faster.
    async fn take(
        &self,
        table: &TableClient,
        key: &EntityKey,
        found: Option<Stored<DynamicEntity>>,
        before: Option<Tenure>,
    ) -> Result<Option<Lease>, Error> {
        let refused = |error: Error| error.with_operation(OPERATION).with_key(key);
        let last = before.map_or(0, |before| before.token);
        let token = last.checked_add(1);
        let tenure = Tenure {
            id: random_guid(),
            writes: 1,
            token: token.ok_or_else(|| refused(Error::data("the lease has no more tokens")))?,
            duration: self.duration,
            holder: self.holder.clone(),
        };
        let entity = tenure.to_entity(key).map_err(refused)?;
        let since = Moment::now(table);
        let written = match &found {
            Some(found) => table.merge_if(&entity, found.etag()).await,
            None => table.insert(&entity).await.map(|it| it.etag().clone()),
        };
        let etag = match written {
            Ok(etag) => etag,
            Err(error) => {
                let (now, error) = found_after(table.table(), key, error).await?;
                let holder = Tenure::of(OPERATION, now.as_ref())?;
                match (now, found) {
                    (Some(now), _) if holder.is_some_and(|it| it.id == tenure.id) => {
                        now.etag().clone()
                    }
                    (Some(now), Some(found)) if now.etag() == found.etag() => return Err(error),
                    (None, None) => return Err(error),
                    _ => return Ok(None),
                }
            }
        };
        Ok(Some(Lease {
            table: self.client.clone(),
            entity: Stored::from_parts(entity, etag)?,
            tenure,
            since,
            fenced: None,
            is_lost: false,
        }))
    }
}

action!(impl[] AcquireLease, table.pipeline => Option<Lease>);

const OPERATION: &str = "acquire lease";
/// The longest time between two looks at the entity.
const LOOK: Duration = Duration::from_secs(5);
