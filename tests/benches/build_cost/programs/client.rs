use tablesdk::{TableEntity, TableServiceClient};

#[derive(Debug, TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    age: i32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> tablesdk::Result<()> {
    let table = TableServiceClient::from_env()?.table("people");
    let found = table.get(Employee::key("Sales", "1")).await?;
    println!("{found:?}");
    Ok(())
}
