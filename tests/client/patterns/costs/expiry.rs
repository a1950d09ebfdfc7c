//! The costs of entities that expire.

use tablesdk::{DynamicEntity, TableEntity, Timestamp};

use super::Costs;

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
struct Session {
    user: String,
    id: u32,
    #[table(expires)]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
struct BucketedSession {
    user: String,
    id: u32,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

pub(super) fn run(costs: &mut Costs) {
    let session = |id: u32| {
        let until = if id < 100 { "2024-03-15" } else { "2024-03-16" };
        let (user, until) = (format!("user{}", id % 10), until.parse().unwrap());
        BucketedSession { user, id, until }
    };
    let without = |BucketedSession { user, id, until }| Session { user, id, until };
    let section = "High volume delete";
    let task = "100 of 1,000 sessions, of 10 users, which have expired";
    costs.task(section, task);
    let table = costs.table_with("BucketedSessions", (0..1_000).map(session));
    let removal = table.clean_up_expired::<BucketedSession>().concurrency(1);
    let report = costs.way("`clean_up_expired`, with buckets", removal);
    assert_eq!(report.unwrap().removed, 100);
    let sessions = || (0..1_000).map(session).map(without);
    let table = costs.table_with("Sessions", sessions());
    let removal = table.clean_up_expired::<Session>().concurrency(1);
    let report = costs.way("`clean_up_expired`, without: a scan", removal);
    assert_eq!(report.unwrap().removed, 100);
    let table = costs.table_with("SessionsByHand", sessions());
    let naive = async {
        let over = table.query::<DynamicEntity>();
        let over = over.odata("until le datetime'2024-03-15'");
        for session in over.collect().await.unwrap() {
            assert!(table.delete_stored(&session).await.unwrap());
        }
    };
    costs.way("naive: a filter, and `delete_stored` for each", naive);

    costs.task(section, "write a session that expires");
    let table = costs.table("MoreSessions");
    let insert = table.insert(&session(1_000));
    costs.way("with buckets: `insert`", insert).unwrap();
    let table = costs.table("MorePlainSessions");
    let insert = table.insert(&without(session(1_000)));
    costs.way("without: `insert`", insert).unwrap();
}
