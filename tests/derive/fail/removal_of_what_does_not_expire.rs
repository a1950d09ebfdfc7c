use tablesdk::{TableClient, TableEntity, Timestamp};

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct User {
    user: String,
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id}")]
struct Session {
    user: String,
    id: String,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

async fn run(table: &TableClient, session: Session) {
    let _ = table.clean_up_expired::<User>().await;
    let _ = table.upsert_replace(&session).await;
}

fn main() {}
