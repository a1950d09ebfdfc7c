use tablesdk::{TableEntity, TableProperties, Timestamp};

#[derive(TableEntity)]
struct Number {
    #[table(partition_key)]
    user: String,
    #[table(row_key)]
    id: String,
    #[table(expires)]
    until: i64,
}

#[derive(TableEntity)]
struct Two {
    #[table(partition_key)]
    user: String,
    #[table(row_key)]
    id: String,
    #[table(expires)]
    until: Timestamp,
    #[table(expires)]
    at_the_latest: Timestamp,
}

#[derive(TableEntity)]
struct Roles {
    #[table(partition_key)]
    user: String,
    #[table(row_key)]
    id: String,
    #[table(expires, timestamp)]
    written: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{until}_{id}")]
struct Key {
    user: String,
    id: String,
    #[table(expires)]
    until: Timestamp,
}

#[derive(TableEntity)]
struct Alias {
    #[table(partition_key)]
    user: String,
    #[table(row_key)]
    id: String,
    #[table(expires, alias = "end")]
    until: Timestamp,
}

#[derive(TableProperties)]
struct Flat {
    #[table(expires)]
    until: Timestamp,
}

fn main() {}
