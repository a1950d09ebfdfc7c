//! Patches of types that are checked first: the requests that they send, and lost responses. In
//! process, on virtual time.

use std::time::Duration;

use harness::Subject;
use harness::outcome::{Found, found};
use harness::proxy::{Reply, foreign};
use tablesdk::{
    DynamicEntity, ETag, Error, ErrorCode, ErrorKind, RetryPolicy, TableClient, TableEntity,
};
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use crate::{Employee, start};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(entity_type = "Desk")]
struct Desk {
    #[table(partition_key)]
    room: String,
    #[table(row_key)]
    id: String,
    floor: i32,
    color: Option<String>,
}

fn desk(floor: i32) -> Desk {
    Desk {
        room: "A".into(),
        id: "1".into(),
        floor,
        color: None,
    }
}

async fn patch(table: &TableClient) -> Result<ETag, Error> {
    table.patch(Desk::key("A", "1")).set(|e| e.floor, 2).await
}

async fn stored(table: &TableClient) -> Desk {
    let found = table.get(Desk::key("A", "1")).await.unwrap();
    found.unwrap().into_inner()
}

#[tokio::test(start_paused = true)]
async fn a_patch_reads_first_only_if_the_type_is_stored() {
    let (subject, table, _) = start().await;
    table.insert(&desk(1)).await.unwrap();
    table.insert(&Employee::ada()).await.unwrap();
    let journal = subject.server().journal();
    let key = Employee::key("Sales", "1");
    table.patch(key).set(|e| e.age, 37).await.unwrap();
    patch(&table).await.unwrap();
    let requests = journal.requests().into_iter();
    let ops: Vec<_> = requests.map(|request| request.op.unwrap()).collect();
    assert_eq!(ops, [Op::MergeEntity, Op::QueryEntity, Op::MergeEntity]);
}

#[tokio::test(start_paused = true)]
async fn a_patch_starts_over_if_the_entity_changed_after_the_check() {
    let (subject, table, faults) = start().await;
    table.insert(&desk(1)).await.unwrap();
    let other = subject.other().table("Tests");
    let color = Some("red".to_owned());
    faults.next(Op::MergeEntity, Fault::delay(Duration::from_secs(1)));
    let between = async {
        sleep(Duration::from_millis(500)).await;
        let color = color.clone();
        other.upsert_replace(&Desk { color, ..desk(9) }).await
    };
    let (patched, between) = tokio::join!(patch(&table), between);
    between.unwrap();
    patched.unwrap();
    assert_eq!(stored(&other).await, Desk { color, ..desk(2) });

    // Into an entity of another type: the second check finds it.
    faults.next(Op::MergeEntity, Fault::delay(Duration::from_secs(1)));
    let between = async {
        sleep(Duration::from_millis(500)).await;
        other.upsert_replace(&DynamicEntity::new("A", "1")).await
    };
    let (patched, between) = tokio::join!(patch(&table), between);
    between.unwrap();
    assert_eq!(patched.unwrap_err().kind(), ErrorKind::Data);
}

#[tokio::test(start_paused = true)]
async fn a_checked_patch_whose_response_was_lost_succeeds() {
    for fault in [Fault::lost_response(), Fault::reset()] {
        let (_subject, table, faults) = start().await;
        table.insert(&desk(1)).await.unwrap();
        faults.next(Op::MergeEntity, fault);
        patch(&table).await.unwrap();
        assert_eq!(stored(&table).await, desk(2));
    }
    for status in [503, 200] {
        let (_subject, table, proxy) = Subject::behind_proxy(RetryPolicy::exponential()).await;
        table.insert(&desk(1)).await.unwrap();
        proxy.plan(Op::MergeEntity, [Reply::Replace(foreign(status))]);
        patch(&table).await.unwrap();
        assert_eq!(stored(&table).await, desk(2));
    }
}

#[tokio::test]
async fn a_patch_with_an_etag_that_no_header_can_have_is_not_sent() {
    let (_subject, table, _) = start().await;
    let patch = table.patch(Desk::key("A", "1")).set(|e| e.floor, 2);
    let error = patch.if_match(ETag::from_opaque("a\nb")).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Input, 0));
}

/// The first round may have been carried out, whatever the rounds after it find.
#[tokio::test(start_paused = true)]
async fn a_patch_that_cannot_start_over_after_a_lost_response_is_ambiguous() {
    let (subject, table, faults) = start().await;
    table.insert(&desk(1)).await.unwrap();
    let other = subject.other().table("Tests");
    faults.next(Op::MergeEntity, Fault::lost_response());
    // After the check and the read after the write: the check of the second round.
    let slow = Fault::delay(Duration::from_secs(5));
    faults.on(Op::QueryEntity).nth(3).inject(slow);
    let between = async {
        sleep(Duration::from_secs(4)).await;
        other.delete(Desk::key("A", "1")).await
    };
    let (patched, deleted) = tokio::join!(patch(&table), between);
    assert!(deleted.unwrap());
    assert_eq!(found(&patched.unwrap_err()), Found::Missing);

    // A round that is known to have failed is no such round.
    other.insert(&desk(1)).await.unwrap();
    let changed = Fault::error(ErrorCode::UpdateConditionNotSatisfied);
    faults.on(Op::MergeEntity).times(16).inject(changed);
    let error = patch(&table).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(stored(&other).await, desk(1));
}

#[tokio::test(start_paused = true)]
async fn a_patch_in_a_batch_is_conditional_on_the_version_that_was_checked() {
    let (subject, table, faults) = start().await;
    table.insert(&desk(1)).await.unwrap();
    let other = subject.other().table("Tests");
    let batch = || {
        let batch = table.batch("A");
        batch.patch(Desk::key("A", "1"), |patch| patch.set(|e| e.floor, 2))
    };
    faults.next(Op::Batch, Fault::delay(Duration::from_secs(1)));
    let between = async {
        sleep(Duration::from_millis(500)).await;
        other.upsert_replace(&desk(9)).await
    };
    let (done, between) = tokio::join!(batch().into_future(), between);
    between.unwrap();
    let error = done.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_eq!(error.batch_index(), Some(0));
    assert_eq!(stored(&other).await, desk(9));

    faults.next(Op::Batch, Fault::lost_response());
    assert_eq!(found(&batch().await.unwrap_err()), Found::Equal);
}
