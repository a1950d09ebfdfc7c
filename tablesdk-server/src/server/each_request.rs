//! [`TableServer::at_each_request`]: runs what a program does once for each fault at each of its
//! requests.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use tablesdk_protocol::ErrorCode;
use tokio::time::sleep;

use super::{ServerSnapshot, TableServer};
use crate::testing::{ClockMark, Fault, InjectedFault};

impl TableServer {
    /// Runs what a program does with each fault at its first request, then at its second one, and
    /// so on, until no request is left.
    ///
    /// [`run`](EachRequest::run) takes an action, which gets the faults, and a check of what holds
    /// after it, whatever happened. Each run begins with the tables and the clock as they are now,
    /// and they are so again afterwards. The [guide to
    /// testing](https://docs.rs/tablesdk/latest/tablesdk/guide/testing/#every-fault-at-every-request)
    /// has an example.
    ///
    /// In a test with `start_paused`, the pauses of retries and late requests take no time.
    pub fn at_each_request(&self) -> EachRequest<'_> {
        EachRequest {
            server: self,
            cases: usual_faults(self)
                .map(Case::Fault)
                .into_iter()
                .chain(ENDS)
                .collect(),
            every: 1,
        }
    }
}

/// The faults of networks and of the service that a program survives, or that its errors show.
fn usual_faults(server: &TableServer) -> [Fault; 8] {
    [
        Fault::error(server.service.flavor().throttling_error()),
        Fault::error(ErrorCode::InternalError),
        Fault::error(ErrorCode::OperationTimedOut).applied(),
        Fault::reset(),
        Fault::lost_response(),
        Fault::reset().applied_after(Duration::from_secs(2)),
        Fault::duplicate(),
        Fault::truncated_response(100),
    ]
}

const ENDS: [Case; 2] = [Case::End(false), Case::End(true)];

/// The tables and the clock, as each run finds them.
type Start = (ServerSnapshot, ClockMark);

/// The runs of a test, one for each fault at each request; returned by
/// [`TableServer::at_each_request`].
///
/// The usual faults are a throttled request, an error without and with an effect, a reset before
/// and after the request is carried out, a request that is carried out two seconds later or twice,
/// and a response that is cut off. In two more runs, the client ends during the request, before and
/// after it is carried out.
#[derive(Debug)]
#[must_use = "nothing runs until `run`"]
pub struct EachRequest<'s> {
    server: &'s TableServer,
    cases: Vec<Case>,
    every: u64,
}

/// The event at a request: a fault, or the end of the client.
#[derive(Clone, Debug)]
enum Case {
    Fault(Fault),
    /// The client ends, and its request was carried out or not.
    End(bool),
}

/// One run of an action, for its check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunWithFault<T> {
    /// The result of the action. `None` if the client ended during the request, as a program that
    /// is killed.
    pub outcome: Option<T>,
    /// The fault that has hit a request. `None` for a client that ended, and for the run without a
    /// fault, which is the last one of each fault.
    pub fault: Option<Fault>,
    /// The number of the request, from 1.
    pub request: u64,
}

