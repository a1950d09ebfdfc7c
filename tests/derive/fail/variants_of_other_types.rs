//! A variant holds a struct that is an entity, and `other` holds a `DynamicEntity`.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(entity_type = "Employee", partition_key = "{department}", row_key = "{id}")]
struct Employee {
    department: String,
    id: String,
}

struct Ordinary {
    name: String,
}

#[derive(TableEntity)]
enum Person {
    Employee(Employee),
    Ordinary(Ordinary),
}

#[derive(TableEntity)]
enum Row {
    Person(Person),
    #[table(other)]
    Other(Employee),
}

/// An older version needs a conversion to the newer one.
#[derive(TableEntity)]
#[table(entity_type = "Employee.v2", from = "Employee")]
#[table(partition_key = "{department}", row_key = "{id}")]
struct New {
    department: String,
    id: String,
}

fn main() {}
