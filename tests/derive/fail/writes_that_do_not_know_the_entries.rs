use tablesdk::{ETag, TableClient, TableEntity, Timestamp};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
struct Employee {
    department: String,
    id: u32,
    email: Option<String>,
}

async fn write(table: &TableClient, ada: Employee) -> tablesdk::Result<()> {
    table.upsert_replace(&ada).await?;
    table.merge_if(&ada, ETag::ANY).await?;
    let mut stored = table.insert(&ada).await?;
    table.merge(&mut stored).await?;
    table.batch("Sales").upsert_merge(&ada).await?;
    table.bulk().upsert_replace(futures::stream::iter([ada])).await.unwrap();
    Ok(())
}

async fn write_an_entry(table: &TableClient) -> tablesdk::Result<()> {
    let mut entry = table.get(ByEmail::key("Sales", "ada@contoso.com")).await?.unwrap();
    table.replace(&mut entry).await?;
    table.get(Employee::key("Sales", 1)).follow().await?;
    Ok(())
}

#[derive(TableEntity)]
#[table(by = "row_key")]
enum Row {
    Employee(Employee),
}

async fn write_an_enum(table: &TableClient, row: &Row) {
    table.insert(row).await.unwrap();
    table.upsert_replace(row).await.unwrap();
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "session_{id}")]
struct Session {
    user: String,
    id: String,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

async fn write_into_a_bucket(table: &TableClient, session: Session) {
    let _ = table.upsert_replace(&session).await;
}

fn main() {}
