//! Faults: what the client sees, whether the request was carried out, and which requests a rule
//! selects.

use std::time::Duration;

use tablesdk::{ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Flavor, Op, Throttle};
use tokio::time::{Instant, timeout};

use crate::{Employee, Subject, eager, over_http_and_in_process};

/// Inserts so many employees. Returns the ids of those whose insert was throttled.
async fn throttled(table: &TableClient, count: u32) -> Vec<u32> {
    let mut throttled = Vec::new();
    for id in 1..=count {
        let insert = table.insert(&Employee::new(&id.to_string(), "Ada", 36));
        if let Err(error) = insert.await {
            assert!(error.is_throttled(), "{error:?}");
            throttled.push(id);
        }
    }
    throttled
}

/// Each fault: the error of its client, the stored entities and the journal.
pub(crate) async fn decide_whether_the_request_is_carried_out(subject: &Subject) {
    let table = subject.table(RetryPolicy::none()).await;
    let journal = subject.server.journal();
    let timed_out = Fault::error(ErrorCode::OperationTimedOut).applied();
    // The code of an error that is definitive, and the statuses that the journal has.
    for (fault, code, is_stored, statuses) in [
        (
            Fault::error(ErrorCode::ServerBusy),
            Some(ErrorCode::ServerBusy),
            false,
            vec![Some(503)],
        ),
        (timed_out, None, true, vec![Some(204), Some(500)]),
        (Fault::reset(), None, false, vec![None]),
        (Fault::lost_response(), None, true, vec![Some(204)]),
        (Fault::truncated_response(10), None, true, vec![Some(204)]),
        (
            Fault::duplicate(),
            Some(ErrorCode::EntityAlreadyExists),
            true,
            vec![Some(204), Some(409)],
        ),
    ] {
        journal.clear();
        let rule = subject
            .server
            .faults()
            .on(Op::InsertEntity)
            .inject(fault.clone());
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert_eq!(
            (rule.hits(), error.is_outcome_unknown()),
            (1, code.is_none()),
            "{fault}: {error:?}"
        );
        assert!(
            code.is_none() || error.code() == code.as_ref(),
            "{fault}: {error:?}"
        );
        assert_eq!(
            error.is_throttled(),
            code == Some(ErrorCode::ServerBusy),
            "{fault}"
        );
        assert_eq!(subject.has_ada().await, is_stored, "{fault}");
        let inserts = journal.requests().op(Op::InsertEntity);
        let found: Vec<_> = inserts.iter().map(|request| request.status).collect();
        assert_eq!(found, statuses, "{fault}");
        table.delete(Employee::key("Sales", "1")).await.unwrap();
    }
}

