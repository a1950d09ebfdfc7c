//! A mistake in an enum, or in a struct of it, does not cause messages at its uses.
use tablesdk::{TableClient, TableEntity};

#[derive(TableEntity)]
#[table(entity_type = "Employee")]
struct Employee {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    salary: f64,
}

#[derive(TableEntity)]
enum Row {
    #[table(alas = "Worker")]
    Employee(Employee),
}

#[derive(TableEntity)]
#[table(entity_tipe = "Office")]
struct Office {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    rooms: i32,
}

#[derive(TableEntity)]
enum Sound {
    Office(Office),
}

fn use_it(table: &TableClient, row: &Row) {
    let _ = table.insert(row);
    let _ = table.query::<Row>().filter(|row| row.employee.salary.ge(5.0) | row.is_employee());
    let _ = table.query::<Sound>().filter(|row| row.office.rooms.ge(5) | row.row_key.eq("1"));
    let _ = table.get::<Row>(("Sales", "1"));
}

fn main() {}
