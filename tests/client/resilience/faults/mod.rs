//! Every verb under every fault, compared with the writes that the server carried out: no write
//! happens twice, no result is false, and the client sends no more requests than necessary.

mod http_level;
mod informational;
mod tcp_level;
mod verb;

use harness::outcome::{Found, found};
use tablesdk::action::CurrentState;
use tablesdk::{Error, Stored, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Journal, Op, RecordedRequest};

use self::verb::{Class, Verb};
use crate::Employee;

/// The effect of a fault on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    /// The request was carried out, and the client cannot know that.
    Executed,
    /// The client cannot know whether the request was carried out.
    Ambiguous,
    /// The request was not carried out, and the client can know that.
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

/// Judges a result by what another client reads, and by how many writes the server carried out.
async fn judge(
    name: &str,
    (verb, trace): (Verb, Trace),
    outcome: &Result<bool, Error>,
    other: &TableClient,
    applied: usize,
) {
    let shown = format!("{name}, {verb:?}: {outcome:?}, applied {applied} times");
    let now = Employee::find(other).await.map(Stored::into_inner);
    let (before, after) = (verb.before(), verb.after());
    assert!(now == before || now == after, "half a change: {shown}");
    match outcome {
        Ok(changed) => {
            assert!(changed, "the entity was not found: {shown}");
            assert_eq!(now, after, "{shown}");
        }
        Err(error) if error.is_outcome_unknown() => {
            assert_ne!(trace, Trace::NotExecuted, "{shown}");
            assert_ne!(verb.class(), Class::Read, "{shown}");
            assert!(!verb.is_exactly_once, "{shown}");
            assert!(found(error) != Found::Equal || now == after, "{shown}");
            match error.current() {
                Some(CurrentState::Present(row)) => {
                    assert_eq!(
                        Some(row.read::<Employee>().unwrap().into_inner()),
                        now,
                        "{shown}"
                    );
                }
                Some(CurrentState::Missing) => assert_eq!(now, None, "{shown}"),
                _ => {}
            }
        }
        Err(_) => {
            assert_eq!(now, before, "a failure that was applied: {shown}");
            assert_eq!(applied, 0, "{shown}");
        }
    }
    match verb.class() {
        Class::Read => assert_eq!(applied, 0, "{shown}"),
        Class::Once => assert!(applied <= 1, "written twice: {shown}"),
        // The same state, however often it is written.
        Class::State => {}
    }
    let rows = other.query::<Employee>().count().await.unwrap();
    assert_eq!(
        rows,
        usize::from(now.is_some()),
        "a query returns a marker: {shown}"
    );
}

fn direct(server: &TableServer) -> TableClient {
    harness::client(server).table("Tests")
}

/// Stores the entity that the verb expects, or none.
async fn prepare(table: &TableClient, verb: Verb) -> Option<Stored<Employee>> {
    table.delete(("Sales", "1")).await.unwrap();
    let before = verb.before()?;
    Some(table.insert(&before).await.unwrap())
}
