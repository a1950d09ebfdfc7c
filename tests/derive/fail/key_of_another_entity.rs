use tablesdk::TableEntity;

#[derive(TableEntity)]
struct Employee {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
}

#[derive(TableEntity)]
struct Department {
    #[table(partition_key)]
    partition: String,
    #[table(row_key)]
    row: String,
}

async fn get(table: &tablesdk::TableClient) -> Result<(), tablesdk::Error> {
    let _ = table.get::<Employee>(Department::key("a", "b")).await?;
    Ok(())
}

fn main() {}
