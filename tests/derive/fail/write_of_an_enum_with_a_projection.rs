//! An enum with a projection cannot be written.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(projection, entity_type = "Employee")]
struct Name {
    name: String,
}

#[derive(TableEntity)]
enum Row {
    Name(Name),
}

fn main() {}
