//! A verb writes or reads what it is for, and the message says what is.
use futures::stream;
use tablesdk::{Stored, TableClient, TableEntity, TableServiceClient};

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: String,
    id: String,
}

struct WithoutTheDerive;

async fn store<E>(table: &TableClient, without_a_bound: &E) -> tablesdk::Result<()> {
    table.insert(without_a_bound).await?;
    Ok(())
}

async fn write(table: &TableClient, mut plain: Employee) -> tablesdk::Result<()> {
    table.replace(&mut plain).await?;
    table.upsert_merge(&plain).changed_only().await?;
    table.insert(plain).await?;
    Ok(())
}

async fn bulk(table: &TableClient, stored: Vec<Stored<Employee>>, plain: Vec<Employee>) {
    let _ = table.bulk().insert(stream::iter(["Ada"])).await;
    let _ = table.bulk().upsert_replace(stream::iter(stored)).await;
    let _ = table.bulk().insert(plain).await;
    let _ = table.bulk().delete([Employee::key("Sales", "1")]).await;
}

/// A query is no action: a method chooses its result.
async fn read(service: &TableServiceClient, table: &TableClient) -> tablesdk::Result<()> {
    let _ = table.query::<WithoutTheDerive>();
    let _ = table.query::<Employee>().partition("Sales").await?;
    let _ = table.query::<Employee>().partitions(["Sales", "IT"]).await?;
    let _ = service.tables().await?;
    let _ = table.clean_up_expired::<Employee>().await;
    Ok(())
}

/// A projection is a part of an entity, and cannot be written.
#[derive(TableEntity)]
#[table(projection)]
struct NameOnly {
    name: String,
}

fn write_a_projection(table: &TableClient, mut stored: Stored<NameOnly>) {
    let _ = table.insert(&*stored);
    let _ = table.replace(&mut stored);
}

/// The verbs of a table write one entity: those of `table.wide()` write a wide one.
#[derive(TableEntity)]
#[table(wide, partition_key = "{employee}", row_key = "{year:04}")]
struct MessageYear {
    employee: String,
    year: u16,
    day_001: Option<i32>,
}

async fn write_a_wide_entity(table: &TableClient, year: &MessageYear) {
    table.insert(year).await;
    table.query::<MessageYear>();
    table.delete(MessageYear::key("ann", 2024)).await;
    table.wide::<MessageYear>().insert(year).await;
}

fn main() {}
