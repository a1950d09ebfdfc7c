//! `exactly_once`: where an ordinary write has an ambiguous outcome, this write has a definite one, and its result stays true when
//! lost requests arrive later. In process, on virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::faults::{Fault, Faults, Op, batch_refusal, refusal};
use harness::{Subject, client_with};
use tablesdk::action::CurrentState;
use tablesdk::transport::{Clock, Transport};
use tablesdk::{
    DynamicEntity, ErrorKind, RetryPolicy, Stored, TableClient, TableServiceClient, Timestamp,
};
use tablesdk_server::{InProcess, TableServer};
use tokio::time::sleep;

use crate::{Employee, on_both_transports};

async fn row(table: &TableClient) -> Option<Stored<Employee>> {
    Employee::find(&table).await
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The row keys of all rows, as a program in another language sees them: by a filter that no query of ours adds.
async fn markers(subject: &Subject) -> usize {
    let transport = subject.server().transport();
    let seen = Faults::new(Counting(transport));
    let service = client_with(subject.server(), |builder| builder.transport(seen.clone()));
    let table = service.table("Tests");
    let rows = table.query::<DynamicEntity>().collect().await.unwrap();
    assert!(
        rows.iter()
            .all(|row| !row.key().row_key().as_str().starts_with('~'))
    );
    RAW.with(std::cell::Cell::get)
}

thread_local! {
    /// How many markers the last answer held.
    static RAW: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts the markers in answers before the client sees them.
#[derive(Debug)]
struct Counting<T>(T);

impl<T: Transport> Transport for Counting<T> {
    fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> tablesdk::transport::TransportFuture<'_> {
        Box::pin(async move {
            let answer = self.0.send(request).await?;
            let text = String::from_utf8_lossy(answer.body()).into_owned();
            RAW.set(text.matches("\"RowKey\":\"~tablesdk.once.").count());
            Ok(answer)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_has_it_and_leaves_nothing_behind() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut row = table.insert(&Employee::ada()).exactly_once().await.unwrap();
    row.age = 37;
    table.replace(&mut row).exactly_once().await.unwrap();
    row.email = Some("ada@contoso.com".to_owned());
    table.merge(&mut row).exactly_once().await.unwrap();
    let row = table
        .modify(("Sales", "1"), Employee::grow_older)
        .exactly_once()
        .await;
    let mut row = row.unwrap();
    assert_eq!((row.age, row.email.is_some()), (38, true));
    let batch = table.batch("Sales").insert(&Employee::new("2", "Alan", 41));
    let done = batch.replace(&mut row).exactly_once().await.unwrap();
    assert_eq!(done.etags().len(), 2);
    // The ETags are those of the changes, not of the marker.
    table.replace(&mut row).await.unwrap();
    assert!(table.delete_stored(&row).exactly_once().await.unwrap());
    assert!(table.delete(("Sales", "2")).exactly_once().await.unwrap());
    assert!(!table.delete(("Sales", "2")).exactly_once().await.unwrap());
    assert_eq!(markers(&subject).await, 0);
    // One more request for each, which deletes the marker, but where nothing was done.
    assert_eq!((faults.count(Op::Batch), faults.count(Op::Delete)), (8, 7));
}

on_both_transports! {
    async fn nothing_but_the_promise_differs_from_the_ordinary_verbs(subject: Subject) {
        let table = subject.table().await;
        let mut row = table.insert(&Employee::ada()).exactly_once().await.unwrap();
        row.age = 37;
        table.replace(&mut row).exactly_once().await.unwrap();
        row.age = 38;
        table.merge(&mut row).exactly_once().await.unwrap();
        let stale = row.clone();
        let batch = table.batch("Sales").insert(&Employee::new("2", "Alan", 41));
        batch.replace(&mut row).exactly_once().await.unwrap();
        for (error, code) in [
            (table.insert(&Employee::ada()).exactly_once().await.unwrap_err(), "EntityAlreadyExists"),
            (table.delete_stored(&stale).exactly_once().await.unwrap_err(), "UpdateConditionNotSatisfied"),
        ] {
            assert_eq!(error.code().unwrap().as_str(), code, "{error:?}");
            assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        }
        let batch = table.batch("Sales").upsert_merge(&Employee::new("2", "Alan", 42));
        let error = batch.insert(&Employee::ada()).exactly_once().await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!(error.batch_index(), Some(1));
        assert!(table.delete_stored(&row).exactly_once().await.unwrap());
        assert!(table.delete(("Sales", "2")).exactly_once().await.unwrap());
        assert!(!table.delete(("Sales", "2")).exactly_once().await.unwrap());
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_those_of_the_ordinary_verbs() {
    let (subject, table, _) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut stale = table.insert(&Employee::ada()).await.unwrap();
    table.upsert_replace(&Employee::grace()).await.unwrap();
    let refused = [
        table
            .insert(&Employee::ada())
            .exactly_once()
            .await
            .unwrap_err(),
        table.replace(&mut stale).exactly_once().await.unwrap_err(),
        table
            .delete_stored(&stale)
            .exactly_once()
            .await
            .unwrap_err(),
    ];
    let codes = [
        "EntityAlreadyExists",
        "UpdateConditionNotSatisfied",
        "UpdateConditionNotSatisfied",
    ];
    let operations = ["insert entity", "replace entity", "delete entity"];
    for ((error, code), operation) in refused.iter().zip(codes).zip(operations) {
        assert_eq!(error.code().unwrap().as_str(), code, "{error:?}");
        assert_eq!(
            (error.operation(), error.batch_index()),
            (Some(operation), None)
        );
        assert_eq!(error.key().unwrap().row_key().as_str(), "1");
        assert_eq!(error.attempts(), 1);
    }
    let batch = table
        .batch("Sales")
        .upsert_merge(&Employee::new("2", "Alan", 41));
    let error = batch
        .insert(&Employee::ada())
        .exactly_once()
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert_eq!(
        (error.batch_index(), error.operation()),
        (Some(1), Some("insert entity"))
    );
    assert_eq!(markers(&subject).await, 0);

    let missing = subject.service.table("Missing");
    let error = missing
        .insert(&Employee::ada())
        .exactly_once()
        .await
        .unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "TableNotFound");
    let error = missing
        .delete(("Sales", "1"))
        .exactly_once()
        .await
        .unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "TableNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_a_success_with_the_version_that_is_there() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    for fault in [Fault::LoseAnswer, Fault::Hang, Fault::Duplicate] {
        faults.plan(Op::Batch, [fault.clone()]);
        let mut stored = table.insert(&Employee::ada()).exactly_once().await.unwrap();
        faults.plan(Op::Batch, [fault.clone()]);
        stored.age = 37;
        table.replace(&mut stored).exactly_once().await.unwrap();
        assert_eq!(row(&table).await.unwrap(), stored, "{fault:?}");
        faults.plan(Op::Batch, [fault.clone()]);
        let mut other = table.insert(&Employee::new("2", "Alan", 41)).await.unwrap();
        other.age = 42;
        let batch = table
            .batch("Sales")
            .replace(&mut other)
            .delete_stored(&stored);
        let done = batch.exactly_once().await.unwrap();
        assert_eq!(done.etags(), [Some(other.etag().clone()), None]);
        table.delete_stored(&other).await.unwrap();
        assert!(row(&table).await.is_none());
        faults.plan(Op::Batch, [Fault::LoseRequest]);
        table.insert(&Employee::ada()).exactly_once().await.unwrap();
        faults.plan(Op::Batch, [fault]);
        assert!(table.delete(("Sales", "1")).exactly_once().await.unwrap());
    }
    // The markers stay, since what was lost may still arrive; no query shows them.
    assert_eq!(markers(&subject).await, 3 * 5);
}

#[tokio::test(start_paused = true)]
async fn a_merge_whose_answer_was_lost_gets_a_version_that_is_over() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let mut stored = table.insert(&Employee::ada()).await.unwrap();
    stored.age = 37;
    faults.plan(Op::Batch, [Fault::LoseAnswer]);
    table.merge(&mut stored).exactly_once().await.unwrap();
    assert_eq!(row(&table).await.unwrap().age, 37);
    // Whether somebody has written what was not sent, nobody knows: the next write finds out, or is refused.
    match table.replace(&mut stored).await {
        Ok(()) => {}
        Err(error) => assert!(error.is_precondition_failed(), "{error:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn equal_content_is_no_proof_since_another_writer_may_have_sent_the_same() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    let another_writes_the_same = async {
        sleep(secs(1)).await;
        other.upsert_replace(&Employee::ada()).await.unwrap();
    };
    faults.plan(Op::Insert, [Fault::Swallow]);
    let (ours, ()) = tokio::join!(
        table.insert(&Employee::ada()).into_future(),
        another_writes_the_same
    );
    let error = ours.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error:?}");
    let Some(CurrentState::Present(now)) = error.current() else {
        panic!("{error:?}")
    };
    assert!(now.equals_sent(), "and yet it is not ours");

    table.delete(("Sales", "1")).await.unwrap();
    let another_writes_the_same = async {
        sleep(secs(1)).await;
        other.upsert_replace(&Employee::ada()).await.unwrap();
    };
    faults.plan(Op::Batch, [Fault::Swallow]);
    let insert = table.insert(&Employee::ada()).exactly_once().into_future();
    let (ours, ()) = tokio::join!(insert, another_writes_the_same);
    let error = ours.unwrap_err();
    assert!(error.is_conflict(), "that is known: {error:?}");
}

#[tokio::test(start_paused = true)]
async fn other_content_is_no_proof_since_another_writer_may_have_overwritten_ours() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    let another_overwrites = async {
        sleep(secs(1)).await;
        let mut ours = row(&other).await.expect("it was carried out");
        *ours = Employee::grace();
        other.replace(&mut ours).await.unwrap();
    };
    faults.plan(Op::Insert, [Fault::Hang]);
    let (ours, ()) = tokio::join!(
        table.insert(&Employee::ada()).into_future(),
        another_overwrites
    );
    let error = ours.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error:?}");
    let Some(CurrentState::Present(now)) = error.current() else {
        panic!("{error:?}")
    };
    assert!(!now.equals_sent(), "and yet ours was there");

    table.delete(("Sales", "1")).await.unwrap();
    let another_overwrites = async {
        sleep(secs(1)).await;
        let mut ours = row(&other).await.expect("it was carried out");
        *ours = Employee::grace();
        other.replace(&mut ours).await.unwrap();
    };
    faults.plan(Op::Batch, [Fault::Hang]);
    let insert = table.insert(&Employee::ada()).exactly_once().into_future();
    let (ours, ()) = tokio::join!(insert, another_overwrites);
    let mut ours = ours.expect("that is known");
    assert_eq!(ours.name, "Ada");
    // Its version is over, as it is in truth: nobody's change can be lost by it.
    let error = table.replace(&mut ours).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_a_failure_was_told_changes_nothing() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    other.insert(&Employee::grace()).await.unwrap();
    faults.plan(Op::Batch, [Fault::Straggle(secs(50))]);
    let error = table
        .insert(&Employee::ada())
        .exactly_once()
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    // There would be room for it now.
    other.delete(("Sales", "1")).await.unwrap();
    sleep(secs(60)).await;
    assert!(row(&table).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_a_success_was_told_does_not_do_it_again() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    faults.plan(Op::Batch, [Fault::Straggle(secs(50))]);
    table.insert(&Employee::ada()).exactly_once().await.unwrap();
    faults.plan(Op::Batch, [Fault::Straggle(secs(50))]);
    let batch = table
        .batch("Sales")
        .upsert_replace(&Employee::new("2", "Alan", 41));
    batch.exactly_once().await.unwrap();
    other.delete(("Sales", "1")).await.unwrap();
    other.delete(("Sales", "2")).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_all_lost_are_settled_by_the_marker() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Batch, vec![Fault::LoseRequest; 5]);
    let error = table
        .insert(&Employee::ada())
        .exactly_once()
        .await
        .unwrap_err();
    // As an error of this kind says: nothing was changed.
    assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}");
    assert!(row(&table).await.is_none());

    let busy = refusal(500, "OperationTimedOut");
    let mut plan = vec![Fault::CarryOutAndAnswer(busy.clone())];
    plan.extend(vec![Fault::Answer(busy); 4]);
    faults.plan(Op::Batch, plan);
    table.insert(&Employee::ada()).exactly_once().await.unwrap();
    assert!(row(&table).await.is_some());

    // Settling is repeated like any request, and knows its own answer from the operation's.
    for (batches, settled) in [(Fault::LoseRequest, false), (Fault::LoseAnswer, true)] {
        table.delete(("Sales", "1")).await.unwrap();
        let mut plan = vec![batches];
        plan.extend(vec![Fault::LoseRequest; 4]);
        faults.plan(Op::Batch, plan);
        faults.plan(Op::Insert, [Fault::LoseAnswer, Fault::LoseRequest]);
        let outcome = table.insert(&Employee::ada()).exactly_once().await;
        assert_eq!(outcome.is_ok(), settled, "{outcome:?}");
        assert_eq!(row(&table).await.is_some(), settled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_gone_leaves_even_this_unknown() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Batch, vec![Fault::LoseAnswer; 5]);
    faults.plan(Op::Insert, vec![Fault::LoseRequest; 5]);
    let error = table
        .insert(&Employee::ada())
        .exactly_once()
        .await
        .unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    assert!(row(&table).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_does_not_say_of_which_change_is_not_taken_for_the_markers() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let refused = batch_refusal(0, 409, "EntityAlreadyExists");
    let text = String::from_utf8(refused.body().to_vec()).unwrap();
    let (head, _) = refused.into_parts();
    let refused = http::Response::from_parts(head, text.replace("0:Made", "Made").into());
    faults.plan(Op::Batch, [Fault::Answer(refused)]);
    let error = table
        .insert(&Employee::ada())
        .exactly_once()
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert!(row(&table).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_100_has_no_place_for_the_marker() {
    let (_subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let batch = |count: usize| {
        let rows = (0..count).map(|id| Employee::new(&id.to_string(), "Ada", 36));
        let batch = table.batch("Sales");
        rows.fold(batch, |batch, row| batch.insert(&row))
            .exactly_once()
    };
    let error = batch(100).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(format!("{error:?}").contains("99 are left"), "{error:?}");
    assert_eq!(faults.count(Op::Batch), 0);
    let done = batch(99).await.unwrap();
    assert_eq!(done.etags().len(), 99);
}

#[tokio::test(start_paused = true)]
async fn no_query_shows_a_marker() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Batch, [Fault::LoseAnswer]);
    table.insert(&Employee::ada()).exactly_once().await.unwrap();
    assert_eq!(markers(&subject).await, 1);
    let query = || table.query::<Employee>();
    assert_eq!(query().collect().await.unwrap().len(), 1);
    assert_eq!(query().count().await.unwrap(), 1);
    assert_eq!(query().select(|e| e.name).collect().await.unwrap(), ["Ada"]);
    assert_eq!(query().page(None).await.unwrap().items.len(), 1);
    assert_eq!(query().take(5).page(None).await.unwrap().items.len(), 1);
    assert!(query().one().await.unwrap().is_some());
    let unread = || table.query::<DynamicEntity>().odata("RowKey ge '~'");
    assert!(!unread().exists().await.unwrap());
    // A row of a program that happens to be called so is one like any other.
    let named = Employee::new("~tablesdk.once.upon-a-time", "Grimm", 200);
    table.insert(&named).await.unwrap();
    assert_eq!(query().count().await.unwrap(), 2);
}

#[tokio::test]
async fn writes_made_from_one_seed_have_markers_of_their_own() {
    let (subject, table, _) = Subject::with_faults(RetryPolicy::exponential()).await;
    for row in ["1", "2"] {
        // As on two machines that were cloned from one.
        fastrand::seed(7);
        let employee = Employee::new(row, "Ada", 36);
        table
            .insert(&employee)
            .keep_marker(secs(600))
            .await
            .unwrap();
        let stored = table.get(Employee::key("Sales", row)).await.unwrap();
        assert!(stored.is_some(), "{row} was reported as inserted");
    }
    assert_eq!(markers(&subject).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_a_success_is_carried_out_again_once_its_marker_is_gone() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    faults.plan(Op::Batch, [Fault::DuplicateLater(secs(50))]);
    table.insert(&Employee::ada()).exactly_once().await.unwrap();
    let other = subject.other().table("Tests");
    other.delete(("Sales", "1")).await.unwrap();
    sleep(secs(60)).await;
    assert!(row(&table).await.is_some(), "as the guide says");
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_a_success_finds_a_marker_that_is_kept() {
    let (subject, table, faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let other = subject.other().table("Tests");
    let late = || faults.plan(Op::Batch, [Fault::DuplicateLater(secs(50))]);
    late();
    table
        .insert(&Employee::ada())
        .keep_marker(secs(600))
        .await
        .unwrap();
    other.delete(("Sales", "1")).await.unwrap();
    late();
    let batch = table
        .batch("Sales")
        .upsert_replace(&Employee::new("2", "Alan", 41));
    let batch = batch.exactly_once().keep_marker(secs(600));
    batch.await.unwrap();
    other.delete(("Sales", "2")).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 0);
    assert_eq!(markers(&subject).await, 2);
    assert_eq!(faults.count(Op::Delete), 0, "one request less each");
}

#[tokio::test(start_paused = true)]
async fn every_verb_that_has_it_can_keep_its_marker() {
    let (subject, table, _faults) = Subject::with_faults(RetryPolicy::exponential()).await;
    let keep = secs(600);
    let mut row = table
        .insert(&Employee::ada())
        .keep_marker(keep)
        .await
        .unwrap();
    row.age = 37;
    let replace = table.replace(&mut row).keep_marker(keep);
    replace.exactly_once().await.unwrap();
    let mut row = table
        .get::<Employee>(("Sales", "1"))
        .tracked()
        .await
        .unwrap()
        .unwrap();
    row.age = 38;
    let merge = table.merge(&mut row).changed_only();
    merge.keep_marker(keep).await.unwrap();
    let modify = table
        .modify(("Sales", "1"), Employee::grow_older)
        .keep_marker(keep);
    assert_eq!(modify.await.unwrap().age, 39);
    assert!(
        table
            .delete(("Sales", "1"))
            .keep_marker(keep)
            .await
            .unwrap()
    );
    assert_eq!(markers(&subject).await, 5);
}

/// The time that server and client agree on.
#[derive(Clone, Debug)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        let seconds = self.0.load(Ordering::Relaxed);
        Timestamp::UNIX_EPOCH.saturating_add(secs(seconds))
    }
}

/// A server and a client whose time the test moves on, and a table.
async fn by_hand() -> (TableServer, Hand, TableServiceClient, Faults<InProcess>) {
    let hand = Hand(Arc::new(AtomicU64::new(1_700_000_000)));
    let server = TableServer::builder()
        .clock(hand.clone())
        .in_process()
        .unwrap();
    let faults = Faults::new(server.transport());
    let service = client_with(&server, |builder| {
        builder.transport(faults.clone()).clock(hand.clone())
    });
    service.table("Tests").create_table().await.unwrap();
    (server, hand, service, faults)
}

#[tokio::test(start_paused = true)]
async fn markers_that_are_kept_are_swept_after_their_time() {
    let (_server, hand, service, _faults) = by_hand().await;
    let table = service.table("Tests");
    for (id, hours) in [("1", 3), ("2", 2)] {
        let insert = table.insert(&Employee::new(id, "Ada", 36));
        insert.keep_marker(secs(hours * 3600)).await.unwrap();
    }
    let sweep = || table.sweep_markers("Sales").into_future();
    assert_eq!(sweep().await.unwrap(), 0);
    // The server makes the timestamps of one second differ.
    for (after, expected) in [(2 * 3600 - 1, 0), (2, 1), (3598, 0), (2, 1)] {
        hand.0.fetch_add(after, Ordering::Relaxed);
        assert_eq!(sweep().await.unwrap(), expected, "after {after} s more");
    }
    // The age that is asked for holds as well.
    let insert = table.insert(&Employee::new("3", "Ada", 36));
    insert.keep_marker(secs(1)).await.unwrap();
    hand.0.fetch_add(3599, Ordering::Relaxed);
    assert_eq!(sweep().await.unwrap(), 0);
    hand.0.fetch_add(2, Ordering::Relaxed);
    assert_eq!(sweep().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn markers_are_swept_once_they_are_old() {
    let (_server, hand, service, faults) = by_hand().await;
    let table = service.table("Tests");
    let lose = |department: &str, id: &str| {
        faults.plan(Op::Batch, [Fault::LoseAnswer]);
        let mut row = Employee::new(id, "Ada", 36);
        department.clone_into(&mut row.department);
        table.insert(&row).exactly_once()
    };
    for id in ["1", "2", "3"] {
        lose("Sales", id).await.unwrap();
    }
    lose("Legal", "1").await.unwrap();
    let named = Employee::new("~tablesdk.once.upon-a-time", "Grimm", 200);
    table.insert(&named).await.unwrap();
    hand.0.fetch_add(1800, Ordering::Relaxed);
    lose("Sales", "4").await.unwrap();
    hand.0.fetch_add(1801, Ordering::Relaxed);

    let error = table.sweep_markers("Sales").older_than(secs(100)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(table.sweep_markers("Sales").await.unwrap(), 3);
    assert_eq!(table.sweep_markers("Sales").await.unwrap(), 0);
    assert_eq!(
        table
            .sweep_markers("Sales")
            .older_than(secs(1000))
            .await
            .unwrap(),
        1
    );
    assert_eq!(table.sweep_markers("Legal").await.unwrap(), 1);
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 6);
    let error = service.table("Missing").sweep_markers("Sales").await;
    assert!(error.unwrap_err().is_not_found());
    let error = table.sweep_markers("a/b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}
