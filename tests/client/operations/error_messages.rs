//! Messages of errors: the verb that was called, where, and why; all of it once.

use std::error::Error as StdError;
use std::sync::Mutex;
use std::time::Duration;
use std::{fmt, iter};

use futures::stream;
use harness::proxy::{Reply, foreign, service_response};
use harness::{Employee, Subject, on_both_transports};
use object_store::memory::InMemory;
use tablesdk::action::ClosureError;
use tablesdk::credential::{AccessToken, TokenRequest};
use tablesdk::lease::Lease;
use tablesdk::objects::Objects;
use tablesdk::transport::ReqwestTransport;
use tablesdk::{
    DynamicEntity, ETag, EntraId, Error, ErrorKind, RetryPolicy, TableClient, TableServiceClient,
};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};

/// An error and its sources.
fn chain<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e dyn StdError> {
    let chain = iter::successors(Some(error), |error| (*error).source());
    chain.map(|error| error as &dyn StdError)
}

/// The messages of the sources of an error.
fn causes(error: &(dyn StdError + 'static)) -> Vec<String> {
    chain(error).skip(1).map(ToString::to_string).collect()
}

/// As the reporters of anyhow and eyre print an error with `{:#}`: its message and those of its
/// sources.
fn reported(error: &(dyn StdError + 'static)) -> String {
    let messages: Vec<_> = chain(error).map(ToString::to_string).collect();
    messages.join(": ")
}

/// The message of each cause is in that of the error, and no cause repeats another one.
fn assert_causes_are_shown(error: &(dyn StdError + 'static)) {
    let (shown, causes) = (error.to_string(), causes(error));
    for (position, cause) in causes.iter().enumerate() {
        let lines: Vec<_> = cause.lines().map(str::trim).collect();
        // A hint replaces the full stop.
        let cause = lines.join(" ");
        assert!(
            shown.contains(cause.trim_end_matches('.')),
            "{cause}: {shown}"
        );
        assert!(!causes[..position].contains(&cause), "{cause}: {causes:?}");
    }
}

/// The host of the service, with the path to the account.
fn host(subject: &Subject) -> &str {
    let url = subject.service.endpoint().as_str();
    url.split_once("://").unwrap().1
}

/// An error with a cause, as a program defines them, and its message.
#[derive(Debug)]
struct Refused(&'static str);

#[derive(Debug, PartialEq)]
struct Spent;

const NO_BONUS: Refused = Refused("no bonus");
/// Many libraries repeat the cause in the message.
const REPEATING: Refused = Refused("refused: the budget\nis spent");

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the budget\nis spent")
    }
}

impl StdError for Refused {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&Spent)
    }
}

impl StdError for Spent {}

