//! Workers with a loop of their own, which a shutdown ends.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use harness::{client, client_with};
use tablesdk::outbox::{DrainReport, Outbox, Received};
use tablesdk::{DynamicEntity, Error, ErrorCode, ErrorKind, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Op};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{Renamed, by_number, company, leave, renamed, set_title, stored_title, tables};

/// A worker, and what tells it to stop.
struct Running {
    stop: oneshot::Sender<()>,
    worker: JoinHandle<Result<DrainReport, Error>>,
}

impl Running {
    fn start(outbox: Outbox) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = tokio::spawn(outbox.run(stopped));
        Self { stop, worker }
    }

    async fn stop(self) -> DrainReport {
        self.stop.send(()).unwrap();
        self.worker.await.unwrap().unwrap()
    }
}

/// Waits until the title is there, in steps of paused time.
async fn until_title(titles: &TableClient, name: &str) -> Duration {
    let start = Instant::now();
    while stored_title(titles).await.as_deref() != Some(name) {
        sleep(Duration::from_millis(200)).await;
        assert!(
            start.elapsed() < Duration::from_secs(3_600),
            "{name} never came"
        );
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_woken_by_a_commit_of_its_client() {
    let (server, table, titles) = company().await;
    let running = Running::start(Outbox::new(&table));
    // It is idle, and looks at all partitions every half a minute.
    sleep(Duration::from_secs(600)).await;
    let journal = server.journal();
    leave(&table, [set_title(&titles, "woken")]).await;
    let waited = until_title(&titles, "woken").await;
    assert!(waited < Duration::from_millis(500), "{waited:?}");
    // The writer reads the head, and the worker this partition: not the 16 lists of all.
    let looks = journal.requests().op(Op::QueryEntities).count();
    assert_eq!(looks, 2, "{}", journal.requests());
    let report = running.stop().await;
    assert_eq!((report.applied, report.waiting), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_worker_finds_the_steps_of_other_clients_within_half_a_minute() {
    let (server, table, _) = company().await;
    let (of_other, titles) = tables(&server);
    let running = Running::start(Outbox::new(&table));
    for name in ["first", "second", "third"] {
        sleep(Duration::from_secs(600)).await;
        leave(&of_other, [set_title(&titles, name)]).await;
        let waited = until_title(&titles, name).await;
        assert!(waited <= Duration::from_secs(31), "{waited:?}");
    }
    assert_eq!(running.stop().await.applied, 3);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_told_to_stop_finishes_the_message_that_it_has_begun_and_begins_no_other()
{
    let (_server, table, _) = company().await;
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let finish = Arc::new(Notify::new());
    let finished = Arc::clone(&finish);
    let outbox = Outbox::new(&table).on(move |message: Received<Renamed>| {
        let (begun, finished) = (begun.clone(), Arc::clone(&finished));
        async move {
            begun.send(message.number()).unwrap();
            finished.notified().await;
            Ok(())
        }
    });
    let running = Running::start(outbox);
    leave(&table, [renamed("a"), renamed("b")]).await;
    has_begun.recv().await.unwrap();
    running.stop.send(()).unwrap();
    // It has time enough to end too early.
    sleep(Duration::from_secs(60)).await;
    assert!(!running.worker.is_finished());
    finish.notify_one();
    let report = running.worker.await.unwrap().unwrap();
    let (applied, waiting, failed) = (report.applied, report.waiting, report.failed);
    assert_eq!((applied, waiting, failed), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_worker_backs_off_from_a_service_that_fails_and_goes_on() {
    let (server, _, titles) = company().await;
    let service = client_with(&server, |builder| builder.retry(RetryPolicy::none()));
    let table = service.table("Company");
    let failing = server.faults().on(Op::QueryEntities);
    let failing = failing.inject(Fault::error(ErrorCode::InternalError));
    let running = Running::start(Outbox::new(&table));
    sleep(Duration::from_secs(600)).await;
    // 16 queries for each look: six looks while the pause grows, then one or two in a minute.
    let hits = failing.hits();
    assert!((7 * 16..=28 * 16).contains(&hits), "{hits}");
    failing.remove();
    leave(&table, [set_title(&titles, "late")]).await;
    let waited = until_title(&titles, "late").await;
    assert!(waited <= Duration::from_secs(61), "{waited:?}");
    assert_eq!(running.stop().await.applied, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_a_table_that_cannot_exist_ends_with_the_error() {
    let (server, ..) = company().await;
    let table = client(&server).table("1st");
    let ended = Outbox::new(&table).run(pending::<()>()).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Input);
}

#[tokio::test(start_paused = true)]
async fn the_report_has_what_was_applied_beside_an_error() {
    let (server, table, titles) = company().await;
    for (department, number) in [("Sales", 1), ("Legal", 2)] {
        let batch = table.batch(department).step(by_number(&titles, number));
        batch.leave_steps().await.unwrap();
    }
    let of_legal = server.faults().on(Op::QueryEntities).partition_key("Legal");
    let _fault = of_legal.inject(Fault::error(ErrorCode::InternalError));
    let running = Running::start(Outbox::new(&table));
    let is_applied = async || {
        let found = titles.get::<DynamicEntity>(("Titles", "1")).await;
        found.unwrap().is_some()
    };
    while !is_applied().await {
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(running.stop().await.applied, 1);
}
