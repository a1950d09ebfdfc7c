use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(rename_all = "PascalCase")]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
    #[table(flatten, prefix = "Home")]
    home: Address,
    #[table(flatten)]
    work: Option<Office>,
}

#[derive(TableProperties)]
struct Address {
    street_name: String,
}

#[derive(TableProperties)]
#[table(rename_all = "camelCase")]
struct Office {
    #[table(flatten)]
    building: Building,
    #[table(flatten, prefix = "Own")]
    named: Named,
}

#[derive(TableProperties)]
struct Building {
    floor_number: i32,
}

#[derive(TableProperties)]
struct Named {
    #[table(rename = "Name")]
    name: String,
    #[table(skip)]
    cached_name: String,
}

fn main() {}
