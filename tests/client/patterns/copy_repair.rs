//! What a repair of copies finds and mends, and what it reports.

use std::time::Duration;

use harness::{client, client_with};
use tablesdk::index::RepairReport;
use tablesdk::{DynamicEntity, ETag, RetryPolicy, TableClient};
use tablesdk_server::TableServer;
use tablesdk_server::testing::{Fault, Op};
use tokio::time::sleep;

use super::staff::{Skilled, Staff, ada, checked, department, open};

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
