//! Leases without faults: who holds one, for how long, and what fences a write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use harness::client_with;
use tablesdk::lease::{AcquireLease, Lease};
use tablesdk::transport::{Clock, Transport};
use tablesdk::{DynamicEntity, ETag, Error, ErrorKind, Guid, RetryPolicy, TableClient, Timestamp};
use tablesdk_server::testing::{Fault, Op, VirtualClock};
use tablesdk_server::{ErrorCode, TableServer};
use tokio::time::{Instant, sleep, timeout};

use crate::on_both_transports;

const MINUTE: Duration = Duration::from_secs(60);
/// How long the holder of a lease of a minute relies on it, and how long a contender waits.
const RELIED_ON: Duration = Duration::from_secs(54);
const TAKEN_OVER: Duration = Duration::from_secs(66);

fn acquire(table: &TableClient, holder: &str) -> AcquireLease {
    Lease::acquire(table, ("payroll", "lock"), MINUTE).holder(holder)
}

async fn acquired(table: &TableClient, holder: &str) -> Lease {
    acquire(table, holder).await.unwrap().expect("it is free")
}

async fn stored(table: &TableClient) -> DynamicEntity {
    let stored = table.get::<DynamicEntity>(("payroll", "lock")).await;
    stored.unwrap().unwrap().into_inner()
}

/// Inserts an entity, if the client still has the lease.
async fn insert_run(lease: &mut Lease, table: &TableClient) -> Result<(), Error> {
    let run = DynamicEntity::new("payroll", "run");
    let fenced = lease.fence(table.batch("payroll")).insert(&run);
    fenced.await.map(drop)
}

async fn payroll() -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = harness::client(&server).table("Payroll");
    table.create_table().await.unwrap();
    (server, table)
}

/// A client that sends no request again of its own accord.
fn without_retries(server: &TableServer) -> TableClient {
    let service = client_with(server, |builder| builder.retry(RetryPolicy::none()));
    service.table("Payroll")
}

on_both_transports! {
    async fn a_lease_is_held_renewed_and_released(subject: Subject) {
        let table = subject.table().await;
        let mut first = acquired(&table, "one").await;
        assert_eq!((first.token(), first.is_held()), (1, true));
        assert!(acquire(&table, "two").wait(Duration::ZERO).await.unwrap().is_none());
        first.renew().await.unwrap();
        insert_run(&mut first, &table).await.unwrap();
        first.renew().await.unwrap();
        first.release().await.unwrap();

        let second = acquired(&table, "two").await;
        assert_eq!(second.token(), 2);
        let properties = stored(&table).await;
        let properties = properties.properties();
        assert_eq!(properties.read::<String>("Holder").unwrap(), "two");
        assert_eq!(properties.read::<i64>("Token").unwrap(), 2);
        assert_eq!(properties.read::<i64>("DurationMs").unwrap(), 60_000);
        properties.read::<Guid>("LeaseId").unwrap();
    }
}

/// The number of its writes in the entity shows which one was carried out last.
#[tokio::test(start_paused = true)]
async fn a_renewal_of_unknown_outcome_is_carried_out_once() {
    let timed_out = Fault::error(ErrorCode::OperationTimedOut);
    for fault in [timed_out.clone().applied(), timed_out] {
        let (server, _) = payroll().await;
        let mut lease = acquired(&without_retries(&server), "one").await;
        let journal = server.journal();
        server.faults().on_writes().times(1).inject(fault);
        lease.renew().await.unwrap();
        let carried_out = journal.requests().op(Op::MergeEntity).status(204);
        assert_eq!(carried_out.count(), 1);
        lease.release().await.unwrap();
    }
}

