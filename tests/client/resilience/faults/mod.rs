//! Every verb under every fault, compared with the writes that the server carried out: no write happens twice, no result is
//! false, and the client sends no more requests than necessary.

mod http_level;
mod informational;
mod tcp_level;
mod verb;
mod wire_level;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request};
use tablesdk::action::CurrentState;
use tablesdk::transport::{Transport, TransportFuture};
use tablesdk::{Error, ErrorKind, TableClient, TableServiceClient};
use tablesdk_server::TableServer;

use self::verb::{Class, Verb};
use crate::Employee;

/// The effect of a fault on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    /// The outcome is ambiguous: the client cannot know whether the request was carried out.
    Ambiguous,
    /// The request was certainly not carried out, and the client can know that.
    NotExecuted,
}

/// Counts the writes that the server carried out. Markers are not counted.
#[derive(Clone, Debug)]
struct Ledger<T> {
    inner: T,
    applied: Arc<AtomicUsize>,
}

impl<T> Ledger<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            applied: Arc::default(),
        }
    }

    fn applied(&self) -> usize {
        self.applied.load(Ordering::Relaxed)
    }

    fn reset(&self) {
        self.applied.store(0, Ordering::Relaxed);
    }
}

impl<T: Transport> Transport for Ledger<T> {
    fn send(&self, request: Request<Bytes>) -> TransportFuture<'_> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let is_batch = request.uri().path().ends_with("/$batch");
        let is_of_marker = request.uri().path().contains("tablesdk.once")
            || !is_batch && text(request.body()).contains("~tablesdk.once.");
        let is_write = *request.method() != Method::GET;
        Box::pin(async move {
            let answer = self.inner.send(request).await?;
            let is_done =
                answer.status().is_success() && !text(answer.body()).contains("odata.error");
            if is_write && is_done && !is_of_marker {
                self.applied.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer)
        })
    }
}

/// The facts that a result is judged by.
struct Scene<'s> {
    name: &'s str,
    verb: Verb,
    trace: Trace,
    /// A client without faults.
    other: TableClient,
    /// How many writes the server carried out.
    applied: usize,
}

impl Scene<'_> {
    async fn judge(&self, outcome: &Result<bool, Error>) {
        let Self {
            name,
            verb,
            trace,
            applied,
            ..
        } = self;
        let shown = format!("{name}, {verb:?}: {outcome:?}, applied {applied} times");
        let now = state(&self.other).await;
        let (before, after) = (verb.before(), verb.after());
        assert!(now == before || now == after, "half a change: {shown}");
        match outcome {
            Ok(changed) => {
                assert!(changed, "the entity was not found: {shown}");
                assert_eq!(now, after, "{shown}");
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                assert_eq!(
                    *trace,
                    Trace::Ambiguous,
                    "an ambiguous outcome of a request that was not executed: {shown}"
                );
                assert_ne!(verb.class(), Class::Read, "{shown}");
                assert!(!verb.is_exactly_once(), "{shown}");
                if let Some(CurrentState::Present(row)) = error.current() {
                    let row = row.read::<Employee>().unwrap().into_inner();
                    assert_eq!(Some((row.name, row.age)), now, "{shown}");
                }
                if let Some(CurrentState::Missing) = error.current() {
                    assert_eq!(now, None, "{shown}");
                }
                let shown = error.current().unwrap();
                let equal = matches!(shown, CurrentState::Present(row) if row.equals_sent());
                assert!(!equal || now == after, "{shown}");
            }
            Err(_) => {
                assert_eq!(now, before, "a failure that was applied: {shown}");
                assert_eq!(*applied, 0, "{shown}");
            }
        }
        match verb.class() {
            Class::Read => assert_eq!(*applied, 0, "{shown}"),
            Class::Once => assert!(*applied <= 1, "written twice: {shown}"),
            // The same state, however often it is written.
            Class::State => {}
        }
        let markers = self.other.query::<Employee>().count().await.unwrap();
        assert_eq!(
            markers,
            usize::from(now.is_some()),
            "a query returns a marker: {shown}"
        );
    }
}

/// Name and age of the only entity.
type State = Option<(String, i32)>;

async fn state(table: &TableClient) -> State {
    let row = Employee::find(table).await;
    row.map(|row| (row.name.clone(), row.age))
}

fn direct(server: &TableServer) -> TableClient {
    TableServiceClient::in_process(server).table("Tests")
}
