//! The scenarios that each pattern must survive, and the plain verbs: a [`Scenario`] defines what
//! its clients do and what holds afterwards, and the suites do it under every fault.

/// The suites, for a scenario.
macro_rules! suites {
    ($scenario:ty) => {
        #[tokio::test(start_paused = true)]
        async fn every_fault_at_every_request() {
            super::faults::at_every_request::<$scenario>().await;
        }

        #[tokio::test(start_paused = true)]
        async fn other_clients_between_the_requests() {
            super::faults::beside_other_clients::<$scenario>().await;
        }

        #[tokio::test(start_paused = true)]
        async fn each_request_twice() {
            super::faults::each_request_twice::<$scenario>().await;
        }

        #[test]
        fn random_histories() {
            super::history::run_seeds::<$scenario>(module_path!());
        }
    };
}

mod copies;
mod counters;
mod elsewhere;
mod encryption;
mod expiry;
mod faults;
mod history;
mod index;
mod keys;
mod leases;
mod moves;
mod network;
pub(crate) mod objects;
mod outbox;
mod sequences;
mod shrink;
mod unique;
mod verbs;
pub(crate) mod wide;

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use harness::client_with;
use tablesdk::action::{BulkError, BulkReport};
use tablesdk::transport::Transport;
use tablesdk::{Error, ErrorKind, RetryPolicy, TableServiceClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Faults};

/// The clients of one pattern: what they write, and what holds whatever becomes of their requests.
pub(crate) trait Scenario: Sized {
    /// The state of a client, which it keeps between its writes.
    type Client;

    /// The writes that get each fault at each of their requests.
    const WRITES: &'static [Write];

    /// Creates the tables, and what is in them before that write, or before the steps of a history.
    async fn new(server: &TableServer, before: Before) -> Self;

    /// The same, with the tables as they were after `new`: without what clients have noted since.
    fn again(&self) -> Self;

    /// A client that reaches the server so.
    fn client(&self, service: &TableServiceClient) -> Self::Client;

    /// A client with that policy.
    fn open(&self, server: &TableServer, retry: RetryPolicy) -> Self::Client {
        self.open_over(server, server.transport(), retry)
    }

    /// The same, over a transport that reaches the server.
    fn open_over(
        &self,
        server: &TableServer,
        transport: impl Transport + 'static,
        retry: RetryPolicy,
    ) -> Self::Client {
        self.client(&client_with(server, |builder| {
            builder.transport(transport).retry(retry)
        }))
    }

    /// One of the [`WRITES`](Self::WRITES).
    async fn write(&self, client: &mut Self::Client, name: &str) -> Outcome;

    /// Returns true if the write is stored; `None` if the tables do not show it.
    async fn is_done(&self, _client: &mut Self::Client, _name: &str) -> Option<bool> {
        None
    }

    /// Checks the facts that hold at any time.
    async fn check(&self, _client: &mut Self::Client) {}

    /// Mends the pattern, such as by a repair or a clean-up. It may run at any time, and
    /// repeatedly.
    async fn mend(&self, _client: &mut Self::Client) -> Outcome {
        Ok(())
    }

    /// Mends once more when nothing is on its way, and checks what holds then.
    async fn settle(&self, server: &TableServer, client: &mut Self::Client);

    /// How many histories a test runs, unless the environment says more.
    const HISTORIES: u64 = 3;

    /// How many clients take steps at the same time.
    const CLIENTS: u64 = 4;

    /// How many steps a client takes in each epoch of a history.
    const STEPS: u32 = 40;

    /// How long one that checks a history waits between two checks.
    const PAUSE: Duration = Duration::from_millis(50);

    /// Between two epochs, no request is on its way, and hours pass.
    const EPOCHS: u32 = 1;

    /// True if the future of a step may be dropped.
    const DROPS: bool = true;

    /// The step from one request to the next that gets each fault. `TABLESDK_SCENARIO_ALL` selects
    /// all requests.
    const EVERY: u64 = 1;

    /// How late a request is carried out that is late.
    const LATE: Duration = Duration::from_secs(60);

    /// How the clients of a history try again.
    fn retry() -> RetryPolicy {
        RetryPolicy::exponential()
    }

    /// Faults that this pattern survives, and not all others.
    fn more_faults() -> Vec<Fault> {
        Vec::new()
    }

    /// The same in a history.
    fn inject(&self, _faults: &Faults, _seed: u64) {}

    /// One random step of a client that shares the tables with others.
    async fn step(&self, client: &mut Self::Client, rng: &mut Rng) -> Outcome;

    /// Returns true if a rival or a fault may be the reason of this error.
    fn is_expected(failure: &Failure) -> bool {
        is_expected(failure)
    }
}

/// The entities with which a scenario begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Before {
    Write(&'static str),
    History,
}

/// A write, and what becomes of it with a client that tries again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) name: &'static str,
    pub(crate) ends: Ends,
}

/// The result of a write after one fault, with a client that retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ends {
    /// It succeeds, even if the response of any of its requests is lost.
    Done,
    /// It succeeds, or says that its outcome is unknown if a response is lost.
    DoneOrUnknown,
    /// It succeeds, or says that its outcome is unknown if the connection is lost.
    Uncertain,
    /// It is refused, also without a fault.
    Refused,
}

pub(crate) const fn done(name: &'static str) -> Write {
    let ends = Ends::Done;
    Write { name, ends }
}

pub(crate) const fn or_unknown(name: &'static str) -> Write {
    let ends = Ends::DoneOrUnknown;
    Write { name, ends }
}

pub(crate) const fn uncertain(name: &'static str) -> Write {
    let ends = Ends::Uncertain;
    Write { name, ends }
}

pub(crate) const fn refused(name: &'static str) -> Write {
    let ends = Ends::Refused;
    Write { name, ends }
}

pub(crate) type Outcome = Result<(), Failure>;

/// Why a write failed: what an error says, or the first one of a bulk write.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    pub(crate) kind: ErrorKind,
    is_outcome_unknown: bool,
    is_of_rival: bool,
    is_of_fault: bool,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            text: error.to_string(),
            kind: error.kind(),
            is_outcome_unknown: error.is_outcome_unknown(),
            is_of_rival: error.is_conflict()
                || error.is_not_found()
                || error.is_precondition_failed(),
            is_of_fault: error.is_timeout()
                || error.attempts() > 1
                // Something in between has responded.
                || error.code().is_none()
                    && matches!(
                        error.kind(),
                        ErrorKind::Response | ErrorKind::Service | ErrorKind::Transport
                    ),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// The first failure of a bulk run, as that of a write.
pub(crate) async fn all_of(
    run: impl IntoFuture<Output = Result<BulkReport, BulkError>>,
) -> Outcome {
    let report = match run.await {
        Ok(report) => report,
        Err(error) if error.report().failures().is_empty() => {
            let source = error.error().expect("a query, or the table, failed");
            return Err(Failure::from(source));
        }
        Err(error) => error.into_report(),
    };
    let first = report.failures().first();
    first.map_or(Ok(()), |failure| Err(Failure::from(failure.error())))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(crate) const fn is_expected(failure: &Failure) -> bool {
    failure.is_of_rival || failure.is_of_fault || failure.is_outcome_unknown
}
