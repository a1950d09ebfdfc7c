//! A key belongs to one type of entity, and its parts have types and an order.
use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
#[table(entity_type = "Employee", partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: String,
    id: String,
}

#[derive(TableEntity)]
enum Row {
    Employee(Employee),
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{employee}_{year:04}")]
struct Review {
    department: String,
    employee: String,
    year: u16,
}

async fn read(table: &TableClient) -> tablesdk::Result<()> {
    let _ = table.get::<Employee>(Review::key("Sales", "ann", 2024)).await?;
    // The keys of a struct become those of an enum by a method, so that a key says of which type
    // its entity is.
    let _ = table.get::<Row>(Employee::key("Sales", "1")).await?;
    let _ = table.query::<Row>().partition(Employee::partition("Sales")).collect().await?;
    let _ = table.query::<Row>().partitions([Employee::partition("Sales")]).collect().await?;
    Ok(())
}

fn main() {
    let _ = Review::key("Sales", "ann", "2024");
    let _ = Review::rows().employee("ann").year("2023".."2024");
    let _ = Review::rows().employee(17);
    let _ = Review::rows().year(2024);
}