impl EachRequest<'_> {
    /// Only these faults, and no client that ends.
    pub fn faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.cases = faults.into_iter().map(Case::Fault).collect();
        self
    }

    /// Only a client that ends during each request: its future is dropped, once before the request
    /// is carried out and once after it.
    pub fn client_ends(mut self) -> Self {
        self.cases = ENDS.to_vec();
        self
    }

    /// Only every so many-th request, from another one on for each fault: for an action of many
    /// requests.
    ///
    /// # Panics
    ///
    /// If the number is zero.
    pub fn every(mut self, requests: u64) -> Self {
        assert!(requests > 0, "every request is number 1");
        self.every = requests;
        self
    }

    /// Runs `action` and then `check`, until each fault has hit each request. Returns the number of
    /// runs with a fault.
    ///
    /// The requests are those that the server receives between the start and the end of `action`,
    /// those of other clients among them. A request that is carried out late has arrived before
    /// `check`. The server's journal is cleared before each run, and other rules of its
    /// [faults](TableServer::faults) stay in force, before this one.
    ///
    /// # Panics
    ///
    /// When `action` or `check` panics, with the fault, the number of the request, and the journal.
    /// Also for a server with a data directory or a database, which has no
    /// [snapshots](TableServer::snapshot), and for an action of more than 10,000 requests.
    #[expect(
        clippy::future_not_send,
        reason = "a test awaits it where it is, and may borrow what cannot be sent"
    )]
    pub async fn run<T>(
        self,
        action: impl AsyncFn() -> T,
        check: impl AsyncFn(RunWithFault<T>),
    ) -> u64 {
        let tables = self.server.snapshot();
        let tables = tables.expect("at_each_request needs a server in memory");
        let start = (tables, self.server.clock().mark());
        let mut runs = 0;
        let every = usize::try_from(self.every).unwrap_or(usize::MAX);
        for (case, nth) in self.cases.iter().zip(0_u64..) {
            let first = 1 + nth % self.every;
            for request in (first..).step_by(every) {
                assert!(
                    request <= REQUESTS_MAX,
                    "the action sends more than {REQUESTS_MAX} requests"
                );
                if !self.has_hit(&start, case, request, &action, &check).await {
                    break;
                }
                runs += 1;
            }
        }
        self.restore(&start);
        runs
    }

    /// One run. Returns whether the action has sent so many requests.
    #[expect(
        clippy::future_not_send,
        reason = "a test awaits it where it is, and may borrow what cannot be sent"
    )]
    async fn has_hit<T>(
        &self,
        start: &Start,
        case: &Case,
        request: u64,
        action: &impl AsyncFn() -> T,
        check: &impl AsyncFn(RunWithFault<T>),
    ) -> bool {
        self.restore(start);
        let journal = self.server.journal();
        journal.clear();
        let rule = self.server.faults().on_any().nth(request);
        let mut rule = rule.inject(case.fault());
        let hit = rule.clone();
        let run = async {
            let outcome = match case {
                Case::Fault(_) => Some(action().await),
                Case::End(_) => until_hit(action(), &mut rule).await,
            };
            let has_hit = rule.hits() > 0;
            rule.remove();
            let mut fault = None;
            if has_hit && let Case::Fault(it) = case {
                fault = Some(it.clone());
                sleep(it.longest_delay() + Duration::from_millis(1)).await;
            }
            check(RunWithFault {
                outcome,
                fault,
                request,
            })
            .await;
            has_hit
        };
        let panic = match caught(run).await {
            Ok(has_hit) => return has_hit,
            Err(panic) => panic,
        };
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("it panicked");
        let requests = journal.requests();
        assert!(
            hit.hits() == 0,
            "request {request} of the action: {case}\n{text}\nThe requests:\n{requests}"
        );
        panic!("without a fault\n{text}\nThe requests:\n{requests}");
    }

    /// Sets the tables and the clock back. Requests that are still on their way are dropped: they
    /// do not belong to the next run.
    fn restore(&self, (tables, clock): &Start) {
        self.server.clock().set_back(*clock);
        let reset = self.server.reset();
        let restored = reset.and_then(|()| self.server.restore(tables));
        restored.expect("the server has made the snapshot");
    }
}

impl Case {
    fn fault(&self) -> Fault {
        match self {
            Self::Fault(fault) => fault.clone(),
            Self::End(false) => Fault::no_response(),
            Self::End(true) => Fault::no_response().applied(),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::End(false) => f.write_str("the client ends, and the request is not carried out"),
            Self::End(true) => f.write_str("the client ends, and the request is carried out"),
        }
    }
}

/// The output of the future, or `None` if the rule has hit a request before: the future is dropped
/// then.
async fn until_hit<T>(future: impl Future<Output = T>, rule: &mut InjectedFault) -> Option<T> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = rule.wait_for_hits(1) => None,
    }
}

/// The output of the future, or the payload of its panic.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // A panic ends the runs: nobody sees what it has left half done.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// More requests are a loop that does not end.
const REQUESTS_MAX: u64 = 10_000;