on_both_transports! {
    /// `error_table` has whole messages.
    async fn the_message_begins_with_verb_table_account_and_key(subject: Subject) {
        let table = subject.table().await;
        let (name, host, service) = (table.name(), host(&subject), &subject.service);
        for (error, words) in [
            (
                table.patch(Employee::key("Sales", "9")).set(|e| e.age, 1).await.unwrap_err(),
                format!("patch entity in {name:?} at {host} (\"Sales\", \"9\"): 404 ResourceNotFound: "),
            ),
            (service.table("no-name").create_table().await.unwrap_err(), format!("create table \"no-name\" at {host}: ")),
            (service.tables().page_size(0).collect().await.unwrap_err(), format!("query tables at {host}: ")),
        ] {
            assert!(error.to_string().starts_with(&words), "{error}");
        }
    }

    async fn the_operation_is_the_verb_that_was_called(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Employee::ada()).await.unwrap();
        "a/b".clone_into(&mut ada.department);
        let (bad, key) = (Employee { department: "a/b".into(), ..Employee::ada() }, || ("a/b", "1"));
        for (error, verb) in [
            (table.insert(&bad).await.unwrap_err(), "insert entity"),
            (table.upsert_replace(&bad).await.unwrap_err(), "upsert_replace entity"),
            (table.upsert_merge(&bad).await.unwrap_err(), "upsert_merge entity"),
            (table.replace_if(&bad, ETag::ANY).await.unwrap_err(), "replace entity"),
            (table.merge_if(&bad, ETag::ANY).await.unwrap_err(), "merge entity"),
            (table.replace(&mut ada.clone()).await.unwrap_err(), "replace entity"),
            (table.merge(&mut ada).await.unwrap_err(), "merge entity"),
            (table.get::<Employee>(key()).await.unwrap_err(), "get entity"),
            (table.delete(key()).await.unwrap_err(), "delete entity"),
            (table.modify::<Employee, _>(key(), |_| Ok(())).await.unwrap_err(), "modify entity"),
            (table.query::<Employee>().partition("a/b").collect().await.unwrap_err(), "query entities"),
            (table.query::<Employee>().partition("a/b").page(None).await.unwrap_err(), "query entities"),
            (table.batch("a/b").insert(&bad).await.unwrap_err(), "batch"),
            (table.batch("Sales").upsert_merge(&bad).await.unwrap_err(), "upsert_merge entity"),
            (table.clean_up_markers("a/b").await.unwrap_err(), "clean up markers"),
        ] {
            assert_eq!((error.operation(), error.attempts()), (Some(verb), 0), "{error}");
            assert!(error.to_string().contains("partition key \"a/b\": the character '/' at byte 1 is forbidden"), "{error}");
            let place = format!("{verb} in {:?} at {}", table.name(), host(&subject));
            assert!(error.to_string().contains(&place), "{error}");
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
            assert_eq!(error.table(), Some(table.name()), "{error}");
        }
    }

    async fn the_message_says_each_cause_once_and_a_reporter_adds_them(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let key = || Employee::key("Sales", "1");
        let refuse = async |error: Refused| {
            let refused = table.modify(key(), move |_| Err::<(), ClosureError>(Refused(error.0).into()));
            refused.await.unwrap_err()
        };
        let nested = refuse(NO_BONUS).await;
        let words = "the closure returned an error: no bonus: the budget is spent";
        assert!(nested.to_string().ends_with(words), "{nested}");
        assert_eq!(nested.downcast_ref(), Some(&Spent));
        assert!(nested.downcast_ref::<Refused>().is_some());
        let repeating = refuse(REPEATING).await;
        assert!(repeating.to_string().ends_with("an error: refused: the budget is spent"), "{repeating}");
        assert_eq!(nested.kind(), ErrorKind::Aborted);

        let conflict = table.insert(&Employee::ada()).await.unwrap_err();
        let slash = table.get::<Employee>(("a/b", "1")).await.unwrap_err();
        for (error, causes) in [
            (nested, ": no bonus: the budget\nis spent"),
            (repeating, ": refused: the budget\nis spent: the budget\nis spent"),
            (conflict, ": 409 EntityAlreadyExists: The specified entity already exists."),
            (slash, ": partition key \"a/b\": the character '/' at byte 1 is forbidden in keys, as are / \\ # ? and controls"),
            (table.get::<DynamicEntity>(("Sales", "\n")).await.unwrap_err(), ": row key"),
            (table.patch(key()).set(|e| e.name, "x".repeat(40_000)).await.unwrap_err(), ": property"),
            (table.query::<Employee>().odata("Age gt").collect().await.unwrap_err(), ": the OData"),
            (TableServiceClient::from_connection_string("AccountName=a").unwrap_err(), ": "),
            ("no token".parse::<tablesdk::query::PageToken>().unwrap_err(), ": "),
        ] {
            let message = error.to_string();
            assert_causes_are_shown(&error);
            assert!(reported(&error).starts_with(&format!("{message}{causes}")), "{}", reported(&error));
            assert_eq!(format!("{error:#}"), message);
            assert_eq!(format!("{error:?}"), message, "what unwrap prints");
            assert!(!message.contains('\n'), "{message}");
            assert!(message.len() < 500, "{message}");
        }
    }

    async fn a_change_of_a_batch_is_counted_from_one(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let [ada, grace] = [Employee::ada(), Employee::new("2", "Grace", 50)];
        let elsewhere = Employee { department: "Legal".into(), ..grace.clone() };
        let batch = table.batch("Sales").insert(&grace).upsert_merge(&elsewhere).insert(&ada).insert(&ada);
        let error = batch.await.unwrap_err();
        assert!(error.to_string().starts_with("change 2 of 4: upsert_merge entity in "), "{error}");
        assert_eq!(error.batch_index(), Some(1), "an index counts from 0");
        let error = table.batch("Sales").insert(&grace).insert(&ada).exactly_once().await.unwrap_err();
        assert!(error.to_string().starts_with("change 2 of 2: insert entity in "), "{error}");
    }

}

