//! The entries in buckets would need keys of their own.
use tablesdk::TableEntity;

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Session {
    user: String,
    id: String,
    #[table(encrypt)]
    name: String,
    #[table(expires(bucket = "1h"))]
    until: tablesdk::Timestamp,
}

fn main() {}
