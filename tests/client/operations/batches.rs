//! Batches: all changes happen or none, they are checked before they are sent, an error names the
//! change that failed, and the result stays true when responses are lost.

use bytes::Bytes;
use harness::Subject;
use harness::outcome::{Found, found};
use harness::proxy::{Reply, refusal};
use http::Response;
use tablesdk::{DynamicEntity, ETag, ErrorKind, RetryPolicy};
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

on_both_transports! {
    async fn a_batch_applies_every_kind_of_change(subject: Subject) {
        let table = subject.table().await;
        let mut rows = Vec::new();
        for id in ["1", "2", "3", "4", "5", "6"] {
            let employee = Employee { email: Some("x@y".into()), ..Employee::new(id, "Old", 1) };
            rows.push(table.insert(&employee).await.unwrap());
        }
        let [replaced, merged, deleted, ..] = rows.as_mut_slice() else { unreachable!() };
        (replaced.name, replaced.email) = ("New".into(), None);
        (merged.name, merged.email) = ("New".into(), None);
        let done = table
            .batch(Employee::partition("Sales"))
            .insert(&Employee::new("7", "New", 2))
            .replace(replaced)
            .merge(merged)
            .delete_stored(deleted)
            .replace_if(&Employee::new("4", "New", 2), ETag::ANY)
            .merge_if(&Employee::new("5", "New", 2), ETag::ANY)
            .delete(Employee::key("Sales", "6"))
            .upsert_replace(&Employee::new("8", "New", 2))
            .upsert_merge(&Employee::new("O'9", "New", 2))
            .await
            .unwrap();
        let stored = table.query::<Employee>().collect().await.unwrap();
        let seen: Vec<_> = stored.iter().map(|row| (row.id.as_str(), row.name.as_str(), row.email.is_some())).collect();
        let new = [("1", false), ("2", true), ("4", false), ("5", true), ("7", false), ("8", false), ("O'9", false)];
        assert_eq!(seen, new.map(|(id, keeps_email)| (id, "New", keeps_email)));
        // The ETags of the response are those of the entities, in the order of the changes.
        let etag = |id: &str| stored.iter().find(|row| row.id == id).map(|row| row.etag().clone());
        let expected: Vec<_> = ["7", "1", "2", "3", "4", "5", "6", "8", "O'9"].map(etag).into();
        assert_eq!(done.etags(), expected);
        table.replace(&mut rows[0]).await.unwrap();
        table.merge(&mut rows[1]).await.unwrap();
    }

    async fn entities_without_properties_work_in_batches(subject: Subject) {
        let table = subject.table().await;
        let row = |id: &str| DynamicEntity::new("Sales", id);
        let batch = table.batch("Sales").insert(&row("1")).upsert_replace(&row("2"));
        batch.upsert_merge(&row("3")).await.unwrap();
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 3);
    }

    async fn strings_of_several_lines_work_in_batches(subject: Subject) {
        let table = subject.table().await;
        for text in ["a\nb", "a\r\n\r\nb", "--batch\r\nHTTP/1.1 400 Bad Request\r\n", "a\u{85}b", "a\u{2028}b\u{2029}c"] {
            let row = Employee::new("1", text, 36);
            table.batch("Sales").upsert_replace(&row).await.unwrap();
            assert_eq!(*Employee::find(&table).await.unwrap(), row);
        }
    }

    async fn a_failure_names_the_change_and_applies_none(subject: Subject) {
        let table = subject.table().await;
        let mut row = table.insert(&Employee::ada()).await.unwrap();
        let before = row.etag().clone();
        let stale = row.clone();
        table.merge_if(&*stale, ETag::ANY).await.unwrap();
        row.age = 37;
        let error = table
            .batch("Sales")
            .upsert_merge(&Employee::new("2", "Grace", 50))
            .insert(&Employee::new("3", "Alan", 41))
            .replace(&mut row)
            .await
            .unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
        assert_eq!(error.batch_index(), Some(2));
        assert_eq!(error.operation(), Some("replace entity"));
        assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        assert_eq!(error.code().unwrap().as_str(), "UpdateConditionNotSatisfied");
        assert_eq!(*row.etag(), before);
        assert_eq!(table.query::<Employee>().collect().await.unwrap().len(), 1);

        let error = table.batch("Sales").delete(("Sales", "9")).await.unwrap_err();
        assert!(error.is_not_found() && error.batch_index() == Some(0), "{error:?}");
        let missing = subject.service.table("Missing");
        let error = missing.batch("Sales").insert(&*row).await.unwrap_err();
        assert_eq!(error.code().unwrap().as_str(), "TableNotFound");
    }
}

