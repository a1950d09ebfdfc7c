//! Requests that arrive late or twice: these tests check what the guides state about them. In
//! process, on virtual time.

use std::time::Duration;

use tablesdk::TableClient;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use crate::{Employee, start};

const LATE: Duration = Duration::from_secs(50);
const LATER: Duration = Duration::from_secs(60);

async fn assert_stored(table: &TableClient, name: Option<&str>) {
    let found = Employee::find(table).await;
    assert_eq!(found.map(|found| found.name.clone()).as_deref(), name);
}

#[tokio::test(start_paused = true)]
async fn a_late_unconditional_write_overwrites_a_newer_one() {
    for is_merge in [false, true] {
        let (_subject, table, faults) = start().await;
        faults
            .on_writes()
            .times(1)
            .inject(Fault::reset().applied_after(LATE));
        if is_merge {
            table.upsert_merge(&Employee::ada()).await.unwrap();
        } else {
            table.upsert_replace(&Employee::ada()).await.unwrap();
        }
        table.upsert_replace(&Employee::grace()).await.unwrap();
        assert_stored(&table, Some("Grace")).await;
        sleep(LATER).await;
        assert_stored(&table, Some("Ada")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_delete_deletes_a_newer_entity() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    faults.next(Op::DeleteEntity, Fault::reset().applied_after(LATE));
    assert!(table.delete(("Sales", "1")).await.unwrap());
    table.insert(&Employee::grace()).await.unwrap();
    sleep(LATER).await;
    assert_stored(&table, None).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_conditional_write_is_rejected() {
    let (_subject, table, faults) = start().await;
    let mut stored = table.insert(&Employee::ada()).await.unwrap();
    stored.age = 37;
    faults.next(Op::UpdateEntity, Fault::reset().applied_after(LATE));
    table.replace(&mut stored).await.unwrap();
    *stored = Employee::grace();
    table.replace(&mut stored).await.unwrap();
    sleep(LATER).await;
    assert_stored(&table, Some("Grace")).await;

    faults.next(Op::DeleteEntity, Fault::reset().applied_after(LATE));
    assert!(table.delete_stored(&stored).await.unwrap());
    table.insert(&Employee::ada()).await.unwrap();
    sleep(LATER).await;
    assert_stored(&table, Some("Ada")).await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_request_is_reported_as_a_failure() {
    let (_subject, table, faults) = start().await;
    let twice = |op| faults.next(op, Fault::duplicate());
    twice(Op::InsertEntity);
    let error = table.insert(&Employee::ada()).await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    let mut stored = Employee::find(&table).await.unwrap();
    *stored = Employee::grace();
    twice(Op::UpdateEntity);
    let error = table.replace(&mut stored).await.unwrap_err();
    assert!(error.is_precondition_failed(), "{error:?}");
    assert_stored(&table, Some("Grace")).await;

    twice(Op::DeleteEntity);
    assert!(!table.delete(("Sales", "1")).await.unwrap());
    assert_stored(&table, None).await;

    twice(Op::Batch);
    let batch = table.batch("Sales").insert(&Employee::ada());
    assert!(batch.await.unwrap_err().is_conflict());
    assert_stored(&table, Some("Ada")).await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_write_makes_modify_and_transactions_change_twice() {
    let (_subject, table, faults) = start().await;
    table.insert(&Employee::ada()).await.unwrap();
    let modify = || table.modify(("Sales", "1"), Employee::grow_older);
    faults.next(Op::UpdateEntity, Fault::duplicate());
    assert_eq!(modify().await.unwrap().age, 38);

    let transaction = || {
        table.transaction("Sales", async |tx| {
            let mut ada = tx
                .get(Employee::key("Sales", "1"))
                .await?
                .ok_or("inserted")?;
            ada.age += 1;
            tx.replace(ada);
            Ok(())
        })
    };
    faults.next(Op::Batch, Fault::duplicate());
    transaction().await.unwrap();
    assert_eq!(Employee::find(&table).await.unwrap().age, 40);

    faults.on(Op::Batch).times(2).inject(Fault::duplicate());
    assert_eq!(modify().exactly_once().await.unwrap().age, 41);
    transaction().exactly_once().await.unwrap();
    assert_eq!(Employee::find(&table).await.unwrap().age, 42);
}
