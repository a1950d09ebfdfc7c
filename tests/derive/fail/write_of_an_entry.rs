use tablesdk::{TableClient, TableEntity};

#[derive(Clone, Debug, TableEntity)]
#[table(partition_key = "{department}", row_key = "empid_{id:06}")]
#[table(index(ByEmail, row_key = "email_{email}", unique))]
struct Employee {
    department: String,
    id: u32,
    email: Option<String>,
}

async fn write(table: &TableClient) -> tablesdk::Result<()> {
    let mut entry = table.get(ByEmail::key("Sales", "ada@contoso.com")).await?.unwrap();
    table.replace(&mut entry).await?;
    table.get(Employee::key("Sales", 1)).follow().await?;
    Ok(())
}

fn main() {}
