//! Every verb under every fault, compared with the writes that the server carried out: no write happens twice, no result is
//! false, and the client sends no more requests than necessary.

mod http_level;
mod informational;
mod tcp_level;
mod verb;

use tablesdk::action::CurrentState;
use tablesdk::{Error, ErrorKind, Stored, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Journal, Op, RecordedRequest};

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

/// The number of writes that the server carried out. Those of markers alone are not counted.
fn applied(journal: &Journal) -> usize {
    let is_of_marker = |request: &RecordedRequest| {
        let mut keys = request.entities.iter().map(|entity| &entity.key);
        keys.all(|key| key.row_key().as_str().starts_with("~tablesdk.once."))
    };
    let writes = journal.requests().filter(|request| {
        let is_done = request.status.is_some_and(|status| status < 300);
        let is_write = request.op.is_some_and(Op::is_write);
        is_write && is_done && request.error_code.is_none() && !is_of_marker(request)
    });
    writes.count()
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
    harness::client(server).table("Tests")
}

/// Stores the entity that the verb expects, or none.
async fn prepare(table: &TableClient, verb: Verb) -> Option<Stored<Employee>> {
    table.delete(("Sales", "1")).await.unwrap();
    verb.before()?;
    Some(table.insert(&Employee::ada()).await.unwrap())
}
