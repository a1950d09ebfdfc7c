//! Faults at each request of a write with entries: the entries are right after each, whatever the client is left with.
//!
//! A failure of the random test prints its seed; `TABLESDK_INDEX_SEED` runs that seed.

use std::time::Duration;

use fastrand::Rng;
use harness::{client_with, seeds};
use tablesdk::{Error, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::entity::{ByEmail, Employee, checked};
use super::faults::{self, random_history};

/// A server with two employees, and a client with that policy.
async fn company(retry: RetryPolicy) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(retry)).table("Company");
    table.create_table().await.unwrap();
    for (id, name, email) in [
        (1, "Lovelace", Some("ada@contoso.com")),
        (2, "Hopper", None),
    ] {
        table.insert(&Employee::new(id, name, email)).await.unwrap();
    }
    (server, table)
}

const WRITES: [&str; 8] = [
    "insert",
    "insert of a taken entry",
    "replace that moves",
    "replace that keeps",
    "modify",
    "delete",
    "batch that passes an entry on",
    "transaction",
];

async fn write(table: &TableClient, name: &str) -> Result<(), Error> {
    let get = async |id: u32| {
        table
            .get(Employee::key("Sales", id))
            .await
            .map(|found| found.expect("inserted"))
    };
    match name {
        "insert" => {
            table
                .insert(&Employee::new(3, "Turing", Some("alan@contoso.com")))
                .await?;
        }
        "insert of a taken entry" => {
            table
                .insert(&Employee::new(3, "Turing", Some("ada@contoso.com")))
                .await?;
        }
        "replace that moves" => {
            let mut ada = get(1).await?;
            ada.email = Some("lovelace@contoso.com".to_owned());
            ada.last_name = "King".into();
            table.replace(&mut ada).await?;
        }
        "replace that keeps" => {
            let mut ada = get(1).await?;
            ada.age += 1;
            table.replace(&mut ada).await?;
        }
        "modify" => {
            let named = table.modify(Employee::key("Sales", 2), |e| {
                e.email = Some("grace@contoso.com".to_owned());
                Ok(())
            });
            named.await?;
        }
        "delete" => {
            let ada = get(1).await?;
            table.delete_stored(&ada).await?;
        }
        "batch that passes an entry on" => {
            let (mut ada, mut grace) = (get(1).await?, get(2).await?);
            grace.email = ada.email.take();
            table
                .batch("Sales")
                .replace(&mut grace)
                .replace(&mut ada)
                .await?;
        }
        "transaction" => {
            let swapped = table.transaction("Sales", async |tx| {
                let ada = tx.get(Employee::key("Sales", 1)).await?.ok_or("inserted")?;
                let mut grace = tx.get(Employee::key("Sales", 2)).await?.ok_or("inserted")?;
                grace.email.clone_from(&ada.email);
                tx.delete_stored(&ada).replace(grace);
                Ok(())
            });
            swapped.await?;
        }
        _ => unreachable!("{name}"),
    }
    Ok(())
}

