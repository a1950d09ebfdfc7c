use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

async fn hire(table: &TableClient, employee: Employee) -> tablesdk::Result<()> {
    table.insert(employee).await?;
    Ok(())
}

fn main() {}