over_http_and_in_process! {
    async fn a_fault_decides_whether_the_request_is_carried_out(subject: Subject) {
        decide_whether_the_request_is_carried_out(&subject).await;
    }

    async fn a_truncated_page_is_read_again(subject: Subject) {
        let table = subject.table(eager()).await;
        table.insert(&Employee::ada()).await.unwrap();
        let faults = subject.server.faults();
        let rule = faults.on(Op::QueryEntities).times(2).inject(Fault::truncated_response(50));
        let all = table.query::<Employee>().collect().await.unwrap();
        assert_eq!((all.len(), rule.hits()), (1, 2));
    }

    async fn a_corrupted_response_is_not_read_as_another(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        table.insert(&Employee::ada()).await.unwrap();
        let corrupted = Fault::corrupted_response();
        subject.server.faults().on(Op::QueryEntities).inject(corrupted);
        let error = table.query::<Employee>().collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response, "{error:?}");
    }

    async fn a_late_duplicate_is_carried_out_after_the_response(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let journal = subject.server.journal();
        let late = Fault::late_duplicate(Duration::from_millis(20));
        subject.server.faults().on(Op::InsertOrReplaceEntity).times(1).inject(late);
        table.upsert_replace(&Employee::ada()).await.unwrap();
        assert!(table.delete(("Sales", "1")).await.unwrap());
        while Employee::find(&table).await.is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(journal.requests().op(Op::InsertOrReplaceEntity).status(204).count(), 2);
    }

    async fn a_late_request_is_carried_out_after_its_client_has_given_up(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let late = Fault::reset().applied_after(Duration::from_millis(20));
        let journal = subject.server.journal();
        subject.server.faults().on(Op::InsertEntity).inject(late);
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_outcome_unknown());
        assert_eq!(journal.requests().op(Op::InsertEntity)[0].status, None);
        let late = || journal.requests().op(Op::InsertEntity).get(1).and_then(|late| late.status);
        while late().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!((late(), Employee::find(&table).await.is_some()), (Some(204), true));
    }

    async fn a_delayed_request_is_carried_out_without_its_client(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let journal = subject.server.journal();
        let delay = Fault::delay(Duration::from_millis(20));
        let mut rule = subject.server.faults().next(Op::InsertEntity, delay);
        let ada = Employee::ada();
        tokio::select! {
            biased;
            () = rule.wait_for_hits(1) => {}
            inserted = table.insert(&ada) => panic!("{inserted:?}"),
        }
        while journal.requests().op(Op::InsertEntity).status(204).count() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(Employee::find(&table).await.is_some());
    }

    async fn a_client_without_a_response_gives_up_at_its_limit(subject: Subject) {
        let limit = RetryPolicy::none().try_timeout(Duration::from_millis(100));
        let table = subject.table(limit).await;
        let (faults, journal) = (subject.server.faults(), subject.server.journal());
        faults.on(Op::InsertEntity).inject(Fault::no_response().applied());
        let error = table.insert(&Employee::ada()).await.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error:?}");
        assert!(subject.has_ada().await);
        // Recorded when the server learns that the client has gone.
        while journal.requests().op(Op::InsertEntity).status(204).count() == 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn clearing_the_rules_ends_their_waits(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let faults = subject.server.faults();
        let mut rule = faults.on(Op::InsertEntity).inject(Fault::no_response());
        let hour = Duration::from_secs(3600);
        let mut slow = faults.on(Op::QueryTables).inject(Fault::delay(hour));
        let cleared = async {
            rule.wait_for_hits(1).await;
            slow.wait_for_hits(1).await;
            faults.clear();
        };
        let ada = Employee::ada();
        let service = subject.service(RetryPolicy::none());
        let tables = service.tables().collect();
        let (insert, tables, ()) = tokio::join!(table.insert(&ada), tables, cleared);
        assert!(insert.unwrap_err().is_outcome_unknown());
        assert_eq!(tables.unwrap().len(), 1);
    }

    async fn a_rule_selects_by_operation_table_and_key(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let other = subject.service(RetryPolicy::none()).table("Others");
        other.create_table().await.unwrap();
        let faults = subject.server.faults();
        let rule = faults
            .on_writes()
            .account("devstoreaccount1")
            .table("PEOPLE")
            .partition_key("Sales")
            .row_key("2")
            .inject(Fault::error(ErrorCode::ServerBusy));
        table.insert(&Employee::ada()).await.unwrap();
        other.insert(&Employee::new("2", "Ada", 36)).await.unwrap();
        let ada = Employee::new("2", "Ada", 36);
        assert!(table.insert(&ada).await.unwrap_err().is_throttled());
        let batch = table.batch("Sales").upsert_replace(&Employee::new("3", "Ada", 36));
        batch.upsert_replace(&ada).await.unwrap_err();
        table.query::<Employee>().partition("Sales").collect().await.unwrap();
        assert_eq!(rule.hits(), 2);
        rule.remove();
        table.insert(&ada).await.unwrap();
    }

    async fn a_rule_selects_by_number(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let faults = subject.server.faults();
        let busy = || Fault::error(ErrorCode::ServerBusy);
        let second = faults.on(Op::InsertEntity).nth(2).inject(busy());
        let later = faults.on(Op::InsertEntity).skip(2).times(2).inject(busy());
        // The second rule does not see the request that the first one selects.
        assert_eq!(throttled(&table, 7).await, [2, 4, 5]);
        assert_eq!((second.hits(), later.hits()), (1, 2));
    }

    async fn the_next_request_has_the_fault(subject: Subject) {
        let faults = subject.server.faults();
        let service = subject.service(RetryPolicy::none());
        let busy = faults.next(Op::QueryTables, Fault::error(ErrorCode::ServerBusy));
        let reset = faults.next(Op::QueryTables, Fault::reset());
        assert!(service.tables().collect().await.unwrap_err().is_throttled());
        let error = service.tables().collect().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
        service.tables().collect().await.unwrap();
        assert_eq!((busy.hits(), reset.hits()), (1, 1));
    }

    async fn faults_are_injected_one_after_the_other(subject: Subject) {
        let codes = [ErrorCode::ServerBusy, ErrorCode::InternalError];
        let each = subject.server.faults().on(Op::QueryTables).skip(1).inject_each(codes.clone().map(Fault::error));
        let mut found = Vec::new();
        for _ in 0..4 {
            let tables = subject.service(RetryPolicy::none()).tables();
            found.push(tables.collect().await.err().and_then(|error| error.code().cloned()));
        }
        let [busy, failed] = codes.map(Some);
        assert_eq!(found, [None, busy, failed, None]);
        assert_eq!(each.hits(), 2);
    }

    async fn a_rule_that_is_used_up_is_removed(subject: Subject) {
        let faults = subject.server.faults();
        let busy = || Fault::error(ErrorCode::ServerBusy);
        let never = faults.on(Op::QueryTables).times(0).inject(busy());
        let once = faults.next(Op::QueryTables, busy());
        let each = faults.on(Op::QueryTables).inject_each([busy()]);
        let mut is_first = true;
        let of_unknown_size = std::iter::from_fn(move || std::mem::take(&mut is_first).then(busy));
        let last = faults.on(Op::QueryTables).inject_each(of_unknown_size);
        assert!(format!("{faults:?}").contains("rules: 3"), "{faults:?}");
        for _ in 0..3 {
            subject.service(RetryPolicy::none()).tables().collect().await.unwrap_err();
        }
        subject.service(RetryPolicy::none()).tables().collect().await.unwrap();
        assert!(format!("{faults:?}").contains("rules: 0"), "{faults:?}");
        for (mut rule, hits) in [(never, 0), (once, 1), (each, 1), (last, 1)] {
            // Returns, although the rule will never have so many hits.
            rule.wait_for_hits(2).await;
            assert_eq!(rule.hits(), hits);
        }
    }

    async fn a_partition_is_throttled_by_its_rate(subject: Subject) {
        let table = subject.table(RetryPolicy::none()).await;
        let clock = subject.server.clock();
        clock.freeze();
        subject.server.faults().throttle(Throttle::none().per_partition(3));
        assert_eq!(throttled(&table, 6).await, [4, 5, 6]);
        clock.advance(Duration::from_secs(1));
        // The page has three entities, so the rate of this second is used up.
        let page = table.query::<Employee>().partition("Sales").collect().await.unwrap();
        assert_eq!(page.len(), 3);
        assert!(table.insert(&Employee::ada()).await.unwrap_err().is_throttled());
    }

    async fn chaos_is_survived_by_retries(subject: Subject) {
        let table = subject.table(eager()).await;
        let rule = subject.server.faults().chaos(7);
        for id in 0..40 {
            let employee = Employee::new(&id.to_string(), "Ada", 36);
            table.upsert_replace(&employee).await.unwrap();
            table.get::<Employee>(Employee::key("Sales", id.to_string())).await.unwrap().unwrap();
        }
        assert!((3..20).contains(&rule.hits()), "{}", rule.hits());
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_in_virtual_time() {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::none()).await;
    let faults = subject.server.faults();
    let began = Instant::now();
    let minute = Duration::from_secs(60);
    let delays = [Fault::delay(minute), Fault::delayed_response(minute)];
    for (delay, is_stored) in delays.into_iter().zip([false, true]) {
        let rule = faults.on(Op::InsertEntity).inject(delay);
        let ada = Employee::ada();
        let quarter = timeout(minute / 4, table.insert(&ada));
        assert!(quarter.await.is_err());
        assert_eq!(Employee::find(&table).await.is_some(), is_stored);
        rule.remove();
    }
    assert_eq!(began.elapsed(), minute / 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_waits_as_long_as_an_injected_error_says() {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::exponential()).await;
    let busy = Fault::error(ErrorCode::ServerBusy).retry_after(Duration::from_millis(16_500));
    subject.server.faults().on_any().times(1).inject(busy);
    let began = Instant::now();
    table.insert(&Employee::ada()).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 17);
}

