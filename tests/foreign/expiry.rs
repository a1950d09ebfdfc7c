//! Entities that expire beside a program in Python: it finds them in their buckets, removes,
//! prolongs and writes some. A removal of our client treats each by its own instant, and a repair
//! writes the entry that is missing.

use std::time::{Duration, SystemTime};

use harness::Subject;
use tablesdk::{TableClient, TableEntity, Timestamp};

use crate::child::run_python;

#[derive(Clone, Debug, PartialEq, TableEntity)]
#[table(
    rename_all = "PascalCase",
    partition_key = "{user}",
    row_key = "session_{id:06}"
)]
struct Session {
    user: String,
    id: u32,
    device: String,
    #[table(expires(bucket = "1h"))]
    until: Option<Timestamp>,
}

async fn devices(table: &TableClient) -> Vec<String> {
    let sessions = table.query::<Session>().including_expired().values();
    let sessions = sessions.collect().await.unwrap();
    sessions.into_iter().map(|it| it.device).collect()
}

/// The number of entries in buckets. No query shows them.
fn entries(subject: &Subject) -> usize {
    let dump = subject.server().dump().unwrap();
    dump.matches("PartitionKey='~tablesdk.expiry.").count()
}

#[tokio::test]
#[ignore = "needs the Python client: tests/interop/run.sh"]
async fn python_finds_and_moves_what_expires() {
    let subject = Subject::over_http().await;
    let table = subject.table().await;
    let now = Timestamp::try_from(SystemTime::now()).unwrap();
    let hour = 3600 * 10_000_000;
    for (id, device, hours) in [
        (1, "found", Some(-2)),
        (2, "removed", Some(-2)),
        (3, "moved", Some(-30)),
        (4, "prolonged", Some(-1)),
        (5, "later", Some(1)),
        (6, "never", None),
    ] {
        let until = hours.map(|hours| now.unix_ticks() + hours * hour);
        let session = Session {
            // In the keys of entries, both characters are escaped.
            user: "a=b_c".to_owned(),
            id,
            device: device.to_owned(),
            until: until.map(|ticks| Timestamp::from_unix_ticks(ticks).unwrap()),
        };
        table.insert(&session).await.unwrap();
    }
    run_python("expiry.py", &subject).await;
    let all = "found moved prolonged later never new new";
    assert_eq!(devices(&table).await.join(" "), all);

    // Found in their buckets: two, and one that Python has prolonged without a new entry.
    let report = table.clean_up_expired::<Session>().await.unwrap();
    assert_eq!((report.removed, report.postponed), (2, 1));
    let left = ["moved", "prolonged", "later", "never", "new"];
    assert_eq!(devices(&table).await, left);
    let report = table.repair::<Session>().await.unwrap();
    assert_eq!((report.missing, report.stale, report.orphaned), (1, 0, 0));

    // In their buckets, all are found that have expired by then.
    let clock = subject.server().clock();
    clock.advance(Duration::from_secs(4 * 3600));
    let table = subject.other().table(table.name());
    assert!(table.clean_up_expired::<Session>().await.unwrap().removed >= 4);
    assert_eq!(devices(&table).await, ["never"]);
    assert_eq!(entries(&subject), 0);
    assert!(table.repair::<Session>().await.unwrap().is_right());
}
