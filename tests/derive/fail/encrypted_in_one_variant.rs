//! Who may write an entity could change its type, and with it whether a property is decrypted.
use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    #[table(encrypt)]
    name: String,
}

#[derive(TableEntity)]
#[table(entity_type = "Contractor")]
struct Contractor {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: String,
}

#[derive(TableEntity)]
enum Person {
    Employee(Employee),
    Contractor(Contractor),
}

#[derive(TableProperties)]
struct Contact {
    #[table(encrypt(eq))]
    email: String,
}

#[derive(TableEntity)]
struct Customer {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten)]
    contact: Contact,
    #[table(rename = "email__eq")]
    same_email: bool,
}

fn main() {}
