use tablesdk::{TableEntity, TableProperties};

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}", index(ByName, row_key = "name_{name}_{id}"))]
struct Indexed {
    department: String,
    id: String,
    #[table(encrypt)]
    name: String,
}

#[derive(TableEntity)]
struct Keys {
    #[table(partition_key, encrypt)]
    department: String,
    #[table(row_key)]
    id: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}_{number:04}")]
struct Parts {
    department: String,
    #[table(encrypt)]
    id: String,
    #[table(store, encrypt(eq))]
    number: u32,
}

#[derive(TableProperties)]
struct Address {
    city: String,
}

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id}")]
struct Fields {
    department: String,
    id: String,
    #[table(encrypt = "deterministic")]
    name: String,
    #[table(encrypt(ne))]
    email: String,
    #[table(flatten, encrypt)]
    address: Address,
    #[table(json, encrypt(eq))]
    tags: Vec<String>,
    #[table(mixed_integers, encrypt)]
    count: i64,
    #[table(skip, encrypt)]
    cache: String,
    #[table(rest, encrypt)]
    rest: tablesdk::Properties,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Session {
    user: String,
    id: String,
    #[table(expires, encrypt)]
    until: tablesdk::Timestamp,
}

fn main() {}