/// The release has no response, and the contender is faster than the read after it.
#[tokio::test(start_paused = true)]
async fn a_release_without_a_response_succeeds_if_there_is_a_next_holder() {
    let (server, table) = payroll().await;
    let lease = acquired(&without_retries(&server), "one").await;
    let faults = server.faults();
    let timed_out = Fault::error(ErrorCode::OperationTimedOut).applied();
    let lost = faults.on_writes().times(1).inject(timed_out);
    let slow = faults.next(Op::QueryEntity, Fault::delay(Duration::from_secs(10)));
    let contender = async {
        sleep(Duration::from_secs(1)).await;
        acquired(&table, "two").await
    };
    let (released, second) = tokio::join!(lease.release(), contender);
    released.unwrap();
    assert_eq!((lost.hits(), slow.hits(), second.token()), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_taken_over_after_its_duration_and_a_tenth_and_fences_no_write()
 {
    let (_server, table) = payroll().await;
    let mut slow = acquired(&table, "one").await;
    let began = Instant::now();
    let (next, ()) = tokio::join!(acquire(&table, "two"), async {
        sleep(Duration::from_millis(53_999)).await;
        assert!(slow.is_held());
        sleep(Duration::from_millis(1)).await;
        assert_eq!((slow.is_held(), slow.remaining()), (false, Duration::ZERO));
    });
    let next = next.unwrap().expect("it was not renewed");
    assert_eq!((began.elapsed(), next.token()), (TAKEN_OVER, 2));

    let error = insert_run(&mut slow, &table).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    assert_eq!(error.key(), Some(next.key()));
    assert_eq!(error.batch_index(), Some(0));
    let run = table.get::<DynamicEntity>(("payroll", "run")).await;
    assert!(run.unwrap().is_none());
    let error = slow.renew().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    let shown = error.to_string();
    let expected = r#"renew lease in "Payroll" at in-process.invalid/devstoreaccount1 ("payroll", "lock"): the lease was taken over by "two" (token 2, ours was 1)"#;
    assert_eq!(shown, expected);
    assert!(!slow.is_held());
    let error = slow.release().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    assert!(next.is_held());
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_lease_counts_from_before_its_request() {
    let (server, table) = payroll().await;
    let (took, left) = (Duration::from_secs(4), Duration::from_secs(50));
    let next = |fault| server.faults().on_writes().times(1).inject(fault);
    let slow = || next(Fault::delayed_response(took));
    slow();
    let mut lease = acquired(&table, "one").await;
    assert_eq!(lease.remaining(), left);
    slow();
    lease.renew().await.unwrap();
    assert_eq!(lease.remaining(), left);
    slow();
    insert_run(&mut lease, &table).await.unwrap();
    assert_eq!(lease.remaining(), left);

    // The response is lost: the client recognizes its write, and counts from before the first
    // attempt.
    next(Fault::lost_response());
    lease.release().await.unwrap();
    next(Fault::lost_response());
    let began = Instant::now();
    let lease = acquired(&table, "one").await;
    assert!(began.elapsed() > Duration::ZERO);
    assert_eq!(lease.remaining() + began.elapsed(), RELIED_ON);
    assert_eq!(lease.token(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_contender_gives_up_when_the_holder_writes_and_a_waiting_one_goes_on() {
    let (server, table) = payroll().await;
    let journal = server.journal();
    let mut holder = acquired(&table, "one").await;
    let began = Instant::now();
    let renewals = async {
        sleep(Duration::from_secs(20)).await;
        holder.renew().await.unwrap();
        sleep(Duration::from_secs(40)).await;
        insert_run(&mut holder, &table).await.unwrap();
        sleep(Duration::from_secs(53)).await;
        assert!(holder.is_held(), "a fenced batch renews the lease");
        holder.release().await.unwrap();
        began.elapsed()
    };
    let contender = async {
        let lease = acquire(&table, "two").await.unwrap();
        (lease.is_none(), began.elapsed())
    };
    let waiting = async {
        let lease = acquire(&table, "three").wait(Duration::MAX).await.unwrap();
        (lease.expect("it was released").token(), began.elapsed())
    };
    let limited = async {
        let lease = acquire(&table, "four").wait(MINUTE).await.unwrap();
        (lease.is_none(), began.elapsed())
    };
    journal.clear();
    let (released, contender, waiting, limited) =
        tokio::join!(renewals, contender, waiting, limited);
    let look = Duration::from_secs(5);
    assert_eq!(contender, (true, look * 4));
    assert_eq!(limited, (true, MINUTE));
    assert_eq!(waiting.0, 2);
    assert!(waiting.1 <= released + look, "{waiting:?}, {released:?}");
}

#[tokio::test(start_paused = true)]
async fn one_of_many_contenders_is_the_next_holder() {
    let (_server, table) = payroll().await;
    drop(acquired(&table, "one").await);
    let contenders = (0..20).map(|_| acquire(&table, "another").into_future());
    let leases = futures::future::try_join_all(contenders).await.unwrap();
    assert_eq!(leases.iter().flatten().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_long_keeps_its_lease() {
    let (_server, table) = payroll().await;
    let mut lease = acquired(&table, "one").await;
    let hour = MINUTE * 60;
    let work = async {
        for _ in 0..60 {
            sleep(MINUTE).await;
            assert!(acquire(&table, "two").await.unwrap().is_none());
        }
        "done"
    };
    assert_eq!(lease.renew_while(work).await.unwrap(), "done");
    assert!(lease.remaining() >= Duration::from_secs(34), "{lease:?}");
    let began = Instant::now();
    lease.renew_while(sleep(hour)).await.unwrap();
    assert_eq!(began.elapsed(), hour);
    lease.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_under_way_when_work_ends_keeps_the_lease() {
    for slow in [Fault::delay, Fault::delayed_response] {
        let (server, table) = payroll().await;
        let mut lease = acquired(&table, "one").await;
        // A renewal is sent after 20 seconds.
        let slow = slow(Duration::from_secs(10));
        let rule = server.faults().on_writes().times(1).inject(slow);
        let work = sleep(Duration::from_secs(25));
        lease.renew_while(work).await.unwrap();
        assert_eq!(rule.hits(), 1);
        insert_run(&mut lease, &table).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn work_ends_before_another_client_can_take_the_lease_over() {
    for fault in [Fault::no_response, Fault::reset] {
        let (server, table) = payroll().await;
        let mut lease = acquired(&table, "one").await;
        let began = Instant::now();
        server.faults().on_writes().inject(fault());
        let error = lease.renew_while(sleep(MINUTE * 60)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseLost);
        let message = "the lease was not renewed in time";
        assert!(error.to_string().contains(message), "{error}");
        assert!(began.elapsed() <= RELIED_ON, "{:?}", began.elapsed());

        // No other client came: the holder is that of before.
        server.faults().clear();
        sleep(MINUTE * 5).await;
        lease.renew().await.unwrap();
        assert!(lease.is_held());
        lease.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn work_ends_when_the_lease_was_taken_over() {
    let (_server, table) = payroll().await;
    let mut slow = acquired(&table, "one").await;
    sleep(Duration::from_secs(10)).await;
    // As an operator may do it.
    let taken = DynamicEntity::new("payroll", "lock").with("LeaseId", Guid::from_bytes([7; 16]));
    table.merge_if(&taken, ETag::ANY).await.unwrap();
    let began = Instant::now();
    let error = slow.renew_while(sleep(MINUTE * 60)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

/// The clock of one client, beside that of the server.
#[derive(Clone, Debug)]
pub(crate) struct OwnClock {
    server: VirtualClock,
    seconds: Arc<AtomicI64>,
}

impl OwnClock {
    pub(crate) fn wrong_by(server: &TableServer, seconds: i64) -> Self {
        let (server, seconds) = (server.clock(), Arc::new(seconds.into()));
        Self { server, seconds }
    }
}

impl Clock for OwnClock {
    fn now(&self) -> Timestamp {
        let ticks = self.seconds.load(Ordering::Relaxed) * 10_000_000;
        Timestamp::from_unix_ticks(self.server.now().unix_ticks() + ticks).unwrap()
    }
}

/// A client whose system clock is wrong by a number of seconds.
pub(crate) fn with_own_clock(
    server: &TableServer,
    transport: impl Transport + 'static,
    retry: RetryPolicy,
) -> (TableClient, Arc<AtomicI64>) {
    let clock = OwnClock::wrong_by(server, 0);
    let seconds = Arc::clone(&clock.seconds);
    let service = client_with(server, |builder| {
        builder.transport(transport).clock(clock).retry(retry)
    });
    (service.table("Payroll"), seconds)
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_makes_no_contender_faster_and_no_holder_slower() {
    let (server, _) = payroll().await;
    for jump in [-3_600, -600, 600, 3_600] {
        let (holder, clock_of_holder) =
            with_own_clock(&server, server.transport(), RetryPolicy::none());
        let (contender, clock_of_contender) =
            with_own_clock(&server, server.transport(), RetryPolicy::none());
        let lease = acquired(&holder, "one").await;
        let began = Instant::now();
        let set = async {
            // After the first look: a request with a wrong date is refused.
            sleep(Duration::from_millis(1)).await;
            clock_of_contender.store(jump, Ordering::Relaxed);
            clock_of_holder.store(jump, Ordering::Relaxed);
            // A suspended computer: its system clock goes on, and its monotonic clock does not.
            assert_eq!(lease.is_held(), jump < 0, "{jump}");
            sleep(Duration::from_secs(2)).await;
            clock_of_contender.store(0, Ordering::Relaxed);
            sleep(Duration::from_secs(52)).await;
            assert!(!lease.is_held(), "{jump}");
        };
        let (next, ()) = tokio::join!(acquire(&contender, "two"), set);
        let next = next.unwrap().expect("it was not renewed");
        assert_eq!(began.elapsed(), TAKEN_OVER, "{jump}");
        next.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn work_does_not_go_on_after_a_suspend() {
    let (server, _) = payroll().await;
    let (table, clock) = with_own_clock(&server, server.transport(), RetryPolicy::none());
    let mut lease = acquired(&table, "one").await;
    let went_on = AtomicBool::new(false);
    let work = async {
        sleep(Duration::from_secs(5)).await;
        clock.store(3_600, Ordering::Relaxed);
        sleep(Duration::from_secs(1)).await;
        went_on.store(true, Ordering::Relaxed);
    };
    let began = Instant::now();
    let error = lease.renew_while(work).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);
    assert!(!went_on.load(Ordering::Relaxed));
    assert!(began.elapsed() < Duration::from_secs(7), "before the timer");
    // Nothing is begun without the lease.
    let error = lease.renew_while(async { went_on.store(true, Ordering::Relaxed) });
    error.await.unwrap_err();
    assert!(!went_on.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn properties_that_a_program_adds_stay() {
    let (_server, table) = payroll().await;
    let mut lease = acquired(&table, "one").await;
    let note = DynamicEntity::new("payroll", "lock").with("Checkpoint", 17);
    table.merge_if(&note, ETag::ANY).await.unwrap();
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
    acquired(&table, "two").await;
    let checkpoint = stored(&table).await.properties().read::<i32>("Checkpoint");
    assert_eq!(checkpoint.unwrap(), 17);
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_entity_was_deleted_is_lost() {
    let (_server, table) = payroll().await;
    let mut lease = acquired(&table, "one").await;
    assert!(table.delete(("payroll", "lock")).await.unwrap());
    // The token starts again: this is another acquisition.
    let other = acquired(&table, "two").await;
    assert_eq!((lease.token(), other.token()), (1, 1));
    let error = lease.renew().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseLost);

    assert!(table.delete(("payroll", "lock")).await.unwrap());
    let error = other.release().await.unwrap_err().to_string();
    let expected = "the entity of the lease was deleted (our token was 1)";
    assert!(error.ends_with(expected), "{error}");
}

#[tokio::test]
async fn an_entity_that_is_no_lease_is_left_alone() {
    let (_server, table) = payroll().await;
    let lease = || {
        DynamicEntity::new("payroll", "lock")
            .with("Holder", "")
            .with("Token", 1_i64)
            .with("LeaseId", Guid::from_bytes([7; 16]))
            .with("DurationMs", 0_i64)
    };
    let no_number = "is not an Edm.Int64 of 0 or more";
    for (entity, property, problem) in [
        (
            DynamicEntity::new("payroll", "lock"),
            "LeaseId",
            "is not an Edm.Guid",
        ),
        (lease().with("Token", -1_i64), "Token", no_number),
        (lease().with("DurationMs", -1_i64), "DurationMs", no_number),
        (lease().with("Holder", 1), "Holder", "is not an Edm.String"),
    ] {
        let etag = table.upsert_replace(&entity).await.unwrap();
        let error = acquire(&table, "one").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let expected = format!(
            "acquire lease in \"Payroll\" at in-process.invalid/devstoreaccount1 (\"payroll\", \"lock\"): the entity is not that of a lease: its property {property:?} {problem}"
        );
        assert_eq!(error.to_string(), expected);
        let now = table.get::<DynamicEntity>(("payroll", "lock")).await;
        assert_eq!(*now.unwrap().unwrap().etag(), etag);
    }
    let last = lease().with("Token", i64::MAX);
    table.upsert_replace(&last).await.unwrap();
    let error = acquire(&table, "one").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let expected = r#"acquire lease in "Payroll" at in-process.invalid/devstoreaccount1 ("payroll", "lock"): the lease has no more tokens"#;
    assert_eq!(error.to_string(), expected);
    table.upsert_replace(&lease()).await.unwrap();
    assert_eq!(acquired(&table, "one").await.token(), 2);
}

#[tokio::test]
async fn a_duration_is_a_millisecond_at_least_and_is_rounded_up() {
    let (server, table) = payroll().await;
    let journal = server.journal();
    for (duration, rule) in [
        (Duration::ZERO, "at least one millisecond"),
        (Duration::from_nanos(999_999), "at least one millisecond"),
        (Duration::MAX, "at most 9223372036854775807 ms"),
    ] {
        journal.clear();
        let lease = Lease::acquire(&table, ("payroll", "lock"), duration);
        let error = lease.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains(rule), "{error}");
        let requests = journal.requests();
        let writes = requests.filter(|it| it.op.is_some_and(Op::is_write));
        assert_eq!(writes.count(), 0);
    }
    for (duration, stored_ms) in [
        (Duration::from_millis(1), 1),
        (Duration::from_nanos(1_000_001), 2),
        (Duration::from_millis(i64::MAX.unsigned_abs()), i64::MAX),
    ] {
        let lease = Lease::acquire(&table, ("payroll", "lock"), duration);
        let lease = lease.await.unwrap().expect("it is free");
        let properties = stored(&table).await;
        let milliseconds = properties.properties().read::<i64>("DurationMs");
        assert_eq!(milliseconds.unwrap(), stored_ms);
        lease.release().await.unwrap();
    }
    let error = Lease::acquire(&table, ("a/b", "lock"), MINUTE).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Input);
}

/// The future of a renewal is dropped while its request is under way.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_dropped_does_not_lose_the_lease() {
    let (server, table) = payroll().await;
    let mut lease = acquired(&table, "one").await;
    let slow = Fault::delayed_response(Duration::from_secs(5));
    let injected = server.faults().on_writes().times(1).inject(slow);
    let dropped = timeout(Duration::from_secs(1), lease.renew()).await;
    dropped.unwrap_err();
    assert_eq!(injected.hits(), 1);
    let error = insert_run(&mut lease, &table).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    lease.renew().await.unwrap();
    insert_run(&mut lease, &table).await.unwrap();
    lease.release().await.unwrap();
}

/// A renewal that is under way when another client takes the lease over, and one that was carried
/// out just before.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_late_does_not_take_the_lease_back() {
    for (delay, is_renewed) in [(1, true), (72, false)] {
        let (server, table) = payroll().await;
        let mut slow = acquired(&without_retries(&server), "one").await;
        let contender = async {
            let began = Instant::now();
            let next = acquire(&table, "two").wait(MINUTE * 2).await;
            let mut next = next.unwrap().expect("it is over");
            sleep(MINUTE / 2).await;
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
        assert!(took >= MINUTE, "{took:?}");
        assert!(next.is_held() && !slow.is_held());
        let error = slow.renew().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LeaseLost);
    }
}
