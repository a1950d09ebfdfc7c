use tablesdk::{ETag, TableClient, TableEntity};

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
    table.bulk().insert(futures::stream::iter([ada])).await.unwrap();
    Ok(())
}

fn main() {}
