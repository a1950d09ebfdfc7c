//! `exactly_once`: where an ordinary write has an ambiguous outcome, this write has a definite one,
//! and its result stays true when lost requests arrive later. In process, on virtual time.

use harness::outcome::{Found, found};
use harness::proxy::{Reply, batch_refusal};
use harness::{Subject, client};
use http::Response;
use tablesdk::{DynamicEntity, ErrorKind, RetryPolicy, TableServiceClient};
use tablesdk_server::testing::{Fault, Op, VirtualClock};
use tablesdk_server::{ErrorCode, TableServer};
use tokio::time::sleep;

use crate::{Employee, on_both_transports, secs, start};

const BATCH: Op = Op::Batch;

fn alan() -> Employee {
    Employee::new("2", "Alan", 41)
}

/// The number of stored markers. The client itself must not return them.
async fn markers(subject: &Subject) -> usize {
    let query = subject.other().table("Tests").query::<DynamicEntity>();
    for entity in query.collect().await.unwrap() {
        assert!(!entity.row_key().starts_with('~'));
    }
    let stored = subject.server().dump().unwrap();
    stored.matches("RowKey='~tablesdk.once.").count()
}

#[tokio::test(start_paused = true)]
async fn every_verb_deletes_its_marker() {
    let (subject, table, _) = start().await;
    let journal = subject.server().journal();
    let insert = table.insert(&Employee::ada()).exactly_once();
    let mut ada = insert.await.unwrap();
    ada.age = 37;
    table.replace(&mut ada).exactly_once().await.unwrap();
    ada.email = Some("ada@contoso.com".to_owned());
    table.merge(&mut ada).exactly_once().await.unwrap();
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    let mut ada = modify.exactly_once().await.unwrap();
    assert_eq!((ada.age, ada.email.is_some()), (38, true));
    let batch = table.batch("Sales").insert(&alan());
    let done = batch.replace(&mut ada).exactly_once().await.unwrap();
    assert_eq!(done.etags().len(), 2);
    // The ETags are those of the changes, not of the marker.
    table.replace(&mut ada).await.unwrap();
    assert!(table.delete_stored(&ada).exactly_once().await.unwrap());
    let delete = || table.delete(("Sales", "2")).exactly_once();
    assert!(delete().await.unwrap());
    assert!(!delete().await.unwrap());
    let hire = table.transaction("Sales", async |tx| {
        tx.upsert_merge(&Employee::ada());
        Ok(())
    });
    hire.exactly_once().await.unwrap();
    assert_eq!(markers(&subject).await, 0);
    // One more request each, except for the delete that changed nothing.
    let count = |op| journal.requests().op(op).count();
    assert_eq!((count(BATCH), count(Op::DeleteEntity)), (9, 8));
}

