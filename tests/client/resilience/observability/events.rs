//! The events for a log without spans: their levels, and all their fields.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::Subject;
use harness::log::keep_another_subscriber;
use harness::proxy::{Reply, foreign, refusal, service_response};
use tablesdk::{
    DynamicEntity, ErrorCode, ErrorKind, RetryPolicy, Sas, TableEntity, TableServiceClient,
};
use tablesdk_server::testing::{Fault, Op};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::{Observed, assert_contains};
use crate::{Employee, with_header};

type Fields = BTreeMap<&'static str, String>;

/// The events of the client. Spans are not read.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<(Level, Fields)>>>);

impl Events {
    /// Collects the events of this thread that have this level, or a more severe one.
    fn start(level: LevelFilter) -> (Self, impl Sized) {
        keep_another_subscriber();
        let events = Self::default();
        let layer = events.clone().with_filter(level);
        let guard = tracing_subscriber::registry().with(layer).set_default();
        (events, guard)
    }

    /// The events since the last call.
    fn take(&self) -> Vec<(Level, Fields)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The fields of the only event since the last call, in one line.
    #[track_caller]
    fn only(&self) -> String {
        let events = self.take();
        let [event] = events.as_slice() else {
            panic!("{events:#?}");
        };
        line(event)
    }
}

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "tablesdk" {
            return;
        }
        let mut fields = Collect(Fields::new());
        event.record(&mut fields);
        let level = *event.metadata().level();
        self.0.lock().unwrap().push((level, fields.0));
    }
}

struct Collect(Fields);

impl Visit for Collect {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

/// An event in one line, without the ids of its request, which differ in each run, and without
/// random waits.
fn line((level, fields): &(Level, Fields)) -> String {
    let mut line = format!("{level} {}", fields["message"]);
    for (name, value) in fields {
        match *name {
            "message" => {}
            "client_request_id" | "request_id" => line += &format!(" {name}"),
            "wait" if value != "0ns" => line += " wait",
            _ => line += &format!(" {name}={value}"),
        }
    }
    line
}

fn lines(events: &Events) -> Vec<String> {
    events.take().iter().map(line).collect()
}

/// A policy that retries at once.
fn retries() -> RetryPolicy {
    RetryPolicy::exponential().delay(Duration::ZERO)
}

/// The log of an operator who logs warnings only: no span is enabled.
#[tokio::test(start_paused = true)]
async fn a_warning_has_all_facts_of_a_retry_without_spans() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let (events, _guard) = Events::start(LevelFilter::WARN);
    let id = "3e315e3a-0002-0066-6584-aee2bb000000";
    let busy = with_header(refusal(503, "ServerBusy"), ("retry-after", "3"));
    let busy = with_header(busy, ("x-ms-request-id", id));
    proxy.plan(Op::InsertEntity, [Reply::Respond(busy)]);
    table.insert(&Employee::ada()).await.unwrap();
    let [(level, fields)] = events.take().try_into().unwrap();
    assert_eq!(level, Level::WARN);
    let sent = &proxy.sent()[1].headers["x-ms-client-request-id"];
    let expected = [
        ("account", "devstoreaccount1"),
        ("attempt", "1"),
        ("client_request_id", sent.to_str().unwrap()),
        ("code", "ServerBusy"),
        ("message", "request failed, and is retried"),
        ("operation", "insert entity"),
        ("request_id", id),
        ("status", "503"),
        ("table", "Tests"),
        ("wait", "3s"),
    ];
    let expected = expected.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(fields, expected.into());
}

#[tokio::test(start_paused = true)]
async fn a_retry_names_what_failed_in_place_of_the_service() {
    let (subject, table, proxy) = Subject::behind_proxy(retries().attempts(9)).await;
    let (events, _guard) = Events::start(LevelFilter::WARN);
    let page = Reply::Respond(foreign(502));
    let replies = [Reply::Refuse, Reply::Forward, Reply::Forward, page];
    proxy.plan(Op::QueryEntity, replies);
    let faults = [Fault::lost_response(), Fault::no_response()];
    subject.server().faults().on_reads().inject_each(faults);
    assert!(Employee::find(&table).await.is_none());
    let of = |attempt, reason: &str| {
        format!(
            "WARN request failed, and is retried account=devstoreaccount1 attempt={attempt} client_request_id \
             operation=get entity reason={reason} table=Tests wait=0ns"
        )
    };
    let reset = "the request was sent, and no response arrived: the connection was reset";
    let foreign = "the response is not from the table service status=502";
    let expected = [
        of(1, "the request could not be sent: connection refused"),
        of(2, reset),
        of(3, "no response within 30s"),
        of(4, foreign),
    ];
    assert_eq!(lines(&events), expected);
}

