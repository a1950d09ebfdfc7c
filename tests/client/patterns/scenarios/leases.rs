//! A lease of clients whose clocks change: tokens grow, one client at a time relies on it, and no
//! fenced write of an earlier holder follows one of a later holder.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tablesdk::lease::{AcquireLease, Lease};
use tablesdk::transport::Transport;
use tablesdk::{
    DynamicEntity, ErrorKind, Guid, RetryPolicy, Stored, TableClient, TableServiceClient,
};
use tablesdk_server::TableServer;
use tokio::time::{Instant, sleep};

use super::super::leases::with_own_clock;
use super::{Before, Failure, Outcome, Scenario, Write, done};

const TIME: Duration = Duration::from_secs(10);

/// The tokens of all leases, as clients acquire them, and each time that a client finds that it
/// holds its lease.
#[derive(Default)]
pub(super) struct Leases(RefCell<Tokens>);

#[derive(Default)]
struct Tokens {
    acquired: Vec<i64>,
    held: i64,
    written: usize,
}

pub(super) struct Client {
    table: TableClient,
    clock: Arc<AtomicI64>,
    lease: Option<Lease>,
}

fn acquire(table: &TableClient, name: &str) -> AcquireLease {
    Lease::acquire(table, ("payroll", name), TIME)
}

/// A write that the token of its holder is stored with.
fn log(lease: &Lease, id: u64) -> DynamicEntity {
    DynamicEntity::new("payroll", format!("log_{id:020}")).with("Token", lease.token())
}

impl Leases {
    fn note_acquired(&self, lease: &Lease) {
        let acquired = &mut self.0.borrow_mut().acquired;
        assert!(
            !acquired.contains(&lease.token()),
            "{lease:?}: {acquired:?}"
        );
        acquired.push(lease.token());
    }

    fn note_held(&self, lease: &Lease) {
        if lease.is_held() {
            let held = &mut self.0.borrow_mut().held;
            // In the order of time: no earlier holder relies on the lease once a later one does.
            assert!(*held <= lease.token(), "{lease:?} after {held}");
            *held = lease.token();
        }
    }

    async fn use_lease(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        let Some(lease) = &mut client.lease else {
            return Ok(());
        };
        self.note_held(lease);
        // Sometimes longer than the lease: between the check and the write.
        let most = if rng.u8(..4) == 0 { 2.0 } else { 0.3 };
        sleep(TIME.mul_f64(rng.f64() * most)).await;
        self.note_held(lease);
        let result = match rng.u8(..3) {
            0 => lease.renew().await,
            1 => {
                let work = sleep(TIME.mul_f64(rng.f64() * 2.0));
                lease.renew_while(work).await
            }
            _ => {
                let entity = log(lease, rng.u64(..));
                let fenced = lease.fence(client.table.batch("payroll")).insert(&entity);
                let written = fenced.await;
                self.0.borrow_mut().written += usize::from(written.is_ok());
                written.map(drop)
            }
        };
        self.note_held(lease);
        if let Err(error) = &result
            && error.kind() == ErrorKind::LeaseLost
        {
            assert!(!lease.is_held());
            client.lease = None;
        }
        Ok(result?)
    }
}

suites!(Leases);

impl Scenario for Leases {
    type Client = Client;

    const WRITES: &'static [Write] = &[done("acquire"), done("acquire a released one")];
    const STEPS: u32 = 80;
    const PAUSE: Duration = Duration::from_secs(5);

    async fn new(server: &TableServer, before: Before) -> Self {
        let table = harness::client(server).table("Payroll");
        table.create_table().await.unwrap();
        if before == Before::Write("acquire a released one") {
            let released = DynamicEntity::new("payroll", "lock")
                .with("Holder", "")
                .with("Token", 7_i64)
                .with("LeaseId", Guid::from_bytes([7; 16]))
                .with("DurationMs", 0_i64);
            table.insert(&released).await.unwrap();
        }
        Self::default()
    }

    fn again(&self) -> Self {
        Self::default()
    }

    fn client(&self, _: &TableServiceClient) -> Client {
        unreachable!("each client has a clock of its own")
    }

    fn open_over(
        &self,
        server: &TableServer,
        transport: impl Transport + 'static,
        retry: RetryPolicy,
    ) -> Client {
        let (table, clock) = with_own_clock(server, transport, retry);
        let lease = None;
        Client {
            table,
            clock,
            lease,
        }
    }

    async fn write(&self, client: &mut Client, _: &str) -> Outcome {
        let acquired = acquire(&client.table, "lock").await?;
        let mut lease = acquired.expect("no other client wants it");
        let began = Instant::now();
        let renewed = lease.renew().await;
        if renewed.is_ok() {
            assert!(lease.remaining() + began.elapsed() <= TIME, "{lease:?}");
        }
        let entity = log(&lease, 1);
        let fenced = lease.fence(client.table.batch("payroll"));
        if let Err(error) = fenced.upsert_replace(&entity).await {
            // The latter if the network carries it out twice.
            let is_expected = error.is_outcome_unknown() || error.is_precondition_failed();
            assert!(is_expected || error.attempts() == 1, "{error}");
        }
        // Whatever happened, the lease is that of this client: no other one was there.
        let renewed_again = lease.renew().await;
        let released = lease.release().await;
        Ok(renewed.and(renewed_again).and(released)?)
    }

    async fn check(&self, client: &mut Client) {
        let written = self.0.borrow().written;
        let query = client.table.query::<DynamicEntity>().partition("payroll");
        let mut logged = query.collect().await.unwrap();
        logged.retain(|entity| entity.row_key().starts_with("log_"));
        // In the order in which the server carried them out.
        logged.sort_by_key(Stored::timestamp);
        let tokens = logged.iter().map(|it| it.properties().read::<i64>("Token"));
        let tokens: Vec<i64> = tokens.map(Result::unwrap).collect();
        assert!(tokens.is_sorted(), "{tokens:?}");
        assert!(tokens.len() >= written, "{tokens:?}");
    }

    async fn settle(&self, _: &TableServer, client: &mut Client) {
        // A lease that was not released is taken over.
        let next = acquire(&client.table, "lock").await.unwrap();
        let next = next.expect("it is over");
        self.note_acquired(&next);
        self.note_held(&next);
        next.release().await.unwrap();
        self.check(client).await;
    }

    async fn step(&self, client: &mut Client, rng: &mut Rng) -> Outcome {
        if rng.u8(..8) == 0 {
            // The service refuses dates that are wrong by 15 minutes.
            client.clock.store(rng.i64(-600..600), Ordering::Relaxed);
        }
        if client.lease.is_some() {
            if rng.u8(..5) > 0 {
                return self.use_lease(client, rng).await;
            }
            return match client.lease.take() {
                Some(lease) if rng.bool() => Ok(lease.release().await?),
                _ => Ok(()),
            };
        }
        let acquire = acquire(&client.table, "lock");
        let acquire = match rng.u8(..3) {
            0 => acquire,
            1 => acquire.wait(TIME * rng.u32(..4)),
            _ => acquire.wait(Duration::ZERO),
        };
        sleep(TIME.mul_f64(rng.f64())).await;
        if let Some(lease) = acquire.await? {
            self.note_acquired(&lease);
            self.note_held(&lease);
            client.lease = Some(lease);
        }
        Ok(())
    }

    fn is_expected(failure: &Failure) -> bool {
        super::is_expected(failure) || failure.kind == ErrorKind::LeaseLost
    }
}
