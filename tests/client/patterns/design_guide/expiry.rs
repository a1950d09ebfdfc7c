//! What it costs that entities expire.

use tablesdk::{DynamicEntity, TableEntity, Timestamp};

use super::Costs;

#[derive(Clone, TableEntity)]
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

pub(super) async fn run(costs: &mut Costs) {
    let until = |id: u32| if id < 100 { "2024-03-15" } else { "2024-03-16" };
    let sessions = (0..1_000).map(|id| Session {
        user: format!("user{}", id % 10),
        id,
        until: until(id).parse().unwrap(),
    });
    let sessions: Vec<_> = sessions.collect();
    costs.task(
        "High volume delete",
        "100 of 1,000 sessions, of 10 users, which have expired",
    );
    let table = costs.table("BucketedSessions").await;
    for Session { user, id, until } in sessions.clone() {
        table
            .insert(&BucketedSession { user, id, until })
            .await
            .unwrap();
    }
    let removal = table.clean_up_expired::<BucketedSession>().concurrency(1);
    costs
        .way("`clean_up_expired`, with buckets", async {
            assert_eq!(removal.await.unwrap().removed, 100);
        })
        .await;
    let table = costs.table_with("Sessions", sessions.clone()).await;
    let removal = table.clean_up_expired::<Session>().concurrency(1);
    costs
        .way("`clean_up_expired`, without: a scan", async {
            assert_eq!(removal.await.unwrap().removed, 100);
        })
        .await;
    let table = costs.table_with("SessionsByHand", sessions).await;
    let naive = async {
        let over = table
            .query::<DynamicEntity>()
            .odata("until le datetime'2024-03-15'");
        for session in over.collect().await.unwrap() {
            assert!(table.delete_stored(&session).await.unwrap());
        }
    };
    costs
        .way("naive: a filter, and `delete_stored` for each", naive)
        .await;
    let session = || BucketedSession {
        user: "user0".to_owned(),
        id: 1_000,
        until: until(1_000).parse().unwrap(),
    };
    costs.task("High volume delete", "write a session that expires");
    let table = costs.table("MoreSessions").await;
    costs
        .way("with buckets: `insert`", async {
            drop(table.insert(&session()).await.unwrap());
        })
        .await;
    let BucketedSession { user, id, until } = session();
    let session = Session { user, id, until };
    let table = costs.table("MorePlainSessions").await;
    costs
        .way("without: `insert`", async {
            drop(table.insert(&session).await.unwrap());
        })
        .await;
}
