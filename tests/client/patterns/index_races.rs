//! Writes of entities with entries, beside other writers: what one of them finds of the other.

use std::time::Duration;

use harness::Subject;
use harness::company::indexed::{ByEmail, Employee, checked};
use tablesdk::{ETag, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Faults, Op};
use tokio::time::sleep;

use super::repair::{counts, foreign};

/// A server with two employees, and a client with that policy.
async fn company(retry: RetryPolicy) -> (Subject, TableClient, Faults) {
    let (subject, table, faults) = Subject::with_table(retry).await;
    let ada = Employee::new(1, "Lovelace", Some("ada@contoso.com"));
    for employee in [ada, Employee::new(2, "Hopper", None)] {
        table.insert(&employee).await.unwrap();
    }
    (subject, table, faults)
}

/// A batch that arrives after another client has written the entity changes nothing: the entity's
/// ETag protects the entries.
#[tokio::test(start_paused = true)]
async fn a_late_batch_does_not_undo_a_rival_write() {
    let (_subject, table, faults) = company(RetryPolicy::none()).await;
    let mut ours = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    let mut rival = ours.clone();
    ours.email = None;
    rival.email = Some("rival@contoso.com".to_owned());
    let late = Fault::reset().applied_after(Duration::from_secs(30));
    let injected = faults.next(Op::Batch, late);
    table.replace(&mut ours).await.unwrap_err();
    assert_eq!(injected.hits(), 1);
    table.replace(&mut rival).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    checked(&table).await;
    let found = table.get(ByEmail::key("Sales", "rival@contoso.com")).await;
    assert_eq!(found.unwrap().unwrap().id, 1);
}

/// The error of an entry is not that of its entity: `false` would say that there is no such
/// employee.
#[tokio::test(start_paused = true)]
async fn a_missing_entry_is_not_a_missing_entity() {
    let (_subject, table, faults) = company(RetryPolicy::exponential()).await;
    let ada = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    let entry = ("Sales", "name_Lovelace_000001");
    table.delete(entry).await.unwrap();
    // Nothing is left of the time for a second round: if it is sent, it does not arrive.
    let slow = Fault::delayed_response(Duration::from_secs(2));
    faults
        .on(Op::Batch)
        .inject_each([slow, Fault::no_response()]);
    let delete = table.delete_stored(&ada);
    let error = delete.deadline(Duration::from_millis(2_001)).await;
    let error = error.unwrap_err();
    assert!(error.is_timeout() && !error.is_not_found(), "{error}");
    faults.clear();
    assert!(table.delete_stored(&ada).await.unwrap());
    checked(&table).await;
}

/// Between the reads of an entry and of its entity, the entry is passed on: it always has an owner.
#[tokio::test(start_paused = true)]
async fn follow_finds_the_new_owner_of_an_entry() {
    let (subject, table, faults) = company(RetryPolicy::exponential()).await;
    let mut ada = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    let mut grace = table.get(Employee::key("Sales", 2)).await.unwrap().unwrap();
    let slow = Fault::delay(Duration::from_secs(1));
    let reads = faults.on(Op::QueryEntity).row_key("empid_000001");
    reads.times(1).inject(slow);
    let follow = table.get(ByEmail::key("Sales", "ada@contoso.com")).follow();
    let pass_on = async {
        sleep(Duration::from_millis(500)).await;
        grace.email = ada.email.take();
        let other = subject.other().table("Tests");
        let batch = other.batch("Sales").replace(&mut grace);
        batch.replace(&mut ada).await
    };
    let (found, passed_on) = tokio::join!(follow, pass_on);
    passed_on.unwrap();
    assert_eq!(found.unwrap().expect("it always has an owner").id, 2);
}

/// A program that does not know the index writes the entity before the repair has written its
/// entries.
#[tokio::test(start_paused = true)]
async fn a_repair_mends_the_entries_of_an_entity_that_is_written_meanwhile() {
    let (_subject, table, faults) = company(RetryPolicy::exponential()).await;
    let turing = |name| foreign(3, name, "3@contoso.com");
    table.insert(&turing("Turing")).await.unwrap();
    let slow = faults.next(Op::Batch, Fault::delay(Duration::from_secs(10)));
    let written = async {
        sleep(Duration::from_secs(1)).await;
        let renamed = turing("Mathison");
        table.merge_if(&renamed, ETag::ANY).await.unwrap();
    };
    let repair = async { table.repair::<Employee>().await };
    let (report, ()) = tokio::join!(repair, written);
    assert_eq!((counts(&report.unwrap()), slow.hits()), ((2, 0, 0), 1));
    assert_eq!(checked(&table).await.len(), 3);
}

/// A repair whose response is lost does not claim that nothing was changed.
#[tokio::test(start_paused = true)]
async fn a_repair_without_a_response_is_of_unknown_outcome() {
    let (_subject, table, faults) = company(RetryPolicy::none()).await;
    table.delete(("Sales", "name_Hopper_000002")).await.unwrap();
    let lost = faults.on(Op::Batch).inject(Fault::lost_response());
    let error = table.repair::<Employee>().await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "empid_000002");
    assert_eq!(lost.hits(), 1);
    faults.clear();
    checked(&table).await;
    assert_eq!(table.repair::<Employee>().await.unwrap().mended(), 0);
}
