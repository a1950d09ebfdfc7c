//! A part of an entity is not written as a variant, either.
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
