//! The keys of a struct become those of an enum by a method, so that a key says of which type its entity is.
use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
enum Row {
    Employee(Employee),
}

async fn read(table: &TableClient) -> Result<(), tablesdk::Error> {
    let _ = table.get::<Row>(Employee::key("Sales", "1")).await?;
    let _ = table.query::<Row>().partition(Employee::partition("Sales")).collect().await?;
    let _ = table.query::<Row>().partitions([Employee::partition("Sales")]).collect().await?;
    Ok(())
}

fn main() {}
