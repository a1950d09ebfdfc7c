use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(copy, copy = "Skilled", copy(Skilled, Badge), copy())]
struct BadSyntax {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(projection, copy(Skilled))]
struct Projection {
    name: String,
}

#[derive(TableEntity)]
#[table(copy(Skilled))]
struct Generic<T> {
    #[table(partition_key)]
    department: String,
    #[table(row_key)]
    id: String,
    name: T,
}

#[derive(TableProperties)]
#[table(copy(Skilled))]
struct Address {
    city: String,
}

fn main() {}
