//! Leases: of several clients, one at a time does something, such as the monthly payroll. See
//! [`Lease`].

mod acquire;
mod moment;
mod stored;

pub use acquire::AcquireLease;

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tablesdk_protocol::{ETag, EntityKey};
use tokio::time::{sleep, timeout};

use self::moment::Moment;
use self::stored::{Milliseconds, Tenure};
use crate::action::{Batch, found_after};
use crate::client::TableClient;
use crate::entity::key::IntoEntityKey;
use crate::entity::{DynamicEntity, Stored};
use crate::error::Error;

/// The right to do something alone, for a time: an entity that one client at a time holds, renews
/// and releases.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = tablesdk_server::TableServer::in_process();
/// # let service = tablesdk::TableServiceClient::in_process(&server);
/// # let table = service.table("Payroll");
/// # table.create_table().await?;
/// # use tablesdk::DynamicEntity;
/// # let (salary, report) = (DynamicEntity::new("2024", "run"), DynamicEntity::new("2024", "report"));
/// use std::time::Duration;
/// use tablesdk::lease::Lease;
///
/// let minute = Duration::from_secs(60);
/// let Some(mut lease) = Lease::acquire(&table, ("2024", "lock"), minute).holder("server 1").await? else {
///     println!("another client does it");
///     return Ok(());
/// };
/// // Together with a write of the lease: refused if another client has taken it over.
/// lease.fence(table.batch("2024")).insert(&salary).await?;
///
/// // For work that takes longer.
/// let work = async { table.insert(&report).await };
/// lease.renew_while(work).await??;
///
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// # What it guarantees
///
/// A contender takes a lease over when its entity has not changed for the duration and a tenth of
/// it, by the clock of the contender. The holder relies on it for nine tenths of the duration,
/// counted from *before* it sent the request that renewed it. No clock is compared with that of
/// another computer, so clocks may be wrong by hours. They may run up to a tenth too fast or too
/// slow.
///
/// * The [`token`](Self::token) of each acquisition is greater than all before it.
/// * While [`is_held`](Self::is_held) is true, no other client holds the lease. A suspended
///   computer counts the time, too: the client takes the longer of the times by the monotonic clock
///   and by the system clock.
/// * A lost response does not change who holds it, and neither does a request that arrives twice.
///   Each acquisition has an id, and each write of it a number, which the client finds in the
///   entity or does not.
///
/// It does **not** guarantee that something is done once. The next client gets the lease after a
/// release, also one that waits for it at that moment: it looks first whether the work was done,
/// for instance by an entity that is inserted with [`fence`](Self::fence).
///
/// It does **not** guarantee that the holder stops. Where both clocks of a computer stand still, as
/// in a virtual machine that was paused, the holder believes too long that it holds the lease. A
/// thread may pause between the check and the write, and a request may arrive late, long after
/// another client took the lease over. A write that must not happen then has to be fenced:
///
/// * in the partition of the lease by [`fence`](Self::fence), exactly;
/// * elsewhere by the token: the written entity has a property for it, and a writer with a smaller
///   token is refused. See [the guide](crate::guide::leases);
/// * for another system: it gets the token with each request, and refuses a smaller one than it has
///   seen.
///
/// The entity is never deleted, because the tokens would start again. A client that acquires a
/// lease and stops before it has the response leaves it held for one duration.
pub struct Lease {
    table: TableClient,
    /// The entity as this client has written it.
    entity: Stored<DynamicEntity>,
    tenure: Tenure,
    /// Before the request that wrote the entity was sent.
    since: Moment,
    /// The version before the last fenced batch, and when the batch was made. A version after it is
    /// that of the batch.
    fenced: Option<(ETag, Moment)>,
    is_lost: bool,
}

