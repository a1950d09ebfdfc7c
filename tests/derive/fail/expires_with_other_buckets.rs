use tablesdk::{TableEntity, Timestamp};

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Seconds {
    user: String,
    id: String,
    #[table(expires(bucket = "90s"))]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Other {
    user: String,
    id: String,
    #[table(expires(after = "1h"))]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Named {
    user: String,
    id: String,
    #[table(expires(bucket = "1h", name = "a.b"))]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}", projection)]
struct Part {
    user: String,
    id: String,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

fn main() {}
