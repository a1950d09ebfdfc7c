//! Faults at each request of a write with copies, random histories of several writers, and `repair`: the copies are right after each.
//!
//! A failure of the random test prints its seed; `TABLESDK_COPY_SEED` runs that seed.

use std::time::Duration;

use fastrand::Rng;
use harness::{client, client_with, seeds};
use tablesdk::index::RepairReport;
use tablesdk::{DynamicEntity, ETag, Error, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::faults::{self, random_history};
use super::staff::{Department, Skilled, Staff, checked, department, open};

/// A server with a department, its manager and an employee, and a client with that policy.
async fn company(retry: RetryPolicy) -> (TableServer, TableClient) {
    let server = TableServer::in_process();
    let table = client_with(&server, |builder| builder.retry(retry)).table("Company");
    table.create_table().await.unwrap();
    open(&table).await;
    table.insert(&ada()).await.unwrap();
    let grace = Staff::new(2, "Grace", &["Navy"]);
    table.insert(&grace).await.unwrap();
    (server, table)
}

fn ada() -> Staff {
    Staff {
        email: Some("ada@contoso.com".to_owned()),
        badge: Some(7),
        is_manager: true,
        ..Staff::new(1, "Ada", &["Maths", "Welsh"])
    }
}

const WRITES: [&str; 6] = [
    "insert",
    "replace that moves",
    "replace that removes a property of a part",
    "modify",
    "delete",
    "transaction that passes a copy on",
];

async fn write(table: &TableClient, name: &str) -> Result<(), Error> {
    let get = async |id: u32| {
        let found = table.get(Staff::key("Sales", id)).await;
        found.map(|found| found.expect("inserted"))
    };
    match name {
        "insert" => {
            let alan = Staff {
                badge: Some(8),
                ..Staff::new(3, "Alan", &["Maths", "Running"])
            };
            table.insert(&alan).await?;
        }
        "replace that moves" => {
            let mut ada = get(1).await?;
            ada.skills = vec!["Welsh".to_owned(), "Rust".to_owned()];
            (ada.badge, ada.name) = (Some(9), "Lovelace".to_owned());
            table.replace(&mut ada).await?;
        }
        "replace that removes a property of a part" => {
            let mut ada = get(1).await?;
            ada.email = None;
            table.replace(&mut ada).await?;
        }
        "modify" => {
            let promoted = table.modify(Staff::key("Sales", 2), |staff| {
                staff.skills.push("Cobol".to_owned());
                Ok(())
            });
            promoted.await?;
        }
        "delete" => {
            let ada = get(1).await?;
            table.delete_stored(&ada).await?;
        }
        "transaction that passes a copy on" => {
            let passed_on = table.transaction("Sales", async |tx| {
                let ada = tx.get(Staff::key("Sales", 1)).await?.ok_or("inserted")?;
                let mut grace = tx.get(Staff::key("Sales", 2)).await?.ok_or("inserted")?;
                grace.badge = ada.badge;
                tx.delete_stored(&ada).replace(grace);
                Ok(())
            });
            passed_on.await?;
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
async fn a_request_that_is_not_sent_changes_no_copy_or_is_retried() {
    let failed = |name: &str, result: Result<(), Error>| {
        result.expect_err(name);
    };
    at_each_request(RetryPolicy::none, Fault::reset, failed).await;
    let succeeded = |name: &str, result: Result<(), Error>| result.expect(name);
    at_each_request(RetryPolicy::exponential, Fault::reset, succeeded).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_leaves_the_copies_right() {
    let is_unknown = |name: &str, result: Result<(), Error>| {
        let Err(error) = result else { return };
        assert!(error.is_outcome_unknown(), "{name}: {error}");
    };
    at_each_request(RetryPolicy::exponential, Fault::lost_response, is_unknown).await;
    at_each_request(RetryPolicy::none, Fault::lost_response, |_, _| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_carried_out_twice_or_late_leaves_the_copies_right() {
    at_each_request(RetryPolicy::exponential, Fault::duplicate, |_, _| ()).await;
    let late = || Fault::reset().applied_after(Duration::from_secs(30));
    at_each_request(RetryPolicy::none, late, |_, _| ()).await;
    at_each_request(RetryPolicy::exponential, late, |_, _| ()).await;
}

/// Between the read of the department and the write, the department is written: nothing of it is lost.
#[tokio::test(start_paused = true)]
async fn a_part_does_not_undo_a_rival_write_of_its_entity() {
    let (server, table) = company(RetryPolicy::exponential()).await;
    let mut ada = table.get(Staff::key("Sales", 1)).await.unwrap().unwrap();
    ada.email = None;
    let slow = Fault::delay(Duration::from_secs(1));
    let batches = server.faults().on(Op::Batch);
    let slowed = batches.times(1).inject(slow);
    let other = client(&server).table("Company");
    let rival = async {
        sleep(Duration::from_millis(500)).await;
        let with_budget = DynamicEntity::new("Sales", "dept_").with("Budget", 100);
        other.merge_if(&with_budget, ETag::ANY).await
    };
    let (replaced, rival) = tokio::join!(table.replace(&mut ada), rival);
    replaced.unwrap();
    rival.unwrap();
    assert_eq!(slowed.hits(), 1);
    checked(&table).await;
    let stored = table.get::<DynamicEntity>(("Sales", "dept_")).await;
    let budget = stored.unwrap().unwrap().properties().read::<i32>("Budget");
    assert_eq!(budget.unwrap(), 100);
}

const SKILLS: [&str; 4] = ["Maths", "Navy", "Rust", "Welsh"];

/// Only the first employee is a manager.
fn random(id: u32, rng: &mut Rng) -> Staff {
    let skills: Vec<&str> = SKILLS.into_iter().filter(|_| rng.bool()).collect();
    let name = ["Ada", "Grace"][usize::from(rng.bool())];
    Staff {
        email: rng.bool().then(|| format!("{id}@contoso.com")),
        badge: rng.bool().then(|| rng.i32(1..4)),
        is_manager: id == 1 && rng.bool(),
        ..Staff::new(id, name, &skills)
    }
}

async fn random_write(table: &TableClient, rng: &mut Rng) -> Result<(), Error> {
    let id = rng.u32(1..4);
    let new = random(id, rng);
    let key = || Staff::key("Sales", id);
    match rng.u8(0..5) {
        0 => drop(table.insert(&new).await?),
        1 => {
            if let Some(found) = table.get(key()).await? {
                table.delete_stored(&found).await?;
            }
        }
        2 => {
            if let Some(mut found) = table.get(key()).await? {
                *found = new;
                table.replace(&mut found).await?;
            }
        }
        3 => {
            let change = |staff: &mut Staff| {
                staff.clone_from(&new);
                Ok(())
            };
            table
                .modify(key(), change)
                .or_insert(|| new.clone())
                .await?;
        }
        _ => {
            let touch = |_: &mut Department| Ok(());
            table.modify(Department::key("Sales"), touch).await?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn random_histories_with_faults_leave_the_copies_right() {
    for seed in seeds("TABLESDK_COPY_SEED", 4) {
        println!("TABLESDK_COPY_SEED={seed}");
        fastrand::seed(seed);
        let (server, table) = company(RetryPolicy::exponential()).await;
        let check = async |table: &TableClient| drop(checked(table).await);
        let repair = async |table: &TableClient| {
            drop(table.repair::<Staff>().concurrency(3).await);
        };
        random_history(seed, &server, &table, &table, random_write, check, repair).await;
    }
}

fn counts(report: &RepairReport) -> (u64, u64, u64) {
    (report.missing, report.stale, report.orphaned)
}

/// An employee, as a program writes it that does not know the copies.
fn foreign(staff: &Staff) -> DynamicEntity {
    let row_key = format!("staff_{:06}", staff.id);
    let skills: Vec<String> = staff
        .skills
        .iter()
        .map(|skill| format!("{skill:?}"))
        .collect();
    let mut entity = DynamicEntity::new("Sales", row_key)
        .with("name", staff.name.as_str())
        .with("skills", format!("[{}]", skills.join(",")))
        .with("is_manager", staff.is_manager);
    if let Some(badge) = staff.badge {
        entity.properties_mut().set("badge", badge);
    }
    if let Some(email) = &staff.email {
        entity.properties_mut().set("email", email.as_str());
    }
    entity
}

#[tokio::test(start_paused = true)]
async fn repair_mends_what_other_programs_left() {
    let (_server, table) = company(RetryPolicy::exponential()).await;
    let report = table.repair::<Staff>().await.unwrap();
    assert_eq!(
        (report.entities, report.entries, counts(&report)),
        (2, 5, (0, 0, 0))
    );
    assert!(report.is_right());

    // Grace has left, and what Ada was is changed: 1 copy is missing, 2 have no entity, 1 is stale, and so are the badge and the part.
    table.delete(("Sales", "staff_000002")).await.unwrap();
    let mut lovelace = ada();
    (lovelace.name, lovelace.email) = ("Lovelace".into(), None);
    lovelace.skills = vec!["Welsh".into(), "Rust".into()];
    table.upsert_replace(&foreign(&lovelace)).await.unwrap();
    // It looks like a copy, and is not marked as one.
    let own = Skilled {
        department: "Sales".into(),
        skill: "Chess".into(),
        id: 1,
        name: "Deep Blue".into(),
    };
    table.insert(&own).await.unwrap();

    let dry = table.repair::<Staff>().dry_run().await.unwrap();
    assert_eq!(counts(&dry), (1, 3, 3));
    let report = table.repair::<Staff>().await.unwrap();
    assert_eq!(
        counts(&report),
        (1, 3, 3),
        "an email, and two skills have no entity"
    );
    assert!(report.is_right(), "{report:?}");
    assert!(
        table
            .delete(Skilled::key("Sales", "Chess", 1))
            .await
            .unwrap()
    );
    assert_eq!(checked(&table).await, [lovelace]);
    assert_eq!(department(&table).await.manager_email, None);
    assert_eq!(table.repair::<Staff>().await.unwrap().mended(), 0);

    // The part has a property that it should not have, and nothing else is wrong.
    let email = DynamicEntity::new("Sales", "dept_").with("manager_email", "ada@contoso.com");
    table.merge_if(&email, ETag::ANY).await.unwrap();
    let report = table.repair::<Staff>().await.unwrap();
    assert_eq!(counts(&report), (0, 1, 0));
    assert_eq!(department(&table).await.manager_email, None);

    // Two owners are reported, and so is a part without its entity.
    let rival = Staff {
        badge: Some(7),
        ..Staff::new(3, "Alan", &["Maths"])
    };
    table.insert(&foreign(&rival)).await.unwrap();
    let report = table.repair::<Staff>().await.unwrap();
    assert_eq!(
        (counts(&report), report.conflicts.len()),
        ((1, 0, 0), 1),
        "{report:?}"
    );
    assert_eq!(report.conflicts[0].index, "Badge");
    table.delete(("Sales", "dept_")).await.unwrap();
    let report = table.repair::<Staff>().partition("Sales").await.unwrap();
    let message = r#"the copy ManagerOf has no entity ("Sales", "dept_") to go into"#;
    assert!(report.unreadable[0].contains(message), "{report:?}");
    assert!(!report.is_right());
}

#[tokio::test]
async fn a_part_without_its_entity_does_not_keep_the_other_copies_from_repair() {
    let (_server, table) = company(RetryPolicy::none()).await;
    let manager = Staff {
        is_manager: true,
        ..Staff::new(3, "Alan", &["Maths", "Chess"])
    };
    table.delete(("Sales", "dept_")).await.unwrap();
    table.insert(&foreign(&manager)).await.unwrap();
    let report = table.repair::<Staff>().await.unwrap();
    assert_eq!(
        (report.missing, report.unreadable.len()),
        (2, 2),
        "{report:?}"
    );
    assert!(
        table
            .get(Skilled::key("Sales", "Chess", 3))
            .await
            .unwrap()
            .is_some()
    );
}