#[tokio::test]
async fn an_etag_that_no_header_can_hold_is_not_sent() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let body = r#"{"odata.etag":"a\nb","PartitionKey":"Sales","RowKey":"1","Name":"Ada","Age":36}"#;
    let answer = Response::new(Bytes::from_static(body.as_bytes()));
    proxy.plan(Op::QueryEntity, [Reply::Respond(answer)]);
    let mut row = Employee::find(&table).await.unwrap();
    let requests = proxy.sent().len();
    let batch = || table.batch("Sales");
    for (error, index) in [
        (table.replace(&mut row).await.unwrap_err(), None),
        (table.merge(&mut row).await.unwrap_err(), None),
        (table.delete_stored(&row).await.unwrap_err(), None),
        (batch().delete_stored(&row).await.unwrap_err(), Some(0)),
        (batch().replace(&mut row).await.unwrap_err(), Some(0)),
    ] {
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
        assert_eq!(error.batch_index(), index);
        assert!(error.key().is_some());
        let text = error.to_string();
        assert!(text.contains("the ETag holds characters"), "{text}");
    }
    assert_eq!(proxy.sent().len(), requests);
}

#[tokio::test]
async fn invalid_batches_are_not_sent() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let one = Employee::ada();
    let elsewhere = Employee {
        department: "Lab".into(),
        ..one.clone()
    };
    let moved = table.insert(&Employee::new("2", "Grace", 50)).await;
    let mut moved = moved.unwrap();
    let journal = subject.server().journal();
    moved.id = "3".into();
    let hundred = (0..100).fold(table.batch("Sales"), |batch, id| {
        batch.upsert_merge(&Employee::new(&id.to_string(), "Ada", id))
    });
    let two_in_one = table.batch("Sales").insert(&one).delete(("Sales", "1"));
    let many = hundred.upsert_merge(&Employee::new("x", "", 0));
    let batch = || table.batch("Sales");
    let two_partitions = batch().insert(&one).insert(&elsewhere);
    let slash = table.batch("a/b").insert(&one);
    let moved = batch().insert(&one).replace(&mut moved);
    for (batch, index, words) in [
        (batch(), None, "1 to 100 changes, not 0"),
        (many, None, "not 101"),
        (two_partitions, Some(1), "partition \"Sales\""),
        (two_in_one, Some(1), "only once"),
        (slash, None, "'/'"),
        (batch().delete(("Sales", "a#b")), Some(0), "'#'"),
        (moved, Some(1), "row key changed"),
    ] {
        let error = batch.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
        assert_eq!(error.batch_index(), index, "{error:?}");
        assert!(format!("{error:?}").contains(words), "{error:?}: {words}");
    }
    assert!(journal.requests().is_empty());
}