#[tokio::test]
async fn errors_before_anything_is_sent_say_where() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    let query = || table.query::<Employee>();
    let none: [&Employee; 0] = [];
    let bulk = table.bulk().insert(stream::iter(none)).concurrency(0);
    let bulk = bulk.await.unwrap_err();
    assert_eq!(bulk.error().unwrap().table(), Some("Tests"));
    assert_causes_are_shown(&bulk);
    let modify = table.modify(Employee::key("Sales", "1"), |_| Ok(()));
    let many = table.get_many([Employee::key("a/b", "1")]);
    for error in [
        query().page_size(0).collect().await.unwrap_err(),
        query().odata("Age gt").count().await.unwrap_err(),
        query().odata("Age gt").first().await.unwrap_err(),
        query().odata("Age gt").one().await.unwrap_err(),
        query().odata("Age gt").exists().await.unwrap_err(),
        query().odata("Age gt").explain().unwrap_err(),
        query().odata("Age gt").page(None).await.unwrap_err(),
        table.batch("Sales").await.unwrap_err(),
        modify.rounds(0).await.unwrap_err(),
        many.await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Input, 0));
        assert_eq!(error.table(), Some("Tests"), "{error}");
        let endpoint = Some(subject.service.endpoint());
        assert_eq!(error.endpoint(), endpoint, "{error}");
        assert!(error.operation().is_some(), "{error}");
    }
}

#[tokio::test]
async fn a_bulk_failure_says_its_index_and_key_once() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    table.insert(&Employee::ada()).await.unwrap();
    let report = table.bulk().insert(stream::iter([Employee::ada()])).await;
    let report = report.unwrap();
    let text = report.failures()[0].to_string();
    let words = "entity at index 0: change 1 of 1: insert entity in \"Tests\" at ";
    assert!(text.starts_with(words), "{text}");
    assert_eq!(text.matches("\"Sales\"").count(), 1, "{text}");

    let missing = subject.service.table("Missing").bulk();
    let error = missing.insert(stream::iter([Employee::ada()])).await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains("404 TableNotFound"), "{error}");
    assert!(error.downcast_ref::<Error>().unwrap().is_table_not_found());

    let input = stream::iter([Err::<Employee, _>(NO_BONUS)]);
    let error = table.bulk().insert(input).await.unwrap_err();
    assert!(
        error.to_string().ends_with("no bonus: the budget is spent"),
        "{error}"
    );
    assert_eq!(error.downcast_ref(), Some(&Spent));
    assert_eq!(causes(&error), ["no bonus", "the budget\nis spent"]);
}

/// A table whose requests get no credential.
fn without_token(server: &TableServer) -> TableClient {
    let refuse =
        |_: TokenRequest| async { Err::<AccessToken, _>("the issuer is not there".into()) };
    let builder = TableServiceClient::builder("https://devstoreaccount1.table.core.windows.net")
        .transport(server.transport())
        .credential(EntraId::new(refuse));
    builder.build().unwrap().table("Tests")
}

