//! The entities that the client stores for its own purposes: a copied account delivers the same
//! messages and removes the same expired entities.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tablesdk::outbox::{Message, Outbox, Received, Step};
use tablesdk::{DynamicEntity, TableEntity, TableServiceClient, Timestamp};

use crate::{STRING, server, tables};

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
struct Session {
    user: String,
    id: u32,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
struct Renamed {
    title: String,
}

impl Message for Renamed {
    const NAME: &'static str = "renamed";
}

fn renamed(title: &str) -> Step {
    let title = title.to_owned();
    Step::message(&Renamed { title })
}

fn session(id: u32, until: Timestamp) -> Session {
    let user = "ann".to_owned();
    Session { user, id, until }
}

fn title(row: &str, title: &str) -> DynamicEntity {
    DynamicEntity::new("Titles", row).with("Title", title)
}

/// Steps and messages of two partitions, sessions of which one has expired, a marker and an intent.
async fn fill(service: &TableServiceClient) {
    let (company, titles) = (service.table("Company"), service.table("Titles"));
    for table in [&company, &titles, &service.table("Sessions")] {
        table.create_table().await.unwrap();
    }
    titles.insert(&title("old", "x")).await.unwrap();
    let dept =
        |partition: &str, title: &str| DynamicEntity::new(partition, "dept").with("Title", title);
    // Applied already: the next steps have the numbers after it.
    let applied = Step::upsert_replace(&titles, &title("Sales", "a"));
    let batch = company.batch("Sales").insert(&dept("Sales", "a"));
    batch.step(applied).await.unwrap();
    let batch = company.batch("Sales").upsert_replace(&dept("Sales", "b"));
    let batch = batch
        .step(Step::upsert_replace(&titles, &title("Sales", "b")))
        .step(renamed("b"))
        .step(Step::delete(&titles, ("Titles", "old")));
    batch.leave_steps().await.unwrap();
    let batch = company.batch("Service").insert(&dept("Service", "c"));
    batch.step(renamed("c")).leave_steps().await.unwrap();
    for row in [
        "~tablesdk.once.0d5d2d5b-8c0f-4c8b-9d26-2a8c2f1c9a11",
        "~tablesdk.wide.5be0cd19137e2179",
    ] {
        let own = DynamicEntity::new("Sales", row);
        company.insert(&own).await.unwrap();
    }
    let sessions = service.table("Sessions");
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    let [past, future] = [now - hour, now + hour].map(|it| Timestamp::try_from(it).unwrap());
    sessions.insert(&session(1, past)).await.unwrap();
    sessions.insert(&session(2, future)).await.unwrap();
}

/// The lines of an export without the times of the last writes, in order.
async fn lines(directory: &Path, file: &str, text: &str) -> Vec<String> {
    let (code, _, errors) = tables(directory, &["export", file], &[(STRING, text)]).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    let lines = fs::read_to_string(directory.join(file)).unwrap();
    let lines = lines.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(entity) = line
            .pointer_mut("/entity")
            .and_then(|it| it.as_object_mut())
        {
            entity.remove("Timestamp").unwrap();
        }
        line.to_string()
    });
    lines.collect()
}

/// Drains the outbox. Returns the ids and titles of the messages that it delivered, and how many
/// steps it applied.
async fn drain(service: &TableServiceClient) -> (Vec<(String, String)>, u64) {
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let here = Arc::clone(&delivered);
    let outbox = Outbox::new(&service.table("Company"));
    let outbox = outbox.on(move |message: Received<Renamed>| {
        let seen = (message.id().to_owned(), message.title.clone());
        here.lock().unwrap().push(seen);
        async { Ok(()) }
    });
    let report = outbox.drain().await.unwrap();
    assert_eq!((report.waiting, report.failed, report.set_aside), (0, 0, 0));
    let mut delivered = std::mem::take(&mut *delivered.lock().unwrap());
    delivered.sort();
    (delivered, report.applied)
}