impl Lease {
    /// Acquires a lease for a time, which a [renewal](Self::renew) extends: `None` if another
    /// client holds it.
    ///
    /// The key is that of the entity of the lease, which is created at the first time.
    ///
    /// # How long it waits
    ///
    /// A free lease is acquired at once. Otherwise, the call watches the entity until it is known
    /// whether its holder is alive. It looks eight times in the duration of the holder's lease, and
    /// at least every 5 seconds, and ends at the look that shows that the holder
    ///
    /// * has renewed the lease: the result is `None`. A holder in
    ///   [`renew_while`](Self::renew_while) renews when a third of the duration has passed, so with
    ///   a lease of a minute, the call waits up to 25 seconds;
    /// * has released the lease: the call takes it;
    /// * has changed nothing for the duration and a tenth of it, which is 66 seconds for a minute:
    ///   the call takes the lease over.
    ///
    /// So a call waits at most 1.1 times the duration that the **holder** has chosen, and for its
    /// requests. A handler that cannot wait so long says
    /// [`wait(Duration::ZERO)`](AcquireLease::wait) for one look, or another limit. The deadline of
    /// the [policy](crate::RetryPolicy::deadline) is that of each request: it does not end the
    /// waiting.
    ///
    /// A short duration means that another client soon takes over after the holder has stopped, and
    /// a long one that the holder survives long failures of the network. A minute is a good start.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for a duration below a millisecond.
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) when the entity under the key is not that of a
    /// lease. After [`ErrorKind::OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), the lease may
    /// be held for one duration.
    pub fn acquire(
        table: &TableClient,
        key: impl IntoEntityKey,
        duration: Duration,
    ) -> AcquireLease {
        AcquireLease::new(table, key.into_entity_key(), duration)
    }

    /// The number of this acquisition, which is greater than those of all before it: the *fencing
    /// token*. It does not change with a renewal.
    pub const fn token(&self) -> i64 {
        self.tenure.token
    }

    /// The key of the entity of the lease.
    pub const fn key(&self) -> &EntityKey {
        self.entity.key()
    }

    /// Returns true if no other client can hold the lease at this moment. It sends nothing. See
    /// [what it guarantees](Self#what-it-guarantees).
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The time until [`is_held`](Self::is_held) becomes false, unless the lease is renewed.
    pub fn remaining(&self) -> Duration {
        if self.is_lost {
            return Duration::ZERO;
        }
        let passed = self.since().elapsed(&self.table);
        self.relied_on().saturating_sub(passed)
    }

    fn relied_on(&self) -> Duration {
        let duration = self.tenure.duration;
        duration.saturating_sub(duration / 10)
    }

    /// Renews the lease for its whole duration. A good time is when a third of it has passed.
    ///
    /// If the future is dropped, the lease may have been renewed or not; the next renewal finds
    /// out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeaseLost`](crate::ErrorKind::LeaseLost) when another client has taken the
    /// lease over. After another error, the client holds the lease as long as
    /// [`is_held`](Self::is_held) is true, and may call this again. It may also do so later: the
    /// lease is renewed if no other client has acquired it since.
    pub async fn renew(&mut self) -> Result<(), Error> {
        self.write("renew lease", self.tenure.duration).await
    }

    /// Gives the lease up, so that another client can acquire it at once.
    ///
    /// A lease that is dropped without this call is free for a client that has seen its entity
    /// unchanged for its duration and a tenth of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeaseLost`](crate::ErrorKind::LeaseLost) when another client had taken the
    /// lease over. After another error, the lease may be held until its duration is over.
    pub async fn release(mut self) -> Result<(), Error> {
        self.write("release lease", Duration::ZERO).await
    }

    /// Adds a write of the lease to a batch in its partition, as one of its 100 changes. If another
    /// client has taken the lease over, the batch fails with
    /// [`is_precondition_failed`](Error::is_precondition_failed), and changes nothing. If the batch
    /// succeeds, it has renewed the lease.
    ///
    /// The batch may also fail in this way after a fenced batch or a renewal whose response was
    /// lost. [`renew`](Self::renew) then shows whether the lease is still held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::in_process();
    /// # let service = tablesdk::TableServiceClient::in_process(&server);
    /// # let table = service.table("Payroll");
    /// # table.create_table().await?;
    /// # use std::time::Duration;
    /// # use tablesdk::DynamicEntity;
    /// # use tablesdk::lease::Lease;
    /// let lease = Lease::acquire(&table, ("2024", "lock"), Duration::from_secs(60)).await?;
    /// let mut slow = lease.expect("it is free");
    /// // This client pauses, and another one takes the lease over.
    /// let next = Lease::acquire(&table, ("2024", "lock"), Duration::from_secs(60)).await?;
    /// assert!(next.expect("not renewed for 66 seconds").token() > slow.token());
    ///
    /// let run = DynamicEntity::new("2024", "run");
    /// let error = slow.fence(table.batch("2024")).insert(&run).await.unwrap_err();
    /// assert!(error.is_precondition_failed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn fence<'e>(&'e mut self, batch: Batch<'e>) -> Batch<'e> {
        self.since = self.since();
        self.fenced = Some((self.entity.etag().clone(), Moment::now(&self.table)));
        self.tenure.count_write(&mut self.entity);
        batch.merge(&mut self.entity)
    }

    /// Runs a future, and renews the lease whenever a third of its duration has passed.
    ///
    /// When the lease is lost, or could not be renewed in time, the future is dropped at its next
    /// `.await`. The renewal runs in the same task: a future that blocks the thread prevents it. A
    /// renewal that is under way when the future ends is awaited. What the future writes is not
    /// fenced, so it takes the [`token`](Self::token) with it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeaseLost`](crate::ErrorKind::LeaseLost). The future may have done a part of
    /// its work.
    pub async fn renew_while<F: IntoFuture>(&mut self, work: F) -> Result<F::Output, Error> {
        let mut work = pin!(work.into_future());
        loop {
            if !self.is_held() {
                return Err(self.not_renewed(None));
            }
            let (table, since, relied_on) = (self.table.clone(), self.since(), self.relied_on());
            let is_renewing = AtomicBool::new(false);
            let mut renewal = pin!(self.renew_at_a_third(&is_renewing));
            let done = poll_fn(|context| match renewal.as_mut().poll(context) {
                Poll::Ready(renewed) => Poll::Ready(renewed.map(|()| None)),
                // After a suspend, timers may be late. The work must not go on until they fire.
                Poll::Pending if since.elapsed(&table) >= relied_on => Poll::Ready(Ok(None)),
                Poll::Pending => work.as_mut().poll(context).map(|done| Ok(Some(done))),
            });
            if let Some(done) = done.await? {
                if is_renewing.load(Ordering::Relaxed) {
                    // Without its response, the version of the entity would be unknown, and a
                    // fenced batch refused. Whether it succeeds makes no difference to the work,
                    // which has ended.
                    let _ = renewal.await;
                }
                return Ok(done);
            }
        }
    }

    /// Renews the lease when a third of its duration has passed.
    async fn renew_at_a_third(&mut self, is_renewing: &AtomicBool) -> Result<(), Error> {
        let passed = self.since().elapsed(&self.table);
        sleep((self.tenure.duration / 3).saturating_sub(passed)).await;
        is_renewing.store(true, Ordering::Relaxed);
        self.renew_in_time().await
    }

    /// Renews the lease while it is held.
    async fn renew_in_time(&mut self) -> Result<(), Error> {
        let mut cause = None;
        loop {
            let left = self.remaining();
            let renewed = if left.is_zero() {
                None
            } else {
                timeout(left, self.renew()).await.ok()
            };
            match renewed {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) if self.is_lost => return Err(error),
                Some(Err(error)) => cause = Some(error),
                None => return Err(self.not_renewed(cause)),
            }
            sleep(self.remaining().min(self.tenure.duration / 20)).await;
        }
    }

    /// When the entity was written, as far as this client relies on it.
    fn since(&self) -> Moment {
        match &self.fenced {
            Some((before, at)) if before != self.entity.etag() => *at,
            _ => self.since,
        }
    }

    /// Writes the entity with that duration.
    async fn write(&mut self, operation: &'static str, duration: Duration) -> Result<(), Error> {
        self.since = self.since();
        self.fenced = None;
        Milliseconds::of(duration)?.set(&mut self.entity);
        let mut round = 1;
        loop {
            let sent = Moment::now(&self.table);
            self.tenure.count_write(&mut self.entity);
            let Err(error) = self.table.merge(&mut self.entity).await else {
                self.written(sent);
                return Ok(());
            };
            let was_lost = error.is_outcome_unknown();
            let (now, error) = found_after(self.table.table(), self.entity.key(), error).await?;
            let tenure = Tenure::of(operation, now.as_ref());
            let tenure = tenure.map_err(|error| self.located(error))?;
            let is_ours = tenure.as_ref().is_some_and(|it| it.id == self.tenure.id);
            let is_done = is_ours
                && tenure
                    .as_ref()
                    .is_some_and(|it| it.writes == self.tenure.writes);
            match now {
                // A write of this client, of which it has no response: this one, a renewal, or a
                // fenced batch.
                Some(now) if is_ours => self.entity.written(now.etag().clone()),
                // A contender may have been faster than the response to the release.
                _ if was_lost && duration.is_zero() => return Ok(()),
                _ => {
                    let ours = self.tenure.token;
                    return Err(self.lost(operation, Lost::to(tenure, ours)));
                }
            }
            if is_done {
                self.written(sent);
                return Ok(());
            }
            if round == ROUNDS {
                return Err(error);
            }
            round += 1;
        }
    }

    /// Notes that the entity was written by a request that was sent then.
    const fn written(&mut self, sent: Moment) {
        self.since = sent;
        self.is_lost = false;
    }

    fn not_renewed(&mut self, cause: Option<Error>) -> Error {
        let cause = cause.map(|error| format!(": {}", error.why()));
        let because = cause.unwrap_or_default();
        self.lost("renew lease", Lost::NotRenewed { because })
    }

    fn lost(&mut self, operation: &'static str, lost: Lost) -> Error {
        self.is_lost = true;
        let error = Error::lease_lost(lost).with_operation(operation);
        self.located(error.with_key(self.entity.key()))
    }

    fn located(&self, error: Error) -> Error {
        self.table.table().pipeline.locate(error)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", self.key())
            .field("token", &self.token())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// Why a lease is not held any more.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("the lease was taken over by {holder} (token {token}, ours was {ours})")]
    TakenOver {
        holder: String,
        token: i64,
        ours: i64,
    },
    #[error("the entity of the lease was deleted (our token was {ours})")]
    Deleted { ours: i64 },
    #[error("the lease was not renewed in time{because}")]
    NotRenewed { because: String },
}

impl Lost {
    fn to(other: Option<Tenure>, ours: i64) -> Self {
        let Some(Tenure { holder, token, .. }) = other else {
            return Self::Deleted { ours };
        };
        let holder = match holder.as_str() {
            "" => "another client".to_owned(),
            holder => format!("{holder:?}"),
        };
        Self::TakenOver {
            holder,
            token,
            ours,
        }
    }
}

/// How often a write of the lease is tried again that met a version which this client has written
/// itself.
const ROUNDS: u32 = 4;