#[tokio::test]
async fn a_batch_is_limited_to_four_mebibytes() {
    let (subject, table, _) = Subject::with_table(RetryPolicy::none()).await;
    let journal = subject.server().journal();
    let blob = |id: usize, text| DynamicEntity::new("p", id.to_string()).with("A", text);
    let sized = |length: usize| {
        let one = table
            .batch("p")
            .upsert_replace(&blob(100, "x".repeat(length)));
        let batch = (1..100).fold(one, |batch, id| {
            batch.upsert_replace(&blob(id, "ä".repeat(20_900)))
        });
        batch.into_future()
    };
    let bytes = |error: tablesdk::Error| {
        assert_eq!(error.kind(), ErrorKind::Input, "{error:?}");
        let text = format!("{error:?}");
        let number = text.split("a batch of ").nth(1).unwrap().split(' ').next();
        number.unwrap().parse::<usize>().unwrap()
    };
    let largest = 32_768;
    let limit = 4 * 1024 * 1024;
    let excess = bytes(sized(largest).await.unwrap_err()) - limit;
    let length = largest - excess;
    let excess = bytes(sized(length + 1).await.unwrap_err()) - limit;
    assert_eq!(excess, 1);
    assert!(journal.requests().is_empty());
    sized(length).await.unwrap();
    assert_eq!(journal.requests().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_guarantees_a_state_is_retried() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    let journal = subject.server().journal();
    let faults = faults.on(Op::Batch);
    faults.inject_each([Fault::lost_response(), Fault::reset()]);
    let (one, two) = (Employee::ada(), Employee::new("2", "Grace", 50));
    let batch = table.batch("Sales").upsert_merge(&one);
    let done = batch.upsert_replace(&two).await.unwrap();
    assert_eq!(journal.requests().count(), 3);
    let stored = table.get(Employee::key("Sales", "2")).await.unwrap();
    assert_eq!(done.etags()[1].as_ref(), Some(stored.unwrap().etag()));
}

#[tokio::test(start_paused = true)]
async fn a_conditional_batch_that_was_retried_is_ambiguous() {
    for first in [Fault::lost_response(), Fault::no_response().applied()] {
        let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
        let mut row = table.insert(&Employee::ada()).await.unwrap();
        let before = row.etag().clone();
        row.age = 37;
        faults.next(Op::Batch, first);
        let journal = subject.server().journal();
        let grace = Employee::new("2", "Grace", 50);
        let batch = table.batch("Sales").upsert_merge(&grace);
        let error = batch.replace(&mut row).await.unwrap_err();
        assert_eq!(found(&error), Found::Equal);
        assert_eq!((error.batch_index(), error.attempts()), (Some(1), 3));
        assert_eq!(*row.etag(), before);
        assert_eq!(journal.requests().op(Op::QueryEntity).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_inside_a_batch_is_that_of_the_batch() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let busy = part("HTTP/1.1 503 Busy", "ServerBusy", "0:Busy.");
    let outside = refusal(503, "ServerBusy");
    proxy.plan(Op::Batch, [busy, outside].map(Reply::Respond));
    let ada = Employee::ada();
    table.batch("Sales").insert(&ada).await.unwrap();
    assert_eq!(proxy.count(Op::Batch), 3);
    let error = table.batch("Sales").insert(&ada).await.unwrap_err();
    assert!(error.is_conflict() && error.attempts() == 1, "{error:?}");
}

#[tokio::test]
async fn batch_responses_with_other_line_ends_are_read() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::none()).await;
    let ada = Employee::ada();
    for (message, index) in [("0:Exists.", 0), ("Exists.", 0), ("7:Exists.", 7)] {
        let answer = part("HTTP/1.1 409 Conflict", "EntityAlreadyExists", message);
        proxy.plan(Op::Batch, [Reply::Respond(answer)]);
        let error = table.batch("Sales").insert(&ada).await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!(error.batch_index(), Some(index));
        assert_eq!(error.key().is_some(), index == 0);
    }
    // A response that does not fit the changes leaves the outcome ambiguous.
    for body in ["", "<html>Welcome</html>", "--b\r\n\r\n--b--"] {
        let response = accepted(body.to_owned());
        proxy.plan(Op::Batch, [Reply::Replace(response)]);
        let error = table.batch("Sales").upsert_merge(&ada).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error:?}");
        let text = error.to_string();
        assert!(text.contains("the response cannot be read"), "{text}");
    }
}

/// A response with different line ends, as one backend sends it.
fn part(status: &str, code: &str, message: &str) -> Response<Bytes> {
    accepted(format!(
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n{status}\r\nContent-Type: application/json\r\n\r\n{{\"odata.error\":{{\"code\":\"{code}\",\"message\":{{\"lang\":\"en-us\",\"value\":\"{message}\"}}}}}}\n--c--\n--b--\r\n"
    ))
}

fn accepted(body: String) -> Response<Bytes> {
    Response::builder()
        .status(202)
        .header("content-type", "multipart/mixed; boundary=b")
        .body(body.into())
        .unwrap()
}