#[tokio::test]
async fn the_reason_of_the_http_library_has_no_url() {
    let (events, _guard) = Events::start(LevelFilter::TRACE);
    // No program listens on this port.
    let service = TableServiceClient::builder("http://127.0.0.1:1/acct")
        .credential(Sas::new("sv=2019-02-02&sig=c2lnbmF0dXJl").unwrap())
        .retry(retries().attempts(2))
        .build()
        .unwrap();
    let table = service.table("Tests");
    let found = table.get(Employee::key("Sales", "1")).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Transport);
    let logged = lines(&events);
    assert_eq!(logged.len(), 4, "{logged:#?}");
    for line in logged {
        let reason = " reason=the request could not be sent: ";
        assert!(line.contains(reason), "{line}");
        for words in ["sig", "c2lnbmF0dXJl", "http:", "Sales", "RowKey"] {
            assert!(!line.contains(words), "{line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_is_an_event_at_debug() {
    let (subject, table, faults) = Subject::with_table(retries()).await;
    let journal = subject.server().journal();
    let (events, _guard) = Events::start(LevelFilter::TRACE);
    table.insert(&Employee::ada()).await.unwrap();
    let body = journal.requests()[0].bytes_in;
    assert_eq!(
        events.only(),
        format!(
            "DEBUG request ended account=devstoreaccount1 attempt=1 bytes_received=0 bytes_sent={body} client_request_id \
             elapsed=0ns operation=insert entity request_id status=204 table=Tests"
        )
    );
    table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(
        events.only(),
        format!(
            "DEBUG request ended account=devstoreaccount1 attempt=1 bytes_sent={body} client_request_id \
             code=EntityAlreadyExists elapsed=0ns operation=insert entity request_id status=409 table=Tests"
        )
    );
    let slow = Fault::delay(Duration::from_micros(12_345));
    faults
        .on(Op::QueryEntity)
        .inject_each([slow, Fault::no_response()]);
    Employee::find(&table).await.unwrap();
    assert_contains(&events.only(), &[" elapsed=13ms ", " status=200 "]);
    // Dropped while its request was in flight.
    let abandoned = tokio::time::timeout(Duration::from_secs(2), Employee::find(&table));
    assert!(abandoned.await.is_err());
    assert_eq!(
        events.only(),
        "DEBUG operation cancelled attempts=1 elapsed=2s operation=get entity table=Tests"
    );
    assert!(table.table_exists().await.unwrap());
    assert!(events.only().contains(" operation=table_exists "));
}

/// Only what went wrong is logged by default.
#[tokio::test(start_paused = true)]
async fn operations_without_a_fault_log_nothing_at_info() {
    let (events, _guard) = Events::start(LevelFilter::INFO);
    let observed = Observed::with_entities(30, retries()).await;
    let query = observed.table.query::<Employee>().page_size(10).collect();
    assert_eq!(query.await.unwrap().len(), 30);
    let missing = observed.table.get(Employee::key("Sales", "x")).await;
    assert!(missing.unwrap().is_none());
    let existing = Employee::new("000", "Ada", 1);
    observed.table.insert(&existing).await.unwrap_err();
    observed.table.create_table().await.unwrap_err();
    assert_eq!(lines(&events), [""; 0]);
}

/// An entity whose entries another program has replaced.
#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{region}", row_key = "customer_{id:04}")]
#[table(index(ByPhone, row_key = "phone_{phone}", unique))]
#[table(index(ByName, partition_key = "name_{name}", row_key = "in_{region}_{id:04}"))]
struct Customer {
    region: String,
    id: u32,
    phone: String,
    name: String,
    visits: u32,
}

#[tokio::test]
async fn an_entry_that_another_entity_has_is_a_warning() {
    let (_subject, table, _faults) = Subject::with_table(retries()).await;
    let ada = Customer {
        region: "EU".into(),
        id: 1,
        phone: "+44-20".into(),
        name: "Ada".into(),
        visits: 1,
    };
    let mut ada = table.insert(&ada).await.unwrap();
    let (events, _guard) = Events::start(LevelFilter::WARN);
    ada.visits += 1;
    table.replace(&mut ada).await.unwrap();
    assert_eq!(lines(&events), [""; 0]);
    for (key, index) in [
        (("EU", "phone_+44-20"), "ByPhone"),
        (("name_Ada", "in_EU_0001"), "ByName"),
    ] {
        let foreign = DynamicEntity::new(key.0, key.1).with("visits", 7);
        table.upsert_replace(&foreign).await.unwrap();
        ada.visits += 1;
        table.replace(&mut ada).await.unwrap();
        let stored = table.get::<DynamicEntity>(key).await.unwrap().unwrap();
        assert_eq!(stored.properties().len(), 1, "it is left as it is");
        let logged = lines(&events);
        let of_index = logged.iter().filter(|line| line.ends_with(&format!(
            "WARN the entry of an index, or the copy, was not written: another entity has its key, which `repair` reports index={index} operation={} table=Tests",
            if index == "ByName" { "write entry of an index" } else { "replace entity" },
        )));
        assert_eq!(of_index.count(), 1, "{logged:#?}");
    }
    table.delete_stored(&ada).await.unwrap();
    // What it no longer has is not missed.
    assert_eq!(lines(&events), [""; 0]);
}

/// The error does not say which limit it was.
#[tokio::test(start_paused = true)]
async fn the_limit_that_ended_the_retries_is_logged() {
    let in_a_second = RetryPolicy::exponential().deadline(Duration::from_secs(1));
    for (policy, count, limit) in [
        (retries().attempts(3), 2, Some("attempts")),
        (in_a_second, 0, Some("deadline")),
        (retries().budget(1), 1, Some("budget")),
        (RetryPolicy::none(), 0, None),
    ] {
        let (_subject, table, faults) = Subject::with_table(policy).await;
        let (events, _guard) = Events::start(LevelFilter::WARN);
        let mut busy = Fault::error(ErrorCode::ServerBusy);
        if limit == Some("deadline") {
            busy = busy.retry_after(Duration::from_secs(3));
        }
        faults.on(Op::QueryEntities).inject(busy);
        let query = table.query::<Employee>().collect();
        query.await.unwrap_err();
        let mut logged = lines(&events);
        let last = limit.map(|_| logged.pop().unwrap());
        let expected = limit.map(|limit| {
            format!(
                "WARN request failed, and is not retried any more account=devstoreaccount1 attempt={} client_request_id \
                 code=ServerBusy limit={limit} operation=query entities request_id status=503 table=Tests",
                count + 1
            )
        });
        assert_eq!(last, expected);
        assert_eq!(logged.len(), count, "{logged:#?}");
        let is_retry = |line: &String| line.contains(" is retried ");
        assert!(logged.iter().all(is_retry), "{logged:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_logged_with_the_id_of_its_write() {
    let (subject, table, proxy) = Subject::behind_proxy(retries().attempts(2)).await;
    let faults = subject.server().faults();
    let (events, _guard) = Events::start(LevelFilter::WARN);
    faults.next(Op::InsertEntity, Fault::lost_response());
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    let [retry, unknown] = events.take().try_into().unwrap();
    assert_eq!(unknown.1["client_request_id"], retry.1["client_request_id"]);
    assert_eq!(
        line(&unknown),
        "WARN outcome unknown: the write may have been applied account=devstoreaccount1 attempts=3 client_request_id \
         code=EntityAlreadyExists current=present elapsed=0ns operation=insert entity request_id status=409 table=Tests"
    );
    // A success that is not a response of the service.
    let status = service_response(299).body(bytes::Bytes::new()).unwrap();
    proxy.plan(Op::DeleteTable, [Reply::Respond(status)]);
    let error = table.delete_table().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    let words = [
        " current=unread ",
        " operation=delete table ",
        " client_request_id ",
    ];
    let unknown = events.only();
    assert_contains(&unknown, &words);
    assert!(unknown.contains("outcome unknown"), "{unknown}");
    // It is gone: the outcome is known, and nothing is logged except the retry.
    faults.next(Op::DeleteTable, Fault::lost_response());
    assert!(table.delete_table().await.unwrap());
    assert!(events.only().contains(" is retried "));
}

#[tokio::test(start_paused = true)]
async fn a_lost_race_is_an_event_at_debug() {
    let (_subject, table, faults) = Subject::with_table(retries()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let (events, _guard) = Events::start(LevelFilter::DEBUG);
    let changed = Fault::error(ErrorCode::UpdateConditionNotSatisfied);
    faults.next(Op::UpdateEntity, changed);
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    modify.await.unwrap();
    let logged = lines(&events);
    assert_eq!(logged.len(), 5, "{logged:#?}");
    assert_eq!(
        logged[2],
        "DEBUG another client changed the entity, and the operation starts over operation=modify entity round=1 \
         table=Tests wait=0ns"
    );
}