#[tokio::test]
async fn the_source_of_each_kind_of_error_is_its_cause() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::none()).await;
    let (ada, grace) = (Employee::ada(), Employee::new("2", "Grace", 50));
    table.insert(&ada).await.unwrap();
    table.insert(&grace).await.unwrap();
    let odd = DynamicEntity::new("Legal", "1").with("Age", "old");
    table.insert(&odd).await.unwrap();
    let key = || Employee::key("Sales", "1");

    let refused = table.modify(key(), |_| Err::<(), ClosureError>(NO_BONUS.into()));
    let many = table.query::<Employee>().partition("Sales").one();
    let mut lease = Lease::acquire(&table, ("locks", "1"), Duration::from_secs(60)).await;
    let lease = lease.as_mut().unwrap().as_mut().unwrap();
    table.delete(("locks", "1")).await.unwrap();
    let [here, there] = [(), ()].map(|()| Objects::new(InMemory::new(), "photos"));
    let photo = there.put("a photo").await.unwrap();
    let mut errors = vec![
        refused.await.unwrap_err(),
        TableServiceClient::from_connection_string("AccountName=a").unwrap_err(),
        without_token(subject.server())
            .get(key())
            .await
            .unwrap_err(),
        table.get(Employee::key("Legal", "1")).await.unwrap_err(),
        table.get(Employee::key("a/b", "1")).await.unwrap_err(),
        lease.renew().await.unwrap_err(),
        many.await.unwrap_err(),
        here.get(&photo).await.unwrap_err(),
    ];
    faults.next(Op::InsertEntity, Fault::lost_response());
    let lost = table.insert(&Employee::new("3", "Alan", 41));
    errors.push(lost.await.unwrap_err());
    faults.next(Op::QueryEntity, Fault::corrupted_response());
    errors.push(table.get(key()).await.unwrap_err());
    errors.push(table.insert(&ada).await.unwrap_err());
    faults.next(Op::QueryEntity, Fault::reset());
    errors.push(table.get(key()).await.unwrap_err());

    let kinds: Vec<_> = errors.iter().map(Error::kind).collect();
    let every_kind = [
        ErrorKind::Aborted,
        ErrorKind::Configuration,
        ErrorKind::Credential,
        ErrorKind::Data,
        ErrorKind::Input,
        ErrorKind::LeaseLost,
        ErrorKind::NotUnique,
        ErrorKind::ObjectStore,
        ErrorKind::OutcomeUnknown,
        ErrorKind::Response,
        ErrorKind::Service,
        ErrorKind::Transport,
    ];
    assert_eq!(kinds, every_kind);
    for error in errors {
        assert!(error.source().is_some(), "{error}");
        assert_causes_are_shown(&error);
    }

    // There is no error below these.
    faults.next(Op::QueryEntity, Fault::no_response());
    let slow = table.get(key()).deadline(Duration::from_millis(20)).await;
    assert!(slow.unwrap_err().source().is_none());
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    proxy.plan(Op::QueryEntity, [Reply::Respond(foreign(502))]);
    assert!(table.get(key()).await.unwrap_err().source().is_none());
}

/// An error of this client within that of a closure: its message and its hint are not followed by
/// its causes.
#[tokio::test]
async fn an_error_within_an_error_is_said_once() {
    let subject = Subject::in_process();
    let table = subject.table().await;
    table.insert(&Employee::ada()).await.unwrap();
    let missing = subject.service.table("Missing");
    let missing = missing.get(Employee::key("Sales", "1")).await;
    for (inner, shown) in [
        (
            missing.unwrap_err(),
            "404 TableNotFound: The table specified does not exist; `create_table().if_missing()` creates it",
        ),
        (
            multi_line("busy\n  now.\n").await,
            "503 ServerBusy: busy now.",
        ),
    ] {
        let (words, inner) = (inner.to_string(), Mutex::new(Some(inner)));
        assert!(words.contains(shown), "{words}");
        let key = Employee::key("Sales", "1");
        let modify = table.modify(key, move |_| {
            Err::<(), ClosureError>(inner.lock().unwrap().take().unwrap().into())
        });
        let outer = modify.await.unwrap_err().to_string();
        assert!(outer.ends_with(&words), "{outer}");
        assert_eq!(outer.matches(shown).count(), 1, "{outer}");
        assert_eq!(
            outer.matches(" now.").count(),
            words.matches(" now.").count(),
            "{outer}"
        );
    }
}

/// The error of a response whose message has several lines.
async fn multi_line(message: &str) -> Error {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let body = serde_json::json!({
        "odata.error": { "code": "ServerBusy", "message": { "lang": "en-US", "value": message } }
    });
    let response = service_response(503).body(body.to_string().into()).unwrap();
    proxy.plan(Op::QueryEntity, [Reply::Respond(response)]);
    table.get(Employee::key("Sales", "1")).await.unwrap_err()
}

#[tokio::test]
async fn the_reason_of_the_transport_is_part_of_the_message() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let service = TableServiceClient::builder(format!("http://{address}/acct"))
        .credential(tablesdk::SharedKey::new("acct", "c2VjcmV0c2VjcmV0").unwrap())
        .transport(ReqwestTransport::from_client(http))
        .retry(RetryPolicy::none());
    let table = service.build().unwrap().table("Employees");
    let error = table.get::<Employee>(("Sales", "1")).await.unwrap_err();
    let words = format!(
        "get entity in \"Employees\" at {address}/acct (\"Sales\", \"1\"): the request could not be sent: tcp connect error: "
    );
    assert!(error.to_string().starts_with(&words), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Transport);
    let cause = error.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(cause.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_causes_are_shown(&error);
}
