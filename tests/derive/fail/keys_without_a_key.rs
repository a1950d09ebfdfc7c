use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(projection, keys = "NameKeys")]
struct Name {
    name: String,
}

#[derive(TableProperties)]
#[table(keys = "AddressKeys")]
struct Address {
    city: String,
}

#[derive(TableEntity)]
#[table(keys = "not a name")]
struct Person {
    #[table(partition_key)]
    country: String,
    #[table(row_key)]
    id: String,
}

fn main() {}
