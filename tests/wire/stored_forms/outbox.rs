//! The outbox: its head, its entries, and what leads to them.

use serde::{Deserialize, Serialize};
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{DynamicEntity, TableClient};

use super::Transcript;

#[derive(Serialize, Deserialize)]
struct Renamed {
    title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

#[tokio::test(start_paused = true)]
async fn outboxes_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let clock = transcript.server().clock();
    let batch = async |table: &TableClient| {
        let title = DynamicEntity::new("Titles", "Sales").with("Title", "Sales and service");
        let old = ("Titles", "Marketing");
        let renamed = Renamed {
            title: "Sales and service".into(),
        };
        let batch = table
            .batch("Sales")
            .insert(&DynamicEntity::new("Sales", "dept").with("Title", "Sales and service"))
            .step(Step::upsert_replace(table, &title.with("Floor", 3_i64)))
            .step(Step::delete(table, old))
            .step(Step::message(&renamed));
        batch.leave_steps().await.unwrap();
    };
    transcript.add("a batch with steps for later", batch).await;
    let drain = async |table: &TableClient| {
        let drain = Outbox::new(table).drain().partition("Sales");
        assert_eq!(drain.await.unwrap().applied, 2);
    };
    transcript.add("a worker without a handler", drain).await;
    let failing = async |table: &TableClient| {
        let outbox = Outbox::new(table)
            .on(async |_: Received<Renamed>| Err("the mail server is down".into()));
        outbox.drain().partition("Sales").await.unwrap();
    };
    transcript.add("the first attempt", &failing).await;
    for _ in 2..10 {
        clock.advance(std::time::Duration::from_secs(601));
        failing(&transcript.table).await;
    }
    clock.advance(std::time::Duration::from_secs(601));
    transcript.add("the last attempt", &failing).await;
    transcript.assert_is("outbox.http");
}