/// The entities that steps have written, and the sessions that were removed or are left.
async fn effects(service: &TableServiceClient) -> (Vec<String>, u64, Vec<u32>) {
    let titles = service.table("Titles");
    let titles = titles.query::<DynamicEntity>().collect().await.unwrap();
    let titles = titles.iter().map(|entity| {
        let title: String = entity.properties().read("Title").unwrap();
        format!("{} {title}", entity.row_key())
    });
    let sessions = service.table("Sessions");
    let removed = sessions
        .clean_up_expired::<Session>()
        .await
        .unwrap()
        .removed;
    let left = sessions.query::<Session>().including_expired();
    let left = left.collect().await.unwrap();
    (
        titles.collect(),
        removed,
        left.iter().map(|it| it.id).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_account_delivers_the_same_messages_and_expires_the_same_entities() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (_from, from, from_text) = server().await;
    fill(&from).await;
    let own = json!({"messages": 2, "steps": 2, "outboxes": 4, "expiryEntries": 2});
    let left = json!({"markers": 1, "wideIntents": 1, "lateSteps": 0});

    let words = ["export", "all.jsonl"];
    let (code, json, errors) = tables(directory, &words, &[(STRING, &from_text)]).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    // Those of the program: two departments, two titles and two sessions.
    assert_eq!(
        (&json["tables"], &json["entities"]),
        (&3.into(), &16.into())
    );
    assert_eq!((&json["own"], &json["leftBehind"]), (&own, &left));
    let (_imported, imported, imported_text) = server().await;
    let words = ["import", "all.jsonl"];
    let (code, json, errors) = tables(directory, &words, &[(STRING, &imported_text)]).await;
    assert_eq!((code, &json["own"]), (0, &own), "{errors}");
    assert!(json.get("leftBehind").is_none());

    let (_copied, copied, copied_text) = server().await;
    let words = ["copy", "--from", "env:OLD", "--to", "env:NEW"];
    let variables = [("OLD", &*from_text), ("NEW", &*copied_text)];
    let (code, json, errors) = tables(directory, &words, &variables).await;
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!((&json["own"], &json["leftBehind"]), (&own, &left));

    // Exports of account and copy are equal.
    let expected = lines(directory, "from.jsonl", &from_text).await;
    assert_eq!(
        lines(directory, "copied.jsonl", &copied_text).await,
        expected
    );
    // An import puts entities into a table anew, which no step has written.
    let stamp = |line: &String| line.contains(r#""RowKey":"Sales""#);
    let mut without_stamp = expected;
    let line = without_stamp.iter_mut().find(|line| stamp(line)).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(line).unwrap();
    let entity = json["entity"].as_object_mut().unwrap();
    assert!(entity.remove("TablesdkStepOf").is_some());
    *line = json.to_string();
    assert_eq!(
        lines(directory, "imported.jsonl", &imported_text).await,
        without_stamp
    );

    let (delivered, applied) = drain(&from).await;
    let titles: Vec<_> = delivered.iter().map(|(_, title)| title.as_str()).collect();
    assert_eq!((titles.len(), applied), (2, 4));
    let expected = (vec!["Sales b".to_owned()], 1, vec![2]);
    assert_eq!(effects(&from).await, expected);
    for copy in [&imported, &copied] {
        assert_eq!(drain(copy).await, (delivered.clone(), 4));
        assert_eq!(effects(copy).await, expected);
        // Its outbox goes on, with numbers of its own.
        let company = copy.table("Company");
        let entity = DynamicEntity::new("Sales", "dept").with("Title", "d");
        let batch = company.batch("Sales").upsert_replace(&entity);
        let step = Step::upsert_replace(&copy.table("Titles"), &title("Sales", "d"));
        batch.step(step).step(renamed("d")).await.unwrap();
        let (later, _) = drain(copy).await;
        assert_eq!(later.len(), 1);
        assert!(!delivered.contains(&later[0]));
        assert_eq!(
            effects(copy).await,
            (vec!["Sales d".to_owned()], 0, vec![2])
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_summary_counts_the_entities_of_the_client_by_kind() {
    let place = tempfile::tempdir().unwrap();
    let (_server, service, text) = server().await;
    fill(&service).await;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tables"));
    command.current_dir(place.path()).env_clear();
    command.env(STRING, text).args(["export", "all.jsonl"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let shown = String::from_utf8(output.await.unwrap().stderr).unwrap();
    let (first, others) = shown.split_once('\n').unwrap();
    assert!(
        first.starts_with("Exported 3 tables with 16 entities in "),
        "{shown}"
    );
    let expected = "\
        Among them, of the client itself: 2 messages, 2 other steps, 4 heads and pointers of outboxes, 2 entries of expiry buckets\n\
        Left behind: 1 markers of exactly_once, 1 intents of wide entities\n";
    assert_eq!(others, expected);
}
