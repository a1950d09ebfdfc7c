//! An outbox beside a program in Python, which reads the steps and messages that wait in it.

use harness::Subject;
use serde::{Deserialize, Serialize};
use tablesdk::DynamicEntity;
use tablesdk::outbox::{Message, Outbox, Received, Step};

use crate::child::run_python;

#[derive(Serialize, Deserialize)]
struct Renamed {
    title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_reads_steps_and_messages() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let titles = subject.service.table("Titles");
    titles.create_table().await.unwrap();
    let title = DynamicEntity::new("Sales", "title").with("Title", "Sales");
    let renamed = Renamed {
        title: "Sales".to_owned(),
    };
    table
        .batch("Sales")
        .insert(&DynamicEntity::new("Sales", "dept").with("Title", "Sales"))
        .step(Step::upsert_replace(&titles, &title.with("Floor", 3_i64)))
        .step(Step::message(&renamed))
        .leave_steps()
        .await
        .unwrap();
    run_python("outbox.py", &subject).await;

    let outbox = Outbox::new(&table).on(async |renamed: Received<Renamed>| {
        assert_eq!(renamed.title, "Sales");
        Ok(())
    });
    assert_eq!(outbox.drain().await.unwrap().applied, 2);
}
