//! The entities that a batch or a transaction has written, as its result returns them: those that a
//! read would return, without a request.

use std::sync::atomic::{AtomicU32, Ordering};

use harness::Subject;
use tablesdk::action::BatchResult;
use tablesdk::{DynamicEntity, ETag, RetryPolicy, Stored, TableClient, TableEntity, Timestamp};
use tablesdk_server::testing::{Fault, Op};

use crate::{Employee, on_both_transports};

fn alan() -> Employee {
    Employee::new("2", "Alan", 41)
}

fn key(id: &str) -> tablesdk::key::Key<Employee> {
    Employee::key("Sales", id)
}

/// The entity with that id as the batch has written it, after a check that a read returns the same.
async fn written(table: &TableClient, result: &BatchResult, id: &str) -> Stored<Employee> {
    let written = result.stored(key(id)).unwrap().expect("it was written");
    let read = table.get(key(id)).await.unwrap().expect("it was written");
    assert_eq!(written, read);
    written
}

/// Sees its own version and time.
#[derive(Debug, PartialEq, TableEntity)]
struct Dated {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(etag)]
    etag: Option<ETag>,
    #[table(timestamp)]
    at: Option<Timestamp>,
}

on_both_transports! {
    async fn a_transaction_returns_the_versions_that_it_wrote(subject: Subject) {
        let table = subject.table().await;
        for employee in [Employee::ada(), Employee::new("4", "Edsger", 72), Employee::new("5", "Grace", 85)] {
            table.insert(&employee).await.unwrap();
        }
        let change = table.transaction("Sales", async |tx| {
            // Changes that were not read are sent last, and the checked entity is not a change.
            tx.insert(&alan()).delete(key("5"));
            let mut ada = tx.get(key("1")).await?.ok_or("she left")?;
            tx.get(key("4")).await?.ok_or("he left")?;
            ada.age = 37;
            tx.replace(ada).upsert_merge(&Employee::new("3", "Barbara", 50));
            Ok("done")
        });
        let (value, result) = change.with_etags().await.unwrap();
        let now = async |id| table.get(key(id)).await.unwrap().unwrap().etag().clone();
        let [of_alan, None, of_ada, of_barbara] = result.etags() else {
            panic!("{result:?}")
        };
        assert_eq!(value, "done");
        assert_eq!(*of_alan, Some(now("2").await));
        assert_eq!(*of_ada, Some(now("1").await));
        assert_eq!(*of_barbara, Some(now("3").await));

        let mut ada = written(&table, &result, "1").await;
        assert_eq!((ada.age, ada.etag()), (37, of_ada.as_ref().unwrap()));
        ada.age = 38;
        table.replace(&mut ada).await.unwrap();
        let alan = written(&table, &result, "2").await;
        assert!(table.delete_stored(&alan).await.unwrap());
        for (id, why) in [("3", "merged"), ("4", "checked"), ("5", "deleted"), ("6", "not there")] {
            assert!(result.stored(key(id)).unwrap().is_none(), "{why}");
        }
        // It is of an older version now.
        let mut old = result.stored(key("1")).unwrap().unwrap();
        assert!(table.replace(&mut old).await.unwrap_err().is_precondition_failed());
        let any: Stored<DynamicEntity> = result.stored(("Sales", "1")).unwrap().unwrap();
        assert_eq!(any.properties().read::<i32>("Age").unwrap(), 37);
    }

    async fn a_transaction_without_changes_returns_no_version(subject: Subject) {
        let table = subject.table().await;
        table.insert(&Employee::ada()).await.unwrap();
        let reads = table.transaction("Sales", async |tx| Ok(tx.get(key("1")).await?.is_some()));
        let (is_there, result) = reads.rounds(1).with_etags().exactly_once().await.unwrap();
        assert!(is_there && result.etags().is_empty());
        assert!(result.stored(key("1")).unwrap().is_none());
    }

    async fn a_batch_returns_the_entities_that_it_wrote(subject: Subject) {
        let table = subject.table().await;
        let mut ada = table.insert(&Employee::ada()).await.unwrap();
        ada.age = 37;
        let batch = table.batch("Sales").replace(&mut ada).upsert_replace(&alan()).exactly_once();
        let result = batch.await.unwrap();
        assert_eq!(written(&table, &result, "1").await, ada);
        written(&table, &result, "2").await;
        let patch = table.batch("Sales").patch(key("2"), |patch| patch.set(|e| e.age, 42));
        let result = patch.merge(&mut ada).await.unwrap();
        assert!(result.etags().iter().all(Option::is_some));
        assert!(result.stored(key("2")).unwrap().is_none(), "patched");
        assert!(result.stored(key("1")).unwrap().is_none(), "merged");
    }

    async fn fields_for_version_and_time_are_those_of_the_write(subject: Subject) {
        let table = subject.table().await;
        let dated = Dated { department: "Sales".into(), id: "1".into(), etag: None, at: None };
        let result = table.batch("Sales").insert(&dated).await.unwrap();
        let written = result.stored(Dated::key("Sales", "1")).unwrap().unwrap();
        let read = table.get(Dated::key("Sales", "1")).await.unwrap().unwrap();
        assert_eq!((&written.etag, written.at), (&Some(read.etag().clone()), read.timestamp()));
    }
}

/// The result is that of the round that was carried out, also where only the marker shows that it
/// was.
#[tokio::test(start_paused = true)]
async fn the_versions_after_a_lost_response_are_the_current_ones() {
    let (subject, table, faults) = Subject::with_table(RetryPolicy::exponential()).await;
    table.insert(&Employee::ada()).await.unwrap();
    let other = subject.other().table("Tests");
    let rounds = AtomicU32::new(0);
    faults.on(Op::Batch).nth(2).inject(Fault::lost_response());
    let change = table.transaction("Sales", async |tx| {
        let mut ada = tx.get(key("1")).await?.ok_or("she left")?;
        if rounds.fetch_add(1, Ordering::Relaxed) == 0 {
            other.modify(key("1"), Employee::grow_older).await?;
        }
        ada.age += 1;
        tx.insert(&alan()).replace(ada);
        Ok(())
    });
    let ((), result) = change.exactly_once().with_etags().await.unwrap();
    assert_eq!(rounds.load(Ordering::Relaxed), 2);
    assert_eq!(written(&table, &result, "1").await.age, 38);
    written(&table, &result, "2").await;
}
