//! A method under the name that another SDK has: the message says what it is called here, or how
//! the task is done.
use std::time::Duration;

use tablesdk::{DynamicEntity, TableClient, TableEntity, TableServiceClient};

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
    age: i32,
    email: Option<String>,
}

async fn tables(service: &TableServiceClient) -> tablesdk::Result<()> {
    let table = service.get_table_client("Employees");
    service.create_table_if_not_exists("Employees").await?;
    table.create_if_not_exists().await?;
    service.list_tables().collect().await?;
    Ok(())
}

async fn entities(table: &TableClient, ada: &Employee) -> tablesdk::Result<()> {
    table.add(ada).await?;
    table.create_entity(ada).await?;
    table.get_entity("Sales", "1").await?;
    table.update(ada).await?;
    table.upsert_entity(ada).await?;
    table.delete_entity("Sales", "1").await?;
    table.submit_transaction(vec![ada]).await?;
    table.insert(ada).timeout(Duration::from_secs(5)).await?;
    Ok(())
}

async fn queries(table: &TableClient) -> tablesdk::Result<()> {
    let employees = || table.query::<Employee>();
    employees().limit(3).collect().await?;
    employees().top(3).collect().await?;
    employees().order_by(|e| e.name).collect().await?;
    employees().filter(|e| e.name.contains("d")).collect().await?;
    employees().filter(|e| e.email.is_none()).collect().await?;
    employees().filter(|e| e.age.gt(30).and(e.name.eq("Ada"))).collect().await?;
    let dynamic = table.query::<DynamicEntity>();
    dynamic.filter(|e| e.property("Email").is_null()).collect().await?;
    Ok(())
}

fn main() {}
