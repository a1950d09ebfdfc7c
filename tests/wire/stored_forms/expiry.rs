//! The entries by which expired entities are found.

use tablesdk::{TableClient, TableEntity, Timestamp};

use super::Transcript;

#[derive(Clone, Debug, TableEntity)]
#[table(rename_all = "PascalCase")]
#[table(partition_key = "{user}", row_key = "session_{id:06}")]
struct Session {
    user: String,
    id: u32,
    device: String,
    #[table(expires(bucket = "1h"))]
    until: Option<Timestamp>,
}

#[tokio::test]
async fn entries_of_buckets_are_as_documented() {
    let mut transcript = Transcript::new().await;
    let session = Session {
        user: "ann".into(),
        id: 7,
        device: "phone".into(),
        until: Some("2124-03-15T10:20:30.1234567Z".parse().unwrap()),
    };
    let insert = async |table: &TableClient| table.insert(&session).await.unwrap();
    let mut session = transcript.add("insert", insert).await;
    session.until = Some("2124-03-15T11:00:00Z".parse().unwrap());
    let replace = async |table: &TableClient| table.replace(&mut session).await.unwrap();
    transcript.add("replace, in another hour", replace).await;
    session.until = None;
    let replace = async |table: &TableClient| table.replace(&mut session).await.unwrap();
    transcript.add("replace, that never expires", replace).await;
    transcript.assert_is("expiry.http");
}