/// The operations that a rule with a probability selects.
async fn selected(seed: u64) -> Vec<u32> {
    let subject = Subject::in_process();
    let table = subject.table(RetryPolicy::none()).await;
    let faults = subject.server.faults();
    let rule = faults.on(Op::InsertEntity).probability(0.3).seed(seed);
    rule.inject(Fault::error(ErrorCode::ServerBusy));
    throttled(&table, 50).await
}

#[tokio::test]
async fn a_probability_is_reproducible() {
    let first = selected(1).await;
    assert!((5..25).contains(&first.len()), "{first:?}");
    assert_eq!(selected(1).await, first);
    assert_ne!(selected(2).await, first);
}

#[test]
#[should_panic(expected = "only an error has a Retry-After header")]
fn a_reset_has_no_retry_after() {
    let _ = Fault::reset().retry_after(Duration::from_secs(1));
}

#[test]
#[should_panic(expected = "this fault says already when the request is carried out")]
fn a_delay_says_when_it_is_applied() {
    let _ = Fault::delay(Duration::from_secs(1)).applied();
}

#[tokio::test]
async fn chaos_throttles_as_the_flavor_does() {
    for (flavor, throttled) in [
        (Flavor::Storage, ErrorCode::ServerBusy),
        (Flavor::CosmosDb, ErrorCode::TooManyRequests),
    ] {
        let server = TableServer::builder().flavor(flavor).in_process().unwrap();
        let service = harness::client_with(&server, |builder| builder.retry(RetryPolicy::none()));
        let journal = server.journal();
        server.faults().on_any().chaos();
        for _ in 0..100 {
            // Some of the faults have a response without an error.
            let _ = service.tables().collect().await;
        }
        let throttling = [ErrorCode::ServerBusy, ErrorCode::TooManyRequests];
        let codes = journal
            .requests()
            .into_iter()
            .filter_map(|request| request.error_code);
        let mut codes: Vec<_> = codes.filter(|code| throttling.contains(code)).collect();
        codes.dedup();
        assert_eq!(codes, [throttled], "{flavor:?}");
    }
}

#[tokio::test]
async fn faults_of_one_server_are_not_those_of_another() {
    let (one, other) = (TableServer::in_process(), TableServer::in_process());
    let rule = one.faults().on_any().inject(Fault::reset());
    let tables = harness::client(&other).tables();
    tables.collect().await.unwrap();
    assert_eq!(rule.hits(), 0);
}