/// Runs each write with the fault at each of its requests.
async fn at_each_request(
    retry: fn() -> RetryPolicy,
    fault: fn() -> Fault,
    expect: impl Fn(&str, Result<(), Error>),
) {
    let check = async |table: &TableClient| drop(checked(table).await);
    let company = || company(retry());
    faults::at_each_request(&WRITES, company, write, check, fault, expect).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_sent_changes_nothing_or_is_retried() {
    at_each_request(RetryPolicy::none, Fault::reset, |name, result| {
        result.expect_err(name);
    })
    .await;
    at_each_request(RetryPolicy::exponential, Fault::reset, |name, result| {
        if name == "insert of a taken entry" {
            result.expect_err(name);
        } else {
            result.expect(name);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_leaves_the_entries_right() {
    let is_ambiguous = |name: &str, result: Result<(), Error>| {
        let Err(error) = result else { return };
        let is_taken = name == "insert of a taken entry" && error.index() == Some("ByEmail");
        assert!(error.is_outcome_unknown() || is_taken, "{name}: {error}");
    };
    at_each_request(RetryPolicy::exponential, Fault::lost_response, is_ambiguous).await;
    at_each_request(RetryPolicy::none, Fault::lost_response, |_, _| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_carried_out_twice_or_late_leaves_the_entries_right() {
    at_each_request(RetryPolicy::exponential, Fault::duplicate, |_, _| ()).await;
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::none, late, |_, _| ()).await;
    at_each_request(RetryPolicy::exponential, late, |_, _| ()).await;
}

/// A batch that arrives after another client has written the entity changes nothing: the entity's ETag protects the entries.
#[tokio::test(start_paused = true)]
async fn a_late_batch_does_not_undo_a_rival_write() {
    let (server, table) = company(RetryPolicy::none()).await;
    let mut ours = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    let mut rival = ours.clone();
    ours.email = None;
    rival.email = Some("rival@contoso.com".to_owned());
    let late = Fault::reset().applied_after(Duration::from_secs(30));
    let injected = server.faults().on(Op::Batch).nth(1).inject(late);
    table.replace(&mut ours).await.unwrap_err();
    assert_eq!(injected.hits(), 1);
    table.replace(&mut rival).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    checked(&table).await;
    let found = table
        .get(ByEmail::key("Sales", "rival@contoso.com"))
        .await
        .unwrap();
    assert_eq!(found.unwrap().id, 1);
}

/// The error of an entry is not that of its entity: `false` would say that there is no such employee.
#[tokio::test(start_paused = true)]
async fn a_missing_entry_is_not_a_missing_entity() {
    let (server, table) = company(RetryPolicy::exponential()).await;
    let ada = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    table
        .delete(("Sales", "name_Lovelace_000001"))
        .await
        .unwrap();
    // Nothing is left of the time for a second round.
    let slow = Fault::delayed_response(Duration::from_secs(2));
    server.faults().on(Op::Batch).inject(slow);
    let delete = table
        .delete_stored(&ada)
        .deadline(Duration::from_millis(2_001));
    let error = delete.await.unwrap_err();
    assert!(error.is_timeout() && !error.is_not_found(), "{error}");
    server.faults().clear();
    assert!(table.delete_stored(&ada).await.unwrap());
    checked(&table).await;
}

/// Between the reads of an entry and of its entity, the entry is passed on: it always has an owner.
#[tokio::test(start_paused = true)]
async fn follow_finds_the_new_owner_of_an_entry() {
    let (server, table) = company(RetryPolicy::exponential()).await;
    let mut ada = table.get(Employee::key("Sales", 1)).await.unwrap().unwrap();
    let mut grace = table.get(Employee::key("Sales", 2)).await.unwrap().unwrap();
    let slow = Fault::delay(Duration::from_secs(1));
    let reads = server.faults().on(Op::QueryEntity).row_key("empid_000001");
    reads.times(1).inject(slow);
    let follow = table.get(ByEmail::key("Sales", "ada@contoso.com")).follow();
    let pass_on = async {
        sleep(Duration::from_millis(500)).await;
        grace.email = ada.email.take();
        let other = harness::client(&server).table("Company");
        other
            .batch("Sales")
            .replace(&mut grace)
            .replace(&mut ada)
            .await
    };
    let (found, passed_on) = tokio::join!(follow, pass_on);
    passed_on.unwrap();
    assert_eq!(found.unwrap().expect("it always has an owner").id, 2);
}

/// A repair whose response is lost does not claim that nothing was changed.
#[tokio::test(start_paused = true)]
async fn a_repair_without_a_response_is_of_unknown_outcome() {
    let (server, table) = company(RetryPolicy::none()).await;
    table.delete(("Sales", "name_Hopper_000002")).await.unwrap();
    let lost = server.faults().on(Op::Batch).inject(Fault::lost_response());
    let error = table.repair::<Employee>().await.unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
    assert_eq!(error.key().unwrap().row_key().as_str(), "empid_000002");
    assert_eq!(lost.hits(), 1);
    server.faults().clear();
    checked(&table).await;
    assert_eq!(table.repair::<Employee>().await.unwrap().mended(), 0);
}

const EMAILS: [&str; 3] = ["a@contoso.com", "b@contoso.com", "c@contoso.com"];

/// One random write. Every error is one of a rival, or of a fault.
async fn random_write(table: &TableClient, rng: &mut Rng) -> Result<(), Error> {
    let id = rng.u32(1..5);
    let email = rng
        .choice(EMAILS)
        .filter(|_| rng.u8(..) > 80)
        .map(str::to_owned);
    let name = ["Lovelace", "King"][usize::from(rng.bool())].to_owned();
    let key = || Employee::key("Sales", id);
    match rng.u8(0..6) {
        0 => {
            let employee = Employee {
                email,
                ..Employee::new(id, &name, None)
            };
            table.insert(&employee).await?;
        }
        1 => {
            if let Some(found) = table.get(key()).await? {
                table.delete_stored(&found).await?;
            }
        }
        2 => {
            if let Some(mut found) = table.get(key()).await? {
                (found.email, found.last_name) = (email, name);
                table.replace(&mut found).await?;
            }
        }
        3 => {
            let change = |e: &mut Employee| {
                e.email.clone_from(&email);
                e.age += 1;
                Ok(())
            };
            table.modify(key(), change).await?;
        }
        4 => {
            let other = rng.u32(1..5);
            let found = (
                table.get(key()).await?,
                table.get(Employee::key("Sales", other)).await?,
            );
            if let (Some(mut one), Some(mut two), true) = (found.0, found.1, id != other) {
                std::mem::swap(&mut one.email, &mut two.email);
                table
                    .batch("Sales")
                    .replace(&mut one)
                    .replace(&mut two)
                    .await?;
            }
        }
        _ => {
            let other = rng.u32(1..5);
            let moved = table.transaction("Sales", async |tx| {
                let one = tx.get(Employee::key("Sales", id)).await?;
                let two = tx.get(Employee::key("Sales", other)).await?;
                if let (Some(one), Some(mut two), true) = (one, two, id != other) {
                    two.email.clone_from(&one.email);
                    tx.delete_stored(&one).replace(two);
                }
                Ok(())
            });
            moved.await?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_histories_with_faults_leave_the_entries_right() {
    for seed in seeds("TABLESDK_INDEX_SEED", 8) {
        println!("TABLESDK_INDEX_SEED={seed}");
        fastrand::seed(seed);
        let (server, table) = company(RetryPolicy::exponential()).await;
        let reader = client_with(&server, |builder| builder.retry(RetryPolicy::exponential()))
            .table("Company");
        let check = async |table: &TableClient| drop(checked(table).await);
        let repair = async |table: &TableClient| {
            drop(table.repair::<Employee>().concurrency(3).await);
        };
        random_history(seed, &server, &table, &reader, random_write, check, repair).await;
    }
}
