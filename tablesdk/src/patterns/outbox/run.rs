//! `Outbox::run`: a worker with its loop, its pauses and its end.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{Either, select};
use tablesdk_protocol::PartitionKey;
use tokio::time::{Instant, timeout_at};

use super::drain::Outbox;
use super::event;
use super::report::DrainReport;
use super::wake::Wakeable;
use crate::error::{Error, ErrorKind};
use crate::pipeline::random_pause;

impl Outbox {
    /// Applies steps until `shutdown` is ready, and returns the sum of the reports.
    ///
    /// * A commit of this client, with steps for a worker, wakes it at once: it then looks at that
    ///   partition, which takes one small query. The client is the service client that both tables
    ///   come from, and its clones.
    /// * Steps that other clients commit, and those that are tried again, are found when it looks
    ///   at all partitions by 16 small queries: after one second, and then after twice the time of
    ///   before, up to 30 seconds, while there is nothing to do. Each pause is shortened by up to
    ///   half at random, so that workers that start together do not stay together.
    /// * After an error of the service it waits in the same way, up to a minute, and goes on.
    /// * After `shutdown`, it finishes the step that it has begun, and begins no other one. A
    ///   handler is not interrupted, and needs a time limit of its own. A read that has begun is
    ///   finished, too: during an outage, that takes until the deadline of the client's
    ///   [`RetryPolicy`](crate::RetryPolicy). If the future is dropped instead, another worker
    ///   begins the step again.
    ///
    /// ```
    #[doc = include_str!("../../docs/employees.md")]
    /// use tablesdk::outbox::{Outbox, Step};
    ///
    /// let names = service.table("Names");
    /// # names.create_table().await?;
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// // In a server, `shutdown` is often `tokio::signal::ctrl_c()`.
    /// let worker = tokio::spawn(Outbox::new(&table).run(stopped));
    ///
    /// let ada = Employee::new("Sales", "1", "Ada");
    /// let by_name = Step::upsert_replace(&names, &Employee::new("Ada", "Sales 1", "Ada"));
    /// table.batch("Sales").insert(&ada).step(by_name).leave_steps().await?;
    ///
    /// # while !names.query::<Employee>().partition("Ada").exists().await? {
    /// #     tokio::task::yield_now().await;
    /// # }
    /// drop(stop);
    /// assert_eq!(worker.await??.applied, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`] and [`ErrorKind::Configuration`], which no pause mends, such as a name
    /// that no table can have. Other errors are logged as a warning: the table may be created
    /// later, and a key may be replaced.
    pub async fn run<S: Future + Send>(self, shutdown: S) -> Result<DrainReport, Error> {
        let mut shutdown = pin!(shutdown);
        let wakeable = Wakeable::new(&self.table);
        let mut worker = self;
        worker.options.is_stopping = Arc::default();
        let mut sum = DrainReport::default();
        let mut pause = FIRST_PAUSE;
        let mut woken = None;
        let mut next_look = Instant::now();
        loop {
            let looks_at_all = woken.is_none();
            let pass = pin!(worker.pass(woken.take()));
            let (is_over, (report, passed)) = match select(shutdown.as_mut(), pass).await {
                Either::Left((_, pass)) => {
                    worker.options.is_stopping.store(true, Ordering::Relaxed);
                    (true, pass.await)
                }
                Either::Right((passed, _)) => (false, passed),
            };
            let has_applied = report.applied > 0;
            sum.waiting = 0;
            sum.add(report);
            if is_over {
                if let Err(error) = passed {
                    event::worker_waits(&worker.table, &error);
                }
                return Ok(sum);
            }
            match passed {
                Ok(()) if looks_at_all => {
                    pause = if has_applied { FIRST_PAUSE } else { pause };
                    next_look = Instant::now() + random_pause(pause);
                    pause = (pause * 2).min(IDLE_PAUSE_MAX);
                }
                Ok(()) => {}
                Err(error) => {
                    if matches!(error.kind(), ErrorKind::Input | ErrorKind::Configuration) {
                        return Err(error);
                    }
                    event::worker_waits(&worker.table, &error);
                    next_look = Instant::now() + random_pause(pause);
                    pause = (pause * 2).min(ERROR_PAUSE_MAX);
                    // A service that fails is not asked sooner because of new work.
                    if timeout_at(next_look, shutdown.as_mut()).await.is_ok() {
                        return Ok(sum);
                    }
                    continue;
                }
            }
            let waiting = pin!(timeout_at(next_look, wakeable.woken()));
            match select(shutdown.as_mut(), waiting).await {
                Either::Left(_) => return Ok(sum),
                // A look at all partitions is not put off by commits.
                Either::Right((partitions, _)) => {
                    woken = partitions.ok().filter(|_| Instant::now() < next_look);
                }
            }
        }
    }

    /// Applies what can be applied in these partitions, or in all. The report has what was applied
    /// beside an error, too.
    async fn pass(
        &self,
        partitions: Option<BTreeSet<PartitionKey>>,
    ) -> (DrainReport, Result<(), Error>) {
        let mut report = DrainReport::default();
        let mut all = Ok(());
        match partitions {
            None => all = self.drain().add_to(&mut report).await,
            Some(partitions) => {
                for partition in partitions {
                    let drained = self.drain().of(partition).add_to(&mut report).await;
                    all = all.and(drained);
                }
            }
        }
        (
            report,
            all.map_err(|error| self.table.pipeline.locate(error)),
        )
    }
}

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const IDLE_PAUSE_MAX: Duration = Duration::from_secs(30);
const ERROR_PAUSE_MAX: Duration = Duration::from_secs(60);
