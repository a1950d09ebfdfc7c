//! `outbox`: the steps of transactions, shown, applied and retried.

use serde_json::json;
use tablesdk::outbox::{Message, Step};
use tablesdk::{DynamicEntity, TableServiceClient};

use crate::run::run;
use crate::server;
use crate::show::lines;

#[derive(serde::Serialize, serde::Deserialize)]
struct Renamed;

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

/// A step whose table does not exist, a step of another partition, and a message behind it.
async fn fill(service: &TableServiceClient) {
    let company = service.table("Company");
    company.create_table().await.unwrap();
    service.table("Titles").create_table().await.unwrap();
    let title = DynamicEntity::new("Titles", "x").with("Title", "a");
    let dept = |partition: &str| DynamicEntity::new(partition, "dept");
    let missing = Step::upsert_replace(&service.table("Later"), &title);
    let batch = company.batch("Sales").insert(&dept("Sales"));
    batch.step(missing).leave_steps().await.unwrap();
    let known = Step::upsert_replace(&service.table("Titles"), &title);
    let batch = company.batch("Service").insert(&dept("Service"));
    let batch = batch.step(known).step(Step::message(&Renamed));
    batch.leave_steps().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_listed_applied_set_aside_and_retried() {
    let (_server, service, account) = server().await;
    fill(&service).await;
    let list = async || {
        let (code, out, errors) = run(&["outbox", "list", "Company"], &account).await;
        assert_eq!((code, errors.as_str()), (0, ""));
        let states = lines(&out).into_iter().map(|mut step| {
            let step = step.as_object_mut().unwrap();
            step.remove("error");
            step.remove("attempts");
            json!(step)
        });
        states.collect::<Vec<_>>()
    };
    let step = |poisoned: bool| {
        json!({
            "partition": "Sales", "number": 1, "poisoned": poisoned, "kind": "upsert_replace",
            "target": ["Later", "Titles", "x"],
        })
    };
    let message = json!({
        "partition": "Service", "number": 2, "poisoned": false, "kind": "message", "message": "renamed",
    });
    assert_eq!(list().await.len(), 3);
    let (code, _, errors) = run(&["rm", "Company", "--drop", "--yes"], &account).await;
    assert!(
        code == 2 && errors.contains("Company has steps of outboxes"),
        "{errors}"
    );

    let (code, _, errors) = run(&["outbox", "drain", "Company"], &account).await;
    assert_eq!(code, 1, "{errors}");
    for text in [
        "Applied 1 step, 1 wait",
        "the table Later does not exist",
        "1 step was set aside",
    ] {
        assert!(errors.contains(text), "{errors}");
    }
    assert_eq!(list().await, [step(true), message.clone()]);

    let retry = |number| {
        [
            "outbox",
            "retry",
            "Company",
            "--partition",
            "Sales",
            "--number",
            number,
        ]
    };
    let (code, _, errors) = run(&retry("2"), &account).await;
    assert!(
        code == 1 && errors.contains("no step 2 of this partition was set aside"),
        "{errors}"
    );
    let (code, _, errors) = run(&["outbox", "retry", "Company"], &account).await;
    assert!(code == 2 && errors.contains("--all"), "{errors}");
    let (code, _, errors) = run(&retry("1"), &account).await;
    assert_eq!((code, errors.as_str()), (0, "1 step waits again\n"));
    assert_eq!(list().await, [step(false), message.clone()]);

    service.table("Later").create_table().await.unwrap();
    let (code, _, errors) = run(
        &["outbox", "drain", "Company", "--partition", "Sales"],
        &account,
    )
    .await;
    assert_eq!((code, errors.as_str()), (0, "Applied 1 step, 0 wait\n"));
    assert_eq!(list().await, [message]);
    let later = service.table("Later");
    assert!(
        later
            .get::<DynamicEntity>(("Titles", "x"))
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_set_aside_is_discarded() {
    let (_server, service, account) = server().await;
    fill(&service).await;
    assert_eq!(run(&["outbox", "drain", "Company"], &account).await.0, 1);
    let (code, _, errors) = run(&["outbox", "discard", "Company", "--all"], &account).await;
    assert_eq!((code, errors.as_str()), (0, "Discarded 1 step\n"));
    let (_, out, _) = run(
        &["outbox", "list", "Company", "--partition", "Sales"],
        &account,
    )
    .await;
    assert_eq!(out, "");
    let (_, out, _) = run(
        &["outbox", "list", "Company", "--output", "table"],
        &account,
    )
    .await;
    assert!(
        out.contains("Entity or message") && out.contains("renamed"),
        "{out}"
    );
}