on_both_transports! {
    async fn rejections_are_those_of_the_ordinary_verbs(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Employee::ada()).exactly_once().await.unwrap();
        let mut stale = ada.clone();
        ada.age = 37;
        table.replace(&mut ada).exactly_once().await.unwrap();
        table.merge(&mut ada).exactly_once().await.unwrap();
        for (error, operation, code) in [
            (table.insert(&Employee::ada()).exactly_once().await.unwrap_err(), "insert entity", "EntityAlreadyExists"),
            (table.replace(&mut stale).exactly_once().await.unwrap_err(), "replace entity", "UpdateConditionNotSatisfied"),
            (table.delete_stored(&stale).exactly_once().await.unwrap_err(), "delete entity", "UpdateConditionNotSatisfied"),
        ] {
            assert_eq!(error.code().unwrap().as_str(), code, "{error:?}");
            assert_eq!(error.key().unwrap().row_key().as_str(), "1");
            assert_eq!((error.operation(), error.batch_index(), error.attempts()), (Some(operation), None, 1));
        }
        let batch = table.batch("Sales").upsert_merge(&alan()).insert(&Employee::ada());
        let error = batch.exactly_once().await.unwrap_err();
        assert!(error.is_conflict(), "{error:?}");
        assert_eq!((error.batch_index(), error.operation()), (Some(1), Some("insert entity")));
        assert!(table.delete_stored(&ada).exactly_once().await.unwrap());
        assert!(!table.delete(("Sales", "2")).exactly_once().await.unwrap());
        assert_eq!(table.query::<DynamicEntity>().count().await.unwrap(), 0);

        let missing = subject.service.table("Missing");
        for error in [
            missing.insert(&Employee::ada()).exactly_once().await.unwrap_err(),
            missing.delete(("Sales", "1")).exactly_once().await.unwrap_err(),
        ] {
            assert_eq!(error.code().unwrap().as_str(), "TableNotFound");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_response_the_etag_is_the_current_one() {
    let (subject, table, faults) = start().await;
    for fault in [Fault::lost_response(), Fault::duplicate()] {
        let mut other = table.insert(&alan()).await.unwrap();
        let plan = || faults.next(BATCH, fault.clone());
        plan();
        let insert = table.insert(&Employee::ada()).exactly_once();
        let mut ada = insert.await.unwrap();
        plan();
        ada.age = 37;
        table.replace(&mut ada).exactly_once().await.unwrap();
        assert_eq!(Employee::find(&table).await.unwrap(), ada, "{fault:?}");
        plan();
        other.age = 42;
        let batch = table.batch("Sales").replace(&mut other);
        let done = batch.delete_stored(&ada).exactly_once().await.unwrap();
        assert_eq!(done.etags(), [Some(other.etag().clone()), None]);
        table.delete_stored(&other).await.unwrap();
    }
    // The markers stay, since a lost request may still arrive; no query returns them.
    assert_eq!(markers(&subject).await, 2 * 3);
}

#[tokio::test(start_paused = true)]
async fn a_merge_whose_response_was_lost_returns_an_old_etag() {
    let (_subject, table, faults) = start().await;
    let mut ada = table.insert(&Employee::ada()).await.unwrap();
    ada.age = 37;
    faults.next(BATCH, Fault::lost_response());
    table.merge(&mut ada).exactly_once().await.unwrap();
    assert_eq!(Employee::find(&table).await.unwrap().age, 37);
    // Another client may have written the properties that were not sent: the next write finds out,
    // or is rejected.
    if let Err(error) = table.replace(&mut ada).await {
        assert!(error.is_precondition_failed(), "{error:?}");
    }
}

/// The request gets no response in time. Meanwhile another client writes an entity with the same
/// key.
#[tokio::test(start_paused = true)]
async fn what_another_client_writes_meanwhile_does_not_hide_the_outcome() {
    let no_response = Fault::no_response;
    for (fault, others, expected) in [
        (no_response(), Employee::ada(), Found::Equal),
        (no_response().applied(), Employee::grace(), Found::Different),
    ] {
        let (subject, table, faults) = start().await;
        let other = subject.other().table("Tests");
        let another_writes = async || {
            sleep(secs(1)).await;
            other.upsert_replace(&others).await.unwrap();
        };
        faults.next(Op::InsertEntity, fault.clone());
        let insert = table.insert(&Employee::ada()).into_future();
        let (ours, ()) = tokio::join!(insert, another_writes());
        assert_eq!(found(&ours.unwrap_err()), expected);

        table.delete(("Sales", "1")).await.unwrap();
        faults.next(BATCH, fault);
        let insert = table.insert(&Employee::ada()).exactly_once().into_future();
        let (ours, ()) = tokio::join!(insert, another_writes());
        if expected == Found::Equal {
            let error = ours.unwrap_err();
            assert!(error.is_conflict(), "{error:?}");
            continue;
        }
        let mut ours = ours.unwrap();
        assert_eq!(ours.name, "Ada");
        // Its ETag is out of date, so it cannot overwrite the other client's change.
        let error = table.replace(&mut ours).await.unwrap_err();
        assert!(error.is_precondition_failed(), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_the_failure_changes_nothing() {
    let (subject, table, faults) = start().await;
    let other = subject.other().table("Tests");
    other.insert(&Employee::grace()).await.unwrap();
    faults.next(BATCH, Fault::reset().applied_after(secs(50)));
    let insert = table.insert(&Employee::ada()).exactly_once();
    let error = insert.await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    // Without the marker, the late request would now succeed.
    other.delete(("Sales", "1")).await.unwrap();
    sleep(secs(60)).await;
    assert!(Employee::find(&table).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_the_success_changes_nothing() {
    let (subject, table, faults) = start().await;
    let other = subject.other().table("Tests");
    faults.next(BATCH, Fault::reset().applied_after(secs(50)));
    table.insert(&Employee::ada()).exactly_once().await.unwrap();
    faults.next(BATCH, Fault::reset().applied_after(secs(50)));
    let batch = table.batch("Sales").upsert_replace(&alan());
    batch.exactly_once().await.unwrap();
    other.delete(("Sales", "1")).await.unwrap();
    other.delete(("Sales", "2")).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_request_that_cancels_a_write_may_be_lost_as_well() {
    let (_subject, table, faults) = start().await;
    // It is retried as well, and its own marker is distinguished from that of the operation.
    for (first, succeeds) in [(Fault::reset(), false), (Fault::lost_response(), true)] {
        table.delete(("Sales", "1")).await.unwrap();
        faults.next(BATCH, first);
        faults.on(BATCH).times(6).inject(Fault::reset());
        faults
            .on(Op::InsertEntity)
            .inject_each([Fault::lost_response(), Fault::reset()]);
        let outcome = table.insert(&Employee::ada()).exactly_once().await;
        assert_eq!(outcome.is_ok(), succeeds, "{outcome:?}");
        assert_eq!(Employee::find(&table).await.is_some(), succeeds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_reached_leaves_the_outcome_ambiguous() {
    let (_subject, table, faults) = start().await;
    faults.on(BATCH).times(7).inject(Fault::lost_response());
    faults.on(Op::InsertEntity).times(7).inject(Fault::reset());
    let insert = table.insert(&Employee::ada()).exactly_once();
    let error = insert.await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    assert!(Employee::find(&table).await.is_some());
}

/// An ordinary upsert succeeds then. This one may be carried out once more, over what another
/// client writes meanwhile.
#[tokio::test(start_paused = true)]
async fn an_equal_entity_does_not_show_that_an_upsert_is_done_once() {
    let (_subject, table, faults) = start().await;
    let done = Fault::error(ErrorCode::OperationTimedOut).applied();
    faults.on(BATCH).times(7).inject(done);
    let busy = Fault::error(ErrorCode::ServerBusy);
    faults.on(Op::InsertEntity).times(7).inject(busy);
    let upsert = table.upsert_replace(&Employee::ada()).exactly_once();
    let error = upsert.await.unwrap_err();
    assert_eq!(found(&error), Found::Equal);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_without_an_index_is_not_that_of_the_marker() {
    let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
    let (head, body) = batch_refusal(0, 409, "EntityAlreadyExists").into_parts();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let refused = Response::from_parts(head, text.replace("0:Made", "Made").into());
    proxy.plan(BATCH, [Reply::Respond(refused)]);
    let insert = table.insert(&Employee::ada()).exactly_once();
    let error = insert.await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert!(Employee::find(&table).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_99_changes_besides_the_marker() {
    let (subject, table, _) = start().await;
    let journal = subject.server().journal();
    let batch = |count: usize| {
        let employees = (0..count).map(|id| Employee::new(&id.to_string(), "Ada", 36));
        let batch = table.batch("Sales").exactly_once();
        employees.fold(batch, |batch, employee| batch.insert(&employee))
    };
    let error = batch(100).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(format!("{error:?}").contains("99 are left"), "{error:?}");
    assert!(journal.requests().is_empty());
    assert_eq!(batch(99).await.unwrap().etags().len(), 99);
}

#[tokio::test(start_paused = true)]
async fn no_query_returns_a_marker() {
    let (subject, table, faults) = start().await;
    faults.next(BATCH, Fault::lost_response());
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
    // Only the row key of this entity looks like a marker's.
    let named = Employee::new("~tablesdk_once.upon-a-time", "Grimm", 200);
    table.insert(&named).await.unwrap();
    assert_eq!(query().count().await.unwrap(), 2);
}

#[tokio::test]
async fn clients_with_equal_random_numbers_have_different_markers() {
    let (subject, table, _) = start().await;
    for employee in [Employee::ada(), alan()] {
        fastrand::seed(7);
        let insert = table.insert(&employee).exactly_once_for(secs(600));
        insert.await.unwrap();
        let key = Employee::key("Sales", &*employee.id);
        assert!(table.get(key).await.unwrap().is_some());
    }
    assert_eq!(markers(&subject).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_is_executed_again_without_a_kept_marker() {
    let (subject, table, faults) = start().await;
    let (other, journal) = (subject.other().table("Tests"), subject.server().journal());
    let late = || faults.next(BATCH, Fault::late_duplicate(secs(50)));
    late();
    table.insert(&Employee::ada()).exactly_once().await.unwrap();
    other.delete(("Sales", "1")).await.unwrap();
    sleep(secs(60)).await;
    assert!(Employee::find(&table).await.is_some(), "as the guide says");

    other.delete(("Sales", "1")).await.unwrap();
    late();
    let insert = table.insert(&Employee::ada()).exactly_once_for(secs(600));
    insert.await.unwrap();
    other.delete(("Sales", "1")).await.unwrap();
    late();
    let batch = table.batch("Sales").upsert_replace(&alan()).exactly_once();
    batch.exactly_once_for(secs(600)).await.unwrap();
    other.delete(("Sales", "2")).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 0);
    // The first late duplicate stored its marker again.
    assert_eq!(markers(&subject).await, 1 + 2);
    let of_markers = journal.requests().op(Op::DeleteEntity).filter(|delete| {
        let key = &delete.entities[0].key;
        key.row_key().as_str().starts_with('~')
    });
    assert_eq!(of_markers.count(), 1, "only of the first marker");
}

#[tokio::test(start_paused = true)]
async fn every_verb_can_keep_its_marker() {
    let (subject, table, _faults) = start().await;
    let keep = secs(600);
    let insert = table.insert(&Employee::ada()).exactly_once_for(keep);
    let mut ada = insert.await.unwrap();
    ada.age = 37;
    let replace = table.replace(&mut ada).exactly_once_for(keep);
    replace.exactly_once().await.unwrap();
    let get = table.get::<Employee>(("Sales", "1")).tracked();
    let mut ada = get.await.unwrap().unwrap();
    ada.age = 38;
    let merge = table.merge(&mut ada).changed_only();
    merge.exactly_once_for(keep).await.unwrap();
    let modify = table.modify(("Sales", "1"), Employee::grow_older);
    assert_eq!(modify.exactly_once_for(keep).await.unwrap().age, 39);
    let delete = table.delete(("Sales", "1")).exactly_once_for(keep);
    assert!(delete.await.unwrap());
    let hire = table.transaction("Sales", async |tx| {
        tx.upsert_merge(&Employee::ada());
        Ok(())
    });
    hire.exactly_once_for(keep).exactly_once().await.unwrap();
    assert_eq!(markers(&subject).await, 6);
}

/// A server and a client whose time the test advances.
async fn with_clock() -> (TableServer, VirtualClock, TableServiceClient) {
    let server = TableServer::in_process();
    let clock = server.clock();
    clock.freeze();
    let service = client(&server);
    service.table("Tests").create_table().await.unwrap();
    (server, clock, service)
}

#[tokio::test(start_paused = true)]
async fn kept_markers_are_cleaned_up_after_their_time() {
    let (_server, clock, service) = with_clock().await;
    let table = service.table("Tests");
    for (id, hours) in [("1", 3), ("2", 2)] {
        let insert = table.insert(&Employee::new(id, "Ada", 36));
        insert.exactly_once_for(secs(hours * 3600)).await.unwrap();
    }
    let clean_up = async || table.clean_up_markers("Sales").await.unwrap();
    assert_eq!(clean_up().await, 0);
    // The timestamps of the server differ within a second.
    for (after, expected) in [(2 * 3600 - 1, 0), (2, 1), (3598, 0), (2, 1)] {
        clock.advance(secs(after));
        assert_eq!(clean_up().await, expected, "after {after} s more");
    }
    // A marker is at least as old as the call demands.
    let insert = table.insert(&Employee::new("3", "Ada", 36));
    insert.exactly_once_for(secs(1)).await.unwrap();
    clock.advance(secs(3599));
    assert_eq!(clean_up().await, 0);
    clock.advance(secs(2));
    assert_eq!(clean_up().await, 1);
}

#[tokio::test(start_paused = true)]
async fn old_markers_are_cleaned_up() {
    let (server, clock, service) = with_clock().await;
    let (table, faults) = (service.table("Tests"), server.faults());
    let lose = |department: &str, id: &str| {
        faults.next(BATCH, Fault::lost_response());
        let mut employee = Employee::new(id, "Ada", 36);
        department.clone_into(&mut employee.department);
        table.insert(&employee).exactly_once()
    };
    for id in ["1", "2", "3"] {
        lose("Sales", id).await.unwrap();
    }
    lose("Legal", "1").await.unwrap();
    let named = Employee::new("~tablesdk_once.upon-a-time", "Grimm", 200);
    table.insert(&named).await.unwrap();
    clock.advance(secs(1800));
    lose("Sales", "4").await.unwrap();
    clock.advance(secs(1801));

    let clean_up = |partition: &str| table.clean_up_markers(partition);
    let error = clean_up("Sales").older_than(secs(100)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(clean_up("Sales").await.unwrap(), 3);
    assert_eq!(clean_up("Sales").await.unwrap(), 0);
    let younger = clean_up("Sales").older_than(secs(1000)).await;
    assert_eq!(younger.unwrap(), 1);
    assert_eq!(clean_up("Legal").await.unwrap(), 1);
    assert_eq!(table.query::<Employee>().count().await.unwrap(), 6);
    let error = service.table("Missing").clean_up_markers("Sales").await;
    assert!(error.unwrap_err().is_table_not_found());
    let error = clean_up("a/b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
}
