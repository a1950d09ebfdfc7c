//! Leases under faults: tokens grow, at most one client relies on the lease, and no fenced write of an earlier holder follows one of a later
//! holder.
//!
//! A failure of the random test prints its seed; `TABLESDK_LEASE_SEED` runs that seed.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use harness::{client_with, seeds};
use tablesdk::lease::Lease;
use tablesdk::{DynamicEntity, Error, ErrorKind, RetryPolicy, Stored, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::Fault;
use tokio::time::{Instant, sleep};

use super::faults;
use super::leases::{payroll, with_own_clock};

const TIME: Duration = Duration::from_secs(10);

fn acquire(table: &TableClient) -> tablesdk::lease::AcquireLease {
    Lease::acquire(table, ("payroll", "lock"), TIME)
}

/// A write that the token of its holder is stored with.
fn log(lease: &Lease, id: u64) -> DynamicEntity {
    DynamicEntity::new("payroll", format!("log_{id:020}")).with("Token", lease.token())
}

/// The tokens of the fenced writes, in the order in which the server carried them out.
async fn logged(table: &TableClient) -> Vec<i64> {
    let query = table.query::<DynamicEntity>().partition("payroll");
    let mut log = query.collect().await.unwrap();
    log.retain(|entity| entity.row_key().starts_with("log_"));
    log.sort_by_key(Stored::timestamp);
    let tokens = log.iter().map(|it| it.properties().read("Token").unwrap());
    tokens.collect()
}

/// What each verb of a lease does with a fault at each request.
async fn at_each_request(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    expect: impl Fn(&str, Result<(), Error>),
) {
    let company = async || {
        let (server, _) = payroll().await;
        let service = client_with(&server, |builder| builder.retry(retry()));
        (server, service.table("Payroll"))
    };
    let verbs = async |table: &TableClient, name: &str| {
        if name != "acquire" {
            // Another lease was released before.
            let before = DynamicEntity::new("payroll", "lock")
                .with("Holder", "")
                .with("Token", 7_i64)
                .with("LeaseId", tablesdk::Guid::from_bytes([7; 16]))
                .with("DurationMs", 0_i64);
            let _ = table.insert(&before).await;
        }
        let began = Instant::now();
        let mut lease = acquire(table).await?.expect("no other client wants it");
        assert!(lease.remaining() + began.elapsed() <= TIME, "{lease:?}");
        let began = Instant::now();
        let renewed = lease.renew().await;
        if renewed.is_ok() {
            assert!(lease.remaining() + began.elapsed() <= TIME, "{lease:?}");
        }
        let entity = log(&lease, 1);
        let fenced = lease.fence(table.batch("payroll")).upsert_replace(&entity);
        let fenced = fenced.await;
        if let Err(error) = &fenced {
            // The latter if the network carries it out twice.
            let is_expected = error.is_outcome_unknown() || error.is_precondition_failed();
            assert!(
                is_expected || error.kind() == ErrorKind::Transport,
                "{error}"
            );
        }
        // Whatever happened, the lease is that of this client: no other one was there.
        let renewed_again = lease.renew().await;
        let released = lease.release().await;
        renewed.and(renewed_again).and(released)
    };
    let check = async |table: &TableClient| {
        let service = table.clone();
        // A lease that was not released is taken over.
        let next = acquire(&service).await.unwrap().expect("it is over");
        let token = next.token();
        assert!(logged(&service).await.iter().all(|it| *it < token));
        next.release().await.unwrap();
    };
    let names = ["acquire", "acquire a released one"];
    faults::at_each_request(&names, company, verbs, check, fault, expect).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_sent_is_retried_or_an_error() {
    let succeeds = |name: &str, result: Result<(), Error>| result.expect(name);
    at_each_request(RetryPolicy::exponential, Fault::reset, succeeds).await;
    at_each_request(RetryPolicy::none, Fault::reset, |_, _| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_does_not_change_who_holds_the_lease() {
    let succeeds = |name: &str, result: Result<(), Error>| result.expect(name);
    at_each_request(RetryPolicy::exponential, Fault::lost_response, succeeds).await;
    at_each_request(RetryPolicy::exponential, Fault::duplicate, succeeds).await;
    let unknown = |name: &str, result: Result<(), Error>| {
        let Err(error) = result else { return };
        let is_of_fault = error.is_outcome_unknown() || error.kind() == ErrorKind::Transport;
        assert!(is_of_fault, "{name}: {error}");
    };
    at_each_request(RetryPolicy::none, Fault::lost_response, unknown).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_carried_out_late_does_not_change_who_holds_the_lease() {
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::exponential, late, |_, _| ()).await;
    at_each_request(RetryPolicy::none, late, |_, _| ()).await;
}

/// A renewal that is under way when another client takes the lease over, and one that was carried out just before.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_late_does_not_take_the_lease_back() {
    for (delay, is_renewed) in [(1, true), (12, false)] {
        let (server, table) = payroll().await;
        let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
        let mut slow = acquire(&service.table("Payroll")).await.unwrap().unwrap();
        let contender = async {
            let began = Instant::now();
            let mut next = acquire(&table).wait(TIME * 2).await.unwrap().unwrap();
            sleep(TIME / 2).await;
            next.renew().await.unwrap();
            (began.elapsed(), next)
        };
        let renewal = async {
            sleep(Duration::from_millis(1)).await;
            let late = Fault::delay(Duration::from_secs(delay));
            server.faults().on_writes().times(1).inject(late);
            slow.renew().await
        };
        let ((took, next), renewed) = tokio::join!(contender, renewal);
        assert_eq!(renewed.is_ok(), is_renewed, "{renewed:?}");
        assert_eq!(next.token(), 2);
        assert!(took >= TIME, "{took:?}");
        assert!(next.is_held() && !slow.is_held());
        let error = slow.renew().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseLost);
    }
}

/// The tokens of all leases, as clients acquire them, and each time that a client finds that it holds its lease.
#[derive(Debug, Default)]
struct Tokens {
    acquired: Vec<i64>,
    held: Vec<i64>,
}

/// One client: it acquires the lease, renews it or is too slow, and writes. Returns the number of fenced writes.
async fn work(table: &TableClient, mut rng: Rng, tokens: &Mutex<Tokens>) -> u32 {
    let mut written = 0;
    for _ in 0..12 {
        let acquire = acquire(table);
        let acquire = match rng.u8(..3) {
            0 => acquire,
            1 => acquire.wait(TIME * rng.u32(..4)),
            _ => acquire.wait(Duration::ZERO),
        };
        sleep(TIME.mul_f64(rng.f64())).await;
        let Ok(Some(mut lease)) = acquire.await else {
            continue;
        };
        tokens.lock().unwrap().acquired.push(lease.token());
        let note = |lease: &Lease| {
            if lease.is_held() {
                tokens.lock().unwrap().held.push(lease.token());
            }
        };
        note(&lease);
        for _ in 0..rng.u32(..8) {
            note(&lease);
            // Sometimes longer than the lease: between the check and the write.
            let pause = TIME.mul_f64(rng.f64() * if rng.u8(..4) == 0 { 2.0 } else { 0.3 });
            sleep(pause).await;
            note(&lease);
            let result = match rng.u8(..3) {
                0 => lease.renew().await,
                1 => {
                    let work = sleep(TIME.mul_f64(rng.f64() * 2.0));
                    lease.renew_while(work).await
                }
                _ => {
                    let entity = log(&lease, rng.u64(..));
                    let fenced = lease.fence(table.batch("payroll")).insert(&entity);
                    fenced.await.map(|_| written += 1)
                }
            };
            note(&lease);
            if result.is_err_and(|error| error.kind() == ErrorKind::LeaseLost) {
                assert!(!lease.is_held());
                break;
            }
        }
        match rng.u8(..3) {
            0 => drop(lease),
            _ => drop(lease.release().await),
        }
    }
    written
}

#[tokio::test(start_paused = true)]
async fn random_histories_have_one_holder_at_a_time() {
    let seeds = seeds("TABLESDK_LEASE_SEED", 12);
    let (count, mut sum) = (seeds.len(), (0, 0));
    for seed in seeds {
        println!("TABLESDK_LEASE_SEED={seed}");
        let server = TableServer::in_process();
        let (table, _) = with_own_clock(&server, RetryPolicy::exponential());
        table.create_table().await.unwrap();
        let faults = server.faults();
        let late = Fault::reset().applied_after(TIME.mul_f64(0.7));
        let late = faults.on_writes().probability(0.1).seed(seed).inject(late);
        let chaos = faults.chaos(seed);
        let tokens = Mutex::new(Tokens::default());
        let clients: Vec<_> = (0..4_u32)
            .map(|_| with_own_clock(&server, RetryPolicy::exponential().attempts(3)))
            .collect();
        let clocks = async {
            let mut rng = Rng::with_seed(seed);
            loop {
                // The service refuses dates that are wrong by 15 minutes.
                sleep(TIME.mul_f64(rng.f64() * 3.0)).await;
                let (_, clock) = &clients[rng.usize(..clients.len())];
                clock.store(rng.i64(-600..600), Ordering::Relaxed);
            }
        };
        let work = clients.iter().enumerate().map(|(nth, (table, _))| {
            let rng = Rng::with_seed(seed ^ (u64::try_from(nth).unwrap() << 8));
            work(table, rng, &tokens)
        });
        let written: u32 = tokio::select! {
            written = join_all(work) => written.into_iter().sum(),
            () = clocks => unreachable!(),
        };
        faults.clear();
        sleep(TIME * 10).await;

        let Tokens { acquired, held } = tokens.into_inner().unwrap();
        let unique: BTreeSet<_> = acquired.iter().collect();
        assert_eq!(unique.len(), acquired.len(), "{acquired:?}");
        // In the order of time: no earlier holder relies on the lease once a later one does.
        assert!(held.is_sorted(), "{held:?}");
        let logged = logged(&table).await;
        assert!(logged.is_sorted(), "{logged:?}");
        assert!(logged.len() >= written.try_into().unwrap());
        assert!(chaos.hits() > 10 && late.hits() > 0);
        sum.0 += acquired.len();
        sum.1 += written;
    }
    assert!(sum.0 > 8 * count && sum.1 > 10, "{sum:?}");
}
