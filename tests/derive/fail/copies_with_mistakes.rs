use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(copy, copy = "Skilled", copy(Skilled, Badge), copy())]
#[table(partition_key = "{department}", row_key = "{id}")]
struct BadSyntax {
    department: String,
    id: String,
}

#[derive(TableEntity)]
#[table(projection, copy(Skilled))]
struct Projection {
    name: String,
}

#[derive(TableEntity)]
#[table(copy(Skilled), partition_key = "{department}", row_key = "{id}")]
struct Generic<T> {
    department: String,
    id: String,
    name: T,
}

#[derive(TableProperties)]
#[table(copy(Skilled))]
struct Address {
    city: String,
}

fn main() {}
