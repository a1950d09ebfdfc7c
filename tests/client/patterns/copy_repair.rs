//! Copies that a repair finds and mends, and its reports.

use std::time::Duration;

use harness::Subject;
use serde_json::json;
use tablesdk::{DynamicEntity, ETag, RetryPolicy, TableClient};
use tablesdk_server::testing::{Fault, Faults, Op};
use tokio::time::sleep;

use super::repair::counts;
use super::staff::{Skilled, Staff, ada, checked, department, open};

/// A server with a department, its manager and an employee, and a client with that policy.
async fn company(retry: RetryPolicy) -> (Subject, TableClient, Faults) {
    let (subject, table, faults) = Subject::with_table(retry).await;
    open(&table).await;
    table.insert(&ada()).await.unwrap();
    let grace = Staff::new(2, "Grace", &["Navy"]);
    table.insert(&grace).await.unwrap();
    (subject, table, faults)
}

/// Between the read of the department and the write, the department is written: nothing of it is
/// lost.
#[tokio::test(start_paused = true)]
async fn a_part_does_not_undo_a_rival_write_of_its_entity() {
    let (subject, table, faults) = company(RetryPolicy::exponential()).await;
    let mut ada = table.get(Staff::key("Sales", 1)).await.unwrap().unwrap();
    ada.email = None;
    let slowed = faults.next(Op::Batch, Fault::delay(Duration::from_secs(1)));
    let other = subject.other().table("Tests");
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

/// An employee, as a program writes it that does not know the copies.
fn foreign(staff: &Staff) -> DynamicEntity {
    let row_key = format!("staff_{:06}", staff.id);
    let mut entity = DynamicEntity::new("Sales", row_key)
        .with("name", staff.name.as_str())
        .with("skills", json!(staff.skills).to_string())
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
    let (_subject, table, _) = company(RetryPolicy::exponential()).await;
    let report = table.repair::<Staff>().await.unwrap();
    assert!(report.is_right());
    assert_eq!((report.entities, report.entries), (2, 5));
    assert_eq!(counts(&report), (0, 0, 0));

    // Grace has left, and what Ada was is changed: 1 copy is missing, 2 have no entity, 1 is stale,
    // and so are the badge and the part.
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
    // An email, and two skills have no entity.
    assert_eq!(counts(&report), (1, 3, 3));
    assert!(report.is_right(), "{report:?}");
    let chess = Skilled::key("Sales", "Chess", 1);
    assert!(table.delete(chess).await.unwrap());
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
    assert_eq!(counts(&report), (1, 0, 0));
    let [conflict] = &report.conflicts[..] else {
        panic!("{report:?}")
    };
    assert_eq!(conflict.index, "Badge");
    table.delete(("Sales", "dept_")).await.unwrap();
    let report = table.repair::<Staff>().partition("Sales").await.unwrap();
    let message = r#"the copy ManagerOf has no entity ("Sales", "dept_") to go into"#;
    assert!(report.unreadable[0].contains(message), "{report:?}");
    assert!(!report.is_right());
}

#[tokio::test]
async fn a_part_without_its_entity_does_not_keep_the_other_copies_from_repair() {
    let (_subject, table, _) = company(RetryPolicy::none()).await;
    let manager = Staff {
        is_manager: true,
        ..Staff::new(3, "Alan", &["Maths", "Chess"])
    };
    table.delete(("Sales", "dept_")).await.unwrap();
    table.insert(&foreign(&manager)).await.unwrap();
    let report = table.repair::<Staff>().await.unwrap();
    let found = (report.missing, report.unreadable.len());
    assert_eq!(found, (2, 2), "{report:?}");
    let chess = table.get(Skilled::key("Sales", "Chess", 3)).await;
    assert!(chess.unwrap().is_some());
}
