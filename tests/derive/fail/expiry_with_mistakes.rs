//! One property of a whole entity has the instant at which it expires, and the entries in its
//! buckets need names and no keys.
use tablesdk::{TableEntity, Timestamp};

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Number {
    user: String,
    id: String,
    #[table(expires)]
    until: i64,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Two {
    user: String,
    id: String,
    #[table(expires)]
    until: Timestamp,
    #[table(expires)]
    at_the_latest: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct Roles {
    user: String,
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
#[table(partition_key = "{user}", row_key = "{id}")]
struct Alias {
    user: String,
    id: String,
    #[table(expires, alias = "end")]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct BucketOfSeconds {
    user: String,
    id: String,
    #[table(expires(bucket = "90s"))]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct UnknownOption {
    user: String,
    id: String,
    #[table(expires(after = "1h"))]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct ForbiddenName {
    user: String,
    id: String,
    #[table(expires(bucket = "1h", name = "a.b"))]
    until: Timestamp,
}

/// The entries in buckets would need keys of their own.
#[derive(TableEntity)]
#[table(partition_key = "{user}", row_key = "{id}")]
struct BucketsOfAnEncryptedEntity {
    user: String,
    id: String,
    #[table(encrypt)]
    name: String,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

fn main() {}
