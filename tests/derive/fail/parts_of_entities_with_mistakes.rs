//! A flattened struct and a projection are parts of an entity: what is about the whole belongs on
//! the entity.
use tablesdk::{Properties, TableEntity, TableProperties, Timestamp};

#[derive(TableProperties)]
#[table(row_key = "{city}", keys = "AddressKeys", entity_type = "Address")]
struct Address {
    #[table(partition_key)]
    city: String,
    #[table(row_key)]
    street: String,
    #[table(rest)]
    rest: Properties,
    #[table(timestamp)]
    at: Option<Timestamp>,
    #[table(expires)]
    until: Timestamp,
}

#[derive(TableEntity)]
#[table(projection, keys = "NameKeys")]
struct Name {
    name: String,
    /// A projection requests only its own properties.
    #[table(rest)]
    other: Properties,
    #[table(expires(bucket = "1h"))]
    until: Timestamp,
}

fn main() {}
